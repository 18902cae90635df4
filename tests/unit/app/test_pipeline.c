/* The order of record, then act, through the whole pipeline: a hardware fault of a small job under
 * the shipped enforce policy, a store that answers as the test says, and an actuator that only
 * counts.
 */
#include "controller/config/policy_files.h"
#include "controller/pipeline.h"

#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

#define SECOND   INT64_C(1000000000)
#define START_NS (INT64_C(1780000020) * SECOND)

enum { BATCHES_MAX = 512, CALLS_MAX = 64 };

enum store_mode { STORE_TAKES = 0, STORE_HOLDS, STORE_IS_AWAY };

struct batch_call {
    pipeline_durable_fn *done;
    void *context;
};

struct bench {
    struct pipeline *pipeline;
    struct actuator actuator;
    enum store_mode mode;
    struct batch_call held[BATCHES_MAX];
    int held_count, held_answered;
    struct text durable; /* records that were answered OK, one a line */
    int refused_batches, diverged, notified;
    int64_t now_ns;
    int step;
    bool job_stands;
    /* the cluster */
    struct batch_call polls[CALLS_MAX];
    int started, polled, cordons, started_before_durable;
    char last_operation[OPERATION_ID_BYTES];
    action_done_fn *last_done;
    void *last_context;
    bool holds_answers, is_away; /* is_away: it cannot be read */
    const char *made_anew;       /* what it says of the job's gang; NULL nothing */
    char cordoned[32];           /* node, "" none */
    /* people */
    int told;
    enum status told_status;
};

/* ---- the store ---- */

static bool is_durable(const struct bench *bench, const char *type, const char *operation_id)
{
    AUTO_TEXT start = {0};
    AUTO_TEXT part = {0};
    text_addf(&start, "{\"type\":\"%s\"", type);
    text_addf(&part, "\"operation_id\":\"%s\"", operation_id);
    for (const char *line = bench->durable.bytes; line != NULL && *line != '\0';
         line = strchr(line, '\n') + 1) {
        AUTO_FREE char *record = xstrndup(line, strcspn(line, "\n"));
        if (strncmp(record, start.bytes, start.length) == 0 && strstr(record, part.bytes) != NULL)
            return true;
    }
    return false;
}

static int count_durable(const struct bench *bench, const char *type)
{
    AUTO_TEXT start = {0};
    int count = 0;
    text_addf(&start, "{\"type\":\"%s\"", type);
    for (const char *line = bench->durable.bytes; line != NULL && *line != '\0';
         line = strchr(line, '\n') + 1)
        count += strncmp(line, start.bytes, start.length) == 0 ? 1 : 0;
    return count;
}

static void submit(void *self, struct view records, bool spoolable, pipeline_durable_fn *done,
                   void *context)
{
    struct bench *bench = self;
    if (bench->mode == STORE_HOLDS && !spoolable) {
        CU_ASSERT_FATAL(bench->held_count < BATCHES_MAX);
        bench->held[bench->held_count++] = (struct batch_call){done, context};
        return;
    }
    if (bench->mode == STORE_IS_AWAY && !spoolable) {
        bench->refused_batches++;
        done(context, ERR_UNREACHABLE, "away");
        return;
    }
    text_add_bytes(&bench->durable, records.bytes, records.length);
    done(context, OK, NULL);
}

static void answer_held(struct bench *bench, enum status status)
{
    CU_ASSERT_FATAL(bench->held_answered < bench->held_count);
    struct batch_call call = bench->held[bench->held_answered++];
    call.done(call.context, status, status == OK ? NULL : "the test says so");
}

static void diverged(void *self, const char *reason)
{
    (void)reason;
    ((struct bench *)self)->diverged++;
}

static void notify(void *self, const char *incident_ref, const char *params_json)
{
    (void)incident_ref;
    (void)params_json;
    ((struct bench *)self)->notified++;
}

/* ---- the cluster ---- */

static void start(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct bench *bench = self;
    bench->started++;
    text_copy(bench->last_operation, sizeof bench->last_operation, action->operation_id);
    if (bench->mode == STORE_TAKES && !is_durable(bench, "action", action->operation_id))
        bench->started_before_durable++;
    if (action->verb == VERB_CORDON) {
        bench->cordons++;
        text_copy(bench->cordoned, sizeof bench->cordoned, action->nodes[0]);
    }
    if (bench->holds_answers) {
        bench->last_done = done;
        bench->last_context = context;
        return;
    }
    done(context, &(struct action_result){
                      .outcome = OUTCOME_SUCCEEDED, .poll = POLL_DONE, .reason = "done"});
}

static void poll(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct bench *bench = self;
    bench->polled++;
    text_copy(bench->last_operation, sizeof bench->last_operation, action->operation_id);
    done(context, &(struct action_result){
                      .outcome = OUTCOME_UNKNOWN, .poll = POLL_UNREACHABLE, .reason = "silent"});
}

static void describe(void *self, const struct world_question *question, world_done_fn *done,
                     void *context)
{
    const struct bench *bench = self;
    (void)question;
    if (bench->is_away) {
        done(context, &(struct world){.reason = "away"});
        return;
    }
    struct world_node nodes[8];
    char names[8][16];
    for (int i = 0; i < 8; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%d", i);
        bool is_cordoned = strcmp(bench->cordoned, names[i]) == 0;
        nodes[i] = (struct world_node){.name = names[i],
                                       .rack = "r1",
                                       .nvlink_domain = "r1",
                                       .ready = true,
                                       .cordoned = is_cordoned,
                                       .cordoned_by = is_cordoned ? "INC-1" : NULL,
                                       .spare = i >= 6,
                                       .gpus_allocatable = 4};
    }
    struct world_job job = {.name = "team/a",
                            .uid = "one",
                            .phase = "running",
                            .restarts_max = -1,
                            .made_anew = bench->made_anew,
                            .checkpoint_step = -1};
    done(context,
         &(struct world){
             .known = true, .nodes = nodes, .node_count = 8, .jobs = &job, .job_count = 1});
}

/* ---- the job ---- */

static struct job *make_job(void)
{
    struct job *job = job_new("team/a", 24);
    int32_t rack = job_intern_rack(job, "r1", NULL);
    char node[16];
    job->workload_json = xstrdup(
        "{\"kind\":\"volcano\",\"uid\":\"one\",\"name\":\"a\",\"namespace\":\"team\"}");
    for (int32_t r = 0; r < 24; r++) {
        (void)snprintf(node, sizeof node, "n%d", (int)(r / 4));
        job->ranks[r] = (struct job_rank){
            .tray = job_intern_tray(job, node, rack), .gpu = (int16_t)(r % 4), .rail = JOB_NONE};
    }
    job_intern_tray(job, "n6", rack);
    job_intern_tray(job, "n7", rack);
    return job;
}

static struct remediation *make_core(void)
{
    struct remediation_params params = {
        .daemon_mode = MODE_ENFORCE, .actuator = "fake", .next_number = 1};
    struct remediation *core = remediation_new(&params);
    struct policy_set *set = NULL;
    AUTO_TEXT findings = {0};
    CU_ASSERT_EQUAL_FATAL(policy_files_load(BROOM_SOURCE_DIR "/deploy/policies/nvl72-enforce.yaml",
                                            &set, &findings, NULL),
                          OK);
    remediation_set_policy(core, set, START_NS);
    return core;
}

static void open_bench(struct bench *bench)
{
    struct pipeline_params params = {.limits = {.memory_bytes = 64 << 20,
                                                .series_bytes_per_job = 8 << 20,
                                                .jobs = 2,
                                                .ranks = 64},
                                     .detection = engine_params_default()};
    AUTO(job_free) struct job *job = make_job();
    bool created;
    *bench = (struct bench){.now_ns = START_NS};
    bench->actuator = (struct actuator){.name = "fake",
                                        .changes_world = true,
                                        .start = start,
                                        .poll = poll,
                                        .describe = describe,
                                        .self = bench};
    struct pipeline_ports ports = {.self = bench,
                                   .submit = submit,
                                   .diverged = diverged,
                                   .notify = notify,
                                   .actuator = &bench->actuator};
    bench->pipeline = pipeline_new(&params, &ports, make_core());
    pipeline_guards(bench->pipeline, true, true, true, bench->now_ns);
    CU_ASSERT_EQUAL_FATAL(pipeline_put_job(bench->pipeline, job, bench->now_ns, &created, NULL),
                          OK);
}

static void close_bench(struct bench *bench)
{
    pipeline_free(bench->pipeline);
    text_done(&bench->durable);
}

static void write_lines(struct bench *bench, const char *lines)
{
    struct pipeline_write write = {
        .body = view_of(lines), .default_time_ns = bench->now_ns, .source = "monitor-7"};
    struct pipeline_written written = pipeline_write(bench->pipeline, &write, bench->now_ns);
    CU_ASSERT_EQUAL(written.accepted, written.lines);
}

/* Seconds pass; the job makes a step in each unless it stands. */
static void pass(struct bench *bench, int seconds)
{
    for (int s = 0; s < seconds; s++) {
        AUTO_TEXT lines = {0};
        bench->now_ns += SECOND;
        if (!bench->job_stands) {
            bench->step++;
            for (int rank = 0; rank < 24; rank++)
                text_addf(&lines,
                          "step,job=team/a,rank=%d "
                          "step=%di,step_ms=1000,allreduce_ms=50,compute_ms=900\n",
                          rank, bench->step);
            write_lines(bench, lines.bytes);
        }
        pipeline_tick(bench->pipeline, bench->now_ns);
    }
}

/* A GPU of n1 falls off the bus and the job stands. */
static void break_node(struct bench *bench)
{
    bench->job_stands = true;
    write_lines(bench, "event,host=n1,gpu=2 kind=\"xid\",code=79i\n");
}

/* Until the engine has said so and the incident is open. */
static void pass_until_incident(struct bench *bench)
{
    for (int s = 0; s < 90 && remediation_incident_count(pipeline_core(bench->pipeline)) == 0; s++)
        pass(bench, 1);
    CU_ASSERT_EQUAL_FATAL(remediation_incident_count(pipeline_core(bench->pipeline)), 1);
}

static void guards(struct bench *bench, bool store_up)
{
    pipeline_guards(bench->pipeline, true, true, store_up, bench->now_ns);
    if (store_up)
        pipeline_store_is_up(bench->pipeline);
}

static void on_told(void *context, enum status status, const char *reason)
{
    struct bench *bench = context;
    (void)reason;
    bench->told++;
    bench->told_status = status;
}

static enum status command(struct bench *bench, enum command_verb verb, const char *ref)
{
    struct remediation_command order = {
        .verb = verb, .incident_ref = ref, .actor = "alice", .text = "so"};
    struct error error = {0};
    return pipeline_command(bench->pipeline, &order, bench->now_ns, on_told, bench, &error);
}

/* The newest durable record of each incident into a new core, as the daemon does. */
static struct remediation *restore(const struct bench *bench)
{
    struct remediation *core = make_core();
    struct json *newest = NULL;
    for (const char *line = bench->durable.bytes; line != NULL && *line != '\0';
         line = strchr(line, '\n') + 1) {
        struct json *record = NULL;
        if (strncmp(line, "{\"type\":\"incident\"", 18) != 0)
            continue;
        CU_ASSERT_EQUAL_FATAL(json_parse((struct view){line, strcspn(line, "\n")}, &record, NULL),
                              OK);
        json_free(newest);
        newest = record;
    }
    remediation_restore_control(core, false, false, NULL,
                                newest != NULL ? json_get_int(newest, "number", 0) + 1 : 1);
    if (newest != NULL)
        CU_ASSERT_EQUAL(remediation_restore(core, newest, bench->now_ns, NULL), OK);
    json_free(newest);
    return core;
}

static const struct remediation_guards ALL_WELL = {true, true, true, true};

/* ---- tests ---- */

TEST(a_broken_node_is_cordoned_and_every_start_follows_its_durable_intent)
{
    struct bench bench;
    open_bench(&bench);
    pass(&bench, 40);
    break_node(&bench);
    pass(&bench, 30);
    CU_ASSERT_EQUAL(bench.cordons, 1);
    CU_ASSERT_STRING_EQUAL(bench.cordoned, "n1");
    CU_ASSERT_EQUAL(bench.started_before_durable, 0);
    CU_ASSERT_EQUAL(bench.diverged, 0);
    CU_ASSERT_TRUE(count_durable(&bench, "action") >= bench.started);
    close_bench(&bench);
}

TEST(nothing_starts_before_the_store_has_answered)
{
    struct bench bench;
    open_bench(&bench);
    pass(&bench, 40);
    bench.mode = STORE_HOLDS;
    break_node(&bench);
    pass(&bench, 30);
    CU_ASSERT_EQUAL(bench.held_count, 1);
    CU_ASSERT_EQUAL(bench.started, 0);
    CU_ASSERT_EQUAL(bench.notified, 0);
    for (int i = 0; i < 100 && bench.cordons == 0 && bench.held_answered < bench.held_count; i++) {
        answer_held(&bench, OK);
        pass(&bench, 1);
    }
    CU_ASSERT_EQUAL(bench.cordons, 1);
    CU_ASSERT_EQUAL(bench.notified, 1);
    close_bench(&bench);
}

TEST(while_the_store_is_away_nothing_starts_and_when_it_is_back_everything_does_once)
{
    struct bench bench;
    open_bench(&bench);
    pass(&bench, 40);
    bench.mode = STORE_IS_AWAY;
    guards(&bench, false);
    break_node(&bench);
    pass(&bench, 60);
    CU_ASSERT_EQUAL(bench.started, 0);
    CU_ASSERT_EQUAL(bench.notified, 0);
    CU_ASSERT_EQUAL(count_durable(&bench, "incident"), 0);
    bench.mode = STORE_TAKES;
    guards(&bench, true);
    pass(&bench, 30);
    CU_ASSERT_EQUAL(bench.cordons, 1);
    CU_ASSERT_EQUAL(bench.notified, 1);
    CU_ASSERT_EQUAL(bench.started_before_durable, 0);
    CU_ASSERT_EQUAL(bench.diverged, 0);
    close_bench(&bench);
}

TEST(a_batch_that_fails_under_a_store_that_seems_up_starts_nothing_and_goes_again)
{
    struct bench bench;
    open_bench(&bench);
    pass(&bench, 40);
    bench.mode = STORE_IS_AWAY; /* and nobody has noticed */
    break_node(&bench);
    pass(&bench, 30);
    CU_ASSERT_EQUAL(bench.started, 0);
    CU_ASSERT_EQUAL(bench.refused_batches, 1);
    bench.mode = STORE_TAKES;
    guards(&bench, true);
    pass(&bench, 30);
    CU_ASSERT_EQUAL(bench.cordons, 1);
    CU_ASSERT_EQUAL(bench.notified, 1);
    close_bench(&bench);
}

TEST(a_person_is_told_when_the_command_is_durable_and_not_before)
{
    struct bench bench;
    open_bench(&bench);
    pass(&bench, 40);
    break_node(&bench);
    pass_until_incident(&bench);
    bench.mode = STORE_HOLDS;
    CU_ASSERT_EQUAL(command(&bench, COMMAND_NOTE, "INC-1"), OK);
    CU_ASSERT_EQUAL(bench.told, 0);
    answer_held(&bench, OK);
    CU_ASSERT_EQUAL(bench.told, 1);
    CU_ASSERT_EQUAL(bench.told_status, OK);
    CU_ASSERT_EQUAL(command(&bench, COMMAND_NOTE, "INC-99"), ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(bench.told, 1);
    close_bench(&bench);
}

TEST(a_pause_holds_at_once_though_the_database_is_away_and_other_commands_are_refused)
{
    struct bench bench;
    open_bench(&bench);
    pass(&bench, 40);
    bench.mode = STORE_IS_AWAY;
    guards(&bench, false);
    CU_ASSERT_EQUAL(command(&bench, COMMAND_NOTE, "INC-1"), ERR_UNREACHABLE);
    CU_ASSERT_EQUAL(command(&bench, COMMAND_PAUSE, NULL), OK);
    CU_ASSERT_EQUAL(bench.told, 1);
    CU_ASSERT_TRUE(remediation_status(pipeline_core(bench.pipeline)).paused);
    bench.mode = STORE_TAKES;
    guards(&bench, true);
    break_node(&bench);
    pass(&bench, 60);
    CU_ASSERT_EQUAL(bench.cordons, 0);
    CU_ASSERT_EQUAL(bench.told, 1);
    close_bench(&bench);
}

TEST(a_pause_that_the_store_never_got_outlives_a_state_that_is_read_again)
{
    struct bench bench;
    open_bench(&bench);
    pass(&bench, 40);
    bench.mode = STORE_IS_AWAY;
    guards(&bench, false);
    CU_ASSERT_EQUAL(command(&bench, COMMAND_PAUSE, NULL), OK);
    bench.mode = STORE_TAKES;
    pipeline_restart(bench.pipeline, restore(&bench), ALL_WELL, bench.now_ns);
    CU_ASSERT_TRUE(remediation_status(pipeline_core(bench.pipeline)).paused);
    CU_ASSERT_EQUAL(count_durable(&bench, "control"), 1);
    CU_ASSERT_EQUAL(command(&bench, COMMAND_RESUME, NULL), OK);
    pipeline_restart(bench.pipeline, restore(&bench), ALL_WELL, bench.now_ns);
    CU_ASSERT_FALSE(remediation_status(pipeline_core(bench.pipeline)).paused);
    close_bench(&bench);
}

TEST(an_intent_that_was_taken_back_while_it_became_durable_is_cancelled)
{
    struct bench bench;
    open_bench(&bench);
    pass(&bench, 40);
    bench.mode = STORE_HOLDS;
    break_node(&bench);
    pass(&bench, 30);
    CU_ASSERT_EQUAL(command(&bench, COMMAND_PAUSE, NULL), OK);
    while (bench.held_answered < bench.held_count)
        answer_held(&bench, OK);
    bench.mode = STORE_TAKES;
    pass(&bench, 30);
    CU_ASSERT_EQUAL(bench.started, 0);
    CU_ASSERT_EQUAL(bench.cordons, 0);
    close_bench(&bench);
}

TEST(a_conflict_tells_the_owner_and_starts_nothing)
{
    struct bench bench;
    open_bench(&bench);
    pass(&bench, 40);
    bench.mode = STORE_HOLDS;
    break_node(&bench);
    pass(&bench, 30);
    answer_held(&bench, ERR_CONFLICT);
    CU_ASSERT_EQUAL(bench.diverged, 1);
    CU_ASSERT_EQUAL(bench.started, 0);
    CU_ASSERT_EQUAL(bench.notified, 0);
    close_bench(&bench);
}

TEST(a_core_that_is_read_again_hears_of_the_verdicts_that_hold)
{
    struct bench bench;
    open_bench(&bench);
    pass(&bench, 40);
    bench.mode = STORE_IS_AWAY;
    guards(&bench, false);
    break_node(&bench);
    pass_until_incident(&bench);
    bench.mode = STORE_TAKES;
    pipeline_restart(bench.pipeline, restore(&bench), ALL_WELL, bench.now_ns);
    CU_ASSERT_EQUAL_FATAL(remediation_incident_count(pipeline_core(bench.pipeline)), 1);
    CU_ASSERT_STRING_EQUAL(remediation_incident_at(pipeline_core(bench.pipeline), 0)->nodes[0].name,
                           "n1");
    pass(&bench, 60);
    CU_ASSERT_EQUAL(bench.cordons, 1);
    CU_ASSERT_EQUAL(bench.notified, 1);
    close_bench(&bench);
}

static size_t incidents_of(const struct bench *bench)
{
    return remediation_incident_count(pipeline_core(bench->pipeline));
}

/* The cluster cannot be read from the start, and soon a node breaks. */
static void open_blind_bench(struct bench *bench)
{
    open_bench(bench);
    bench->is_away = true;
    pass(bench, 6);
    break_node(bench);
    pass(bench, 20);
    CU_ASSERT_EQUAL(incidents_of(bench), 0);
}

/* Which trays share a rack is not known before: a rack's fault would be an incident a tray. */
TEST(accusations_wait_for_the_first_sight_of_the_cluster)
{
    struct bench bench;
    open_blind_bench(&bench);
    bench.is_away = false;
    pass(&bench, 2); /* it is asked for again every second */
    CU_ASSERT_EQUAL(incidents_of(&bench), 1);
    close_bench(&bench);
}

TEST(accusations_do_not_wait_for_ever_for_a_cluster_that_cannot_be_read)
{
    struct bench bench;
    open_blind_bench(&bench);
    pass(&bench, 20);
    CU_ASSERT_EQUAL(incidents_of(&bench), 1);
    CU_ASSERT_EQUAL(bench.cordons, 0);
    close_bench(&bench);
}

TEST(an_action_under_way_is_polled_and_not_started_again_when_the_state_is_read_again)
{
    struct bench bench;
    open_bench(&bench);
    pass(&bench, 40);
    bench.holds_answers = true;
    break_node(&bench);
    pass(&bench, 30);
    CU_ASSERT_EQUAL_FATAL(bench.started, 1);
    char operation_id[OPERATION_ID_BYTES];
    text_copy(operation_id, sizeof operation_id, bench.last_operation);
    pipeline_restart(bench.pipeline, restore(&bench), ALL_WELL, bench.now_ns);
    pass(&bench, 10);
    CU_ASSERT_TRUE(bench.polled > 0);
    CU_ASSERT_STRING_EQUAL(bench.last_operation, operation_id);
    CU_ASSERT_EQUAL(bench.started, 1);
    bench.last_done(bench.last_context,
                    &(struct action_result){.outcome = OUTCOME_SUCCEEDED,
                                            .poll = POLL_DONE,
                                            .reason = "the first answer, late"});
    CU_ASSERT_EQUAL(bench.cordons, 1);
    close_bench(&bench);
}

TEST(a_pipeline_may_end_while_people_wait_and_actions_are_under_way)
{
    struct bench bench;
    open_bench(&bench);
    pass(&bench, 40);
    bench.holds_answers = true;
    break_node(&bench);
    pass(&bench, 30);
    bench.mode = STORE_HOLDS;
    CU_ASSERT_EQUAL(command(&bench, COMMAND_NOTE, "INC-1"), OK);
    close_bench(&bench);
    CU_ASSERT_EQUAL(bench.told, 1);
    CU_ASSERT_EQUAL(bench.told_status, ERR_UNREACHABLE);
}

TEST(the_samples_round_an_incident_and_the_minutes_are_kept)
{
    struct bench bench;
    open_bench(&bench);
    pass(&bench, 200);
    break_node(&bench);
    pass(&bench, 140);
    CU_ASSERT_TRUE(count_durable(&bench, "rollup") >= 3);
    CU_ASSERT_TRUE(count_durable(&bench, "raw_window") >=
                   3); /* step_ms, allreduce_ms, compute_ms */
    CU_ASSERT_EQUAL(count_durable(&bench, "event"), 1);
    CU_ASSERT_TRUE(count_durable(&bench, "job") >= 1);
    close_bench(&bench);
}

TEST(lines_of_a_job_that_the_sender_may_not_speak_for_are_refused)
{
    struct bench bench;
    open_bench(&bench);
    struct pipeline_write write = {.body = view_of("step,job=team/a,rank=0 step=1i,step_ms=1\n"),
                                   .default_time_ns = bench.now_ns,
                                   .source = "",
                                   .only_job = "team/b"};
    struct pipeline_written written = pipeline_write(bench.pipeline, &write, bench.now_ns);
    CU_ASSERT_EQUAL(written.refused, 1);
    CU_ASSERT_EQUAL(written.accepted, 0);
    close_bench(&bench);
}

TEST(what_the_cluster_accuses_before_any_verdict_is_known_with_its_workload)
{
    struct bench bench;
    open_bench(&bench);
    pipeline_describe_every(bench.pipeline, SECOND);
    pass(&bench, 30);
    bench.made_anew = "1 of its 6 pods was made anew alone: a-3";
    bench.job_stands = true;
    pass_until_incident(&bench);
    const struct incident *incident = remediation_incident_at(pipeline_core(bench.pipeline), 0);
    CU_ASSERT_STRING_EQUAL(incident->source, "scheduler");
    CU_ASSERT_EQUAL(incident->world_size, 24);
    CU_ASSERT_PTR_NOT_NULL_FATAL(incident->workload_json);
    CU_ASSERT_PTR_NOT_NULL(strstr(incident->workload_json, "\"kind\":\"volcano\""));
    close_bench(&bench);
}

TESTS(T(a_broken_node_is_cordoned_and_every_start_follows_its_durable_intent),
      T(nothing_starts_before_the_store_has_answered),
      T(while_the_store_is_away_nothing_starts_and_when_it_is_back_everything_does_once),
      T(a_batch_that_fails_under_a_store_that_seems_up_starts_nothing_and_goes_again),
      T(a_person_is_told_when_the_command_is_durable_and_not_before),
      T(a_pause_holds_at_once_though_the_database_is_away_and_other_commands_are_refused),
      T(a_pause_that_the_store_never_got_outlives_a_state_that_is_read_again),
      T(an_intent_that_was_taken_back_while_it_became_durable_is_cancelled),
      T(a_conflict_tells_the_owner_and_starts_nothing),
      T(a_core_that_is_read_again_hears_of_the_verdicts_that_hold),
      T(accusations_wait_for_the_first_sight_of_the_cluster),
      T(accusations_do_not_wait_for_ever_for_a_cluster_that_cannot_be_read),
      T(an_action_under_way_is_polled_and_not_started_again_when_the_state_is_read_again),
      T(a_pipeline_may_end_while_people_wait_and_actions_are_under_way),
      T(the_samples_round_an_incident_and_the_minutes_are_kept),
      T(lines_of_a_job_that_the_sender_may_not_speak_for_are_refused),
      T(what_the_cluster_accuses_before_any_verdict_is_known_with_its_workload))
