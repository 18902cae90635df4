/* The sequential tests: false alarms on clean noise, delay to a shift, what a spike does,
 * equivariance. */
#include "detectors/chart.h"
#include "detectors/stats/robust.h"
#include "tests/harness/test.h"

#include <math.h>

enum { UNITS = 256 };

/* Autocorrelated noise of one deviation per unit. */
struct noise {
    uint64_t random;
    double lag1, deviation;
    double last[UNITS];
};

static void noise_row(struct noise *noise, float *row)
{
    double fresh = sqrt(1 - noise->lag1 * noise->lag1);

    for (int u = 0; u < UNITS; u++) {
        noise->last[u] = noise->lag1 * noise->last[u] + fresh * test_random_normal(&noise->random);
        row[u] = (float)(noise->deviation * noise->last[u]);
    }
}

static double highest_z(const struct bank *bank)
{
    double most = 0;

    for (int32_t u = 0; u < bank->units; u++)
        most = fmax(most, bank_view(bank, u).z);
    return most;
}

/* The alarm of the default budget at steps of one second: about seven. */
static const double ALARM = 6.9;

static double highest_in_clean_rows(double lag1, double deviation, int rows)
{
    struct noise noise = {.random = test_seed(), .lag1 = lag1, .deviation = deviation};
    struct bank bank;
    float row[UNITS];
    double most = 0;

    bank_init(&bank, UNITS);
    for (int step = 0; step < rows; step++) {
        noise_row(&noise, row);
        bank_push(&bank, step, row);
        if (step > 20)
            most = fmax(most, highest_z(&bank));
    }
    bank_done(&bank);
    return most;
}

TEST(white_noise_raises_no_alarm)
{
    CU_ASSERT(highest_in_clean_rows(0, 0.01, test_rounds(3000)) < ALARM);
}

TEST(noise_that_remembers_raises_no_alarm)
{
    CU_ASSERT(highest_in_clean_rows(0.5, 0.01, test_rounds(3000)) < ALARM);
    CU_ASSERT(highest_in_clean_rows(0.85, 0.02, test_rounds(3000)) < ALARM);
}

/* Rows until the unit's score passes the alarm after a shift; -1 when it does not within 200. */
static int delay_of(double shift, double deviation)
{
    struct noise noise = {.random = test_seed(), .lag1 = 0, .deviation = deviation};
    struct bank bank;
    float row[UNITS];
    int delay = -1;

    bank_init(&bank, UNITS);
    for (int step = 0; step < 300 && delay < 0; step++) {
        noise_row(&noise, row);
        if (step >= 100)
            row[7] += (float)shift;
        bank_push(&bank, step, row);
        if (step >= 100 && bank_view(&bank, 7).z > ALARM)
            delay = step - 99;
    }
    bank_done(&bank);
    return delay;
}

TEST(a_shift_of_five_per_cent_shows_within_six_rows_at_half_a_per_cent_of_noise)
{
    int delay = delay_of(0.05, 0.005);

    CU_ASSERT(delay >= 1 && delay <= 6);
}

TEST(a_shift_of_three_per_cent_shows_within_fifteen_rows_at_half_a_per_cent_of_noise)
{
    int delay = delay_of(0.03, 0.005);

    CU_ASSERT(delay >= 1 && delay <= 15);
}

TEST(a_shift_of_five_per_cent_shows_within_fifty_rows_at_two_per_cent_of_noise)
{
    int delay = delay_of(0.05, 0.02);

    CU_ASSERT(delay >= 1 && delay <= 50);
}

/* Units differ for ever by half a per cent each; one of them grows three per cent slower. */
TEST(a_small_change_shows_within_eight_rows_among_lasting_differences)
{
    struct noise noise = {.random = test_seed(), .deviation = 0.004};
    struct bank bank;
    float row[UNITS], lasting[UNITS];
    int delay = -1;

    for (int u = 0; u < UNITS; u++)
        lasting[u] = (float)(0.005 * test_random_normal(&noise.random));
    bank_init(&bank, UNITS);
    for (int step = 0; step < 200 && delay < 0; step++) {
        noise_row(&noise, row);
        for (int u = 0; u < UNITS; u++)
            row[u] += lasting[u];
        row[7] += step >= 100 ? 0.03f : 0;
        bank_push(&bank, step, row);
        if (step >= 100 && bank_view(&bank, 7).z > ALARM)
            delay = step - 99;
    }
    CU_ASSERT(delay >= 1 && delay <= 8);
    CU_ASSERT_EQUAL(bank_view(&bank, 7).test, TEST_CHANGE);
    CU_ASSERT_DOUBLE_EQUAL(bank_view(&bank, 7).level, 0.025, 0.015);
    bank_done(&bank);
}

TEST(what_was_always_slow_is_no_change_and_stays_slow)
{
    struct noise noise = {.random = test_seed(), .deviation = 0.005};
    struct bank bank;
    float row[UNITS];

    bank_init(&bank, UNITS);
    for (int step = 0; step < 2000; step++) {
        noise_row(&noise, row);
        row[7] += 0.08f;
        bank_push(&bank, step, row);
    }
    CU_ASSERT(bank_view(&bank, 7).z > ALARM);
    CU_ASSERT_EQUAL(bank_view(&bank, 7).test, TEST_LEVEL);
    CU_ASSERT_DOUBLE_EQUAL(bank_view(&bank, 7).level, 0.08, 0.01);
    bank_done(&bank);
}

TEST(a_unit_is_known_by_its_own_noise)
{
    struct noise noise = {.random = test_seed(), .deviation = 0.005};
    struct bank bank;
    float row[UNITS];

    bank_init(&bank, UNITS);
    for (int step = 0; step < 100; step++) {
        noise_row(&noise, row);
        row[9] *= 4;
        row[7] += step >= 95 ? 0.5f : 0;
        bank_push(&bank, step, row);
    }
    CU_ASSERT_DOUBLE_EQUAL(bank_own_spread(&bank, 3, 4), 0.005, 0.003);
    CU_ASSERT(bank_own_spread(&bank, 9, 4) > 0.01);
    CU_ASSERT(isnan(bank_own_spread(&bank, 9, 60)));
    CU_ASSERT_EQUAL(bank_run_above(&bank, 7, 0.2), 5);
    CU_ASSERT_EQUAL(bank_run_above(&bank, 3, 0.2), 0);
    bank_done(&bank);
}

TEST(one_spike_is_no_lasting_shift)
{
    struct noise noise = {.random = test_seed(), .deviation = 0.005};
    struct bank bank;
    float row[UNITS];

    bank_init(&bank, UNITS);
    for (int step = 0; step < 100; step++) {
        noise_row(&noise, row);
        if (step == 90)
            row[3] = 2;
        bank_push(&bank, step, row);
    }
    /* A window of sixteen rows holds the spike clipped: its mean is below what a verdict needs. */
    CU_ASSERT(bank_view(&bank, 3).level < 0.02);
    CU_ASSERT(bank_view(&bank, 3).spikes < 5);
    bank_done(&bank);
}

TEST(spikes_in_a_third_of_the_rows_add_up_and_rare_ones_do_not)
{
    struct noise noise = {.random = test_seed(), .deviation = 0.005};
    struct bank bank;
    float row[UNITS];

    bank_init(&bank, UNITS);
    for (int step = 0; step < 200; step++) {
        noise_row(&noise, row);
        if (step % 3 == 0)
            row[3] = 0.8f;
        if (step % 50 == 0)
            row[4] = 0.8f;
        bank_push(&bank, step, row);
    }
    CU_ASSERT(bank_view(&bank, 3).spikes > 27);
    CU_ASSERT(bank_view(&bank, 4).spikes < 5);
    bank_done(&bank);
}

TEST(scores_do_not_change_when_all_units_move_together_or_the_unit_of_time_does)
{
    struct noise noise = {.random = test_seed(), .deviation = 0.01};
    struct bank plain, shifted, scaled;
    float row[UNITS], other[UNITS];

    bank_init(&plain, UNITS);
    bank_init(&shifted, UNITS);
    bank_init(&scaled, UNITS);
    for (int step = 0; step < 128; step++) {
        noise_row(&noise, row);
        row[9] += step >= 100 ? 0.03f : 0;
        bank_push(&plain, step, row);
        for (int u = 0; u < UNITS; u++)
            other[u] = row[u] + 0.01f;
        bank_push(&shifted, step, other);
        for (int u = 0; u < UNITS; u++)
            other[u] = row[u] * 0.5f;
        bank_push(&scaled, step, other);
    }
    for (int32_t u = 0; u < UNITS; u++) {
        CU_ASSERT_DOUBLE_EQUAL(bank_view(&shifted, u).z, bank_view(&plain, u).z, 0.05);
        CU_ASSERT_DOUBLE_EQUAL(bank_view(&scaled, u).z, bank_view(&plain, u).z, 0.35);
    }
    bank_done(&plain);
    bank_done(&shifted);
    bank_done(&scaled);
}

TEST(half_of_the_units_shifted_at_once_stand_out_from_the_other_half)
{
    struct noise noise = {.random = test_seed(), .deviation = 0.005};
    struct bank bank;
    float row[UNITS];

    bank_init(&bank, UNITS);
    for (int step = 0; step < 128; step++) {
        noise_row(&noise, row);
        for (int u = 0; step >= 96 && u < UNITS / 2; u++)
            row[u] += 0.1f;
        bank_push(&bank, step, row);
    }
    CU_ASSERT(bank_view(&bank, 5).z > ALARM);
    CU_ASSERT(bank_view(&bank, UNITS - 5).z < ALARM);
    bank_done(&bank);
}

TEST(the_onset_of_a_shift_is_found_back)
{
    struct noise noise = {.random = test_seed(), .deviation = 0.005};
    struct bank bank;
    float row[UNITS];

    bank_init(&bank, UNITS);
    for (int step = 0; step < 100; step++) {
        noise_row(&noise, row);
        if (step >= 80)
            row[3] += 0.05f;
        bank_push(&bank, step, row);
    }
    CU_ASSERT_EQUAL(bank_rows_since_onset(&bank, 3, 0.05, TEST_LEVEL), 20);
    CU_ASSERT_EQUAL(bank_step(&bank, 19), 80);
    CU_ASSERT_DOUBLE_EQUAL(bank_mean(&bank, 3, 20, TEST_LEVEL), 0.05, 0.005);
    bank_done(&bank);
}

TEST(missing_values_are_neither_good_nor_bad)
{
    struct bank bank;
    float row[4];

    bank_init(&bank, 4);
    for (int step = 0; step < 40; step++) {
        for (int u = 0; u < 4; u++)
            row[u] = (float)(u * 0.001 + (step % 2) * 0.0005);
        if (step % 3 == 0)
            row[2] = NAN;
        bank_push(&bank, step, row);
    }
    CU_ASSERT(isfinite(bank_mean(&bank, 2, 8, TEST_LEVEL)));
    CU_ASSERT(isnan(bank_value(&bank, 2, 0)));
    bank_clear_unit(&bank, 2);
    CU_ASSERT(isnan(bank_mean(&bank, 2, 8, TEST_LEVEL)));
    CU_ASSERT_DOUBLE_EQUAL(bank_view(&bank, 2).z, 0, 1e-9);
    bank_done(&bank);
}

TESTS(T(a_small_change_shows_within_eight_rows_among_lasting_differences),
      T(what_was_always_slow_is_no_change_and_stays_slow), T(a_unit_is_known_by_its_own_noise),
      T(white_noise_raises_no_alarm), T(noise_that_remembers_raises_no_alarm),
      T(a_shift_of_five_per_cent_shows_within_six_rows_at_half_a_per_cent_of_noise),
      T(a_shift_of_three_per_cent_shows_within_fifteen_rows_at_half_a_per_cent_of_noise),
      T(a_shift_of_five_per_cent_shows_within_fifty_rows_at_two_per_cent_of_noise),
      T(one_spike_is_no_lasting_shift),
      T(spikes_in_a_third_of_the_rows_add_up_and_rare_ones_do_not),
      T(scores_do_not_change_when_all_units_move_together_or_the_unit_of_time_does),
      T(half_of_the_units_shifted_at_once_stand_out_from_the_other_half),
      T(the_onset_of_a_shift_is_found_back), T(missing_values_are_neither_good_nor_bad))
