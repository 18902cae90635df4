/* Routes of the main listeners: who may call what, and which HTTP code an outcome has. A command
 * from a web page is refused: a browser on the host of broomd would carry the rights of loopback
 * into any site's scripts.
 */
#include "controller/admin/api.h"

#include "controller/admin/api_layout.h"
#include "controller/admin/auth.h"
#include "controller/admin/page.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { NODE_NAME_MAX = 253, TEXT_BYTES_MAX = 4096, RETRY_AFTER_S = 5, REF_DIGITS_MAX = 12 };

static const char JSON_TYPE[] = "application/json";

struct pending {
    struct api *api;
    struct http_request *request; /* NULL once its client has left */
    struct pending *next;
    bool is_query;
    struct api_query query; /* its strings are owned */
};

struct api {
    struct api_backend backend;
    const struct auth *auth;
    struct api_counts counts;
    struct pending *pending;
};

struct call {
    struct api *api;
    struct http_request *request;
    const struct route *route;
    char *name; /* the path's variable part, or NULL */
    const struct identity *identity;
};

struct route {
    enum http_method method;
    const char *before; /* path up to its variable part */
    const char *after;  /* path behind it; NULL: no variable part */
    enum permission permission;
    void (*run)(struct call *call);
    int detail; /* which command_verb or api_read */
};

static void run_page(struct call *call);
static void run_write(struct call *call);
static void run_status(struct call *call);
static void run_jobs(struct call *call);
static void run_job(struct call *call);
static void run_ranks(struct call *call);
static void run_layout(struct call *call);
static void run_topology(struct call *call);
static void run_put_job(struct call *call);
static void run_incidents(struct call *call);
static void run_read(struct call *call);
static void run_command(struct call *call);
static void run_node_command(struct call *call);

#define INCIDENT "/api/v1/incidents/"
#define JOB      "/api/v1/jobs/"
#define NODE     "/api/v1/nodes/"

/* clang-format off */
/* First match wins; job names hold '/', so longer endings stand first. */
static const struct route routes[] = {
    {HTTP_GET,  "/",                     NULL,        PERMISSION_READ,    run_page,      0},
    {HTTP_POST, "/write",                NULL,        PERMISSION_INGEST,  run_write,     0},
    {HTTP_POST, "/api/v2/write",         NULL,        PERMISSION_INGEST,  run_write,     0},
    {HTTP_GET,  "/api/v1/status",        NULL,        PERMISSION_READ,    run_status,    0},
    {HTTP_GET,  "/api/v1/jobs",          NULL,        PERMISSION_READ,    run_jobs,      0},
    {HTTP_GET,  JOB,                     "/ranks",    PERMISSION_READ,    run_ranks,     0},
    {HTTP_GET,  JOB,                     "/layout",   PERMISSION_READ,    run_layout,    0},
    {HTTP_GET,  JOB,                     "",          PERMISSION_READ,    run_job,       0},
    {HTTP_PUT,  JOB,                     "",          PERMISSION_INGEST,  run_put_job,   0},
    {HTTP_GET,  "/api/v1/topology",      NULL,        PERMISSION_READ,    run_topology,  0},
    {HTTP_GET,  "/api/v1/incidents",     NULL,        PERMISSION_READ,    run_incidents, API_INCIDENTS},
    {HTTP_GET,  INCIDENT,                "/timeline", PERMISSION_READ,    run_read,      API_TIMELINE},
    {HTTP_GET,  INCIDENT,                "/export",   PERMISSION_READ,    run_read,      API_EXPORT},
    {HTTP_GET,  INCIDENT,                "",          PERMISSION_READ,    run_read,      API_INCIDENT},
    {HTTP_POST, INCIDENT,                "/ack",      PERMISSION_OPERATE, run_command,   COMMAND_ACK},
    {HTTP_POST, INCIDENT,                "/note",     PERMISSION_OPERATE, run_command,   COMMAND_NOTE},
    {HTTP_POST, INCIDENT,                "/decline",  PERMISSION_OPERATE, run_command,   COMMAND_DECLINE},
    {HTTP_POST, INCIDENT,                "/approve",  PERMISSION_OPERATE, run_command,   COMMAND_APPROVE},
    {HTTP_POST, INCIDENT,                "/abort",    PERMISSION_OPERATE, run_command,   COMMAND_ABORT},
    {HTTP_POST, INCIDENT,                "/fenced",   PERMISSION_OPERATE, run_command,   COMMAND_FENCED},
    {HTTP_POST, NODE,                    "/fenced",   PERMISSION_OPERATE, run_node_command, COMMAND_FENCED},
    {HTTP_POST, "/api/v1/pause",         NULL,        PERMISSION_OPERATE, run_command,   COMMAND_PAUSE},
    {HTTP_POST, "/api/v1/resume",        NULL,        PERMISSION_OPERATE, run_command,   COMMAND_RESUME},
    {HTTP_POST, "/api/v1/breaker/close", NULL,        PERMISSION_OPERATE, run_command,   COMMAND_BREAKER_CLOSE},
};
/* clang-format on */

struct api *api_new(const struct api_backend *backend, const struct auth *auth)
{
    struct api *api = xcalloc(1, sizeof *api);
    api->backend = *backend;
    api->auth = auth;
    return api;
}

static void pending_free(struct pending *pending)
{
    xfree(pending->query.incident_ref);
    xfree(pending->query.status);
    xfree(pending->query.job);
    xfree(pending);
}

void api_free(struct api *api)
{
    if (api == NULL)
        return;
    for (struct pending *pending = api->pending, *next; pending != NULL; pending = next) {
        next = pending->next;
        pending_free(pending);
    }
    xfree(api);
}

struct api_counts api_counts(const struct api *api)
{
    return api->counts;
}

/* Answers. */

static int code_of(enum status status)
{
    switch (status) {
    case OK:
        return 200;
    case ERR_INVALID:
        return 400;
    case ERR_NOT_FOUND:
        return 404;
    case ERR_DENIED:
        return 403;
    case ERR_REFUSED:
        return 422;
    case ERR_CONFLICT:
        return 409;
    case ERR_AGAIN:
        return 429;
    case ERR_LIMIT:
    case ERR_UNREACHABLE:
        return 503;
    case ERR_TIMEOUT:
        return 504;
    case ERR_IO:
    case ERR_BUG:
    case STATUS_COUNT:
        break;
    }
    return 500;
}

static void count_code(struct api *api, int code)
{
    api->counts.client_errors += code >= 400 && code < 500;
    api->counts.server_errors += code >= 500;
    api->counts.denied += code == 401 || code == 403;
}

static void reply_json(struct api *api, struct http_request *request, int code, struct view json)
{
    count_code(api, code);
    http_reply_header(request, "Cache-Control", "no-store");
    http_reply_header(request, "X-Content-Type-Options", "nosniff");
    http_reply(request, code, JSON_TYPE, json);
}

static void reply_text(struct api *api, struct http_request *request, int code,
                       const struct text *json)
{
    reply_json(api, request, code, (struct view){json->bytes, json->length});
}

static void reply_error(struct api *api, struct http_request *request, enum status status,
                        int retry_after_s, const char *message)
{
    AUTO_TEXT json = {0};
    struct json_writer writer = json_writer(&json);
    json_open_object(&writer);
    json_put_string(&writer, "error", message);
    json_close(&writer);
    if (status == ERR_AGAIN || status == ERR_LIMIT || status == ERR_UNREACHABLE) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", retry_after_s > 0 ? retry_after_s : RETRY_AFTER_S);
        http_reply_header(request, "Retry-After", seconds);
    }
    reply_text(api, request, code_of(status), &json);
}

static void reply_bad(struct call *call, const char *message)
{
    reply_error(call->api, call->request, ERR_INVALID, 0, message);
}

/* Answers that come later. */

static void client_left(void *context)
{
    struct pending *pending = context;
    pending->request = NULL;
}

static struct pending *pending_new(struct call *call)
{
    struct pending *pending = xcalloc(1, sizeof *pending);
    *pending = (struct pending){
        .api = call->api, .request = call->request, .next = call->api->pending};
    call->api->pending = pending;
    http_request_on_close(call->request, client_left, pending);
    return pending;
}

static char *copy_or_null(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

static struct pending *pending_new_query(struct call *call, const struct api_query *query)
{
    struct pending *pending = pending_new(call);
    pending->is_query = true;
    pending->query = (struct api_query){.read = query->read,
                                        .since_ns = query->since_ns,
                                        .incident_ref = copy_or_null(query->incident_ref),
                                        .status = copy_or_null(query->status),
                                        .job = copy_or_null(query->job)};
    return pending;
}

/* The request that still waits for it, or NULL. Takes pending off the list; the caller frees it. */
static struct http_request *pending_take(struct pending *pending)
{
    struct pending **link = &pending->api->pending;
    while (*link != pending)
        link = &(*link)->next;
    *link = pending->next;
    struct http_request *request = pending->request;
    if (request != NULL)
        http_request_on_close(request, NULL, NULL);
    return request;
}

static bool is_nothing(struct view json)
{
    return json.length == 0 || view_equals(json, "null");
}

/* The object with the pipeline's time in it, so that ages are counted on one clock. */
static void add_with_now(struct text *out, struct view json, int64_t now_ns)
{
    if (json.length < 2 || json.bytes[0] != '{') {
        text_add_bytes(out, json.bytes, json.length);
        return;
    }
    size_t next = 1;
    while (next < json.length && strchr(" \t\r\n", json.bytes[next]) != NULL)
        next++;
    text_addf(out, "{\"now_ns\":%lld%s", (long long)now_ns, json.bytes[next] == '}' ? "" : ",");
    text_add_bytes(out, json.bytes + next, json.length - next);
}

static void reply_found(struct api *api, struct http_request *request, struct view found)
{
    AUTO_TEXT json = {0};
    add_with_now(&json, found, api->backend.now_ns(api->backend.self));
    reply_text(api, request, 200, &json);
}

/* What is in memory, for a query whose database is away; false when there is nothing. */
static bool reply_from_memory(struct pending *pending, struct http_request *request)
{
    const struct api_backend *backend = &pending->api->backend;
    AUTO_TEXT json = {0};
    struct json_writer writer = json_writer(&json);
    if (!pending->is_query || backend->recall == NULL ||
        !backend->recall(backend->self, &pending->query, &writer))
        return false;
    reply_found(pending->api, request, (struct view){json.bytes, json.length});
    return true;
}

static void reply_answer(struct pending *pending, struct http_request *request,
                         const struct api_answer *answer)
{
    struct api *api = pending->api;
    if (answer->status == ERR_UNREACHABLE && reply_from_memory(pending, request))
        return;
    if (answer->status != OK)
        reply_error(api, request, answer->status, 0,
                    answer->reason != NULL ? answer->reason : status_name(answer->status));
    else if (is_nothing(answer->json))
        reply_error(api, request, ERR_NOT_FOUND, 0,
                    "no such incident; 'broom incidents' lists them");
    else
        reply_found(api, request, answer->json);
}

static void answer_came(void *context, const struct api_answer *answer)
{
    struct pending *pending = context;
    struct http_request *request = pending_take(pending);
    if (request != NULL)
        reply_answer(pending, request, answer);
    pending_free(pending);
}

/* Reads. */

static void run_page(struct call *call)
{
    page_reply(call->request);
}

static void run_status(struct call *call)
{
    AUTO_TEXT json = {0};
    struct json_writer writer = json_writer(&json);
    call->api->backend.status(call->api->backend.self, &writer);
    reply_text(call->api, call->request, 200, &json);
}

static void run_jobs(struct call *call)
{
    AUTO_TEXT json = {0};
    struct json_writer writer = json_writer(&json);
    json_open_object(&writer);
    json_add_key(&writer, "jobs");
    call->api->backend.jobs(call->api->backend.self, &writer);
    json_close(&writer);
    reply_text(call->api, call->request, 200, &json);
}

static void reply_written(struct call *call, enum status status, const struct text *json,
                          const struct error *error)
{
    if (status == OK)
        reply_text(call->api, call->request, 200, json);
    else
        reply_error(call->api, call->request, status, 0, error->message);
}

static void run_job(struct call *call)
{
    AUTO_TEXT json = {0};
    struct json_writer writer = json_writer(&json);
    struct error error = {0};
    const struct api_backend *backend = &call->api->backend;
    reply_written(call, backend->job(backend->self, call->name, &writer, &error), &json, &error);
}

static void run_ranks(struct call *call)
{
    AUTO_TEXT json = {0};
    struct json_writer writer = json_writer(&json);
    struct error error = {0};
    const struct api_backend *backend = &call->api->backend;
    const char *slow = http_request_query(call->request, "slow");
    bool slow_only = slow != NULL && strcmp(slow, "0") != 0;
    reply_written(call, backend->ranks(backend->self, call->name, slow_only, &writer, &error),
                  &json, &error);
}

static void run_layout(struct call *call)
{
    AUTO_TEXT out = {0};
    struct error error = {0};
    bool is_json = true;
    enum status status = api_layout_answer(&call->api->backend, call->request, call->name, &out,
                                           &is_json, &error);
    if (status != OK || is_json) {
        reply_written(call, status, &out, &error);
        return;
    }
    count_code(call->api, 200);
    http_reply_header(call->request, "Cache-Control", "no-store");
    http_reply(call->request, 200, "text/plain; charset=utf-8",
               (struct view){out.bytes, out.length});
}

static void run_topology(struct call *call)
{
    AUTO_TEXT json = {0};
    struct json_writer writer = json_writer(&json);
    struct error error = {0};
    const struct api_backend *backend = &call->api->backend;
    enum status status = OK;
    if (backend->topology == NULL)
        status = error_set(&error, ERR_NOT_FOUND, "this broomd keeps no inventory");
    else
        backend->topology(backend->self, &writer);
    reply_written(call, status, &json, &error);
}

/* "24h" before now, or a UTC time. */
static bool parse_since(struct call *call, const char *text, int64_t *ret_since_ns)
{
    int64_t span_ns;
    if (text_parse_time(view_of(text), ret_since_ns))
        return true;
    if (!text_parse_duration(view_of(text), &span_ns))
        return false;
    const struct api_backend *backend = &call->api->backend;
    int64_t now_ns = backend->now_ns(backend->self);
    *ret_since_ns = span_ns < now_ns ? now_ns - span_ns : 0;
    return true;
}

static void run_incidents(struct call *call)
{
    struct api_query query = {.read = API_INCIDENTS,
                              .status = http_request_query(call->request, "status"),
                              .job = http_request_query(call->request, "job")};
    const char *since = http_request_query(call->request, "since");
    enum incident_status status;
    if (since != NULL && !parse_since(call, since, &query.since_ns)) {
        reply_bad(call,
                  "'since' takes a duration such as 24h, or a time such as 2026-05-28T20:29:02Z");
        return;
    }
    if (query.status != NULL && !incident_status_parse(query.status, &status)) {
        reply_bad(call, "'status' takes open, mitigated, resolved, closed, merged or declined");
        return;
    }
    const struct api_backend *backend = &call->api->backend;
    backend->query(backend->self, &query, answer_came, pending_new_query(call, &query));
}

/* References are INC- and a number without leading zeros. */
static bool is_ref(const char *ref)
{
    const char *digits = ref + 4;
    return strncmp(ref, "INC-", 4) == 0 && digits[0] >= '1' && digits[0] <= '9' &&
           strspn(digits, "0123456789") == strlen(digits) && strlen(digits) <= REF_DIGITS_MAX;
}

static bool check_ref(struct call *call)
{
    if (is_ref(call->name))
        return true;
    reply_error(call->api, call->request, ERR_NOT_FOUND, 0,
                "no such incident: a reference looks like INC-3; 'broom incidents' lists them");
    return false;
}

static void run_read(struct call *call)
{
    if (!check_ref(call))
        return;
    struct api_query query = {.read = (enum api_read)call->route->detail,
                              .incident_ref = call->name};
    const struct api_backend *backend = &call->api->backend;
    backend->query(backend->self, &query, answer_came, pending_new_query(call, &query));
}

/* Writes. */

static bool parse_precision(const char *text, enum api_precision *ret_precision)
{
    static const struct {
        const char *name;
        enum api_precision precision;
    } names[] = {{"ns", API_PRECISION_NS}, {"n", API_PRECISION_NS},  {"us", API_PRECISION_US},
                 {"u", API_PRECISION_US},  {"ms", API_PRECISION_MS}, {"s", API_PRECISION_S}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i].name) == 0) {
            *ret_precision = names[i].precision;
            return true;
        }
    }
    return false;
}

static void reply_bad_lines(struct call *call, const struct api_write_result *result)
{
    AUTO_TEXT json = {0};
    AUTO_TEXT message = {0};
    struct json_writer writer = json_writer(&json);
    const struct api_bad_line *first = &result->bad[0];
    text_addf(&message, "%lld of the lines were not taken, the others were",
              (long long)(result->bad_lines + result->refused));
    if (result->bad_count > 0)
        text_addf(&message, "; line %lld: %s", (long long)first->line, first->cause);
    json_open_object(&writer);
    json_put_string(&writer, "error", message.bytes);
    if (result->bad_count > 0)
        json_put_int(&writer, "line", first->line);
    json_put_int(&writer, "accepted", result->accepted);
    json_put_int(&writer, "bad_lines", result->bad_lines);
    json_put_int(&writer, "refused", result->refused);
    json_add_key(&writer, "bad");
    json_open_array(&writer);
    for (size_t i = 0; i < result->bad_count; i++) {
        json_open_object(&writer);
        json_put_int(&writer, "line", result->bad[i].line);
        json_put_string(&writer, "cause", result->bad[i].cause);
        json_close(&writer);
    }
    json_close(&writer);
    json_close(&writer);
    reply_text(call->api, call->request, 400, &json);
}

static void run_write(struct call *call)
{
    struct api_write write = {.body = http_request_body(call->request), .identity = call->identity};
    const char *precision = http_request_query(call->request, "precision");
    if (precision != NULL && !parse_precision(precision, &write.precision)) {
        reply_bad(call, "precision= takes ns, us, ms or s");
        return;
    }
    /* 100 bad lines are too much for the stack of a callback that is itself deep. */
    AUTO_FREE struct api_write_result *result = xcalloc(1, sizeof *result);
    struct error error = {0};
    const struct api_backend *backend = &call->api->backend;
    enum status status = backend->write(backend->self, &write, result, &error);
    assert(result->bad_count <= API_BAD_LINES_MAX);
    if (status != OK)
        reply_error(call->api, call->request, status, result->retry_after_s, error.message);
    else if (result->bad_lines > 0 || result->refused > 0)
        reply_bad_lines(call, result);
    else
        http_reply(call->request, 204, JSON_TYPE, view_of(NULL));
}

static void run_put_job(struct call *call)
{
    struct error error = {0};
    bool created = false;
    const struct api_backend *backend = &call->api->backend;
    if (!auth_allows(call->identity, PERMISSION_INGEST, call->name)) {
        reply_error(call->api, call->request, ERR_DENIED, 0,
                    "this identity speaks for another job");
        return;
    }
    enum status status = backend->put_job(backend->self, call->name,
                                          http_request_body(call->request), call->identity,
                                          &created, &error);
    if (status != OK) {
        reply_error(call->api, call->request, status, 0, error.message);
        return;
    }
    AUTO_TEXT json = {0};
    struct json_writer writer = json_writer(&json);
    json_open_object(&writer);
    json_put_string(&writer, "job", call->name);
    json_put_bool(&writer, "created", created);
    json_close(&writer);
    reply_text(call->api, call->request, created ? 201 : 200, &json);
}

/* Commands of people. */

static size_t utf8_length(const unsigned char *c)
{
    size_t more = *c < 0x80                 ? 0
                  : *c >= 0xc2 && *c < 0xe0 ? 1
                  : *c >= 0xe0 && *c < 0xf0 ? 2
                  : *c >= 0xf0 && *c < 0xf5 ? 3
                                            : 9;
    for (size_t i = 1; i <= more; i++)
        if (more == 9 || (c[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (*c == 0xe0 && c[1] < 0xa0) || (*c == 0xf0 && c[1] < 0x90);
    bool beyond = (*c == 0xed && c[1] >= 0xa0) || (*c == 0xf4 && c[1] >= 0x90);
    return overlong || beyond ? 0 : more + 1;
}

/* Text that people will read in a terminal, a page and a database: UTF-8, control bytes become
 * blanks. */
static bool clean_text(char *text)
{
    unsigned char *c = (unsigned char *)text;
    while (*c != '\0') {
        size_t length = utf8_length(c);
        if (length == 0)
            return false;
        if (*c < 0x20 || *c == 0x7f)
            *c = ' ';
        c += length;
    }
    return true;
}

static const char *read_text(struct view body, char **ret_text)
{
    AUTO(json_free) struct json *root = NULL;
    *ret_text = NULL;
    if (body.length > 0 && json_parse(body, &root, NULL) != OK)
        return "the body is not JSON: send {\"text\": \"why\"}";
    if (root != NULL && json_kind(root) != JSON_OBJECT)
        return "the body is not an object: send {\"text\": \"why\"}";
    const struct json *text = json_get(root, "text");
    if (text != NULL && json_kind(text) != JSON_STRING)
        return "text is not a string: send {\"text\": \"why\"}";
    AUTO_FREE char *copy = xstrdup(json_string(text, ""));
    if (strlen(copy) > TEXT_BYTES_MAX)
        return "text is longer than 4096 bytes";
    if (!clean_text(copy))
        return "text is not UTF-8";
    *ret_text = TAKE(copy);
    return NULL;
}

static bool needs_text(enum command_verb verb)
{
    return verb == COMMAND_NOTE || verb == COMMAND_DECLINE || verb == COMMAND_BREAKER_CLOSE;
}

static void send_command(struct call *call, const char *ref, const char *node)
{
    AUTO_FREE char *text = NULL;
    const char *mistake = read_text(http_request_body(call->request), &text);
    enum command_verb verb = (enum command_verb)call->route->detail;
    if (mistake == NULL && (needs_text(verb) || node != NULL) && strspn(text, " ") == strlen(text))
        mistake = "this needs a text that says why: send {\"text\": \"why\"}";
    if (mistake != NULL) {
        reply_bad(call, mistake);
        return;
    }
    struct api_command command = {
        .verb = verb, .incident_ref = ref, .node = node, .text = text, .identity = call->identity};
    const struct api_backend *backend = &call->api->backend;
    backend->command(backend->self, &command, answer_came, pending_new(call));
}

static void run_command(struct call *call)
{
    if (call->route->after == NULL || check_ref(call))
        send_command(call, call->name, NULL);
}

static void run_node_command(struct call *call)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    size_t length = strlen(call->name);
    if (length > NODE_NAME_MAX || strspn(call->name, plain) != length)
        reply_error(call->api, call->request, ERR_NOT_FOUND, 0, "no node has such a name");
    else
        send_command(call, NULL, call->name);
}

/* Dispatch. */

static bool route_matches(const struct route *route, const char *path, char **ret_name)
{
    *ret_name = NULL;
    if (route->after == NULL)
        return strcmp(path, route->before) == 0;
    size_t before = strlen(route->before);
    size_t after = strlen(route->after);
    size_t length = strlen(path);
    if (length <= before + after || strncmp(path, route->before, before) != 0 ||
        strcmp(path + length - after, route->after) != 0)
        return false;
    size_t name_length = length - before - after;
    if (strcmp(route->before, JOB) != 0 && memchr(path + before, '/', name_length) != NULL)
        return false;
    *ret_name = xstrndup(path + before, name_length);
    return true;
}

static enum http_method plain_method(enum http_method method)
{
    return method == HTTP_HEAD ? HTTP_GET : method;
}

static bool from_web_page(const struct http_request *request)
{
    const char *site = http_request_header(request, "Sec-Fetch-Site");
    return http_request_header(request, "Origin") != NULL ||
           (site != NULL && strcmp(site, "none") != 0);
}

/* A name that somebody else's DNS points at 127.0.0.1 would make their page and our API one origin.
 * On loopback, where nobody has to prove anything to look, only names that cannot be pointed
 * elsewhere are taken. */
static bool from_foreign_name(const struct http_request *request)
{
    const struct http_peer *peer = http_request_peer(request);
    const char *host = http_request_header(request, "Host");
    if (peer->is_unix || peer->is_tls || !peer->is_loopback || host == NULL ||
        http_request_header(request, "Authorization") != NULL)
        return false;
    size_t length = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    bool is_name = host[0] != '[' && strspn(host, "0123456789.") < length;
    return is_name && !(length == 9 && strncasecmp(host, "localhost", length) == 0);
}

static bool check_caller(struct call *call, struct identity *ret_identity)
{
    struct error error = {0};
    enum permission permission = call->route->permission;
    if (call->route->method != HTTP_GET && from_web_page(call->request)) {
        reply_error(call->api, call->request, ERR_DENIED, 0,
                    "commands and samples are not taken from web pages; use broom or curl");
        return false;
    }
    if (from_foreign_name(call->request)) {
        reply_error(call->api, call->request, ERR_DENIED, 0,
                    "on loopback call this server localhost or 127.0.0.1, or send a token");
        return false;
    }
    enum status status = auth_check(call->api->auth, call->request, permission, ret_identity,
                                    &error);
    if (status == OK)
        return true;
    if (ret_identity->name[0] == '\0') {
        count_code(call->api, 401);
        http_reply_header(call->request, "WWW-Authenticate", "Bearer");
        http_reply_error(call->request, 401, "%s", error.message);
    } else {
        reply_error(call->api, call->request, ERR_DENIED, 0, error.message);
    }
    return false;
}

static void reply_no_route(struct api *api, struct http_request *request,
                           const struct text *allowed)
{
    count_code(api, 404);
    if (allowed->length == 0) {
        http_reply_error(request, 404,
                         "no such path '%s'; the page is at /, the API under /api/v1/",
                         http_request_path(request));
        return;
    }
    http_reply_header(request, "Allow", allowed->bytes);
    http_reply_error(request, 405, "this path takes %s", allowed->bytes);
}

static const char *method_name(enum http_method method)
{
    static const char *const names[HTTP_METHOD_COUNT] = {[HTTP_GET] = "GET",
                                                         [HTTP_HEAD] = "HEAD",
                                                         [HTTP_POST] = "POST",
                                                         [HTTP_PUT] = "PUT",
                                                         [HTTP_DELETE] = "DELETE"};
    return names[method];
}

void api_route(void *context, struct http_request *request)
{
    struct api *api = context;
    AUTO_TEXT allowed = {0};
    api->counts.requests++;
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        AUTO_FREE char *name = NULL;
        if (!route_matches(&routes[i], http_request_path(request), &name))
            continue;
        if (routes[i].method != plain_method(http_request_method(request))) {
            text_addf(&allowed, "%s%s", allowed.length > 0 ? ", " : "",
                      method_name(routes[i].method));
            continue;
        }
        struct identity identity = {0};
        struct call call = {api, request, &routes[i], name, &identity};
        if (check_caller(&call, &identity))
            routes[i].run(&call);
        return;
    }
    reply_no_route(api, request, &allowed);
}
