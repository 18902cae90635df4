/* A daemon that is killed after a rank fell silent and before it said so: the next one knows the
 * job from the files beside the recording and names that rank; one without them cannot.
 */
#include "controller/io/recorder.h"
#include "controller/warm.h"

#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND   INT64_C(1000000000)
#define START_NS (INT64_C(1780000020) * SECOND)

enum { RANKS = 24, SICK_RANK = 9, STEPS = 120 };

struct bench {
    char dir[32];
    struct pipeline *pipeline;
    struct recorder *recorder;
    int64_t now_ns, records;
    struct text named; /* what was said, one a line */
};

static void submit(void *self, struct view records, bool spoolable, pipeline_durable_fn *done,
                   void *context)
{
    struct bench *bench = self;
    (void)spoolable;
    bench->records += records.length > 0 ? 1 : 0;
    done(context, OK, NULL);
}

static void diverged(void *self, const char *reason)
{
    (void)self;
    (void)reason;
    CU_FAIL("diverged");
}

static void notify(void *self, const char *incident_ref, const char *params_json)
{
    (void)self;
    (void)incident_ref;
    (void)params_json;
}

static void on_verdict(void *context, const struct live_job *live, const struct verdict *verdict)
{
    struct bench *bench = context;
    (void)live;
    text_addf(&bench->named, "%s %s %s\n", verdict_kind_name(verdict->kind),
              scope_name(verdict->scope), verdict->id);
}

static void start_daemon(struct bench *bench)
{
    struct pipeline_params params = {.limits = {.memory_bytes = 64 << 20,
                                                .series_bytes_per_job = 8 << 20,
                                                .jobs = 2,
                                                .ranks = 64},
                                     .detection = engine_params_default()};
    struct pipeline_ports ports = {
        .self = bench, .submit = submit, .diverged = diverged, .notify = notify};
    struct remediation_params core = {.actuator = "none", .next_number = 1};
    bench->pipeline = pipeline_new(&params, &ports, remediation_new(&core));
    pipeline_on_verdict(bench->pipeline, on_verdict, bench);
    CU_ASSERT_EQUAL_FATAL(recorder_open(bench->dir, 8 << 20, &bench->recorder, NULL), OK);
}

/* As SIGKILL does, up to the last flush. */
static void kill_daemon(struct bench *bench)
{
    recorder_flush(bench->recorder);
    recorder_free(bench->recorder);
    pipeline_free(bench->pipeline);
    text_clear(&bench->named);
}

static void put_job(struct bench *bench)
{
    AUTO(job_free) struct job *job = job_new("team/a", RANKS);
    int32_t rack = job_intern_rack(job, "r1", NULL);
    char node[16];
    bool created;
    for (int32_t r = 0; r < RANKS; r++) {
        (void)snprintf(node, sizeof node, "n%d", (int)(r / 4));
        job->ranks[r] = (struct job_rank){
            .tray = job_intern_tray(job, node, rack), .gpu = (int16_t)(r % 4), .rail = JOB_NONE};
    }
    CU_ASSERT_EQUAL_FATAL(pipeline_put_job(bench->pipeline, job, bench->now_ns, &created, NULL),
                          OK);
}

static void send(struct bench *bench, const struct text *lines)
{
    struct pipeline_write write = {.body = {lines->bytes, lines->length}, .source = "job"};
    pipeline_write(bench->pipeline, &write, bench->now_ns);
    recorder_add(bench->recorder, write.body, 1, bench->now_ns);
}

static void steps(struct bench *bench, int first, int last)
{
    for (int step = first; step <= last; step++) {
        AUTO_TEXT lines = {0};
        bench->now_ns += SECOND;
        for (int rank = 0; rank < RANKS; rank++)
            text_addf(&lines,
                      "step,job=team/a,rank=%d "
                      "step=%di,step_ms=1000,allreduce_ms=50,compute_ms=900 %lld\n",
                      rank, step, (long long)bench->now_ns);
        send(bench, &lines);
        pipeline_tick(bench->pipeline, bench->now_ns);
    }
}

/* All but one wait for it in the all-reduce. */
static void stand(struct bench *bench, int seconds)
{
    for (int s = 0; s < seconds; s++) {
        AUTO_TEXT lines = {0};
        bench->now_ns += SECOND;
        for (int rank = 0; rank < RANKS && s % 5 == 0; rank++)
            if (rank != SICK_RANK)
                text_addf(&lines, "beat,job=team/a,rank=%d step=%di,phase=\"allreduce\" %lld\n",
                          rank, STEPS + 1, (long long)bench->now_ns);
        if (lines.length > 0)
            send(bench, &lines);
        pipeline_tick(bench->pipeline, bench->now_ns);
    }
}

static void open_bench(struct bench *bench)
{
    *bench = (struct bench){.now_ns = START_NS, .dir = "/tmp/broom-warm-XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(bench->dir));
    start_daemon(bench);
    put_job(bench);
    steps(bench, 1, STEPS);
    stand(bench, 3);
    CU_ASSERT_EQUAL(bench->named.length, 0); /* too early to say */
    CU_ASSERT_EQUAL_FATAL(warm_save(bench->dir, bench->pipeline, NULL), OK);
    kill_daemon(bench);
    bench->now_ns += 4 * SECOND;
}

static void close_bench(struct bench *bench)
{
    AUTO_TEXT command = {0};
    AUTO_TEXT path = {0};
    kill_daemon(bench);
    text_done(&bench->named);
    text_addf(&path, "%s/jobs.jsonl", bench->dir);
    unlink(path.bytes);
    for (int64_t at = START_NS; at < bench->now_ns; at += SECOND) {
        text_clear(&command);
        text_addf(&command, "%s/rec-%019lld.lp.zst", bench->dir, (long long)at);
        unlink(command.bytes);
    }
    CU_ASSERT_EQUAL(rmdir(bench->dir), 0);
}

TEST(a_rank_that_fell_silent_before_a_restart_is_named_after_it)
{
    struct bench bench;
    open_bench(&bench);
    start_daemon(&bench);
    int64_t records = bench.records;
    struct warmed warmed = warm_up(bench.dir, bench.pipeline, bench.now_ns - 600 * SECOND,
                                   bench.now_ns);
    CU_ASSERT_EQUAL(warmed.jobs, 1);
    CU_ASSERT_EQUAL(warmed.lines, STEPS * RANKS + RANKS - 1);
    CU_ASSERT_EQUAL(bench.records, records); /* what was recorded once is not recorded again */
    stand(&bench, 90);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bench.named.bytes);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.named.bytes, " rank 9\n"));
    close_bench(&bench);
}

TEST(without_what_was_recorded_the_same_silence_is_a_start_that_takes_long)
{
    struct bench bench;
    open_bench(&bench);
    start_daemon(&bench);
    put_job(&bench);
    stand(&bench, 90);
    CU_ASSERT_EQUAL(bench.named.length, 0);
    close_bench(&bench);
}

TEST(the_time_in_which_nobody_listened_is_no_silence)
{
    struct bench bench = {.now_ns = START_NS, .dir = "/tmp/broom-warm-XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(bench.dir));
    start_daemon(&bench);
    put_job(&bench);
    steps(&bench, 1, STEPS);
    CU_ASSERT_EQUAL_FATAL(warm_save(bench.dir, bench.pipeline, NULL), OK);
    kill_daemon(&bench);
    bench.now_ns += 300 * SECOND;
    start_daemon(&bench);
    warm_up(bench.dir, bench.pipeline, bench.now_ns - 600 * SECOND, bench.now_ns);
    for (int s = 0; s < 20; s++) /* no sender has found it yet */
        pipeline_tick(bench.pipeline, bench.now_ns += SECOND);
    steps(&bench, STEPS + 301, STEPS + 360);
    CU_ASSERT_EQUAL(bench.named.length, 0);
    close_bench(&bench);
}

static void hello(struct bench *bench, int attempt, const char *sick_node)
{
    AUTO_TEXT lines = {0};
    bench->now_ns += SECOND;
    for (int rank = 0; rank < RANKS; rank++) {
        char node[16];
        (void)snprintf(node, sizeof node, "n%d", rank / 4);
        text_addf(&lines, "hello,job=team/a,rank=%d,host=%s world=%di,attempt=%di %lld\n", rank,
                  rank / 4 == SICK_RANK / 4 ? sick_node : node, RANKS, attempt,
                  (long long)bench->now_ns);
    }
    send(bench, &lines);
}

static void slow_steps(struct bench *bench, int first, int last, double ratio)
{
    for (int step = first; step <= last; step++) {
        AUTO_TEXT lines = {0};
        double slow_ms = 900 * ratio;
        bench->now_ns += 2 * SECOND;
        for (int rank = 0; rank < RANKS; rank++)
            text_addf(&lines,
                      "step,job=team/a,rank=%d "
                      "step=%di,step_ms=%.1f,allreduce_ms=%.1f,compute_ms=%.1f %lld\n",
                      rank, step, slow_ms + 100, rank == SICK_RANK ? 50 : slow_ms - 850,
                      rank == SICK_RANK ? slow_ms : 900 + (rank * 7 + step * 3) % 5 * 0.5,
                      (long long)bench->now_ns);
        send(bench, &lines);
        pipeline_tick(bench->pipeline, bench->now_ns);
    }
}

/* Rank 9 is slow, then the job is restarted without the tray that it was on. */
TEST(what_another_attempt_recorded_is_not_laid_to_the_tray_of_this_one)
{
    struct bench bench = {.now_ns = START_NS, .dir = "/tmp/broom-warm-XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(bench.dir));
    start_daemon(&bench);
    put_job(&bench);
    hello(&bench, 0, "n2");
    slow_steps(&bench, 1, 100, 1.5);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bench.named.bytes);
    hello(&bench, 1, "spare");
    slow_steps(&bench, 90, 120, 1.0);
    CU_ASSERT_EQUAL_FATAL(warm_save(bench.dir, bench.pipeline, NULL), OK);
    kill_daemon(&bench);
    start_daemon(&bench);
    warm_up(bench.dir, bench.pipeline, bench.now_ns - 600 * SECOND, bench.now_ns);
    const struct live_job *live = jobs_find(pipeline_jobs(bench.pipeline), view_of("team/a"));
    CU_ASSERT_EQUAL(live->open_count, 0);
    close_bench(&bench);
}

static int64_t attempts(const struct bench *bench)
{
    const struct live_job *live = jobs_find(pipeline_jobs(bench->pipeline), view_of("team/a"));
    return engine_progress(live->engine).attempt;
}

TEST(a_hello_after_a_restart_of_broomd_is_a_new_attempt_only_when_it_names_one)
{
    struct bench bench = {.now_ns = START_NS, .dir = "/tmp/broom-warm-XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(bench.dir));
    start_daemon(&bench);
    put_job(&bench);
    hello(&bench, 3, "n2");
    steps(&bench, 1, 10);
    CU_ASSERT_EQUAL_FATAL(warm_save(bench.dir, bench.pipeline, NULL), OK);
    stand(&bench, 100); /* so long that the recording that is read has no step */
    kill_daemon(&bench);
    start_daemon(&bench);
    warm_up(bench.dir, bench.pipeline, bench.now_ns - 60 * SECOND, bench.now_ns);
    int64_t before = attempts(&bench);
    hello(&bench, 3, "n2");
    CU_ASSERT_EQUAL(attempts(&bench), before);
    hello(&bench, 4, "n2");
    CU_ASSERT_EQUAL(attempts(&bench), before + 1);
    close_bench(&bench);
}

TEST(an_empty_folder_warms_nothing)
{
    struct bench bench;
    open_bench(&bench);
    start_daemon(&bench);
    struct warmed warmed = warm_up("/nonexistent", bench.pipeline, 0, bench.now_ns);
    CU_ASSERT_EQUAL(warmed.jobs + warmed.lines, 0);
    close_bench(&bench);
}

TESTS(T(a_rank_that_fell_silent_before_a_restart_is_named_after_it),
      T(without_what_was_recorded_the_same_silence_is_a_start_that_takes_long),
      T(the_time_in_which_nobody_listened_is_no_silence),
      T(a_hello_after_a_restart_of_broomd_is_a_new_attempt_only_when_it_names_one),
      T(what_another_attempt_recorded_is_not_laid_to_the_tray_of_this_one),
      T(an_empty_folder_warms_nothing))
