/* A bank of sequential charts over units of one kind (ranks, tensor groups): for every unit the
 * last CHART_RING residuals, and two tests against all other units of the bank.
 *
 * Level: the mean of the last w residuals, w in 4..64, against centre and spread of the same mean
 * over all units. Since the spread is taken from means, correlation in time and lasting differences
 * between units are in it: nobody needs to know the noise. Residuals are clipped first, so one
 * spike is no shift.
 *
 * Change: the same of the means less the unit's usual offset, which is learned slowly, stands still
 * while the unit is suspect, and is at most OFFSET_MOST: what is always slow stays slow, while a
 * small change is not lost among the lasting differences.
 *
 * Rate: a Bernoulli CUSUM of residuals that are far out (stalls). In nats: it alarms when the
 * evidence for "many times the usual rate" outweighs the budget.
 */
#ifndef BROOM_DETECTORS_CHART_H
#define BROOM_DETECTORS_CHART_H

#include "detectors/bursts.h"

#include <stdbool.h>
#include <stdint.h>

enum { CHART_RING = 64, CHART_WINDOWS = 5 };

enum chart_test { TEST_LEVEL = 0, TEST_CHANGE, TEST_COUNT };

/* What the units of one window are held against in one test. */
struct chart_reference {
    double centre, spread;
    double usual_centre; /* what the centre was before most units moved; NAN unknown */
    double usual_upper;  /* spread of the upper side as it usually is: busy experts */
};

struct bank {
    int32_t units;
    float *ring;                  /* CHART_RING rows of units, NAN where nothing was sent */
    float *clipped;               /* the same, clipped: what the sums are made of */
    int64_t *steps;               /* CHART_RING step numbers, shared by all units */
    int64_t pushed;               /* rows so far */
    float *sum[CHART_WINDOWS];    /* by unit: of the clipped values in the window */
    uint8_t *have[CHART_WINDOWS]; /* by unit: values in the window */
    float *z[CHART_WINDOWS];      /* by unit: the higher score when the window was last tested */
    uint8_t *by_change[CHART_WINDOWS]; /* by unit: it is that of TEST_CHANGE */
    float *offset;                     /* by unit: usual residual */
    float *spikes;                     /* by unit: rate CUSUM, nats */
    struct chart_reference reference[TEST_COUNT][CHART_WINDOWS];
    double clip; /* residuals are held inside +-clip */
    double near_step,
        near_two;      /* squared spread of a unit's change over one and over two rows, smoothed */
    double sigma;      /* spread of one residual around its unit's level, from these two */
    double rho;        /* its lag-1 correlation, from these two */
    double spike_rate; /* share of residuals beyond spike_over, smoothed */
    double spike_over; /* what counts as far out */
    bool drops_low;    /* residuals far below are of units whose peer is slow: not taken */
    struct bursts bursts;                /* how long units were up and came down by themselves */
    float *scratch, *arriving, *sorting; /* units long */
};

int chart_window(int index); /* 4, 8, 16, 32, 64 */

void bank_init(struct bank *bank, int32_t units);
void bank_done(struct bank *bank);
void bank_clear(struct bank *bank); /* forgets all residuals, keeps sigma and rates */
void bank_clear_unit(struct bank *bank, int32_t unit);

/* One row: residuals by unit as a fraction of the work (0.1: 10 % slower), NAN when missing. */
void bank_push(struct bank *bank, int64_t step, const float *residuals);
/* The same for a bank that is only kept and looked up, never tested. */
void bank_store(struct bank *bank, int64_t step, const float *residuals);

/* What a unit looks like now. */
struct chart_view {
    double z;             /* largest score over windows and tests */
    int window;           /* index of that window */
    enum chart_test test; /* whose score it is */
    double level;         /* its mean less the centre, and less the offset in TEST_CHANGE */
    double spikes;        /* nats */
};
struct chart_view bank_view(const struct bank *bank, int32_t unit);
/* The same of one window. */
struct chart_view bank_view_in(const struct bank *bank, int32_t unit, int window);

/* What the unit's residuals have to be above to count as shifted at all: the centre of the window,
 * and the unit's offset in TEST_CHANGE. */
double bank_zero(const struct bank *bank, int32_t unit, int window, enum chart_test test);
/* Mean of the last `rows` unclipped residuals (at most CHART_RING) less that zero; NAN when none.
 */
double bank_mean(const struct bank *bank, int32_t unit, int rows, enum chart_test test);
/* Share of the last `rows` residuals that are above `over`; 0 when none. */
double bank_share_above(const struct bank *bank, int32_t unit, int rows, double over);
/* How many of the newest residuals lie above `over`, one after the other. */
int bank_run_above(const struct bank *bank, int32_t unit, double over);
/* Spread of one residual of this unit, from how it changed before its last `rows` rows; NAN when
 * too few are known. */
double bank_own_spread(const struct bank *bank, int32_t unit, int rows);
/* Rows since the estimated onset of a shift of this size: where the sum of (residual - level / 2)
 * began its largest rise; 1..CHART_RING. */
int bank_rows_since_onset(const struct bank *bank, int32_t unit, double level,
                          enum chart_test test);
/* The residual `back` rows ago (0: newest), NAN when missing. */
double bank_value(const struct bank *bank, int32_t unit, int back);
/* All units' residuals of that row; NULL before the first. */
const float *bank_row(const struct bank *bank, int back);
/* The step number `back` rows ago; -1 before the first. */
int64_t bank_step(const struct bank *bank, int back);

#endif
