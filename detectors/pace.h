/* The job against its own past: transfer times of each data-parallel group (rails, fabric), and the
 * work of a typical rank.
 */
#ifndef BROOM_DETECTORS_PACE_H
#define BROOM_DETECTORS_PACE_H

#include "detectors/grid.h"

#include <stdint.h>

enum { PACE_RING = 20, PACE_FIRST = 100, PACE_LEAST = 5, PACE_WINDOW = 40 };

/* One quantity: what is usual, and its last rows. */
struct pace_chart {
    double base;   /* NAN: unknown */
    double spread; /* of one row around the base */
    float last[PACE_WINDOW];
    int64_t rows; /* of this attempt */
};

struct pace {
    struct pace_chart *transfer; /* by data group */
    int32_t transfer_count;
    struct pace_chart *class_sm;   /* by class: SM activity of its reference rank */
    struct pace_chart *class_work; /* by class: its reference compute */
    int32_t class_count;
    struct pace_chart busy, step, sm;
    struct pace_chart data; /* what a typical rank waits for data */
    float work[PACE_LEAST]; /* time outside the all-reduce of the last rows */
    int64_t work_rows;
    int64_t steps[PACE_WINDOW]; /* step numbers of the last clean rows */
    int64_t step_rows;
    int64_t high_since_ns; /* engine time since when a chart stands at its alarm; 0 none does */
    float sms[PACE_LEAST]; /* median SM activity of the last rows */
    int64_t sm_rows;
    float ring[PACE_RING]; /* step_ms of clean rows */
    int64_t ring_rows;
    float first[PACE_FIRST]; /* of this attempt's first clean rows before any verdict */
    int32_t first_count;
    double baseline_ms; /* NAN unknown */
};

void pace_init(struct pace *pace, const struct grid *grid);
void pace_done(struct pace *pace);
void pace_restart(struct pace *pace);
/* Mean of the last rows over the base, less 1; NAN when unknown. */
double pace_rise(const struct pace_chart *chart, int rows);
double pace_recent_ms(const struct pace *pace); /* median of the ring; NAN when empty */

#endif
