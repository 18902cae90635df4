/* Quickselect with median-of-three pivots; GSL gives the normal tails. */
#include "detectors/stats/robust.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <math.h>

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

double robust_median(float *values, size_t count)
{
    double upper = robust_select(values, count, count / 2);

    if (count % 2 == 1)
        return upper;
    return (upper + robust_select(values, count, count / 2 - 1)) / 2;
}

double robust_reference(float *values, size_t count)
{
    return robust_select(values, count, (size_t)(0.35 * (double)(count - 1)));
}

double robust_mad(float *values, size_t count, double centre)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)fabs((double)values[i] - centre);
    return 1.4826 * robust_median(values, count);
}

/* The p-quantile, linear between order statistics. */
static double quantile(float *values, size_t count, double p)
{
    double place = p * (double)(count - 1);
    size_t below = (size_t)place;
    double low = robust_select(values, count, below);

    if (below + 1 >= count)
        return low;
    return low + (place - (double)below) * (robust_select(values, count, below + 1) - low);
}

struct robust_spread robust_lower_spread(float *values, size_t count)
{
    /* z(0.3) = -0.5244 and z(0.1) = -1.2816 of the standard normal. */
    struct robust_spread result;

    if (count < ROBUST_FEW) {
        result.centre = robust_median(values, count);
        result.spread = robust_mad(values, count, result.centre);
        return result;
    }
    double q30 = quantile(values, count, 0.3);
    double q10 = quantile(values, count, 0.1);

    result.spread = (q30 - q10) / (1.2816 - 0.5244);
    result.centre = q30 + 0.5244 * result.spread;
    return result;
}

double robust_normal_quantile(double upper_tail_probability)
{
    return gsl_cdf_ugaussian_Qinv(upper_tail_probability);
}

double robust_normal_tail(double z)
{
    return gsl_cdf_ugaussian_Q(z);
}
