/* One scenario through the engine and through the baselines. */
#ifndef BROOM_BENCH_ACCURACY_RUN_H
#define BROOM_BENCH_ACCURACY_RUN_H

#include "accuracy_baselines.h"

struct engine_cost {
    double cpu_s;
    int64_t steps, rank_steps;
    double worst_step_s;
};

struct run_result {
    struct outcome engine;
    struct outcome baselines[VARIANTS];
};

/* Names the scenario's truths and fills their gains. show: prints every verdict as it is given. */
void run_scenario(struct scenario *scenario, bool with_baselines, bool show,
                  struct run_result *ret_result, struct engine_cost *cost);

double process_cpu_seconds(void);

#endif
