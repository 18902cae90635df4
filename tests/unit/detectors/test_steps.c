/* Step assembly: what closes a row, and what is left out. */
#include "detectors/steps.h"
#include "tests/harness/test.h"

#include <math.h>

enum { RANKS = 4 };

static enum steps_outcome give(struct steps *steps, int32_t rank, int64_t step, double step_ms)
{
    struct sample sample = {.measurement = MEASUREMENT_STEP, .rank = rank, .time_ns = 1000 + step};

    sample.values[FIELD_STEP] = (double)step;
    sample.values[FIELD_STEP_MS] = step_ms;
    sample.present = UINT64_C(1) << FIELD_STEP | UINT64_C(1) << FIELD_STEP_MS;
    return steps_feed(steps, &sample);
}

static void close_all(struct steps *steps)
{
    while (steps_ready(steps) != NULL)
        steps_pop(steps);
}

/* Three whole steps: who reports is known then. */
static struct steps *learned(void)
{
    struct steps *steps = steps_new(RANKS);

    for (int64_t step = 0; step < 3; step++)
        for (int32_t r = 0; r < RANKS; r++) {
            (void)give(steps, r, step, 100);
            close_all(steps);
        }
    return steps;
}

TEST(a_row_closes_with_its_last_rank)
{
    struct steps *steps = learned();

    CU_ASSERT_EQUAL(steps_last_closed(steps), 2);
    for (int32_t r = 0; r < RANKS - 1; r++)
        (void)give(steps, r, 3, 100);
    CU_ASSERT_PTR_NULL(steps_ready(steps));
    (void)give(steps, RANKS - 1, 3, 100);
    CU_ASSERT_PTR_NOT_NULL(steps_ready(steps));
    steps_free(steps);
}

TEST(a_lost_line_holds_a_row_for_two_steps_and_no_longer)
{
    struct steps *steps = learned();
    const struct row *row;

    for (int64_t step = 3; step < 5; step++)
        for (int32_t r = step == 3 ? 1 : 0; r < RANKS; r++)
            (void)give(steps, r, step, 100);
    CU_ASSERT_PTR_NULL(steps_ready(steps));
    for (int32_t r = 0; r < RANKS; r++)
        (void)give(steps, r, 5, 100);
    row = steps_ready(steps);
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    CU_ASSERT_EQUAL(row->step, 3);
    CU_ASSERT_EQUAL(row->reported, RANKS - 1);
    CU_ASSERT(isnan(row->values[STREAM_STEP_MS][0]));
    steps_free(steps);
}

TEST(a_line_that_is_late_by_a_step_is_still_used)
{
    struct steps *steps = learned();

    for (int32_t r = 1; r < RANKS; r++)
        (void)give(steps, r, 3, 100);
    for (int32_t r = 1; r < RANKS; r++)
        (void)give(steps, r, 4, 100);
    CU_ASSERT_EQUAL(give(steps, 0, 3, 100), STEPS_USED);
    close_all(steps);
    CU_ASSERT_EQUAL(give(steps, 0, 2, 100), STEPS_LATE);
    steps_free(steps);
}

TEST(doubled_lines_and_senseless_durations_are_left_out)
{
    struct steps *steps = learned();

    CU_ASSERT_EQUAL(give(steps, 0, 3, 100), STEPS_USED);
    CU_ASSERT_EQUAL(give(steps, 0, 3, 101), STEPS_DUPLICATE);
    CU_ASSERT_EQUAL(give(steps, 1, 3, (double)NAN), STEPS_NOT_FINITE);
    CU_ASSERT_EQUAL(give(steps, 1, 3, 0), STEPS_NOT_FINITE);
    CU_ASSERT_EQUAL(give(steps, 1, 3, -5), STEPS_NOT_FINITE);
    CU_ASSERT_EQUAL(give(steps, 1, 3, 9223372036854775794.0), STEPS_NOT_FINITE);
    CU_ASSERT_EQUAL(give(steps, 1, -3, 100), STEPS_NOT_FINITE);
    steps_free(steps);
}

TEST(step_numbers_may_have_gaps)
{
    struct steps *steps = learned();

    for (int32_t r = 0; r < RANKS; r++)
        (void)give(steps, r, 900, 100);
    CU_ASSERT_PTR_NOT_NULL(steps_ready(steps));
    steps_pop(steps);
    CU_ASSERT_EQUAL(steps_last_closed(steps), 900);
    CU_ASSERT_EQUAL(steps_finished(steps), 900);
    steps_free(steps);
}

TEST(a_rank_that_never_reports_is_not_waited_for)
{
    struct steps *steps = steps_new(RANKS);

    for (int64_t step = 0; step < 6; step++) {
        (void)give(steps, 0, step, 100);
        (void)give(steps, 2, step, 100);
        close_all(steps);
    }
    CU_ASSERT_EQUAL(steps_expected(steps), 2);
    CU_ASSERT_EQUAL(steps_last_closed(steps), 5);
    steps_free(steps);
}

TESTS(T(a_row_closes_with_its_last_rank), T(a_lost_line_holds_a_row_for_two_steps_and_no_longer),
      T(a_line_that_is_late_by_a_step_is_still_used),
      T(doubled_lines_and_senseless_durations_are_left_out), T(step_numbers_may_have_gaps),
      T(a_rank_that_never_reports_is_not_waited_for))
