/* A hash table by namespace and name, and one row for each kind of owner that says by which labels
 * its pods tell where they belong.
 */
#include "remediation/actuators/kubernetes_workload_pods.h"

#include <string.h>

/* --- which workload a pod belongs to --- */

/* Labels; old_job: before Kubernetes 1.27. The same keys are looked for among the annotations,
 * where some versions put them. */
struct owner_row {
    enum workload_kind_id kind;
    const char *owner; /* kind of the object that controls the pod */
    const char *job, *old_job, *group, *outer_index, *index;
};

/* In this order: the pods of a JobSet are pods of a Job too. */
static const struct owner_row OWNERS[] = {
    {WORKLOAD_JOBSET, "Job", "jobset.sigs.k8s.io/jobset-name", NULL,
     "jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/job-index",
     "batch.kubernetes.io/job-completion-index"},
    {WORKLOAD_VOLCANO, "Job", "volcano.sh/job-name", NULL, "volcano.sh/task-spec",
     "volcano.sh/partition-id", "volcano.sh/task-index"},
    {WORKLOAD_PYTORCHJOB, "PyTorchJob", "training.kubeflow.org/job-name", NULL,
     "training.kubeflow.org/replica-type", NULL, "training.kubeflow.org/replica-index"},
    {WORKLOAD_WORKFLOW, "Workflow", "workflows.argoproj.io/workflow", NULL, NULL, NULL, NULL},
    {WORKLOAD_JOB, "Job", "batch.kubernetes.io/job-name", "job-name", NULL, NULL,
     "batch.kubernetes.io/job-completion-index"},
};

static const struct json *controller_of(const struct json *metadata)
{
    const struct json *owner = json_first(json_get(metadata, "ownerReferences"));
    for (; owner != NULL; owner = json_next(owner))
        if (json_get_bool(owner, "controller", false))
            return owner;
    return NULL;
}

static const char *mark(const struct json *metadata, const char *key)
{
    if (key == NULL)
        return "";
    const char *label = json_get_string(json_get(metadata, "labels"), key, "");
    return label[0] != '\0' ? label : json_get_string(json_get(metadata, "annotations"), key, "");
}

static int32_t mark_index(const struct json *metadata, const char *key)
{
    int64_t value = -1;
    const char *text = mark(metadata, key);
    if (!text_parse_int(view_of(text), &value) || value < 0 || value > INT32_MAX)
        return -1;
    return (int32_t)value;
}

/* "llm-worker-12" -> 12; -1 when it does not end in a number. */
static int32_t last_number(const char *name)
{
    int64_t value = -1;
    const char *dash = strrchr(name, '-');
    if (dash == NULL || !text_parse_int(view_of(dash + 1), &value) || value < 0 ||
        value > INT32_MAX)
        return -1;
    return (int32_t)value;
}

static void read_owner(const struct json *metadata, struct pod *pod)
{
    const struct json *owner = controller_of(metadata);
    const char *kind = json_get_string(owner, "kind", "");
    pod->owner_uid = json_get_string(owner, "uid", "");
    pod->is_daemon = strcmp(kind, "DaemonSet") == 0;
    pod->job = pod->group = "";
    pod->index = pod->outer_index = -1;
    pod->kind = WORKLOAD_KIND_COUNT;
    for (size_t i = 0; i < ARRAY_LEN(OWNERS); i++) {
        const struct owner_row *row = &OWNERS[i];
        const char *job = mark(metadata, row->job);
        if (job[0] == '\0')
            job = mark(metadata, row->old_job);
        if (job[0] == '\0' || strcmp(row->owner, kind) != 0)
            continue;
        pod->kind = row->kind;
        pod->job = job;
        pod->group = mark(metadata, row->group);
        pod->outer_index = mark_index(metadata, row->outer_index);
        pod->index = mark_index(metadata, row->index);
        if (pod->index < 0 && row->kind == WORKLOAD_VOLCANO) /* no label: Volcano before 1.6 */
            pod->index = last_number(pod->name);
        return;
    }
}

/* --- reading --- */

static void read_claims(const struct json *spec, struct text *claims)
{
    const struct json *claim = json_first(json_get(spec, "resourceClaims"));
    for (; claim != NULL; claim = json_next(claim)) {
        const char *template = json_get_string(claim, "resourceClaimTemplateName", "");
        if (template[0] != '\0')
            text_addf(claims, "%s\n", template);
    }
}

static const char *why_unplaced(const struct json *status)
{
    const struct json *one = json_first(json_get(status, "conditions"));
    for (; one != NULL; one = json_next(one))
        if (strcmp(json_get_string(one, "type", ""), "PodScheduled") == 0 &&
            strcmp(json_get_string(one, "status", ""), "False") == 0)
            return json_get_string(one, "message", json_get_string(one, "reason", ""));
    return "";
}

/* A container that cannot start or does not stay up: "" none. */
static const char *why_down(const struct json *status)
{
    const struct json *one = json_first(json_get(status, "containerStatuses"));
    for (; one != NULL; one = json_next(one)) {
        const struct json *waiting = json_get(json_get(one, "state"), "waiting");
        const char *reason = json_get_string(waiting, "reason", "");
        if (strcmp(reason, "ContainerCreating") != 0 && strcmp(reason, "PodInitializing") != 0 &&
            reason[0] != '\0')
            return reason;
    }
    return "";
}

/* Strings are borrowed from the object. */
static void read_pod(const struct json *object, struct pod *pod)
{
    const struct json *metadata = json_get(object, "metadata");
    const struct json *spec = json_get(object, "spec");
    const struct json *status = json_get(object, "status");
    const char *phase = json_get_string(status, "phase", "");
    *pod = (struct pod){.namespace_name = json_get_string(metadata, "namespace", ""),
                        .name = json_get_string(metadata, "name", ""),
                        .uid = json_get_string(metadata, "uid", ""),
                        .node = json_get_string(spec, "nodeName", ""),
                        .gpus = workload_read_gpus(spec),
                        .has_ended = strcmp(phase, "Succeeded") == 0 ||
                                     strcmp(phase, "Failed") == 0,
                        .is_running = strcmp(phase, "Running") == 0};
    pod->message = pod->node[0] == '\0' ? why_unplaced(status) : why_down(status);
    pod->is_running = pod->is_running && pod->message[0] == '\0';
    const char *deleted = json_get_string(metadata, "deletionTimestamp", "");
    if (deleted[0] != '\0' && !text_parse_time(view_of(deleted), &pod->deleted_ns))
        pod->deleted_ns = 1; /* being deleted, since when is not readable */
    pod->is_mirror = json_get(json_get(metadata, "annotations"), "kubernetes.io/config.mirror") !=
                     NULL;
    read_owner(metadata, pod);
}

/* --- the table --- */

static uint32_t hash_text(uint32_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (uint32_t)(unsigned char)*text) * 16777619U;
    return (hash ^ 0xffU) * 16777619U; /* a separator that no name holds */
}

static uint32_t key_hash(const char *namespace_name, const char *name)
{
    return hash_text(hash_text(2166136261U, namespace_name), name);
}

uint32_t pods_job_hash(enum workload_kind_id kind, const char *namespace_name, const char *name)
{
    return hash_text(hash_text(2166136261U + (uint32_t)kind, namespace_name), name);
}

bool pod_is_of(const struct pod *pod, uint32_t job_hash, enum workload_kind_id kind,
               const char *namespace_name, const char *name)
{
    return pod->job_hash == job_hash && pod->kind == kind && strcmp(pod->job, name) == 0 &&
           strcmp(pod->namespace_name, namespace_name) == 0;
}

static struct pod **find_slot(const struct pod_table *table, const char *namespace_name,
                              const char *name)
{
    if (table->bucket_count == 0)
        return NULL;
    uint32_t hash = key_hash(namespace_name, name);
    struct pod **slot = &table->buckets[hash & (table->bucket_count - 1)];
    for (; *slot != NULL; slot = &(*slot)->chain)
        if ((*slot)->key_hash == hash && strcmp((*slot)->name, name) == 0 &&
            strcmp((*slot)->namespace_name, namespace_name) == 0)
            return slot;
    return NULL;
}

const struct pod *pods_find(const struct pod_table *table, const char *namespace_name,
                            const char *name)
{
    struct pod **slot = find_slot(table, namespace_name, name);
    return slot != NULL ? *slot : NULL;
}

static void grow(struct pod_table *table)
{
    size_t wanted = table->bucket_count == 0 ? 256 : table->bucket_count * 2;
    if (table->count < table->bucket_count)
        return;
    xfree(table->buckets);
    table->buckets = xcalloc(wanted, sizeof(struct pod *));
    table->bucket_count = wanted;
    for (struct pod *pod = table->first; pod != NULL; pod = pod->next) {
        struct pod **bucket = &table->buckets[pod->key_hash & (wanted - 1)];
        pod->chain = *bucket;
        *bucket = pod;
    }
}

/* Copies a text behind the struct and moves on. */
static const char *pack(char **end, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = *end;
    memcpy(copy, text, bytes);
    *end += bytes;
    return copy;
}

static size_t pod_bytes(const struct pod *pod)
{
    return sizeof *pod + strlen(pod->namespace_name) + strlen(pod->name) + strlen(pod->uid) +
           strlen(pod->node) + strlen(pod->job) + strlen(pod->group) + strlen(pod->owner_uid) +
           strlen(pod->claims) + strlen(pod->message) + 9;
}

static struct pod *pod_copy(const struct pod *pod)
{
    char *memory = xmalloc(pod_bytes(pod));
    char *end = memory + sizeof(struct pod);
    struct pod *copy = (struct pod *)(void *)memory;
    *copy = *pod;
    copy->namespace_name = pack(&end, pod->namespace_name);
    copy->name = pack(&end, pod->name);
    copy->uid = pack(&end, pod->uid);
    copy->node = pack(&end, pod->node);
    copy->job = pack(&end, pod->job);
    copy->group = pack(&end, pod->group);
    copy->owner_uid = pack(&end, pod->owner_uid);
    copy->claims = pack(&end, pod->claims);
    copy->message = pack(&end, pod->message);
    return copy;
}

static void unlink_pod(struct pod_table *table, struct pod **slot)
{
    struct pod *pod = *slot;
    *slot = pod->chain;
    if (pod->previous != NULL)
        pod->previous->next = pod->next;
    else
        table->first = pod->next;
    if (pod->next != NULL)
        pod->next->previous = pod->previous;
    table->count--;
    table->bytes -= pod_bytes(pod);
    xfree(pod);
}

void pods_put(struct pod_table *table, const struct json *object)
{
    struct pod fresh;
    AUTO_TEXT claims = {0};
    read_pod(object, &fresh);
    if (fresh.name[0] == '\0')
        return;
    read_claims(json_get(object, "spec"), &claims);
    fresh.claims = claims.bytes != NULL ? claims.bytes : "";
    fresh.key_hash = key_hash(fresh.namespace_name, fresh.name);
    if (fresh.kind != WORKLOAD_KIND_COUNT)
        fresh.job_hash = pods_job_hash(fresh.kind, fresh.namespace_name, fresh.job);
    struct pod **slot = find_slot(table, fresh.namespace_name, fresh.name);
    bool is_known = slot != NULL && strcmp((*slot)->uid, fresh.uid) == 0;
    fresh.seen = is_known ? (*slot)->seen : ++table->seen;
    if (slot != NULL)
        unlink_pod(table, slot);
    grow(table);
    struct pod *pod = pod_copy(&fresh);
    struct pod **bucket = &table->buckets[pod->key_hash & (table->bucket_count - 1)];
    pod->chain = *bucket;
    *bucket = pod;
    pod->next = table->first;
    if (pod->next != NULL)
        pod->next->previous = pod;
    table->first = pod;
    table->count++;
    table->bytes += pod_bytes(pod);
}

void pods_remove(struct pod_table *table, const char *namespace_name, const char *name)
{
    struct pod **slot = find_slot(table, namespace_name, name);
    if (slot != NULL)
        unlink_pod(table, slot);
}

void pods_done(struct pod_table *table)
{
    while (table->first != NULL) {
        struct pod *next = table->first->next;
        xfree(table->first);
        table->first = next;
    }
    xfree(table->buckets);
    *table = (struct pod_table){0};
}
