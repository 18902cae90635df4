/* A workload and its pods -> struct world_job: phase, ranks, and in one sentence what it waits for.
 */
#include "controller/sys/clock.h"
#include "remediation/actuators/kubernetes_nodes.h"
#include "remediation/actuators/kubernetes_ranks.h"
#include "remediation/actuators/kubernetes_workload_call.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_SHOWN = 160 };
static const int64_t MINUTE_NS = INT64_C(60000000000);
static const int64_t OVERDUE_NS = INT64_C(5000000000); /* a kubelet's report takes a moment */

/* What is gathered about one job. */
struct scene {
    struct workloads *workloads;
    const struct workload_item *item, *groups;
    const struct pod **pods;
    size_t pod_count;
    size_t expected, running, terminating;
    bool with_gpus; /* pods without one do not count */
};

/* --- what is lent until the next description --- */

static void *keep(struct workloads *workloads, void *memory)
{
    workloads->kept = array_grow(workloads->kept, workloads->kept_count, &workloads->kept_capacity,
                                 sizeof(void *));
    workloads->kept[workloads->kept_count++] = memory;
    return memory;
}

static const char *keep_text(struct workloads *workloads, struct text *text)
{
    return keep(workloads, text_take(text));
}

static const char *keep_copy(struct workloads *workloads, const char *text)
{
    return keep(workloads, xstrdup(text));
}

void workloads_describe_begin(struct workloads *workloads)
{
    for (size_t i = 0; i < workloads->kept_count; i++)
        xfree(workloads->kept[i]);
    workloads->kept_count = 0;
}

/* --- the pods of the scene --- */

static bool is_live(const struct pod *pod)
{
    return pod->deleted_ns == 0 && !pod->has_ended;
}

static bool is_overdue(const struct pod *pod, int64_t now_ns)
{
    return pod->deleted_ns != 0 && now_ns > pod->deleted_ns + OVERDUE_NS;
}

/* Helpers without a GPU (a data set's loader that has ended) do not keep a job from running. */
static void count_pods(struct scene *scene)
{
    size_t all = 0;
    for (size_t i = 0; scene->groups != NULL && i < scene->groups->group_count; i++) {
        const struct workload_group *group = &scene->groups->groups[i];
        all += (size_t)group->pods;
        scene->expected += group->gpus > 0 ? (size_t)group->pods : 0;
    }
    scene->with_gpus = scene->expected > 0;
    if (!scene->with_gpus)
        scene->expected = all;
    for (size_t i = 0; i < scene->pod_count; i++) {
        const struct pod *pod = scene->pods[i];
        bool counts = pod->gpus > 0 || !scene->with_gpus;
        scene->running += counts && is_live(pod) && pod->is_running;
        scene->terminating += pod->deleted_ns != 0;
    }
}

/* Index of the pod inside its group, and of its group; false when it names no group of the spec. */
static bool place_of(const struct workload_item *groups, const struct pod *pod,
                     struct rank_pod *ret_place)
{
    for (size_t i = 0; i < groups->group_count; i++) {
        const struct workload_group *group = &groups->groups[i];
        if (strcmp(group->name, pod->group) != 0)
            continue;
        int64_t index = pod->index;
        if (index < 0 && group->per_job == 1)
            index = 0;
        bool is_nested = pod->kind == WORKLOAD_JOBSET;
        if (is_nested && pod->outer_index > 0 && index >= 0)
            index += (int64_t)pod->outer_index * group->per_job;
        *ret_place = (struct rank_pod){i, index > INT32_MAX ? -1 : (int32_t)index, pod->node};
        return true;
    }
    return false;
}

static void tell_ranks(const struct scene *scene, const struct job_question *question,
                       struct world_job *ret_job)
{
    const struct workload_item *item = scene->groups;
    if (item == NULL || item->group_count == 0)
        return;
    AUTO_FREE struct rank_group *groups = xcalloc(item->group_count, sizeof *groups);
    AUTO_FREE struct rank_pod *places = xcalloc(scene->pod_count + 1, sizeof *places);
    size_t count = 0;
    for (size_t i = 0; i < item->group_count; i++)
        groups[i] = (struct rank_group){item->groups[i].pods, item->groups[i].gpus};
    for (size_t i = 0; i < scene->pod_count; i++) {
        const struct pod *pod = scene->pods[i];
        if (is_live(pod) && pod->node[0] != '\0' && place_of(item, pod, &places[count]))
            count++;
    }
    struct rank_question asked = {groups, item->group_count,    places,
                                  count,  question->world_size, question->gpus_per_node};
    const char **nodes = ranks_find_nodes(&asked, &ret_job->rank_count);
    if (nodes == NULL)
        return;
    keep(scene->workloads, nodes);
    /* One copy a node, as neighbours share it. */
    const char *last = NULL, *copy = NULL;
    for (int32_t i = 0; i < ret_job->rank_count; i++) {
        if (nodes[i] == NULL)
            continue;
        if (last == NULL || strcmp(last, nodes[i]) != 0) {
            last = nodes[i];
            copy = keep_copy(scene->workloads, last);
        }
        nodes[i] = copy;
    }
    ret_job->rank_nodes = nodes;
}

static bool is_down(const struct scene *scene, const char *node)
{
    return node[0] != '\0' && !node_cache_is_ready(scene->workloads->nodes, node);
}

static void tell_stuck(const struct scene *scene, struct world_job *ret_job)
{
    const char **stuck = xcalloc(scene->pod_count + 1, sizeof *stuck);
    size_t count = 0;
    int64_t now_ns = clock_now_ns();
    keep(scene->workloads, stuck);
    for (size_t i = 0; i < scene->pod_count; i++) {
        const struct pod *pod = scene->pods[i];
        bool told = false;
        for (size_t k = 0; k < count; k++)
            told = told || strcmp(stuck[k], pod->node) == 0;
        if (!told && is_overdue(pod, now_ns) && is_down(scene, pod->node))
            stuck[count++] = keep_copy(scene->workloads, pod->node);
    }
    ret_job->stuck_nodes = stuck;
    ret_job->stuck_count = count;
}

/* --- whether its pods are of one start --- */

struct gang {
    size_t before, anew;
    uint64_t newest;
    const struct pod *first; /* of those made anew, by name */
};

/* Helpers without a GPU come and go. */
static struct gang count_gang(const struct scene *scene)
{
    struct gang gang = {0};
    for (size_t i = 0; i < scene->pod_count; i++) {
        const struct pod *pod = scene->pods[i];
        if (!is_live(pod) || (scene->with_gpus && pod->gpus == 0))
            continue;
        gang.newest = pod->seen > gang.newest ? pod->seen : gang.newest;
        if (pod->seen <= scene->item->gang_seen) {
            gang.before++;
            continue;
        }
        gang.anew++;
        if (gang.first == NULL || strcmp(pod->name, gang.first->name) < 0)
            gang.first = pod;
    }
    return gang;
}

/* A controller that replaces one pod and lets the others run leaves a gang of two starts, which
 * wait for each other. The steps of a workflow are no gang. */
static const char *find_made_anew(const struct scene *scene, const char *phase)
{
    const struct workload_item *item = scene->item;
    bool is_gang = scene->expected > 1 && item->kind->id != WORKLOAD_WORKFLOW;
    bool stands = strcmp(phase, "running") == 0 || strcmp(phase, "pending") == 0;
    if (!is_gang || !stands || item->is_suspended)
        return NULL;
    struct gang gang = count_gang(scene);
    bool is_mixed = gang.before > 0 && gang.anew > 0;
    if (!is_mixed) {
        if (gang.anew > 0 && scene->running >= scene->expected)
            workloads_note_gang(scene->workloads, item, gang.newest);
        return NULL;
    }
    AUTO_TEXT text = {0};
    text_addf(&text, "%zu of its %zu pods %s made anew alone: %s", gang.anew,
              gang.before + gang.anew, gang.anew == 1 ? "was" : "were", gang.first->name);
    if (gang.anew > 1)
        text_addf(&text, " and %zu more", gang.anew - 1);
    return keep_text(scene->workloads, &text);
}

/* --- what it waits for --- */

/* The first line of what a scheduler says, cut. */
static void add_message(struct text *text, const char *message)
{
    size_t length = strcspn(message, "\n");
    bool cut = length > MESSAGE_SHOWN;
    text_add_bytes(text, message, cut ? MESSAGE_SHOWN : length);
    if (cut)
        text_add(text, "...");
}

static bool wait_for_end(const struct scene *scene, struct text *text)
{
    const struct pod *oldest = NULL;
    size_t others = 0;
    for (size_t i = 0; i < scene->pod_count; i++) {
        const struct pod *pod = scene->pods[i];
        if (pod->deleted_ns == 0)
            continue;
        others++;
        if (oldest == NULL || pod->deleted_ns < oldest->deleted_ns)
            oldest = pod;
    }
    if (oldest == NULL)
        return false;
    int64_t overdue_ns = clock_now_ns() - oldest->deleted_ns;
    text_addf(text, "pod %s to end on node %s", oldest->name,
              oldest->node[0] != '\0' ? oldest->node : "(none)");
    if (others > 1)
        text_addf(text, ", and %zu more", others - 1);
    if (oldest->deleted_ns > 1 && overdue_ns > OVERDUE_NS) {
        text_add(text, ": overdue");
        if (overdue_ns >= MINUTE_NS) { /* not every second a new sentence */
            text_add(text, " by ");
            text_add_duration(text, overdue_ns / MINUTE_NS * MINUTE_NS);
        }
        if (is_down(scene, oldest->node))
            text_add(text, ", the node is not ready");
    }
    return true;
}

static bool wait_for_place(const struct scene *scene, struct text *text)
{
    const struct pod *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < scene->pod_count; i++) {
        const struct pod *pod = scene->pods[i];
        if (!is_live(pod) || pod->node[0] != '\0')
            continue;
        count++;
        bool better = first == NULL || (first->message[0] == '\0' && pod->message[0] != '\0');
        if (better || (pod->message[0] != '\0' && strcmp(pod->name, first->name) < 0))
            first = pod;
    }
    if (first == NULL)
        return false;
    text_addf(text, "pod %s to be placed", first->name);
    if (count > 1)
        text_addf(text, ", and %zu more", count - 1);
    if (first->message[0] != '\0') {
        text_add(text, ": ");
        add_message(text, first->message);
    }
    return true;
}

/* A tray that has not joined the domain of its pod, or is not ready there. */
static bool wait_for_domain(const struct scene *scene, struct text *text)
{
    const struct pod *first = NULL;
    const struct domain *of = NULL;
    size_t count = 0;
    for (size_t i = 0; i < scene->pod_count; i++) {
        const struct pod *pod = scene->pods[i];
        if (!is_live(pod) || pod->node[0] == '\0')
            continue;
        const struct domain *domain = domains_find(scene->workloads->domains, pod);
        if (domain == NULL || domain_has_ready(domain, pod->node))
            continue;
        count++;
        if (first == NULL || strcmp(pod->node, first->node) < 0) {
            first = pod;
            of = domain;
        }
    }
    if (first == NULL)
        return false;
    text_addf(text, "tray %s to be ready in ComputeDomain %s/%s", first->node, of->namespace_name,
              of->name);
    if (count > 1)
        text_addf(text, ", and %zu more", count - 1);
    return true;
}

/* One that says why goes before one that only takes its time, which is left out where is_told. */
static bool wait_for_start(const struct scene *scene, bool is_told, struct text *text)
{
    const struct pod *first = NULL;
    for (size_t i = 0; i < scene->pod_count; i++) {
        const struct pod *pod = scene->pods[i];
        if (!is_live(pod) || pod->is_running || pod->node[0] == '\0')
            continue;
        if (first == NULL || (first->message[0] == '\0' && pod->message[0] != '\0'))
            first = pod;
    }
    if (first == NULL || (is_told && first->message[0] == '\0'))
        return false;
    text_addf(text, "pod %s to start on node %s", first->name, first->node);
    if (first->message[0] != '\0') {
        text_add(text, ": ");
        add_message(text, first->message);
    }
    return true;
}

static bool wait_for_resume(const struct scene *scene, struct text *text)
{
    if (!scene->item->is_suspended)
        return false;
    if (!workload_item_is_ours_suspended(scene->item))
        text_add(text, "somebody to resume it: it is suspended, and not by broomd");
    else
        text_addf(text, "operation %s to resume it", scene->item->operation);
    return true;
}

static bool wait_for_controller(const struct scene *scene, struct text *text)
{
    if (scene->expected == 0 || scene->running >= scene->expected)
        return false;
    text_addf(text, "%zu of its %zu pods to be made", scene->expected - scene->running,
              scene->expected);
    return true;
}

/* What the restart of it that is under way here waits for. */
static bool wait_for_call(const struct scene *scene, struct text *text)
{
    const struct work_call *call = work_call_find_of(scene->workloads, scene->item);
    if (call == NULL || call->waits_for[0] == '\0')
        return false;
    text_add(text, call->waits_for);
    return true;
}

/* The first thing that keeps a job from running. */
static const char *find_wait(const struct scene *scene, const char *phase)
{
    AUTO_TEXT text = {0};
    bool ends = strcmp(phase, "failed") == 0 || strcmp(phase, "finished") == 0;
    if (ends)
        return NULL;
    bool waits = wait_for_end(scene, &text) || wait_for_resume(scene, &text) ||
                 wait_for_place(scene, &text) || wait_for_domain(scene, &text) ||
                 wait_for_start(scene, true, &text) || wait_for_call(scene, &text);
    if (!waits && strcmp(phase, "running") != 0)
        waits = wait_for_start(scene, false, &text) || wait_for_controller(scene, &text);
    return waits ? keep_text(scene->workloads, &text) : NULL;
}

/* --- phase --- */

static const char *phase_by_pods(const struct scene *scene)
{
    size_t expected = scene->expected > 0 ? scene->expected : 1;
    if (scene->running >= expected)
        return "running";
    return scene->terminating > 0 ? "restarting" : "pending";
}

static const char *find_phase(const struct scene *scene)
{
    const struct workload_item *item = scene->item;
    AUTO_TEXT ignored = {0};
    if (!workload_item_is_final(item) && item->is_suspended)
        return workload_item_is_ours_suspended(item) ? "restarting" : "pending";
    switch (item->phase) {
    case WORKLOAD_PENDING:
        return "pending";
    case WORKLOAD_RESTARTING:
        return "restarting";
    case WORKLOAD_ENDING:
    case WORKLOAD_FAILED:
        return "failed";
    case WORKLOAD_FINISHED:
        return "finished";
    case WORKLOAD_RUNNING:
        break;
    }
    const char *phase = item->kind->pods_tell ? phase_by_pods(scene) : "running";
    bool waits = strcmp(phase, "running") == 0 && wait_for_domain(scene, &ignored);
    return waits ? "pending" : phase;
}

/* --- refusals --- */

static const char *find_refusal(const struct scene *scene)
{
    const struct workload_item *item = scene->item;
    AUTO_TEXT text = {0};
    if (workload_item_is_final(item) || item->phase == WORKLOAD_ENDING)
        text_addf(&text, "%s %s/%s is %s, no restart leads out of that", item->kind->kind,
                  item->namespace_name, item->name, item->said);
    else if (item->is_suspended && !workload_item_is_ours_suspended(item))
        text_addf(&text, "%s %s/%s is suspended by somebody: not ours to resume", item->kind->kind,
                  item->namespace_name, item->name);
    else if (item->cannot_restart[0] != '\0')
        text_add(&text, item->cannot_restart);
    else
        return NULL;
    return keep_text(scene->workloads, &text);
}

/* --- one job --- */

static void tell_unknown(struct workloads *workloads, struct world_job *ret_job,
                         const char *refusal, const char *format, ...) PRINTF_LIKE(4, 5);

static void tell_unknown(struct workloads *workloads, struct world_job *ret_job,
                         const char *refusal, const char *format, ...)
{
    AUTO_TEXT text = {0};
    va_list args;
    va_start(args, format);
    text_addv(&text, format, args);
    va_end(args);
    ret_job->waiting_for = keep_text(workloads, &text);
    ret_job->restart_refusal = refusal;
}

static void tell_scene(struct scene *scene, const struct job_question *question,
                       struct world_job *ret_job)
{
    const struct workload_item *item = scene->item;
    count_pods(scene);
    ret_job->uid = keep_copy(scene->workloads, item->uid);
    ret_job->phase = find_phase(scene);
    ret_job->restarts = item->restarts < 0 ? -1 : item->restarts + item->restarts_ours;
    ret_job->restarts_max = item->restarts_max;
    ret_job->waiting_for = find_wait(scene, ret_job->phase);
    ret_job->made_anew = find_made_anew(scene, ret_job->phase);
    ret_job->restart_refusal = find_refusal(scene);
    tell_ranks(scene, question, ret_job);
    tell_stuck(scene, ret_job);
}

void workloads_describe(struct workloads *workloads, const struct job_question *question,
                        struct world_job *ret_job)
{
    struct work_ref ref;
    struct error error = {0};
    const char *reason = NULL;
    *ret_job = (struct world_job){.name = keep_copy(workloads, question->job),
                                  .uid = "",
                                  .phase = "unknown",
                                  .restarts = -1,
                                  .restarts_max = -1,
                                  .checkpoint_step = -1};
    if (work_ref_read(question->workload_json, &ref, &error) != OK) {
        tell_unknown(workloads, ret_job, keep_copy(workloads, error.message), "%s", error.message);
        return;
    }
    if (!workloads_pods_are_synced(workloads, &reason) ||
        !workloads_kind_is_synced(workloads, ref.kind, &reason)) {
        tell_unknown(workloads, ret_job, NULL, "%s to be read: %s", ref.kind->plural,
                     reason != NULL ? reason : "not yet");
        return;
    }
    const struct workload_item *item = workloads_find(workloads, &ref);
    if (item == NULL) {
        tell_unknown(workloads, ret_job, "its workload is not in the cluster",
                     "%s %s/%s to exist: the cluster has none of that name", ref.kind->kind,
                     ref.namespace_name, ref.name);
        return;
    }
    struct scene scene = {.workloads = workloads, .item = item};
    AUTO_FREE const struct pod **pods = workloads_pods_of(workloads, item, &scene.pod_count);
    scene.pods = pods;
    scene.groups = workloads_find_groups(workloads, item);
    tell_scene(&scene, question, ret_job);
}
