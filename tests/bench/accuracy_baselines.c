/* Baselines on the step stream: each step a row of own time, all-reduce, SM activity and memory by
 * rank. */
#include "accuracy_baselines.h"

#include "controller/base/mem.h"
#include "detectors/stats/robust.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW_STEPS = 10,
    EVENT_STEPS = 300,
    RUN_LENGTHS = 200,
    VERIFY_STEPS = 10,
    METRICS = 4,
    WARM_UP_STEPS = 20
};

static const double NVRX_WINDOW_S = 60;
static const double MINDER_CONTINUITY_S = 240;

static const struct {
    const char *name;
    double thresholds[THRESHOLDS];
} ROWS[BASELINE_COUNT] = {
    [BASELINE_NVRX] = {"NVRx: share of the fastest's speed, 60 s",
                       {0.70, 0.75, 0.85, 0.90, 0.94, 0.97}},
    [BASELINE_DLROVER] = {"DLRover: times the median", {1.03, 1.05, 1.1, 1.2, 1.5, 2.0}},
    [BASELINE_SIGMA] = {"k sigma, window of 10", {3, 4, 5, 6, 8, 12}},
    [BASELINE_MEDIAN3] = {"times the median, 3 steps in a row", {1.03, 1.05, 1.08, 1.1, 1.2, 1.5}},
    [BASELINE_GREYHOUND] = {"GREYHOUND: change point, then groups",
                            {0.02, 0.03, 0.05, 0.08, 0.10, 0.20}},
    [BASELINE_MINDER] = {"Minder-like distance, 4 min", {3, 4, 5, 6, 8, 12}},
    [BASELINE_MAD] = {"median + k MAD, window of 10", {3, 5, 8, 12, 16, 24}},
};

/* Adams and MacKay's online change point detection, normal with unknown mean and variance. */
struct change_point {
    double probability[RUN_LENGTHS + 1], mean[RUN_LENGTHS + 1], kappa[RUN_LENGTHS + 1],
        alpha[RUN_LENGTHS + 1], beta[RUN_LENGTHS + 1];
    int count;
    double history[4096];
    int steps, pending_at;
};

struct variant {
    int64_t *flagged_step; /* by tray: last step at which it was accused; -1 */
    struct outcome outcome;
    int32_t minder_tray[METRICS];
    double minder_since_s[METRICS];
    int64_t job_flagged_step;
};

struct baselines {
    const struct scenario *scenario;
    struct job *job;
    int32_t ranks, trays, seen;
    float *own, *transfer, *sm, *memory; /* by rank, the row that is being filled */
    float *window;                       /* rank x WINDOW_STEPS of own time */
    float *mean, *previous, *best; /* by rank: over the window; the two rows before; fastest ever */
    float *before_previous;
    float *scratch;
    double *nvrx_sum;
    double nvrx_since_s, now_s, onset_s;
    int32_t nvrx_steps, rows;
    int64_t step;
    double step_ms;
    struct change_point change;
    struct variant variants[VARIANTS];
};

const char *baseline_name(enum baseline baseline)
{
    return ROWS[baseline].name;
}

double baseline_threshold(enum baseline baseline, int i)
{
    return ROWS[baseline].thresholds[i];
}

struct baselines *baselines_new(const struct scenario *scenario, const struct job *job)
{
    struct baselines *b = xcalloc(1, sizeof *b);
    size_t ranks = (size_t)job->world_size;
    float **rows[] = {&b->own,      &b->transfer,        &b->sm,   &b->memory, &b->mean,
                      &b->previous, &b->before_previous, &b->best, &b->scratch};

    b->scenario = scenario;
    b->job = job_copy(job);
    b->ranks = job->world_size;
    b->trays = job->tray_count;
    b->step = -1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        *rows[i] = xcalloc(ranks, sizeof(float));
    b->window = xcalloc(ranks * WINDOW_STEPS, sizeof *b->window);
    b->nvrx_sum = xcalloc(ranks, sizeof *b->nvrx_sum);
    b->change.pending_at = -1;
    for (int v = 0; v < VARIANTS; v++) {
        b->variants[v].flagged_step = xcalloc((size_t)b->trays, sizeof(int64_t));
        for (int32_t t = 0; t < b->trays; t++)
            b->variants[v].flagged_step[t] = -EVENT_STEPS;
        b->variants[v].job_flagged_step = -EVENT_STEPS;
        for (int m = 0; m < METRICS; m++)
            b->variants[v].minder_tray[m] = JOB_NONE;
    }
    return b;
}

void baselines_free(struct baselines *b)
{
    float *rows[] = {b->own,      b->transfer,        b->sm,   b->memory,  b->mean,
                     b->previous, b->before_previous, b->best, b->scratch, b->window};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        xfree(rows[i]);
    xfree(b->nvrx_sum);
    for (int v = 0; v < VARIANTS; v++)
        xfree(b->variants[v].flagged_step);
    job_free(b->job);
    xfree(b);
}

const struct outcome *baselines_outcome(const struct baselines *b, int variant)
{
    return &b->variants[variant].outcome;
}

/* --- scoring of accusations --- */

static void found(struct baselines *b, struct variant *variant, int truth)
{
    struct hit *hit = &variant->outcome.hits[truth];

    if (hit->found)
        return;
    hit->found = hit->exact = true;
    hit->steps = b->step - b->scenario->truths[truth].onset_step;
    hit->seconds = b->now_s - b->onset_s;
}

static int guilty_trays_flagged(const struct baselines *b, const struct variant *variant,
                                int32_t rack)
{
    int count = 0;

    for (int32_t t = 0; t < b->trays; t++)
        count += b->job->trays[t].rack == rack && variant->flagged_step[t] == b->step;
    return count;
}

/* One tray is accused at this step. The same accusation within ten minutes is the same event. A
 * rack is found when half of its trays are accused at once. */
static void accuse(struct baselines *b, struct variant *variant, int32_t rank)
{
    int32_t tray = b->job->ranks[rank].tray;
    int32_t rack = b->job->trays[tray].rack;
    bool is_new = variant->flagged_step[tray] < b->step - EVENT_STEPS;
    bool guilty = false;

    if (variant->flagged_step[tray] == b->step)
        return;
    variant->flagged_step[tray] = b->step;
    for (int i = 0; i < b->scenario->truth_count; i++) {
        const struct truth *truth = &b->scenario->truths[i];
        if (b->step < truth->onset_step || (truth->tray != tray && truth->rack != rack))
            continue;
        guilty = true;
        if (truth->tray == tray || guilty_trays_flagged(b, variant, rack) >= 8)
            found(b, variant, i);
        else
            variant->outcome.inside_claims += is_new;
    }
    if (!guilty && is_new) {
        variant->outcome.false_claims++;
        variant->outcome.false_evictions++; /* each of these rules is used to exclude machines */
    }
}

static void accuse_job(struct baselines *b, struct variant *variant)
{
    bool is_new = variant->job_flagged_step < b->step - EVENT_STEPS;
    bool guilty = false;

    variant->job_flagged_step = b->step;
    for (int i = 0; i < b->scenario->truth_count; i++) {
        const struct truth *truth = &b->scenario->truths[i];
        if (b->step < truth->onset_step || truth->tray != JOB_NONE || truth->rack != JOB_NONE)
            continue;
        guilty = true;
        if (truth->accepted_count > 0 && truth->accepted[0].scope == SCOPE_JOB)
            found(b, variant, i);
    }
    variant->outcome.false_claims += !guilty && is_new;
}

static struct variant *variant_of(struct baselines *b, enum baseline baseline, int threshold)
{
    return &b->variants[(int)baseline * THRESHOLDS + threshold];
}

/* --- the rules --- */

static void rule_above(struct baselines *b, enum baseline baseline, const float *values,
                       double centre, double scale)
{
    for (int i = 0; i < THRESHOLDS; i++) {
        float limit = (float)(centre + scale * ROWS[baseline].thresholds[i]);
        for (int32_t r = 0; r < b->ranks; r++)
            if (values[r] > limit)
                accuse(b, variant_of(b, baseline, i), r);
    }
}

static double median_of(struct baselines *b, const float *values)
{
    memcpy(b->scratch, values, (size_t)b->ranks * sizeof *values);
    return robust_median(b->scratch, (size_t)b->ranks);
}

static void rules_on_window(struct baselines *b)
{
    double sum = 0;
    double squares = 0;
    double median = median_of(b, b->mean);
    double mad;

    memcpy(b->scratch, b->mean, (size_t)b->ranks * sizeof *b->mean);
    mad = robust_mad(b->scratch, (size_t)b->ranks, median) / 1.4826;
    for (int32_t r = 0; r < b->ranks; r++)
        sum += (double)b->mean[r];
    for (int32_t r = 0; r < b->ranks; r++)
        squares += ((double)b->mean[r] - sum / b->ranks) * ((double)b->mean[r] - sum / b->ranks);
    rule_above(b, BASELINE_DLROVER, b->mean, 0, median);
    rule_above(b, BASELINE_MAD, b->mean, median, mad);
    rule_above(b, BASELINE_SIGMA, b->mean, sum / b->ranks, sqrt(squares / b->ranks));
}

static void rule_median3(struct baselines *b)
{
    double now = median_of(b, b->own);
    double before = median_of(b, b->previous);
    double earlier = median_of(b, b->before_previous);

    for (int i = 0; i < THRESHOLDS; i++) {
        double k = ROWS[BASELINE_MEDIAN3].thresholds[i];
        for (int32_t r = 0; r < b->ranks; r++)
            if ((double)b->own[r] > k * now && (double)b->previous[r] > k * before &&
                (double)b->before_previous[r] > k * earlier)
                accuse(b, variant_of(b, BASELINE_MEDIAN3, i), r);
    }
}

/* Relative score: speed over the fastest's; individual score: over its own best window. */
static void rule_nvrx(struct baselines *b)
{
    float fastest = INFINITY;

    for (int32_t r = 0; r < b->ranks; r++) {
        b->nvrx_sum[r] += (double)b->own[r];
        b->scratch[r] = (float)(b->nvrx_sum[r] / (b->nvrx_steps + 1));
        fastest = fminf(fastest, b->scratch[r]);
    }
    b->nvrx_steps++;
    if (b->now_s - b->nvrx_since_s < NVRX_WINDOW_S)
        return;
    for (int32_t r = 0; r < b->ranks; r++) {
        float value = b->scratch[r];
        if (b->best[r] <= 0 || value < b->best[r])
            b->best[r] = value;
        for (int i = 0; i < THRESHOLDS; i++)
            if ((double)fminf(fastest, b->best[r]) <
                ROWS[BASELINE_NVRX].thresholds[i] * (double)value)
                accuse(b, variant_of(b, BASELINE_NVRX, i), r);
        b->nvrx_sum[r] = 0;
    }
    b->nvrx_steps = 0;
    b->nvrx_since_s = b->now_s;
}

/* Log density of Student's t with 2 alpha degrees. */
static double predictive(const struct change_point *c, int i, double value)
{
    double degrees = 2 * c->alpha[i];
    double variance = c->beta[i] * (c->kappa[i] + 1) / (c->alpha[i] * c->kappa[i]);
    double z = (value - c->mean[i]) * (value - c->mean[i]) / variance;

    return exp(lgamma((degrees + 1) / 2) - lgamma(degrees / 2) -
               0.5 * log(degrees * 3.14159265358979 * variance) -
               (degrees + 1) / 2 * log1p(z / degrees));
}

static void change_prior(struct change_point *c, double mean)
{
    c->mean[0] = mean;
    c->kappa[0] = 1;
    c->alpha[0] = 1;
    c->beta[0] = 1e-4;
}

/* Takes ln(step time); true when the run began less than three steps ago with a chance above a
 * half. */
static bool change_point_feed(struct change_point *c, double value)
{
    double total = 0;
    double recent = 0;
    double fresh = 0;
    const double hazard = 1.0 / 250;

    if (c->count == 0) {
        change_prior(c, value);
        c->probability[0] = 1;
        c->count = 1;
    }
    for (int i = 0; i < c->count; i++) {
        double p = c->probability[i] * predictive(c, i, value);
        fresh += p * hazard;
        c->probability[i] = p * (1 - hazard);
    }
    if (c->count > RUN_LENGTHS) {
        c->count = RUN_LENGTHS;
    }
    for (int i = c->count; i > 0; i--) {
        double d = value - c->mean[i - 1];
        c->probability[i] = c->probability[i - 1];
        c->beta[i] = c->beta[i - 1] + c->kappa[i - 1] * d * d / (2 * (c->kappa[i - 1] + 1));
        c->mean[i] = c->mean[i - 1] + d / (c->kappa[i - 1] + 1);
        c->kappa[i] = c->kappa[i - 1] + 1;
        c->alpha[i] = c->alpha[i - 1] + 0.5;
    }
    c->probability[0] = fresh;
    change_prior(c, value);
    c->count++;
    for (int i = 0; i < c->count; i++)
        total += c->probability[i];
    for (int i = 0; i < c->count; i++) {
        c->probability[i] = total > 0 ? c->probability[i] / total : i == 0;
        recent += i < 4 ? c->probability[i] : 0;
    }
    return recent > 0.5;
}

/* Means of ten steps before and after the change differ by the threshold: then ranks above the
 * median by it are accused, or the job when there are none. */
static void rule_greyhound(struct baselines *b)
{
    struct change_point *c = &b->change;
    bool changed;

    if (c->steps >= (int)ARRAY_LEN(c->history))
        return;
    c->history[c->steps++] = b->step_ms;
    changed = change_point_feed(c, log(b->step_ms));
    if (changed && c->pending_at < 0 && c->steps > VERIFY_STEPS)
        c->pending_at = c->steps - 1;
    if (c->pending_at < 0 || c->steps - c->pending_at < VERIFY_STEPS)
        return;
    double before = 0;
    double after = 0;
    for (int i = 0; i < VERIFY_STEPS; i++) {
        before += c->history[c->pending_at - 1 - i < 0 ? 0 : c->pending_at - 1 - i];
        after += c->history[c->steps - 1 - i];
    }
    c->pending_at = -1;
    double median = median_of(b, b->mean);
    for (int i = 0; i < THRESHOLDS; i++) {
        double limit = 1 + ROWS[BASELINE_GREYHOUND].thresholds[i];
        bool any = false;
        if (after < before * limit)
            continue;
        for (int32_t r = 0; r < b->ranks; r++)
            if ((double)b->mean[r] > limit * median) {
                accuse(b, variant_of(b, BASELINE_GREYHOUND, i), r);
                any = true;
            }
        if (!any)
            accuse_job(b, variant_of(b, BASELINE_GREYHOUND, i));
    }
}

struct indexed {
    float value;
    int32_t tray;
};

static int compare_indexed(const void *a, const void *b)
{
    const struct indexed *x = a;
    const struct indexed *y = b;

    return (x->value > y->value) - (x->value < y->value);
}

/* The tray whose summed distance to all others is largest, and by how many deviations. */
static int32_t farthest_tray(struct baselines *b, const float *values, double *ret_z)
{
    struct indexed *trays = xcalloc((size_t)b->trays, sizeof *trays);
    int32_t *members = xcalloc((size_t)b->trays, sizeof *members);
    int32_t n = 0;
    double total = 0;
    double below = 0;
    double sum = 0;
    double squares = 0;
    double largest = -1;
    int32_t farthest = JOB_NONE;

    for (int32_t t = 0; t < b->trays; t++)
        trays[t].tray = t;
    for (int32_t r = 0; r < b->ranks; r++) {
        trays[b->job->ranks[r].tray].value += values[r];
        members[b->job->ranks[r].tray]++;
    }
    for (int32_t t = 0; t < b->trays; t++)
        if (members[t] > 0)
            trays[n++] = (struct indexed){trays[t].value / (float)members[t], t};
    qsort(trays, (size_t)n, sizeof *trays, compare_indexed);
    for (int32_t i = 0; i < n; i++)
        total += (double)trays[i].value;
    for (int32_t i = 0; i < n; i++) {
        double value = (double)trays[i].value;
        double distance = value * i - below + (total - below - value) - value * (n - i - 1);
        below += value;
        sum += distance;
        squares += distance * distance;
        if (distance > largest) {
            largest = distance;
            farthest = trays[i].tray;
        }
    }
    *ret_z = n > 1 ? (largest - sum / n) / sqrt(fmax(1e-12, squares / n - sum / n * (sum / n))) : 0;
    xfree(trays);
    xfree(members);
    return farthest;
}

static void rule_minder(struct baselines *b)
{
    const float *metrics[METRICS] = {b->mean, b->transfer, b->sm, b->memory};

    for (int m = 0; m < METRICS; m++) {
        double z;
        int32_t tray = farthest_tray(b, metrics[m], &z);
        for (int i = 0; i < THRESHOLDS; i++) {
            struct variant *variant = variant_of(b, BASELINE_MINDER, i);
            bool above = z > ROWS[BASELINE_MINDER].thresholds[i];
            if (!above || variant->minder_tray[m] != tray) {
                variant->minder_tray[m] = above ? tray : JOB_NONE;
                variant->minder_since_s[m] = b->now_s;
            }
            if (!above || b->now_s - variant->minder_since_s[m] < MINDER_CONTINUITY_S)
                continue;
            for (int32_t r = 0; r < b->ranks; r++)
                if (b->job->ranks[r].tray == tray)
                    accuse(b, variant, r);
        }
    }
}

/* --- rows --- */

static float value_or(const struct sample *sample, enum field field, float otherwise)
{
    return sample_has(sample, field) && isfinite(sample->values[field])
               ? (float)sample->values[field]
               : otherwise;
}

void baselines_feed(struct baselines *b, const struct sample *sample)
{
    int32_t r = (int32_t)sample->rank;

    if (sample->measurement != MEASUREMENT_STEP || r < 0 || r >= b->ranks ||
        !sample_has(sample, FIELD_STEP) || (int64_t)sample->values[FIELD_STEP] <= b->step)
        return;
    b->seen++;
    b->now_s = (double)(sample->time_ns / 1000000) / 1000.0;
    b->step_ms = (double)value_or(sample, FIELD_STEP_MS, (float)b->step_ms);
    b->transfer[r] = value_or(sample, FIELD_ALLREDUCE_MS, b->transfer[r]);
    b->own[r] = value_or(sample, FIELD_COMPUTE_MS, b->own[r]);
    b->sm[r] = value_or(sample, FIELD_SM, b->sm[r]);
    b->memory[r] = value_or(sample, FIELD_MEM, b->memory[r]);
}

void baselines_moment(struct baselines *b, int64_t onset_ns)
{
    if (b->seen < b->ranks * 4 / 5)
        return;
    b->onset_s = (double)(onset_ns / 1000000) / 1000.0;
    b->seen = 0;
    b->step++;
    b->rows++;
    for (int32_t r = 0; r < b->ranks; r++) {
        b->window[r * WINDOW_STEPS + b->step % WINDOW_STEPS] = b->own[r];
        float sum = 0;
        for (int i = 0; i < WINDOW_STEPS; i++)
            sum += b->window[r * WINDOW_STEPS + i];
        b->mean[r] = sum / WINDOW_STEPS;
    }
    if (b->rows > WARM_UP_STEPS) {
        rules_on_window(b);
        rule_median3(b);
        rule_nvrx(b);
        rule_greyhound(b);
        rule_minder(b);
    } else {
        b->nvrx_since_s = b->now_s;
    }
    memcpy(b->before_previous, b->previous, (size_t)b->ranks * sizeof *b->own);
    memcpy(b->previous, b->own, (size_t)b->ranks * sizeof *b->own);
}
