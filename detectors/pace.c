/* Charts of one number a row against its own base. High means: the median of the last PACE_WINDOW
 * rows is above the base by more than is worth a word and by more than noise makes of a median, and
 * three quarters of the rows are above it by a part of that. So spells shorter than half the window
 * pass. */
#include "detectors/pace.h"

#include "detectors/engine_state.h"
#include "detectors/stats/robust.h"

#include <math.h>
#include <string.h>

enum { BASE_ROWS = 24 };
/* Seven sigmas of the median of 40 rows, correlated by 0.5: 7 * 1.25 * sqrt(3) / sqrt(40). */
static const double SPREADS = 2.4, CREEP = 0.01;
/* A chart goes along with another's alarm at this part of the needed rise, and is over below the
 * other. */
static const double ALONG = 0.5, OVER = 0.35, LASTING_NS = 20e9;
/* Least rise: of a transfer against itself, of typical work; of the wait for data as a part of the
 * step. */
static const double TRANSFER_RISE = 0.15, WORK_RISE = 0.025, DATA_RISE = 0.02;

static void chart_init(struct pace_chart *chart)
{
    *chart = (struct pace_chart){.base = (double)NAN};
}

void pace_init(struct pace *pace, const struct grid *grid)
{
    memset(pace, 0, sizeof *pace);
    pace->transfer_count = grid->cut[CUT_DATA].count;
    pace->class_count = grid->cut[CUT_CLASS].count;
    pace->transfer = xcalloc((size_t)pace->transfer_count, sizeof *pace->transfer);
    pace->class_sm = xcalloc((size_t)pace->class_count, sizeof *pace->class_sm);
    pace->class_work = xcalloc((size_t)pace->class_count, sizeof *pace->class_work);
    for (int32_t i = 0; i < pace->transfer_count; i++)
        chart_init(&pace->transfer[i]);
    for (int32_t i = 0; i < pace->class_count; i++)
        chart_init(&pace->class_sm[i]);
    for (int32_t i = 0; i < pace->class_count; i++)
        chart_init(&pace->class_work[i]);
    chart_init(&pace->busy);
    chart_init(&pace->step);
    chart_init(&pace->sm);
    chart_init(&pace->data);
    pace->baseline_ms = (double)NAN;
}

void pace_done(struct pace *pace)
{
    xfree(pace->transfer);
    xfree(pace->class_sm);
    xfree(pace->class_work);
    memset(pace, 0, sizeof *pace);
}

/* The base outlives a restart: the attempt before is a peer of this one. */
void pace_restart(struct pace *pace)
{
    for (int32_t i = 0; i < pace->transfer_count; i++)
        pace->transfer[i].rows = 0;
    for (int32_t i = 0; i < pace->class_count; i++)
        pace->class_sm[i].rows = pace->class_work[i].rows = 0;
    pace->busy.rows = 0;
    pace->sm.rows = 0;
    pace->data.rows = 0;
    pace->ring_rows = 0;
    pace->work_rows = 0;
    pace->step_rows = 0;
    pace->sm_rows = 0;
    pace->first_count = 0;
    pace->baseline_ms = (double)NAN;
}

double pace_rise(const struct pace_chart *chart, int rows)
{
    double sum = 0;
    int n = 0;

    for (int back = 0; back < rows && back < PACE_WINDOW && back < chart->rows; back++, n++)
        sum += (double)chart->last[(chart->rows - 1 - back) % PACE_WINDOW];
    return n > 0 && chart->base > 0 ? sum / n / chart->base - 1 : (double)NAN;
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

/* The value that `part` of the last rows lie below; NAN before the window is full. */
static double recent_quantile(const struct pace_chart *chart, double part)
{
    float scratch[PACE_WINDOW];

    if (chart->rows < PACE_WINDOW)
        return (double)NAN;
    memcpy(scratch, chart->last, sizeof scratch);
    return robust_select(scratch, PACE_WINDOW, (size_t)(part * (PACE_WINDOW - 1)));
}

static double recent_median(const struct pace_chart *chart)
{
    return recent_quantile(chart, 0.5);
}

/* How far the last rows are above the base, in units of the rise that is an alarm. */
static double rise_of(const struct pace_chart *chart, double least_rise)
{
    double needed = fmax(least_rise, SPREADS * chart->spread);
    double middle = (recent_median(chart) - chart->base) / needed;
    double lower = (recent_quantile(chart, 0.25) - chart->base) / needed;

    /* Most rows must be up, at least by a third of the rise. */
    return isfinite(middle) ? fmin(middle, 3 * lower) : 0;
}

/* The same as soon as a third of the rows are up: enough to go along with another chart's alarm. */
static double rise_along(const struct pace_chart *chart, double least_rise)
{
    double rise = (recent_quantile(chart, 0.7) - chart->base) /
                  fmax(least_rise, SPREADS * chart->spread);

    return isfinite(rise) ? rise : 0;
}

/* Base and spread of the first rows: median and MAD, so that a warm-up among them does not count.
 */
static void learn_first(struct pace_chart *chart)
{
    float scratch[PACE_WINDOW];

    memcpy(scratch, chart->last, BASE_ROWS * sizeof *scratch);
    chart->base = robust_median(scratch, BASE_ROWS);
    chart->spread = robust_mad(scratch, BASE_ROWS, chart->base);
}

/* After that both creep: by a hundredth of the spread a row at most, towards the side where more
 * than half of the rows lie. A fault of forty rows cannot move them far, and from then on they
 * stand still. */
static void chart_put(struct pace_chart *chart, double value, double least_rise)
{
    if (!isfinite(value))
        return;
    chart->last[chart->rows % PACE_WINDOW] = (float)value;
    chart->rows++;
    if (!isfinite(chart->base)) {
        if (chart->rows == BASE_ROWS)
            learn_first(chart);
        return;
    }
    double over = value - chart->base, step = CREEP * chart->spread;

    if (rise_of(chart, least_rise) >= ALONG)
        return;
    chart->base += over > 0 ? step : -step;
    /* Half of normal values lie within 0.6745 sigma. */
    chart->spread *= fabs(over) > 0.6745 * chart->spread ? 1 + CREEP : 1 - CREEP;
    chart->spread = fmax(chart->spread, 1e-6 * fabs(chart->base));
}

static struct open_verdict *open_pace(const struct engine *engine, int *ret_index)
{
    for (int i = 0; i < engine->open_count; i++) {
        struct open_verdict *open = engine->open[i];
        if (open->bank == BANK_COUNT &&
            (open->verdict.kind == VERDICT_REGRESSION || open->verdict.kind == VERDICT_SLOW)) {
            *ret_index = i;
            return open;
        }
    }
    return NULL;
}

static double transfer_least(const struct engine *engine, const struct pace_chart *chart)
{
    return fmax(engine->params.gain_min_ratio * engine->model.step_ms, TRANSFER_RISE * chart->base);
}

static double work_least(const struct engine *engine)
{
    return fmax(WORK_RISE * engine->pace.busy.base,
                engine->params.gain_min_ratio * engine->model.step_ms);
}

static double transfer_rise(const struct engine *engine, int32_t group)
{
    const struct pace_chart *chart = &engine->pace.transfer[group];

    return rise_of(chart, transfer_least(engine, chart));
}

static bool is_transfer_along(const struct engine *engine, int32_t group)
{
    const struct pace_chart *chart = &engine->pace.transfer[group];

    return rise_along(chart, transfer_least(engine, chart)) >= ALONG;
}

/* The step before which values were below half of the rise. */
static int64_t since_step(const struct engine *engine, const struct pace_chart *chart)
{
    double half = (recent_median(chart) + chart->base) / 2;
    int rows = 0;

    for (int back = 0; back < PACE_WINDOW && back < chart->rows && back < engine->pace.step_rows;
         back++)
        if ((double)chart->last[(chart->rows - 1 - back) % PACE_WINDOW] > half)
            rows = back;
    return engine->pace.steps[(engine->pace.step_rows - 1 - rows) % PACE_WINDOW];
}

/* The one rail of all ranks in groups whose transfer is high; JOB_NONE when there are several. */
static int32_t common_rail(const struct engine *engine)
{
    int32_t rail = JOB_NONE;

    for (int32_t g = 0; g < engine->pace.transfer_count; g++) {
        if (!is_transfer_along(engine, g))
            continue;
        for (int32_t i = 0; i < grid_size(engine->grid, CUT_DATA, g); i++) {
            int32_t of = grid_of(engine->grid, CUT_RAIL,
                                 grid_members(engine->grid, CUT_DATA, g)[i]);
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
    struct verdict verdict = verdict_start(engine,
                                           rail != JOB_NONE ? VERDICT_SLOW : VERDICT_REGRESSION,
                                           rail != JOB_NONE ? SCOPE_RAIL : SCOPE_JOB);
    double excess = 0, ratio = 1;

    verdict.since_step = verdict.step;
    for (int32_t g = 0; g < pace->transfer_count; g++) {
        const struct pace_chart *chart = &pace->transfer[g];
        if (!is_transfer_along(engine, g) || recent_median(chart) - chart->base <= excess)
            continue;
        excess = recent_median(chart) - chart->base;
        ratio = recent_median(chart) / chart->base;
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

/* Mean growth of the ranks' data time; 0 when nobody sends it. */
static double data_growth(const struct engine *engine)
{
    const struct gauges *gauges = &engine->gauges;
    double sum = 0;
    int32_t n = 0;

    for (int32_t r = 0; r < gauges->ranks; r++)
        if (isfinite(gauges->data_fast[r]) && isfinite(gauges->data_base[r])) {
            sum += (double)(gauges->data_fast[r] - gauges->data_base[r]);
            n++;
        }
    return n > 0 ? sum / n : 0;
}

/* All ranks work longer than they did. */
static void tell_work(struct engine *engine)
{
    const struct pace *pace = &engine->pace;
    struct verdict verdict = verdict_start(engine, VERDICT_REGRESSION, SCOPE_JOB);
    double sm = recent_median(&pace->sm) / pace->sm.base - 1, work = recent_median(&pace->busy);

    verdict_set_domain(engine, &verdict, 0);
    verdict.since_step = since_step(engine, &pace->busy);
    /* Starved SMs point at hosts or data, busy ones at clocks. */
    verdict.cause = !isfinite(sm) ? CAUSE_UNKNOWN : sm < -0.02 ? CAUSE_HOST : CAUSE_GPU;
    if (data_growth(engine) > (work - pace->busy.base) / 2)
        verdict.cause = CAUSE_STORAGE;
    verdict.slowdown = work / pace->busy.base;
    verdict.gain = (work - pace->busy.base) / engine->model.step_ms;
    verdict_add_evidence(&verdict, "work_ms", work);
    verdict_add_evidence(&verdict, "work_ms_before", pace->busy.base);
    if (isfinite(sm))
        verdict_add_evidence(&verdict, "sm_shift", sm);
    (void)engine_open(engine, verdict, NULL);
}

/* A typical rank waits longer for data than it did: what all share is slow, not a loader. */
static void tell_data(struct engine *engine)
{
    const struct pace_chart *chart = &engine->pace.data;
    struct verdict verdict = verdict_start(engine, VERDICT_REGRESSION, SCOPE_JOB);
    double excess = recent_median(chart) - chart->base;

    verdict_set_domain(engine, &verdict, 0);
    verdict.since_step = since_step(engine, chart);
    verdict.cause = CAUSE_STORAGE;
    verdict.gain = excess / engine->model.step_ms;
    verdict.slowdown = 1 / (1 - fmin(verdict.gain, 0.99));
    verdict_add_evidence(&verdict, "data_ms", recent_median(chart));
    verdict_add_evidence(&verdict, "data_ms_before", chart->base);
    (void)engine_open(engine, verdict, NULL);
}

static double data_least(const struct engine *engine)
{
    return DATA_RISE * engine->model.step_ms;
}

static double typical_data(struct engine *engine, const struct row *row)
{
    size_t n = 0;

    for (int32_t r = 0; (row->streams & 1u << STREAM_DATA) != 0 && r < engine->job->world_size; r++)
        if (isfinite(row->values[STREAM_DATA][r]))
            engine->model.scratch[n++] = row->values[STREAM_DATA][r];
    return n > 0 ? robust_median(engine->model.scratch, n) : (double)NAN;
}

/* While something is slow the others wait, in a pipeline outside the all-reduce too. */
static bool has_open_slow(const struct engine *engine)
{
    for (int i = 0; i < engine->open_count; i++)
        if (engine->open[i]->verdict.kind == VERDICT_SLOW)
            return true;
    return false;
}

/* What a typical rank works in a step. Pauses of the whole job lengthen the time outside the
 * all-reduce too; the least of some rows has none of them. */
static double typical_work(struct engine *engine)
{
    struct pace *pace = &engine->pace;
    double sum = 0, least = (double)INFINITY;

    pace->work[pace->work_rows++ % PACE_LEAST] = (float)engine->model.busy_ms;
    if (engine->model.has_compute) {
        for (int32_t s = 0; s < pace->class_count; s++)
            sum += (double)engine->model.class_ms[s];
        return sum / pace->class_count;
    }
    for (int64_t i = 0; i < PACE_LEAST && i < pace->work_rows; i++)
        least = fmin(least, (double)pace->work[i]);
    return least;
}

/* Everybody's work grew, or is not told apart; when only some classes' did, the work has shifted.
 */
static bool is_work_everywhere(const struct engine *engine)
{
    const struct pace *pace = &engine->pace;

    /* Where experts wait for each other inside what is measured, their load is not told from work.
     */
    if (engine->model.experts > 1 &&
        (!engine->model.has_compute || engine->job->compute != COMPUTE_KERNEL))
        return false;
    for (int32_t c = 0; engine->model.has_compute && c < pace->class_count; c++)
        if (rise_along(&pace->class_work[c], WORK_RISE * pace->class_work[c].base) < ALONG)
            return false;
    return true;
}

/* Half a window of short steps is a moment: what is told of the job has lasted for LASTING_NS at
 * least. */
static bool has_lasted(struct engine *engine, bool high)
{
    struct pace *pace = &engine->pace;

    if (!high) {
        pace->high_since_ns = 0;
        return false;
    }
    if (pace->high_since_ns == 0)
        pace->high_since_ns = engine->now_ns;
    return (double)(engine->now_ns - pace->high_since_ns) +
               PACE_WINDOW / 2 * pace_recent_ms(pace) * 1e6 >=
           LASTING_NS;
}

static void judge(struct engine *engine)
{
    struct pace *pace = &engine->pace;
    int index = 0;
    struct open_verdict *open = open_pace(engine, &index);
    int32_t groups = 0;
    double most = 0, work = rise_of(&pace->busy, work_least(engine));
    double data = rise_of(&pace->data, data_least(engine));

    for (int32_t g = 0; g < pace->transfer_count; g++) {
        double rise = transfer_rise(engine, g);
        groups += is_transfer_along(engine, g);
        most = fmax(most, rise);
    }
    if (open != NULL) {
        if (fmax(fmax(most, work), data) < OVER)
            engine_close(engine, index, true);
    } else if (!has_lasted(engine, most >= 1 || work >= 1 || data >= 1)) {
        return;
    } else if (most >= 1) {
        tell_transfer(engine, groups);
    } else if (work >= 1 && !has_open_slow(engine) && engine->pending_rows == 0 &&
               is_work_everywhere(engine)) {
        tell_work(engine);
    } else if (data >= 1 && !has_open_slow(engine) && engine->pending_rows == 0) {
        tell_data(engine);
    }
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

/* Median SM activity over all ranks, not relative to anybody: the most of some rows, since pauses
 * of the whole job lower it. */
static double median_sm(struct engine *engine, const struct row *row)
{
    struct pace *pace = &engine->pace;
    size_t n = 0;
    double most = (double)NAN;

    for (int32_t r = 0; r < engine->job->world_size; r++)
        if (isfinite(row->values[STREAM_SM][r]))
            engine->model.scratch[n++] = row->values[STREAM_SM][r];
    pace->sms[pace->sm_rows++ % PACE_LEAST] = n > 0 ? (float)robust_median(engine->model.scratch, n)
                                                    : NAN;
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

    if (engine->rows < WARM_UP_ROWS || !(model->step_ms > 0))
        return;
    /* A pause of everybody says nothing of anybody's pace. */
    if (model->step_ms > 2.5 * usual && pace->ring_rows >= 8)
        return;
    remember_step(engine, model->step_ms);
    pace->steps[pace->step_rows++ % PACE_WINDOW] = row->step;
    if (model->has_allreduce)
        for (int32_t g = 0; g < pace->transfer_count; g++) {
            struct pace_chart *chart = &pace->transfer[g];
            chart_put(chart, (double)model->transfer_ms[g], transfer_least(engine, chart));
        }
    chart_put(&pace->sm, median_sm(engine, row), (double)INFINITY);
    chart_put(&pace->data, typical_data(engine, row), data_least(engine));
    for (int32_t c = 0; model->has_compute && c < pace->class_count; c++)
        chart_put(&pace->class_work[c], (double)model->class_ms[c],
                  WORK_RISE * pace->class_work[c].base);
    if (!has_open_slow(engine))
        chart_put(&pace->busy, typical_work(engine), work_least(engine));
    for (int32_t s = 0; s < pace->class_count; s++)
        chart_put(&pace->class_sm[s], (double)model->class_sm[s], (double)INFINITY);
    judge(engine);
}
