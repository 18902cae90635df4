/* What the engine knows of a job's progress and of one rank, for pages and for the verify step. */
#include "detectors/engine_state.h"

#include "detectors/stats/robust.h"

#include <math.h>
#include <string.h>

enum { RECENT_ROWS = 20 };
static const int64_t STALE_NS = INT64_C(120000000000);

/* The phase most ranks are in, by their newest beats. */
static const char *common_phase(const struct engine *engine)
{
    int32_t count[PHASE_COUNT] = {0};
    int most = PHASE_NONE;

    if (engine->live.finished)
        return "finished";
    for (int32_t r = 0; r < engine->live.ranks; r++)
        count[engine->live.phase[r]]++;
    for (int p = PHASE_INIT; p < PHASE_COUNT; p++)
        if (count[p] > 0 && (most == PHASE_NONE || count[p] > count[most]))
            most = p;
    if (most != PHASE_NONE)
        return liveness_phase_name((enum phase)most);
    return engine->rows > 0 ? "compute" : "init";
}

struct engine_progress engine_progress(const struct engine *engine)
{
    struct engine_progress progress = {.step = engine->last_step,
                                       .step_time_ns = engine->last_step_ns,
                                       .attempt = engine->attempt,
                                       .attempt_first_step = engine->attempt_first_step,
                                       .attempt_time_ns = engine->attempt_time_ns,
                                       .step_ms = pace_recent_ms(&engine->pace),
                                       .baseline_ms = engine->pace.baseline_ms,
                                       .ranks_reporting = engine->last_reporting};

    text_copy(progress.phase, sizeof progress.phase, common_phase(engine));
    return progress;
}

/* Median of a unit's last residuals; NAN when there are none. */
static double recent_median(const struct bank *bank, int32_t unit)
{
    float scratch[RECENT_ROWS];
    size_t n = 0;

    for (int back = 0; back < RECENT_ROWS; back++) {
        double value = bank_value(bank, unit, back);
        if (isfinite(value))
            scratch[n++] = (float)value;
    }
    return n > 0 ? robust_median(scratch, n) : (double)NAN;
}

static double largest_score(const struct engine *engine, const int32_t units[BANK_COUNT])
{
    double most = 0;

    for (int b = 0; b < BANK_LATE; b++) {
        struct chart_view view = bank_view(&engine->banks[b], units[b]);
        most = fmax(most, view.level >= 0.01 ? view.z / engine->z_alarm : 0);
        most = fmax(most, view.spikes / engine->nats_alarm);
    }
    return fmin(most, 1);
}

static const char *status_of(const struct engine *engine, int32_t rank, double suspicion)
{
    if (engine->live.seen_ns[rank] == 0 || engine->rows < WARM_UP_ROWS + LEARN_ROWS)
        return "not_enough_data";
    if (engine->now_ns - engine->live.seen_ns[rank] > STALE_NS)
        return "stale";
    for (int i = 0; i < engine->open_count; i++)
        if (engine->open[i]->covers[rank] && engine->open[i]->verdict.kind != VERDICT_INFO)
            return "abnormal";
    return suspicion >= 0.6 ? "watch" : "normal";
}

struct engine_rank engine_rank_get(const struct engine *engine, int32_t rank)
{
    const struct grid *grid = engine->grid;
    int32_t group = grid_of(grid, CUT_TENSOR, rank), replica = grid_of(grid, CUT_REPLICA, rank);
    int32_t lane = grid_of(grid, CUT_LANE, rank);
    const int32_t units[BANK_COUNT] = {
        [BANK_OWN] = rank,  [BANK_GROUP] = group,    [BANK_WORK] = replica,
        [BANK_LANE] = lane, [BANK_LATE_LANE] = lane, [BANK_LATE] = group};
    const struct recent *recent = &engine->recent;
    struct engine_rank result = {.step = steps_of_rank(engine->steps, rank),
                                 .seen_ns = engine->live.seen_ns[rank],
                                 .step_ms = (double)recent->values[RECENT_STEP][rank],
                                 .compute_ms = (double)recent->values[RECENT_COMPUTE][rank],
                                 .allreduce_ms = (double)recent->values[RECENT_ALLREDUCE][rank],
                                 .wait_ms = (double)recent->values[RECENT_WAIT][rank],
                                 .sm = (double)recent->values[RECENT_SM][rank],
                                 .mem = (double)engine->gauges.mem_fast[rank]};
    double own = recent_median(&engine->banks[BANK_OWN], rank);
    double shared = recent_median(&engine->banks[BANK_GROUP], group);
    double late = recent_median(&engine->banks[BANK_LATE], group);

    if (isfinite(shared))
        result.slow_ratio = 1 + shared + (isfinite(own) ? own : 0);
    else
        result.slow_ratio = 1 + late;
    result.suspicion = largest_score(engine, units);
    result.status = status_of(engine, rank, result.suspicion);
    return result;
}
