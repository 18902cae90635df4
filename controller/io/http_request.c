/* What a route sees of a request, and the answers that it gives. */
#include "controller/io/http_connection.h"

#include "controller/base/json.h"
#include "controller/sys/clock.h"

#include <assert.h>
#include <string.h>
#include <time.h>

struct http_request *http_request_new(void)
{
    return xcalloc(1, sizeof(struct http_request));
}

void http_request_free(struct http_request *request)
{
    if (request == NULL)
        return;
    for (size_t i = 0; i < request->parameter_count; i++) {
        xfree(request->parameters[i].name);
        xfree(request->parameters[i].value);
    }
    xfree(request->parameters);
    xfree(request->path);
    text_done(&request->head_bytes);
    text_done(&request->body);
    text_done(&request->reply_headers);
    xfree(request);
}

static bool add_parameter(struct http_request *request, struct view pair)
{
    const char *equals = memchr(pair.bytes, '=', pair.length);
    size_t name_length = equals != NULL ? (size_t)(equals - pair.bytes) : pair.length;
    struct view value = {pair.bytes + pair.length, 0};
    if (equals != NULL)
        value = (struct view){equals + 1, pair.length - name_length - 1};
    AUTO_TEXT name_text = {0}, value_text = {0};
    if (!http_decode((struct view){pair.bytes, name_length}, true, &name_text) ||
        !http_decode(value, true, &value_text))
        return false;
    request->parameters = array_grow(request->parameters, request->parameter_count,
                                     &request->parameter_capacity, sizeof *request->parameters);
    request->parameters[request->parameter_count++] = (struct http_parameter){
        text_take(&name_text), text_take(&value_text)};
    return true;
}

static bool read_query(struct http_request *request, struct view query)
{
    while (query.length > 0) {
        const char *end = memchr(query.bytes, '&', query.length);
        size_t length = end != NULL ? (size_t)(end - query.bytes) : query.length;
        if (length > 0 && !add_parameter(request, (struct view){query.bytes, length}))
            return false;
        size_t used = end != NULL ? length + 1 : length;
        query = (struct view){query.bytes + used, query.length - used};
    }
    return true;
}

struct http_refusal http_request_read_target(struct http_request *request)
{
    static const struct http_refusal broken = {400, "the target has a broken escape"};
    struct view target = request->head.target;
    const char *mark = memchr(target.bytes, '?', target.length);
    size_t path_length = mark != NULL ? (size_t)(mark - target.bytes) : target.length;
    AUTO_TEXT path = {0};
    if (!http_decode((struct view){target.bytes, path_length}, false, &path))
        return broken;
    request->path = text_take(&path);
    if (mark != NULL &&
        !read_query(request, (struct view){mark + 1, target.length - path_length - 1}))
        return broken;
    return (struct http_refusal){0, NULL};
}

enum http_method http_request_method(const struct http_request *request)
{
    return request->method;
}

const char *http_request_path(const struct http_request *request)
{
    return request->path;
}

const char *http_request_query(struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->parameter_count; i++)
        if (strcmp(request->parameters[i].name, name) == 0)
            return request->parameters[i].value;
    return NULL;
}

const char *http_request_header(const struct http_request *request, const char *name)
{
    const struct http_field *field = http_head_field(&request->head, name);
    /* The byte behind a value is its line's end or a blank; reading the head made it a NUL. */
    return field != NULL ? field->value.bytes : NULL;
}

struct view http_request_body(const struct http_request *request)
{
    return (struct view){request->body.bytes != NULL ? request->body.bytes : "",
                         request->body.length};
}

const struct http_peer *http_request_peer(const struct http_request *request)
{
    return &request->peer;
}

void http_request_on_close(struct http_request *request, loop_fn *fn, void *context)
{
    request->on_close = fn;
    request->on_close_context = context;
}

static const char *reason_phrase(int code)
{
    static const struct {
        int code;
        const char *phrase;
    } rows[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].code == code)
            return rows[i].phrase;
    return "Other";
}

static void add_date(struct text *out)
{
    time_t seconds = (time_t)(clock_read().wall_ns / 1000000000);
    struct tm parts;
    char date[64];
    if (gmtime_r(&seconds, &parts) != NULL &&
        strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &parts) > 0)
        text_addf(out, "Date: %s\r\n", date);
}

void http_format_head(struct text *out, int code, const char *content_type, size_t length,
                      int retry_after_s, struct view more, bool keep_alive)
{
    text_addf(out, "HTTP/1.1 %d %s\r\n", code, reason_phrase(code));
    add_date(out);
    if (content_type != NULL && length > 0)
        text_addf(out, "Content-Type: %s\r\n", content_type);
    if (code != 204 && code != 304)
        text_addf(out, "Content-Length: %zu\r\n", length);
    if (retry_after_s > 0)
        text_addf(out, "Retry-After: %d\r\n", retry_after_s);
    text_add_bytes(out, more.bytes, more.length);
    text_add(out, keep_alive ? "\r\n" : "Connection: close\r\n\r\n");
}

void http_reply_header(struct http_request *request, const char *name, const char *value)
{
    text_addf(&request->reply_headers, "%s: ", name);
    for (; *value != '\0'; value++) {
        bool is_control = (unsigned char)*value < ' ' || *value == 0x7f;
        text_add_bytes(&request->reply_headers, is_control ? "_" : value, 1);
    }
    text_add(&request->reply_headers, "\r\n");
}

void http_reply(struct http_request *request, int code, const char *content_type, struct view body)
{
    struct http_connection *connection = request->connection;
    if (connection == NULL) {
        http_request_free(request);
        return;
    }
    assert(connection->state == HTTP_STATE_ROUTE && connection->request == request);
    if (code == 204 || code == 304)
        body.length = 0;
    bool keep_alive = connection->keep_alive && !connection->input_ended;
    connection->keep_alive = keep_alive;
    AUTO_TEXT head = {0};
    http_format_head(&head, code, content_type, body.length, 0,
                     (struct view){request->reply_headers.bytes, request->reply_headers.length},
                     keep_alive);
    if (request->method == HTTP_HEAD)
        body.length = 0;
    http_connection_answer(connection, (struct view){head.bytes, head.length}, body);
}

void http_reply_error(struct http_request *request, int code, const char *format, ...)
{
    AUTO_TEXT message = {0}, body = {0};
    va_list args;
    va_start(args, format);
    text_addv(&message, format, args);
    va_end(args);
    struct json_writer writer = json_writer(&body);
    json_open_object(&writer);
    json_put_string(&writer, "error", message.bytes);
    json_close(&writer);
    text_add(&body, "\n");
    http_reply(request, code, "application/json", (struct view){body.bytes, body.length});
}
