/* Tables. */
#include "accuracy_report.h"

#include "controller/base/mem.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double poisson_upper(int count, double exposure)
{
    double low = 0;
    double high = 10.0 * (count + 3);

    for (int i = 0; i < 80; i++) {
        double middle = 0.5 * (low + high);
        double term = exp(-middle);
        double sum = 0;
        for (int k = 0; k <= count; k++) {
            sum += term;
            term *= middle / (k + 1);
        }
        if (sum > 0.05)
            low = middle;
        else
            high = middle;
    }
    return high / exposure;
}

void report_machine(FILE *out, const char *command)
{
    char date[32];
    time_t now = time(NULL);
    struct tm parts;

    (void)gmtime_r(&now, &parts);
    (void)strftime(date, sizeof date, "%Y-%m-%d", &parts);
    (void)fprintf(out, "Command: `%s`. %s, machine with %ld cores, compiler %s, one process.\n\n",
                  command, date, sysconf(_SC_NPROCESSORS_ONLN), __VERSION__);
}

/* Median and 90 % of the steps or seconds of the found ones that pass. */
struct delay {
    size_t count;
    double median, p90, median_s, p90_s;
};

typedef bool record_filter(const struct record *record, const void *context);

static struct delay delays_of(const struct records *records, record_filter *filter,
                              const void *context)
{
    double *steps = xcalloc(records->count + 1, sizeof *steps);
    double *seconds = xcalloc(records->count + 1, sizeof *seconds);
    struct delay delay = {0};

    for (size_t i = 0; i < records->count; i++) {
        const struct record *record = &records->items[i];
        if (!record->hit.found || !filter(record, context))
            continue;
        steps[delay.count] = (double)record->hit.steps;
        seconds[delay.count++] = record->hit.seconds;
    }
    delay.median = quantile(steps, delay.count, 0.5);
    delay.p90 = quantile(steps, delay.count, 0.9);
    delay.median_s = quantile(seconds, delay.count, 0.5);
    delay.p90_s = quantile(seconds, delay.count, 0.9);
    xfree(steps);
    xfree(seconds);
    return delay;
}

/* A dash where nothing was found. */
static void write_delay(FILE *out, double median, double p90)
{
    if (isnan(median))
        (void)fputs(" - |", out);
    else
        (void)fprintf(out, " %.0f / %.0f |", median, p90);
}

static bool is_slow_node(const struct record *record, const void *context)
{
    (void)context;
    return record->node && record->required;
}

static void write_score_row(FILE *out, const char *name, const struct records *records,
                            bool node_only)
{
    struct score score = records_score(records, node_only);
    int said = score.true_positives + score.false_positives;
    int wanted = score.true_positives + score.false_negatives;
    struct interval p = binomial_interval(score.true_positives, said);
    struct interval r = binomial_interval(score.true_positives, wanted);
    /* F1 = 2 J / (1 + J) of the proportion J = TP / (TP + FP + FN). */
    struct interval j = binomial_interval(score.true_positives, said + score.false_negatives);
    struct delay delay = delays_of(records, is_slow_node, NULL);

    (void)fprintf(
        out, "| %s | %.3f (%.3f-%.3f) | %.3f (%.3f-%.3f) | %.3f (%.3f-%.3f) | %d/%d | %d | %d |",
        name, score.precision, p.low, p.high, score.recall, r.low, r.high, score.f1,
        2 * j.low / (1 + j.low), 2 * j.high / (1 + j.high), score.negatives_blamed, score.negatives,
        score.false_claims, score.false_evictions);
    write_delay(out, delay.median, delay.p90);
    (void)fputc('\n', out);
}

/* All of them, or with --engine-only none. */
static int baselines_run(const struct study *study)
{
    return study->baselines[0].count > 0 ? BASELINE_COUNT : 0;
}

static void write_scores(FILE *out, const struct study *study, bool node_only)
{
    char name[96];

    (void)fputs("| detector | precision | recall | F1 | healthy jobs blamed | false claims | false "
                "evictions | steps to "
                "detect, slow nodes (median / p90) |\n|---|---|---|---|---|---|---|---|\n",
                out);
    write_score_row(out, "**Broomwagon**", &study->engine, node_only);
    for (int b = 0; b < baselines_run(study); b++) {
        (void)snprintf(name, sizeof name, "%s (%g)", baseline_name((enum baseline)b),
                       baseline_threshold((enum baseline)b, study->best[b]));
        write_score_row(out, name, &study->baselines[b], node_only);
    }
    (void)fputc('\n', out);
}

static bool of_family(const struct record *record, const void *context)
{
    return record->required && strcmp(record->family, context) == 0;
}

struct family_sum {
    int seen, required, found, exact, causes_asked, causes_right, optional, optional_named, blamed,
        evictions;
    double gain;
};

static struct family_sum sum_family(const struct records *records, const char *family)
{
    struct family_sum sum = {0};

    for (size_t i = 0; i < records->count; i++) {
        const struct record *record = &records->items[i];
        bool counts = record->required && record->hit.found;
        if (strcmp(record->family, family) != 0)
            continue;
        sum.seen++;
        sum.required += record->required;
        sum.found += counts;
        sum.exact += counts && record->hit.exact;
        sum.causes_asked += counts && record->causes != 0;
        sum.causes_right += counts && record->causes != 0 && record->hit.cause_right;
        sum.optional += !record->negative && !record->required;
        sum.optional_named += !record->negative && !record->required && record->hit.found;
        sum.blamed += record->false_claims > 0;
        sum.evictions += record->false_evictions;
        sum.gain += record->gain;
    }
    return sum;
}

static bool is_first_of_family(const struct records *records, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(records->items[i].family, records->items[index].family) == 0)
            return false;
    return true;
}

static void write_families(FILE *out, const struct records *records)
{
    (void)fputs("| fault | mean gain | found / required | as the exact scope | cause right | small "
                "ones named | with a false "
                "claim | steps (median / p90) | seconds (median / p90) "
                "|\n|---|---|---|---|---|---|---|---|---|\n",
                out);
    for (size_t i = 0; i < records->count; i++) {
        const char *family = records->items[i].family;
        if (records->items[i].negative || !is_first_of_family(records, i))
            continue;
        struct family_sum sum = sum_family(records, family);
        struct delay delay = delays_of(records, of_family, family);
        (void)fprintf(out, "| %s | %.3f | %d/%d | %d | %d/%d | %d/%d | %d |", family,
                      sum.gain / sum.seen, sum.found, sum.required, sum.exact, sum.causes_right,
                      sum.causes_asked, sum.optional_named, sum.optional, sum.blamed);
        write_delay(out, delay.median, delay.p90);
        write_delay(out, delay.median_s, delay.p90_s);
        (void)fputc('\n', out);
    }
    (void)fputs("\n| healthy job | runs | blamed | false evictions |\n|---|---|---|---|\n", out);
    for (size_t i = 0; i < records->count; i++) {
        if (!records->items[i].negative || !is_first_of_family(records, i))
            continue;
        struct family_sum sum = sum_family(records, records->items[i].family);
        (void)fprintf(out, "| %s | %d | %d | %d |\n", records->items[i].family, sum.seen,
                      sum.blamed, sum.evictions);
    }
    (void)fputc('\n', out);
}

/* context: the magnitude. */
static bool is_calm_slow_gpu(const struct record *record, const void *context)
{
    return strncmp(record->family, "slow GPU", 8) == 0 &&
           scenario_is_calm(record->noise, record->lag1) &&
           fabs(record->magnitude - *(const double *)context) < 1e-9;
}

static const double MAGNITUDES[] = {1.03, 1.05, 1.10, 1.20, 1.34};

static void write_magnitudes(FILE *out, const struct study *study)
{
    (void)fputs("Residual noise at most 0.4 %, lag-1 at most 0.3; steps from onset to the verdict, "
                "median / p90 (found):\n\n"
                "| slow GPU | Broomwagon |",
                out);
    for (int b = 0; b < baselines_run(study); b++)
        (void)fprintf(out, " %s |", baseline_name((enum baseline)b));
    (void)fputs("\n|---|---|", out);
    for (int b = 0; b < baselines_run(study); b++)
        (void)fputs("---|", out);
    for (size_t m = 0; m < ARRAY_LEN(MAGNITUDES); m++) {
        struct delay delay = delays_of(&study->engine, is_calm_slow_gpu, &MAGNITUDES[m]);
        (void)fprintf(out, "\n| %.0f %% | %.0f / %.0f (%zu) |", 100 * (MAGNITUDES[m] - 1),
                      delay.median, delay.p90, delay.count);
        for (int b = 0; b < baselines_run(study); b++) {
            delay = delays_of(&study->baselines[b], is_calm_slow_gpu, &MAGNITUDES[m]);
            if (delay.count > 0)
                (void)fprintf(out, " %.0f / %.0f (%zu) |", delay.median, delay.p90, delay.count);
            else
                (void)fputs(" - |", out);
        }
    }
    (void)fputs("\n\n", out);
}

void report_write_delays(FILE *out, const struct study *study)
{
    (void)fputs("# Time to detect one slow GPU\n\n", out);
    report_machine(out, study->command);
    (void)fputs("Jobs of every layout, residual noise at most 0.4 %, lag-1 at most 0.3; steps from "
                "the onset to the verdict.\n\n"
                "| slow GPU | jobs | found | wrong name first | steps, median / p90 |\n"
                "|---|---|---|---|---|",
                out);
    for (size_t m = 0; m < ARRAY_LEN(MAGNITUDES); m++) {
        int jobs = 0;
        int wrong = 0;
        for (size_t i = 0; i < study->engine.count; i++) {
            const struct record *record = &study->engine.items[i];
            bool counts = is_calm_slow_gpu(record, &MAGNITUDES[m]);
            jobs += counts;
            wrong += counts && record->false_claims > 0;
        }
        struct delay delay = delays_of(&study->engine, is_calm_slow_gpu, &MAGNITUDES[m]);
        (void)fprintf(out, "\n| %.0f %% | %d | %zu | %d |", 100 * (MAGNITUDES[m] - 1), jobs,
                      delay.count, wrong);
        write_delay(out, delay.median, delay.p90);
    }
    (void)fputs("\n\n", out);
}

static void write_causes(FILE *out, const struct records *records)
{
    int counts[CAUSE_COUNT][CAUSE_COUNT] = {{0}};
    int asked = 0;
    int right = 0;

    for (size_t i = 0; i < records->count; i++) {
        const struct record *record = &records->items[i];
        for (int c = 0; c < CAUSE_COUNT; c++)
            if (record->hit.found && record->required && record->causes == 1u << c) {
                counts[c][record->hit.cause]++;
                asked++;
                right += (int)record->hit.cause == c;
            }
    }
    struct interval interval = binomial_interval(right, asked);
    (void)fprintf(out,
                  "Cause right: %d of %d, %.3f (%.3f-%.3f). Rows are the truth, columns what was "
                  "said:\n\n| |",
                  right, asked, asked > 0 ? (double)right / asked : 0, interval.low, interval.high);
    for (int c = 0; c < CAUSE_COUNT; c++)
        (void)fprintf(out, " %s |", cause_name((enum cause)c));
    (void)fputs("\n|---|---|---|---|---|---|---|---|---|\n", out);
    for (int c = 0; c < CAUSE_COUNT; c++) {
        int sum = 0;
        for (int said = 0; said < CAUSE_COUNT; said++)
            sum += counts[c][said];
        if (sum == 0)
            continue;
        (void)fprintf(out, "| %s |", cause_name((enum cause)c));
        for (int said = 0; said < CAUSE_COUNT; said++)
            (void)fprintf(out, " %d |", counts[c][said]);
        (void)fputc('\n', out);
    }
    (void)fputc('\n', out);
}

/* Of the faults at which anything was named, at how many the first name was the right one. */
static void write_localisation(FILE *out, const struct study *study)
{
    (void)fputs("| ranks | faults | found and exact | found, tray or finer | top-1 localisation "
                "|\n|---|---|---|---|---|\n",
                out);
    for (int s = 0; s < study->sizes->count; s++) {
        int32_t ranks = study->sizes->racks[s] * 64;
        int wanted = 0;
        int found = 0;
        int exact = 0;
        int wrong = 0;
        for (size_t i = 0; i < study->engine.count; i++) {
            const struct record *record = &study->engine.items[i];
            if (record->ranks != ranks || record->negative || !record->required)
                continue;
            wanted++;
            found += record->hit.found;
            exact += record->hit.exact;
            wrong += !record->hit.found && record->false_claims > 0;
        }
        if (wanted == 0)
            continue;
        struct interval interval = binomial_interval(found, found + wrong);
        (void)fprintf(out, "| %d | %d | %d | %d | %.3f (%.3f-%.3f) |\n", (int)ranks, wanted, exact,
                      found, found + wrong > 0 ? (double)found / (found + wrong) : 0, interval.low,
                      interval.high);
    }
    (void)fputc('\n', out);
}

static void write_mistakes(FILE *out, const struct study *study)
{
    (void)fprintf(out,
                  "Each mistake can be looked at with `bench_detect_accuracy --seed-b %llu --only "
                  "KIND:INDEX` and the "
                  "same sizes.\n\n",
                  (unsigned long long)study->seed_b);
    for (size_t i = 0; i < study->engine.count; i++) {
        const struct record *record = &study->engine.items[i];
        bool missed = record->required && !record->hit.found;
        if (!missed && record->false_claims == 0 && record->false_evictions == 0)
            continue;
        (void)fprintf(out, "- %s:%d %s, %d ranks, gain %.3f:%s%s%s%s\n",
                      record->negative ? "negative" : "fault", record->index, record->family,
                      (int)record->ranks, record->gain, missed ? " missed" : "",
                      record->false_claims > 0 ? " false claim" : "",
                      record->first_false[0] != '\0' ? ", said " : "", record->first_false);
    }
    (void)fputc('\n', out);
}

static void write_method(FILE *out, const struct study *study)
{
    if (baselines_run(study) > 0)
        (void)fprintf(out,
                      "Thresholds of the baselines: best F1 of six on %d faults and %d healthy "
                      "jobs of seed %llu. The same samples go to all. Baselines are right when "
                      "they name the tray (half of a rack's trays for a rack). ",
                      study->calibration_faults, study->calibration_negatives,
                      (unsigned long long)study->seed_a);
    (void)fprintf(out,
                  "Figures: %d and %d of seed %llu. A fault that costs under 1.5 %% of the step "
                  "(measured against a twin job without it) is not required. The engine is right "
                  "when it names the rank, tray, rack, rail or job, with the right kind of "
                  "verdict. A wrong name is a false positive and a miss; any number of false "
                  "claims in one scenario is one false positive, all are counted beside it. A "
                  "part of the guilty domain is no false claim when the whole is named as well; "
                  "of a hang the replica is accepted, since nothing that is sent tells its "
                  "members apart, and of a rack the expert group that is the same 64 ranks. No "
                  "score is point-adjusted. Intervals: Clopper-Pearson, 95 %%.\n\n",
                  study->faults, study->negatives, (unsigned long long)study->seed_b);
}

static void write_cost(FILE *out, const struct study *study)
{
    struct score score = records_score(&study->engine, false);
    double months = study->rank_seconds / SECONDS_A_MONTH;

    (void)fprintf(out,
                  "False evictions: %d in %.1f GPU-months of these (hard) scenarios, at most %.0f "
                  "in 10,000 GPU-months "
                  "(95 %%); the long false-alarm run says more.\n\n",
                  score.false_evictions, months,
                  10000 * poisson_upper(score.false_evictions, months));
    (void)fprintf(out,
                  "CPU of the engine: %.0f ns a rank and step (%.2f ms a step at 10,368 ranks), "
                  "%lld steps, %.2e rank-steps; "
                  "%.0f s CPU in all.\n\n",
                  1e9 * study->cost.cpu_s / (double)study->cost.rank_steps,
                  1e3 * study->cost.cpu_s / (double)study->cost.rank_steps * 10368,
                  (long long)study->cost.steps, (double)study->cost.rank_steps, study->cpu_s);
}

void report_write(FILE *out, const struct study *study)
{
    (void)fprintf(out, "# Detection: %d faults, %d healthy jobs\n\n", study->faults,
                  study->negatives);
    report_machine(out, study->command);
    write_method(out, study);
    (void)fputs("## All faults\n\n", out);
    write_scores(out, study, false);
    (void)fputs("## Slow ranks, trays and racks only\n\nWhat the baselines are made for.\n\n", out);
    write_scores(out, study, true);
    (void)fputs("## Time to detect by magnitude\n\n", out);
    write_magnitudes(out, study);
    (void)fputs("## Families\n\n", out);
    write_families(out, &study->engine);
    (void)fputs("## Localisation\n\n", out);
    write_localisation(out, study);
    (void)fputs("## Causes\n\n", out);
    write_causes(out, &study->engine);
    (void)fputs("## False evictions and cost\n\n", out);
    write_cost(out, study);
    (void)fputs("## Mistakes of the engine\n\n", out);
    write_mistakes(out, study);
}
