/* HTTP in, on libevent's buffers behind a guard of our own (http_guard.h). Deadlines for headers,
 * request and idle time, a body limit that also holds after inflating, caps on connections and on
 * the bytes that all bodies hold together; what could be framed in two ways is refused with 400
 * before a route sees it. TLS by libevent_openssl. Listening descriptors are close-on-exec.
 */
#ifndef BROOM_IO_HTTP_SERVER_H
#define BROOM_IO_HTTP_SERVER_H

#include "controller/base/text.h"
#include "controller/io/loop.h"

#include <sys/types.h>

struct http_server;
struct http_request;

enum http_method { HTTP_GET = 0, HTTP_HEAD, HTTP_POST, HTTP_PUT, HTTP_DELETE, HTTP_METHOD_COUNT };

/* Who is speaking, as far as the transport proved it. */
struct http_peer {
    bool is_unix; /* came over the Unix socket */
    uid_t uid;    /* Unix socket only: SO_PEERCRED */
    bool is_loopback;
    bool is_tls;
    char address[64];         /* "127.0.0.1:51234", or "unix" */
    char certificate_cn[128]; /* subject CN of a verified client certificate, or "" */
};

struct http_limits {
    size_t header_bytes;   /* default 16 KiB */
    size_t body_bytes;     /* on the wire, default 16 MiB */
    size_t inflated_bytes; /* after Content-Encoding: gzip, default 64 MiB */
    size_t held_bytes;     /* bodies of all connections together, default 512 MiB; beyond it 503 */
    int connections;       /* default 1024; beyond it 503 */
    int header_ms;  /* accept to first byte, and first byte to end of headers, default 10 s */
    int request_ms; /* first byte to end of body, default 60 s */
    int idle_ms;    /* keep-alive, default 120 s */
};
struct http_limits http_limits_default(void);

struct http_tls { /* all files PEM; NULL pointer to this struct: plain HTTP */
    const char *certificate_file;
    const char *key_file;
    const char *client_ca_file; /* NULL: no client certificates asked for */
    bool client_required; /* refuse the handshake of a client without a certificate of that CA */
};

/* Called once a request, with its whole body, inflated. The route must answer with http_reply, now
 * or later. A client that left is told by on_close, after which the request must not be touched;
 * without an on_close the route answers as always and the answer is dropped. A client that only
 * stopped sending (half-closed) still gets its answer. http_server_free is not for use inside a
 * route. */
typedef void http_route_fn(void *context, struct http_request *request);

struct http_server *http_server_new(struct loop *loop, const struct http_limits *limits,
                                    http_route_fn *fn, void *context);
/* "127.0.0.1:0", "[::1]:7430", "unix:/run/broomwagon/broomd.sock" (mode 0660; a stale socket file
 * is replaced, a live one is an error). */
MUST_CHECK enum status http_server_listen(struct http_server *server, const char *address,
                                          const struct http_tls *tls, struct error *reterr);
/* Reads the files of all TLS listeners again; on any error every listener keeps what it has. */
MUST_CHECK enum status http_server_reload_tls(struct http_server *server, struct error *reterr);
int http_server_port(const struct http_server *server); /* of the first TCP listener; 0 when none */
void http_server_free(struct http_server *server);      /* closes all connections */
DEFINE_AUTO(struct http_server, http_server_free)

enum http_method http_request_method(const struct http_request *request);
const char *http_request_path(const struct http_request *request); /* decoded, without query */
/* Decoded query parameter or NULL; borrowed until the reply. */
const char *http_request_query(struct http_request *request, const char *name);
const char *http_request_header(const struct http_request *request, const char *name); /* or NULL */
struct view http_request_body(const struct http_request *request); /* NUL follows the last byte */
const struct http_peer *http_request_peer(const struct http_request *request);
void http_request_on_close(struct http_request *request, loop_fn *fn, void *context);

/* Answers and ends the request; the body is copied and may be empty. */
void http_reply(struct http_request *request, int code, const char *content_type, struct view body);
/* Adds a header line to the answer that http_reply will give. */
void http_reply_header(struct http_request *request, const char *name, const char *value);
/* {"error": message} with code. */
void http_reply_error(struct http_request *request, int code, const char *format, ...)
    PRINTF_LIKE(3, 4);

struct http_server_counts {
    int64_t requests, refused_guard, refused_limit, timed_out, connections_now, body_bytes;
};
struct http_server_counts http_server_counts(const struct http_server *server);

#endif
