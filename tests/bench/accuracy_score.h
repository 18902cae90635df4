/* What one detector made of one scenario, and figures over many of these. */
#ifndef BROOM_BENCH_ACCURACY_SCORE_H
#define BROOM_BENCH_ACCURACY_SCORE_H

#include "accuracy_scenario.h"

struct hit {
    bool found, exact, info;
    bool cause_right;
    enum cause cause;
    int64_t steps; /* from the onset; for what stops the job 0 */
    double seconds;
};

struct outcome {
    struct hit hits[TRUTHS_MAX];
    int false_claims;    /* wrong component, or none was to be named */
    int inside_claims;   /* a part of the guilty domain: false unless the domain is named as well */
    int false_evictions; /* healthy trays */
    char first_false[96];
};

/* One truth or one negative scenario. */
struct record {
    const char *family;
    int index;
    int32_t ranks;
    double magnitude, gain, noise;
    double lag1;
    bool negative, required, node, stops, first; /* first: carries the scenario's false claims */
    struct hit hit;
    int false_claims, false_evictions;
    unsigned causes;
    char first_false[96];
};

struct records {
    struct record *items;
    size_t count, capacity;
};

void records_add(struct records *records, const struct scenario *scenario,
                 const struct outcome *outcome);
void records_free(struct records *records);

/* Counted by scenario: any number of false claims in one scenario is one false positive, because
 * what a scenario's noise does once it does again. */
struct score {
    int true_positives, false_negatives, false_positives, exact, scenarios, negatives_blamed,
        negatives;
    int false_claims, false_evictions;
    double precision, recall, f1;
};
/* node_only: faults that are one rank's, tray's or rack's slowness, and the negatives. */
struct score records_score(const struct records *records, bool node_only);

struct interval {
    double low, high;
};
/* Clopper-Pearson, 95 %. */
struct interval binomial_interval(int successes, int trials);

/* Quantile of values, sorted in place; NAN when there are none. */
double quantile(double *values, size_t count, double q);

#endif
