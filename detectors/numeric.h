/* Numbers gone wrong: NaN in loss or gradient norm, jumps of the loss, and ranks whose own gradient
 * norm is far from everybody's again and again. */
#ifndef BROOM_DETECTORS_NUMERIC_H
#define BROOM_DETECTORS_NUMERIC_H

#include <stdint.h>

enum { NUMERIC_RING = 32 };

struct numeric {
    uint32_t *strays; /* by rank: bit b: b rows ago its gradient norm was far out */
    int32_t ranks;
    int64_t stray_rows;
    float loss[NUMERIC_RING]; /* log of the step's loss */
    float grad[NUMERIC_RING]; /* log of the step's median gradient norm */
    int64_t loss_rows, grad_rows;
    int nan_rows;  /* in a row with most reporters not finite */
    int high_rows; /* in a row with a jump */
    int calm_rows;
    int64_t since_step;
};

void numeric_init(struct numeric *numeric, int32_t ranks);
void numeric_done(struct numeric *numeric);
void numeric_restart(struct numeric *numeric);

#endif
