/* One connection's life, driven by libevent's buffers. `advance` takes one step after the
 * other as long as the input allows; callbacks only call it. Every state has a deadline: silence, a
 * slow head, a slow body and a slow reader all end. (A route has its own deadlines.)
 */
#include "controller/io/http_connection.h"

#include "controller/io/compress.h"
#include "controller/sys/clock.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LINGER_MS = 2000,
    READ_BYTES = 256 * 1024,       /* at once, and held unread while a route works */
    OUTPUT_BYTES_MAX = 1024 * 1024 /* unsent answers of pipelined requests before we stop reading */
};
static const int64_t NS_PER_MS = 1000000;

static void set_deadline(struct http_connection *connection, int64_t after_ms)
{
    loop_timer_set(connection->deadline, after_ms * NS_PER_MS);
}

static size_t input_length(const struct http_connection *connection)
{
    return evbuffer_get_length(bufferevent_get_input(connection->buffer));
}

static size_t output_length(const struct http_connection *connection)
{
    return evbuffer_get_length(bufferevent_get_output(connection->buffer));
}

/* What the bodies of all connections hold is counted, so that many small senders cannot do together
 * what one may not. */
static bool hold(struct http_connection *connection, size_t bytes)
{
    struct http_server *server = connection->server;
    if (bytes > server->limits.held_bytes - server->held_bytes)
        return false;
    server->held_bytes += bytes;
    connection->held += bytes;
    return true;
}

static void release(struct http_connection *connection)
{
    connection->server->held_bytes -= connection->held;
    connection->held = 0;
}

/* The client has left: the request is told, or waits for its answer alone. */
static void abandon_request(struct http_connection *connection)
{
    struct http_request *request = TAKE(connection->request);
    if (request == NULL)
        return;
    request->connection = NULL;
    if (connection->state == HTTP_STATE_ROUTE && request->on_close == NULL)
        return; /* http_reply frees it */
    if (connection->state == HTTP_STATE_ROUTE)
        request->on_close(request->on_close_context);
    http_request_free(request);
}

void http_connection_free(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    abandon_request(connection);
    release(connection);
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        server->connections = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    if (connection->over_cap)
        server->over_cap_count--;
    else
        server->connection_count--;
    loop_timer_free(connection->deadline);
    bufferevent_free(connection->buffer);
    xfree(connection);
}

/* After the last answer: our side is shut, theirs is read and thrown away for a while. Closing at
 * once would reset the connection, and the client would lose the answer that says why. */
static void start_linger(struct http_connection *connection)
{
    connection->state = HTTP_STATE_LINGER;
    set_deadline(connection, connection->server->limits.request_ms);
    evbuffer_drain(bufferevent_get_input(connection->buffer), input_length(connection));
    bufferevent_enable(connection->buffer, loop_event_bits(LOOP_READ | LOOP_WRITE));
}

static void end_output(struct http_connection *connection)
{
    if (connection->write_ended)
        return;
    connection->write_ended = true;
    if (connection->peer.is_tls && !connection->handshaking)
        tls_close_notify(connection->buffer);
    shutdown(bufferevent_getfd(connection->buffer), SHUT_WR);
    set_deadline(connection, LINGER_MS);
}

static void send_bytes(struct http_connection *connection, struct view bytes)
{
    if (bytes.length > 0)
        bufferevent_write(connection->buffer, bytes.bytes, bytes.length);
}

/* Answers without a route, and ends the connection: after a refusal the next byte has no meaning.
 */
static void refuse_request(struct http_connection *connection, struct http_refusal refusal)
{
    AUTO_TEXT body = {0}, head = {0};
    text_addf(&body, "{\"error\":\"%s\"}\n", refusal.reason);
    struct view more = view_of(refusal.code == 405   ? "Allow: GET, HEAD, POST, PUT, DELETE\r\n"
                               : refusal.code == 415 ? "Accept-Encoding: gzip\r\n"
                                                     : "");
    http_format_head(&head, refusal.code, "application/json", body.length,
                     refusal.code == 503 ? 5 : 0, more, false);
    send_bytes(connection, (struct view){head.bytes, head.length});
    send_bytes(connection, (struct view){body.bytes, body.length});
    http_request_free(TAKE(connection->request));
    release(connection);
    start_linger(connection);
}

static void refuse_counted(struct http_connection *connection, int64_t *count, int code,
                           const char *reason)
{
    (*count)++;
    refuse_request(connection, (struct http_refusal){code, reason});
}

static void refuse_by_guard(struct http_connection *connection, struct http_refusal refusal)
{
    refuse_counted(connection, &connection->server->counts.refused_guard, refusal.code,
                   refusal.reason);
}

static void refuse_by_limit(struct http_connection *connection, int code, const char *reason)
{
    refuse_counted(connection, &connection->server->counts.refused_limit, code, reason);
}

/* Writes a NUL behind each value: http_request_header lends C strings. */
static void end_header_values(struct http_request *request)
{
    for (size_t i = 0; i < request->head.field_count; i++) {
        struct view value = request->head.fields[i].value;
        size_t end = (size_t)(value.bytes - request->head_bytes.bytes) + value.length;
        request->head_bytes.bytes[end] = '\0';
    }
}

static void begin_body(struct http_connection *connection)
{
    const struct http_head *head = &connection->request->head;
    connection->state = HTTP_STATE_BODY;
    connection->body_left = head->content_length;
    connection->chunks = (struct http_chunks){.state = CHUNK_SIZE};
    connection->keep_alive = head->keep_alive;
    int64_t spent_ms = (clock_read().monotonic_ns - connection->first_byte_ns) / NS_PER_MS;
    set_deadline(connection, connection->server->limits.request_ms - spent_ms);
    bool is_awaited = head->expects_continue && input_length(connection) == 0 &&
                      (head->is_chunked || head->content_length > 0);
    if (is_awaited)
        send_bytes(connection, view_of("HTTP/1.1 100 Continue\r\n\r\n"));
}

static void take_head(struct http_connection *connection, size_t length)
{
    struct http_request *request = connection->request = http_request_new();
    struct evbuffer *input = bufferevent_get_input(connection->buffer);
    request->connection = connection;
    request->peer = connection->peer;
    text_add_bytes(&request->head_bytes, evbuffer_pullup(input, (ev_ssize_t)length), length);
    evbuffer_drain(input, length);
    struct http_refusal refusal = http_head_parse((struct view){request->head_bytes.bytes, length},
                                                  &request->head);
    if (refusal.code == 0)
        refusal = http_request_read_target(request);
    request->method = request->head.method;
    if (refusal.code != 0) {
        refuse_by_guard(connection, refusal);
        return;
    }
    end_header_values(request);
    if (request->head.content_length > connection->server->limits.body_bytes)
        refuse_by_limit(connection, 413, "the body is larger than this server takes");
    else
        begin_body(connection);
}

/* One step while reading a head; false when more input is needed. */
static bool step_head(struct http_connection *connection)
{
    const struct http_limits *limits = &connection->server->limits;
    size_t available = input_length(connection);
    if (available == 0 || output_length(connection) > OUTPUT_BYTES_MAX)
        return false;
    if (connection->first_byte_ns == 0) {
        connection->first_byte_ns = clock_read().monotonic_ns;
        connection->head_scanned = 0;
        set_deadline(connection, limits->header_ms);
    }
    size_t length = available < limits->header_bytes ? available : limits->header_bytes;
    struct evbuffer *input = bufferevent_get_input(connection->buffer);
    const unsigned char *bytes = evbuffer_pullup(input, (ev_ssize_t)length);
    struct http_refusal refusal;
    size_t head_length = http_head_find_end((struct view){(const char *)bytes, length},
                                            &connection->head_scanned, &refusal);
    if (refusal.code != 0)
        refuse_by_guard(connection, refusal);
    else if (head_length > 0)
        take_head(connection, head_length);
    else if (length == limits->header_bytes)
        refuse_by_limit(connection, 431, "the headers are larger than this server takes");
    else
        return false;
    return true;
}

static bool add_body(struct http_connection *connection, struct view bytes)
{
    struct text *body = &connection->request->body;
    if (bytes.length > connection->server->limits.body_bytes - body->length) {
        refuse_by_limit(connection, 413, "the body is larger than this server takes");
        return false;
    }
    if (!hold(connection, bytes.length)) {
        refuse_by_limit(connection, 503, "all bodies together hold more than this server may");
        return false;
    }
    text_add_bytes(body, bytes.bytes, bytes.length);
    connection->server->counts.body_bytes += (int64_t)bytes.length;
    return true;
}

/* Replaces a gzip body by what was packed in it. */
static bool inflate_body(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    struct http_request *request = connection->request;
    if (request->head.encoding != HTTP_ENCODING_GZIP)
        return true;
    size_t left = server->limits.held_bytes - server->held_bytes;
    bool is_short = left < server->limits.inflated_bytes;
    AUTO_TEXT plain = {0};
    struct error error = {0};
    enum status status = gzip_inflate((struct view){request->body.bytes, request->body.length},
                                      is_short ? left : server->limits.inflated_bytes, &plain,
                                      &error);
    if (status == ERR_LIMIT && is_short) {
        refuse_by_limit(connection, 503, "all bodies together hold more than this server may");
        return false;
    }
    if (status == ERR_LIMIT) {
        refuse_by_limit(connection, 413, "the body inflates to more than this server takes");
        return false;
    }
    if (status != OK) {
        refuse_by_guard(connection, (struct http_refusal){400, "the body is not whole gzip"});
        return false;
    }
    release(connection);
    hold(connection, plain.length);
    text_done(&request->body);
    request->body = plain;
    plain = (struct text){0};
    return true;
}

static void call_route(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    if (!inflate_body(connection))
        return;
    connection->state = HTTP_STATE_ROUTE;
    loop_timer_stop(connection->deadline);
    server->counts.requests++;
    server->route(server->route_context, connection->request);
}

/* Takes chunked bytes from one piece of input; false when the request was refused. */
static bool take_chunks(struct http_connection *connection, struct view *piece)
{
    while (piece->length > 0 && connection->chunks.state != CHUNK_DONE) {
        struct view data;
        struct http_refusal refusal = http_chunks_take(&connection->chunks, piece, &data);
        if (refusal.code != 0) {
            refuse_by_guard(connection, refusal);
            return false;
        }
        if (!add_body(connection, data))
            return false;
    }
    return true;
}

static bool take_piece(struct http_connection *connection, struct view *piece)
{
    if (connection->request->head.is_chunked)
        return take_chunks(connection, piece);
    struct view data = *piece;
    if (data.length > connection->body_left)
        data.length = (size_t)connection->body_left;
    if (!add_body(connection, data))
        return false;
    connection->body_left -= data.length;
    piece->bytes += data.length;
    piece->length -= data.length;
    return true;
}

static bool body_is_whole(const struct http_connection *connection)
{
    return connection->request->head.is_chunked ? connection->chunks.state == CHUNK_DONE
                                                : connection->body_left == 0;
}

/* One step while reading a body; false when more input is needed. */
static bool step_body(struct http_connection *connection)
{
    struct evbuffer *input = bufferevent_get_input(connection->buffer);
    while (!body_is_whole(connection)) {
        struct evbuffer_iovec vector;
        if (evbuffer_peek(input, -1, NULL, &vector, 1) < 1 || vector.iov_len == 0)
            return false;
        struct view piece = {vector.iov_base, vector.iov_len};
        if (!take_piece(connection, &piece))
            return true;
        evbuffer_drain(input, vector.iov_len - piece.length);
    }
    call_route(connection);
    return true;
}

/* The end of the input: a whole request still gets its answer, half a one is told so. */
static void handle_input_end(struct http_connection *connection)
{
    if (connection->state == HTTP_STATE_LINGER || connection->state == HTTP_STATE_ROUTE)
        return;
    bool is_idle = connection->state == HTTP_STATE_HEAD && connection->first_byte_ns == 0;
    if (is_idle && input_length(connection) > 0)
        return; /* pipelined requests that wait until the answers before them are sent */
    if (!is_idle) {
        refuse_by_guard(connection, (struct http_refusal){400, "the request was cut short"});
        return;
    }
    start_linger(connection);
}

static void advance(struct http_connection *connection)
{
    if (connection->advancing)
        return; /* a route answered at once: the loop below goes on */
    connection->advancing = true;
    bool moved = true;
    while (moved) {
        moved = false;
        switch (connection->state) {
        case HTTP_STATE_HEAD:
            moved = step_head(connection);
            break;
        case HTTP_STATE_BODY:
            moved = step_body(connection);
            break;
        case HTTP_STATE_LINGER:
            evbuffer_drain(bufferevent_get_input(connection->buffer), input_length(connection));
            break;
        case HTTP_STATE_ROUTE:
            break;
        }
    }
    connection->advancing = false;
    if (connection->input_ended)
        handle_input_end(connection);
}

void http_connection_answer(struct http_connection *connection, struct view head, struct view body)
{
    send_bytes(connection, head);
    send_bytes(connection, body); /* before the request is freed: an echo lends its own body */
    http_request_free(TAKE(connection->request));
    release(connection);
    if (!connection->keep_alive) {
        start_linger(connection);
        return;
    }
    connection->state = HTTP_STATE_HEAD;
    connection->first_byte_ns = 0;
    set_deadline(connection, connection->server->limits.idle_ms);
    /* Not now: the caller may stand inside its own callback, and a pipelined request would call it.
     */
    if (!connection->advancing)
        bufferevent_trigger(connection->buffer, loop_event_bits(LOOP_READ),
                            BEV_TRIG_DEFER_CALLBACKS | BEV_TRIG_IGNORE_WATERMARKS);
}

static void on_read(struct bufferevent *buffer, void *context)
{
    (void)buffer;
    advance(context);
}

/* All output is sent: a lingering connection shuts its side, another may have input waiting. */
static void on_written(struct bufferevent *buffer, void *context)
{
    struct http_connection *connection = context;
    (void)buffer;
    if (connection->state == HTTP_STATE_LINGER) {
        end_output(connection);
        if (connection->input_ended)
            http_connection_free(connection);
        return;
    }
    advance(connection);
}

static void on_handshake_done(struct http_connection *connection)
{
    connection->handshaking = false;
    tls_peer_name(connection->buffer, connection->peer.certificate_cn,
                  sizeof connection->peer.certificate_cn);
}

static void on_event(struct bufferevent *buffer, short what, void *context)
{
    struct http_connection *connection = context;
    (void)buffer;
    if ((what & BEV_EVENT_CONNECTED) != 0) {
        on_handshake_done(connection);
        return;
    }
    bool is_input_end = (what & BEV_EVENT_EOF) != 0 && (what & BEV_EVENT_READING) != 0 &&
                        !connection->handshaking;
    if (!is_input_end) { /* reset, broken TLS, or a reader that takes nothing */
        if ((what & BEV_EVENT_TIMEOUT) != 0)
            connection->server->counts.timed_out++;
        http_connection_free(connection);
        return;
    }
    connection->input_ended = true;
    advance(connection);
    if (connection->state == HTTP_STATE_LINGER && output_length(connection) == 0)
        http_connection_free(connection);
}

static void on_deadline(void *context)
{
    struct http_connection *connection = context;
    bool is_request = connection->first_byte_ns != 0 && (connection->state == HTTP_STATE_HEAD ||
                                                         connection->state == HTTP_STATE_BODY);
    if (!is_request) {
        http_connection_free(connection);
        return;
    }
    refuse_counted(connection, &connection->server->counts.timed_out, 408,
                   "the request did not come in time");
}

static void link_connection(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    connection->next = server->connections;
    if (connection->next != NULL)
        connection->next->previous = connection;
    server->connections = connection;
    if (connection->over_cap)
        server->over_cap_count++;
    else
        server->connection_count++;
}

static struct bufferevent *open_buffer(struct http_server *server, int fd, struct tls_context *tls)
{
    struct event_base *base = loop_base(server->loop);
    if (tls != NULL)
        return tls_accept(tls, base, fd);
    return bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
}

static void set_up_buffer(struct http_connection *connection)
{
    struct bufferevent *buffer = connection->buffer;
    int write_ms = connection->server->limits.request_ms;
    struct timeval write_timeout = {.tv_sec = write_ms / 1000, .tv_usec = (write_ms % 1000) * 1000};
    bufferevent_setcb(buffer, on_read, on_written, on_event, connection);
    bufferevent_set_timeouts(buffer, NULL, &write_timeout);
    bufferevent_setwatermark(buffer, loop_event_bits(LOOP_READ), 0, READ_BYTES);
    bufferevent_set_max_single_read(buffer, READ_BYTES);
    bufferevent_set_max_single_write(buffer, READ_BYTES);
    bufferevent_enable(buffer, loop_event_bits(LOOP_READ | LOOP_WRITE));
}

void http_connection_start(struct http_server *server, int fd, struct tls_context *tls,
                           const struct http_peer *peer, bool over_cap)
{
    struct bufferevent *buffer = open_buffer(server, fd, tls);
    if (buffer == NULL) {
        close(fd);
        return;
    }
    if (!peer->is_unix)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct http_connection *connection = xcalloc(1, sizeof *connection);
    connection->server = server;
    connection->buffer = buffer;
    connection->peer = *peer;
    connection->handshaking = tls != NULL;
    connection->over_cap = over_cap;
    connection->deadline = loop_timer_new(server->loop, on_deadline, connection);
    link_connection(connection);
    set_up_buffer(connection);
    set_deadline(connection, server->limits.header_ms);
    if (over_cap)
        refuse_by_limit(connection, 503, "too many connections");
}
