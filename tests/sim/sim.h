/* A rehearsal in virtual time and one process: the cluster's lines go through the whole pipeline,
 * its actuator is the cluster itself, records are durable at once.
 */
#ifndef BROOM_TESTS_SIM_SIM_H
#define BROOM_TESTS_SIM_SIM_H

#include "controller/config/policy_files.h"
#include "controller/pipeline.h"
#include "controller/rehearse/endings.h"
#include "controller/topology/job_file.h"
#include "remediation/actuators/world_json.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIM_START_NS INT64_C(1780000000000000000)
#define SIM_SECOND   INT64_C(1000000000)

struct sim {
    const struct scenario *scenario;
    struct cluster *cluster;
    struct pipeline *pipeline;
    struct actuator actuator;
    struct endings *endings;
    struct text lines;       /* of the pass under way */
    struct json **incidents; /* newest record of each, by number */
    struct text *timelines;  /* JSON array bodies, by number */
    size_t incident_count;
    int64_t now_ns;
    int64_t verdicts[VERDICT_KIND_COUNT];
    bool say; /* TEST_SAY: print timelines */
};

struct sim_options {
    uint64_t seed;
    const char *policy; /* file; NULL: the shipped enforce policy; "": none */
    bool detection_off, swallow_restart;
};

/* --- records
 * ------------------------------------------------------------------------------------------- */

static void sim_fit(struct sim *sim, size_t number)
{
    if (number < sim->incident_count)
        return;
    sim->incidents = xrealloc(sim->incidents, number + 1, sizeof *sim->incidents);
    sim->timelines = xrealloc(sim->timelines, number + 1, sizeof *sim->timelines);
    for (size_t i = sim->incident_count; i <= number; i++) {
        sim->incidents[i] = NULL;
        sim->timelines[i] = (struct text){0};
    }
    sim->incident_count = number + 1;
}

static void sim_take_record(struct sim *sim, struct view bytes)
{
    struct json *record = NULL;
    CU_ASSERT_FATAL(json_parse(bytes, &record, NULL) == OK);
    const char *type = json_get_string(record, "type", "");
    if (strcmp(type, "incident") == 0) {
        size_t number = (size_t)json_get_int(record, "number", 0);
        sim_fit(sim, number);
        json_free(sim->incidents[number]);
        sim->incidents[number] = TAKE(record);
    } else if (strcmp(type, "timeline") == 0) {
        size_t number = (size_t)strtoul(json_get_string(record, "incident", "INC-0") + 4, NULL, 10);
        sim_fit(sim, number);
        text_add(&sim->timelines[number], sim->timelines[number].length > 0 ? "," : "");
        text_add_bytes(&sim->timelines[number], bytes.bytes, bytes.length);
        if (sim->say)
            printf("  %8.1f %s %s\n", (double)(sim->now_ns - SIM_START_NS) / 1e9,
                   json_get_string(record, "incident", ""), json_get_string(record, "text", ""));
    }
    json_free(record);
}

static void sim_submit(void *self, struct view records, bool spoolable, pipeline_durable_fn *done,
                       void *context)
{
    (void)spoolable;
    for (size_t at = 0; at < records.length;) {
        const char *newline = memchr(records.bytes + at, '\n', records.length - at);
        size_t length = newline != NULL ? (size_t)(newline - records.bytes) - at
                                        : records.length - at;
        sim_take_record(self, (struct view){records.bytes + at, length});
        at += length + 1;
    }
    done(context, OK, NULL);
}

static void sim_diverged(void *self, const char *reason)
{
    (void)self;
    printf("diverged: %s\n", reason);
    CU_FAIL("the store never has anything else");
}

static void sim_notify(void *self, const char *incident_ref, const char *params_json)
{
    (void)self;
    (void)incident_ref;
    (void)params_json;
}

static void sim_on_verdict(void *context, const struct live_job *live,
                           const struct verdict *verdict)
{
    struct sim *sim = context;
    (void)live;
    sim->verdicts[verdict->kind]++;
    if (sim->say)
        printf("  %8.1f verdict %s %s %s cause %s evict %d\n",
               (double)(sim->now_ns - SIM_START_NS) / 1e9, verdict_kind_name(verdict->kind),
               scope_name(verdict->scope), verdict->id, cause_name(verdict->cause), verdict->evict);
}

/* --- the cluster as an actuator
 * -------------------------------------------------------------------------- */

static void sim_write_names(struct json_writer *writer, const char *key, const char *const *names,
                            size_t count)
{
    json_add_key(writer, key);
    json_open_array(writer);
    for (size_t i = 0; i < count; i++)
        json_add_string(writer, names[i]);
    json_close(writer);
}

static void sim_answer(const struct cluster_operation *operation, action_done_fn *done,
                       void *context)
{
    struct action_result result = {
        .outcome = operation->outcome, .poll = POLL_DONE, .reason = operation->reason};
    if (operation->running) {
        result.outcome = OUTCOME_UNKNOWN;
        result.poll = POLL_RUNNING;
    }
    done(context, &result);
}

static void sim_act(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct sim *sim = self;
    AUTO_TEXT body = {0};
    AUTO(json_free) struct json *root = NULL;
    const struct cluster_operation *operation = NULL;
    struct json_writer writer = json_writer(&body);
    json_open_object(&writer);
    json_put_string(&writer, "verb", verb_name(action->verb));
    json_put_string(&writer, "incident", action->incident_ref);
    json_put_string(&writer, "job", action->job);
    sim_write_names(&writer, "nodes", action->nodes, action->node_count);
    sim_write_names(&writer, "spares", action->spares, action->spare_count);
    json_close(&writer);
    CU_ASSERT_FATAL(json_parse((struct view){body.bytes, body.length}, &root, NULL) == OK);
    CU_ASSERT_FATAL(cluster_operate(sim->cluster, action->operation_id, root, sim->now_ns,
                                    &operation, NULL) == OK);
    sim_answer(operation, done, context);
}

static void sim_poll(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct sim *sim = self;
    const struct cluster_operation *operation = cluster_find_operation(sim->cluster,
                                                                       action->operation_id);
    struct action_result absent = {.outcome = OUTCOME_UNKNOWN, .poll = POLL_ABSENT};
    if (operation == NULL)
        done(context, &absent);
    else
        sim_answer(operation, done, context);
}

static struct json *sim_world(const struct sim *sim)
{
    AUTO_TEXT text = {0};
    struct json *root = NULL;
    struct json_writer writer = json_writer(&text);
    cluster_write_world(sim->cluster, &writer);
    CU_ASSERT_FATAL(json_parse((struct view){text.bytes, text.length}, &root, NULL) == OK);
    return root;
}

static void sim_describe(void *self, const struct world_question *question, world_done_fn *done,
                         void *context)
{
    (void)question;
    AUTO(json_free) struct json *root = sim_world(self);
    world_json_tell(root, NULL, done, context);
}

/* --- running
 * ------------------------------------------------------------------------------------------------
 */

static void sim_put_job(struct sim *sim)
{
    AUTO_TEXT text = {0};
    AUTO(job_free) struct job *job = NULL;
    struct error error = {0};
    bool created;
    cluster_write_job(sim->cluster, &text);
    CU_ASSERT_FATAL(job_file_parse((struct view){text.bytes, text.length}, &job, &error) == OK);
    CU_ASSERT_FATAL(pipeline_put_job(sim->pipeline, job, sim->now_ns, &created, &error) == OK);
}

static struct remediation *sim_core(const struct sim_options *options)
{
    struct remediation_params params = {
        .daemon_mode = MODE_ENFORCE, .actuator = "sim", .next_number = 1};
    struct remediation *core = remediation_new(&params);
    struct policy_set *set = NULL;
    AUTO_TEXT findings = {0};
    struct error error = {0};
    const char *file = options->policy != NULL ? options->policy
                                               : BROOM_SOURCE_DIR
                           "/deploy/policies/nvl72-enforce.yaml";
    if (file[0] == '\0')
        return core;
    CU_ASSERT_FATAL(policy_files_load(file, &set, &findings, &error) == OK);
    remediation_set_policy(core, set, SIM_START_NS);
    return core;
}

static void sim_open(struct sim *sim, const struct scenario *scenario,
                     const struct sim_options *options)
{
    struct pipeline_params params = {.limits = {.memory_bytes = INT64_C(1) << 30,
                                                .series_bytes_per_job = INT64_C(64) << 20,
                                                .jobs = 4,
                                                .ranks = 4096},
                                     .detection = engine_params_default()};
    struct cluster_config config = scenario_cluster(scenario, options->seed);
    struct model_fault fault = scenario_fault(scenario, options->seed);
    *sim = (struct sim){
        .scenario = scenario, .now_ns = SIM_START_NS, .say = getenv("TEST_SAY") != NULL};
    params.detection.enabled = !options->detection_off;
    config.swallow_restart = options->swallow_restart;
    sim->cluster = cluster_new(&config);
    if (scenario->fault_step > 0)
        model_add_fault(cluster_model(sim->cluster), &fault);
    sim->endings = endings_new(scenario, options->seed);
    sim->actuator = (struct actuator){.name = "sim",
                                      .changes_world = true,
                                      .start = sim_act,
                                      .poll = sim_poll,
                                      .describe = sim_describe,
                                      .self = sim};
    struct pipeline_ports ports = {.self = sim,
                                   .submit = sim_submit,
                                   .diverged = sim_diverged,
                                   .notify = sim_notify,
                                   .actuator = &sim->actuator};
    sim->pipeline = pipeline_new(&params, &ports, sim_core(options));
    pipeline_on_verdict(sim->pipeline, sim_on_verdict, sim);
    pipeline_guards(sim->pipeline, true, true, true, sim->now_ns);
    cluster_start(sim->cluster, sim->now_ns);
    sim_put_job(sim);
}

static void sim_close(struct sim *sim)
{
    pipeline_free(sim->pipeline);
    cluster_free(sim->cluster);
    endings_free(sim->endings);
    for (size_t i = 0; i < sim->incident_count; i++) {
        json_free(sim->incidents[i]);
        text_done(&sim->timelines[i]);
    }
    xfree(sim->incidents);
    xfree(sim->timelines);
    text_done(&sim->lines);
}

static void sim_on_sample(void *context, const struct sample *sample)
{
    sample_add_line(sample, &((struct sim *)context)->lines);
}

/* One second: lines of that second, then a tick. */
static void sim_second(struct sim *sim)
{
    sim->now_ns += SIM_SECOND;
    text_clear(&sim->lines);
    cluster_advance(sim->cluster, sim->now_ns, sim_on_sample, sim);
    struct pipeline_write write = {.body = {sim->lines.bytes, sim->lines.length},
                                   .source = "events"};
    if (sim->lines.length > 0)
        pipeline_write(sim->pipeline, &write, sim->now_ns);
    pipeline_tick(sim->pipeline, sim->now_ns);
}

static struct json *sim_incidents(const struct sim *sim)
{
    AUTO_TEXT text = {0};
    struct json *root = NULL;
    text_add(&text, "[");
    for (size_t i = 0; i < sim->incident_count; i++) {
        if (sim->incidents[i] == NULL)
            continue;
        text_add(&text, text.length > 1 ? "," : "");
        json_print(sim->incidents[i], &text);
        text.length--; /* the record's closing brace */
        text_addf(&text, ",\"timeline\":[%s]}",
                  sim->timelines[i].bytes != NULL ? sim->timelines[i].bytes : "");
    }
    text_add(&text, "]");
    CU_ASSERT_FATAL(json_parse((struct view){text.bytes, text.length}, &root, NULL) == OK);
    return root;
}

static int sim_check(const struct sim *sim, struct text *disagreements)
{
    AUTO(json_free) struct json *incidents = sim_incidents(sim);
    AUTO(json_free) struct json *world = sim_world(sim);
    struct endings_evidence evidence = {cluster_log(sim->cluster), world, incidents};
    return endings_check(sim->endings, &evidence, disagreements);
}

/* Runs to the ending and past it; returns the number of disagreements, 0 when all is as it must be.
 */
static int sim_run(struct sim *sim, struct text *disagreements)
{
    const struct scenario *scenario = sim->scenario;
    bool mends = scenario->ending.restarts > 0;
    int64_t end_ns = SIM_START_NS + scenario->duration_ns;
    bool reached = false;
    while (sim->now_ns < end_ns) {
        sim_second(sim);
        if (!mends || reached || (sim->now_ns - SIM_START_NS) / SIM_SECOND % 10 != 0)
            continue;
        text_clear(disagreements);
        if (sim_check(sim, disagreements) == 0) {
            reached = true;
            end_ns = sim->now_ns + scenario->linger_ns;
        }
    }
    text_clear(disagreements);
    return sim_check(sim, disagreements);
}

#endif
