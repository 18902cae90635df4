/* Charts of one number a row against its own base. High means: above the base by more than noise and by
 * more than is worth a word; an alarm needs HIGH_ROWS of the last WATCHED_ROWS, so spells pass. */
#include "detectors/pace.h"

#include "detectors/engine_state.h"
#include "detectors/stats/robust.h"

#include <math.h>
#include <string.h>

enum { WATCHED_ROWS = 30, HIGH_ROWS = 24, JOIN_ROWS = 15, LOW_ROWS = 4, BASE_ROWS = 16 };
static const double BASE_WEIGHT = 0.02, FAST_WEIGHT = 0.2, SPREADS = 4;
/* Least rise: of a transfer against itself, of typical work. */
static const double TRANSFER_RISE = 0.15, WORK_RISE = 0.025;

static void chart_init(struct pace_chart *chart)
{
    *chart = (struct pace_chart){.base = (double)NAN, .recent = (double)NAN};
}

void pace_init(struct pace *pace, const struct grid *grid)
{
    memset(pace, 0, sizeof *pace);
    pace->transfer_count = grid->cut[CUT_DATA].count;
    pace->stage_count = grid->cut[CUT_STAGE].count;
    pace->transfer = xcalloc((size_t)pace->transfer_count, sizeof *pace->transfer);
    pace->stage_sm = xcalloc((size_t)pace->stage_count, sizeof *pace->stage_sm);
    for (int32_t i = 0; i < pace->transfer_count; i++)
        chart_init(&pace->transfer[i]);
    for (int32_t i = 0; i < pace->stage_count; i++)
        chart_init(&pace->stage_sm[i]);
    chart_init(&pace->busy);
    chart_init(&pace->step);
    chart_init(&pace->sm);
    pace->baseline_ms = (double)NAN;
}

void pace_done(struct pace *pace)
{
    xfree(pace->transfer);
    xfree(pace->stage_sm);
    memset(pace, 0, sizeof *pace);
}

void pace_restart(struct pace *pace)
{
    for (int32_t i = 0; i < pace->transfer_count; i++)
        pace->transfer[i].high = 0;
    pace->busy.high = 0;
    pace->ring_rows = 0;
    pace->first_count = 0;
    pace->baseline_ms = (double)NAN;
}

double pace_recent_ms(const struct pace *pace)
{
    float scratch[PACE_RING];
    size_t n = pace->ring_rows < PACE_RING ? (size_t)pace->ring_rows : PACE_RING;

    if (n == 0)
        return (double)NAN;
    memcpy(scratch, pace->ring, n * sizeof *scratch);
    return robust_median(scratch, n);
}

/* One value; least_rise is absolute. */
static void chart_put(struct pace_chart *chart, double value, double least_rise)
{
    if (!isfinite(value))
        return;
    if (!isfinite(chart->base)) {
        chart->base = chart->recent = value;
        chart->rows = 1;
        return;
    }
    double early = 1.0 / (double)(chart->rows + 1);
    double over = value - chart->base;
    bool learned = chart->rows >= BASE_ROWS;
    bool high = learned && over > least_rise && over > SPREADS * chart->spread;

    chart->recent += FAST_WEIGHT * (value - chart->recent);
    chart->high = chart->high << 1 | high;
    chart->rows++;
    if (high)
        return;
    double bounded = learned ? fmin(fmax(over, -3 * chart->spread), 3 * chart->spread) : over;
    chart->base += fmax(BASE_WEIGHT, early) * bounded;
    /* 1.25: mean absolute deviation of normal data to its sigma. */
    chart->spread += fmax(BASE_WEIGHT, early) * (1.25 * fabs(bounded) - chart->spread);
}

static int high_rows(const struct pace_chart *chart)
{
    return __builtin_popcount(chart->high & ((1u << WATCHED_ROWS) - 1));
}

static bool is_high(const struct pace_chart *chart)
{
    return high_rows(chart) >= HIGH_ROWS;
}

/* High enough to belong to another chart's alarm. */
static bool is_along(const struct pace_chart *chart)
{
    return high_rows(chart) >= JOIN_ROWS;
}

static struct open_verdict *open_pace(const struct engine *engine, int *ret_index)
{
    for (int i = 0; i < engine->open_count; i++) {
        struct open_verdict *open = engine->open[i];
        if (open->bank == BANK_COUNT && open->verdict.cause != CAUSE_UNKNOWN &&
            (open->verdict.kind == VERDICT_REGRESSION ||
             (open->verdict.kind == VERDICT_SLOW && open->verdict.scope == SCOPE_RAIL))) {
            *ret_index = i;
            return open;
        }
    }
    return NULL;
}

/* Rows since the first high one of the watched rows. */
static int64_t since_step(const struct engine *engine, const struct pace_chart *chart)
{
    int rows = 0;

    for (int i = 0; i < WATCHED_ROWS; i++)
        if (chart->high >> i & 1u)
            rows = i;
    return bank_step(&engine->banks[BANK_LATE], rows);
}

/* The one rail of all ranks in groups whose transfer is high; JOB_NONE when there are several. */
static int32_t common_rail(const struct engine *engine)
{
    int32_t rail = JOB_NONE;

    for (int32_t g = 0; g < engine->pace.transfer_count; g++) {
        if (!is_along(&engine->pace.transfer[g]))
            continue;
        for (int32_t i = 0; i < grid_size(engine->grid, CUT_DATA, g); i++) {
            int32_t of = grid_of(engine->grid, CUT_RAIL, grid_members(engine->grid, CUT_DATA, g)[i]);
            if (of == JOB_NONE || (rail != JOB_NONE && of != rail))
                return JOB_NONE;
            rail = of;
        }
    }
    return rail;
}

static void tell_transfer(struct engine *engine, int32_t groups)
{
    const struct pace *pace = &engine->pace;
    int32_t rail = groups < pace->transfer_count ? common_rail(engine) : JOB_NONE;
    struct verdict verdict = verdict_start(engine, rail != JOB_NONE ? VERDICT_SLOW : VERDICT_REGRESSION,
                                           rail != JOB_NONE ? SCOPE_RAIL : SCOPE_JOB);
    double excess = 0, ratio = 1;

    verdict.since_step = verdict.step;
    for (int32_t g = 0; g < pace->transfer_count; g++) {
        const struct pace_chart *chart = &pace->transfer[g];
        if (!is_along(chart) || chart->recent - chart->base <= excess)
            continue;
        excess = chart->recent - chart->base;
        ratio = chart->recent / chart->base;
        verdict.since_step = since_step(engine, chart);
    }
    verdict_set_domain(engine, &verdict, rail != JOB_NONE ? rail : 0);
    verdict.cause = CAUSE_NETWORK;
    verdict.gain = excess / engine->model.step_ms;
    verdict.slowdown = 1 / (1 - fmin(verdict.gain, 0.99));
    verdict_add_evidence(&verdict, "transfer_ratio", ratio);
    verdict_add_evidence(&verdict, "transfer_excess_ms", excess);
    verdict_add_evidence(&verdict, "slow_groups", groups);
    verdict_add_evidence(&verdict, "groups", pace->transfer_count);
    (void)engine_open(engine, verdict, NULL);
}

/* All ranks work longer than they did. */
static void tell_work(struct engine *engine)
{
    const struct pace *pace = &engine->pace;
    struct verdict verdict = verdict_start(engine, VERDICT_REGRESSION, SCOPE_JOB);
    double sm = pace->sm.recent / pace->sm.base - 1;

    verdict_set_domain(engine, &verdict, 0);
    verdict.since_step = since_step(engine, &pace->busy);
    /* Starved SMs point at hosts or data, busy ones at clocks. */
    verdict.cause = !isfinite(sm) ? CAUSE_UNKNOWN : sm < -0.02 ? CAUSE_HOST : CAUSE_GPU;
    verdict.slowdown = pace->busy.recent / pace->busy.base;
    verdict.gain = (pace->busy.recent - pace->busy.base) / engine->model.step_ms;
    verdict_add_evidence(&verdict, "work_ms", pace->busy.recent);
    verdict_add_evidence(&verdict, "work_ms_before", pace->busy.base);
    if (isfinite(sm))
        verdict_add_evidence(&verdict, "sm_shift", sm);
    (void)engine_open(engine, verdict, NULL);
}

/* A slow rack moves typical work by itself; a slow rank does not. */
static bool has_open_rack(const struct engine *engine)
{
    for (int i = 0; i < engine->open_count; i++)
        if (engine->open[i]->verdict.scope == SCOPE_RACK)
            return true;
    return false;
}

/* What a typical rank works in a step. Pauses of the whole job lengthen the time outside the all-reduce
 * too; the least of some rows has none of them. */
static double typical_work(struct engine *engine)
{
    struct pace *pace = &engine->pace;
    double sum = 0, least = (double)INFINITY;

    pace->work[pace->work_rows++ % PACE_LEAST] = (float)engine->model.busy_ms;
    if (engine->model.has_compute) {
        for (int32_t s = 0; s < pace->stage_count; s++)
            sum += (double)engine->model.stage_ms[s];
        return sum / pace->stage_count;
    }
    for (int64_t i = 0; i < PACE_LEAST && i < pace->work_rows; i++)
        least = fmin(least, (double)pace->work[i]);
    return least;
}

static void judge(struct engine *engine)
{
    struct pace *pace = &engine->pace;
    int index = 0;
    struct open_verdict *open = open_pace(engine, &index);
    int32_t groups = 0, highest = 0;
    bool alarm = false;

    for (int32_t g = 0; g < pace->transfer_count; g++) {
        groups += is_along(&pace->transfer[g]);
        alarm = alarm || is_high(&pace->transfer[g]);
        highest = high_rows(&pace->transfer[g]) > highest ? high_rows(&pace->transfer[g]) : highest;
    }
    if (high_rows(&pace->busy) > highest)
        highest = high_rows(&pace->busy);
    if (open != NULL) {
        if (highest <= LOW_ROWS)
            engine_close(engine, index, true);
        return;
    }
    if (alarm)
        tell_transfer(engine, groups);
    else if (is_high(&pace->busy) && !has_open_rack(engine) && engine->pending_rows == 0)
        tell_work(engine);
}

static void remember_step(struct engine *engine, double step_ms)
{
    struct pace *pace = &engine->pace;

    pace->ring[pace->ring_rows++ % PACE_RING] = (float)step_ms;
    if (pace->first_count < PACE_FIRST && engine->open_count == 0) {
        float scratch[PACE_FIRST];
        pace->first[pace->first_count++] = (float)step_ms;
        memcpy(scratch, pace->first, (size_t)pace->first_count * sizeof *scratch);
        pace->baseline_ms = robust_median(scratch, (size_t)pace->first_count);
    }
}

/* Median SM activity over all ranks, not relative to anybody: the most of some rows, since pauses of the
 * whole job lower it. */
static double median_sm(struct engine *engine, const struct row *row)
{
    struct pace *pace = &engine->pace;
    size_t n = 0;
    double most = (double)NAN;

    for (int32_t r = 0; r < engine->job->world_size; r++)
        if (isfinite(row->values[STREAM_SM][r]))
            engine->model.scratch[n++] = row->values[STREAM_SM][r];
    pace->sms[pace->sm_rows++ % PACE_LEAST] = n > 0 ? (float)robust_median(engine->model.scratch, n) : NAN;
    for (int64_t i = 0; i < PACE_LEAST && i < pace->sm_rows; i++)
        if (!((double)pace->sms[i] <= most))
            most = (double)pace->sms[i];
    return most;
}

void pace_row(struct engine *engine, const struct row *row)
{
    struct pace *pace = &engine->pace;
    const struct model *model = &engine->model;
    double usual = pace_recent_ms(pace);
    double least = engine->params.gain_min_ratio * model->step_ms;

    if (engine->rows < WARM_UP_ROWS || !(model->step_ms > 0))
        return;
    /* A pause of everybody says nothing of anybody's pace. */
    if (model->step_ms > 2.5 * usual && pace->ring_rows >= 8)
        return;
    remember_step(engine, model->step_ms);
    if (model->has_allreduce)
        for (int32_t g = 0; g < pace->transfer_count; g++) {
            struct pace_chart *chart = &pace->transfer[g];
            chart_put(chart, (double)model->transfer_ms[g], fmax(least, TRANSFER_RISE * chart->base));
        }
    chart_put(&pace->sm, median_sm(engine, row), (double)INFINITY);
    if (!has_open_rack(engine))
        chart_put(&pace->busy, typical_work(engine), fmax(WORK_RISE * pace->busy.base, least));
    for (int32_t s = 0; s < pace->stage_count; s++)
        chart_put(&pace->stage_sm[s], (double)model->stage_sm[s], (double)INFINITY);
    judge(engine);
}
