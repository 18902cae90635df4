/* The operation is written on the workflow first; then each pod that shall leave is evicted by uid.
 * Once none of them is left there, it is done.
 */
#include "remediation/actuators/kubernetes_argo.h"

#include "remediation/actuators/kubernetes_workload_call.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int64_t FOLLOW_NS = INT64_C(1000000000);

/* --- reading --- */

static const struct json *pod_template(const struct json *template)
{
    const struct json *container = json_get(template, "container");
    return container != NULL ? container : json_get(template, "script");
}

static int32_t template_gpus(const struct json *template)
{
    const struct json *resources = json_get(pod_template(template), "resources");
    return workload_read_count(json_get(json_get(resources, "limits"), "nvidia.com/gpu"));
}

/* A sentence when an evicted pod of the template would end the workflow. */
static bool read_strategy(const struct json *template, const struct json *defaults,
                          struct workload_item *item)
{
    const struct json *own = json_get(template, "retryStrategy");
    const struct json *strategy = own != NULL ? own : json_get(defaults, "retryStrategy");
    const char *name = json_get_string(template, "name", "");
    const char *policy = json_get_string(
        strategy, "retryPolicy", json_get(strategy, "expression") != NULL ? "Always" : "OnFailure");
    bool retries = strcmp(policy, "Always") == 0 || strcmp(policy, "OnError") == 0;
    AUTO_TEXT text = {0};
    if (strategy != NULL && retries) {
        const struct json *limit = json_get(strategy, "limit");
        if (limit != NULL)
            item->restarts_max = workload_read_count(limit);
        return true;
    }
    if (strategy == NULL)
        text_addf(&text,
                  "template '%s' has no retryStrategy: an evicted pod would end the workflow",
                  name);
    else
        text_addf(&text,
                  "template '%s' retries %s only, and an evicted pod is an error: set retryPolicy "
                  "Always",
                  name, policy);
    item->cannot_restart = text_take(&text);
    return false;
}

/* Those that ask for GPUs matter, all where none does. */
static void read_templates(const struct json *spec, struct workload_item *item)
{
    const struct json *templates = json_get(spec, "templates");
    const struct json *defaults = json_get(spec, "templateDefaults");
    bool with_gpus = false, any = false;
    for (const struct json *one = json_first(templates); one != NULL; one = json_next(one))
        with_gpus = with_gpus || template_gpus(one) > 0;
    for (const struct json *one = json_first(templates); one != NULL; one = json_next(one)) {
        if (pod_template(one) == NULL || (with_gpus && template_gpus(one) == 0))
            continue;
        any = true;
        if (!read_strategy(one, defaults, item))
            return;
    }
    if (!any)
        item->cannot_restart = xstrdup(
            "none of the workflow's templates is known to retry its pod");
}

/* Retries so far: of the node that has had most. Unknown where the nodes are kept elsewhere. */
static int64_t count_retries(const struct json *status)
{
    int64_t most = 0;
    const struct json *nodes = json_get(status, "nodes");
    if (nodes == NULL)
        return json_get(status, "compressedNodes") != NULL ||
                       json_get(status, "offloadNodeStatusVersion") != NULL
                   ? -1
                   : 0;
    for (const struct json *node = json_first(nodes); node != NULL; node = json_next(node)) {
        int64_t tries = (int64_t)json_size(json_get(node, "children"));
        if (strcmp(json_get_string(node, "type", ""), "Retry") == 0 && tries - 1 > most)
            most = tries - 1;
    }
    return most;
}

void argo_read(const struct json *object, struct workload_item *item)
{
    const struct json *status = json_get(object, "status");
    const struct json *stored = json_get(status, "storedWorkflowTemplateSpec");
    const char *phase = json_get_string(status, "phase", "Pending");
    text_copy(item->said, sizeof item->said, phase);
    if (strcmp(phase, "Running") == 0)
        item->phase = WORKLOAD_RUNNING;
    else if (strcmp(phase, "Succeeded") == 0)
        item->phase = WORKLOAD_FINISHED;
    else if (strcmp(phase, "Failed") == 0 || strcmp(phase, "Error") == 0)
        item->phase = WORKLOAD_FAILED;
    item->restarts = count_retries(status);
    read_templates(stored != NULL ? stored : json_get(object, "spec"), item);
}

/* --- which pods shall leave --- */

static bool shall_leave(const struct work_call *call, const struct pod *pod)
{
    if (pod->has_ended || pod->node[0] == '\0')
        return false;
    for (size_t i = 0; i < call->node_count; i++)
        if (strcmp(call->nodes[i], pod->node) == 0)
            return true;
    return call->node_count == 0; /* nobody leaves: all start again */
}

/* The first by name that is not being deleted after the one that was asked last; and how many are
 * still there. */
static const struct pod *find_next(const struct work_call *call, size_t *ret_left)
{
    size_t count = 0;
    const struct pod *next = NULL;
    AUTO_FREE const struct pod **pods = workloads_pods_of(call->owner, &call->item, &count);
    *ret_left = 0;
    for (size_t i = 0; i < count; i++) {
        const struct pod *pod = pods[i];
        bool was_there = call->pods_seen_before == 0 || pod->seen <= call->pods_seen_before;
        if (!shall_leave(call, pod) || (call->node_count == 0 && !was_there))
            continue;
        (*ret_left)++;
        bool asked = call->pod_name != NULL && strcmp(pod->name, call->pod_name) <= 0;
        if (pod->deleted_ns == 0 && !asked && (next == NULL || strcmp(pod->name, next->name) < 0))
            next = pod;
    }
    return next;
}

/* --- evicting --- */

static void evict_next(struct work_call *call);

static void on_evicted(struct work_call *call, const struct kube_answer *answer)
{
    switch (answer->result) {
    case KUBE_OK:
    case KUBE_NOT_FOUND:
    case KUBE_CONFLICT: /* another pod of that name by now */
    case KUBE_UNKNOWN:  /* seen by the pods that are left */
        evict_next(call);
        return;
    case KUBE_BLOCKED:
        snprintf(call->waits_for, sizeof call->waits_for, "a disruption budget: %.200s",
                 answer->message);
        xfree(call->pod_name);
        call->pod_name = NULL;
        work_call_later(call, 5 * FOLLOW_NS, evict_next);
        return;
    case KUBE_BUSY:
    case KUBE_UNREACHABLE: /* others may be gone already: it cannot be said that nothing happened */
        snprintf(call->waits_for, sizeof call->waits_for, "the API server: %.200s",
                 answer->message);
        xfree(call->pod_name);
        call->pod_name = NULL;
        work_call_later(call, FOLLOW_NS, evict_next);
        return;
    case KUBE_EXISTS:
    case KUBE_EXPIRED:
    case KUBE_DENIED:
    case KUBE_REFUSED:
    case KUBE_RESULT_COUNT:
        break;
    }
    work_call_fail(call, answer);
}

static void evict(struct work_call *call, const struct pod *pod)
{
    xfree(call->pod_name);
    call->pod_name = xstrdup(pod->name);
    work_call_evict(call, pod, on_evicted);
}

static void evict_next(struct work_call *call)
{
    size_t left = 0;
    const char *reason = NULL;
    if (!workloads_pods_are_synced(call->owner, &reason)) {
        snprintf(call->waits_for, sizeof call->waits_for, "the pods to be read: %.200s",
                 reason != NULL ? reason : "not yet");
        work_call_later(call, FOLLOW_NS, evict_next);
        return;
    }
    const struct pod *pod = find_next(call, &left);
    if (pod != NULL) {
        evict(call, pod);
    } else if (left > 0) {
        snprintf(call->waits_for, sizeof call->waits_for, "%zu evicted pods to end", left);
        work_call_later(call, FOLLOW_NS, evict_next);
    } else {
        work_call_answer(call, OUTCOME_SUCCEEDED,
                         "the pods of Workflow %s/%s that were to leave are gone; their template "
                         "retries them",
                         call->ref.namespace_name, call->ref.name);
    }
}

/* Where all pods are to start again and those from before are not remembered, old ones and new ones
 * look alike: to evict them all could restart it twice. */
static bool cannot_tell(const struct work_call *call)
{
    return call->node_count == 0 && strcmp(call->item.operation, call->operation_id) == 0;
}

static const char CANNOT_TELL[] = "which of its pods were there before this restart is not known";

/* --- the restart --- */

static void on_noted(struct work_call *call, const struct kube_answer *answer)
{
    if (answer->result != KUBE_OK) {
        work_call_fail(call, answer);
        return;
    }
    call->pods_seen_before = call->owner->pods.seen;
    evict_next(call);
}

static void note(struct work_call *call)
{
    work_call_annotate(call, WORKLOAD_OPERATION, call->operation_id, on_noted);
}

void argo_restart(struct work_call *call)
{
    const struct workload_item *item = &call->item;
    if (call->ref.uid[0] != '\0' && strcmp(item->uid, call->ref.uid) != 0)
        work_call_answer(call, OUTCOME_SUPERSEDED, "Workflow %s/%s was made anew by somebody",
                         item->namespace_name, item->name);
    else if (workload_item_is_final(item))
        work_call_answer(call, OUTCOME_REFUSED,
                         "Workflow %s/%s is %s, no restart leads out of that", item->namespace_name,
                         item->name, item->said);
    else if (item->cannot_restart[0] != '\0')
        work_call_answer(call, OUTCOME_REFUSED, "%s", item->cannot_restart);
    else if (cannot_tell(call))
        work_call_answer(call, OUTCOME_UNKNOWN, "%s", CANNOT_TELL);
    else
        note(call);
}

void argo_poll(struct work_call *call)
{
    size_t left = 0;
    const char *reason = NULL;
    if (strcmp(call->item.operation, call->operation_id) != 0) {
        work_call_tell(call, POLL_ABSENT, "the workload carries no mark of this operation");
    } else if (cannot_tell(call)) {
        work_call_tell(call, POLL_UNREACHABLE, "%s", CANNOT_TELL);
    } else if (!workloads_pods_are_synced(call->owner, &reason)) {
        work_call_tell(call, POLL_UNREACHABLE, "the pods are not known: %s",
                       reason != NULL ? reason : "not yet");
    } else {
        const struct pod *pod = find_next(call, &left);
        if (pod != NULL)
            work_call_tell(call, POLL_ABSENT, "pod %s is still to be evicted", pod->name);
        else if (left > 0)
            work_call_tell(call, POLL_RUNNING, "%zu evicted pods are to end", left);
        else
            work_call_end(call, OUTCOME_SUCCEEDED, POLL_DONE,
                          "no pod of it is left where it was to leave");
    }
}
