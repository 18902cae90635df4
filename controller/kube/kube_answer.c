/* Codes and Status objects of the API server, as one closed set of meanings. */
#include "controller/kube/kube_answer.h"

#include <assert.h>
#include <string.h>

enum { RETRY_AFTER_S_MAX = 3600, MESSAGE_BYTES_MAX = 1000 };

/* Codes that mean one thing whatever the body says. */
static const struct {
    int code;
    enum kube_result result;
} CODES[] = {
    {401, KUBE_DENIED},   {403, KUBE_DENIED},  {404, KUBE_NOT_FOUND}, {408, KUBE_UNKNOWN},
    {409, KUBE_CONFLICT}, {410, KUBE_EXPIRED}, {429, KUBE_BUSY},      {503, KUBE_BUSY},
};

static enum kube_result result_of_code(int code)
{
    for (size_t i = 0; i < ARRAY_LEN(CODES); i++)
        if (CODES[i].code == code)
            return CODES[i].result;
    return code / 100 == 2 ? KUBE_OK : code / 100 == 4 ? KUBE_REFUSED : KUBE_UNKNOWN;
}

static const struct json *details_of(const struct json *body)
{
    return json_get(body, "details");
}

static const struct json *budget_cause(const struct json *body)
{
    const struct json *cause = json_first(json_get(details_of(body), "causes"));
    while (cause != NULL && strcmp(json_get_string(cause, "reason", ""), "DisruptionBudget") != 0)
        cause = json_next(cause);
    return cause;
}

/* What only the body tells apart. */
static enum kube_result result_of_body(enum kube_result result, int code, const struct json *body,
                                       enum kube_patch patch)
{
    const char *reason = json_get_string(body, "reason", "");
    if (result == KUBE_OK && strcmp(json_get_string(body, "status", ""), "Failure") == 0)
        return KUBE_UNKNOWN;
    if (result == KUBE_CONFLICT && strcmp(reason, "AlreadyExists") == 0)
        return KUBE_EXISTS;
    if (result == KUBE_BUSY && budget_cause(body) != NULL)
        return KUBE_BLOCKED;
    /* A failed `test` has neither the object's name nor causes; an invalid object has both. */
    if (code == 422 && patch == KUBE_JSON_PATCH && json_get(details_of(body), "causes") == NULL)
        return KUBE_CONFLICT;
    return result;
}

static void write_message(struct text *message, const struct http_answer *http,
                          const struct json *body)
{
    const char *said = json_get_string(body, "message", NULL);
    const struct json *cause = budget_cause(body);
    if (http->code == 401)
        text_add(message, "the API server does not accept these credentials (401)");
    else if (said != NULL)
        text_add(message, said);
    else
        text_addf(message, "HTTP %d", http->code);
    if (cause != NULL)
        text_addf(message, " %s", json_get_string(cause, "message", ""));
    if (message->length > MESSAGE_BYTES_MAX) {
        message->length = MESSAGE_BYTES_MAX;
        /* Not in the middle of a character. */
        while (((unsigned char)message->bytes[message->length] & 0xc0) == 0x80)
            message->length--;
        message->bytes[message->length] = '\0';
    }
    for (size_t i = 0; i < message->length; i++)
        if ((unsigned char)message->bytes[i] < 0x20)
            message->bytes[i] = ' ';
}

static int64_t retry_after_ns(int64_t said_s)
{
    int64_t wait_s = said_s < 1 ? 1 : said_s > RETRY_AFTER_S_MAX ? RETRY_AFTER_S_MAX : said_s;
    return wait_s * 1000000000;
}

static void read_http(const struct http_answer *http, enum kube_patch patch, bool is_stream,
                      struct kube_meaning *meaning)
{
    struct kube_answer *answer = &meaning->answer;
    answer->code = http->code;
    answer->result = result_of_code(http->code);
    if (is_stream && answer->result == KUBE_OK) {
        text_add(&meaning->message, "the server ended the stream");
        return;
    }
    struct error error;
    bool is_json = json_parse(http->body, &meaning->root, &error) == OK &&
                   json_kind(meaning->root) == JSON_OBJECT;
    if (!is_json && answer->result == KUBE_OK) {
        answer->result = KUBE_UNKNOWN;
        text_addf(&meaning->message, "HTTP %d whose body is not a JSON object", http->code);
        return;
    }
    answer->body = is_json ? meaning->root : NULL;
    answer->result = result_of_body(answer->result, http->code, answer->body, patch);
    /* A kind that is not served answers with a line of text, or a Status that names no object. */
    answer->no_such_kind = answer->result == KUBE_NOT_FOUND &&
                           json_get(details_of(answer->body), "name") == NULL;
    if (answer->result == KUBE_BUSY)
        answer->retry_after_ns = retry_after_ns(http->retry_after_s);
    write_message(&meaning->message, http, answer->body);
}

void kube_answer_read(const struct http_answer *http, enum kube_patch patch, bool is_stream,
                      struct kube_meaning *ret_meaning)
{
    *ret_meaning = (struct kube_meaning){
        .answer = {.bytes = http->body, .took_ns = http->took_ns},
    };
    if (http->status == OK) {
        read_http(http, patch, is_stream, ret_meaning);
    } else {
        ret_meaning->answer.result = http->status == ERR_UNREACHABLE ? KUBE_UNREACHABLE
                                                                     : KUBE_UNKNOWN;
        text_add(&ret_meaning->message, http->reason);
    }
    ret_meaning->answer.message = ret_meaning->message.bytes;
}

void kube_answer_done(struct kube_meaning *meaning)
{
    json_free(meaning->root);
    text_done(&meaning->message);
    *meaning = (struct kube_meaning){0};
}
