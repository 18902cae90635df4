/* The pod's uid is on the job before it is evicted. It is taken when that pod is being deleted or
 * gone; where the pods from before are remembered, all those of the partition must be.
 */
#include "remediation/actuators/kubernetes_partition.h"

#include "controller/sys/clock.h"
#include "remediation/actuators/kubernetes_volcano.h"
#include "remediation/actuators/kubernetes_workload_call.h"

#include <stdio.h>
#include <string.h>

static const int64_t FOLLOW_NS = INT64_C(500000000);
static const int64_t WITHOUT_EFFECT_NS = INT64_C(15000000000);

static bool is_live(const struct pod *pod)
{
    return pod->deleted_ns == 0 && !pod->has_ended;
}

static bool shall_leave(const struct work_call *call, const struct pod *pod)
{
    for (size_t i = 0; !pod->has_ended && i < call->node_count; i++)
        if (strcmp(call->nodes[i], pod->node) == 0)
            return true;
    return false;
}

static bool is_same_partition(const struct pod *a, const struct pod *b)
{
    return a->outer_index == b->outer_index && strcmp(a->group, b->group) == 0;
}

static bool has_policy(const struct workload_item *item, const struct pod *pod)
{
    for (size_t i = 0; i < item->group_count; i++)
        if (strcmp(item->groups[i].name, pod->group) == 0)
            return item->groups[i].by_partition;
    return false;
}

/* One of the pods that shall leave, a live one where there is one; NULL when they are not all of
 * one partition that restarts by itself. */
static const struct pod *find_leaving(const struct work_call *call, const struct pod *const *pods,
                                      size_t count)
{
    const struct pod *found = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct pod *pod = pods[i];
        if (!shall_leave(call, pod))
            continue;
        if (pod->outer_index < 0 || !has_policy(&call->item, pod) ||
            (found != NULL && !is_same_partition(found, pod)))
            return NULL;
        bool better = found == NULL || (is_live(pod) && !is_live(found)) ||
                      (is_live(pod) == is_live(found) && strcmp(pod->name, found->name) < 0);
        if (better)
            found = pod;
    }
    return found;
}

static const struct pod *find_evicted(const struct work_call *call, const struct pod *const *pods,
                                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(pods[i]->uid, call->evicted) == 0)
            return pods[i];
    return NULL;
}

/* Pods of the partition that lived before and still do; after a crash none are remembered. */
static size_t count_old(const struct work_call *call, const struct pod *const *pods, size_t count)
{
    size_t old = 0;
    for (size_t i = 0; i < count; i++)
        old += call->task != NULL && is_live(pods[i]) && pods[i]->seen <= call->pods_seen_before &&
               pods[i]->outer_index == call->partition && strcmp(pods[i]->group, call->task) == 0;
    return old;
}

/* --- evicting and following --- */

static void follow(struct work_call *call);
static void evict(struct work_call *call);

static void on_evicted(struct work_call *call, const struct kube_answer *answer)
{
    switch (answer->result) {
    case KUBE_OK:
    case KUBE_NOT_FOUND:
    case KUBE_CONFLICT: /* another pod of that name by now */
    case KUBE_UNKNOWN:
        work_call_later(call, FOLLOW_NS, follow);
        return;
    case KUBE_BLOCKED:
        snprintf(call->waits_for, sizeof call->waits_for, "a disruption budget: %.200s",
                 answer->message);
        work_call_later(call, 10 * FOLLOW_NS, evict);
        return;
    case KUBE_EXISTS:
    case KUBE_EXPIRED:
    case KUBE_BUSY:
    case KUBE_DENIED:
    case KUBE_REFUSED:
    case KUBE_UNREACHABLE:
    case KUBE_RESULT_COUNT:
        break;
    }
    work_call_fail(call, answer);
}

static void evict(struct work_call *call)
{
    size_t count = 0;
    AUTO_FREE const struct pod **pods = workloads_pods_of(call->owner, &call->item, &count);
    const struct pod *pod = find_evicted(call, pods, count);
    if (pod != NULL && is_live(pod))
        work_call_evict(call, pod, on_evicted);
    else
        follow(call);
}

static void follow(struct work_call *call)
{
    size_t count = 0;
    AUTO_FREE const struct pod **pods = workloads_pods_of(call->owner, &call->item, &count);
    const struct pod *pod = find_evicted(call, pods, count);
    size_t old = count_old(call, pods, count);
    bool is_over = clock_now_ns() - call->issued_ns >= WITHOUT_EFFECT_NS;
    bool is_evicted = pod == NULL || !is_live(pod);
    if (is_evicted && old == 0) {
        work_call_answer(call, OUTCOME_SUCCEEDED,
                         "one pod of the partition was evicted, the others follow by the policy "
                         "RestartPartition of Job %s/%s",
                         call->ref.namespace_name, call->ref.name);
    } else if (is_evicted && is_over) {
        work_call_answer(call, OUTCOME_REFUSED,
                         "one pod of the partition was evicted and %zu others stay as they are: "
                         "the job controller does not follow the policy RestartPartition",
                         old);
    } else {
        snprintf(call->waits_for, sizeof call->waits_for,
                 "%zu pods of the partition to be taken down by the job controller", old);
        work_call_later(call, FOLLOW_NS, is_evicted ? follow : evict);
    }
}

static void on_noted(struct work_call *call, const struct kube_answer *answer)
{
    if (answer->result == KUBE_OK)
        evict(call);
    else if (answer->result == KUBE_CONFLICT)
        work_call_decide_again(call, volcano_restart);
    else
        work_call_fail(call, answer);
}

bool partition_restart(struct work_call *call)
{
    size_t count = 0;
    const char *reason = NULL;
    if (call->node_count == 0 || !workloads_pods_are_synced(call->owner, &reason))
        return false;
    AUTO_FREE const struct pod **pods = workloads_pods_of(call->owner, &call->item, &count);
    const struct pod *pod = find_leaving(call, pods, count);
    if (pod == NULL)
        return false;
    if (!is_live(pod)) {
        work_call_answer(call, OUTCOME_SUPERSEDED,
                         "partition %d of task %s is restarting already, by the job's policy",
                         pod->outer_index, pod->group);
        return true;
    }
    text_copy(call->evicted, sizeof call->evicted, pod->uid);
    call->partition = pod->outer_index;
    xfree(call->task);
    call->task = xstrdup(pod->group);
    volcano_note(call, on_noted);
    return true;
}

void partition_go_on(struct work_call *call)
{
    evict(call);
}

void partition_poll(struct work_call *call)
{
    size_t count = 0;
    const char *reason = NULL;
    AUTO_FREE const struct pod **pods = workloads_pods_of(call->owner, &call->item, &count);
    const struct pod *pod = find_evicted(call, pods, count);
    if (!workloads_pods_are_synced(call->owner, &reason))
        work_call_tell(call, POLL_UNREACHABLE, "the pods are not known: %s",
                       reason != NULL ? reason : "not yet");
    else if (pod != NULL && is_live(pod))
        work_call_tell(call, POLL_ABSENT, "pod %s is still to be evicted", pod->name);
    else
        work_call_end(call, OUTCOME_SUCCEEDED, POLL_DONE,
                      "the pod whose eviction restarts its partition is gone");
}
