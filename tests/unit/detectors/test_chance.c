/* What chance makes of a bank's residuals: calibration on noise of every kind, shocks, shifts. */
#include "detectors/chance.h"

#include "controller/base/status.h"
#include "tests/harness/test.h"

#include <math.h>

enum { UNITS = 256 };

/* What the default budget asks for at steps of one second. */
static const double NATS_ALARM = 27.8;

/* Noise that remembers, with tails as heavy as a ratio of normals makes them. */
struct noise {
    uint64_t random;
    double lag1, deviation;
    double last[UNITS];
};

static double heavy(uint64_t *random)
{
    double squares = 0;

    for (int i = 0; i < 5; i++) {
        double normal = test_random_normal(random);
        squares += normal * normal;
    }
    return test_random_normal(random) * sqrt(3 / squares);
}

static void push_noise(struct bank *bank, struct noise *noise, int step, int32_t unit, double more)
{
    double fresh = sqrt(1 - noise->lag1 * noise->lag1);
    float row[UNITS];

    for (int u = 0; u < UNITS; u++) {
        noise->last[u] = noise->lag1 * noise->last[u] + fresh * heavy(&noise->random);
        row[u] = (float)(noise->deviation * noise->last[u] + (u == unit ? more : 0));
    }
    bank_push(bank, step, row);
}

static double nats_of(const struct bank *bank, int32_t unit, int rows)
{
    uint8_t skip[UNITS] = {0};

    return chance_nats(bank, unit, rows, TEST_LEVEL, skip);
}

static void open_bank(struct bank *bank, struct noise *noise, double lag1, double deviation)
{
    *noise = (struct noise){.random = test_seed(), .lag1 = lag1, .deviation = deviation};
    bank_init(bank, UNITS);
    for (int step = 0; step < 100; step++)
        push_noise(bank, noise, step, 0, 0);
}

/* Part of the healthy units that have more nats than asked for. */
static double share_over(double nats, double lag1)
{
    struct noise noise;
    struct bank bank;
    int over = 0, all = 0;

    open_bank(&bank, &noise, lag1, 0.01);
    for (int round = 0; round < 4; round++) {
        for (int step = 0; step < CHART_RING; step++)
            push_noise(&bank, &noise, step, 0, 0);
        for (int32_t u = 0; u < UNITS; u++, all++)
            over += nats_of(&bank, u, 16) > nats;
    }
    bank_done(&bank);
    return (double)over / all;
}

TEST(nats_are_the_logarithm_of_how_seldom_they_are)
{
    static const double LAGS[] = {0, 0.3, 0.5, 0.85};

    for (size_t i = 0; i < ARRAY_LEN(LAGS); i++) {
        CU_ASSERT(share_over(2, LAGS[i]) <= exp(-2));
        CU_ASSERT(share_over(5, LAGS[i]) <= exp(-5) + 0.002);
    }
}

TEST(the_correlation_of_large_residuals_is_found_and_never_taken_for_less)
{
    static const double LAGS[] = {0, 0.3, 0.5, 0.85};

    for (size_t i = 0; i < ARRAY_LEN(LAGS); i++) {
        struct noise noise;
        struct bank bank;

        open_bank(&bank, &noise, LAGS[i], 0.01);
        double rho = chance_rho(&bank, NULL);
        CU_ASSERT(rho >= LAGS[i] - 0.01 && rho <= LAGS[i] + 0.15);
        bank_done(&bank);
    }
}

/* The most nats and spikes in the 40 rows after one shock that dies away. */
static double most_after_shock(double size, double *ret_spikes)
{
    struct noise noise;
    struct bank bank;
    double most = 0;

    *ret_spikes = 0;
    open_bank(&bank, &noise, 0.85, 0.02);
    for (int step = 0; step < 40; step++) {
        push_noise(&bank, &noise, 100 + step, 7, size * pow(0.85, step));
        most = fmax(most, nats_of(&bank, 7, step + 1));
        *ret_spikes = fmax(*ret_spikes, bank_view(&bank, 7).spikes);
    }
    bank_done(&bank);
    return most;
}

TEST(one_shock_is_one_rare_event_however_large_it_is_and_however_slowly_it_dies_away)
{
    static const double SIZES[] = {0.2, 0.4, 0.8, 3};

    for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
        double spikes;

        CU_ASSERT(most_after_shock(SIZES[i], &spikes) < 0.6 * NATS_ALARM);
        CU_ASSERT(spikes < 0.4 * NATS_ALARM);
    }
}

static int rows_to_alarm(double lag1, double deviation, double shift)
{
    struct noise noise;
    struct bank bank;
    int rows = 0;

    open_bank(&bank, &noise, lag1, deviation);
    do {
        push_noise(&bank, &noise, 100 + rows, 7, shift);
        rows++;
    } while (rows < CHART_RING && nats_of(&bank, 7, rows) < NATS_ALARM);
    bank_done(&bank);
    return rows;
}

TEST(what_lasts_is_beyond_chance_soon_where_noise_forgets_and_later_where_it_remembers)
{
    CU_ASSERT(rows_to_alarm(0.1, 0.004, 0.05) <= 5);
    CU_ASSERT(rows_to_alarm(0.3, 0.004, 0.05) <= 6);
    CU_ASSERT(rows_to_alarm(0.3, 0.004, 0.03) <= 12);
    CU_ASSERT(rows_to_alarm(0.85, 0.004, 0.05) <= 24);
    CU_ASSERT(rows_to_alarm(0.85, 0.02, 0.2) <= 32);
}

TEST(units_that_are_left_out_do_not_count_and_missing_rows_are_no_evidence)
{
    struct noise noise;
    struct bank bank;
    uint8_t skip[UNITS] = {[9] = 1};
    float missing[UNITS];

    open_bank(&bank, &noise, 0.1, 0.004);
    for (int u = 0; u < UNITS; u++)
        missing[u] = NAN;
    for (int step = 0; step < 20; step++)
        push_noise(&bank, &noise, 100 + step, 9, 0.3 * (step % 2));
    for (int step = 0; step < 4; step++)
        push_noise(&bank, &noise, 120 + step, 7, 0.1);
    double with = nats_of(&bank, 7, 4);
    double without = chance_nats(&bank, 7, 4, TEST_LEVEL, skip);
    CU_ASSERT(without > with + 5);
    bank_push(&bank, 124, missing);
    CU_ASSERT_DOUBLE_EQUAL(chance_nats(&bank, 7, 1, TEST_LEVEL, skip), 0, 0);
    bank_done(&bank);
}

TESTS(T(nats_are_the_logarithm_of_how_seldom_they_are),
      T(the_correlation_of_large_residuals_is_found_and_never_taken_for_less),
      T(one_shock_is_one_rare_event_however_large_it_is_and_however_slowly_it_dies_away),
      T(what_lasts_is_beyond_chance_soon_where_noise_forgets_and_later_where_it_remembers),
      T(units_that_are_left_out_do_not_count_and_missing_rows_are_no_evidence))
