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
};

struct http_answer {
    enum status status; /* OK: an HTTP answer came, whatever its code. ERR_UNREACHABLE: nothing was
                           sent. ERR_TIMEOUT, ERR_IO: it may have been done */
    int code;
    struct view body;   /* lent for the call */
    const char *reason; /* when status is not OK */
    int64_t took_ns;    /* real time */
};
typedef void http_answer_fn(void *context, const struct http_answer *answer);

struct http_client *http_client_new(struct loop *loop);
void http_client_free(
    struct http_client *client); /* calls under way are dropped without an answer */
DEFINE_AUTO(struct http_client, http_client_free)

/* Starts a call; fn is called exactly once, later, from the loop. */
void http_client_start(struct http_client *client, const struct http_call *call, http_answer_fn *fn,
                       void *context);

/* For command-line tools: one call that waits. The caller frees *ret_body. */
MUST_CHECK enum status http_call_wait(const struct http_call *call, int *ret_code, char **ret_body,
                                      size_t *ret_bytes, struct error *reterr);

#endif
