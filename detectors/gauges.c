/* Exponential means; the slow ones start as plain means. */
#include "detectors/gauges.h"

#include "controller/base/mem.h"
#include "detectors/stats/robust.h"

#include <math.h>
#include <string.h>

enum { LEARN_ROWS = 20 };
/* Gauges come every ten to sixty seconds. */
static const double HARDWARE_WEIGHT = 0.5, CLOCK_MOST_MHZ = 10000, POWER_MOST_W = 10000;
static const double FAST_WEIGHT = 0.15, MEMORY_WEIGHT = 0.4, BASE_WEIGHT = 0.02;

static float *unknown(int32_t count)
{
    float *values = xcalloc((size_t)count, sizeof *values);

    for (int32_t i = 0; i < count; i++)
        values[i] = NAN;
    return values;
}

void gauges_init(struct gauges *gauges, int32_t ranks)
{
    memset(gauges, 0, sizeof *gauges);
    gauges->ranks = ranks;
    gauges->sm_fast = unknown(ranks);
    gauges->sm_base = unknown(ranks);
    gauges->mem_fast = unknown(ranks);
    gauges->mem_base = unknown(ranks);
    gauges->data_fast = unknown(ranks);
    gauges->data_base = unknown(ranks);
    gauges->clock_mhz = unknown(ranks);
    gauges->power_w = unknown(ranks);
}

void gauges_done(struct gauges *gauges)
{
    xfree(gauges->sm_fast);
    xfree(gauges->sm_base);
    xfree(gauges->mem_fast);
    xfree(gauges->mem_base);
    xfree(gauges->data_fast);
    xfree(gauges->data_base);
    xfree(gauges->clock_mhz);
    xfree(gauges->power_w);
    memset(gauges, 0, sizeof *gauges);
}

void gauges_restart(struct gauges *gauges)
{
    float *all[] = {gauges->sm_fast,   gauges->sm_base,   gauges->mem_fast,  gauges->mem_base,
                    gauges->data_fast, gauges->data_base, gauges->clock_mhz, gauges->power_w};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (int32_t r = 0; r < gauges->ranks; r++)
            all[i][r] = NAN;
    gauges->rows = 0;
}

static void follow_weighted(float *fast, float *base, float value, int64_t rows, double tolerance,
                            double weight)
{
    if (!isfinite(value))
        return;
    if (!isfinite(*fast)) {
        *fast = *base = value;
        return;
    }
    double early = 1.0 / (double)(rows + 1);
    *fast += (float)(fmax(weight, early) * (double)(value - *fast));
    if (rows < LEARN_ROWS || fabs((double)(*fast - *base)) <= tolerance)
        *base += (float)(fmax(BASE_WEIGHT, early) * (double)(value - *base));
}

void gauges_follow(float *fast, float *base, float value, int64_t rows, double tolerance)
{
    follow_weighted(fast, base, value, rows, tolerance, FAST_WEIGHT);
}

/* part: tolerance as a part of the base. */
static void follow(float *fast, float *base, float value, int64_t rows, double part, double weight)
{
    double tolerance = isfinite(*base) ? part * fmax(fabs((double)*base), 0.05) : 0;

    follow_weighted(fast, base, value, rows, tolerance, weight);
}

void gauges_row(struct gauges *gauges, const float *sm_ratio, const float *mem,
                const float *data_ms)
{
    for (int32_t r = 0; r < gauges->ranks; r++) {
        follow(&gauges->sm_fast[r], &gauges->sm_base[r], sm_ratio[r], gauges->rows, 0.025,
               FAST_WEIGHT);
        follow(&gauges->mem_fast[r], &gauges->mem_base[r], mem[r], gauges->rows, 0.03,
               MEMORY_WEIGHT);
        follow(&gauges->data_fast[r], &gauges->data_base[r], data_ms[r], gauges->rows, 0.5,
               FAST_WEIGHT);
    }
    gauges->rows++;
}

static void follow_hardware(float *mean, double value, double most)
{
    if (!(value > 0) || value > most)
        return;
    *mean = isfinite(*mean) ? *mean + (float)(HARDWARE_WEIGHT * (value - (double)*mean))
                            : (float)value;
}

void gauges_hardware(struct gauges *gauges, int32_t rank, double clock_mhz, double power_w)
{
    follow_hardware(&gauges->clock_mhz[rank], clock_mhz, CLOCK_MOST_MHZ);
    follow_hardware(&gauges->power_w[rank], power_w, POWER_MOST_W);
}

double gauges_ratio(const struct gauges *gauges, const float *values, int32_t rank, float *scratch)
{
    size_t n = 0;

    for (int32_t r = 0; r < gauges->ranks; r++)
        if (isfinite(values[r]))
            scratch[n++] = values[r];
    double median = n > 0 ? robust_median(scratch, n) : (double)NAN;
    return median > 0 ? (double)values[rank] / median : (double)NAN;
}

double gauges_sm_shift(const struct gauges *gauges, int32_t rank, bool has_past)
{
    double fast = (double)gauges->sm_fast[rank],
           base = has_past ? (double)gauges->sm_base[rank] : 1;

    return base > 0 ? fast / base - 1 : (double)NAN;
}

double gauges_shown(int rows)
{
    return 1 - pow(1 - FAST_WEIGHT, rows > 1 ? rows : 1);
}
