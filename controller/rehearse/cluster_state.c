/* Time passes in the cluster: nodes die, the job is restarted, the controller of nodes notices. */
#include "controller/rehearse/cluster_inside.h"

#include <assert.h>
#include <string.h>

struct cluster_config cluster_config_default(void)
{
    return (struct cluster_config){.model = model_config_default(),
                                   .grace_ns = INT64_C(40000000000),
                                   .restart_ns = INT64_C(90000000000),
                                   .restarts_max = 3};
}

struct cluster *cluster_new(const struct cluster_config *config)
{
    struct cluster *cluster = xcalloc(1, sizeof *cluster);
    cluster->config = *config;
    cluster->config.model.job = cluster->job_name = xstrdup(config->model.job);
    cluster->model = model_new(&config->model);
    cluster->node_count = model_tray_count(cluster->model);
    cluster->nodes = xcalloc((size_t)cluster->node_count, sizeof *cluster->nodes);
    cluster->logged_checkpoint = -1;
    for (int32_t t = 0; t < cluster->node_count; t++) {
        cluster->nodes[t].ready = true;
        cluster->nodes[t].spare = !model_tray_has_ranks(cluster->model, t);
    }
    for (int32_t i = 0; i < config->hidden_count; i++)
        cluster->nodes[config->hidden[i]].hidden = true;
    return cluster;
}

void cluster_free(struct cluster *cluster)
{
    if (cluster == NULL)
        return;
    model_free(cluster->model);
    xfree(cluster->job_name);
    xfree(cluster->nodes);
    xfree(cluster->operations);
    text_done(&cluster->log);
    xfree(cluster);
}

struct model *cluster_model(struct cluster *cluster)
{
    return cluster->model;
}

int64_t cluster_now_ns(const struct cluster *cluster)
{
    return cluster->now_ns;
}

int32_t cluster_find_node(const struct cluster *cluster, const char *name)
{
    for (int32_t t = 0; t < cluster->node_count; t++)
        if (!cluster->nodes[t].hidden && strcmp(model_tray_name(cluster->model, t), name) == 0)
            return t;
    return -1;
}

void cluster_start(struct cluster *cluster, int64_t now_ns)
{
    assert(cluster->started_ns == 0);
    cluster->started_ns = cluster->now_ns = now_ns;
    cluster->phase = CLUSTER_JOB_RUNNING;
    cluster_log_job(cluster, "job_started", 0);
    model_start(cluster->model, now_ns, 0);
}

static void tell_event(struct cluster *cluster, int32_t tray, const char *kind, model_sample_fn *fn,
                       void *context)
{
    struct sample sample = {.measurement = MEASUREMENT_EVENT,
                            .rank = RANK_NONE,
                            .time_ns = cluster->now_ns,
                            .kind = view_of(kind),
                            .host = view_of(model_tray_name(cluster->model, tray))};
    cluster_log_node(cluster, kind, tray);
    fn(context, &sample);
}

static void set_ready(struct cluster *cluster, int32_t tray, bool ready, model_sample_fn *fn,
                      void *context)
{
    struct cluster_node *node = &cluster->nodes[tray];
    if (node->ready == ready)
        return;
    node->ready = ready;
    tell_event(cluster, tray, ready ? "node_ready" : "node_not_ready", fn, context);
}

/* Deaths are seen when heartbeats have been missing for the grace time, node by node. */
static void watch_nodes(struct cluster *cluster, model_sample_fn *fn, void *context)
{
    for (int32_t t = 0; t < cluster->node_count; t++) {
        struct cluster_node *node = &cluster->nodes[t];
        if (model_tray_is_dead(cluster->model, t) && node->died_ns == 0) {
            node->died_ns = cluster->now_ns;
            if (cluster->first_death_ns == 0)
                cluster->first_death_ns = cluster->now_ns;
            cluster_log_node(cluster, "tray_died", t);
        }
        if (node->died_ns > 0 && cluster->now_ns - node->died_ns >= cluster->config.grace_ns)
            set_ready(cluster, t, false, fn, context);
        if (node->blip_until_ns > 0 && cluster->now_ns >= node->blip_until_ns &&
            node->died_ns == 0) {
            node->blip_until_ns = 0;
            set_ready(cluster, t, true, fn, context);
        }
    }
}

static void let_happen(struct cluster *cluster, model_sample_fn *fn, void *context)
{
    for (int32_t i = 0; i < cluster->config.happening_count; i++) {
        struct cluster_happening *happening = &cluster->config.happenings[i];
        int64_t from_ns = happening->after_fault ? cluster->first_death_ns : cluster->started_ns;
        if (happening->after_ns < 0 || from_ns == 0 ||
            cluster->now_ns - from_ns < happening->after_ns)
            continue;
        happening->after_ns = -1;
        struct cluster_node *node = &cluster->nodes[happening->tray];
        if (happening->kind == NODE_APPEARS) {
            node->hidden = false;
            cluster_log_node(cluster, "node_appeared", happening->tray);
        } else {
            node->blip_until_ns = cluster->now_ns + happening->for_ns;
            set_ready(cluster, happening->tray, false, fn, context);
        }
    }
}

static bool can_place(const struct cluster *cluster)
{
    for (int32_t t = 0; t < cluster->node_count; t++) {
        const struct cluster_node *node = &cluster->nodes[t];
        if (model_tray_has_ranks(cluster->model, t) &&
            (node->hidden || !node->ready || node->cordoned_by[0] != '\0'))
            return false;
    }
    return true;
}

/* New processes come when the restart's time is over and every node takes them. */
static void schedule(struct cluster *cluster)
{
    bool waits = cluster->phase == CLUSTER_JOB_RESTARTING || cluster->phase == CLUSTER_JOB_PENDING;
    if (!waits || cluster->started_ns == 0 || cluster->now_ns < cluster->restart_due_ns)
        return;
    if (!can_place(cluster)) {
        if (cluster->phase != CLUSTER_JOB_PENDING)
            cluster_log_job(cluster, "job_pending", -1);
        cluster->phase = CLUSTER_JOB_PENDING;
        return;
    }
    int64_t first_step = model_info(cluster->model).checkpoint_step + 1;
    cluster->phase = CLUSTER_JOB_RUNNING;
    cluster_log_job(cluster, "job_started", first_step);
    model_start(cluster->model, cluster->now_ns, first_step);
}

static void watch_job(struct cluster *cluster)
{
    struct model_info info = model_info(cluster->model);
    if (info.checkpoint_step > cluster->logged_checkpoint) {
        cluster->logged_checkpoint = info.checkpoint_step;
        cluster_log_job(cluster, "checkpoint", info.checkpoint_step);
    }
    if (cluster->waiting_checkpoint && info.checkpoint_step > cluster->checkpoint_before)
        cluster_end_checkpoint(cluster, true);
    else if (cluster->waiting_checkpoint && info.phase != MODEL_STEPPING)
        cluster_end_checkpoint(cluster, false);
    if (cluster->phase == CLUSTER_JOB_RUNNING && info.phase != MODEL_HALTED &&
        info.ranks_alive == 0) {
        cluster->phase = CLUSTER_JOB_FAILED;
        cluster_log_job(cluster, "job_failed", info.last_step);
    }
}

static int64_t next_tick(const struct cluster *cluster)
{
    const int64_t second = INT64_C(1000000000);
    return (cluster->now_ns / second + 1) * second;
}

void cluster_advance(struct cluster *cluster, int64_t until_ns, model_sample_fn *fn, void *context)
{
    while (cluster->started_ns > 0 && cluster->now_ns < until_ns) {
        int64_t next_ns = next_tick(cluster);
        if (next_ns > until_ns)
            next_ns = until_ns;
        model_advance(cluster->model, next_ns, fn, context);
        cluster->now_ns = next_ns;
        let_happen(cluster, fn, context);
        watch_nodes(cluster, fn, context);
        watch_job(cluster);
        schedule(cluster);
    }
}
