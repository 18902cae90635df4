/* The long false-alarm run. */
#ifndef BROOM_BENCH_ACCURACY_ALARMS_H
#define BROOM_BENCH_ACCURACY_ALARMS_H

#include <stdint.h>
#include <stdio.h>

/* Healthy jobs until rank_steps are through or cpu_limit_s is spent (0: no limit). Returns the
 * number of evictions that were advised. */
int alarms_run(double rank_steps, double cpu_limit_s, uint64_t seed, const char *command,
               FILE *out);
/* One of those jobs, its claims on out. */
void alarms_run_one(int index, uint64_t seed, FILE *out);

#endif
