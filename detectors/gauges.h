/* SM activity and memory of each rank, now and as it was: fast and slow means. The slow one stands
 * still while the two differ, so that a fault cannot become normal.
 */
#ifndef BROOM_DETECTORS_GAUGES_H
#define BROOM_DETECTORS_GAUGES_H

#include <stdbool.h>
#include <stdint.h>

struct gauges {
    int32_t ranks;
    int64_t rows;
    float *sm_fast, *sm_base; /* sm over the class's reference; NAN when never sent */
    float *mem_fast, *mem_base;
    float *data_fast, *data_base; /* data_ms */
    float *clock_mhz, *power_w; /* of its GPU, smoothed by wall-clock gauges; NAN when never sent */
};

void gauges_init(struct gauges *gauges, int32_t ranks);
void gauges_done(struct gauges *gauges);
void gauges_row(struct gauges *gauges, const float *sm_ratio, const float *mem,
                const float *data_ms);
void gauges_restart(struct gauges *gauges);

/* The same of any series of units: fast follows at once, base stands still while they differ by
 * more than tolerance (absolute). rows counts values so far. */
void gauges_follow(float *fast, float *base, float value, int64_t rows, double tolerance);

/* One wall-clock gauge of a rank's GPU; NAN, or what no GPU can have (a blank), is left out. */
void gauges_hardware(struct gauges *gauges, int32_t rank, double clock_mhz, double power_w);
/* Its clock (or power) over the median of all ranks; NAN when unknown. scratch is ranks long. */
double gauges_ratio(const struct gauges *gauges, const float *values, int32_t rank, float *scratch);

/* How much busier its SMs are than they were, against its peers (0.05: 5 %); NAN when unknown. Of a
 * rank that was slow from the start the past says nothing: then against the peers alone. */
double gauges_sm_shift(const struct gauges *gauges, int32_t rank, bool has_past);

/* The part of a change that the fast means show after so many rows; at least that of one row. */
double gauges_shown(int rows);

#endif
