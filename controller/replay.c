/* A recording through the pipeline: submits succeed at once and the actuator only says what it would do. */
#include "controller/replay.h"

#include "controller/io/compress.h"
#include "remediation/actuators/dry_run.h"

#include <string.h>

static const int64_t MIB = 1 << 20;

static void submit(void *self, struct view records, bool spoolable, pipeline_durable_fn *done, void *context)
{
    const struct replay_params *params = self;
    (void)spoolable;
    for (size_t at = 0; at < records.length;) {
        const char *newline = memchr(records.bytes + at, '\n', records.length - at);
        size_t length = newline != NULL ? (size_t)(newline - records.bytes) - at : records.length - at;
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
        struct pipeline_written written = pipeline_write(pipeline, &write, pipeline_now_ns(pipeline));
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
    struct replay_params lent = *params;
    struct actuator actuator = dry_run_actuator();
    struct pipeline_ports ports = {.self = &lent,
                                   .submit = submit,
                                   .diverged = diverged,
                                   .notify = notify,
                                   .actuator = &actuator};
    struct pipeline_params pipeline_params = {
        .limits = {.memory_bytes = 4096 * MIB, .series_bytes_per_job = 64 * MIB, .jobs = 1024,
                   .ranks = JOB_RANKS_MAX},
        .detection = params->detection};
    struct remediation_params core_params = {
        .daemon_mode = params->mode, .actuator = actuator.name, .next_number = 1};
    struct remediation *core = remediation_new(&core_params);
    if (params->take_policies != NULL)
        remediation_set_policy(core, params->take_policies, 0);
    AUTO(pipeline_free) struct pipeline *pipeline = pipeline_new(&pipeline_params, &ports, core);
    struct replay_result result = {0};
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
    actuator.free(actuator.self);
    return status;
}
