#include "controller/series/raw_window.h"
#include "controller/series/series.h"
#include "tests/harness/test.h"

#include <math.h>
#include <string.h>

static const int64_t NS_PER_S = 1000000000;

static void add(struct series *series, int64_t rank, int64_t step, double step_ms, int64_t time_ns)
{
    struct sample sample = {.measurement = MEASUREMENT_STEP, .rank = rank, .time_ns = time_ns};
    sample.present = UINT64_C(1) << FIELD_STEP | UINT64_C(1) << FIELD_STEP_MS;
    sample.values[FIELD_STEP] = (double)step;
    sample.values[FIELD_STEP_MS] = step_ms;
    series_add(series, &sample);
}

TEST(a_window_holds_what_was_sent_in_it_in_order)
{
    AUTO(series_free) struct series *series = series_new(4, 1 << 20);
    for (int64_t step = 0; step < 50; step++)
        for (int64_t rank = 0; rank < 4; rank++)
            add(series, rank, step, (double)(100 + step),
                (1000 + step) * NS_PER_S + rank * 1000000);
    struct raw_window window = series_window(series, FIELD_STEP_MS, 1010 * NS_PER_S,
                                             1020 * NS_PER_S);
    CU_ASSERT_EQUAL(window.count, 41);
    CU_ASSERT_EQUAL(window.step[0], 10);
    CU_ASSERT_EQUAL(window.rank[5], 1);
    CU_ASSERT_EQUAL(window.time_ns[5], 1011 * NS_PER_S + 1000000);
    CU_ASSERT(fabsf(window.value[5] - 111.0f) < 0.01f);
    raw_window_done(&window);
}

TEST(the_newest_steps_stay_when_the_ring_is_full)
{
    AUTO(series_free) struct series *series = series_new(8, 1);
    int32_t capacity = series_steps(series);
    for (int64_t step = 0; step < 3 * capacity; step++)
        add(series, 3, step, 1, (1000 + step) * NS_PER_S);
    struct raw_window window = series_window(series, FIELD_STEP_MS, 0, INT64_MAX / 2);
    CU_ASSERT_EQUAL(window.count, (size_t)capacity);
    CU_ASSERT_EQUAL(window.step[0], 2 * capacity);
    raw_window_done(&window);
    add(series, 3, 5, 1, 1005 * NS_PER_S);
    CU_ASSERT_EQUAL(series_counts(series).too_old, 1);
}

TEST(steps_that_go_back_after_a_restart_replace_the_old_run)
{
    AUTO(series_free) struct series *series = series_new(2, 1 << 20);
    for (int64_t step = 0; step < 10; step++)
        add(series, 0, step, 1, (1000 + step) * NS_PER_S);
    for (int64_t step = 5; step < 8; step++)
        add(series, 0, step, 2, (2000 + step) * NS_PER_S);
    struct raw_window window = series_window(series, FIELD_STEP_MS, 2000 * NS_PER_S,
                                             3000 * NS_PER_S);
    CU_ASSERT_EQUAL(window.count, 3);
    CU_ASSERT_EQUAL(window.step[2], 7);
    raw_window_done(&window);
}

TEST(a_minute_is_the_mean_of_each_rank_and_closes_after_its_end)
{
    AUTO(series_free) struct series *series = series_new(3, 1 << 20);
    struct rollup rollup;
    int64_t minute = 1800 * NS_PER_S;
    for (int64_t i = 0; i < 10; i++) {
        add(series, 0, i, 10, minute + i * NS_PER_S);
        add(series, 1, i, i % 2 ? 10 : 20, minute + i * NS_PER_S);
    }
    CU_ASSERT_FALSE(series_take_rollup(series, minute + 60 * NS_PER_S, &rollup));
    CU_ASSERT(series_take_rollup(series, minute + 90 * NS_PER_S, &rollup));
    CU_ASSERT_EQUAL(rollup.metric, FIELD_STEP_MS);
    CU_ASSERT_EQUAL(rollup.minute_ns, minute);
    CU_ASSERT(fabsf(rollup.values[0] - 10) < 0.001f && fabsf(rollup.values[1] - 15) < 0.001f);
    CU_ASSERT(isnan(rollup.values[2]));
    rollup_done(&rollup);
    CU_ASSERT_FALSE(series_take_rollup(series, minute + 90 * NS_PER_S, &rollup));
}

TEST(a_raw_window_comes_back_from_its_bytes)
{
    AUTO(series_free) struct series *series = series_new(4, 1 << 20);
    AUTO_TEXT bytes = {0};
    AUTO_TEXT base64 = {0};
    AUTO_TEXT again = {0};
    struct raw_window back;
    struct error error;
    for (int64_t step = 0; step < 7; step++)
        add(series, step % 4, step, 1.5 * (double)step, step * NS_PER_S);
    struct raw_window window = series_window(series, FIELD_STEP_MS, 0, 100 * NS_PER_S);
    raw_window_encode(&window, &bytes);
    base64_encode((struct view){bytes.bytes, bytes.length}, &base64);
    CU_ASSERT(base64_decode((struct view){base64.bytes, base64.length}, &again));
    CU_ASSERT_EQUAL_FATAL(raw_window_decode((struct view){again.bytes, again.length}, &back, NULL),
                          OK);
    CU_ASSERT_EQUAL(back.count, 7);
    CU_ASSERT_EQUAL(memcmp(back.value, window.value, 7 * sizeof *back.value), 0);
    raw_window_done(&back);
    raw_window_done(&window);
    CU_ASSERT_EQUAL(raw_window_decode((struct view){bytes.bytes, bytes.length - 1}, &back, &error),
                    ERR_INVALID);
    CU_ASSERT_EQUAL(raw_window_decode(view_of("BRW1"), &back, &error), ERR_INVALID);
    CU_ASSERT_FALSE(base64_decode(view_of("ab=c"), &again));
    CU_ASSERT_FALSE(base64_decode(view_of("abc"), &again));
}

/* Ranks 1 to 3 keep time; rank 0's clock is off_ns away. */
static void add_step(struct series *series, int64_t step, int64_t off_ns, bool wrong_one_first)
{
    int64_t time_ns = (3600 + step) * NS_PER_S;
    if (wrong_one_first)
        add(series, 0, step, 100, time_ns + off_ns);
    for (int64_t rank = 1; rank < 4; rank++)
        add(series, rank, step, 100, time_ns);
    if (!wrong_one_first)
        add(series, 0, step, 100, time_ns + off_ns);
}

static void check_clock(int64_t off_ns, bool wrong_one_first)
{
    AUTO(series_free) struct series *series = series_new(4, 1);
    struct rollup rollup;
    int64_t rollups = 0, full = 0;
    for (int64_t step = 0; step < 600; step++) {
        add_step(series, step, off_ns, wrong_one_first);
        while (series_take_rollup(series, (3600 + step) * NS_PER_S, &rollup)) {
            rollups++;
            full += !isnan(rollup.values[1]) && !isnan(rollup.values[2]) && !isnan(rollup.values[3])
                        ? 1
                        : 0;
            rollup_done(&rollup);
        }
    }
    int64_t from_step = 600 - series_steps(series);
    struct raw_window window = series_window(series, FIELD_STEP_MS, (3600 + from_step) * NS_PER_S,
                                             (3600 + 600) * NS_PER_S);
    CU_ASSERT_EQUAL(window.count, 3 * (size_t)series_steps(series));
    raw_window_done(&window);
    CU_ASSERT_EQUAL(full, 9); /* the tenth is still open */
    CU_ASSERT(rollups <= full + (off_ns < 0 ? 1 : 0));
}

TEST(a_clock_an_hour_off_takes_nothing_from_the_others)
{
    for (int64_t hours = -1; hours <= 1; hours += 2) {
        check_clock(hours * 3600 * NS_PER_S, true);
        check_clock(hours * 3600 * NS_PER_S, false);
    }
}

TEST(a_clock_decades_off_is_left_out_and_counted)
{
    AUTO(series_free) struct series *series = series_new(2, 1 << 20);
    add(series, 0, 5, 1, 1780000000 * NS_PER_S);
    add(series, 1, 5, 1, 1 * NS_PER_S);
    add(series, 1, 6, 1, INT64_MAX);
    CU_ASSERT_EQUAL(series_counts(series).clock_off, 1);
    CU_ASSERT_EQUAL(series_counts(series).kept, 2);
}

TEST(blanks_and_what_a_float_cannot_hold_are_not_kept)
{
    AUTO(series_free) struct series *series = series_new(1, 1 << 20);
    struct sample sample = {.measurement = MEASUREMENT_STEP, .rank = 0, .time_ns = 60 * NS_PER_S};
    struct rollup rollup;
    static const enum field fields[] = {FIELD_STEP, FIELD_STEP_MS, FIELD_SM, FIELD_MEM, FIELD_LOSS};
    static const double values[] = {1, 1e308, 9223372036854775794.0, 140737488355328.0, 3.5};
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        sample.present |= UINT64_C(1) << fields[i];
        sample.values[fields[i]] = values[i];
    }
    series_add(series, &sample);
    CU_ASSERT(series_take_rollup(series, 1000 * NS_PER_S, &rollup));
    CU_ASSERT_EQUAL(rollup.metric, FIELD_LOSS);
    rollup_done(&rollup);
    CU_ASSERT_FALSE(series_take_rollup(series, 1000 * NS_PER_S, &rollup));
    struct raw_window window = series_window(series, FIELD_SM, 0, INT64_MAX);
    CU_ASSERT_EQUAL(window.count, 0);
    raw_window_done(&window);
}

TEST(a_step_that_is_sent_twice_is_kept_once_with_its_last_value)
{
    AUTO(series_free) struct series *series = series_new(2, 1 << 20);
    add(series, 0, 5, 100, 1000 * NS_PER_S);
    add(series, 0, 5, 200, 1000 * NS_PER_S);
    struct raw_window window = series_window(series, FIELD_STEP_MS, 0, INT64_MAX);
    CU_ASSERT_EQUAL_FATAL(window.count, 1);
    CU_ASSERT(fabsf(window.value[0] - 200) < 0.01f);
    raw_window_done(&window);
}

TESTS(T(a_window_holds_what_was_sent_in_it_in_order),
      T(the_newest_steps_stay_when_the_ring_is_full),
      T(steps_that_go_back_after_a_restart_replace_the_old_run),
      T(a_minute_is_the_mean_of_each_rank_and_closes_after_its_end),
      T(a_raw_window_comes_back_from_its_bytes),
      T(a_clock_an_hour_off_takes_nothing_from_the_others),
      T(a_clock_decades_off_is_left_out_and_counted),
      T(blanks_and_what_a_float_cannot_hold_are_not_kept),
      T(a_step_that_is_sent_twice_is_kept_once_with_its_last_value))
