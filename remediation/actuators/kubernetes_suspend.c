/* Every step is decided from a fresh read of the object, so that a lost answer, a conflict and a
 * crash all go on the same way.
 */
#include "remediation/actuators/kubernetes_suspend.h"

#include "remediation/actuators/kubernetes_workload_call.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int64_t FOLLOW_NS = INT64_C(500000000);

static bool is_ours(const struct work_call *call)
{
    return strcmp(call->item.operation, call->operation_id) == 0;
}

static bool is_another(const struct work_call *call)
{
    return call->ref.uid[0] != '\0' && strcmp(call->item.uid, call->ref.uid) != 0;
}

/* --- what still runs --- */

static size_t count_pods(const struct work_call *call, const struct pod **ret_first)
{
    size_t count = 0, left = 0;
    AUTO_FREE const struct pod **pods = workloads_pods_of(call->owner, &call->item, &count);
    *ret_first = NULL;
    for (size_t i = 0; i < count; i++) {
        if (pods[i]->has_ended && pods[i]->deleted_ns == 0)
            continue; /* kept for its logs */
        left++;
        if (*ret_first == NULL || strcmp(pods[i]->name, (*ret_first)->name) < 0)
            *ret_first = pods[i];
    }
    return left;
}

/* True when nothing of it runs any more, and its controller has seen that it is suspended. */
static bool has_stopped(struct work_call *call)
{
    const char *reason = NULL;
    const struct pod *first = NULL;
    if (!workloads_pods_are_synced(call->owner, &reason) ||
        !workloads_kind_is_synced(call->owner, call->ref.kind, &reason)) {
        snprintf(call->waits_for, sizeof call->waits_for, "the pods to be read: %.200s",
                 reason != NULL ? reason : "not yet");
        return false;
    }
    size_t left = count_pods(call, &first);
    call->had_pods = call->had_pods || left > 0;
    if (left > 0)
        snprintf(call->waits_for, sizeof call->waits_for,
                 "%zu pods to end, of them %.100s on node %.80s", left, first->name,
                 first->node[0] != '\0' ? first->node : "(none)");
    else
        text_copy(call->waits_for, sizeof call->waits_for,
                  "its controller to act on the suspension");
    return left == 0 && (call->had_pods || call->item.suspension_seen);
}

/* --- patches --- */

static void put_suspend(struct json_writer *writer, const struct workload_kind *kind, bool suspend)
{
    bool nested = kind->suspend_in[0] != '\0';
    json_add_key(writer, "spec");
    json_open_object(writer);
    if (nested) {
        json_add_key(writer, kind->suspend_in);
        json_open_object(writer);
    }
    json_put_bool(writer, "suspend", suspend);
    if (nested)
        json_close(writer);
    json_close(writer);
}

static void write_patch(const struct work_call *call, bool suspend, struct text *body)
{
    struct json_writer writer = json_writer(body);
    char restarts[24];
    snprintf(restarts, sizeof restarts, "%" PRId64, call->item.restarts_ours + 1);
    json_open_object(&writer);
    json_add_key(&writer, "metadata");
    json_open_object(&writer);
    json_put_string(&writer, "resourceVersion", call->item.version);
    json_add_key(&writer, "annotations");
    json_open_object(&writer);
    json_put_string(&writer, suspend ? WORKLOAD_OPERATION : WORKLOAD_RESUMED, call->operation_id);
    if (!suspend)
        json_put_string(&writer, WORKLOAD_RESTARTS, restarts);
    json_close(&writer);
    json_close(&writer);
    put_suspend(&writer, call->ref.kind, suspend);
    json_close(&writer);
}

static void decide(struct work_call *call);

static void read_to_decide(struct work_call *call)
{
    work_call_read(call, decide);
}

/* A lost answer and a conflict are both found out by reading. */
static void on_patched(struct work_call *call, const struct kube_answer *answer)
{
    switch (answer->result) {
    case KUBE_OK:
        call->has_begun = true;
        work_call_later(call, 0, read_to_decide);
        return;
    case KUBE_UNKNOWN:
        call->may_have_begun = true;
        work_call_decide_again(call, decide);
        return;
    case KUBE_CONFLICT:
        work_call_decide_again(call, decide);
        return;
    case KUBE_BUSY:
    case KUBE_UNREACHABLE:
        if (!call->has_begun && !call->may_have_begun)
            break;
        snprintf(call->waits_for, sizeof call->waits_for, "the API server: %.200s",
                 answer->message);
        work_call_later(call, FOLLOW_NS, read_to_decide);
        return;
    case KUBE_NOT_FOUND:
    case KUBE_EXISTS:
    case KUBE_EXPIRED:
    case KUBE_BLOCKED:
    case KUBE_DENIED:
    case KUBE_REFUSED:
    case KUBE_RESULT_COUNT:
        break;
    }
    if (call->has_begun && answer->result != KUBE_NOT_FOUND)
        work_call_answer(call, OUTCOME_REFUSED,
                         "%s %s/%s is suspended by this restart and cannot be resumed: %s",
                         call->ref.kind->kind, call->ref.namespace_name, call->ref.name,
                         answer->message);
    else
        work_call_fail(call, answer);
}

static void patch(struct work_call *call, bool suspend)
{
    AUTO_TEXT body = {0};
    write_patch(call, suspend, &body);
    work_call_patch(call, &body, on_patched);
}

/* --- deciding --- */

/* Somebody (a queue that admits jobs) resumed it before its pods were ended. */
static bool old_pods_live(const struct work_call *call)
{
    size_t count = 0, old = 0;
    const char *reason = NULL;
    if (call->pods_seen_before == 0 || !workloads_pods_are_synced(call->owner, &reason))
        return false;
    AUTO_FREE const struct pod **pods = workloads_pods_of(call->owner, &call->item, &count);
    for (size_t i = 0; i < count; i++)
        old += pods[i]->seen <= call->pods_seen_before && !pods[i]->has_ended &&
               pods[i]->deleted_ns == 0;
    return old > 0;
}

static void answer_resumed(struct work_call *call)
{
    const struct workload_item *item = &call->item;
    bool by_us = strcmp(item->resumed, call->operation_id) == 0;
    work_call_end(call, OUTCOME_SUCCEEDED, POLL_DONE, "%s %s/%s was suspended and resumed%s%s%s",
                  item->kind->kind, item->namespace_name, item->name,
                  by_us ? "" : ", resumed by somebody else", item->budget[0] != '\0' ? "; " : "",
                  item->budget);
}

static void begin(struct work_call *call)
{
    const struct workload_item *item = &call->item;
    call->pods_seen_before = call->owner->pods.seen;
    if (item->is_suspended)
        work_call_answer(call, OUTCOME_REFUSED,
                         "%s %s/%s is suspended by somebody: not ours to resume", item->kind->kind,
                         item->namespace_name, item->name);
    else if (workload_item_is_final(item))
        work_call_answer(call, OUTCOME_REFUSED, "%s %s/%s is %s, no restart leads out of that",
                         item->kind->kind, item->namespace_name, item->name, item->said);
    else
        patch(call, true);
}

static void decide(struct work_call *call)
{
    const struct workload_item *item = &call->item;
    if (is_another(call)) {
        work_call_answer(call, OUTCOME_SUPERSEDED, "%s %s/%s was made anew by somebody",
                         item->kind->kind, item->namespace_name, item->name);
    } else if (!is_ours(call) && call->has_begun) {
        work_call_answer(call, OUTCOME_SUPERSEDED, "operation %s took %s %s/%s over",
                         item->operation, item->kind->kind, item->namespace_name, item->name);
    } else if (!is_ours(call)) {
        begin(call);
    } else if (!item->is_suspended && strcmp(item->resumed, call->operation_id) != 0 &&
               old_pods_live(call)) {
        work_call_answer(call, OUTCOME_REFUSED,
                         "%s %s/%s was resumed by somebody before its pods had ended: what admits "
                         "it may have to restart it",
                         item->kind->kind, item->namespace_name, item->name);
    } else if (!item->is_suspended) {
        answer_resumed(call);
    } else {
        call->has_begun = true;
        if (has_stopped(call))
            patch(call, false);
        else
            work_call_later(call, FOLLOW_NS, read_to_decide);
    }
}

void suspend_restart(struct work_call *call)
{
    decide(call);
}

void suspend_poll(struct work_call *call)
{
    const struct workload_item *item = &call->item;
    if (is_another(call))
        work_call_end(call, OUTCOME_SUPERSEDED, POLL_DONE, "%s %s/%s was made anew by somebody",
                      item->kind->kind, item->namespace_name, item->name);
    else if (!is_ours(call))
        work_call_tell(call, POLL_ABSENT, "the workload carries no mark of this operation");
    else if (!item->is_suspended)
        answer_resumed(call);
    else if (!has_stopped(call))
        work_call_tell(call, POLL_RUNNING, "suspended; waits for %s", call->waits_for);
    else
        work_call_tell(call, POLL_ABSENT, "suspended and stopped, not resumed yet: to be finished");
}
