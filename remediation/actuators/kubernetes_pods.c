/* Level by level: each look finds the pods that are still there, asks for each that is due, and
 * ends when none is left. The watch says what is there; an answer alone is not believed to be the
 * end of a pod.
 */
#include "remediation/actuators/kubernetes_pods.h"

#include "controller/sys/clock.h"
#include "remediation/actuators/kubernetes_budgets.h"
#include "remediation/actuators/kubernetes_operation.h"

#include <string.h>

static const int64_t LOOK_EVERY_NS = INT64_C(500000000); /* real time */
static const int64_t ASK_AGAIN_NS = INT64_C(5000000000); /* one pod, real time */
static const int64_t LIMIT_NS = INT64_C(300000000000);   /* where the action names none */
static const int64_t MARGIN_NS = INT64_C(10000000000);
enum { NAMED_MAX = 3 };

struct pod_actions {
    struct kube_client *client;
    struct loop *loop;
    const struct node_cache *nodes;
    const struct workloads *workloads;
    struct operations operations;
};

/* A pod that was asked to go. */
struct leaving {
    struct leaving *next;
    struct pod_operation *operation;
    char *namespace_name, *name, *uid;
    int64_t ask_ns; /* real time from which it is asked again */
    bool is_asked;  /* the call is under way */
    bool is_blocked;
    bool is_gone; /* the server says so; the watch follows */
    char why[200];
};

struct pod_operation {
    struct operation base;
    struct pod_actions *owner;
    char *job_uid;
    int64_t limit_ns; /* pipeline time */
    struct loop_timer *timer;
    struct leaving *first;
    struct budget_search *search;
    size_t left, spared, evicted, under_way;
    bool is_denied;
    struct text named; /* pods that are still there, the first few */
};

static void operation_release(struct operation *base)
{
    struct pod_operation *operation = (struct pod_operation *)(void *)base;
    while (operation->first != NULL) {
        struct leaving *leaving = operation->first;
        operation->first = leaving->next;
        xfree(leaving->namespace_name);
        xfree(leaving->name);
        xfree(leaving->uid);
        xfree(leaving);
    }
    if (operation->timer != NULL)
        loop_timer_free(operation->timer);
    budget_search_free(operation->search);
    text_done(&operation->named);
    xfree(operation->job_uid);
    xfree(operation);
}

/* ---- which pods ---- */

static bool is_of_job(const struct pod_operation *operation, const struct workload_pod *pod)
{
    return operation->job_uid[0] != '\0' && strcmp(pod->job_uid, operation->job_uid) == 0;
}

static bool must_leave(const struct pod_operation *operation, const struct workload_pod *pod)
{
    if (pod->is_daemon || pod->is_mirror)
        return false;
    if (operation->base.action.verb == VERB_DRAIN)
        return !pod->has_ended && !is_of_job(operation, pod);
    return is_of_job(operation, pod) && !node_cache_is_ready(operation->owner->nodes, pod->node);
}

/* The kubelet of a node that is Ready ends its pods itself, whoever says that the node is off. */
static bool is_spared(const struct pod_operation *operation, const struct workload_pod *pod)
{
    return operation->base.action.verb == VERB_FORCE_DELETE && is_of_job(operation, pod) &&
           !pod->is_daemon && !pod->is_mirror && pod->is_terminating &&
           node_cache_is_ready(operation->owner->nodes, pod->node);
}

/* ---- asking ---- */

static void take_answer(struct leaving *leaving, const struct kube_answer *answer, int64_t now_ns)
{
    struct pod_operation *operation = leaving->operation;
    leaving->is_blocked = answer->result == KUBE_BLOCKED;
    text_copy(leaving->why, sizeof leaving->why, answer->message);
    leaving->ask_ns = now_ns + (answer->result == KUBE_BUSY && answer->retry_after_ns > ASK_AGAIN_NS
                                    ? answer->retry_after_ns
                                    : ASK_AGAIN_NS);
    switch (answer->result) {
    case KUBE_OK:
        operation->evicted++;
        leaving->ask_ns =
            INT64_MAX; /* it goes when its time is over; nothing is gained by asking */
        leaving->is_gone = operation->base.action.verb == VERB_FORCE_DELETE;
        leaving->why[0] = '\0';
        break;
    case KUBE_NOT_FOUND:
        leaving->is_gone = true;
        leaving->ask_ns = INT64_MAX;
        break;
    case KUBE_DENIED:
    case KUBE_REFUSED:
        operation->is_denied = true;
        text_clear(&operation->base.reason);
        text_addf(&operation->base.reason, "pod %s/%s: %s", leaving->namespace_name, leaving->name,
                  answer->message);
        break;
    case KUBE_CONFLICT: /* the uid, most likely: the watch tells of another pod of that name */
    case KUBE_EXISTS:
    case KUBE_EXPIRED:
    case KUBE_BLOCKED:
    case KUBE_BUSY:
    case KUBE_UNREACHABLE:
    case KUBE_UNKNOWN:
    case KUBE_RESULT_COUNT:
        break;
    }
}

static void on_asked(void *context, const struct kube_answer *answer)
{
    struct leaving *leaving = context;
    struct pod_operation *operation = leaving->operation;
    leaving->is_asked = false;
    operation->under_way--;
    take_answer(leaving, answer, clock_read().monotonic_ns);
    if (operation->under_way == 0)
        loop_timer_set(operation->timer, 0);
}

static void write_options(struct json_writer *w, const struct leaving *leaving, bool is_forced)
{
    if (is_forced)
        json_put_int(w, "gracePeriodSeconds", 0);
    json_add_key(w, "preconditions");
    json_open_object(w);
    json_put_string(w, "uid", leaving->uid);
    json_close(w);
}

static void ask(struct leaving *leaving)
{
    struct pod_operation *operation = leaving->operation;
    bool is_forced = operation->base.action.verb == VERB_FORCE_DELETE;
    AUTO_TEXT path = {0};
    AUTO_TEXT body = {0};
    struct json_writer w = json_writer(&body);
    text_add(&path, "/api/v1/namespaces");
    kube_path_add(&path, leaving->namespace_name);
    text_add(&path, "/pods");
    kube_path_add(&path, leaving->name);
    text_add(&path, is_forced ? "" : "/eviction");
    json_open_object(&w);
    json_put_string(&w, "apiVersion", is_forced ? "v1" : "policy/v1");
    json_put_string(&w, "kind", is_forced ? "DeleteOptions" : "Eviction");
    if (is_forced) {
        write_options(&w, leaving, true);
    } else {
        json_add_key(&w, "metadata");
        json_open_object(&w);
        json_put_string(&w, "name", leaving->name);
        json_put_string(&w, "namespace", leaving->namespace_name);
        json_close(&w);
        json_add_key(&w, "deleteOptions");
        json_open_object(&w);
        write_options(&w, leaving, false);
        json_close(&w);
    }
    json_close(&w);
    struct kube_call call = {.method = is_forced ? "DELETE" : "POST",
                             .path = path.bytes,
                             .body = {body.bytes, body.length},
                             .priority = KUBE_ACT};
    leaving->is_asked = true;
    operation->under_way++;
    kube_call_start(operation->owner->client, &call, on_asked, leaving);
}

static struct leaving *find_leaving(struct pod_operation *operation, const struct workload_pod *pod)
{
    for (struct leaving *each = operation->first; each != NULL; each = each->next)
        if (strcmp(each->uid, pod->uid) == 0)
            return each;
    struct leaving *leaving = xcalloc(1, sizeof *leaving);
    leaving->operation = operation;
    leaving->namespace_name = xstrdup(pod->namespace_name);
    leaving->name = xstrdup(pod->name);
    leaving->uid = xstrdup(pod->uid);
    leaving->next = operation->first;
    operation->first = leaving;
    return leaving;
}

static void name_pod(struct pod_operation *operation, const struct workload_pod *pod,
                     const struct leaving *leaving)
{
    struct text *named = &operation->named;
    if (operation->left > NAMED_MAX)
        return;
    text_addf(named, "%spod %s/%s on %s", named->length > 0 ? "; " : "", pod->namespace_name,
              pod->name, pod->node);
    if (leaving->is_blocked) {
        const char *budget = budget_search_name(operation->search, pod->namespace_name, pod->name);
        text_addf(named, " is kept by disruption budget %s", budget != NULL ? budget : "(unknown)");
    } else if (pod->is_terminating && !node_cache_is_ready(operation->owner->nodes, pod->node)) {
        text_add(named, " is being deleted, and its node is not Ready: it never ends by itself");
    } else if (pod->is_terminating) {
        text_add(named, " is still ending");
    } else if (leaving->why[0] != '\0') {
        text_addf(named, ": %s", leaving->why);
    }
}

static void look_at_pod(void *context, const struct workload_pod *pod)
{
    struct pod_operation *operation = context;
    operation->spared += is_spared(operation, pod) ? 1 : 0;
    if (!must_leave(operation, pod))
        return;
    struct leaving *leaving = find_leaving(operation, pod);
    if (leaving->is_gone)
        return;
    operation->left++;
    name_pod(operation, pod, leaving);
    bool may_ask = operation->base.action.verb == VERB_FORCE_DELETE || !pod->is_terminating;
    if (may_ask && !leaving->is_asked && !operation->is_denied &&
        clock_read().monotonic_ns >= leaving->ask_ns)
        ask(leaving);
    if (leaving->is_blocked)
        budget_search_want(operation->search, pod->namespace_name, pod->name);
}

/* ---- one look ---- */

static void say_left(const struct pod_operation *operation, const char *what, struct text *reason)
{
    text_addf(reason, "%s; %zu left: %s", what, operation->left,
              operation->named.length > 0 ? operation->named.bytes : "");
    if (operation->left > NAMED_MAX)
        text_addf(reason, "; and %zu more", operation->left - NAMED_MAX);
}

static void look(void *context)
{
    struct pod_operation *operation = context;
    const struct names *nodes = &operation->base.nodes;
    bool is_drain = operation->base.action.verb == VERB_DRAIN;
    const char *reason = "";
    bool is_seen = workloads_are_synced(operation->owner->workloads, &reason);
    operation->left = operation->spared = 0;
    text_clear(&operation->named);
    for (size_t i = 0; is_seen && i < nodes->count; i++)
        workloads_pods_on(operation->owner->workloads, nodes->items[i], look_at_pod, operation);
    if (operation->under_way > 0 || budget_search_is_busy(operation->search))
        return; /* the last answer looks again */
    if (operation->is_denied) {
        operation_end(&operation->base, OUTCOME_REFUSED, POLL_DONE);
    } else if (is_seen && operation->left == 0 && operation->spared > 0 &&
               operation->evicted == 0) {
        text_addf(&operation->base.reason, "%zu pod%s left to end: the node is Ready",
                  operation->spared, operation->spared == 1 ? " is" : "s are");
        operation_end(&operation->base, OUTCOME_TRANSIENT, POLL_DONE);
    } else if (is_seen && operation->left == 0) {
        text_addf(&operation->base.reason, "%zu pod%s %s", operation->evicted,
                  operation->evicted == 1 ? "" : "s", is_drain ? "evicted" : "deleted by force");
        operation_end(&operation->base, OUTCOME_SUCCEEDED, POLL_DONE);
    } else if (clock_now_ns() >= operation->limit_ns) {
        if (is_seen)
            say_left(operation, "time is over", &operation->base.reason);
        else
            text_add(&operation->base.reason, reason);
        operation_end(&operation->base, OUTCOME_TRANSIENT, POLL_DONE);
    } else {
        loop_timer_set(operation->timer, LOOK_EVERY_NS);
    }
}

static void look_again(void *context)
{
    struct pod_operation *operation = context;
    loop_timer_set(operation->timer, 0);
}

/* ---- the module ---- */

/* Whoever asks gives up at the time-out: what is in the way is to be told before that. */
static int64_t own_limit(const struct pod_operation *operation)
{
    int64_t limit_ns = json_get_int(operation->base.params, "timeout_ns", LIMIT_NS);
    return limit_ns - (limit_ns / 8 < MARGIN_NS ? limit_ns / 8 : MARGIN_NS);
}

static struct pod_operation *operation_new(struct pod_actions *actions, const struct action *action,
                                           action_done_fn *done, void *context)
{
    struct pod_operation *operation = xcalloc(1, sizeof *operation);
    operation_begin(&actions->operations, &operation->base, action, done, context,
                    operation_release);
    operation->owner = actions;
    operation->job_uid = xstrdup(action->workload_json != NULL
                                     ? workloads_uid(actions->workloads, action->workload_json)
                                     : "");
    operation->limit_ns = clock_now_ns() + own_limit(operation);
    operation->search = budget_search_new(actions->client, look_again, operation);
    return operation;
}

void pod_actions_start(struct pod_actions *actions, const struct action *action,
                       action_done_fn *done, void *context)
{
    struct pod_operation *operation = operation_new(actions, action, done, context);
    /* Which pods are the job's own has to be known, for either. */
    if (operation->job_uid[0] == '\0' && (action->job != NULL || action->verb != VERB_DRAIN)) {
        text_add(&operation->base.reason, "the job's workload is not known to the cluster");
        operation_end(&operation->base, OUTCOME_TRANSIENT, POLL_DONE);
        return;
    }
    operation->timer = loop_timer_new(actions->loop, look, operation);
    loop_timer_set(operation->timer, 0);
}

static const struct pod_operation *find_start(const struct pod_actions *actions,
                                              const char *operation_id)
{
    const struct operation *each = LIST_FIRST(&actions->operations.all);
    for (; each != NULL; each = LIST_NEXT(each, entry))
        if (!each->is_poll && strcmp(each->action.operation_id, operation_id) == 0)
            return (const struct pod_operation *)(const void *)each;
    return NULL;
}

void pod_actions_poll(struct pod_actions *actions, const struct action *action,
                      action_done_fn *done, void *context)
{
    const char *reason = "";
    const struct pod_operation *running = find_start(actions, action->operation_id);
    if (running != NULL) {
        AUTO_TEXT sentence = {0};
        say_left(running, "under way here", &sentence);
        operation_refuse(&actions->operations, action, OUTCOME_UNKNOWN, POLL_RUNNING,
                         sentence.bytes, done, context);
        return;
    }
    if (!workloads_are_synced(actions->workloads, &reason)) {
        operation_refuse(&actions->operations, action, OUTCOME_UNKNOWN, POLL_UNREACHABLE, reason,
                         done, context);
        return;
    }
    struct pod_operation *operation = operation_new(actions, action, done, context);
    operation->base.is_poll = true;
    operation->is_denied = true; /* nothing is asked for */
    for (size_t i = 0; i < operation->base.nodes.count; i++)
        workloads_pods_on(actions->workloads, operation->base.nodes.items[i], look_at_pod,
                          operation);
    if (operation->left > 0)
        say_left(operation, "not done", &operation->base.reason);
    else
        text_add(&operation->base.reason, "no such pod is left");
    operation_end(&operation->base, operation->left > 0 ? OUTCOME_UNKNOWN : OUTCOME_SUCCEEDED,
                  operation->left > 0 ? POLL_ABSENT : POLL_DONE);
}

struct pod_actions *pod_actions_new(struct kube_client *client, struct loop *loop,
                                    const struct node_cache *nodes,
                                    const struct workloads *workloads)
{
    struct pod_actions *actions = xcalloc(1, sizeof *actions);
    *actions = (struct pod_actions){client, loop, nodes, workloads, {.loop = loop}};
    return actions;
}

void pod_actions_free(struct pod_actions *actions)
{
    if (actions == NULL)
        return;
    operations_drop(&actions->operations);
    xfree(actions);
}
