/* A recording through the pipeline: submits succeed at once and the actuator only says what it
 * would do. */
#include "controller/replay.h"

#include "controller/io/compress.h"
#include "remediation/names.h"
#include <string.h>

static const int64_t MIB = 1 << 20;

struct replay {
    const struct replay_params *params;
    struct pipeline *pipeline;
    struct names cordoned, promised;
};

static void submit(void *self, struct view records, bool spoolable, pipeline_durable_fn *done,
                   void *context)
{
    const struct replay *replay = self;
    const struct replay_params *params = replay->params;
    (void)spoolable;
    for (size_t at = 0; at < records.length;) {
        const char *newline = memchr(records.bytes + at, '\n', records.length - at);
        size_t length = newline != NULL ? (size_t)(newline - records.bytes) - at
                                        : records.length - at;
        AUTO_FREE char *record = xstrndup(records.bytes + at, length);
        params->on_record(params->context, record);
        at += length + 1;
    }
    done(context, OK, NULL);
}

static void diverged(void *self, const char *reason)
{
    (void)self;
    (void)reason; /* cannot be: submit never fails */
}

static void notify(void *self, const char *incident_ref, const char *params_json)
{
    (void)self;
    (void)incident_ref;
    (void)params_json; /* its action record says it */
}

/* ---- the pretended cluster ---- */

static void pretend_start(void *self, const struct action *action, action_done_fn *done,
                          void *context)
{
    struct replay *replay = self;
    for (size_t i = 0; i < action->node_count; i++) {
        if (action->verb == VERB_CORDON)
            names_add_new(&replay->cordoned, action->nodes[i]);
        if (action->verb == VERB_UNCORDON)
            names_remove(&replay->cordoned, action->nodes[i]);
    }
    for (size_t i = 0; i < action->spare_count; i++) {
        if (action->verb == VERB_PROMISE_SPARE)
            names_add_new(&replay->promised, action->spares[i]);
        if (action->verb == VERB_RELEASE_SPARE)
            names_remove(&replay->promised, action->spares[i]);
    }
    done(context, &(struct action_result){.outcome = OUTCOME_SUCCEEDED,
                                          .poll = POLL_DONE,
                                          .reason = "pretended: a replay touches nothing"});
}

static int32_t gpus_of_tray(const struct job *job, int32_t tray)
{
    int32_t gpus = 0;
    for (int32_t r = 0; r < job->world_size; r++)
        gpus += job->ranks[r].tray == tray ? 1 : 0;
    return gpus;
}

static struct world_node pretend_node(const struct replay *replay, const struct job *job, int32_t t)
{
    const struct job_tray *tray = &job->trays[t];
    int32_t gpus = gpus_of_tray(job, t);
    bool cordoned = names_has(&replay->cordoned, tray->node);
    return (struct world_node){
        .name = tray->node,
        .rack = tray->rack != JOB_NONE ? job->racks[tray->rack].name : NULL,
        .nvlink_domain = tray->rack != JOB_NONE ? job->racks[tray->rack].nvlink_domain : NULL,
        .ready = true,
        .cordoned = cordoned,
        .cordoned_by = cordoned ? "" : NULL,
        .spare = gpus == 0,
        .promised_to = names_has(&replay->promised, tray->node) ? job->name : NULL,
        .gpus_allocatable = gpus > 0 ? gpus : 4};
}

/* All trays of the recording's jobs, ready; those that hold no rank are spares. */
static void pretend_describe(void *self, const struct world_question *question, world_done_fn *done,
                             void *context)
{
    const struct replay *replay = self;
    struct world_node *nodes = NULL;
    struct world_job *jobs = NULL;
    size_t node_count = 0, node_capacity = 0, job_count = 0, job_capacity = 0;
    (void)question;
    for (const struct live_job *live = jobs_first(pipeline_jobs(replay->pipeline)); live != NULL;
         live = live->next) {
        const struct job *job = engine_job(live->engine);
        for (int32_t t = 0; t < job->tray_count; t++) {
            nodes = array_grow(nodes, node_count, &node_capacity, sizeof *nodes);
            nodes[node_count++] = pretend_node(replay, job, t);
        }
        jobs = array_grow(jobs, job_count, &job_capacity, sizeof *jobs);
        jobs[job_count++] = (struct world_job){.name = job->name,
                                               .uid = "recording",
                                               .phase = "running",
                                               .restarts = -1,
                                               .restarts_max = -1,
                                               .checkpoint_step = job->checkpoint_step,
                                               .checkpoint_time_ns = job->checkpoint_time_ns};
    }
    done(context, &(struct world){.known = true,
                                  .nodes = nodes,
                                  .node_count = node_count,
                                  .jobs = jobs,
                                  .job_count = job_count});
    xfree(nodes);
    xfree(jobs);
}

/* ---- the run ---- */

static enum status feed_recording(struct pipeline *pipeline, const struct replay_params *params,
                                  struct replay_result *result, struct error *reterr)
{
    AUTO(line_reader_free) struct line_reader *reader = NULL;
    struct view block;
    TRY(line_reader_open(params->recording, &reader, reterr));
    for (;;) {
        enum status status = line_reader_next(reader, &block, reterr);
        if (status != OK || block.length == 0)
            return status;
        struct pipeline_write write = {.body = block,
                                       .source = "recording",
                                       .in_recording_time = true,
                                       .on_error = params->on_bad_line,
                                       .context = params->context};
        struct pipeline_written written = pipeline_write(pipeline, &write,
                                                         pipeline_now_ns(pipeline));
        result->written.lines += written.lines;
        result->written.accepted += written.accepted;
        result->written.refused += written.refused;
        result->written.bad_lines += written.bad_lines;
        result->written.fields += written.fields;
        if (result->from_ns == 0)
            result->from_ns = pipeline_now_ns(pipeline);
    }
}

enum status replay_run(const struct replay_params *params, struct replay_result *ret_result,
                       struct error *reterr)
{
    struct replay replay = {.params = params};
    struct actuator actuator = {.self = &replay,
                                .name = "replay",
                                .start = pretend_start,
                                .poll = pretend_start,
                                .describe = pretend_describe};
    struct pipeline_ports ports = {.self = &replay,
                                   .submit = submit,
                                   .diverged = diverged,
                                   .notify = notify,
                                   .actuator = &actuator};
    struct pipeline_params pipeline_params = {.limits = {.memory_bytes = 4096 * MIB,
                                                         .series_bytes_per_job = 64 * MIB,
                                                         .jobs = 1024,
                                                         .ranks = JOB_RANKS_MAX},
                                              .detection = params->detection};
    struct remediation_params core_params = {
        .daemon_mode = params->mode, .actuator = actuator.name, .next_number = 1};
    struct remediation *core = remediation_new(&core_params);
    if (params->take_policies != NULL)
        remediation_set_policy(core, params->take_policies, 0);
    AUTO(pipeline_free) struct pipeline *pipeline = pipeline_new(&pipeline_params, &ports, core);
    struct replay_result result = {0};
    replay.pipeline = pipeline;
    pipeline_on_verdict(pipeline, params->on_verdict, params->context);
    pipeline_guards(pipeline, true, true, true, 0);
    if (params->job != NULL) {
        bool created;
        TRY(pipeline_put_job(pipeline, params->job, 0, &created, reterr));
    }
    enum status status = feed_recording(pipeline, params, &result, reterr);
    struct pipeline_counts counts = pipeline_counts(pipeline);
    for (int kind = 0; kind < VERDICT_KIND_COUNT; kind++)
        result.verdicts += counts.verdicts[kind];
    result.incidents = (int64_t)remediation_incident_count(pipeline_core(pipeline));
    result.to_ns = pipeline_now_ns(pipeline);
    *ret_result = result;
    names_done(&replay.cordoned);
    names_done(&replay.promised);
    return status;
}
