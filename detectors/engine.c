/* The engine: takes samples apart by kind, closes steps, calls each concern in its turn. */
#include "detectors/engine.h"

#include "detectors/engine_state.h"
#include "detectors/stats/robust.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

/* A time so far ahead of all others is believed when a rank of another tray brings it too. */
static const int64_t AHEAD_NS = 12 * SECOND, GAP_NS = 60 * SECOND;
/* A group whose lateness moved by more than this part of the work is not what it was. */
static const double LATE_TOLERANCE = 0.015;
enum { OUTLIVED_ROWS = 200, TRAYS_EXTRA = 4096 };
/* A restart without a word: this part of the ranks reports steps from before the last closed one.
 */
static const double BACK_SHARE = 0.25;

struct engine_params engine_params_default(void)
{
    return (struct engine_params){.false_evictions_per_10k_gpu_months = 0.3,
                                  .slow_min_ratio = 0.03,
                                  .gain_min_ratio = 0.01,
                                  .hang_after_ns = 270 * SECOND,
                                  .event_hold_ns = 10 * SECOND,
                                  .enabled = true};
}

/* Chance that one test of one unit may be wrong. A GPU-month has 2.6e6 s / step time rows, each
 * tested against peers and against the past in CHART_WINDOWS windows of about three banks. */
static double chance_per_test(const struct engine *engine)
{
    double step_s = pace_recent_ms(&engine->pace) / 1000;
    double rows = 2.63e6 / (isfinite(step_s) ? fmin(fmax(step_s, 0.02), 60) : 1);
    double budget = fmax(engine->params.false_evictions_per_10k_gpu_months, 1e-6) / 10000;

    return budget / (rows * 3 * CHART_WINDOWS * TEST_COUNT);
}

double engine_z_alarm(const struct engine *engine)
{
    return engine->z_alarm;
}

double engine_nats_alarm(const struct engine *engine)
{
    return engine->nats_alarm;
}

static void set_thresholds(struct engine *engine)
{
    double chance = chance_per_test(engine);

    engine->z_alarm = robust_normal_quantile(chance);
    engine->nats_alarm = -log(TEST_COUNT * chance); /* stalls are tested once */
}

static void forget_lateness(struct engine *engine)
{
    for (int32_t k = 0; k < engine->model.groups; k++)
        engine->late_fast[k] = engine->late_base[k] = NAN;
    engine->late_rows = 0;
}

static void init_banks(struct engine *engine)
{
    const struct model *model = &engine->model;

    bank_init(&engine->banks[BANK_OWN], model->ranks);
    bank_init(&engine->banks[BANK_GROUP], model->groups);
    engine->banks[BANK_OWN].drops_low = true;
    engine->banks[BANK_GROUP].drops_low = model->stages > 1;
    bank_init(&engine->banks[BANK_WORK], model->replicas);
    bank_init(&engine->banks[BANK_LANE], model->lanes);
    bank_init(&engine->banks[BANK_LATE_LANE], model->lanes);
    bank_init(&engine->banks[BANK_LATE], model->groups);
    engine->late_fast = xcalloc((size_t)model->groups + 1, sizeof(float));
    engine->late_base = xcalloc((size_t)model->groups + 1, sizeof(float));
    forget_lateness(engine);
}

static void place_history(struct engine *engine)
{
    if (engine->history != NULL)
        history_place(engine->history, engine->job, engine->grid, engine->past_faults,
                      engine->past_nats);
}

void engine_take_history(struct engine *engine, const struct history *history)
{
    history_free(engine->history);
    engine->history = history_copy(history);
    if (engine->past_faults == NULL) {
        engine->past_faults = xcalloc((size_t)engine->job->world_size, sizeof(float));
        engine->past_nats = xcalloc((size_t)engine->job->world_size, sizeof(float));
    }
    place_history(engine);
}

void engine_put_past(const struct engine *engine, struct verdict *verdict, const uint8_t *ranks)
{
    double faults = 0, nats = 0;

    for (int32_t r = 0; engine->history != NULL && r < engine->job->world_size; r++)
        if (ranks[r] != 0 && (double)engine->past_faults[r] > faults) {
            faults = (double)engine->past_faults[r];
            nats = (double)engine->past_nats[r];
        }
    if (faults <= 0)
        return;
    verdict_add_evidence(verdict, "earlier_faults", faults);
    verdict_add_evidence(verdict, "prior_nats", nats);
}

static void build(struct engine *engine)
{
    engine->grid = grid_new(engine->job);
    place_history(engine);
    model_init(&engine->model, engine->grid);
    engine->model.inclusive = engine->job->compute == COMPUTE_INCLUSIVE;
    init_banks(engine);
}

static void unbuild(struct engine *engine)
{
    for (int b = 0; b < BANK_COUNT; b++)
        bank_done(&engine->banks[b]);
    xfree(engine->late_fast);
    xfree(engine->late_base);
    model_done(&engine->model);
    grid_free(engine->grid);
}

struct engine *engine_new(const struct job *job, const struct engine_params *params)
{
    struct engine *engine = xcalloc(1, sizeof *engine);
    size_t ranks = (size_t)job->world_size;

    engine->params = *params;
    engine->job = job_copy(job);
    engine->steps = steps_new(job->world_size);
    gauges_init(&engine->gauges, job->world_size);
    liveness_init(&engine->live, job->world_size);
    numeric_init(&engine->numeric, job->world_size);
    engine->last_step = JOB_NONE;
    engine->attempt_first_step = JOB_NONE;
    engine->ahead_rank = RANK_NONE;
    engine->ahead_tray = JOB_NONE;
    engine->flags = xcalloc(ranks, 1);
    engine->covered = xcalloc(ranks, 1);
    engine->went_back = xcalloc(ranks, 1);
    for (int k = 0; k < RECENT_COUNT; k++) {
        engine->recent.values[k] = xcalloc(ranks, sizeof(float));
        for (size_t r = 0; r < ranks; r++)
            engine->recent.values[k][r] = NAN;
    }
    build(engine);
    pace_init(&engine->pace, engine->grid);
    set_thresholds(engine);
    return engine;
}

void engine_free(struct engine *engine)
{
    if (engine == NULL)
        return;
    while (engine->open_count > 0)
        engine_close(engine, engine->open_count - 1, false);
    for (size_t i = 0; i < engine->queue_count; i++)
        verdict_done(&engine->queue[engine->queue_first + i]);
    xfree(engine->queue);
    unbuild(engine);
    pace_done(&engine->pace);
    hardware_done(&engine->hardware);
    liveness_done(&engine->live);
    numeric_done(&engine->numeric);
    flight_finding_done(&engine->finding);
    history_free(engine->history);
    xfree(engine->past_faults);
    xfree(engine->past_nats);
    gauges_done(&engine->gauges);
    steps_free(engine->steps);
    for (int k = 0; k < RECENT_COUNT; k++)
        xfree(engine->recent.values[k]);
    xfree(engine->flags);
    xfree(engine->covered);
    xfree(engine->went_back);
    job_free(engine->job);
    xfree(engine);
}

/* A new attempt: rows start again; what hangs on hardware that left the job is cleared. */
static void restart(struct engine *engine, int64_t time_ns)
{
    double step_ns = pace_recent_ms(&engine->pace) * 1e6;
    int64_t late_ns = isfinite(step_ns) ? (int64_t)(2 * step_ns) : 0;

    /* Late lines of the old attempt are on their way still: up to two steps newer than the newest
     * that came. Ranks that are known to step anew have sent their last one. */
    for (int32_t r = 0; r < engine->live.ranks; r++)
        engine->live.stale_ns[r] = engine->went_back[r] != 0 || engine->live.own_ns[r] == 0
                                       ? 0
                                       : engine->live.own_ns[r] + late_ns;
    engine->attempt++;
    engine->attempt_time_ns = time_ns;
    engine->attempt_first_step = JOB_NONE;
    engine->rows = 0;
    engine->pending_rows = 0;
    engine->back_ranks = 0;
    memset(engine->went_back, 0, (size_t)engine->job->world_size);
    steps_restart(engine->steps);
    for (int b = 0; b < BANK_COUNT; b++)
        bank_clear(&engine->banks[b]);
    forget_lateness(engine);
    model_restart(&engine->model);
    gauges_restart(&engine->gauges);
    liveness_restart(&engine->live);
    numeric_restart(&engine->numeric);
    pace_restart(&engine->pace);
    engine->restart_pending = true;
    engine->is_resumed = false;
}

/* Verdicts of an attempt that is over: a restarted job that steps is not hung; a slow one stays
 * open as long as its hardware is in the job, under whatever rank. */
static void clear_old_verdicts(struct engine *engine)
{
    engine->restart_pending = false;
    for (int i = engine->open_count - 1; i >= 0; i--) {
        struct open_verdict *open = engine->open[i];
        if (open->bank == BANK_COUNT || !slow_rebind(engine, open))
            engine_close(engine, i, true);
    }
    for (int32_t t = 0; t < engine->hardware.tray_count; t++)
        engine->hardware.trays[t] = (struct suspicion){0};
    for (int32_t k = 0; k < engine->hardware.rack_count; k++)
        engine->hardware.racks[k] = (struct suspicion){0};
    engine->hardware.waiting = 0;
}

/* A failed switch tray speaks for the slowness of its rack's links as long as that lasts. */
static bool speaks_for_slowness(const struct engine *engine, const struct open_verdict *told)
{
    bool found = false;

    if (told->verdict.scope != SCOPE_SWITCH_TRAY)
        return false;
    for (int i = 0; i < engine->open_count && !found; i++) {
        const struct open_verdict *open = engine->open[i];
        size_t length = strlen(open->verdict.id);
        found = open->untold && open->verdict.scope == SCOPE_RACK &&
                strncmp(told->verdict.id, open->verdict.id, length) == 0 &&
                told->verdict.id[length] == ':';
    }
    return found;
}

/* Verdicts that ended by themselves: a stop when steps go on. */
static void clear_ended_stops(struct engine *engine)
{
    for (int i = engine->open_count - 1; i >= 0; i--) {
        const struct open_verdict *open = engine->open[i];
        enum verdict_kind kind = open->verdict.kind;

        int64_t age = engine->rows - open->opened_row;
        bool stopped = kind == VERDICT_HANG || kind == VERDICT_CRASH ||
                       (kind == VERDICT_FAULT && open->verdict.evict);

        /* An accusation that the accused outlived for long is worth no open verdict either. */
        if ((stopped && age >= 3) ||
            (kind == VERDICT_FAULT && age >= OUTLIVED_ROWS && !speaks_for_slowness(engine, open)))
            engine_close(engine, i, true);
    }
}

static void follow(float *mean, float value)
{
    if (isfinite(value))
        *mean = isfinite(*mean) ? *mean + 0.1f * (value - *mean) : value;
}

static void fill_recent(struct engine *engine, const struct row *row)
{
    struct recent *recent = &engine->recent;

    for (int32_t r = 0; r < engine->job->world_size; r++) {
        float allreduce = row->values[STREAM_ALLREDUCE][r];
        int32_t group = grid_of(engine->grid, CUT_DATA, r);

        follow(&recent->values[RECENT_STEP][r], row->values[STREAM_STEP_MS][r]);
        follow(&recent->values[RECENT_COMPUTE][r], row->values[STREAM_COMPUTE][r]);
        follow(&recent->values[RECENT_ALLREDUCE][r], allreduce);
        if (engine->model.has_allreduce)
            follow(&recent->values[RECENT_WAIT][r], allreduce - engine->model.transfer_ms[group]);
        follow(&recent->values[RECENT_SM][r], row->values[STREAM_SM][r]);
    }
}

static void fill_banks(struct engine *engine, int64_t step)
{
    const struct model *model = &engine->model;

    if (model->has_compute) {
        bank_push(&engine->banks[BANK_OWN], step, model->own);
        bank_push(&engine->banks[BANK_GROUP], step, model->group);
        bank_push(&engine->banks[BANK_WORK], step, model->work);
        if (model->has_allreduce)
            bank_push(&engine->banks[BANK_LANE], step, model->lane);
    } else if (model->has_allreduce) {
        bank_push(&engine->banks[BANK_LATE_LANE], step, model->late_lane);
    }
    if (!model->has_allreduce)
        return;
    bank_store(&engine->banks[BANK_LATE], step, model->late);
    for (int32_t k = 0; k < model->groups; k++)
        gauges_follow(&engine->late_fast[k], &engine->late_base[k], model->late[k],
                      engine->late_rows, LATE_TOLERANCE);
    engine->late_rows++;
}

static void close_row(struct engine *engine, const struct row *row)
{
    bool judged;

    engine->last_step_ns = row->last_ns;
    engine->last_reporting = row->reported;
    if (engine->attempt_first_step < 0)
        engine->attempt_first_step = row->step;
    if (engine->restart_pending)
        clear_old_verdicts(engine);
    judged = engine->rows >= WARM_UP_ROWS && row->step > engine->masked_until_step;
    model_row(&engine->model, engine->grid, row, judged);
    engine->rows++;
    engine->all_rows++;
    pace_row(engine, row);
    numeric_row(engine, row);
    clear_ended_stops(engine);
    if (!judged)
        return;
    fill_banks(engine, row->step);
    fill_recent(engine, row);
    gauges_row(&engine->gauges, engine->model.sm, row->values[STREAM_MEM],
               row->values[STREAM_DATA]);
    if (engine->rows % 64 == 0 || engine->rows == WARM_UP_ROWS + LEARN_ROWS)
        set_thresholds(engine);
    slow_row(engine);
}

static void close_rows(struct engine *engine)
{
    const struct row *row;

    while ((row = steps_ready(engine->steps)) != NULL) {
        if (row->step > engine->last_step || engine->restart_pending)
            engine->last_step = row->step;
        close_row(engine, row);
        steps_pop(engine->steps);
    }
}

static int32_t tray_of(const struct engine *engine, int64_t rank)
{
    return rank >= 0 && rank < engine->job->world_size ? engine->job->ranks[rank].tray : JOB_NONE;
}

/* Lines of one host come together: the last one is tried first. JOB_NONE: of no tray of this job.
 */
static int32_t tray_of_host(struct engine *engine, struct view host)
{
    int32_t tray = engine->gauge_tray;

    if (host.length == 0)
        return JOB_NONE;
    if (tray >= engine->job->tray_count || !view_equals(host, engine->job->trays[tray].node)) {
        for (tray = 0; tray < engine->job->tray_count; tray++)
            if (view_equals(host, engine->job->trays[tray].node))
                break;
        if (tray == engine->job->tray_count)
            return JOB_NONE;
        engine->gauge_tray = tray;
    }
    return tray < engine->grid->cut[CUT_TRAY].count ? tray : JOB_NONE;
}

/* Whose clock a line's time is: a rank's lines have that of its tray, others that of their host. */
static int32_t clock_of(struct engine *engine, const struct sample *sample)
{
    return sample->rank >= 0 ? tray_of(engine, sample->rank) : tray_of_host(engine, sample->host);
}

/* The line and the one that is ahead have clocks of their own; ranks whose trays are unknown count
 * as such. */
static bool have_two_clocks(const struct engine *engine, const struct sample *sample, int32_t tray)
{
    if (sample->rank == engine->ahead_rank && tray == engine->ahead_tray)
        return false;
    return tray == JOB_NONE || tray != engine->ahead_tray || engine->grid->cut[CUT_TRAY].count < 2;
}

/* Time passes. After a long gap in the data nobody has had the chance to speak yet, so silence
 * counts anew; and what the line that was ahead alone had brought happened now. */
static void jump_time(struct engine *engine, int64_t time_ns)
{
    struct liveness *live = &engine->live;
    double speaking_ns = liveness_speaking_gap(live);
    double long_gap = speaking_ns > 0 ? fmax((double)GAP_NS, 3 * speaking_ns) : (double)AHEAD_NS;

    if ((double)(time_ns - engine->now_ns) > long_gap)
        live->floor_ns = time_ns;
    if (engine->ahead_ns > 0 && engine->ahead_rank >= 0 && engine->ahead_rank < live->ranks) {
        if (live->step_ns[engine->ahead_rank] == live->seen_ns[engine->ahead_rank])
            live->step_ns[engine->ahead_rank] = time_ns;
        live->seen_ns[engine->ahead_rank] = time_ns;
        if (live->progress_ns == engine->now_ns)
            live->progress_ns = time_ns;
    } else if (engine->ahead_ns > 0 && engine->ahead_tray != JOB_NONE && live->beat_gap_ns <= 0) {
        for (int32_t i = 0; i < grid_size(engine->grid, CUT_TRAY, engine->ahead_tray); i++)
            live->seen_ns[grid_members(engine->grid, CUT_TRAY, engine->ahead_tray)[i]] = time_ns;
    }
    engine->ahead_ns = 0;
    engine->now_ns = time_ns;
}

/* Engine time: the largest plausible time. One clock that is far ahead does not move it alone. */
static void pass_time(struct engine *engine, const struct sample *sample)
{
    int64_t time_ns = sample->time_ns;

    if (time_ns <= engine->now_ns)
        return;
    if (engine->now_ns > 0 && time_ns - engine->now_ns > AHEAD_NS) {
        int32_t tray = clock_of(engine, sample);
        bool agrees = engine->ahead_ns > 0 && have_two_clocks(engine, sample, tray) &&
                      llabs(time_ns - engine->ahead_ns) < AHEAD_NS;
        if (!agrees) {
            engine->ahead_ns = time_ns;
            engine->ahead_rank = sample->rank;
            engine->ahead_tray = tray;
            return;
        }
    }
    jump_time(engine, time_ns);
}

/* A restart that nobody announced: many ranks report steps from before the last closed one. */
static bool looks_restarted(struct engine *engine, const struct sample *sample)
{
    int64_t step = (int64_t)sample->values[FIELD_STEP];
    int32_t rank = (int32_t)sample->rank;

    if (engine->rows == 0 || step > steps_last_closed(engine->steps))
        return false;
    /* A late line is from before; a new attempt's line is from after. */
    if (sample->time_ns <= engine->last_step_ns + 2 * SECOND / 10 ||
        step >= steps_of_rank(engine->steps, rank))
        return false;
    if (engine->went_back[rank] == 0) {
        engine->went_back[rank] = 1;
        engine->back_ranks++;
    }
    return (double)engine->back_ranks >= BACK_SHARE * steps_expected(engine->steps);
}

static void feed_step(struct engine *engine, const struct sample *sample)
{
    int32_t rank = (int32_t)sample->rank;
    struct liveness *live = &engine->live;
    enum steps_outcome outcome;

    if (!sample_has(sample, FIELD_STEP) || !(fabs(sample->values[FIELD_STEP]) < 9e15)) {
        engine->counts.not_finite++;
        return;
    }
    if (looks_restarted(engine, sample))
        restart(engine, sample->time_ns);
    outcome = steps_feed(engine->steps, sample);
    engine->counts.used += outcome == STEPS_USED;
    engine->counts.duplicates += outcome == STEPS_DUPLICATE;
    engine->counts.late += outcome == STEPS_LATE;
    engine->counts.not_finite += outcome == STEPS_NOT_FINITE;
    if (outcome != STEPS_USED)
        return;
    if (steps_finished(engine->steps) >= 0)
        engine->last_step = steps_finished(engine->steps);
    live->step_ns[rank] = engine->now_ns;
    live->phase[rank] = PHASE_NONE;
    liveness_progress(engine, steps_finished(engine->steps));
    if (engine->rows > 0)
        liveness_ahead(engine, rank, (int64_t)sample->values[FIELD_STEP] + 1);
    close_rows(engine);
}

static void feed_beat(struct engine *engine, const struct sample *sample)
{
    struct liveness *live = &engine->live;
    int32_t rank = (int32_t)sample->rank;
    int64_t gap = sample->time_ns - live->beat_ns[rank];

    if (live->beat_ns[rank] > 0 && gap > 0 && gap < 120 * SECOND) {
        double weight = live->beat_gap_ns > 0 ? 0.01 : 1;
        live->beat_gap_ns += weight * ((double)gap - live->beat_gap_ns);
    }
    if (gap <= 0)
        return;
    live->beat_ns[rank] = sample->time_ns;
    live->phase[rank] = (uint8_t)liveness_phase(sample->phase.bytes, sample->phase.length);
    if (!sample_has(sample, FIELD_STEP) || !(fabs(sample->values[FIELD_STEP]) < 9e15))
        return;
    /* Inside step n: step n - 1 has finished, though its samples may have been lost. */
    live->beat_step[rank] = (int64_t)sample->values[FIELD_STEP];
    if (engine->rows > 0)
        liveness_ahead(engine, rank, live->beat_step[rank]);
}

static void feed_mark(struct engine *engine, const struct sample *sample)
{
    struct liveness *live = &engine->live;
    bool pause = view_equals(sample->kind, "checkpoint") || view_equals(sample->kind, "eval");

    if (view_equals(sample->kind, "finished"))
        live->finished = true;
    if (view_equals(sample->kind, "restart"))
        restart(engine, sample->time_ns);
    if (!pause)
        return;
    if (sample_has(sample, FIELD_DUR_MS) && sample->values[FIELD_DUR_MS] < 1e8)
        live->quiet_until_ns = sample->time_ns + (int64_t)(sample->values[FIELD_DUR_MS] * 1e6);
    if (sample_has(sample, FIELD_STEP) && fabs(sample->values[FIELD_STEP]) < 9e15)
        engine->masked_until_step = (int64_t)sample->values[FIELD_STEP];
}

/* Clock and power tell why a GPU is slow. Where ranks send no beats, the gauges of their host are
 * all that is heard of them between steps: hosts whose gauges go on are not the silent ones. */
static void feed_gauge(struct engine *engine, const struct sample *sample)
{
    int32_t tray = tray_of_host(engine, sample->host);
    double clock_mhz = sample_has(sample, FIELD_CLOCK_MHZ) ? sample->values[FIELD_CLOCK_MHZ]
                                                           : (double)NAN;
    double power_w = sample_has(sample, FIELD_POWER_W) ? sample->values[FIELD_POWER_W]
                                                       : (double)NAN;
    int64_t gpu;

    if (tray == JOB_NONE)
        return;
    bool has_gpu = text_parse_int(sample->gpu, &gpu);
    for (int32_t i = 0; i < grid_size(engine->grid, CUT_TRAY, tray); i++) {
        int32_t rank = grid_members(engine->grid, CUT_TRAY, tray)[i];
        if (engine->live.beat_gap_ns <= 0)
            engine->live.seen_ns[rank] = engine->now_ns;
        liveness_gauges(&engine->live, rank, sample->time_ns);
        if (has_gpu && engine->job->ranks[rank].gpu == gpu)
            gauges_hardware(&engine->gauges, rank, clock_mhz, power_w);
    }
}

/* Sizes from a hello that make one job: the grid is laid out anew while nothing was learned. */
static bool take_sizes(struct engine *engine, const struct sample *sample)
{
    static const struct {
        enum field field;
        enum parallel_dimension dimension;
    } SIZES[] = {{FIELD_TP, DIMENSION_TP},
                 {FIELD_CP, DIMENSION_CP},
                 {FIELD_EP, DIMENSION_EP},
                 {FIELD_DP, DIMENSION_DP},
                 {FIELD_PP, DIMENSION_PP}};
    struct job *job = engine->job;
    int32_t size[DIMENSION_COUNT];
    int64_t without_ep = 1;
    bool changed = false;

    memcpy(size, job->size, sizeof size);
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        double value = sample_has(sample, SIZES[i].field) ? sample->values[SIZES[i].field]
                                                          : (double)NAN;
        if (value >= 1 && value <= JOB_RANKS_MAX)
            size[SIZES[i].dimension] = (int32_t)value;
        changed = changed || size[SIZES[i].dimension] != job->size[SIZES[i].dimension];
    }
    for (int d = 0; d < DIMENSION_COUNT && without_ep <= JOB_RANKS_MAX; d++)
        without_ep *= d == DIMENSION_EP ? 1 : size[d]; /* stops before it could overflow */
    if (!changed ||
        (without_ep != job->world_size && without_ep * size[DIMENSION_EP] != job->world_size))
        return false;
    memcpy(job->size, size, sizeof size);
    return true;
}

/* A tray by name; a new one as long as there are not absurdly many. */
static int32_t seat_tray(struct job *job, const char *host)
{
    int32_t tray = job_find_tray(job, host);

    if (tray == JOB_NONE && job->tray_count < job->world_size + TRAYS_EXTRA)
        tray = job_intern_tray(job, host, JOB_NONE);
    return tray;
}

static bool take_seat(struct engine *engine, const struct sample *sample)
{
    char host[VERDICT_ID_BYTES];
    struct job_rank *seat = &engine->job->ranks[sample->rank];
    struct job_rank now = *seat;

    if (sample->host.length > 0 && sample->host.length < sizeof host) {
        memcpy(host, sample->host.bytes, sample->host.length);
        host[sample->host.length] = '\0';
        now.tray = seat_tray(engine->job, host);
    }
    if (sample_has(sample, FIELD_GPU) && sample->values[FIELD_GPU] >= 0 &&
        sample->values[FIELD_GPU] < 1024)
        now.gpu = (int16_t)sample->values[FIELD_GPU];
    if (sample_has(sample, FIELD_RAIL) && sample->values[FIELD_RAIL] >= 0 &&
        sample->values[FIELD_RAIL] < 1024)
        now.rail = (int16_t)sample->values[FIELD_RAIL];
    if (now.tray == seat->tray && now.gpu == seat->gpu && now.rail == seat->rail)
        return false;
    *seat = now;
    return true;
}

static void feed_hello(struct engine *engine, const struct sample *sample)
{
    bool new_attempt = sample_has(sample, FIELD_ATTEMPT) &&
                       sample->values[FIELD_ATTEMPT] > (double)engine->hello_attempt;
    bool moved = take_seat(engine, sample), resized = take_sizes(engine, sample);

    if (new_attempt && sample->values[FIELD_ATTEMPT] < 1e9)
        engine->hello_attempt = (int64_t)sample->values[FIELD_ATTEMPT];
    if ((engine->rows > 0 || engine->is_resumed) && (new_attempt || moved))
        restart(engine, sample->time_ns);
    engine->live.finished = false;
    if (moved || resized)
        engine->grid_stale = true;
}

/* Seats come by hundreds of hellos at once: the grid is laid out once, before it is next needed. */
static void refresh_grid(struct engine *engine)
{
    if (!engine->grid_stale)
        return;
    engine->grid_stale = false;
    unbuild(engine);
    build(engine);
    /* The job's own past outlives its moves, not a new cut. */
    if (engine->pace.transfer_count != engine->grid->cut[CUT_DATA].count ||
        engine->pace.class_count != engine->grid->cut[CUT_CLASS].count) {
        pace_done(&engine->pace);
        pace_init(&engine->pace, engine->grid);
    }
}

static bool is_ours(struct engine *engine, const struct sample *sample)
{
    if (sample->measurement == MEASUREMENT_EVENT || sample->measurement == MEASUREMENT_GPU ||
        sample->measurement == MEASUREMENT_MARK)
        return true;
    if (sample->rank < 0 || sample->rank >= engine->job->world_size) {
        engine->counts.wrong_rank++;
        return false;
    }
    if (sample->measurement != MEASUREMENT_HELLO && sample->host.length > 0) {
        int32_t tray = engine->job->ranks[sample->rank].tray;
        if (tray != JOB_NONE && !view_equals(sample->host, engine->job->trays[tray].node)) {
            engine->counts.wrong_host++;
            return false;
        }
    }
    return true;
}

/* A late line of the attempt before, by the rank's own clock. Such a step number may lie far ahead.
 */
static bool is_stale(struct engine *engine, const struct sample *sample)
{
    struct liveness *live = &engine->live;

    if (sample->measurement != MEASUREMENT_STEP && sample->measurement != MEASUREMENT_BEAT)
        return false;
    if (sample->time_ns <= live->stale_ns[sample->rank]) {
        engine->counts.late++;
        return true;
    }
    if (sample->time_ns > live->own_ns[sample->rank])
        live->own_ns[sample->rank] = sample->time_ns;
    return false;
}

void engine_feed(struct engine *engine, const struct sample *sample)
{
    engine->counts.samples++;
    if (!is_ours(engine, sample))
        return;
    pass_time(engine, sample);
    if (sample->rank >= 0 && sample->rank < engine->job->world_size) {
        liveness_heard(&engine->live, engine->now_ns);
        /* By engine time, not by the rank's clock, which may be an hour off. */
        engine->live.seen_ns[sample->rank] = engine->now_ns;
        if (engine->attempt_time_ns == 0)
            engine->attempt_time_ns = sample->time_ns;
    }
    if (sample->measurement != MEASUREMENT_HELLO)
        refresh_grid(engine);
    if (is_stale(engine, sample))
        return;
    switch (sample->measurement) {
    case MEASUREMENT_HELLO:
        feed_hello(engine, sample);
        break;
    case MEASUREMENT_STEP:
        feed_step(engine, sample);
        break;
    case MEASUREMENT_BEAT:
        feed_beat(engine, sample);
        break;
    case MEASUREMENT_MARK:
        feed_mark(engine, sample);
        break;
    case MEASUREMENT_EVENT:
        if (engine->params.enabled)
            hardware_event(engine, sample);
        break;
    case MEASUREMENT_GPU:
        feed_gauge(engine, sample);
        break;
    case MEASUREMENT_COUNT:
        break;
    }
    if (engine->params.enabled) {
        hardware_check(engine);
        liveness_check(engine);
    }
}

void engine_advance(struct engine *engine, int64_t now_ns)
{
    if (now_ns <= engine->now_ns)
        return;
    engine->now_ns = now_ns;
    refresh_grid(engine);
    if (engine->params.enabled) {
        hardware_check(engine);
        liveness_check(engine);
    }
}

bool engine_next(struct engine *engine, struct verdict *ret_verdict)
{
    while (engine->queue_count > 0) {
        struct verdict verdict = engine->queue[engine->queue_first++];
        engine->queue_count--;
        if (engine->params.enabled) {
            *ret_verdict = verdict;
            return true;
        }
        verdict_done(&verdict);
    }
    return false;
}

const struct job *engine_job(const struct engine *engine)
{
    return engine->job;
}

struct engine_counts engine_counts(const struct engine *engine)
{
    return engine->counts;
}
