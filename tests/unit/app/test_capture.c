/* What is kept of the samples: raw windows round incidents and one-minute rollups, as records. */
#include "controller/capture.h"
#include "controller/io/compress.h"
#include "controller/series/raw_window.h"

#include "tests/harness/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SECOND   INT64_C(1000000000)
#define START_NS (INT64_C(1780000020) * SECOND) /* begins a minute */

enum { RECORDS_MAX = 64, RANKS = 4 };

struct bench {
    struct jobs *jobs;
    struct captures *captures;
    struct json *records[RECORDS_MAX];
    int count;
};

static void open_bench(struct bench *bench)
{
    struct jobs_limits limits = {
        .memory_bytes = 64 << 20, .series_bytes_per_job = 8 << 20, .jobs = 2, .ranks = 64};
    struct engine_params params = engine_params_default();
    AUTO(job_free) struct job *job = job_new("team/a", RANKS);
    bool created;
    *bench = (struct bench){.jobs = jobs_new(&limits, &params), .captures = captures_new()};
    CU_ASSERT_EQUAL_FATAL(jobs_put(bench->jobs, job, START_NS, &created, NULL), OK);
}

static void close_bench(struct bench *bench)
{
    for (int i = 0; i < bench->count; i++)
        json_free(bench->records[i]);
    captures_free(bench->captures);
    jobs_free(bench->jobs);
}

/* A step a second, with this lag of the senders' clocks; rank r has a step_ms of 100 * (r + 1). */
static void feed(struct bench *bench, int from_s, int to_s, int64_t lag_ns)
{
    for (int s = from_s; s < to_s; s++)
        for (int rank = 0; rank < RANKS; rank++) {
            struct sample sample = {.measurement = MEASUREMENT_STEP,
                                    .job = view_of("team/a"),
                                    .rank = rank,
                                    .time_ns = START_NS + s * SECOND - lag_ns};
            sample.values[FIELD_STEP] = s;
            sample.values[FIELD_STEP_MS] = 100 * (rank + 1);
            sample.present = UINT64_C(1) << FIELD_STEP | UINT64_C(1) << FIELD_STEP_MS;
            CU_ASSERT_PTR_NULL(jobs_take(bench->jobs, &sample, START_NS + s * SECOND));
        }
}

static void take_record(void *context, const char *record)
{
    struct bench *bench = context;
    CU_ASSERT_FATAL(bench->count < RECORDS_MAX);
    CU_ASSERT_PTR_NULL(strchr(record, '\n'));
    CU_ASSERT_EQUAL_FATAL(json_parse(view_of(record), &bench->records[bench->count++], NULL), OK);
}

static int64_t emit_due(struct bench *bench, int at_s)
{
    return captures_emit_due(bench->captures, bench->jobs, START_NS + at_s * SECOND, take_record,
                             bench);
}

static struct raw_window unpack(const struct json *record)
{
    AUTO_TEXT packed = {0};
    AUTO_TEXT plain = {0};
    struct raw_window window = {0};
    CU_ASSERT_STRING_EQUAL(json_get_string(record, "encoding", ""), "zstd-columns");
    CU_ASSERT_FATAL(base64_decode(view_of(json_get_string(record, "data", "")), &packed));
    CU_ASSERT_EQUAL_FATAL(
        zstd_unpack((struct view){packed.bytes, packed.length}, 1 << 24, &plain, NULL), OK);
    CU_ASSERT_EQUAL_FATAL(
        raw_window_decode((struct view){plain.bytes, plain.length}, &window, NULL), OK);
    return window;
}

TEST(a_window_is_emitted_once_its_end_has_come_and_only_once)
{
    struct bench bench;
    open_bench(&bench);
    feed(&bench, 0, 60, 0);
    captures_plan(bench.captures, "INC-1", "team/a", START_NS + 10 * SECOND,
                  START_NS + 50 * SECOND);
    CU_ASSERT_EQUAL(emit_due(&bench, 49), 0);
    CU_ASSERT_EQUAL(emit_due(&bench, 50), 1);
    CU_ASSERT_EQUAL(emit_due(&bench, 51), 0);
    close_bench(&bench);
}

TEST(a_window_holds_the_samples_of_its_time_and_no_others)
{
    struct bench bench;
    open_bench(&bench);
    feed(&bench, 0, 60, 0);
    captures_plan(bench.captures, "INC-1", "team/a", START_NS + 10 * SECOND,
                  START_NS + 19 * SECOND);
    CU_ASSERT_EQUAL_FATAL(emit_due(&bench, 19), 1);
    CU_ASSERT_STRING_EQUAL(json_get_string(bench.records[0], "type", ""), "raw_window");
    CU_ASSERT_STRING_EQUAL(json_get_string(bench.records[0], "incident", ""), "INC-1");
    CU_ASSERT_STRING_EQUAL(json_get_string(bench.records[0], "metric", ""), "step_ms");
    struct raw_window window = unpack(bench.records[0]);
    CU_ASSERT_EQUAL(window.count, 10 * RANKS);
    CU_ASSERT_EQUAL(json_get_int(bench.records[0], "points", 0), 10 * RANKS);
    for (size_t i = 0; i < window.count; i++) {
        CU_ASSERT_TRUE(window.step[i] >= 10 && window.step[i] <= 19);
        CU_ASSERT_DOUBLE_EQUAL(window.value[i], 100 * (window.rank[i] + 1), 1e-6);
    }
    raw_window_done(&window);
    close_bench(&bench);
}

TEST(a_window_is_in_our_time_though_the_senders_clocks_are_behind)
{
    struct bench bench;
    open_bench(&bench);
    feed(&bench, 0, 60, 3600 * SECOND);
    captures_plan(bench.captures, "INC-1", "team/a", START_NS + 10 * SECOND,
                  START_NS + 19 * SECOND);
    CU_ASSERT_EQUAL_FATAL(emit_due(&bench, 30), 1);
    struct raw_window window = unpack(bench.records[0]);
    CU_ASSERT_EQUAL(window.count, 10 * RANKS);
    raw_window_done(&window);
    close_bench(&bench);
}

TEST(a_second_plan_of_an_incident_widens_the_first_while_it_waits)
{
    struct bench bench;
    open_bench(&bench);
    feed(&bench, 0, 60, 0);
    captures_plan(bench.captures, "INC-1", "team/a", START_NS + 20 * SECOND,
                  START_NS + 30 * SECOND);
    captures_plan(bench.captures, "INC-1", "team/a", START_NS + 10 * SECOND,
                  START_NS + 25 * SECOND);
    captures_plan(bench.captures, "INC-1", "team/a", START_NS + 28 * SECOND,
                  START_NS + 39 * SECOND);
    CU_ASSERT_EQUAL(emit_due(&bench, 30), 0);
    CU_ASSERT_EQUAL_FATAL(emit_due(&bench, 39), 1);
    struct raw_window window = unpack(bench.records[0]);
    CU_ASSERT_EQUAL(window.count, 30 * RANKS);
    raw_window_done(&window);
    close_bench(&bench);
}

TEST(windows_of_two_incidents_are_emitted_each_at_its_time)
{
    struct bench bench;
    open_bench(&bench);
    feed(&bench, 0, 60, 0);
    captures_plan(bench.captures, "INC-1", "team/a", START_NS, START_NS + 30 * SECOND);
    captures_plan(bench.captures, "INC-2", "team/a", START_NS, START_NS + 20 * SECOND);
    CU_ASSERT_EQUAL(emit_due(&bench, 20), 1);
    CU_ASSERT_EQUAL(emit_due(&bench, 30), 1);
    CU_ASSERT_EQUAL_FATAL(bench.count, 2);
    CU_ASSERT_STRING_EQUAL(json_get_string(bench.records[0], "incident", ""), "INC-2");
    CU_ASSERT_STRING_EQUAL(json_get_string(bench.records[1], "incident", ""), "INC-1");
    CU_ASSERT_STRING_NOT_EQUAL(json_get_string(bench.records[0], "key", ""),
                               json_get_string(bench.records[1], "key", ""));
    close_bench(&bench);
}

TEST(a_window_of_a_job_that_is_gone_is_dropped)
{
    struct bench bench;
    open_bench(&bench);
    captures_plan(bench.captures, "INC-1", "team/gone", START_NS, START_NS + SECOND);
    CU_ASSERT_EQUAL(emit_due(&bench, 2), 0);
    CU_ASSERT_EQUAL(emit_due(&bench, 3), 0);
    close_bench(&bench);
}

TEST(rollups_of_closed_minutes_hold_the_mean_of_each_rank)
{
    struct bench bench;
    open_bench(&bench);
    feed(&bench, 0, 150, 0);
    struct live_job *live = jobs_first(bench.jobs);
    int64_t emitted = captures_emit_rollups(live, START_NS + 150 * SECOND, take_record, &bench);
    CU_ASSERT_EQUAL_FATAL(emitted, 2);
    CU_ASSERT_EQUAL(captures_emit_rollups(live, START_NS + 150 * SECOND, take_record, &bench), 0);
    for (int i = 0; i < 2; i++) {
        const struct json *record = bench.records[i];
        CU_ASSERT_STRING_EQUAL(json_get_string(record, "type", ""), "rollup");
        CU_ASSERT_STRING_EQUAL(json_get_string(record, "job", ""), "team/a");
        CU_ASSERT_EQUAL(json_get_int(record, "minute_ns", 0), START_NS + i * 60 * SECOND);
        CU_ASSERT_EQUAL(json_get_int(record, "ranks", 0), RANKS);
        int rank = 0;
        for (const struct json *value = json_first(json_get(record, "values")); value != NULL;
             value = json_next(value))
            CU_ASSERT_DOUBLE_EQUAL(json_number(value, NAN), 100 * ++rank, 1e-3);
        CU_ASSERT_EQUAL(rank, RANKS);
    }
    close_bench(&bench);
}

TESTS(T(a_window_is_emitted_once_its_end_has_come_and_only_once),
      T(a_window_holds_the_samples_of_its_time_and_no_others),
      T(a_window_is_in_our_time_though_the_senders_clocks_are_behind),
      T(a_second_plan_of_an_incident_widens_the_first_while_it_waits),
      T(windows_of_two_incidents_are_emitted_each_at_its_time),
      T(a_window_of_a_job_that_is_gone_is_dropped),
      T(rollups_of_closed_minutes_hold_the_mean_of_each_rank))
