/* Calls to the rehearsal cluster and what their answers mean. */
#include "remediation/actuators/rehearsal.h"

#include "controller/sys/clock.h"
#include "remediation/actuators/action_call.h"
#include "remediation/actuators/world_json.h"

#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

enum { CALL_TIMEOUT_MS = 5000 };
static const int64_t ASK_AGAIN_NS = INT64_C(2000000000); /* pipeline time */

struct rehearsal {
    struct actuator port;
    struct loop *loop;
    struct http_client *client;
    char *url;
    LIST_HEAD(, call) calls;
};

enum call_kind { CALL_START = 0, CALL_POLL, CALL_DESCRIBE };

struct call {
    struct rehearsal *owner;
    LIST_ENTRY(call) entry;
    enum call_kind kind;
    char operation_id[OPERATION_ID_BYTES];
    int64_t limit_ns;         /* pipeline time: after it a running operation is unknown */
    struct loop_timer *timer; /* of the next question */
    action_done_fn *done;
    world_done_fn *described;
    void *context;
};

static struct call *call_new(struct rehearsal *owner, enum call_kind kind, void *context)
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
    xfree(call);
}

static void finish(struct call *call, const struct action_result *result)
{
    action_done_fn *done = call->done;
    void *context = call->context;
    call_free(call);
    done(context, result);
}

static void add_path(struct text *url, const char *base, const char *operation_id)
{
    text_addf(url, "%s/v1/operations/", base);
    text_add_percent(url, operation_id);
}

/* --- what an answer means
 * --------------------------------------------------------------------------- */

static void unknown(struct action_result *result, const char *reason)
{
    result->outcome = OUTCOME_UNKNOWN;
    result->poll = POLL_UNREACHABLE;
    result->reason = reason;
}

/* False: the operation is still running. */
static bool read_operation(const struct json *root, struct action_result *result)
{
    const char *state = json_get_string(root, "state", "");
    const char *outcome = json_get_string(root, "outcome", "");
    result->reason = json_get_string(root, "reason", "");
    if (strcmp(state, "running") == 0) {
        result->poll = POLL_RUNNING;
        result->outcome = OUTCOME_UNKNOWN;
        return false;
    }
    result->poll = POLL_DONE;
    if (strcmp(state, "done") != 0 || !outcome_parse(outcome, &result->outcome))
        unknown(result, "the cluster's answer names no outcome that we know");
    return true;
}

/* True: *result is final. root lives as long as the caller's; reasons point into it. */
static bool judge(const struct call *call, const struct http_answer *answer,
                  const struct json *root, struct action_result *result)
{
    if (answer->status == ERR_UNREACHABLE) {
        *result = (struct action_result){OUTCOME_TRANSIENT, POLL_UNREACHABLE, answer->reason, NULL};
        return true;
    }
    if (answer->status != OK) {
        unknown(result, answer->reason != NULL ? answer->reason : "no answer");
        return true;
    }
    if (call->kind == CALL_POLL && answer->code == 404) {
        *result = (struct action_result){OUTCOME_UNKNOWN, POLL_ABSENT,
                                         "the cluster knows no such operation", NULL};
        return true;
    }
    bool refused = answer->code >= 400 && answer->code < 500 && answer->code != 404 &&
                   answer->code != 408 && answer->code != 429;
    if (refused) {
        *result = (struct action_result){
            OUTCOME_REFUSED, POLL_DONE,
            json_get_string(root, "error", "the cluster refused the request"), NULL};
        return true;
    }
    if (answer->code != 200) {
        unknown(result, json_get_string(root, "error", "the cluster answered with an error"));
        return true;
    }
    if (root == NULL) {
        unknown(result, "the cluster's answer is not JSON");
        return true;
    }
    return read_operation(root, result);
}

static void ask(struct call *call);

static void ask_again(void *context)
{
    ask(context);
}

static void wait_for_end(struct call *call)
{
    if (call->timer == NULL)
        call->timer = loop_timer_new(call->owner->loop, ask_again, call);
    action_wait(call->timer, ASK_AGAIN_NS);
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct call *call = context;
    struct action_result result = {.outcome = OUTCOME_UNKNOWN, .poll = POLL_UNREACHABLE};
    AUTO(json_free) struct json *root = NULL;
    AUTO_TEXT response = {0};
    text_add_bytes(&response, answer->body.bytes != NULL ? answer->body.bytes : "",
                   answer->body.length);
    if (answer->status == OK &&
        json_parse((struct view){response.bytes, response.length}, &root, NULL) != OK)
        root = NULL;
    bool ended = judge(call, answer, root, &result);
    if (!ended && call->kind == CALL_START && clock_now_ns() < call->limit_ns) {
        wait_for_end(call);
        return;
    }
    if (!ended && call->kind == CALL_START)
        result.reason = "the cluster has not ended it in time";
    result.response = answer->status == OK ? response.bytes : NULL;
    finish(call, &result);
}

/* Reads the operation: poll, and what start does while it is running. */
static void ask(struct call *call)
{
    AUTO_TEXT url = {0};
    add_path(&url, call->owner->url, call->operation_id);
    struct http_call http = {.method = "GET", .url = url.bytes, .timeout_ms = CALL_TIMEOUT_MS};
    http_client_start(call->owner->client, &http, on_answer, call);
}

/* --- the port
 * ------------------------------------------------------------------------------------------ */

static void write_action(const struct action *action, struct text *body)
{
    struct json_writer writer = json_writer(body);
    json_open_object(&writer);
    action_put(action, &writer);
    if (action->params_json != NULL) {
        json_add_key(&writer, "params");
        json_add_raw(&writer, view_of(action->params_json));
    }
    json_close(&writer);
}

static void start(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct call *call = call_new(self, CALL_START, context);
    AUTO_TEXT url = {0};
    AUTO_TEXT body = {0};
    call->done = done;
    call->limit_ns = clock_now_ns() + action_time_allowed_ns(action);
    text_copy(call->operation_id, sizeof call->operation_id, action->operation_id);
    add_path(&url, call->owner->url, action->operation_id);
    write_action(action, &body);
    struct http_call http = {.method = "PUT",
                             .url = url.bytes,
                             .body = {body.bytes, body.length},
                             .timeout_ms = CALL_TIMEOUT_MS};
    http_client_start(call->owner->client, &http, on_answer, call);
}

static void poll(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct call *call = call_new(self, CALL_POLL, context);
    call->done = done;
    text_copy(call->operation_id, sizeof call->operation_id, action->operation_id);
    ask(call);
}

static void on_world(void *context, const struct http_answer *answer)
{
    struct call *call = context;
    world_done_fn *described = call->described;
    void *target = call->context;
    AUTO(json_free) struct json *root = NULL;
    struct error error = {0};
    call_free(call);
    if (answer->status != OK)
        error_set(&error, answer->status, "%s",
                  answer->reason != NULL ? answer->reason : "no answer");
    else if (answer->code != 200)
        error_set(&error, ERR_AGAIN, "the cluster answered HTTP %d", answer->code);
    else
        ignore_status(json_parse(answer->body, &root, &error)); /* error.status says it */
    world_json_tell(root, error.status != OK ? error.message : NULL, described, target);
}

/* The rehearsal cluster knows its one job by itself. */
static void describe(void *self, const struct world_question *question, world_done_fn *done,
                     void *context)
{
    struct call *call = call_new(self, CALL_DESCRIBE, context);
    AUTO_TEXT url = {0};
    (void)question;
    call->described = done;
    text_addf(&url, "%s/v1/world", call->owner->url);
    struct http_call http = {.method = "GET", .url = url.bytes, .timeout_ms = CALL_TIMEOUT_MS};
    http_client_start(call->owner->client, &http, on_world, call);
}

static void release(void *self)
{
    struct rehearsal *rehearsal = self;
    while (!LIST_EMPTY(&rehearsal->calls))
        call_free(LIST_FIRST(&rehearsal->calls));
    xfree(rehearsal->url);
    xfree(rehearsal);
}

struct actuator *rehearsal_new(struct loop *loop, struct http_client *client, const char *url)
{
    struct rehearsal *rehearsal = xcalloc(1, sizeof *rehearsal);
    size_t length = strlen(url);
    rehearsal->loop = loop;
    rehearsal->client = client;
    rehearsal->url = xstrndup(url, length > 0 && url[length - 1] == '/' ? length - 1 : length);
    rehearsal->port = (struct actuator){.name = "rehearsal",
                                        .changes_world = true,
                                        .start = start,
                                        .poll = poll,
                                        .describe = describe,
                                        .free = release,
                                        .self = rehearsal};
    return &rehearsal->port;
}
