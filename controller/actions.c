/* From durable intents to the actuator and back. */
#include "controller/actions.h"

#include <string.h>
#include <sys/queue.h>

struct call {
    struct actions *actions;
    char operation_id[OPERATION_ID_BYTES];
    enum effect_kind asked;
    LIST_ENTRY(call) entry;
};

struct actions {
    struct pipeline_ports ports;
    struct captures *captures;
    actions_outcome_fn *fn;
    void *context;
    LIST_HEAD(, call) calls;
};

struct actions *actions_new(const struct pipeline_ports *ports, struct captures *captures,
                            actions_outcome_fn *fn, void *context)
{
    struct actions *actions = xcalloc(1, sizeof *actions);
    actions->ports = *ports;
    actions->captures = captures;
    actions->fn = fn;
    actions->context = context;
    return actions;
}

void actions_free(struct actions *actions)
{
    if (actions == NULL)
        return;
    while (!LIST_EMPTY(&actions->calls)) {
        struct call *call = LIST_FIRST(&actions->calls);
        LIST_REMOVE(call, entry);
        xfree(call);
    }
    xfree(actions);
}

static struct call *call_new(struct actions *actions, const struct effect *effect)
{
    struct call *call = xcalloc(1, sizeof *call);
    call->actions = actions;
    call->asked = effect->kind;
    text_copy(call->operation_id, sizeof call->operation_id, effect->action.operation_id);
    LIST_INSERT_HEAD(&actions->calls, call, entry);
    return call;
}

static void call_done(void *context, const struct action_result *result)
{
    struct call *call = context;
    struct actions *actions = call->actions;
    LIST_REMOVE(call, entry);
    actions->fn(actions->context, call->operation_id, call->asked, result);
    xfree(call);
}

static void answer(struct actions *actions, const struct effect *effect, enum outcome outcome,
                   const char *reason)
{
    struct action_result result = {.outcome = outcome, .poll = POLL_DONE, .reason = reason};
    actions->fn(actions->context, effect->action.operation_id, effect->kind, &result);
}

static void capture(struct actions *actions, const struct effect *effect, int64_t now_ns)
{
    const struct action *action = &effect->action;
    AUTO(json_free) struct json *params = NULL;
    if (action->params_json != NULL)
        ignore_status(
            json_parse(view_of(action->params_json), &params, NULL)); /* ours; defaults serve */
    int64_t around_ns = json_get_int(params, "around_ns", now_ns);
    captures_plan(actions->captures, action->incident_ref, action->job != NULL ? action->job : "",
                  around_ns - json_get_int(params, "before_ns", CAPTURE_BEFORE_NS),
                  around_ns + json_get_int(params, "after_ns", CAPTURE_AFTER_NS));
    answer(actions, effect, OUTCOME_SUCCEEDED, "the window is kept once its end has come");
}

void actions_run(struct actions *actions, const struct effect *effect, bool may_start,
                 int64_t now_ns)
{
    const struct action *action = &effect->action;
    if (effect->kind == EFFECT_START && !may_start) {
        answer(actions, effect, OUTCOME_CANCELLED, "the intent was taken back before the start");
    } else if (action->verb == VERB_NOTIFY) {
        actions->ports.notify(actions->ports.self, action->incident_ref, action->params_json);
        answer(actions, effect, OUTCOME_SUCCEEDED, "told");
    } else if (action->verb == VERB_CAPTURE) {
        capture(actions, effect, now_ns);
    } else if (actions->ports.actuator == NULL) {
        answer(actions, effect, OUTCOME_REFUSED, "no actuator is configured (actuator.kind)");
    } else {
        struct actuator *actuator = actions->ports.actuator;
        struct call *call = call_new(actions, effect);
        if (effect->kind == EFFECT_POLL)
            actuator->poll(actuator->self, action, call_done, call);
        else
            actuator->start(actuator->self, action, call_done, call);
    }
}
