/* The watches, and who is asked for what. Restarts are in kubernetes_volcano.c, _suspend.c and
 * _argo.c, descriptions in kubernetes_workload_describe.c.
 */
#include "remediation/actuators/kubernetes_workload_call.h"

#include <stdlib.h>
#include <string.h>

static const int64_t FRESH_NS = INT64_C(90000000000); /* a live server is heard twice a minute */

/* --- the picture --- */

static struct workload_item **item_slot(struct workloads *workloads,
                                        const struct workload_kind *kind,
                                        const char *namespace_name, const char *name)
{
    uint32_t hash = pods_job_hash(kind->id, namespace_name, name);
    struct workload_item **slot = &workloads->items[kind->id][hash % ITEM_BUCKETS];
    while (*slot != NULL && (strcmp((*slot)->name, name) != 0 ||
                             strcmp((*slot)->namespace_name, namespace_name) != 0))
        slot = &(*slot)->next;
    return slot;
}

static void remove_item(struct workload_item **slot)
{
    struct workload_item *gone = *slot;
    if (gone == NULL)
        return;
    *slot = gone->next;
    workload_item_done(gone);
    xfree(gone);
}

static void on_workload(void *context, const struct json *object)
{
    struct workload_watch *watch = context;
    struct workload_item *item = xcalloc(1, sizeof *item);
    workload_item_read(watch->kind, object, item);
    struct workload_item **slot = item_slot(watch->owner, watch->kind, item->namespace_name,
                                            item->name);
    if (*slot != NULL && strcmp((*slot)->uid, item->uid) == 0)
        item->gang_seen = (*slot)->gang_seen;
    remove_item(slot);
    item->next = *slot;
    *slot = item;
}

static void on_workload_gone(void *context, const char *namespace_name, const char *name)
{
    struct workload_watch *watch = context;
    remove_item(item_slot(watch->owner, watch->kind, namespace_name, name));
}

static void on_pod(void *context, const struct json *object)
{
    struct workloads *workloads = context;
    pods_put(&workloads->pods, object);
}

static void on_pod_gone(void *context, const char *namespace_name, const char *name)
{
    struct workloads *workloads = context;
    pods_remove(&workloads->pods, namespace_name, name);
}

static void on_domain(void *context, const struct json *object)
{
    struct workloads *workloads = context;
    domains_put(&workloads->domains, object);
}

static void on_domain_gone(void *context, const char *namespace_name, const char *name)
{
    struct workloads *workloads = context;
    domains_remove(&workloads->domains, namespace_name, name);
}

static void watch_kind(struct workloads *workloads, const struct workload_kind *kind)
{
    struct workload_watch *watch = &workloads->watches[kind->id];
    AUTO_TEXT path = {0};
    *watch = (struct workload_watch){.owner = workloads, .kind = kind};
    workload_list_path(kind, &path);
    watch->watch = kube_watch_new(workloads->client,
                                  &(struct kube_watch_params){.path = path.bytes,
                                                              .is_optional = true,
                                                              .on_object = on_workload,
                                                              .on_gone = on_workload_gone,
                                                              .context = watch});
}

struct workloads *workloads_new(struct kube_client *client, struct loop *loop,
                                const struct node_cache *nodes, bool reads_only)
{
    struct workloads *workloads = xcalloc(1, sizeof *workloads);
    workloads->client = client;
    workloads->loop = loop;
    workloads->nodes = nodes;
    workloads->reads_only = reads_only;
    workloads->pod_watch = kube_watch_new(client,
                                          &(struct kube_watch_params){.path = "/api/v1/pods",
                                                                      .on_object = on_pod,
                                                                      .on_gone = on_pod_gone,
                                                                      .context = workloads});
    workloads->domain_watch = kube_watch_new(
        client,
        &(struct kube_watch_params){.path = "/apis/resource.nvidia.com/v1beta1/computedomains",
                                    .is_optional = true,
                                    .on_object = on_domain,
                                    .on_gone = on_domain_gone,
                                    .context = workloads});
    for (size_t i = 0; i < WORKLOAD_KIND_COUNT; i++)
        watch_kind(workloads, &WORKLOAD_KINDS[i]);
    return workloads;
}

void workloads_free(struct workloads *workloads)
{
    if (workloads == NULL)
        return;
    while (!LIST_EMPTY(&workloads->calls))
        work_call_free(LIST_FIRST(&workloads->calls));
    kube_watch_free(workloads->pod_watch);
    kube_watch_free(workloads->domain_watch);
    for (size_t i = 0; i < WORKLOAD_KIND_COUNT; i++) {
        kube_watch_free(workloads->watches[i].watch);
        for (size_t k = 0; k < ITEM_BUCKETS; k++)
            while (workloads->items[i][k] != NULL)
                remove_item(&workloads->items[i][k]);
    }
    pods_done(&workloads->pods);
    domains_done(&workloads->domains);
    workloads_describe_begin(workloads);
    xfree(workloads->kept);
    xfree(workloads);
}

bool workloads_pods_are_synced(const struct workloads *workloads, const char **ret_reason)
{
    return kube_watch_is_synced(workloads->pod_watch, FRESH_NS, ret_reason);
}

bool workloads_kind_is_synced(const struct workloads *workloads, const struct workload_kind *kind,
                              const char **ret_reason)
{
    const char *reason = NULL;
    if (!kube_watch_is_synced(workloads->watches[kind->id].watch, FRESH_NS, &reason)) {
        *ret_reason = reason;
        return false;
    }
    /* A TrainJob's ranks are told by the JobSet that it makes. */
    return kind->id != WORKLOAD_TRAINJOB ||
           workloads_kind_is_synced(workloads, &WORKLOAD_KINDS[WORKLOAD_JOBSET], ret_reason);
}

/* A kind that may not be read makes its own jobs unknown, not the whole cluster. */
bool workloads_are_synced(const struct workloads *workloads, const char **ret_reason)
{
    return workloads_pods_are_synced(workloads, ret_reason);
}

/* --- looking things up --- */

static enum status copy_name(const struct json *root, const char *key, const char *fallback,
                             char *buffer, size_t bytes, struct error *reterr)
{
    const char *value = json_get_string(root, key, fallback);
    if (!text_copy(buffer, bytes, value) || buffer[0] == '\0')
        return error_set(reterr, ERR_INVALID, "workload has no usable '%s'", key);
    return OK;
}

enum status work_ref_read(const char *workload_json, struct work_ref *ret_ref, struct error *reterr)
{
    AUTO(json_free) struct json *root = NULL;
    if (workload_json == NULL)
        return error_set(reterr, ERR_INVALID, "the job names no workload");
    TRY(json_parse(view_of(workload_json), &root, reterr));
    const char *word = json_get_string(root, "kind", "");
    *ret_ref = (struct work_ref){.kind = workload_kind_find(word)};
    if (ret_ref->kind == NULL)
        return error_set(reterr, ERR_INVALID,
                         "a workload of kind '%s' is none that Kubernetes runs", word);
    TRY(copy_name(root, "name", "", ret_ref->name, sizeof ret_ref->name, reterr));
    TRY(copy_name(root, "namespace", "default", ret_ref->namespace_name,
                  sizeof ret_ref->namespace_name, reterr));
    if (!text_copy(ret_ref->uid, sizeof ret_ref->uid, json_get_string(root, "uid", "")))
        return error_set(reterr, ERR_INVALID, "workload has no usable 'uid'");
    return OK;
}

const struct workload_item *workloads_find(const struct workloads *workloads,
                                           const struct work_ref *ref)
{
    uint32_t hash = pods_job_hash(ref->kind->id, ref->namespace_name, ref->name);
    const struct workload_item *item = workloads->items[ref->kind->id][hash % ITEM_BUCKETS];
    while (item != NULL && (strcmp(item->name, ref->name) != 0 ||
                            strcmp(item->namespace_name, ref->namespace_name) != 0))
        item = item->next;
    return item;
}

void workloads_note_gang(struct workloads *workloads, const struct workload_item *item,
                         uint64_t newest)
{
    struct workload_item **slot = item_slot(workloads, item->kind, item->namespace_name,
                                            item->name);
    if (*slot != NULL)
        (*slot)->gang_seen = newest;
}

static const struct workload_item *find_same_name(const struct workloads *workloads,
                                                  enum workload_kind_id kind,
                                                  const char *namespace_name, const char *name)
{
    struct work_ref ref = {.kind = &WORKLOAD_KINDS[kind]};
    text_copy(ref.namespace_name, sizeof ref.namespace_name, namespace_name);
    text_copy(ref.name, sizeof ref.name, name);
    return workloads_find(workloads, &ref);
}

const struct workload_item *workloads_find_groups(const struct workloads *workloads,
                                                  const struct workload_item *item)
{
    return item->kind->id == WORKLOAD_TRAINJOB
               ? find_same_name(workloads, WORKLOAD_JOBSET, item->namespace_name, item->name)
               : item;
}

/* Pods of a JobSet are controlled by its jobs, whose uids are not known here. */
static bool is_of_object(const struct pod *pod, const struct workload_item *item)
{
    return item->kind->id == WORKLOAD_JOBSET || strcmp(pod->owner_uid, item->uid) == 0;
}

const struct pod **workloads_pods_of(const struct workloads *workloads,
                                     const struct workload_item *item, size_t *ret_count)
{
    const struct workload_item *groups = workloads_find_groups(workloads, item);
    const struct pod **pods = NULL;
    size_t count = 0, capacity = 0;
    *ret_count = 0;
    if (groups == NULL)
        return NULL;
    enum workload_kind_id kind = groups->kind->id;
    uint32_t hash = pods_job_hash(kind, groups->namespace_name, groups->name);
    for (const struct pod *pod = workloads->pods.first; pod != NULL; pod = pod->next) {
        if (!pod_is_of(pod, hash, kind, groups->namespace_name, groups->name) ||
            !is_of_object(pod, groups))
            continue;
        pods = array_grow(pods, count, &capacity, sizeof(const struct pod *));
        pods[count++] = pod;
    }
    *ret_count = count;
    return pods;
}

/* The workload that owns a pod in the end; NULL when it has none that is known. */
static const struct workload_item *owner_of(const struct workloads *workloads,
                                            enum workload_kind_id kind, const char *namespace_name,
                                            const char *name)
{
    const struct workload_item *train = kind == WORKLOAD_JOBSET
                                            ? find_same_name(workloads, WORKLOAD_TRAINJOB,
                                                             namespace_name, name)
                                            : NULL;
    return train != NULL ? train : find_same_name(workloads, kind, namespace_name, name);
}

const char *workloads_uid(const struct workloads *workloads, const char *workload_json)
{
    struct work_ref ref;
    if (work_ref_read(workload_json, &ref, NULL) != OK)
        return "";
    const struct workload_item *item = owner_of(workloads, ref.kind->id, ref.namespace_name,
                                                ref.name);
    return item != NULL ? item->uid : "";
}

/* --- pods of a node --- */

static int by_name(const void *a, const void *b)
{
    const struct pod *const *left = a, *const *right = b;
    int order = strcmp((*left)->namespace_name, (*right)->namespace_name);
    return order != 0 ? order : strcmp((*left)->name, (*right)->name);
}

static struct workload_pod pod_told(const struct workloads *workloads, const struct pod *pod)
{
    const struct workload_item *owner = pod->kind != WORKLOAD_KIND_COUNT
                                            ? owner_of(workloads, pod->kind, pod->namespace_name,
                                                       pod->job)
                                            : NULL;
    return (struct workload_pod){.namespace_name = pod->namespace_name,
                                 .name = pod->name,
                                 .uid = pod->uid,
                                 .node = pod->node,
                                 .job_uid = owner != NULL ? owner->uid : "",
                                 .is_daemon = pod->is_daemon,
                                 .is_mirror = pod->is_mirror,
                                 .has_ended = pod->has_ended,
                                 .is_terminating = pod->deleted_ns != 0,
                                 .deleted_ns = pod->deleted_ns};
}

void workloads_pods_on(const struct workloads *workloads, const char *node, workload_pod_fn *fn,
                       void *context)
{
    AUTO_FREE const struct pod **pods = NULL;
    size_t count = 0, capacity = 0;
    for (const struct pod *pod = workloads->pods.first; pod != NULL; pod = pod->next) {
        if (strcmp(pod->node, node) != 0)
            continue;
        pods = array_grow(pods, count, &capacity, sizeof(const struct pod *));
        pods[count++] = pod;
    }
    if (count > 1)
        qsort(pods, count, sizeof *pods, by_name);
    for (size_t i = 0; i < count; i++) {
        struct workload_pod told = pod_told(workloads, pods[i]);
        fn(context, &told);
    }
}

/* --- tolerations --- */

static bool bears(const struct workload_group *group, const char *value)
{
    size_t length = strlen(value);
    if (group->bears_any)
        return true;
    for (const char *line = group->bears; line[0] != '\0';) {
        const char *end = strchr(line, '\n');
        size_t bytes = end != NULL ? (size_t)(end - line) : strlen(line);
        if (bytes == length && memcmp(line, value, length) == 0)
            return true;
        line = end != NULL ? end + 1 : line + bytes;
    }
    return false;
}

static bool any_gpus(const struct workload_item *item)
{
    for (size_t i = 0; i < item->group_count; i++)
        if (item->groups[i].gpus > 0)
            return true;
    return false;
}

bool workloads_tolerate_spare(const struct workloads *workloads, const char *workload_json,
                              const char *value, const char **ret_reason)
{
    struct work_ref ref;
    const char *ignored = NULL;
    const char **reason = ret_reason != NULL ? ret_reason : &ignored;
    if (work_ref_read(workload_json, &ref, NULL) != OK) {
        *reason = "the job names no workload that is known here";
        return false;
    }
    const struct workload_item *item = workloads_find(workloads, &ref);
    const struct workload_item *groups = item != NULL ? workloads_find_groups(workloads, item)
                                                      : NULL;
    if (groups == NULL || groups->group_count == 0) {
        *reason = "the templates of its pods are not known";
        return false;
    }
    bool with_gpus = any_gpus(groups);
    for (size_t i = 0; i < groups->group_count; i++) {
        bool matters = !with_gpus || groups->groups[i].gpus > 0;
        if (matters && !bears(&groups->groups[i], value)) {
            *reason = "its pods do not tolerate the taint " WORKLOAD_SPARE_TAINT;
            return false;
        }
    }
    return true;
}

/* --- the port --- */

static void say_it(struct work_call *call)
{
    work_call_end(call, call->said_outcome, call->said_poll, "%s", call->waits_for);
}

/* What is known at once is answered from the loop too. */
static void answer_soon(struct workloads *workloads, const struct action *action,
                        action_done_fn *done, void *context, struct action_result result)
{
    const struct work_ref none = {0};
    struct work_call *call = work_call_new(workloads, action, true, &none, done, context);
    call->said_outcome = result.outcome;
    call->said_poll = result.poll;
    text_copy(call->waits_for, sizeof call->waits_for, result.reason);
    call->limit_ns = INT64_MAX;
    work_call_later(call, 0, say_it);
}

static void refuse(struct workloads *workloads, const struct action *action, action_done_fn *done,
                   void *context, const char *reason)
{
    answer_soon(workloads, action, done, context,
                (struct action_result){OUTCOME_REFUSED, POLL_DONE, reason, NULL});
}

static void restart(struct work_call *call)
{
    call->ref.kind->restart(call);
}

static void on_checkpoint_asked(struct work_call *call, const struct kube_answer *answer)
{
    if (answer->result == KUBE_OK)
        work_call_answer(call, OUTCOME_SUCCEEDED, "asked by annotation of %s %s/%s",
                         call->ref.kind->kind, call->ref.namespace_name, call->ref.name);
    else if (answer->result == KUBE_UNKNOWN)
        work_call_answer(call, OUTCOME_UNKNOWN, "%s", answer->message);
    else
        work_call_fail(call, answer);
}

static void ask_checkpoint(struct work_call *call)
{
    work_call_annotate(call, WORKLOAD_CHECKPOINT, call->operation_id, on_checkpoint_asked);
}

static void poll_checkpoint(struct work_call *call)
{
    if (strcmp(call->item.checkpoint, call->operation_id) == 0)
        work_call_end(call, OUTCOME_SUCCEEDED, POLL_DONE, "the workload carries the request");
    else
        work_call_tell(call, POLL_ABSENT, "the workload does not carry the request");
}

void workloads_start(struct workloads *workloads, const struct action *action, action_done_fn *done,
                     void *context)
{
    struct work_ref ref;
    struct error error = {0};
    bool restarts = action->verb == VERB_RESTART_JOB;
    if (workloads->reads_only) {
        refuse(workloads, action, done, context, "observe: nothing is ever written");
        return;
    }
    if (!restarts && action->verb != VERB_REQUEST_CHECKPOINT) {
        refuse(workloads, action, done, context, "not a verb of workloads");
        return;
    }
    if (work_ref_read(action->workload_json, &ref, &error) != OK) {
        refuse(workloads, action, done, context, error.message);
        return;
    }
    if (work_call_find_start(workloads, action->operation_id) != NULL) {
        answer_soon(workloads, action, done, context,
                    (struct action_result){OUTCOME_UNKNOWN, POLL_RUNNING, "it is under way", NULL});
        return;
    }
    struct work_call *call = work_call_new(workloads, action, false, &ref, done, context);
    work_call_read(call, restarts ? restart : ask_checkpoint);
}

static void poll_restart(struct work_call *call)
{
    call->ref.kind->poll(call);
}

void workloads_poll(struct workloads *workloads, const struct action *action, action_done_fn *done,
                    void *context)
{
    struct work_ref ref;
    struct error error = {0};
    const struct work_call *running = work_call_find_start(workloads, action->operation_id);
    if (running != NULL) {
        const char *reason = running->waits_for[0] != '\0' ? running->waits_for : "it is under way";
        answer_soon(workloads, action, done, context,
                    (struct action_result){OUTCOME_UNKNOWN, POLL_RUNNING, reason, NULL});
        return;
    }
    if (work_ref_read(action->workload_json, &ref, &error) != OK) {
        answer_soon(workloads, action, done, context,
                    (struct action_result){OUTCOME_UNKNOWN, POLL_ABSENT, error.message, NULL});
        return;
    }
    struct work_call *call = work_call_new(workloads, action, true, &ref, done, context);
    work_call_read(call, action->verb == VERB_RESTART_JOB ? poll_restart : poll_checkpoint);
}
