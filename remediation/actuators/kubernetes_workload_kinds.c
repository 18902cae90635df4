/* Members by name, after the public API types of each kind. What a version of them does not have
 * reads as its default.
 */
#include "remediation/actuators/kubernetes_workload_kinds.h"

#include "controller/kube/kube_client.h"
#include "remediation/actuators/kubernetes_argo.h"
#include "remediation/actuators/kubernetes_suspend.h"
#include "remediation/actuators/kubernetes_volcano.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char GPU[] = "nvidia.com/gpu";
enum { GROUPS_MAX = 256, PODS_MAX = 131072, NUMBER_MAX = 1000000000 };

/* --- small readers --- */

static const struct json *deep(const struct json *json, const char *first, const char *second)
{
    return json_get(json_get(json, first), second);
}

int32_t workload_read_count(const struct json *quantity)
{
    int64_t value = 0;
    if (json_kind(quantity) == JSON_NUMBER)
        value = json_int(quantity, 0);
    else if (!text_parse_int(view_of(json_string(quantity, "")), &value))
        return 0;
    return value < 0 || value > PODS_MAX ? 0 : (int32_t)value;
}

/* A counter of a status or a limit of a spec, kept in what arithmetic bears. */
static int64_t read_number(const struct json *object, const char *key, int64_t fallback)
{
    int64_t value = json_get_int(object, key, fallback);
    return value < -1 ? -1 : value > NUMBER_MAX ? NUMBER_MAX : value;
}

/* A count of pods: absent is `fallback`, nonsense 0. */
static int32_t read_pods(const struct json *object, const char *key, int32_t fallback)
{
    const struct json *count = json_get(object, key);
    return json_kind(count) == JSON_NULL ? fallback : workload_read_count(count);
}

static int32_t bounded_product(int32_t a, int32_t b)
{
    int64_t product = (int64_t)a * b;
    return product > PODS_MAX ? PODS_MAX : (int32_t)product;
}

int32_t workload_read_gpus(const struct json *pod_spec)
{
    int32_t gpus = 0;
    const struct json *container = json_first(json_get(pod_spec, "containers"));
    for (; container != NULL && gpus < PODS_MAX; container = json_next(container)) {
        const struct json *resources = json_get(container, "resources");
        const struct json *wanted = deep(resources, "limits", GPU);
        gpus += workload_read_count(wanted != NULL ? wanted : deep(resources, "requests", GPU));
    }
    return gpus;
}

/* The condition of a type, "True" only. */
static const struct json *condition(const struct json *object, const char *type)
{
    const struct json *one = json_first(deep(object, "status", "conditions"));
    for (; one != NULL; one = json_next(one))
        if (strcmp(json_get_string(one, "type", ""), type) == 0 &&
            strcmp(json_get_string(one, "status", ""), "True") == 0)
            return one;
    return NULL;
}

static bool says(const struct json *object, const char *type, enum workload_phase phase,
                 struct workload_item *item)
{
    if (condition(object, type) == NULL)
        return false;
    item->phase = phase;
    text_copy(item->said, sizeof item->said, type);
    return true;
}

/* --- groups of pods --- */

static void read_tolerations(const struct json *pod_spec, struct workload_group *group)
{
    AUTO_TEXT values = {0};
    const struct json *one = json_first(json_get(pod_spec, "tolerations"));
    for (; one != NULL; one = json_next(one)) {
        const char *key = json_get_string(one, "key", "");
        const char *effect = json_get_string(one, "effect", "");
        bool exists = strcmp(json_get_string(one, "operator", "Equal"), "Exists") == 0;
        if (effect[0] != '\0' && strcmp(effect, "NoSchedule") != 0)
            continue;
        if (exists && (key[0] == '\0' || strcmp(key, WORKLOAD_SPARE_TAINT) == 0))
            group->bears_any = true;
        else if (!exists && strcmp(key, WORKLOAD_SPARE_TAINT) == 0)
            text_addf(&values, "%s\n", json_get_string(one, "value", ""));
    }
    group->bears = text_take(&values);
}

/* Adds a group; pods are per_job times jobs. */
static void add_group(struct workload_item *item, const char *name, int32_t jobs, int32_t per_job,
                      const struct json *pod_spec)
{
    if (item->group_count >= GROUPS_MAX)
        return;
    item->groups = xrealloc(item->groups, item->group_count + 1, sizeof *item->groups);
    struct workload_group *group = &item->groups[item->group_count++];
    *group = (struct workload_group){.name = xstrdup(name),
                                     .pods = bounded_product(jobs, per_job),
                                     .per_job = per_job,
                                     .gpus = workload_read_gpus(pod_spec)};
    read_tolerations(pod_spec, group);
}

/* --- one reader a kind --- */

struct phase_row {
    const char *word;
    enum workload_phase phase;
};

static void look_up_phase(const struct phase_row *rows, size_t count, const char *word,
                          struct workload_item *item)
{
    text_copy(item->said, sizeof item->said, word);
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].word, word) == 0)
            item->phase = rows[i].phase;
}

static const struct phase_row VOLCANO_PHASES[] = {
    {"Pending", WORKLOAD_PENDING},       {"Running", WORKLOAD_RUNNING},
    {"Restarting", WORKLOAD_RESTARTING}, {"Completing", WORKLOAD_ENDING},
    {"Aborting", WORKLOAD_ENDING},       {"Terminating", WORKLOAD_ENDING},
    {"Aborted", WORKLOAD_FAILED},        {"Terminated", WORKLOAD_FAILED},
    {"Failed", WORKLOAD_FAILED},         {"Completed", WORKLOAD_FINISHED},
};

static bool is_about(const struct json *policy, const char *wanted)
{
    const struct json *event = json_first(json_get(policy, "events"));
    const char *word = json_get_string(policy, "event", "");
    for (;;) {
        if (strcmp(word, wanted) == 0 || strcmp(word, "*") == 0)
            return true;
        if (event == NULL)
            return false;
        word = json_string(event, "");
        event = json_next(event);
    }
}

/* What the first policy that fits does about an evicted pod; "" none. */
static const char *about_eviction(const struct json *policies)
{
    for (const struct json *one = json_first(policies); one != NULL; one = json_next(one))
        if (is_about(one, "PodEvicted"))
            return json_get_string(one, "action", "");
    return "";
}

/* Policies of the task go before those of the job. */
static bool restarts_by_partition(const struct json *task, const struct json *job_policies)
{
    const char *action = about_eviction(json_get(task, "policies"));
    if (action[0] == '\0')
        action = about_eviction(job_policies);
    return json_get(task, "partitionPolicy") != NULL && strcmp(action, "RestartPartition") == 0;
}

/* Tells of a policy that takes the job down for the loss of a pod. */
static void add_ending_policy(const struct json *policies, struct text *text)
{
    for (const struct json *one = json_first(policies); one != NULL; one = json_next(one)) {
        const char *action = json_get_string(one, "action", "");
        bool ends = strcmp(action, "TerminateJob") == 0 || strcmp(action, "AbortJob") == 0 ||
                    strcmp(action, "CompleteJob") == 0;
        if (ends && (is_about(one, "PodFailed") || is_about(one, "PodEvicted"))) {
            text_addf(text, "; by its policy %s it ends when a pod is lost", action);
            return;
        }
    }
}

/* RestartJob adds one to retryCount, and a job in Restarting whose retryCount has reached maxRetry
 * becomes Failed: it survives one restart less than maxRetry. Both members are absent at their
 * defaults. */
static void read_volcano(const struct json *object, struct workload_item *item)
{
    const struct json *spec = json_get(object, "spec");
    const struct json *status = json_get(object, "status");
    int64_t max = read_number(spec, "maxRetry", 3);
    look_up_phase(VOLCANO_PHASES, ARRAY_LEN(VOLCANO_PHASES),
                  json_get_string(json_get(status, "state"), "phase", ""), item);
    item->restarts = read_number(status, "retryCount", 0);
    item->restarts_max = max > 0 ? max - 1 : 0;
    AUTO_TEXT budget = {0};
    text_addf(&budget, "%" PRId64 " of its %" PRId64 " retries are used", item->restarts, max);
    add_ending_policy(json_get(spec, "policies"), &budget);
    const struct json *task = json_first(json_get(spec, "tasks"));
    for (; task != NULL; task = json_next(task)) {
        size_t before = item->group_count;
        add_group(item, json_get_string(task, "name", "default"), 1, read_pods(task, "replicas", 1),
                  deep(task, "template", "spec"));
        add_ending_policy(json_get(task, "policies"), &budget);
        if (item->group_count > before)
            item->groups[item->group_count - 1].by_partition = restarts_by_partition(
                task, json_get(spec, "policies"));
    }
    item->budget = text_take(&budget);
    if (item->restarts + 1 >= max) {
        char sentence[160];
        snprintf(sentence, sizeof sentence,
                 "a restart would end the job: %" PRId64 " of its %" PRId64
                 " retries are used, raise spec.maxRetry",
                 item->restarts, max);
        item->cannot_restart = xstrdup(sentence);
    }
}

/* Of a TrainJob's JobSet only the jobs of this step hold ranks; others fetch data and the model. */
static bool is_trainer(const struct json *replicated_job)
{
    const struct json *labels = deep(json_get(replicated_job, "template"), "metadata", "labels");
    const char *step = json_get_string(labels, "trainer.kubeflow.org/trainjob-ancestor-step", "");
    return strcmp(step, "trainer") == 0;
}

static bool has_trainer(const struct json *replicated_jobs)
{
    const struct json *job = json_first(replicated_jobs);
    while (job != NULL && !is_trainer(job))
        job = json_next(job);
    return job != NULL;
}

static void read_jobset(const struct json *object, struct workload_item *item)
{
    const struct json *spec = json_get(object, "spec");
    const struct json *status = json_get(object, "status");
    char budget[160];
    item->phase = WORKLOAD_RUNNING;
    if (!says(object, "Failed", WORKLOAD_FAILED, item))
        says(object, "Completed", WORKLOAD_FINISHED, item);
    item->restarts = read_number(status, "restarts", 0);
    snprintf(budget, sizeof budget,
             "%" PRId64 " of its %" PRId64 " restarts are used, none by suspend and resume",
             read_number(status, "restartsCountTowardsMax", 0),
             read_number(json_get(spec, "failurePolicy"), "maxRestarts", 0));
    item->budget = xstrdup(budget);
    const struct json *jobs = json_get(spec, "replicatedJobs");
    bool by_trainer = has_trainer(jobs);
    for (const struct json *job = json_first(jobs); job != NULL; job = json_next(job)) {
        const struct json *job_spec = deep(job, "template", "spec");
        if (by_trainer && !is_trainer(job))
            continue;
        int32_t parallelism = read_pods(job_spec, "parallelism", 1);
        add_group(item, json_get_string(job, "name", ""), read_pods(job, "replicas", 1),
                  read_pods(job_spec, "completions", parallelism),
                  deep(job_spec, "template", "spec"));
    }
}

static void read_job(const struct json *object, struct workload_item *item)
{
    const struct json *spec = json_get(object, "spec");
    char budget[160];
    item->phase = WORKLOAD_RUNNING;
    if (!says(object, "Failed", WORKLOAD_FAILED, item) &&
        !says(object, "FailureTarget", WORKLOAD_FAILED, item))
        says(object, "Complete", WORKLOAD_FINISHED, item);
    item->restarts = read_number(json_get(object, "status"), "failed", 0);
    snprintf(budget, sizeof budget,
             "%" PRId64 " pods have failed of the %" PRId64
             " that it may lose, none by suspend and resume",
             item->restarts, read_number(spec, "backoffLimit", 6));
    item->budget = xstrdup(budget);
    add_group(item, "", 1, read_pods(spec, "completions", read_pods(spec, "parallelism", 1)),
              deep(spec, "template", "spec"));
}

/* Keys of the spec are capitalised, the pods' label replica-type is not. */
static void add_replica_type(struct workload_item *item, const struct json *spec, const char *key,
                             const char *label)
{
    const struct json *replica = deep(spec, "pytorchReplicaSpecs", key);
    if (replica != NULL)
        add_group(item, label, 1, read_pods(replica, "replicas", 1),
                  deep(replica, "template", "spec"));
}

static void read_pytorchjob(const struct json *object, struct workload_item *item)
{
    const struct json *spec = json_get(object, "spec");
    int64_t failed = 0;
    char budget[160];
    item->phase = WORKLOAD_RUNNING;
    if (!says(object, "Failed", WORKLOAD_FAILED, item) &&
        !says(object, "Succeeded", WORKLOAD_FINISHED, item))
        says(object, "Restarting", WORKLOAD_RESTARTING, item);
    const struct json *one = json_first(deep(object, "status", "replicaStatuses"));
    for (; one != NULL; one = json_next(one))
        failed += read_number(one, "failed", 0);
    item->restarts = failed;
    snprintf(budget, sizeof budget, "%" PRId64 " pods have failed, backoffLimit %" PRId64, failed,
             read_number(json_get(spec, "runPolicy"), "backoffLimit", -1));
    item->budget = xstrdup(budget);
    add_replica_type(item, spec, "Master", "master");
    add_replica_type(item, spec, "Worker", "worker");
}

/* Its pods are those of the JobSet of its name. */
static void read_trainjob(const struct json *object, struct workload_item *item)
{
    item->phase = WORKLOAD_RUNNING;
    if (!says(object, "Failed", WORKLOAD_FAILED, item))
        says(object, "Complete", WORKLOAD_FINISHED, item);
    item->restarts = 0;
}

static void read_workflow(const struct json *object, struct workload_item *item)
{
    argo_read(object, item);
}

/* --- the table --- */

/* clang-format off */
const struct workload_kind WORKLOAD_KINDS[WORKLOAD_KIND_COUNT] = {
    [WORKLOAD_VOLCANO]    = {WORKLOAD_VOLCANO,    "volcano",    "batch.volcano.sh/v1alpha1",     "Job",        "jobs",        NULL,        false, read_volcano,    volcano_restart, volcano_poll},
    [WORKLOAD_JOBSET]     = {WORKLOAD_JOBSET,     "jobset",     "jobset.x-k8s.io/v1alpha2",      "JobSet",     "jobsets",     "",          true,  read_jobset,     suspend_restart, suspend_poll},
    [WORKLOAD_JOB]        = {WORKLOAD_JOB,        "job",        "batch/v1",                      "Job",        "jobs",        "",          true,  read_job,        suspend_restart, suspend_poll},
    [WORKLOAD_PYTORCHJOB] = {WORKLOAD_PYTORCHJOB, "pytorchjob", "kubeflow.org/v1",               "PyTorchJob", "pytorchjobs", "runPolicy", true,  read_pytorchjob, suspend_restart, suspend_poll},
    [WORKLOAD_TRAINJOB]   = {WORKLOAD_TRAINJOB,   "trainjob",   "trainer.kubeflow.org/v1alpha1", "TrainJob",   "trainjobs",   "",          true,  read_trainjob,   suspend_restart, suspend_poll},
    [WORKLOAD_WORKFLOW]   = {WORKLOAD_WORKFLOW,   "workflow",   "argoproj.io/v1alpha1",          "Workflow",   "workflows",   NULL,        true,  read_workflow,   argo_restart,    argo_poll},
};
/* clang-format on */

const struct workload_kind *workload_kind_find(const char *word)
{
    for (size_t i = 0; i < WORKLOAD_KIND_COUNT; i++)
        if (strcmp(WORKLOAD_KINDS[i].word, word) == 0)
            return &WORKLOAD_KINDS[i];
    return NULL;
}

/* --- objects --- */

static bool read_suspend(const struct workload_kind *kind, const struct json *object)
{
    const struct json *spec = json_get(object, "spec");
    if (kind->suspend_in == NULL)
        return false;
    return json_get_bool(kind->suspend_in[0] != '\0' ? json_get(spec, kind->suspend_in) : spec,
                         "suspend", false);
}

void workload_item_read(const struct workload_kind *kind, const struct json *object,
                        struct workload_item *ret_item)
{
    const struct json *metadata = json_get(object, "metadata");
    const struct json *notes = json_get(metadata, "annotations");
    int64_t ours = 0;
    *ret_item = (struct workload_item){
        .kind = kind,
        .namespace_name = xstrdup(json_get_string(metadata, "namespace", "")),
        .name = xstrdup(json_get_string(metadata, "name", "")),
        .uid = xstrdup(json_get_string(metadata, "uid", "")),
        .version = xstrdup(json_get_string(metadata, "resourceVersion", "")),
        .is_suspended = read_suspend(kind, object),
        .suspension_seen = condition(object, "Suspended") != NULL,
        .restarts = -1,
        .restarts_max = -1,
        .operation = xstrdup(json_get_string(notes, WORKLOAD_OPERATION, "")),
        .operation_state = xstrdup(json_get_string(notes, WORKLOAD_STATE, "")),
        .resumed = xstrdup(json_get_string(notes, WORKLOAD_RESUMED, "")),
        .checkpoint = xstrdup(json_get_string(notes, WORKLOAD_CHECKPOINT, "")),
    };
    if (text_parse_int(view_of(json_get_string(notes, WORKLOAD_RESTARTS, "")), &ours) && ours > 0 &&
        ours < NUMBER_MAX)
        ret_item->restarts_ours = ours;
    kind->read(object, ret_item);
    if (ret_item->cannot_restart == NULL)
        ret_item->cannot_restart = xstrdup("");
    if (ret_item->budget == NULL)
        ret_item->budget = xstrdup("");
}

void workload_item_done(struct workload_item *item)
{
    xfree(item->namespace_name);
    xfree(item->name);
    xfree(item->uid);
    xfree(item->version);
    xfree(item->operation);
    xfree(item->operation_state);
    xfree(item->resumed);
    xfree(item->checkpoint);
    xfree(item->cannot_restart);
    xfree(item->budget);
    for (size_t i = 0; i < item->group_count; i++) {
        xfree(item->groups[i].name);
        xfree(item->groups[i].bears);
    }
    xfree(item->groups);
    *item = (struct workload_item){0};
}

bool workload_item_is_final(const struct workload_item *item)
{
    return item->phase == WORKLOAD_FAILED || item->phase == WORKLOAD_FINISHED;
}

bool workload_item_is_ours_suspended(const struct workload_item *item)
{
    return item->is_suspended && item->operation[0] != '\0' &&
           strcmp(item->operation, item->resumed) != 0;
}

void workload_list_path(const struct workload_kind *kind, struct text *path)
{
    text_addf(path, "/apis/%s/%s", kind->api_version, kind->plural);
}

void workload_object_path(const struct workload_kind *kind, const char *namespace_name,
                          const char *name, struct text *path)
{
    text_addf(path, "/apis/%s/namespaces", kind->api_version);
    kube_path_add(path, namespace_name);
    kube_path_add(path, kind->plural);
    kube_path_add(path, name);
}
