/* The job model against two published jobs of ByteDance (StragglerAnalysis): given each stage's own
 * compute time it must come to the step time and to the slowdown S that were measured, within 5 %.
 * Not compared: the single waits, which also hold the sends between stages; the model has no cost
 * for those. */
#include "controller/base/json.h"
#include "controller/rehearse/model.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRACES BROOM_SOURCE_DIR "/../shared/data/straggler-analysis"

enum { STAGES = 4, REPLICAS = 4, ROWS_MAX = 64, SETTLED_STEPS = 10, STEPS = 40 };
static const double WITHIN = 0.05;

/* Medians over the steps of one job, ms; S as its authors tell it. */
struct trace {
    int32_t replicas;
    double compute[STAGES][REPLICAS], collective[STAGES][REPLICAS];
    double step, slowdown;
};

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static double median(double *values, int count)
{
    CU_ASSERT_FATAL(count > 0);
    qsort(values, (size_t)count, sizeof *values, compare_numbers);
    return values[count / 2];
}

enum column { COLUMN_SPAN, COLUMN_COMPUTE, COLUMN_COLLECTIVE, COLUMN_COUNT };

/* The values of one stage and replica, a step each; fewer than ROWS_MAX steps are there. */
static int read_column(const char *text, int32_t stage, int32_t replica, enum column column,
                       double *ret_values)
{
    int count = 0;
    for (const char *line = strchr(text, '\n'); line != NULL && line[1] != '\0' && count < ROWS_MAX;
         line = strchr(line + 1, '\n')) {
        char *at;
        (void)strtol(line + 1, &at, 10); /* step */
        (void)strtol(at + 1, &at, 10);   /* rank */
        int32_t of_replica = (int32_t)strtol(at + 1, &at, 10);
        int32_t of_stage = (int32_t)strtol(at + 1, &at, 10);
        double values[COLUMN_COUNT];
        for (int i = 0; i < COLUMN_COUNT; i++)
            values[i] = strtod(at + 1, &at) * 1000;
        if (of_stage == stage && of_replica == replica)
            ret_values[count++] = values[column];
    }
    return count;
}

static void read_trace(const char *name, int32_t replicas, struct trace *ret_trace)
{
    char path[512];
    double values[ROWS_MAX];
    *ret_trace = (struct trace){.replicas = replicas};
    snprintf(path, sizeof path, "%s/per-rank-step-%s.csv", TRACES, name);
    if (access(path, R_OK) != 0)
        test_skip_all("the public traces are not here");
    AUTO_FREE char *rows = test_read_file(path);
    for (int32_t s = 0; s < STAGES; s++)
        for (int32_t d = 0; d < replicas; d++) {
            int count = read_column(rows, s, d, COLUMN_COMPUTE, values);
            ret_trace->compute[s][d] = median(values, count);
            count = read_column(rows, s, d, COLUMN_COLLECTIVE, values);
            ret_trace->collective[s][d] = median(values, count);
        }
    ret_trace->step = median(values, read_column(rows, 0, 0, COLUMN_SPAN, values));
    snprintf(path, sizeof path, "%s/result-%s.json", TRACES, name);
    AUTO_FREE char *result = test_read_file(path);
    AUTO(json_free) struct json *root = NULL;
    CU_ASSERT_FATAL(result != NULL && json_parse(view_of(result), &root, NULL) == OK);
    ret_trace->slowdown = json_get_number(root, "blocking_slowdown", 0);
}

/* A job of one rack whose ranks all take as long, without what the traces do not have. */
static struct model_config bare_job(int32_t trays, int32_t tp, int32_t micro_batches)
{
    struct model_config config = model_config_default();
    config.seed = test_seed();
    config.racks = 1;
    config.trays_used = trays;
    config.tp = tp;
    config.pp = STAGES;
    config.micro_batches = micro_batches;
    config.beat_ns = 0;
    config.gpu_offset = config.tray_offset = config.rack_offset = 0;
    config.tp_ms = config.data_ms = 0;
    return config;
}

struct waits {
    double of[STAGES][REPLICAS]; /* inside the all-reduce, last step, tensor rank 0 */
    int32_t tp, dp;
};

static void note_wait(void *context, const struct sample *sample)
{
    struct waits *waits = context;
    if (sample->measurement != MEASUREMENT_STEP || sample->rank % waits->tp != 0)
        return;
    int32_t place = (int32_t)(sample->rank / waits->tp);
    waits->of[place / waits->dp][place % waits->dp] = sample->values[FIELD_ALLREDUCE_MS];
}

/* Mean step time, ms. */
static double run(const struct model_config *config, double slow, struct waits *waits)
{
    AUTO(model_free) struct model *model = model_new(config);
    struct model_fault fault = {.kind = FAULT_SLOW_GPU, .magnitude = slow, .from_step = 0};
    double sum = 0;
    if (slow > 1)
        model_add_fault(model, &fault);
    model_start(model, config->start_ns, 0);
    while (model_info(model).steps_done < STEPS) {
        int64_t before = model_info(model).steps_done;
        model_step(model, note_wait, waits);
        if (model_info(model).steps_done > before && before >= SETTLED_STEPS)
            sum += model_info(model).last_step_ms;
    }
    return sum / (STEPS - SETTLED_STEPS);
}

static double mean_compute(const struct trace *trace, int32_t from_stage, int32_t to_stage,
                           bool with_culprit)
{
    double sum = 0;
    int n = 0;
    for (int32_t s = from_stage; s < to_stage; s++)
        for (int32_t d = 0; d < trace->replicas; d++)
            if (with_culprit || s + d > 0) {
                sum += trace->compute[s][d];
                n++;
            }
    return sum / n;
}

static void check_within(const char *what, double simulated, double published)
{
    bool close = fabs(simulated / published - 1) <= WITHIN;
    CU_ASSERT(close);
    if (!close || getenv("TEST_SAY") != NULL)
        printf("\n%s: simulated %.4g, published %.4g\n", what, simulated, published);
}

/* What the authors mean by S: against the same job where every rank takes the mean of all. */
static double ideal_step(struct model_config config, const struct trace *trace)
{
    struct waits waits = {.tp = config.tp, .dp = trace->replicas};
    config.compute_ms = mean_compute(trace, 0, STAGES, true);
    config.last_stage_ratio = 1;
    return run(&config, 1, &waits);
}

TEST(one_slow_worker_of_64_costs_what_it_cost_and_hides_its_pipeline)
{
    struct trace trace;
    read_trace("AR", 4, &trace);
    struct model_config config = bare_job(16, 4, 32);
    struct waits waits = {.tp = 4, .dp = 4};
    config.compute_ms = mean_compute(&trace, 0, STAGES - 1, false);
    config.last_stage_ratio = mean_compute(&trace, STAGES - 1, STAGES, true) / config.compute_ms;
    config.transfer_ms = trace.collective[0][0]; /* the last to come waits for nobody */
    double step = run(&config, trace.compute[0][0] / config.compute_ms, &waits);
    check_within("AR step, ms", step, trace.step);
    check_within("AR slowdown", step / ideal_step(config, &trace), trace.slowdown);
    /* In the trace and in the model all stages of the slow worker's replica wait least: the
     * smallest wait names the pipeline, not the worker. */
    for (int32_t s = 0; s < STAGES; s++)
        for (int32_t d = 1; d < 4; d++) {
            CU_ASSERT(trace.collective[s][0] < trace.collective[s][d]);
            CU_ASSERT(waits.of[s][0] < waits.of[s][d]);
        }
}

TEST(a_bigger_last_stage_costs_what_it_cost)
{
    struct trace trace;
    read_trace("ST", 2, &trace);
    struct model_config config = bare_job(2, 1, 4);
    struct waits waits = {.tp = 1, .dp = 2};
    config.compute_ms = mean_compute(&trace, 0, STAGES - 1, true);
    config.last_stage_ratio = mean_compute(&trace, STAGES - 1, STAGES, true) / config.compute_ms;
    config.transfer_ms = fmin(trace.collective[0][0], trace.collective[0][1]);
    double step = run(&config, 1, &waits);
    check_within("ST step, ms", step, trace.step);
    check_within("ST slowdown", step / ideal_step(config, &trace), trace.slowdown);
}

TESTS(T(one_slow_worker_of_64_costs_what_it_cost_and_hides_its_pipeline),
      T(a_bigger_last_stage_costs_what_it_cost))
