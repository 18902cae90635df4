/* Healthy jobs of 1,024 ranks with heavy-tailed noise of four lags and garbage collection, one
 * after another. */
#include "accuracy_alarms.h"

#include "accuracy_report.h"
#include "controller/rehearse/random.h"
#include "detectors/engine.h"

enum { JOB_STEPS = 5000 };
/* One in a hundred steps of such a job: what is held against all ranks stays what it is. */
static const double SHOCK_PROBABILITY = 1e-5;

struct alarms {
    struct engine *engine;
    int64_t rank_steps;
    double rank_seconds;
    int claims, evictions, infos;
};

static void feed(void *context, const struct sample *sample)
{
    struct alarms *alarms = context;

    engine_feed(alarms->engine, sample);
}

/* Only what detection of slow ranks needs is sent: the simulator's fast path. */
static struct model_config healthy_config(int index, const struct alarms_options *options)
{
    static const double LAGS[] = {0.1, 0.3, 0.5, 0.85};
    static const double NOISE[] = {0.002, 0.004, 0.01, 0.02};
    static const double GC[] = {0, 1.0 / 500, 1.0 / 2000};
    struct model_config config = model_config_default();

    config.job = "bench/healthy";
    config.seed = options->seed * 1000003 + (uint64_t)index;
    config.racks = 16;
    config.compute_ms = 4400; /* a step of about 5 s */
    config.transfer_ms = 400;
    config.beat_ns = 0;
    config.send_loss = false;
    config.noise = NOISE[index / 4 % 4];
    config.noise_lag1 = LAGS[index % 4];
    config.gc_probability = GC[index % 3];
    config.shock_probability = options->shocks_over > 0 ? SHOCK_PROBABILITY : 0;
    config.shock_least = options->shocks_over;
    config.tp = index % 5 == 4 ? 1 : 4;
    config.pp = index % 5 == 3 ? 4 : 1;
    return config;
}

static void take_verdicts(struct alarms *alarms, int index, FILE *out)
{
    struct verdict verdict;

    while (engine_next(alarms->engine, &verdict)) {
        bool info = verdict.kind == VERDICT_INFO || verdict.kind == VERDICT_CLEAR;
        alarms->infos += verdict.kind == VERDICT_INFO;
        alarms->claims += !info;
        alarms->evictions += verdict.evict;
        if (!info)
            (void)fprintf(out, "- job %d, step %lld: %s %s %s, slowdown %.3f%s\n", index,
                          (long long)verdict.step, verdict_kind_name(verdict.kind),
                          scope_name(verdict.scope), verdict.id, verdict.slowdown,
                          verdict.evict ? ", evict" : "");
        (void)fflush(out);
        verdict_done(&verdict);
    }
}

static void run_job(struct alarms *alarms, int index, const struct alarms_options *options,
                    int64_t steps, FILE *out)
{
    struct model_config config = healthy_config(index, options);
    struct model *model = model_new(&config);
    struct job *job = model_job(model);
    struct engine_params params = engine_params_default();
    int64_t started_ns = config.start_ns;

    alarms->engine = engine_new(job, &params);
    model_start(model, config.start_ns, 0);
    while (model_info(model).last_step + 1 < steps) {
        model_step(model, feed, alarms);
        take_verdicts(alarms, index, out);
    }
    alarms->rank_steps += steps * job->world_size;
    alarms->rank_seconds += (double)(model_info(model).now_ns - started_ns) / 1e9 * job->world_size;
    engine_free(alarms->engine);
    job_free(job);
    model_free(model);
}

void alarms_run_one(int index, const struct alarms_options *options, FILE *out)
{
    struct alarms alarms = {0};

    run_job(&alarms, index, options, JOB_STEPS, out);
}

/* A line a job, so that a run that takes hours can be followed, stopped and added to others. */
static void print_total(const struct alarms *alarms, int jobs)
{
    (void)fprintf(stderr,
                  "%d jobs, %.3e rank-steps, %.1f GPU-months, %d claims, %d evictions, %d "
                  "infos, %.0f s CPU\n",
                  jobs, (double)alarms->rank_steps, alarms->rank_seconds / SECONDS_A_MONTH,
                  alarms->claims, alarms->evictions, alarms->infos, process_cpu_seconds());
    (void)fflush(stderr);
}

int alarms_run(const struct alarms_options *options, FILE *out)
{
    struct alarms alarms = {0};
    int jobs = 0;

    (void)fputs("# Long false-alarm run\n\n", out);
    report_machine(out, options->command);
    (void)fflush(out);
    while ((double)alarms.rank_steps < options->rank_steps &&
           (options->cpu_limit_s <= 0 || process_cpu_seconds() < options->cpu_limit_s)) {
        double left = (options->rank_steps - (double)alarms.rank_steps) / 1024;
        run_job(&alarms, jobs++, options, left < JOB_STEPS ? (int64_t)left + 1 : JOB_STEPS, out);
        print_total(&alarms, jobs);
    }
    double months = alarms.rank_seconds / SECONDS_A_MONTH;
    (void)fprintf(
        out,
        "%d healthy jobs of 1,024 ranks, at most %d steps of about 5 s each, seed %llu; noise (t "
        "with five degrees "
        "of freedom) 0.2 to 2 %%, lag-1 0.1 to 0.85, garbage collection of 200 ms in none, one of "
        "500 or one of "
        "2,000 steps of a rank; tp 4, pp 4 and plain data parallel.\n\n"
        "| rank-steps | GPU-months | claims | evictions | infos | evictions in 10,000 GPU-months "
        "at most (95 %%) | CPU s "
        "|\n|---|---|---|---|---|---|---|\n| %.3e | %.0f | %d | %d | %d | %.1f | %.0f |\n",
        jobs, (int)JOB_STEPS, (unsigned long long)options->seed, (double)alarms.rank_steps, months,
        alarms.claims, alarms.evictions, alarms.infos,
        10000 * poisson_upper(alarms.evictions, months), process_cpu_seconds());
    if (options->shocks_over > 0)
        (void)fprintf(
            out,
            "\nOf what is new in a rank's noise one in %.0f was drawn beyond %g deviations: "
            "as many such shocks as %.2e rank-steps have by themselves.\n",
            1 / SHOCK_PROBABILITY, options->shocks_over,
            (double)alarms.rank_steps * SHOCK_PROBABILITY /
                heavy_tail_part_above(options->shocks_over));
    return alarms.evictions;
}
