#include "detectors/stats/robust.h"
#include "tests/harness/test.h"

#include <math.h>

TEST(selection_agrees_with_sorting_by_hand)
{
    float values[] = {5, 1, 4, 1, 3};

    CU_ASSERT_DOUBLE_EQUAL(robust_select(values, 5, 0), 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(robust_select(values, 5, 1), 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(robust_select(values, 5, 2), 3, 0);
    CU_ASSERT_DOUBLE_EQUAL(robust_select(values, 5, 4), 5, 0);
}

TEST(selection_agrees_with_counting_on_random_values)
{
    uint64_t random = test_seed();

    for (int round = 0; round < test_rounds(300); round++) {
        float values[64], copy[64];
        size_t count = 1 + (size_t)(test_random(&random) % 64);
        size_t index = (size_t)(test_random(&random) % count), below = 0, equal = 0;
        for (size_t i = 0; i < count; i++)
            copy[i] = values[i] = (float)(test_random(&random) % 10);
        double selected = robust_select(values, count, index);
        for (size_t i = 0; i < count; i++) {
            below += (double)copy[i] < selected;
            equal += fabs((double)copy[i] - selected) < 1e-9;
        }
        CU_ASSERT(below <= index && index < below + equal);
    }
}

TEST(sorting_agrees_with_selection_on_random_values)
{
    static float values[2048], sorted[2048], scratch[2048];
    uint64_t random = test_seed();

    for (int round = 0; round < test_rounds(30); round++) {
        size_t count = 1 + (size_t)(test_random(&random) % (round % 2 == 0 ? 40 : 2048));
        for (size_t i = 0; i < count; i++)
            values[i] = sorted[i] = (float)(test_random_normal(&random) *
                                            (double)(test_random(&random) % 3));
        robust_sort(sorted, scratch, count);
        for (size_t i = 0; i < count; i += 1 + count / 16)
            CU_ASSERT_DOUBLE_EQUAL((double)sorted[i], robust_select(values, count, i), 0);
    }
}

TEST(the_usual_spread_of_sorted_values_is_the_mad)
{
    float few[] = {1, 2, 4, 8, 9, 20, 21}, even[] = {-3, 1, 2, 7};

    CU_ASSERT_DOUBLE_EQUAL(robust_healthy_spread(few, 7).centre, 8, 0);
    CU_ASSERT_DOUBLE_EQUAL(robust_healthy_spread(few, 7).spread, 1.4826 * 6, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(robust_healthy_spread(even, 4).spread, 1.4826 * 2.5, 1e-6);
}

TEST(median_and_mad_of_a_small_table)
{
    float odd[] = {9, 1, 5}, even[] = {1, 2, 3, 10}, spread[] = {1, 1, 2, 2, 4, 6, 9};

    CU_ASSERT_DOUBLE_EQUAL(robust_median(odd, 3), 5, 0);
    CU_ASSERT_DOUBLE_EQUAL(robust_median(even, 4), 2.5, 0);
    CU_ASSERT_DOUBLE_EQUAL(robust_mad(spread, 7, 2), 1.4826, 1e-6);
}

TEST(the_reference_lies_low)
{
    float values[] = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110}, pair[] = {2, 1};

    CU_ASSERT_DOUBLE_EQUAL(robust_reference(values, 11), 30, 0);
    CU_ASSERT_DOUBLE_EQUAL(robust_reference(pair, 2), 1, 0);
}

static struct robust_spread spread_of(size_t count, double shifted_part, double shift)
{
    static float values[4096], scratch[4096];
    uint64_t random = test_seed();

    for (size_t i = 0; i < count; i++)
        values[i] = (float)(test_random_normal(&random) +
                            ((double)i < shifted_part * (double)count ? shift : 0));
    robust_sort(values, scratch, count);
    return robust_healthy_spread(values, count);
}

TEST(the_healthy_spread_of_normal_values_is_their_sigma)
{
    struct robust_spread spread = spread_of(4096, 0, 0);

    CU_ASSERT_DOUBLE_EQUAL(spread.centre, 0, 0.1);
    CU_ASSERT_DOUBLE_EQUAL(spread.spread, 1, 0.08);
}

TEST(half_of_the_values_far_off_leave_centre_and_spread_with_the_others)
{
    struct robust_spread spread = spread_of(1024, 0.5, 30);

    CU_ASSERT(fabs(spread.centre) < 1.5);
    CU_ASSERT(spread.spread < 4);
}

TEST(normal_tails_are_the_published_ones)
{
    CU_ASSERT_DOUBLE_EQUAL(robust_normal_quantile(0.05), 1.6449, 1e-3);
    CU_ASSERT_DOUBLE_EQUAL(robust_normal_quantile(1e-12), 7.0345, 1e-3);
    CU_ASSERT_DOUBLE_EQUAL(robust_normal_tail(3), 0.00134990, 1e-7);
}

TESTS(T(selection_agrees_with_sorting_by_hand), T(selection_agrees_with_counting_on_random_values),
      T(sorting_agrees_with_selection_on_random_values),
      T(the_usual_spread_of_sorted_values_is_the_mad), T(median_and_mad_of_a_small_table),
      T(the_reference_lies_low), T(the_healthy_spread_of_normal_values_is_their_sigma),
      T(half_of_the_values_far_off_leave_centre_and_spread_with_the_others),
      T(normal_tails_are_the_published_ones))
