/* Copies of actions, and their answers by a timer of no time. */
#include "remediation/actuators/kubernetes_operation.h"

#include <assert.h>
#include <string.h>

static char *copy_text(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

static void operation_free(struct operation *operation)
{
    struct action *action = &operation->action;
    LIST_REMOVE(operation, entry);
    if (operation->timer != NULL)
        loop_timer_free(operation->timer);
    xfree(action->incident_ref);
    xfree(action->job);
    xfree(action->workload_json);
    xfree(action->reason);
    xfree(action->params_json);
    names_done(&operation->nodes);
    names_done(&operation->spares);
    json_free(operation->params);
    text_done(&operation->reason);
    text_done(&operation->response);
    if (operation->free != NULL)
        operation->free(operation);
    else
        xfree(operation);
}

static void copy_action(struct operation *operation, const struct action *action)
{
    for (size_t i = 0; i < action->node_count; i++)
        names_add(&operation->nodes, action->nodes[i]);
    for (size_t i = 0; i < action->spare_count; i++)
        names_add(&operation->spares, action->spares[i]);
    operation->action = *action;
    operation->action.incident_ref = xstrdup(action->incident_ref);
    operation->action.job = copy_text(action->job);
    operation->action.workload_json = copy_text(action->workload_json);
    operation->action.reason = xstrdup(action->reason != NULL ? action->reason : "");
    operation->action.params_json = copy_text(action->params_json);
    operation->action.nodes = (const char *const *)operation->nodes.items;
    operation->action.spares = (const char *const *)operation->spares.items;
    if (action->params_json != NULL)
        ignore_status(json_parse(view_of(action->params_json), &operation->params,
                                 NULL)); /* the core's own; defaults serve */
}

void operation_begin(struct operations *list, struct operation *operation,
                     const struct action *action, action_done_fn *done, void *context,
                     void (*free)(struct operation *operation))
{
    *operation = (struct operation){.list = list, .done = done, .context = context, .free = free};
    LIST_INSERT_HEAD(&list->all, operation, entry);
    copy_action(operation, action);
}

/* Whoever is answered may free everything here: the operation goes first. */
static void answer(void *context)
{
    struct operation *operation = context;
    AUTO_TEXT reason = operation->reason;
    AUTO_TEXT response = operation->response;
    struct action_result result = operation->result;
    operation->reason = operation->response = (struct text){0};
    result.reason = reason.length > 0 ? reason.bytes : "";
    result.response = response.length > 0 ? response.bytes : NULL;
    operation_pass(operation, &result);
}

void operation_end(struct operation *operation, enum outcome outcome, enum poll_state poll)
{
    assert(operation->timer == NULL && "answered twice");
    operation->result.outcome = outcome;
    operation->result.poll = poll;
    operation->timer = loop_timer_new(operation->list->loop, answer, operation);
    loop_timer_set(operation->timer, 0);
}

void operation_pass(struct operation *operation, const struct action_result *result)
{
    action_done_fn *done = operation->done;
    void *target = operation->context;
    operation_free(operation);
    done(target, result);
}

void operation_refuse(struct operations *list, const struct action *action, enum outcome outcome,
                      enum poll_state poll, const char *reason, action_done_fn *done, void *context)
{
    struct operation *operation = xcalloc(1, sizeof *operation);
    operation_begin(list, operation, action, done, context, NULL);
    operation->is_poll = true; /* not a start that is under way */
    text_add(&operation->reason, reason);
    operation_end(operation, outcome, poll);
}

bool operations_are_starting(const struct operations *list, const char *operation_id)
{
    const struct operation *each = LIST_FIRST(&list->all);
    for (; each != NULL; each = LIST_NEXT(each, entry))
        if (!each->is_poll && strcmp(each->action.operation_id, operation_id) == 0)
            return true;
    return false;
}

void operations_drop(struct operations *list)
{
    while (!LIST_EMPTY(&list->all))
        operation_free(LIST_FIRST(&list->all));
}

enum outcome operation_outcome_of(enum kube_result result)
{
    switch (result) {
    case KUBE_OK:
        return OUTCOME_SUCCEEDED;
    case KUBE_NOT_FOUND:
        return OUTCOME_SUPERSEDED;
    case KUBE_CONFLICT:
    case KUBE_EXISTS:
    case KUBE_EXPIRED:
    case KUBE_BLOCKED:
    case KUBE_BUSY:
    case KUBE_UNREACHABLE:
        return OUTCOME_TRANSIENT;
    case KUBE_DENIED:
    case KUBE_REFUSED:
        return OUTCOME_REFUSED;
    case KUBE_UNKNOWN:
    case KUBE_RESULT_COUNT:
        break;
    }
    return OUTCOME_UNKNOWN;
}
