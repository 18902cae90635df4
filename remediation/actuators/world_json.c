/* A node that does not say that it is ready is not; a job that does not name its phase is unknown.
 */
#include "remediation/actuators/world_json.h"

static struct world_node read_node(const struct json *node)
{
    return (struct world_node){.name = json_get_string(node, "name", ""),
                               .rack = json_get_string(node, "rack", NULL),
                               .nvlink_domain = json_get_string(node, "nvlink_domain", NULL),
                               .ready = json_get_bool(node, "ready", false),
                               .cordoned = json_get_bool(node, "cordoned", true),
                               .cordoned_by = json_get_string(node, "cordoned_by", NULL),
                               .spare = json_get_bool(node, "spare", false),
                               .promised_to = json_get_string(node, "promised_to", NULL),
                               .fenced_by = json_get_string(node, "fenced_by", NULL),
                               .uncordoned_by = json_get_string(node, "uncordoned_by", NULL),
                               .gpus_allocatable = (int32_t)json_get_int(node, "gpus", 0)};
}

/* The strings are borrowed, the array is the caller's; NULL for an empty or a missing one. */
static const char *const *read_names(const struct json *names)
{
    size_t count = json_size(names), i = 0;
    const char **texts = count > 0 ? xcalloc(count, sizeof *texts) : NULL;
    for (const struct json *name = json_first(names); name != NULL; name = json_next(name))
        texts[i++] = json_string(name, "");
    return texts;
}

static struct world_job read_job(const struct json *job)
{
    const struct json *rank_nodes = json_get(job, "rank_nodes");
    const struct json *stuck_nodes = json_get(job, "stuck_nodes");
    return (struct world_job){.name = json_get_string(job, "name", ""),
                              .uid = json_get_string(job, "uid", ""),
                              .phase = json_get_string(job, "phase", "unknown"),
                              .restarts = json_get_int(job, "restarts", -1),
                              .restarts_max = json_get_int(job, "restarts_max", -1),
                              .checkpoint_step = json_get_int(job, "checkpoint_step", -1),
                              .checkpoint_time_ns = json_get_int(job, "checkpoint_time_ns", 0),
                              .rank_nodes = read_names(rank_nodes),
                              .rank_count = (int32_t)json_size(rank_nodes),
                              .waiting_for = json_get_string(job, "waiting_for", NULL),
                              .restart_refusal = json_get_string(job, "restart_refusal", NULL),
                              .made_anew = json_get_string(job, "made_anew", NULL),
                              .stuck_nodes = read_names(stuck_nodes),
                              .stuck_count = json_size(stuck_nodes)};
}

static void tell_known(const struct json *root, world_done_fn *done, void *context)
{
    const struct json *nodes = json_get(root, "nodes");
    const struct json *jobs = json_get(root, "jobs");
    struct world_node *all_nodes = xcalloc(json_size(nodes), sizeof *all_nodes);
    struct world_job *all_jobs = xcalloc(json_size(jobs) + 1, sizeof *all_jobs);
    struct world world = {.known = true, .nodes = all_nodes, .jobs = all_jobs};
    for (const struct json *node = json_first(nodes); node != NULL; node = json_next(node))
        all_nodes[world.node_count++] = read_node(node);
    for (const struct json *job = json_first(jobs); job != NULL; job = json_next(job))
        all_jobs[world.job_count++] = read_job(job);
    done(context, &world);
    for (size_t i = 0; i < world.job_count; i++) {
        xfree(all_jobs[i].rank_nodes);
        xfree(all_jobs[i].stuck_nodes);
    }
    xfree(all_nodes);
    xfree(all_jobs);
}

void world_json_tell(const struct json *root, const char *why_unknown, world_done_fn *done,
                     void *context)
{
    if (why_unknown == NULL && json_size(json_get(root, "nodes")) > 0) {
        tell_known(root, done, context);
        return;
    }
    struct world world = {.reason = why_unknown != NULL ? why_unknown
                                                        : "the cluster named no nodes"};
    done(context, &world);
}
