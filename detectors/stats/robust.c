/* Quickselect with median-of-three pivots where one value is asked for, a sort by digits where many
 * are; GSL gives the normal tails. */
#include "detectors/stats/robust.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static void swap_values(float *a, float *b)
{
    float kept = *a;

    *a = *b;
    *b = kept;
}

/* Puts the median of first, middle and last in the middle: sorted input stays cheap. */
static float pivot_of(float *values, size_t low, size_t high)
{
    size_t middle = low + (high - low) / 2;

    if (values[middle] < values[low])
        swap_values(&values[middle], &values[low]);
    if (values[high] < values[low])
        swap_values(&values[high], &values[low]);
    if (values[high] < values[middle])
        swap_values(&values[high], &values[middle]);
    return values[middle];
}

double robust_select(float *values, size_t count, size_t index)
{
    size_t low = 0, high = count - 1;

    assert(count > 0 && index < count);
    while (low < high) {
        float pivot = pivot_of(values, low, high);
        size_t left = low, right = high;

        for (;;) {
            while (values[left] < pivot)
                left++;
            while (pivot < values[right])
                right--;
            if (left >= right)
                break;
            swap_values(&values[left++], &values[right--]);
        }
        if (index <= right)
            high = right;
        else
            low = right + 1;
    }
    return (double)values[index];
}

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, PASSES = 32 / DIGIT_BITS, FEW = 32 };

/* Unsigned keys in the order of the floats: negative ones are turned round. */
static uint32_t key_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (bits & UINT32_C(0x80000000)) != 0 ? ~bits : bits | UINT32_C(0x80000000);
}

static void sort_few(float *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        float value = values[i];
        size_t at = i;

        for (; at > 0 && value < values[at - 1]; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

void robust_sort(float *values, float *scratch, size_t count)
{
    size_t starts[PASSES][DIGITS] = {{0}};

    if (count <= FEW) {
        sort_few(values, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        for (int pass = 0; pass < PASSES; pass++)
            starts[pass][key_of(values[i]) >> (DIGIT_BITS * pass) & (DIGITS - 1)]++;
    for (int pass = 0; pass < PASSES; pass++) {
        float *from = pass % 2 == 0 ? values : scratch, *to = pass % 2 == 0 ? scratch : values;
        size_t before = 0;

        for (int digit = 0; digit < DIGITS; digit++) {
            size_t here = starts[pass][digit];
            starts[pass][digit] = before;
            before += here;
        }
        for (size_t i = 0; i < count; i++)
            to[starts[pass][key_of(from[i]) >> (DIGIT_BITS * pass) & (DIGITS - 1)]++] = from[i];
    }
}

double robust_median(float *values, size_t count)
{
    double upper = robust_select(values, count, count / 2);

    float lower = values[0];

    if (count % 2 == 1)
        return upper;
    /* Selection has left the smaller half below. */
    for (size_t i = 1; i < count / 2; i++)
        lower = values[i] > lower ? values[i] : lower;
    return (upper + (double)lower) / 2;
}

double robust_reference(float *values, size_t count)
{
    return robust_select(values, count, (size_t)(0.2 * (double)(count - 1)));
}

double robust_mad(float *values, size_t count, double centre)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)fabs((double)values[i] - centre);
    return 1.4826 * robust_median(values, count);
}

/* Intervals that hold 40 % of the values each, with the normal quantiles of their ends: every one
 * gives the same centre and spread for normal data; the least spread is of the densest. */
static const struct {
    double low, high, z_low, z_high;
} INTERVALS[] = {
    {0.02, 0.42, -2.0537, -0.2019}, {0.10, 0.50, -1.2816, 0},      {0.20, 0.60, -0.8416, 0.2533},
    {0.30, 0.70, -0.5244, 0.5244},  {0.40, 0.80, -0.2533, 0.8416}, {0.50, 0.90, 0, 1.2816},
};
enum { INTERVAL_COUNT = sizeof INTERVALS / sizeof INTERVALS[0], DENSE_LEAST = 12, DENSE_MANY = 64 };

/* The p-quantile of sorted values, linear between order statistics. */
static double quantile(const float *sorted, size_t count, double p)
{
    double place = p * (double)(count - 1);
    size_t below = (size_t)place;
    double low = (double)sorted[below];

    if (below + 1 >= count)
        return low;
    return low + (place - (double)below) * ((double)sorted[below + 1] - low);
}

/* The least of several estimates is too low by about 1.7 / sqrt(n) (found by simulation, n 16 to
 * 512). */
static struct robust_spread dense_spread(const float *sorted, size_t count)
{
    struct robust_spread best = {.centre = 0, .spread = INFINITY};

    for (size_t i = 0; i < INTERVAL_COUNT; i++) {
        double low = quantile(sorted, count, INTERVALS[i].low);
        double high = quantile(sorted, count, INTERVALS[i].high);
        double spread = (high - low) / (INTERVALS[i].z_high - INTERVALS[i].z_low);
        if (spread < best.spread) {
            best.spread = spread;
            best.centre = low - INTERVALS[i].z_low * spread;
        }
    }
    best.spread /= 1 - 1.7 / sqrt((double)count);
    return best;
}

static double middle_of(const float *sorted, size_t count)
{
    double upper = (double)sorted[count / 2];

    return count % 2 == 1 ? upper : (upper + (double)sorted[count / 2 - 1]) / 2;
}

/* 1.4826 MAD: deviations grow to both sides of the centre, so the smaller half of them is met by
 * going outwards on both. */
static double sorted_mad(const float *sorted, size_t count, double centre)
{
    size_t above = count / 2, below = above;
    float last = 0, before = 0;

    while (above > 0 && (double)sorted[above - 1] >= centre)
        above--;
    while (above < count && (double)sorted[above] < centre)
        above++;
    below = above;
    for (size_t i = 0; i <= count / 2; i++) {
        float up = above < count ? (float)((double)sorted[above] - centre) : INFINITY;
        float down = below > 0 ? (float)(centre - (double)sorted[below - 1]) : INFINITY;

        before = last;
        last = up < down ? up : down;
        if (up < down)
            above++;
        else
            below--;
    }
    return 1.4826 * (count % 2 == 1 ? (double)last : ((double)last + (double)before) / 2);
}

struct robust_spread robust_healthy_spread(const float *sorted, size_t count)
{
    struct robust_spread dense = {.centre = 0, .spread = INFINITY}, usual;

    if (count >= DENSE_LEAST)
        dense = dense_spread(sorted, count);
    usual.centre = middle_of(sorted, count);
    usual.spread = sorted_mad(sorted, count, usual.centre);
    if (dense.spread < (count >= DENSE_MANY ? 0.7 : 0.5) * usual.spread)
        return dense;
    return usual;
}

double robust_upper_spread(const float *sorted, size_t count)
{
    /* 1.0364 is the normal quantile of 85 %. */
    return (quantile(sorted, count, 0.85) - quantile(sorted, count, 0.5)) / 1.0364;
}

double robust_normal_quantile(double upper_tail_probability)
{
    return gsl_cdf_ugaussian_Qinv(upper_tail_probability);
}

double robust_normal_tail(double z)
{
    return gsl_cdf_ugaussian_Q(z);
}
