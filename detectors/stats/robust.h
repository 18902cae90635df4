/* Order statistics and tails that every detector shares. Pure; nothing here keeps state. Samples
 * are float because they are kept in rings of millions; results are double.
 */
#ifndef BROOM_DETECTORS_STATS_ROBUST_H
#define BROOM_DETECTORS_STATS_ROBUST_H

#include <stddef.h>

/* The value with exactly `index` values before it in sorted order. Permutes values; count >= 1. */
double robust_select(float *values, size_t count, size_t index);

/* Ascending order; no NAN. `scratch` is as long as values. */
void robust_sort(float *values, float *scratch, size_t count);

/* Median; the mean of the two middle values when count is even. Permutes values; count >= 1. */
double robust_median(float *values, size_t count);

/* The reference that a unit is held against: the point that 20 % of its peers lie below. Faults
 * only ever slow a unit down, so a low point still describes the healthy ones when most of the
 * peers are slow (a rack that is two thirds of a stage). Permutes values; count >= 1. */
double robust_reference(float *values, size_t count);

/* Centre and spread of the healthy units among many, when up to half of them may be shifted to one
 * side and a quarter to either. Median and MAD, unless the densest 40 % of the values lie much
 * closer together than MAD says: then these are the healthy ones. Of sorted values; count >= 1. */
struct robust_spread {
    double centre;
    double spread;
};
struct robust_spread robust_healthy_spread(const float *sorted, size_t count);

/* Spread of the upper side alone, from the points that 50 % and 85 % lie below. Of sorted values.
 */
double robust_upper_spread(const float *sorted, size_t count);

/* 1.4826 * median(|v - centre|): sigma for normal data. Overwrites values; count >= 1. */
double robust_mad(float *values, size_t count, double centre);

/* The z that a standard normal passes with the given probability (0 < probability < 0.5). */
double robust_normal_quantile(double upper_tail_probability);
/* P(Z > z). */
double robust_normal_tail(double z);

#endif
