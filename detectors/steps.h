/* Step assembly: samples of one rank and step in any order -> whole rows, one a step, in step
 * order. A row closes when every rank that usually reports has reported, or when a quorum of ranks
 * is two steps further; what comes after that is late and counted, never used. Step numbers may
 * have gaps.
 */
#ifndef BROOM_DETECTORS_STEPS_H
#define BROOM_DETECTORS_STEPS_H

#include "controller/base/sample.h"

#include <stdint.h>

enum stream {
    STREAM_STEP_MS = 0,
    STREAM_COMPUTE,
    STREAM_ALLREDUCE,
    STREAM_RECV,
    STREAM_TP,
    STREAM_EP,
    STREAM_DATA,
    STREAM_SM,
    STREAM_MEM,
    STREAM_LOSS,
    STREAM_GRAD,
    STREAM_TOKENS,
    STREAM_COUNT
};

struct row {
    int64_t step;     /* -1: free */
    int64_t first_ns; /* earliest and latest sample time in it */
    int64_t last_ns;
    int32_t reported;            /* ranks with a sample */
    uint32_t streams;            /* bit STREAM_x: at least one rank sent it, finite or not */
    float *values[STREAM_COUNT]; /* by rank; NAN when missing */
    uint8_t *sent;               /* by rank: 1 when it reported; bit 1: loss NaN, bit 2: grad NaN */
};

enum { SENT_STEP = 1, SENT_NAN_LOSS = 2, SENT_NAN_GRAD = 4 };

enum steps_outcome { STEPS_USED = 0, STEPS_DUPLICATE, STEPS_LATE, STEPS_NOT_FINITE };

struct steps;

struct steps *steps_new(int32_t ranks);
void steps_free(struct steps *steps);

/* Takes one step sample of a rank inside the world. */
enum steps_outcome steps_feed(struct steps *steps, const struct sample *sample);

/* The oldest row that is ready to close, or NULL; valid until steps_pop or the next feed. */
const struct row *steps_ready(struct steps *steps);
void steps_pop(struct steps *steps);

/* Forgets open rows and the last closed step: a new attempt starts. */
void steps_restart(struct steps *steps);

int64_t steps_last_closed(const struct steps *steps); /* -1 when none in this attempt */
int64_t steps_finished(const struct steps *steps); /* newest that half of the ranks reported; -1 */
int64_t steps_of_rank(const struct steps *steps, int32_t rank); /* newest step it reported; -1 */
int32_t steps_expected(const struct steps *steps);              /* ranks that usually report */

#endif
