/* Any bytes as the body of any answer of an API server: one meaning of the closed set, one line of
 * text, and nothing that says "done" unless the code is 2xx and the body a JSON object. The first
 * byte chooses the code, the second the kind of patch.
 */
#include "controller/kube/kube_answer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int CODES[] = {200, 201, 204, 301, 400, 401, 403,
                                404, 409, 410, 422, 429, 500, 503};
    if (size < 2)
        return 0;
    struct http_answer http = {
        .code = CODES[data[0] % ARRAY_LEN(CODES)],
        .body = {(const char *)data + 2, size - 2},
    };
    struct kube_meaning meaning;
    kube_answer_read(&http, (enum kube_patch)(data[1] % 4), false, &meaning);
    const struct kube_answer *answer = &meaning.answer;
    require(answer->result < KUBE_RESULT_COUNT && answer->message != NULL);
    require(strpbrk(answer->message, "\r\n") == NULL);
    require(answer->result != KUBE_OK || (http.code / 100 == 2 && answer->body != NULL));
    require((answer->result == KUBE_BUSY) == (answer->retry_after_ns >= 1000000000));
    kube_answer_done(&meaning);
    return 0;
}
