/* Labelled scenarios for the detector's proof: a simulated job, at most two faults, and what is
 * true. */
#ifndef BROOM_BENCH_ACCURACY_SCENARIO_H
#define BROOM_BENCH_ACCURACY_SCENARIO_H

#include "controller/rehearse/model.h"
#include "detectors/verdict.h"

enum { TRUTHS_MAX = 2, ACCEPTED_MAX = 3, ID_BYTES = 40, FAULTS_MAX = 5 };

struct component {
    enum scope scope;
    char id[ID_BYTES];
};

struct truth {
    struct component accepted[ACCEPTED_MAX]; /* the first is the exact one */
    int accepted_count;
    int32_t tray, rack; /* guilty; JOB_NONE: none */
    unsigned kinds;     /* bit of enum verdict_kind: what it may be called */
    unsigned causes;    /* bit of enum cause: right ones; 0: not asked */
    int64_t onset_step;
    double magnitude;
    double gain;   /* part of the step time that it costs, from a twin job without it */
    bool required; /* costs at least 1.5 % of the step, or stops the job, or ruins the loss */
};

struct scenario {
    const char *family; /* static */
    uint64_t seed;
    int index;
    bool negative, stops;
    bool info_counts; /* two faults hide each other's cost */
    struct model_config config;
    struct model_fault faults[FAULTS_MAX];
    int fault_count;
    struct truth truths[TRUTHS_MAX];
    int truth_count;
    int64_t steps;
    int xid; /* an event at the onset; 0: none */
    int32_t xid_tray;
    int32_t layout;
};

struct scenario_sizes {
    const int32_t *racks; /* of 64 ranks each */
    int count;
};

int scenario_fault_families(void);
int scenario_negative_families(void);
/* The first families are one slow GPU each, from 3 % on. */
int scenario_slow_gpu_families(void);
/* Noise of at most 0.4 % whose neighbours are little alike: what the delays are promised for. */
bool scenario_is_calm(double noise, double lag1);

/* The index-th scenario of a seed: faults and negatives go through their families in turn. */
struct scenario scenario_make(bool negative, int index, uint64_t seed,
                              const struct scenario_sizes *sizes);
/* Names the truths after the hardware, which a model invents. */
void scenario_name(struct scenario *scenario, const struct model *model);

#endif
