/* Core v1 Events with names that follow from operation, object and outcome. */
#include "remediation/actuators/kubernetes_events.h"

#include "controller/sys/clock.h"
#include "remediation/actuators/kubernetes_workload_kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One action on an 18-tray rack tells 38; a cluster that does not answer costs no more memory. */
enum { WAITING_MAX = 256, NODES_MAX = 64, MESSAGE_BYTES = 1000, AT_ONCE = 2 };
static const int64_t HOLD_BACK_NS = INT64_C(500000000); /* the action itself goes first */

struct waiting {
    struct waiting *next;
    char *path, *body;
};

struct events {
    struct kube_client *client;
    const struct node_cache *nodes;
    const struct workloads *workloads;
    bool is_silent;
    struct waiting *first, **last;
    struct loop_timer *timer;
    int32_t waiting, under_way;
};

static void drop_first(struct events *events)
{
    struct waiting *waiting = events->first;
    events->first = waiting->next;
    if (events->first == NULL)
        events->last = &events->first;
    events->waiting--;
    xfree(waiting->path);
    xfree(waiting->body);
    xfree(waiting);
}

static void send_next(void *context);

static void on_told(void *context, const struct kube_answer *answer)
{
    struct events *events = context;
    (void)answer; /* told already, not allowed, or lost: nothing hangs on it */
    events->under_way--;
    send_next(events);
}

static void send_next(void *context)
{
    struct events *events = context;
    while (events->first != NULL && events->under_way < AT_ONCE) {
        struct kube_call call = {.method = "POST",
                                 .path = events->first->path,
                                 .body = view_of(events->first->body),
                                 .priority = KUBE_LIST};
        events->under_way++;
        kube_call_start(events->client, &call, on_told, events);
        drop_first(events);
    }
}

struct events *events_new(struct kube_client *client, struct loop *loop,
                          const struct node_cache *nodes, const struct workloads *workloads)
{
    struct events *events = xcalloc(1, sizeof *events);
    events->client = client;
    events->nodes = nodes;
    events->workloads = workloads;
    events->last = &events->first;
    events->timer = loop_timer_new(loop, send_next, events);
    return events;
}

void events_free(struct events *events)
{
    if (events == NULL)
        return;
    while (events->first != NULL)
        drop_first(events);
    loop_timer_free(events->timer);
    xfree(events);
}

void events_set_silent(struct events *events, bool is_silent)
{
    events->is_silent = is_silent;
    while (is_silent && events->first != NULL) /* what waits is not told */
        drop_first(events);
}

/* reasons: one CamelCase word for the beginning, one for the end. */
static const struct {
    const char *begun, *done;
} REASONS[VERB_COUNT] = {
    [VERB_CORDON] = {"QuarantineStarted", "NodeQuarantined"},
    [VERB_UNCORDON] = {"ReleaseStarted", "NodeReleased"},
    [VERB_REQUEST_CHECKPOINT] = {"CheckpointRequestStarted", "CheckpointRequested"},
    [VERB_PROMISE_SPARE] = {"SparePromiseStarted", "SparePromised"},
    [VERB_RELEASE_SPARE] = {"SpareReleaseStarted", "SpareReleased"},
    [VERB_RESTART_JOB] = {"JobRestartStarted", "JobRestarted"},
    [VERB_DRAIN] = {"DrainStarted", "NodeDrained"},
    [VERB_FORCE_DELETE] = {"ForceDeleteStarted", "PodsForceDeleted"},
};

struct told {
    const char *reason;
    bool is_warning;
    char message[MESSAGE_BYTES];
};

static struct told told_of(const struct action *action, const struct action_result *result)
{
    struct told told = {.reason = REASONS[action->verb].begun};
    if (result == NULL) {
        snprintf(told.message, sizeof told.message, "%s: %s [%s]", action->incident_ref,
                 action->reason, action->operation_id);
        return told;
    }
    bool is_done = result->outcome == OUTCOME_SUCCEEDED || result->outcome == OUTCOME_SUPERSEDED;
    told.reason = is_done ? REASONS[action->verb].done : "RemediationFailed";
    told.is_warning = !is_done;
    snprintf(told.message, sizeof told.message, "%s: %s %s: %s [%s]", action->incident_ref,
             verb_name(action->verb), outcome_name(result->outcome),
             result->reason != NULL ? result->reason : "", action->operation_id);
    return told;
}

struct object {
    const char *api_version, *kind, *namespace_name, *name, *uid;
};

static uint64_t mix(uint64_t hash, const char *text)
{
    do
        hash = (hash ^ (uint64_t)(unsigned char)*text) * UINT64_C(1099511628211); /* FNV-1a */
    while (*text++ != '\0');
    return hash;
}

static void write_event(const struct object *object, const struct action *action,
                        const struct told *told, struct text *body)
{
    AUTO_TEXT now = {0};
    char name[320];
    uint64_t hash = mix(mix(UINT64_C(14695981039346656037), action->operation_id), told->reason);
    int64_t second_ns = clock_read().wall_ns / 1000000000 * 1000000000;
    snprintf(name, sizeof name, "%.230s.%016" PRIx64, object->name,
             mix(mix(hash, told->message), object->kind));
    text_add_time(&now, second_ns);
    struct json_writer w = json_writer(body);
    json_open_object(&w);
    json_put_string(&w, "apiVersion", "v1");
    json_put_string(&w, "kind", "Event");
    json_add_key(&w, "metadata");
    json_open_object(&w);
    json_put_string(&w, "name", name);
    json_put_string(&w, "namespace", object->namespace_name);
    json_close(&w);
    json_add_key(&w, "involvedObject");
    json_open_object(&w);
    json_put_string(&w, "apiVersion", object->api_version);
    json_put_string(&w, "kind", object->kind);
    if (strcmp(object->kind, "Node") != 0)
        json_put_string(&w, "namespace", object->namespace_name);
    json_put_string(&w, "name", object->name);
    if (object->uid[0] != '\0')
        json_put_string(&w, "uid", object->uid);
    json_close(&w);
    json_put_string(&w, "reason", told->reason);
    json_put_string(&w, "message", told->message);
    json_put_string(&w, "type", told->is_warning ? "Warning" : "Normal");
    json_put_string(&w, "firstTimestamp", now.bytes);
    json_put_string(&w, "lastTimestamp", now.bytes);
    json_put_int(&w, "count", 1);
    json_add_key(&w, "source");
    json_open_object(&w);
    json_put_string(&w, "component", "broomd");
    json_close(&w);
    json_put_string(&w, "reportingComponent", "broomd");
    json_put_string(&w, "reportingInstance", "broomd");
    json_close(&w);
}

static void tell_object(struct events *events, const struct object *object,
                        const struct action *action, const struct told *told)
{
    AUTO_TEXT body = {0};
    AUTO_TEXT path = {0};
    if (events->waiting >= WAITING_MAX)
        return;
    write_event(object, action, told, &body);
    text_add(&path, "/api/v1/namespaces");
    kube_path_add(&path, object->namespace_name);
    text_add(&path, "/events");
    struct waiting *waiting = xcalloc(1, sizeof *waiting);
    waiting->path = text_take(&path);
    waiting->body = text_take(&body);
    *events->last = waiting;
    events->last = &waiting->next;
    events->waiting++;
}

static void tell_job(struct events *events, const struct action *action, const struct told *told)
{
    AUTO(json_free) struct json *workload = NULL;
    if (action->workload_json == NULL ||
        json_parse(view_of(action->workload_json), &workload, NULL) != OK)
        return;
    const struct workload_kind *kind = workload_kind_find(json_get_string(workload, "kind", ""));
    struct object object = {.namespace_name = json_get_string(workload, "namespace", "default"),
                            .name = json_get_string(workload, "name", ""),
                            .uid = workloads_uid(events->workloads, action->workload_json)};
    if (kind == NULL || object.name[0] == '\0')
        return;
    object.api_version = kind->api_version;
    object.kind = kind->kind;
    tell_object(events, &object, action, told);
}

/* Events of nodes are kept in the namespace "default". */
static void tell_nodes(struct events *events, const struct action *action, const struct told *told,
                       const char *const *names, size_t count)
{
    for (size_t i = 0; i < count && i < NODES_MAX; i++) {
        struct object node = {"v1", "Node", "default", names[i],
                              node_cache_uid(events->nodes, names[i])};
        tell_object(events, &node, action, told);
    }
}

void events_tell(struct events *events, const struct action *action,
                 const struct action_result *result)
{
    if (events->is_silent || REASONS[action->verb].begun == NULL)
        return;
    struct told told = told_of(action, result);
    tell_nodes(events, action, &told, action->nodes, action->node_count);
    tell_nodes(events, action, &told, action->spares, action->spare_count);
    tell_job(events, action, &told);
    if (events->under_way == 0)
        loop_timer_set(events->timer, HOLD_BACK_NS);
}
