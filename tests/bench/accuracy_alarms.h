/* The long false-alarm run. */
#ifndef BROOM_BENCH_ACCURACY_ALARMS_H
#define BROOM_BENCH_ACCURACY_ALARMS_H

#include <stdint.h>
#include <stdio.h>

/* shocks_over: beyond so many deviations the noise's own tail is drawn from more often than it
 * comes; 0: it is not. */
struct alarms_options {
    double rank_steps, cpu_limit_s; /* 0: no limit */
    uint64_t seed;
    double shocks_over;
    const char *command;
};

/* Healthy jobs until rank_steps are through or cpu_limit_s is spent. Returns the number of
 * evictions that were advised. */
int alarms_run(const struct alarms_options *options, FILE *out);
/* One of those jobs, its claims on out. */
void alarms_run_one(int index, const struct alarms_options *options, FILE *out);

#endif
