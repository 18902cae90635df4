/* Shared by the files of the HTTP server alone: one connection and the request on it. A connection
 * reads a head, then a body, waits for its route, writes the answer, and starts again or lingers
 * until the client has read what it was told.
 */
#ifndef BROOM_IO_HTTP_CONNECTION_H
#define BROOM_IO_HTTP_CONNECTION_H

#include "controller/io/http_guard.h"
#include "controller/io/tls.h"

struct bufferevent;
struct http_connection;

struct http_parameter {
    char *name;
    char *value;
};

struct http_request {
    struct http_connection *connection; /* NULL: the client has left, the answer goes nowhere */
    enum http_method method;
    char *path;
    struct http_parameter *parameters;
    size_t parameter_count;
    size_t parameter_capacity;
    struct text head_bytes; /* what the views of head point into; a NUL follows each value */
    struct http_head head;
    struct text body; /* as the route sees it */
    struct text reply_headers;
    struct http_peer peer;
    loop_fn *on_close;
    void *on_close_context;
};

enum http_state {
    HTTP_STATE_HEAD = 0, /* waiting for, or reading, a head */
    HTTP_STATE_BODY,
    HTTP_STATE_ROUTE, /* the route has the request */
    HTTP_STATE_LINGER /* the last answer is on its way; input is thrown away */
};

struct http_connection {
    struct http_server *server;
    struct http_connection *previous, *next;
    struct bufferevent *buffer;
    struct loop_timer *deadline;
    int64_t first_byte_ns; /* of this request; 0 between requests */
    enum http_state state;
    size_t head_scanned;
    uint64_t body_left; /* with Content-Length */
    struct http_chunks chunks;
    size_t held;                  /* bytes counted in server->held_bytes */
    struct http_request *request; /* while in BODY and ROUTE */
    struct http_peer peer;
    bool handshaking;
    bool keep_alive;
    bool input_ended;
    bool write_ended;
    bool advancing; /* inside `advance` */
    bool over_cap;  /* only here to be told 503 */
};

struct http_listener {
    struct http_server *server;
    struct http_listener *next;
    struct loop_fd *watch;
    struct loop_timer *pause;      /* out of descriptors: accepting waits */
    struct tls_context *tls;       /* NULL: plain */
    struct tls_context *fresh_tls; /* read again, not yet in use */
    char *certificate_file, *key_file, *client_ca_file;
    bool client_required;
    char *unix_path; /* NULL: TCP */
    int fd;
    int port;
};

struct http_server {
    struct loop *loop;
    struct http_limits limits;
    http_route_fn *route;
    void *route_context;
    struct http_listener *listeners;
    struct http_connection *connections;
    int connection_count; /* without those over the cap */
    int over_cap_count;
    size_t held_bytes;
    struct http_server_counts counts;
};

/* Takes the descriptor over. */
void http_connection_start(struct http_server *server, int fd, struct tls_context *tls,
                           const struct http_peer *peer, bool over_cap);
void http_connection_free(struct http_connection *connection);
/* Writes the answer's bytes and goes on with the connection. */
void http_connection_answer(struct http_connection *connection, struct view head, struct view body);

struct http_request *http_request_new(void);
void http_request_free(struct http_request *request);
/* Path and query from request->head; refuses broken escapes. */
struct http_refusal http_request_read_target(struct http_request *request);
/* The head of an answer, onto out. */
void http_format_head(struct text *out, int code, const char *content_type, size_t length,
                      int retry_after_s, struct view more, bool keep_alive);

#endif
