/* Shifts that came and went by themselves: what counts as one, and how long others have to last. */
#include "detectors/bursts.h"

#include "controller/base/status.h"
#include "tests/harness/test.h"

#include <math.h>

enum { UNITS = 128 };
/* A level between those of the bursts that are fed. */
static const double LEVEL = 0.1, NATS = 25;

static void push_rows(struct bursts *bursts, int rows, int32_t unit, int32_t last, double value)
{
    static const float OFFSETS[UNITS] = {0};
    float row[UNITS];

    for (int i = 0; i < rows; i++) {
        for (int32_t u = 0; u < UNITS; u++)
            row[u] = u >= unit && u <= last ? (float)value : 0;
        bursts_push(bursts, row, 0, OFFSETS);
    }
}

static void push_burst(struct bursts *bursts, int rows, int32_t unit, double value)
{
    push_rows(bursts, rows, unit, unit, value);
    push_rows(bursts, 6, 0, UNITS - 1, 0);
}

static int needed(const struct bursts *bursts, int32_t unit, double level, bool *ret_known)
{
    return bursts_rows_needed(bursts, unit, bursts_level(level), NATS, ret_known);
}

TEST(a_run_is_counted_while_it_lasts_and_one_row_below_does_not_end_it)
{
    struct bursts bursts;
    int index = bursts_level(LEVEL);

    bursts_init(&bursts, UNITS);
    CU_ASSERT(bursts_level_value(index) <= LEVEL && bursts_level_value(index + 1) > LEVEL);
    CU_ASSERT_EQUAL(bursts_level(0.01), -1);
    push_rows(&bursts, 5, 7, 7, 0.2);
    CU_ASSERT_EQUAL(bursts_run(&bursts, 7, index), 5);
    CU_ASSERT_EQUAL(bursts_run(&bursts, 8, index), 0);
    push_rows(&bursts, 1, 7, 7, 0.01);
    push_rows(&bursts, 2, 7, 7, 0.2);
    CU_ASSERT_EQUAL(bursts_run(&bursts, 7, index), 8);
    push_rows(&bursts, 3, 7, 7, (double)NAN); /* nothing was sent: neither above nor below */
    CU_ASSERT_EQUAL(bursts_run(&bursts, 7, index), 8);
    push_rows(&bursts, 2, 7, 7, 0.01);
    CU_ASSERT_EQUAL(bursts_run(&bursts, 7, index), 0);
    bursts_done(&bursts);
}

TEST(where_nothing_came_and_went_nothing_is_asked_for)
{
    struct bursts bursts;
    bool known = true;

    bursts_init(&bursts, UNITS);
    push_rows(&bursts, 200, 0, UNITS - 1, 0);
    CU_ASSERT_EQUAL(needed(&bursts, 7, LEVEL, &known), 0);
    CU_ASSERT_FALSE(known);
    push_burst(&bursts, 2, 9, 0.2); /* a stall, which the rate test counts */
    push_burst(&bursts, 8, 9, 0.05);
    CU_ASSERT_EQUAL(needed(&bursts, 7, LEVEL, &known), 0);
    push_burst(&bursts, 80, 9, 0.2); /* a fault that ended */
    CU_ASSERT_EQUAL(needed(&bursts, 7, LEVEL, &known), 0);
    bursts_done(&bursts);
}

TEST(of_few_twice_the_longest_is_asked_for_and_a_units_own_do_not_count)
{
    struct bursts bursts;
    bool known;

    bursts_init(&bursts, UNITS);
    push_burst(&bursts, 6, 9, 0.2);
    CU_ASSERT_EQUAL(needed(&bursts, 7, LEVEL, &known), 12);
    CU_ASSERT_FALSE(known);
    CU_ASSERT_EQUAL(needed(&bursts, 9, LEVEL, &known), 0);
    for (int i = 0; i < 10; i++) /* one unit that comes and goes is no kind of burst */
        push_burst(&bursts, 20, 9, 0.2);
    CU_ASSERT_EQUAL(needed(&bursts, 7, LEVEL, &known), BURST_ROWS_UNKNOWN);
    CU_ASSERT_FALSE(known);
    bursts_done(&bursts);
}

TEST(what_begins_in_the_same_rows_is_one_event_and_says_nothing_of_those_in_it)
{
    struct bursts bursts;
    bool known;

    bursts_init(&bursts, UNITS);
    for (int i = 0; i < 5; i++) {
        push_rows(&bursts, 8, 16, 31, 0.2);
        push_rows(&bursts, 12, 0, UNITS - 1, 0);
    }
    (void)needed(&bursts, 7, LEVEL, &known);
    CU_ASSERT_FALSE(known); /* five events, always the same units */
    CU_ASSERT_EQUAL(needed(&bursts, 20, LEVEL, &known), 0);
    bursts_done(&bursts);
}

/* Lengths as of a geometric distribution, drawn often: no more than the part of them that the nats
 * say is as long as what is asked for. */
TEST(the_chance_of_as_long_a_burst_is_what_was_asked_for)
{
    struct bursts bursts;
    uint64_t random = test_seed();
    int64_t rows = 0;
    int over = 0, starts = 20000;
    bool known;

    bursts_init(&bursts, UNITS);
    for (int i = 0; i < starts; i++) {
        int length = 3;
        while (test_random_unit(&random) > 0.2)
            length++;
        int32_t unit = (int32_t)(test_random_unit(&random) * UNITS);
        int asked = bursts_rows_needed(&bursts, unit, bursts_level(LEVEL), 12, &known);
        over += known && length >= asked;
        push_burst(&bursts, length, unit, 0.2);
        rows += length + 6;
    }
    CU_ASSERT(known);
    CU_ASSERT(over <= exp(-12) * (double)rows * UNITS);
    CU_ASSERT(bursts_rows_needed(&bursts, 7, bursts_level(LEVEL), 12, &known) < 100);
    CU_ASSERT_EQUAL(needed(&bursts, 7, 0.3, &known), 0);
    bursts_done(&bursts);
}

TESTS(T(a_run_is_counted_while_it_lasts_and_one_row_below_does_not_end_it),
      T(where_nothing_came_and_went_nothing_is_asked_for),
      T(of_few_twice_the_longest_is_asked_for_and_a_units_own_do_not_count),
      T(what_begins_in_the_same_rows_is_one_event_and_says_nothing_of_those_in_it),
      T(the_chance_of_as_long_a_burst_is_what_was_asked_for))
