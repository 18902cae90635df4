/* The detector and published rules on the same labelled scenarios.
 *
 *     bench_detect_accuracy [--large | --tiny] [--faults N] [--negatives N] [--calibration N]
 * [--seed-a N] [--seed-b N]
 *                           [--engine-only] [--cpu-seconds S] [--markdown FILE [--append]] [--only
 * fault:INDEX | negative:INDEX]
 *     bench_detect_accuracy --false-alarms RANK_STEPS [--shocks DEVIATIONS] [--seed-b N]
 * [--cpu-seconds S] [--markdown FILE [--append]]
 *     bench_detect_accuracy --delays JOBS [--seed-b N] [--markdown FILE [--append]]
 *
 * --false-alarms writes a running total a job to stderr; sum_alarms.py adds runs up. With --shocks
 * the noise's own tail beyond so many deviations is drawn from once in 100,000 rank-steps.
 * --delays runs so many calm jobs for each magnitude of one slow GPU, the engine alone.
 * --engine-only leaves the published rules out.
 * --cpu-seconds ends a run early; what was run is what is reported. --only prints one scenario's
 * verdicts (`job:INDEX`: the claims of one job of the false-alarm run). With
 * --at-least F1 the program fails when the engine's F1 is lower, or a false eviction was advised.
 */
#include "accuracy_alarms.h"
#include "accuracy_report.h"
#include "controller/base/mem.h"
#include "detectors/stats/gsl.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

struct options {
    int faults, negatives, calibration, delays;
    uint64_t seed_a, seed_b;
    double cpu_s, false_alarms, shocks_over, at_least;
    const char *markdown, *only;
    bool append, engine_only;
    struct scenario_sizes sizes;
    char command[512];
};

static const int32_t DEFAULT_RACKS[] = {8, 16};
static const int32_t LARGE_RACKS[] = {16, 32, 64, 162};
static const int32_t TINY_RACKS[] = {2};

static void add_baselines(struct records records[VARIANTS], const struct scenario *scenario,
                          const struct run_result *result)
{
    for (int v = 0; v < VARIANTS; v++)
        records_add(&records[v], scenario, &result->baselines[v]);
}

/* Runs faults and negatives in turn, so that a run that ends early is a fair part. */
static void run_part(const struct options *options, int faults, int negatives, uint64_t seed,
                     double cpu_until_s, const struct scenario_sizes *sizes, struct study *study,
                     struct records by_variant[VARIANTS])
{
    static struct run_result result;
    int total = faults + negatives;

    study->faults = study->negatives = 0;
    for (int i = 0; i < total; i++) {
        bool negative = study->negatives * (double)faults < study->faults * (double)negatives;
        int index = negative ? study->negatives : study->faults;
        int64_t before = study->cost.rank_steps;
        if (options->cpu_s > 0 && process_cpu_seconds() > cpu_until_s)
            break;
        if ((negative && negatives == study->negatives) || (!negative && faults == study->faults))
            negative = !negative, index = negative ? study->negatives : study->faults;
        struct scenario scenario = scenario_make(negative, index, seed, sizes);
        run_scenario(&scenario, !options->engine_only, false, &result, &study->cost);
        study->rank_seconds += (double)(study->cost.rank_steps - before) *
                               (scenario.config.compute_ms + scenario.config.transfer_ms) / 1000;
        records_add(&study->engine, &scenario, &result.engine);
        if (!options->engine_only)
            add_baselines(by_variant, &scenario, &result);
        study->negatives += negative;
        study->faults += !negative;
        (void)fprintf(stderr, "\r%d of %d, %.0f s CPU ", i + 1, total, process_cpu_seconds());
    }
    (void)fputc('\n', stderr);
}

static void choose_thresholds(struct study *study, const struct records by_variant[VARIANTS])
{
    for (int b = 0; b < BASELINE_COUNT; b++)
        for (int t = 0; t < THRESHOLDS; t++) {
            double f1 = records_score(&by_variant[b * THRESHOLDS + t], false).f1;
            if (t == 0 || f1 > study->best_f1[b]) {
                study->best[b] = t;
                study->best_f1[b] = f1;
            }
        }
}

static void free_variants(struct records by_variant[VARIANTS])
{
    for (int v = 0; v < VARIANTS; v++)
        records_free(&by_variant[v]);
}

static FILE *open_markdown(const struct options *options)
{
    FILE *out = fopen(options->markdown, options->append ? "a" : "w");

    if (out == NULL)
        perror(options->markdown);
    return out;
}

/* On the terminal, and in the file where one is named. */
static bool write_report(const struct options *options, const struct study *study,
                         void (*write)(FILE *out, const struct study *study))
{
    write(stdout, study);
    if (options->markdown == NULL)
        return true;
    FILE *out = open_markdown(options);
    if (out == NULL)
        return false;
    write(out, study);
    return fclose(out) == 0;
}

static int run_study(const struct options *options)
{
    static struct records calibration[VARIANTS], report[VARIANTS];
    struct study study = {.command = options->command,
                          .seed_a = options->seed_a,
                          .seed_b = options->seed_b,
                          .sizes = &options->sizes};
    struct scenario_sizes small = {options->sizes.racks,
                                   options->sizes.count > 2 ? 1 : options->sizes.count};

    run_part(options, options->engine_only ? 0 : options->calibration,
             options->engine_only ? 0 : options->calibration, options->seed_a, 0.3 * options->cpu_s,
             &small, &study, calibration);
    choose_thresholds(&study, calibration);
    study.calibration_faults = study.faults;
    study.calibration_negatives = study.negatives;
    records_free(&study.engine);
    study.cost = (struct engine_cost){0};
    study.rank_seconds = 0;
    run_part(options, options->faults, options->negatives, options->seed_b, options->cpu_s,
             &options->sizes, &study, report);
    for (int b = 0; b < BASELINE_COUNT; b++)
        study.baselines[b] = report[b * THRESHOLDS + study.best[b]];
    study.cpu_s = process_cpu_seconds();
    if (!write_report(options, &study, report_write))
        return 1;
    struct score score = records_score(&study.engine, false);
    records_free(&study.engine);
    free_variants(calibration);
    free_variants(report);
    return options->at_least > 0 && (score.f1 < options->at_least || score.false_evictions > 0) ? 1
                                                                                                : 0;
}

static void run_calm_family(const struct options *options, int family, struct study *study)
{
    static struct run_result result;

    for (int round = 0, jobs = 0; jobs < options->delays; round++) {
        struct scenario scenario = scenario_make(false, round * scenario_fault_families() + family,
                                                 options->seed_b, &options->sizes);
        if (!scenario_is_calm(scenario.config.noise, scenario.config.noise_lag1))
            continue;
        run_scenario(&scenario, false, false, &result, &study->cost);
        records_add(&study->engine, &scenario, &result.engine);
        (void)fprintf(stderr, "\r%s: %d of %d ", scenario.family, ++jobs, options->delays);
    }
    (void)fputc('\n', stderr);
}

static int run_delays(const struct options *options)
{
    struct study study = {.command = options->command, .seed_b = options->seed_b};

    for (int family = 0; family < scenario_slow_gpu_families(); family++)
        run_calm_family(options, family, &study);
    bool written = write_report(options, &study, report_write_delays);
    records_free(&study.engine);
    return written ? 0 : 1;
}

static struct alarms_options alarms_options_of(const struct options *options)
{
    return (struct alarms_options){.rank_steps = options->false_alarms,
                                   .cpu_limit_s = options->cpu_s,
                                   .seed = options->seed_b,
                                   .shocks_over = options->shocks_over,
                                   .command = options->command};
}

static int run_only(const struct options *options)
{
    static struct run_result result;
    const char *colon = strchr(options->only, ':');
    bool negative = strncmp(options->only, "negative", 8) == 0;

    if (colon != NULL && strncmp(options->only, "job", 3) == 0) {
        struct alarms_options alarms = alarms_options_of(options);
        alarms_run_one((int)strtol(colon + 1, NULL, 10), &alarms, stdout);
        return 0;
    }
    struct scenario scenario;
    struct engine_cost cost = {0};

    if (colon == NULL)
        return 2;
    scenario = scenario_make(negative, atoi(colon + 1), options->seed_b, &options->sizes);
    (void)printf("%s, %d racks, tp %d pp %d ep %d, noise %g lag %g, compute %s, gc %g, checkpoint "
                 "every %lld\n",
                 scenario.family, (int)scenario.config.racks, (int)scenario.config.tp,
                 (int)scenario.config.pp, (int)scenario.config.ep, scenario.config.noise,
                 scenario.config.noise_lag1,
                 scenario.config.compute == COMPUTE_KERNEL ? "kernel" : "inclusive",
                 scenario.config.gc_probability, (long long)scenario.config.checkpoint_steps);
    run_scenario(&scenario, false, true, &result, &cost);
    for (int i = 0; i < scenario.truth_count; i++)
        (void)printf("truth: %s %s from step %lld, gain %.3f, %s%s\n",
                     scope_name(scenario.truths[i].accepted[0].scope),
                     scenario.truths[i].accepted[0].id, (long long)scenario.truths[i].onset_step,
                     scenario.truths[i].gain, result.engine.hits[i].found ? "found" : "not found",
                     scenario.truths[i].required ? "" : ", not required");
    (void)printf("false claims %d, inside %d, false evictions %d\n", result.engine.false_claims,
                 result.engine.inside_claims, result.engine.false_evictions);
    return 0;
}

static int run_alarms(const struct options *options)
{
    FILE *out = options->markdown != NULL ? open_markdown(options) : stdout;

    if (out == NULL)
        return 1;
    struct alarms_options alarms = alarms_options_of(options);
    (void)alarms_run(&alarms, out);
    if (options->markdown != NULL)
        (void)fclose(out);
    return 0;
}

static void set_size(struct options *options, const int32_t *racks, int count, int scenarios)
{
    options->sizes = (struct scenario_sizes){racks, count};
    options->faults = options->negatives = scenarios;
}

static bool read_options(int argc, char **argv, struct options *options)
{
    static const struct option LONG[] = {{"large", no_argument, NULL, 'L'},
                                         {"tiny", no_argument, NULL, 'T'},
                                         {"faults", required_argument, NULL, 'f'},
                                         {"negatives", required_argument, NULL, 'n'},
                                         {"calibration", required_argument, NULL, 'c'},
                                         {"seed-a", required_argument, NULL, 'a'},
                                         {"seed-b", required_argument, NULL, 'b'},
                                         {"cpu-seconds", required_argument, NULL, 's'},
                                         {"markdown", required_argument, NULL, 'm'},
                                         {"at-least", required_argument, NULL, 'l'},
                                         {"append", no_argument, NULL, 'A'},
                                         {"engine-only", no_argument, NULL, 'E'},
                                         {"only", required_argument, NULL, 'o'},
                                         {"false-alarms", required_argument, NULL, 'F'},
                                         {"shocks", required_argument, NULL, 'K'},
                                         {"delays", required_argument, NULL, 'D'},
                                         {NULL, 0, NULL, 0}};
    int option;

    *options = (struct options){.calibration = 93, .seed_a = 1, .seed_b = 2};
    set_size(options, DEFAULT_RACKS, (int)ARRAY_LEN(DEFAULT_RACKS), 248);
    while ((option = getopt_long(argc, argv, "", LONG, NULL)) != -1) {
        if (option == 'L') {
            set_size(options, LARGE_RACKS, (int)ARRAY_LEN(LARGE_RACKS), 1054);
        } else if (option == 'T') {
            set_size(options, TINY_RACKS, (int)ARRAY_LEN(TINY_RACKS), 31);
            options->calibration = 31;
        } else if (option == 'f') {
            options->faults = atoi(optarg);
        } else if (option == 'n') {
            options->negatives = atoi(optarg);
        } else if (option == 'c') {
            options->calibration = atoi(optarg);
        } else if (option == 'a') {
            options->seed_a = strtoull(optarg, NULL, 10);
        } else if (option == 'b') {
            options->seed_b = strtoull(optarg, NULL, 10);
        } else if (option == 's') {
            options->cpu_s = strtod(optarg, NULL);
        } else if (option == 'm') {
            options->markdown = optarg;
        } else if (option == 'l') {
            options->at_least = strtod(optarg, NULL);
        } else if (option == 'A') {
            options->append = true;
        } else if (option == 'E') {
            options->engine_only = true;
        } else if (option == 'o') {
            options->only = optarg;
        } else if (option == 'D') {
            options->delays = atoi(optarg);
        } else if (option == 'K') {
            options->shocks_over = strtod(optarg, NULL);
        } else if (option == 'F') {
            options->false_alarms = strtod(optarg, NULL);
        } else {
            return false;
        }
    }
    return optind == argc;
}

int main(int argc, char **argv)
{
    struct options options;
    size_t length = 0;

    stats_init();
    if (!read_options(argc, argv, &options)) {
        (void)fprintf(stderr, "usage: see the head of accuracy_main.c\n");
        return 2;
    }
    length = (size_t)snprintf(options.command, sizeof options.command,
                              "build/bench_detect_accuracy");
    for (int i = 1; i < argc && length < sizeof options.command; i++)
        length += (size_t)snprintf(options.command + length, sizeof options.command - length, " %s",
                                   argv[i]);
    if (options.only != NULL)
        return run_only(&options);
    if (options.false_alarms > 0)
        return run_alarms(&options);
    if (options.delays > 0)
        return run_delays(&options);
    return run_study(&options);
}
