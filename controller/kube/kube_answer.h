/* What an answer of the API server means. Pure: bytes and codes in, a meaning out. */
#ifndef BROOM_KUBE_ANSWER_H
#define BROOM_KUBE_ANSWER_H

#include "controller/kube/kube_client.h"

struct kube_meaning {
    struct kube_answer answer; /* lends from root and message */
    struct json *root;
    struct text message;
};

/* patch: of the call that was answered. A stream's answer has no body when it is 2xx. */
void kube_answer_read(const struct http_answer *http, enum kube_patch patch, bool is_stream,
                      struct kube_meaning *ret_meaning);
void kube_answer_done(struct kube_meaning *meaning);

#endif
