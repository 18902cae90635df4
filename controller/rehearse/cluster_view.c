/* The cluster as others see it: its world, its job document, its log. */
#include "controller/rehearse/cluster_inside.h"
#include "controller/topology/job_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static const char *const PHASE_NAMES[CLUSTER_JOB_PHASE_COUNT] = {
    [CLUSTER_JOB_PENDING] = "pending",
    [CLUSTER_JOB_RUNNING] = "running",
    [CLUSTER_JOB_RESTARTING] = "restarting",
    [CLUSTER_JOB_FAILED] = "failed",
};

const char *cluster_phase_name(enum cluster_job_phase phase)
{
    assert(phase < CLUSTER_JOB_PHASE_COUNT);
    return PHASE_NAMES[phase];
}

static const char *uid_of(const struct cluster *cluster, char buffer[40])
{
    snprintf(buffer, 40, "rehearsal-%" PRIu64, cluster->config.model.seed);
    return buffer;
}

static void write_node(const struct cluster *cluster, int32_t tray, struct json_writer *writer)
{
    const struct cluster_node *node = &cluster->nodes[tray];
    int32_t rack = model_rack_of(cluster->model, tray);
    char domain[64];
    snprintf(domain, sizeof domain, "%s.0", model_rack_name(cluster->model, rack));
    json_open_object(writer);
    json_put_string(writer, "name", model_tray_name(cluster->model, tray));
    json_put_string(writer, "rack", model_rack_name(cluster->model, rack));
    json_put_string(writer, "nvlink_domain", domain);
    json_put_bool(writer, "ready", node->ready);
    json_put_bool(writer, "cordoned", node->cordoned_by[0] != '\0');
    json_put_string(writer, "cordoned_by", node->cordoned_by[0] != '\0' ? node->cordoned_by : NULL);
    json_put_bool(writer, "spare", node->spare);
    json_put_string(writer, "promised_to", node->promised_to[0] != '\0' ? node->promised_to : NULL);
    json_put_int(writer, "gpus", node->ready ? cluster->config.model.gpus : 0);
    json_close(writer);
}

static void write_world_job(const struct cluster *cluster, struct json_writer *writer)
{
    const struct model_config *config = &cluster->config.model;
    struct model_info info = model_info(cluster->model);
    int32_t world = config->racks * config->trays_used * config->gpus;
    char uid[40];
    json_open_object(writer);
    json_put_string(writer, "name", config->job);
    json_put_string(writer, "uid", uid_of(cluster, uid));
    json_put_string(writer, "phase", cluster_phase_name(cluster->phase));
    json_put_int(writer, "restarts", cluster->restarts);
    json_put_int(writer, "restarts_max", cluster->config.restarts_max);
    json_put_int(writer, "checkpoint_step", info.checkpoint_step);
    json_put_int(writer, "checkpoint_time_ns", info.checkpoint_ns);
    json_put_int(writer, "last_step", info.last_step);
    json_put_rounded(writer, "last_step_ms", info.last_step_ms, 6);
    json_put_int(writer, "attempt", info.attempt);
    json_put_int(writer, "steps_done", info.steps_done);
    json_add_key(writer, "rank_nodes");
    json_open_array(writer);
    for (int32_t r = 0; r < world; r++)
        json_add_string(writer,
                        model_tray_name(cluster->model, model_tray_of_rank(cluster->model, r)));
    json_close(writer);
    json_close(writer);
}

void cluster_write_world(const struct cluster *cluster, struct json_writer *writer)
{
    json_open_object(writer);
    json_put_int(writer, "now_ns", cluster->now_ns);
    json_add_key(writer, "nodes");
    json_open_array(writer);
    for (int32_t t = 0; t < cluster->node_count; t++)
        if (!cluster->nodes[t].hidden)
            write_node(cluster, t, writer);
    json_close(writer);
    json_add_key(writer, "jobs");
    json_open_array(writer);
    if (cluster->started_ns > 0)
        write_world_job(cluster, writer);
    json_close(writer);
    json_close(writer);
}

/* Hidden trays are not in the inventory: the model's job without them. */
static struct job *visible_job(const struct cluster *cluster)
{
    AUTO(job_free) struct job *all = model_job(cluster->model);
    struct job *job = job_new(all->name, all->world_size);
    int32_t *tray_of = xcalloc((size_t)cluster->node_count, sizeof *tray_of);
    for (int d = 0; d < DIMENSION_COUNT; d++) {
        job->size[d] = all->size[d];
        job->order[d] = all->order[d];
    }
    job->compute = all->compute;
    job->checkpoint_step = all->checkpoint_step;
    job->checkpoint_time_ns = all->checkpoint_time_ns;
    for (int32_t t = 0; t < cluster->node_count; t++) {
        const struct job_rack *rack = &all->racks[all->trays[t].rack];
        if (!cluster->nodes[t].hidden)
            tray_of[t] = job_intern_tray(job, all->trays[t].node,
                                         job_intern_rack(job, rack->name, rack->nvlink_domain));
    }
    for (int32_t r = 0; r < all->world_size; r++) {
        job->ranks[r] = all->ranks[r];
        job->ranks[r].tray = tray_of[all->ranks[r].tray];
    }
    xfree(tray_of);
    return job;
}

void cluster_write_job(const struct cluster *cluster, struct text *out)
{
    AUTO(job_free) struct job *job = visible_job(cluster);
    AUTO_TEXT workload = {0};
    struct json_writer writer = json_writer(&workload);
    char uid[40];
    json_open_object(&writer);
    json_put_string(&writer, "kind", "volcano");
    json_put_string(&writer, "namespace", "default");
    json_put_string(&writer, "name", "rehearsal");
    json_put_string(&writer, "uid", uid_of(cluster, uid));
    json_close(&writer);
    job->workload_json = xstrdup(workload.bytes);
    struct json_writer document = json_writer(out);
    job_file_write(job, &document);
}

/* --- the log
 * ----------------------------------------------------------------------------------------- */

static struct json_writer open_line(struct cluster *cluster, const char *what)
{
    struct json_writer writer = json_writer(&cluster->log);
    json_open_object(&writer);
    json_put_int(&writer, "time_ns", cluster->now_ns);
    json_put_time(&writer, "time", cluster->now_ns);
    json_put_string(&writer, "what", what);
    return writer;
}

static void close_line(struct cluster *cluster, struct json_writer *writer)
{
    json_close(writer);
    text_add(&cluster->log, "\n");
}

void cluster_log_node(struct cluster *cluster, const char *what, int32_t tray)
{
    struct json_writer writer = open_line(cluster, what);
    json_put_string(&writer, "node", model_tray_name(cluster->model, tray));
    close_line(cluster, &writer);
}

void cluster_log_job(struct cluster *cluster, const char *what, int64_t step)
{
    struct json_writer writer = open_line(cluster, what);
    json_put_string(&writer, "job", cluster->config.model.job);
    json_put_int(&writer, "step", step);
    json_put_int(&writer, "restarts", cluster->restarts);
    close_line(cluster, &writer);
}

static void put_copy(struct json_writer *writer, const char *key, const struct json *value)
{
    AUTO_TEXT copy = {0};
    if (value == NULL)
        return;
    json_print(value, &copy);
    json_add_key(writer, key);
    json_add_raw(writer, (struct view){copy.bytes, copy.length});
}

void cluster_log_operation(struct cluster *cluster, const struct cluster_operation *operation,
                           const struct json *body, bool repeated)
{
    struct json_writer writer = open_line(cluster, body != NULL ? "operation" : "operation_ended");
    json_put_string(&writer, "id", operation->id);
    json_put_string(&writer, "verb", verb_name(operation->verb));
    put_copy(&writer, "incident", json_get(body, "incident"));
    put_copy(&writer, "nodes", json_get(body, "nodes"));
    put_copy(&writer, "spares", json_get(body, "spares"));
    json_put_string(&writer, "outcome",
                    operation->running ? NULL : outcome_name(operation->outcome));
    json_put_string(&writer, "reason", operation->reason);
    json_put_bool(&writer, "repeated", repeated);
    close_line(cluster, &writer);
}

struct view cluster_log(const struct cluster *cluster)
{
    return (struct view){cluster->log.bytes, cluster->log.length};
}
