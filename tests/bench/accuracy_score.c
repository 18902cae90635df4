/* Scores, intervals, quantiles. */
#include "accuracy_score.h"

#include "controller/base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void records_add(struct records *records, const struct scenario *scenario,
                 const struct outcome *outcome)
{
    int count = scenario->truth_count > 0 ? scenario->truth_count : 1;
    bool all_found = scenario->truth_count > 0;

    for (int i = 0; i < scenario->truth_count; i++)
        all_found = all_found && outcome->hits[i].found;
    for (int i = 0; i < count; i++) {
        const struct truth *truth = &scenario->truths[i];
        struct record *record;
        records->items = array_grow(records->items, records->count, &records->capacity,
                                    sizeof *records->items);
        record = &records->items[records->count++];
        *record = (struct record){.family = scenario->family,
                                  .index = scenario->index,
                                  .ranks = scenario->config.racks * scenario->config.trays_used *
                                           scenario->config.gpus,
                                  .noise = scenario->config.noise,
                                  .lag1 = scenario->config.noise_lag1,
                                  .negative = scenario->truth_count == 0,
                                  .stops = scenario->stops,
                                  .first = i == 0};
        if (i == 0) {
            record->false_claims = outcome->false_claims + (all_found ? 0 : outcome->inside_claims);
            record->false_evictions = outcome->false_evictions;
            memcpy(record->first_false, outcome->first_false, sizeof record->first_false);
        }
        if (scenario->truth_count == 0)
            continue;
        record->magnitude = truth->magnitude;
        record->gain = truth->gain;
        record->required = truth->required;
        record->node = (truth->tray != JOB_NONE || truth->rack != JOB_NONE) && !scenario->stops;
        record->causes = truth->causes;
        record->hit = outcome->hits[i];
    }
}

void records_free(struct records *records)
{
    xfree(records->items);
    *records = (struct records){0};
}

struct score records_score(const struct records *records, bool node_only)
{
    struct score score = {0};

    for (size_t i = 0; i < records->count; i++) {
        const struct record *record = &records->items[i];
        if (node_only && !record->negative && !record->node)
            continue;
        score.scenarios += record->first;
        score.negatives += record->negative;
        score.negatives_blamed += record->negative && record->false_claims > 0;
        score.false_positives += record->false_claims > 0;
        score.false_claims += record->false_claims;
        score.false_evictions += record->false_evictions;
        score.true_positives += record->required && record->hit.found;
        score.exact += record->required && record->hit.exact;
        score.false_negatives += record->required && !record->hit.found;
    }
    int said = score.true_positives + score.false_positives;
    int wanted = score.true_positives + score.false_negatives;
    score.precision = said > 0 ? (double)score.true_positives / said : 0;
    score.recall = wanted > 0 ? (double)score.true_positives / wanted : 0;
    score.f1 = score.true_positives > 0
                   ? 2 * score.precision * score.recall / (score.precision + score.recall)
                   : 0;
    return score;
}

/* P(X >= successes) of a binomial. */
static double upper_tail(int successes, int trials, double p)
{
    double sum = 0;

    if (p <= 0)
        return successes == 0 ? 1 : 0;
    if (p >= 1)
        return 1;
    for (int k = successes; k <= trials; k++)
        sum += exp(lgamma(trials + 1.0) - lgamma(k + 1.0) - lgamma(trials - k + 1.0) + k * log(p) +
                   (trials - k) * log1p(-p));
    return sum;
}

static double solve(int successes, int trials, double tail)
{
    double low = 0;
    double high = 1;

    for (int i = 0; i < 50; i++) {
        double middle = 0.5 * (low + high);
        if (upper_tail(successes, trials, middle) < tail)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

struct interval binomial_interval(int successes, int trials)
{
    struct interval interval = {0, 1};

    if (trials > 0 && successes > 0)
        interval.low = solve(successes, trials, 0.025);
    if (trials > 0 && successes < trials)
        interval.high = solve(successes + 1, trials, 0.975);
    return interval;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

double quantile(double *values, size_t count, double q)
{
    if (count == 0)
        return (double)NAN;
    qsort(values, count, sizeof *values, compare);
    return values[(size_t)(q * (double)(count - 1) + 0.5)];
}
