/* Tails of innovations are counted, over all rows of all other units: garbage collection, stalls
 * and heavy tails count themselves, and what was never seen counts as seen once.
 */
#include "detectors/chance.h"

#include "controller/base/mem.h"
#include "detectors/stats/robust.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

static const double RHO_MOST = 0.97, STANDARD_ERRORS = 2, LARGE_SIGMAS = 3;
enum { LARGE_UNITS_LEAST = 4 };
/* Sums of more nats than this are beyond any budget; e to their power is still a number. */
static const double NATS_MOST = 600;

static int rows_kept(const struct bank *bank)
{
    return bank->pushed < CHART_RING ? (int)bank->pushed : CHART_RING;
}

/* Sums over pairs of neighbouring rows of products, and of squares of the earlier and the later. */
struct pairs {
    double products, earlier, later;
    int64_t count;
};

static void add_pair(struct pairs *pairs, double before, double after)
{
    pairs->products += before * after;
    pairs->earlier += before * before;
    pairs->later += after * after;
    pairs->count++;
}

static double slope_of(const struct pairs *pairs)
{
    return pairs->earlier > 0 ? pairs->products / pairs->earlier : 0;
}

/* What is summed up of each unit, row by row: that is how residuals lie in memory. */
struct unit_sums {
    double mean;
    struct pairs large;
    int count;
};

static void find_means(const struct bank *bank, struct unit_sums *units)
{
    for (int back = 0; back < rows_kept(bank); back++) {
        const float *row = bank_row(bank, back);
        for (int32_t u = 0; u < bank->units; u++)
            if (isfinite(row[u])) {
                units[u].mean += (double)row[u];
                units[u].count++;
            }
    }
    for (int32_t u = 0; u < bank->units; u++)
        units[u].mean /= units[u].count > 0 ? units[u].count : 1;
}

/* Residuals about their unit's mean, parted by the size of the earlier one of each pair: that does
 * not bend the slope of the later one on it. */
static void add_pairs(const struct bank *bank, const uint8_t *skip, struct unit_sums *units,
                      struct pairs *ordinary)
{
    double over = LARGE_SIGMAS * bank->sigma;

    for (int back = 0; back + 1 < rows_kept(bank); back++) {
        const float *later = bank_row(bank, back), *earlier = bank_row(bank, back + 1);
        for (int32_t u = 0; u < bank->units; u++) {
            double before = (double)earlier[u] - units[u].mean;
            double after = (double)later[u] - units[u].mean;
            if (isfinite(before) && isfinite(after) && (skip == NULL || skip[u] == 0))
                add_pair(fabs(before) > over ? &units[u].large : ordinary, before, after);
        }
    }
}

double chance_rho(const struct bank *bank, const uint8_t *skip)
{
    AUTO_FREE struct unit_sums *units = xcalloc((size_t)bank->units + 1, sizeof *units);
    AUTO_FREE float *kept = xcalloc((size_t)bank->units + 1, sizeof *kept);
    struct pairs ordinary = {0};
    size_t n = 0;

    find_means(bank, units);
    add_pairs(bank, skip, units, &ordinary);
    for (int32_t u = 0; u < bank->units; u++)
        if (units[u].large.count > 0)
            kept[n++] = (float)slope_of(&units[u].large);
    if (ordinary.count == 0)
        return RHO_MOST;
    double rho = slope_of(&ordinary);
    double left = fmax(ordinary.later - rho * ordinary.products, 0) / (double)ordinary.count;
    rho += STANDARD_ERRORS * sqrt(left / fmax(ordinary.earlier, DBL_MIN));
    if (n >= LARGE_UNITS_LEAST) {
        double median = robust_median(kept, n);
        double error = 1.25 * robust_mad(kept, n, median) / sqrt((double)n);
        rho = fmax(rho, median + STANDARD_ERRORS * error);
    }
    /* The mean is the rows' own, which hides a part of what they have in common. */
    rho += (1 + 3 * fmax(rho, 0)) / rows_kept(bank);
    return fmin(fmax(rho, 0), RHO_MOST);
}

static int by_size(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;

    return (one > other) - (one < other);
}

/* How many of the sorted values, filled up with infinity, are not larger. Without a branch: a
 * million values are looked up in a large job. */
static int count_reached(const double sorted[CHART_RING], double value)
{
    int reached = 0;

    for (int half = CHART_RING / 2; half > 0; half /= 2)
        reached += sorted[reached + half - 1] <= value ? half : 0;
    return reached;
}

/* The part of all innovations of the other units that are as large as each of the sorted ones. */
static void count_tails(const struct bank *bank, enum chart_test test, double rho,
                        const uint8_t *skip, const double sorted[CHART_RING], int count,
                        double *ret_tails)
{
    int64_t reached[CHART_RING] = {0}, all = 0, above = 0;

    for (int back = 0; back + 1 < rows_kept(bank); back++) {
        const float *later = bank_row(bank, back), *earlier = bank_row(bank, back + 1);
        for (int32_t u = 0; u < bank->units; u++) {
            double zero = bank_zero(bank, u, 0, test);
            double value = (double)later[u] - zero - rho * ((double)earlier[u] - zero);
            if (skip[u] != 0 || !isfinite(value))
                continue;
            all++;
            if (value >= sorted[0])
                reached[count_reached(sorted, value)]++;
        }
    }
    for (int i = count; i > 0; i--) {
        above += reached[i];
        ret_tails[i - 1] = (double)(above + 1) / (double)(all + 1);
    }
}

/* Minus the logarithm of the chance that `n` independent tails multiply to as little (Fisher): the
 * upper tail of a gamma distribution of shape n. */
static double product_nats(double sum, int n)
{
    double term = 1, all = 1;

    sum = fmin(sum, NATS_MOST);
    for (int k = 1; k < n; k++) {
        term *= sum / k;
        all += term;
    }
    return sum - log(all);
}

double chance_nats(const struct bank *bank, int32_t unit, int rows, enum chart_test test,
                   uint8_t *skip)
{
    double values[CHART_RING], sorted[CHART_RING], tails[CHART_RING];
    double zero = bank_zero(bank, unit, 0, test), sum = 0, largest = 0, best = 0;
    int count = 0;

    assert(unit >= 0 && unit < bank->units);
    skip[unit] = 1;
    double rho = chance_rho(bank, skip);
    for (int back = 0; back < rows && back + 1 < rows_kept(bank); back++) {
        double value = bank_value(bank, unit, back) - zero -
                       rho * (bank_value(bank, unit, back + 1) - zero);
        if (isfinite(value))
            values[count++] = value;
    }
    if (count == 0)
        return 0;
    for (int i = 0; i < CHART_RING; i++)
        sorted[i] = i < count ? values[i] : (double)INFINITY;
    qsort(sorted, (size_t)count, sizeof *sorted, by_size);
    count_tails(bank, test, rho, skip, sorted, count, tails);
    for (int i = 0; i < count; i++) {
        double tail = tails[count_reached(sorted, values[i]) - 1];
        int n = i + 1;

        largest = fmax(largest, tail);
        sum -= log(tail);
        /* All are as large as the least, or together they are as much; any n might have been it. */
        double nats = fmax(-n * log(largest), product_nats(sum, n)) - log(2.0 * n * (n + 1));
        best = fmax(best, nats);
    }
    return best;
}
