/* CPU time of the engine for one step and its memory, from 1,024 to 131,072 ranks with eight
 * metrics each.
 *
 *     bench_detect [STEPS]
 *
 * Samples are made beforehand for a few steps and fed again and again with new step numbers, so
 * that only the engine is timed. One rank is slow from the middle on, so that alarms, localisation
 * and causes are in the figure.
 */
#include "detectors/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DISTINCT_STEPS = 8, TENSOR = 4, STAGES = 4, TRAY_RANKS = 4, RACK_TRAYS = 16 };

static double cpu_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static long peak_kib(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Roughly normal: the sum of four uniforms. */
static double noise(uint64_t *state)
{
    double sum = 0;

    for (int i = 0; i < 4; i++)
        sum += (double)(next_random(state) >> 11) / 9007199254740992.0 - 0.5;
    return sum * 1.7320508;
}

static struct job *make_job(int32_t ranks)
{
    struct job *job = job_new("bench", ranks);
    char name[32];

    job->size[DIMENSION_TP] = TENSOR;
    job->size[DIMENSION_PP] = STAGES;
    job->size[DIMENSION_DP] = ranks / TENSOR / STAGES;
    job->compute = COMPUTE_KERNEL;
    for (int32_t r = 0; r < ranks; r++) {
        int32_t tray = r / TRAY_RANKS, rack = tray / RACK_TRAYS;
        if (r % (TRAY_RANKS * RACK_TRAYS) == 0) {
            (void)snprintf(name, sizeof name, "rack-%d", (int)rack);
            (void)job_intern_rack(job, name, NULL);
        }
        if (r % TRAY_RANKS == 0) {
            (void)snprintf(name, sizeof name, "tray-%d", (int)tray);
            (void)job_intern_tray(job, name, rack);
        }
        job->ranks[r] = (struct job_rank){
            .tray = tray, .gpu = (int16_t)(r % TRAY_RANKS), .rail = (int16_t)(r % TRAY_RANKS)};
    }
    return job;
}

static void set(struct sample *sample, enum field field, double value)
{
    sample->values[field] = value;
    sample->present |= UINT64_C(1) << field;
}

/* One rank's sample of one step: eight metrics beside the step number. */
static struct sample make_sample(int32_t rank, bool slow, uint64_t *state)
{
    struct sample sample = {.measurement = MEASUREMENT_STEP, .rank = rank};
    double compute = 800 * (1 + 0.005 * noise(state)) * (slow ? 1.3 : 1);

    set(&sample, FIELD_STEP_MS, 1300 + noise(state));
    set(&sample, FIELD_COMPUTE_MS, compute);
    set(&sample, FIELD_ALLREDUCE_MS, 100 + 10 * noise(state) + (slow ? -60 : 0));
    set(&sample, FIELD_TP_MS, 90 + noise(state));
    set(&sample, FIELD_RECV_MS, 150 + noise(state));
    set(&sample, FIELD_SM, 0.65 + 0.01 * noise(state) + (slow ? 0.1 : 0));
    set(&sample, FIELD_MEM, 0.76);
    set(&sample, FIELD_GRAD_NORM, 0.8);
    return sample;
}

static void run_size(int32_t ranks, int steps)
{
    struct job *job = make_job(ranks);
    struct engine_params params = engine_params_default();
    struct engine *engine;
    struct sample *samples = calloc((size_t)ranks * DISTINCT_STEPS * 2, sizeof *samples);
    uint64_t state = 88172645463325252u;
    long before_kib;
    int32_t culprit = ranks / 2 + 1;
    int verdicts = 0;
    double start, spent;

    for (int s = 0; s < 2 * DISTINCT_STEPS; s++)
        for (int32_t r = 0; r < ranks; r++)
            samples[(size_t)s * (size_t)ranks + (size_t)r] = make_sample(
                r, s >= DISTINCT_STEPS && r == culprit, &state);
    before_kib = peak_kib();
    engine = engine_new(job, &params);
    start = cpu_seconds();
    for (int step = 0; step < steps; step++) {
        int from = step % DISTINCT_STEPS + (step > steps / 2 ? DISTINCT_STEPS : 0);
        struct verdict verdict;

        for (int32_t r = 0; r < ranks; r++) {
            struct sample *sample = &samples[(size_t)from * (size_t)ranks + (size_t)r];
            set(sample, FIELD_STEP, step);
            sample->time_ns = INT64_C(1780000000000000000) + step * INT64_C(1300000000);
            engine_feed(engine, sample);
        }
        while (engine_next(engine, &verdict)) {
            verdicts++;
            verdict_done(&verdict);
        }
    }
    spent = cpu_seconds() - start;
    printf("%7d ranks: %8.3f ms CPU a step, %6.1f ns a metric, %6ld MiB, %d verdicts\n", (int)ranks,
           1000 * spent / steps, 1e9 * spent / steps / ranks / 8, (peak_kib() - before_kib) / 1024,
           verdicts);
    free(samples);
    engine_free(engine);
    job_free(job);
}

int main(int argc, char **argv)
{
    static const int32_t SIZES[] = {1024, 2048, 4096, 10368, 32768, 65536, 131072};
    int steps = argc > 1 ? atoi(argv[1]) : 200;

    printf("engine_feed of eight metrics a rank and step, %d steps, tp %d, pp %d\n", steps, TENSOR,
           STAGES);
    (void)fflush(stdout);
    /* A process for each size: peak memory is the process's. */
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        pid_t child = fork();
        if (child == 0) {
            run_size(SIZES[i], steps);
            (void)fflush(stdout);
            _exit(0);
        }
        (void)waitpid(child, NULL, 0);
    }
    return 0;
}
