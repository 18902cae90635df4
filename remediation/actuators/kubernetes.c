/* The port: which part does what, and the world from all of them. */
#include "remediation/actuators/kubernetes.h"

#include "controller/sys/clock.h"
#include "controller/sys/log.h"
#include "remediation/actuators/kubernetes_events.h"
#include "remediation/actuators/kubernetes_nodes.h"
#include "remediation/actuators/kubernetes_operation.h"
#include "remediation/actuators/kubernetes_pods.h"
#include "remediation/actuators/kubernetes_topology.h"
#include "remediation/actuators/kubernetes_workload.h"

#include <string.h>

enum { PROBE_TIMEOUT_MS = 5000 };
static const int64_t JUST_HEARD_NS = INT64_C(1000000000);
static const int64_t FIRST_READ_NS = INT64_C(10000000000);

struct kubernetes {
    struct actuator port;
    struct loop *loop;
    struct kube_config *config;
    struct kube_client *client;
    struct node_cache *nodes;
    struct topology *topology;
    struct workloads *workloads;
    struct pod_actions *pods;
    struct events *events;
    struct operations starts; /* from start to its answer */
    LIST_HEAD(, description) descriptions;
    bool reads_only, write_labels;
    bool (*may_act)(void *context);
    void *may_act_context;
    int64_t begun_ns; /* real time */
    bool was_read;    /* the last description was known */
    bool is_told;     /* was_read was logged */
};

/* ---- start and poll ---- */

static void on_done(void *context, const struct action_result *result)
{
    struct operation *start = context;
    struct kubernetes *kubernetes = start->owner;
    events_tell(kubernetes->events, &start->action, result);
    operation_pass(start, result);
}

static void note_workload(void *context, const struct workload_pod *pod)
{
    bool *is_busy = context;
    *is_busy = *is_busy || (!pod->has_ended && !pod->is_daemon && pod->job_uid[0] != '\0');
}

/* Trays that a scheduler could take in place of the named spares: free ones with GPUs. */
static void find_free(const struct kubernetes *kubernetes, const struct action *action,
                      struct names *free_nodes)
{
    for (size_t i = 0; i < node_cache_count(kubernetes->nodes); i++) {
        struct world_node node;
        bool is_busy = false;
        node_cache_describe(kubernetes->nodes, i, &node);
        if (!node.ready || node.cordoned || node.spare || node.gpus_allocatable == 0)
            continue;
        for (size_t j = 0; j < action->node_count; j++)
            is_busy = is_busy || strcmp(action->nodes[j], node.name) == 0;
        workloads_pods_on(kubernetes->workloads, node.name, note_workload, &is_busy);
        if (!is_busy)
            names_add(free_nodes, node.name);
    }
}

static void promise(struct kubernetes *kubernetes, struct operation *start)
{
    const struct action *action = &start->action;
    struct names hold = {0};
    char value[64];
    const char *reason = "";
    node_spare_value(action->job != NULL ? action->job : "", value);
    if (!node_cache_is_synced(kubernetes->nodes, &reason) ||
        !workloads_are_synced(kubernetes->workloads, &reason)) {
        operation_refuse(&kubernetes->starts, action, OUTCOME_TRANSIENT, POLL_DONE, reason, on_done,
                         start);
        return;
    }
    if (!workloads_tolerate_spare(kubernetes->workloads, action->workload_json, value, &reason)) {
        /* A workload that is not seen just now may be seen later; what it bears is final. */
        bool is_seen = action->workload_json == NULL ||
                       workloads_uid(kubernetes->workloads, action->workload_json)[0] != '\0';
        AUTO_TEXT sentence = {0};
        text_add(&sentence, reason);
        if (is_seen)
            text_addf(&sentence, "; this job's value of it is %s", value);
        operation_refuse(&kubernetes->starts, action, is_seen ? OUTCOME_REFUSED : OUTCOME_TRANSIENT,
                         POLL_DONE, sentence.bytes, on_done, start);
        return;
    }
    topology_refresh(kubernetes->topology);
    if (json_get_bool(start->params, "hold_others", false))
        find_free(kubernetes, action, &hold);
    nodes_start(kubernetes->nodes, action, (const char *const *)hold.items, hold.count, on_done,
                start);
    names_done(&hold);
}

/* The core begins nothing in mode observe; nor do we, whatever asks. What was taken may be given
 * back. */
static bool is_beginning(const struct action *action)
{
    return action->verb != VERB_UNCORDON && action->verb != VERB_RELEASE_SPARE;
}

static void start(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct kubernetes *kubernetes = self;
    if (kubernetes->reads_only && is_beginning(action)) {
        operation_refuse(&kubernetes->starts, action, OUTCOME_REFUSED, POLL_DONE,
                         "mode observe: nothing is begun", done, context);
        return;
    }
    struct operation *start = xcalloc(1, sizeof *start);
    operation_begin(&kubernetes->starts, start, action, done, context, NULL);
    start->owner = kubernetes;
    events_tell(kubernetes->events, action, NULL);
    switch (action->verb) {
    case VERB_CORDON:
    case VERB_UNCORDON:
    case VERB_RELEASE_SPARE:
        nodes_start(kubernetes->nodes, action, NULL, 0, on_done, start);
        return;
    case VERB_PROMISE_SPARE:
        promise(kubernetes, start);
        return;
    case VERB_RESTART_JOB:
    case VERB_REQUEST_CHECKPOINT:
        workloads_start(kubernetes->workloads, action, on_done, start);
        return;
    case VERB_DRAIN:
    case VERB_FORCE_DELETE:
        pod_actions_start(kubernetes->pods, action, on_done, start);
        return;
    case VERB_NOTIFY:
    case VERB_CAPTURE:
    case VERB_HAND_OVER:
    case VERB_FENCE:
    case VERB_COUNT:
        break;
    }
    operation_refuse(
        &kubernetes->starts, action, OUTCOME_REFUSED, POLL_DONE,
        "Kubernetes can neither fence a node nor hand it over: name a webhook for that", on_done,
        start);
}

static void poll(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct kubernetes *kubernetes = self;
    switch (action->verb) {
    case VERB_CORDON:
    case VERB_UNCORDON:
    case VERB_PROMISE_SPARE:
    case VERB_RELEASE_SPARE:
        nodes_poll(kubernetes->nodes, action, done, context);
        return;
    case VERB_RESTART_JOB:
    case VERB_REQUEST_CHECKPOINT:
        workloads_poll(kubernetes->workloads, action, done, context);
        return;
    case VERB_DRAIN:
    case VERB_FORCE_DELETE:
        pod_actions_poll(kubernetes->pods, action, done, context);
        return;
    case VERB_NOTIFY:
    case VERB_CAPTURE:
    case VERB_HAND_OVER:
    case VERB_FENCE:
    case VERB_COUNT:
        break;
    }
    operation_refuse(&kubernetes->starts, action, OUTCOME_UNKNOWN, POLL_ABSENT,
                     "Kubernetes does not do this", done, context);
}

/* ---- describe ---- */

struct description {
    struct kubernetes *owner;
    LIST_ENTRY(description) entry;
    struct job_question *jobs; /* owned, strings too */
    struct loop_timer *timer;  /* of an answer without a call */
    size_t count;
    world_done_fn *done;
    void *context;
};

static void description_release(struct description *description)
{
    for (size_t i = 0; i < description->count; i++) {
        xfree(description->jobs[i].job);
        xfree(description->jobs[i].workload_json);
    }
    if (description->timer != NULL)
        loop_timer_free(description->timer);
    xfree(description->jobs);
    xfree(description);
}

static void description_free(struct description *description)
{
    LIST_REMOVE(description, entry);
    description_release(description);
}

static struct description *description_new(struct kubernetes *owner,
                                           const struct world_question *question)
{
    struct description *description = xcalloc(1, sizeof *description);
    description->owner = owner;
    description->count = question != NULL ? question->job_count : 0;
    description->jobs = xcalloc(description->count + 1, sizeof *description->jobs);
    for (size_t i = 0; i < description->count; i++) {
        const struct job_question *asked = &question->jobs[i];
        description->jobs[i] = *asked;
        description->jobs[i].job = xstrdup(asked->job);
        description->jobs[i].workload_json = asked->workload_json != NULL
                                                 ? xstrdup(asked->workload_json)
                                                 : NULL;
    }
    LIST_INSERT_HEAD(&owner->descriptions, description, entry);
    return description;
}

/* A taint's value back to the job that it stands for; a value of a job that nobody asked about is
 * told as it is: the spare is not free. */
static const char *job_of_value(const struct description *description, const char *value)
{
    char candidate[64];
    for (size_t i = 0; i < description->count; i++) {
        node_spare_value(description->jobs[i].job, candidate);
        if (strcmp(candidate, value) == 0)
            return description->jobs[i].job;
    }
    return value;
}

static void describe_node(const struct description *description, size_t index,
                          struct world_node *ret_node)
{
    const struct kubernetes *kubernetes = description->owner;
    struct inventory_node place;
    node_cache_describe(kubernetes->nodes, index, ret_node);
    if (topology_find(kubernetes->topology, ret_node->name, &place)) {
        ret_node->rack = place.rack;
        ret_node->nvlink_domain = place.nvlink_domain;
    }
    if (ret_node->promised_to != NULL)
        ret_node->promised_to = job_of_value(description, ret_node->promised_to);
}

static bool is_whole(const struct kubernetes *kubernetes, const char **ret_reason)
{
    return node_cache_is_synced(kubernetes->nodes, ret_reason) &&
           topology_is_synced(kubernetes->topology, ret_reason) &&
           workloads_are_synced(kubernetes->workloads, ret_reason);
}

/* That the first lists are not whole yet is no news. */
static void log_change(struct kubernetes *kubernetes, bool is_read, bool answers,
                       const char *reason)
{
    bool is_new = !kubernetes->is_told && !is_read && answers &&
                  clock_read().monotonic_ns - kubernetes->begun_ns < FIRST_READ_NS;
    if (is_new || (kubernetes->is_told && kubernetes->was_read == is_read))
        return;
    kubernetes->is_told = true;
    kubernetes->was_read = is_read;
    if (is_read)
        log_event(LOG_INFO, "cluster_read", kv_str("server", kubernetes->config->server),
                  kv_int("nodes", (int64_t)node_cache_count(kubernetes->nodes)));
    else
        log_event(LOG_WARN, "cluster_not_read", kv_str("server", kubernetes->config->server),
                  kv_str("reason", reason), kv_str("then", "nothing is acted on until it is read"));
}

static void tell_unknown(struct description *description, bool answers, const char *reason)
{
    world_done_fn *done = description->done;
    void *context = description->context;
    struct world world = {.known = false, .reason = reason};
    log_change(description->owner, false, answers, reason);
    description_free(description);
    done(context, &world);
}

/* Labels are written of our own accord: not while somebody else leads, or a person paused it. */
static bool may_write_labels(const struct kubernetes *kubernetes)
{
    return kubernetes->write_labels && !kubernetes->reads_only &&
           (kubernetes->may_act == NULL || kubernetes->may_act(kubernetes->may_act_context));
}

static void tell_world(struct description *description)
{
    struct kubernetes *kubernetes = description->owner;
    size_t node_count = node_cache_count(kubernetes->nodes);
    AUTO_FREE struct world_node *nodes = xcalloc(node_count + 1, sizeof *nodes);
    AUTO_FREE struct world_job *jobs = xcalloc(description->count + 1, sizeof *jobs);
    topology_set_writing(kubernetes->topology, may_write_labels(kubernetes));
    topology_refresh(kubernetes->topology);
    for (size_t i = 0; i < node_count; i++)
        describe_node(description, i, &nodes[i]);
    workloads_describe_begin(kubernetes->workloads);
    for (size_t i = 0; i < description->count; i++)
        workloads_describe(kubernetes->workloads, &description->jobs[i], &jobs[i]);
    struct world world = {.known = true,
                          .nodes = nodes,
                          .node_count = node_count,
                          .jobs = jobs,
                          .job_count = description->count};
    log_change(kubernetes, true, true, NULL);
    node_cache_ask_uncordoned(kubernetes->nodes);
    /* Whoever is told may free the actuator: nothing of it is touched after that. */
    LIST_REMOVE(description, entry);
    description->done(description->context, &world);
    description_release(description);
}

/* refusal: why the server does not answer; NULL: it does. */
static void tell(struct description *description, const char *refusal)
{
    const char *reason = NULL;
    AUTO_TEXT sentence = {0};
    if (refusal == NULL && is_whole(description->owner, &reason)) {
        tell_world(description);
        return;
    }
    if (refusal != NULL)
        text_addf(&sentence, "the API server does not answer as it should: %s", refusal);
    else
        text_add(&sentence, reason != NULL ? reason : "the cluster is not read yet");
    tell_unknown(description, refusal == NULL, sentence.bytes);
}

static void on_probed(void *context, const struct kube_answer *answer)
{
    /* The node that was asked for may have gone since: that is an answer too. */
    bool answers = answer->result == KUBE_OK || answer->result == KUBE_NOT_FOUND;
    tell(context, answers ? NULL : answer->message);
}

static void on_heard(void *context)
{
    tell(context, NULL);
}

/* A watch that hears nothing may be a quiet cluster or a server that stands still: one small call
 * tells them apart. One node is read past the server's caches within milliseconds; a list of one is
 * held back until they have caught up. */
static void describe(void *self, const struct world_question *question, world_done_fn *done,
                     void *context)
{
    struct kubernetes *kubernetes = self;
    struct description *description = description_new(kubernetes, question);
    AUTO_TEXT path = {0};
    description->done = done;
    description->context = context;
    if (node_cache_was_heard(kubernetes->nodes, JUST_HEARD_NS)) {
        description->timer = loop_timer_new(kubernetes->loop, on_heard, description);
        loop_timer_set(description->timer, 0);
        return;
    }
    text_add(&path, "/api/v1/nodes");
    if (node_cache_count(kubernetes->nodes) > 0)
        kube_path_add(&path, node_cache_name(kubernetes->nodes, 0));
    else
        text_add(&path, "?limit=1");
    struct kube_call call = {
        .method = "GET", .path = path.bytes, .priority = KUBE_READ, .timeout_ms = PROBE_TIMEOUT_MS};
    kube_call_start(kubernetes->client, &call, on_probed, description);
}

/* ---- the module ---- */

static void release(void *self)
{
    struct kubernetes *kubernetes = self;
    while (!LIST_EMPTY(&kubernetes->descriptions))
        description_free(LIST_FIRST(&kubernetes->descriptions));
    pod_actions_free(kubernetes->pods);
    events_free(kubernetes->events);
    workloads_free(kubernetes->workloads);
    topology_free(kubernetes->topology);
    node_cache_free(kubernetes->nodes);
    operations_drop(&kubernetes->starts);
    kube_client_free(kubernetes->client);
    kube_config_free(kubernetes->config);
    xfree(kubernetes);
}

void kubernetes_set_reads_only(struct actuator *actuator, bool reads_only)
{
    struct kubernetes *kubernetes = actuator->self;
    kubernetes->reads_only = reads_only;
    events_set_silent(kubernetes->events, reads_only);
}

enum status kubernetes_new(struct loop *loop, struct http_client *client,
                           const struct kubernetes_params *params, struct actuator **ret_actuator,
                           struct error *reterr)
{
    AUTO(kube_config_free) struct kube_config *config = NULL;
    TRY(kube_config_load(params->kubeconfig, params->context, &config, reterr));
    struct kubernetes *kubernetes = xcalloc(1, sizeof *kubernetes);
    kubernetes->loop = loop;
    kubernetes->begun_ns = clock_read().monotonic_ns;
    kubernetes->starts.loop = loop;
    kubernetes->config = TAKE(config);
    kubernetes->client = kube_client_new(loop, client, kubernetes->config, &params->limits);
    kubernetes->nodes = node_cache_new(kubernetes->client, loop, params->rack_label);
    struct topology_params topology = {.client = kubernetes->client,
                                       .loop = loop,
                                       .nodes = kubernetes->nodes,
                                       .inventory = params->inventory,
                                       .rack_label = params->rack_label,
                                       .write_labels = params->write_topology_labels,
                                       .rail = params->rail,
                                       .rail_context = params->rail_context};
    kubernetes->may_act = params->may_act;
    kubernetes->may_act_context = params->may_act_context;
    kubernetes->topology = topology_new(&topology);
    node_cache_set_racks(kubernetes->nodes, topology_rack, kubernetes->topology);
    kubernetes->workloads = workloads_new(kubernetes->client, loop, kubernetes->nodes, false);
    kubernetes->pods = pod_actions_new(kubernetes->client, loop, kubernetes->nodes,
                                       kubernetes->workloads);
    kubernetes->events = events_new(kubernetes->client, loop, kubernetes->nodes,
                                    kubernetes->workloads);
    kubernetes->port = (struct actuator){.name = "kubernetes",
                                         .changes_world = true,
                                         .start = start,
                                         .poll = poll,
                                         .describe = describe,
                                         .free = release,
                                         .self = kubernetes};
    kubernetes->write_labels = params->write_topology_labels;
    kubernetes_set_reads_only(&kubernetes->port, params->reads_only);
    *ret_actuator = &kubernetes->port;
    return OK;
}
