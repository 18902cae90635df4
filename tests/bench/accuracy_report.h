/* Figures as Markdown tables: the same text on the terminal and in RESULTS.md. */
#ifndef BROOM_BENCH_ACCURACY_REPORT_H
#define BROOM_BENCH_ACCURACY_REPORT_H

#include "accuracy_run.h"

#include <stdio.h>

struct study {
    struct records engine;
    struct records baselines[BASELINE_COUNT]; /* each at its best threshold */
    int best[BASELINE_COUNT];
    double best_f1[BASELINE_COUNT]; /* on the calibration seed */
    struct engine_cost cost;
    double rank_seconds; /* rank-steps times the step's length */
    const char *command;
    uint64_t seed_a, seed_b;
    int calibration_faults, calibration_negatives, faults, negatives;
    const struct scenario_sizes *sizes;
    double cpu_s;
};

void report_write(FILE *out, const struct study *study);
/* Of calm slow-GPU scenarios alone: how many steps each magnitude takes. */
void report_write_delays(FILE *out, const struct study *study);
/* What machine and when, one paragraph. */
void report_machine(FILE *out, const char *command);
/* 95 % upper bound of a rate of `count` events in `exposure`: the rule of three, exact for more
 * than none. */
double poisson_upper(int count, double exposure);

static const double SECONDS_A_MONTH = 2.63e6;

#endif
