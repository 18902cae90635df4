/* HTTP out: curl multi on the loop (http_client.c is the only includer of curl/curl.h). */
#ifndef BROOM_IO_HTTP_CLIENT_H
#define BROOM_IO_HTTP_CLIENT_H

#include "controller/base/text.h"
#include "controller/io/loop.h"

struct http_client;

struct http_call {
    const char *method; /* "GET", "POST", "PUT", "PATCH", "DELETE" */
    const char *url;
    const char *unix_socket;    /* path or NULL */
    struct view body;           /* copied */
    const char *content_type;   /* NULL: application/json when there is a body */
    const char *const *headers; /* further "Name: value" lines, NULL-terminated; NULL for none */
    const char *bearer_token;   /* or NULL; never logged */
    const char *ca_file, *certificate_file, *key_file; /* or NULL */
    int timeout_ms;                                    /* whole call; 0 means 10 s */
    size_t answer_bytes_max;                           /* 0 means 64 MiB */
    bool may_reuse; /* anything but GET and HEAD: may go over a kept connection, which saves a
                       handshake; when that one turns out dead the answer is ERR_IO. Else such a
                       call has a connection of its own. It is sent at most once either way */
};

struct http_answer {
    enum status status; /* OK: an HTTP answer came, whatever its code. ERR_UNREACHABLE: nothing was
                           sent. ERR_TIMEOUT, ERR_IO: it may have been done */
    int code;
    struct view body;      /* lent for the call */
    const char *reason;    /* when status is not OK */
    int64_t took_ns;       /* real time */
    int64_t retry_after_s; /* as the server said; 0 when it did not */
};
typedef void http_answer_fn(void *context, const struct http_answer *answer);

struct http_client *http_client_new(struct loop *loop);
void http_client_free(
    struct http_client *client); /* calls under way are dropped without an answer */
DEFINE_AUTO(struct http_client, http_client_free)

/* Starts a call; fn is called exactly once, later, from the loop. The result may be ignored: it is
 * for http_transfer_drop. */
struct http_transfer;
struct http_transfer *http_client_start(struct http_client *client, const struct http_call *call,
                                        http_answer_fn *fn, void *context);
/* Drops a call or a stream without an answer (it may have been done); not after its fn was called.
 */
void http_transfer_drop(struct http_transfer *transfer);

/* An answer that is taken as it comes and may last for hours. on_bytes gets the bytes of a 2xx
 * answer, and is called once its headers are in, with none when none came yet; any other answer is
 * collected and comes with on_end, which ends the stream. There is no limit on the whole: idle_ms
 * without a byte is ERR_TIMEOUT. The call's timeout_ms is not used. on_bytes may drop the stream.
 */
typedef void http_bytes_fn(void *context, struct view bytes);
struct http_transfer *http_stream_start(struct http_client *client, const struct http_call *call,
                                        int idle_ms, http_bytes_fn *on_bytes,
                                        http_answer_fn *on_end, void *context);

/* For command-line tools: one call that waits. The caller frees *ret_body. */
MUST_CHECK enum status http_call_wait(const struct http_call *call, int *ret_code, char **ret_body,
                                      size_t *ret_bytes, struct error *reterr);

#endif
