/* Signed requests to a service of the site, and what its answers mean. */
#include "remediation/actuators/webhook.h"

#include "controller/io/digest.h"
#include "controller/sys/clock.h"
#include "controller/sys/file.h"
#include "remediation/actuators/action_call.h"
#include "remediation/actuators/world_json.h"

#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

enum {
    CALL_TIMEOUT_MS = 10000,
    SECRET_BYTES_MAX = 4096,
    HEADER_BYTES = 160,
    DOUBLINGS_MOST = 6,
    ANSWER_BYTES_MAX = 64 * 1024 /* of an operation: it goes into the record */
};
static const int64_t NS_PER_S = INT64_C(1000000000);
static const int64_t ASK_AGAIN_NS = INT64_C(5000000000);  /* pipeline time, as all but the last */
static const int64_t SEND_AGAIN_NS = INT64_C(1000000000); /* doubled with each try, to 64 s */

struct webhook {
    struct actuator port;
    struct loop *loop;
    struct http_client *client;
    char *url, *secret_file, *ca_file, *certificate_file, *key_file;
    LIST_HEAD(, call) calls;
};

enum call_kind { CALL_START = 0, CALL_POLL, CALL_DESCRIBE };

struct call {
    struct webhook *owner;
    LIST_ENTRY(call) entry;
    enum call_kind kind;
    char operation_id[OPERATION_ID_BYTES];
    struct text body;    /* of the POST, kept for the next try */
    int64_t limit_ns;    /* pipeline time */
    int tries;           /* of what goes on now: sending, or asking */
    bool is_asking;      /* it is known there: only GET from here on */
    bool was_conflict;   /* known there by a 409, not by an answer of its own */
    bool may_have_acted; /* some try may have reached it */
    struct error unsent; /* why the last request could not even be made */
    struct loop_timer *timer;
    action_done_fn *done;
    world_done_fn *described;
    void *context;
};

/* ---- calls ---- */

static struct call *call_new(struct webhook *owner, enum call_kind kind, void *context)
{
    struct call *call = xcalloc(1, sizeof *call);
    call->owner = owner;
    call->kind = kind;
    call->context = context;
    LIST_INSERT_HEAD(&owner->calls, call, entry);
    return call;
}

static void call_free(struct call *call)
{
    LIST_REMOVE(call, entry);
    if (call->timer != NULL)
        loop_timer_free(call->timer);
    text_done(&call->body);
    xfree(call);
}

static void finish(struct call *call, const struct action_result *result)
{
    action_done_fn *done = call->done;
    void *context = call->context;
    call_free(call);
    done(context, result);
}

/* ---- requests ---- */

static enum status read_secret(const char *path, struct text *secret, struct error *reterr)
{
    TRY(file_read(path, SECRET_BYTES_MAX, secret, reterr));
    while (secret->length > 0 && strchr(" \t\r\n", secret->bytes[secret->length - 1]) != NULL)
        secret->length--;
    if (secret->length == 0)
        return error_set(reterr, ERR_INVALID, "the secret file '%s' holds no secret", path);
    return OK;
}

static enum status add_signature(const char *secret_file, const char *timestamp, struct view body,
                                 char *header, size_t bytes, struct error *reterr)
{
    AUTO_TEXT secret = {0};
    AUTO_TEXT signed_text = {0};
    char hex[DIGEST_HEX_BYTES];
    TRY(read_secret(secret_file, &secret, reterr));
    text_addf(&signed_text, "%s.", timestamp);
    text_add_bytes(&signed_text, body.length > 0 ? body.bytes : "", body.length);
    TRY(digest_hmac_sha256((struct view){secret.bytes, secret.length},
                           (struct view){signed_text.bytes, signed_text.length}, hex, reterr));
    snprintf(header, bytes, "Broom-Signature: v1=%s", hex);
    return OK;
}

static enum status send(struct call *call, const char *method, const char *path, struct view body,
                        http_answer_fn *fn, struct error *reterr)
{
    const struct webhook *owner = call->owner;
    AUTO_TEXT url = {0};
    char timestamp[32], time_header[HEADER_BYTES], operation[HEADER_BYTES], signature[HEADER_BYTES];
    const char *headers[4] = {time_header, operation};
    snprintf(timestamp, sizeof timestamp, "%lld", (long long)(clock_read().wall_ns / NS_PER_S));
    snprintf(time_header, sizeof time_header, "Broom-Timestamp: %s", timestamp);
    snprintf(operation, sizeof operation, "Broom-Operation: %s",
             call->operation_id[0] != '\0' ? call->operation_id : "-");
    if (owner->secret_file[0] != '\0') {
        TRY(add_signature(owner->secret_file, timestamp, body, signature, sizeof signature,
                          reterr));
        headers[2] = signature;
    }
    text_add(&url, owner->url);
    text_add(&url, path);
    struct http_call http = {.method = method,
                             .url = url.bytes,
                             .body = body,
                             .headers = headers,
                             .ca_file = owner->ca_file,
                             .certificate_file = owner->certificate_file,
                             .key_file = owner->key_file,
                             .timeout_ms = CALL_TIMEOUT_MS,
                             .answer_bytes_max = call->kind == CALL_DESCRIBE ? 0
                                                                             : ANSWER_BYTES_MAX};
    http_client_start(owner->client, &http, fn, call);
    return OK;
}

/* ---- what an answer means ---- */

enum next { NEXT_FINISH = 0, NEXT_SEND_AGAIN, NEXT_ASK };

static struct action_result unknown(const char *reason)
{
    return (struct action_result){
        .outcome = OUTCOME_UNKNOWN, .poll = POLL_UNREACHABLE, .reason = reason};
}

static struct action_result refused(const char *reason)
{
    return (struct action_result){.outcome = OUTCOME_REFUSED, .poll = POLL_DONE, .reason = reason};
}

/* What is known there, or may be, is not undone by what becomes of another request about it. */
static bool may_be_there(const struct call *call)
{
    return call->kind == CALL_POLL || call->is_asking || call->may_have_acted;
}

/* It did not work this time: what that means if there is no other. */
static struct action_result failed(const struct call *call, const char *reason)
{
    struct action_result result = unknown(reason);
    if (!may_be_there(call))
        result.outcome = OUTCOME_TRANSIENT;
    return result;
}

static enum next read_state(const struct json *root, struct action_result *result)
{
    const char *state = json_get_string(root, "state", "");
    *result = unknown(json_get_string(root, "reason", ""));
    if (strcmp(state, "running") == 0) {
        result->poll = POLL_RUNNING;
        return NEXT_ASK;
    }
    result->poll = POLL_DONE;
    if (strcmp(state, "done") != 0 ||
        !outcome_parse(json_get_string(root, "outcome", ""), &result->outcome))
        *result = unknown("the webhook's answer names no state and outcome that we know");
    return NEXT_FINISH;
}

/* 404 means three things: the poll's answer, an id that it said to know and does not, an URL that
 * is wrong. */
static enum next judge_missing(const struct call *call, struct action_result *result)
{
    if (call->kind == CALL_POLL) {
        *result = unknown("the webhook knows no such operation");
        result->poll = POLL_ABSENT;
    } else if (call->is_asking && !call->was_conflict) {
        *result = unknown("the webhook took the operation and no longer knows it");
    } else if (call->may_have_acted && !call->is_asking) {
        *result = unknown("the webhook answered 404, and may have taken the operation before");
    } else {
        *result = refused(call->is_asking ? "the webhook answered 409 and knows no such operation"
                                          : "the webhook answered 404: is the URL right?");
    }
    return NEXT_FINISH;
}

static enum next judge(struct call *call, const struct http_answer *answer, const struct json *root,
                       struct action_result *result)
{
    const char *said = json_get_string(root, "error", json_get_string(root, "reason", NULL));
    if (answer->status != OK) {
        call->may_have_acted |= answer->status != ERR_UNREACHABLE;
        *result = failed(call, answer->reason != NULL ? answer->reason : "no answer");
        return NEXT_SEND_AGAIN;
    }
    if (answer->code == 408 || answer->code == 429 || answer->code >= 500) {
        call->may_have_acted |= answer->code != 429;
        *result = failed(call, said != NULL ? said : "the webhook answered with an error");
        return NEXT_SEND_AGAIN;
    }
    if (answer->code == 404)
        return judge_missing(call, result);
    if (answer->code == 409 && call->kind == CALL_START && !call->is_asking) {
        call->was_conflict = true;
        *result = unknown("the webhook knows this operation already");
        return NEXT_ASK;
    }
    if (answer->code >= 400) {
        const char *why = said != NULL ? said : "the webhook refused the request";
        *result = may_be_there(call) ? unknown(why) : refused(why);
        return call->is_asking ? NEXT_SEND_AGAIN : NEXT_FINISH;
    }
    if (answer->code < 200 || answer->code > 202) {
        *result = unknown("the webhook answered neither yes nor no");
        return NEXT_FINISH;
    }
    return read_state(root, result);
}

/* ---- going on ---- */

static void on_answer(void *context, const struct http_answer *answer);

/* What could not be sent is judged like a service that cannot be reached. */
static void go_on(void *context)
{
    struct call *call = context;
    if (call->unsent.status != OK) {
        struct error error = call->unsent;
        call->unsent.status = OK;
        on_answer(call, &(struct http_answer){.status = ERR_UNREACHABLE, .reason = error.message});
        return;
    }
    AUTO_TEXT path = {0};
    bool asks = call->is_asking || call->kind == CALL_POLL;
    struct view body = {call->body.bytes, call->body.length};
    text_add(&path, "");
    if (asks) {
        text_add(&path, "/");
        text_add_percent(&path, call->operation_id);
    }
    if (send(call, asks ? "GET" : "POST", path.bytes, asks ? view_of(NULL) : body, on_answer,
             &call->unsent) != OK)
        loop_timer_set(call->timer, 0); /* answers come later, from the loop */
}

/* Spread by the operation's own id, so that those of one rack do not come back all at once. */
static int64_t wait_of(const struct call *call, enum next next)
{
    unsigned spread = 0;
    if (next == NEXT_ASK)
        return ASK_AGAIN_NS;
    for (const char *c = call->operation_id; *c != '\0'; c++)
        spread = spread * 31 + (unsigned char)*c;
    int doublings = call->tries < DOUBLINGS_MOST ? call->tries : DOUBLINGS_MOST;
    int64_t wait_ns = SEND_AGAIN_NS << doublings;
    return wait_ns + wait_ns * (int64_t)(spread % 100) / 400;
}

static bool may_wait(const struct call *call, int64_t wait_ns)
{
    return call->kind == CALL_START && clock_now_ns() + wait_ns < call->limit_ns;
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct call *call = context;
    struct action_result result;
    AUTO(json_free) struct json *root = NULL;
    AUTO_TEXT response = {0};
    text_add_bytes(&response, answer->body.bytes != NULL ? answer->body.bytes : "",
                   answer->body.length);
    if (answer->status == OK &&
        json_parse((struct view){response.bytes, response.length}, &root, NULL) != OK)
        root = NULL;
    enum next next = judge(call, answer, root, &result);
    int64_t wait_ns = wait_of(call, next);
    if (next != NEXT_FINISH && may_wait(call, wait_ns)) {
        call->tries = next == NEXT_SEND_AGAIN ? call->tries + 1 : 0;
        call->is_asking |= next == NEXT_ASK;
        action_wait(call->timer, wait_ns);
        return;
    }
    if (next == NEXT_ASK && call->kind == CALL_START)
        result.reason = "the webhook has not ended it in time";
    result.response = answer->status == OK ? response.bytes : NULL;
    finish(call, &result);
}

/* ---- the port ---- */

static void put_raw(struct json_writer *writer, const char *key, const char *json)
{
    json_add_key(writer, key);
    json_add_raw(writer, view_of(json != NULL ? json : "null"));
}

static void write_action(const struct action *action, struct text *body)
{
    struct json_writer writer = json_writer(body);
    json_open_object(&writer);
    json_put_string(&writer, "operation_id", action->operation_id);
    action_put(action, &writer);
    put_raw(&writer, "params", action->params_json);
    put_raw(&writer, "workload", action->workload_json);
    json_close(&writer);
}

static struct call *operation_new(struct webhook *owner, enum call_kind kind,
                                  const struct action *action, action_done_fn *done, void *context)
{
    struct call *call = call_new(owner, kind, context);
    call->done = done;
    call->timer = loop_timer_new(owner->loop, go_on, call);
    text_copy(call->operation_id, sizeof call->operation_id, action->operation_id);
    return call;
}

static void start(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct call *call = operation_new(self, CALL_START, action, done, context);
    call->limit_ns = clock_now_ns() + action_time_allowed_ns(action);
    write_action(action, &call->body);
    go_on(call);
}

static void poll(void *self, const struct action *action, action_done_fn *done, void *context)
{
    go_on(operation_new(self, CALL_POLL, action, done, context));
}

static void on_world(void *context, const struct http_answer *answer)
{
    struct call *call = context;
    world_done_fn *described = call->described;
    void *target = call->context;
    AUTO(json_free) struct json *root = NULL;
    struct error error = {0};
    if (answer->status != OK)
        error_set(&error, answer->status, "%s",
                  answer->reason != NULL ? answer->reason : "no answer");
    else if (answer->code == 404)
        error_set(&error, ERR_NOT_FOUND, "the webhook does not tell of the world");
    else if (answer->code != 200)
        error_set(&error, ERR_AGAIN, "the webhook answered HTTP %d", answer->code);
    else
        ignore_status(json_parse(answer->body, &root, &error)); /* error.status says it */
    call_free(call);
    world_json_tell(root, error.status != OK ? error.message : NULL, described, target);
}

static void no_world(void *context)
{
    struct call *call = context;
    struct error error = call->unsent;
    on_world(call, &(struct http_answer){.status = ERR_UNREACHABLE, .reason = error.message});
}

static void describe(void *self, const struct world_question *question, world_done_fn *done,
                     void *context)
{
    (void)question; /* it tells what it likes to tell */
    struct call *call = call_new(self, CALL_DESCRIBE, context);
    call->described = done;
    call->timer = loop_timer_new(call->owner->loop, no_world, call);
    if (send(call, "GET", "/world", view_of(NULL), on_world, &call->unsent) != OK)
        loop_timer_set(call->timer, 0);
}

static void release(void *self)
{
    struct webhook *webhook = self;
    while (!LIST_EMPTY(&webhook->calls))
        call_free(LIST_FIRST(&webhook->calls));
    xfree(webhook->url);
    xfree(webhook->secret_file);
    xfree(webhook->ca_file);
    xfree(webhook->certificate_file);
    xfree(webhook->key_file);
    xfree(webhook);
}

static char *copy_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? xstrdup(text) : NULL;
}

struct actuator *webhook_new(struct loop *loop, struct http_client *client,
                             const struct webhook_options *options)
{
    struct webhook *webhook = xcalloc(1, sizeof *webhook);
    size_t length = strlen(options->url);
    webhook->loop = loop;
    webhook->client = client;
    webhook->url = xstrndup(options->url,
                            length > 0 && options->url[length - 1] == '/' ? length - 1 : length);
    webhook->secret_file = xstrdup(options->secret_file != NULL ? options->secret_file : "");
    webhook->ca_file = copy_or_null(options->ca_file);
    webhook->certificate_file = copy_or_null(options->certificate_file);
    webhook->key_file = copy_or_null(options->key_file);
    webhook->port = (struct actuator){.name = "webhook",
                                      .changes_world = true,
                                      .start = start,
                                      .poll = poll,
                                      .describe = describe,
                                      .free = release,
                                      .self = webhook};
    return &webhook->port;
}
