/* One pass over a bank's units a row; what costs more is only done for a unit that stands at an
 * alarm. */
#include "detectors/alarm.h"

#include "detectors/cause.h"
#include "detectors/chance.h"

#include <math.h>
#include <string.h>

/* A unit belongs to an alarm that another unit raised when it shows this part of the alarm's score.
 */
static const double JOIN_SCORE = 0.6, JOIN_LEVEL = 0.35;
/* A shift is no shift when less than this part of its window's values lie above a third of it: in a
 * short window one spike makes a mean. */
static const double SHARE_ABOVE[CHART_WINDOWS] = {1, 0.87, 0.8, 0.75, 0.7};
/* Part of the alarm's score that the unit's own noise must allow: what is known of it comes from a
 * few dozen rows. */
static const double OWN_SHARE = 0.8;
/* What tells at once how far an alarm reaches: of the units around, none is above half of its level
 * in so many of the last rows, and the job would win by so much more than is asked for. */
static const double CLEAR_SHARE = 0.5, CLEAR_GAIN = 1.3;
/* What is held against bursts: rows above this part of the shift, where noise does not reach. */
static const double BURST_SHARE = 0.7, BURST_SIGMAS = 2.5;
enum {
    RUN_LEAST = 4,
    STALLS_LEAST = 3,
    BUSY_LANES = 2,       /* that experts keep busy at once */
    LANES_A_BUSY_ONE = 8, /* or one of so many */
    RATE_UNITS_LEAST = 3, /* of two nobody knows whose rate is the usual one */
    LANES_LEAST = 3,      /* nor whose time outside compute */
};

/* Is a unit's shift all in a few spikes? Those belong to the rate test. */
static bool is_steady(const struct bank *bank, int32_t unit, const struct chart_view *view)
{
    int rows = chart_window(view->window);

    double zero = bank_zero(bank, unit, view->window, view->test);

    return bank_share_above(bank, unit, rows, zero + view->level / 3) >= SHARE_ABOVE[view->window];
}

/* The highest score among the windows that a shift fills; of all windows when it fills none. A
 * large shift scores highest in a long window, whose mean scatters least, long before that is full
 * of it.
 */
static struct chart_view steady_view(const struct bank *bank, int32_t unit)
{
    struct chart_view best = {.z = 0};

    for (int w = 0; w < CHART_WINDOWS; w++) {
        struct chart_view view = bank_view_in(bank, unit, w);
        if (view.z > best.z && is_steady(bank, unit, &view))
            best = view;
    }
    return best.z > 0 ? best : bank_view(bank, unit);
}

/* The cut whose units the bank's units are; BANK_OWN is by rank. */
enum cut alarm_cut(enum bank_kind kind)
{
    switch (kind) {
    case BANK_OWN:
        return CUT_COUNT;
    case BANK_GROUP:
    case BANK_LATE:
        return CUT_TENSOR;
    case BANK_LANE:
    case BANK_LATE_LANE:
        return CUT_LANE;
    case BANK_WORK:
    case BANK_COUNT:
        break;
    }
    return CUT_REPLICA;
}

/* A unit that is noisier than the others is measured by its own noise. */
static bool is_out_of_own_noise(const struct bank *bank, int32_t unit,
                                const struct chart_view *view, double z_alarm)
{
    int rows = chart_window(view->window);
    double own = bank_own_spread(bank, unit, rows);

    return !isfinite(own) || view->level >= OWN_SHARE * z_alarm * own *
                                                sqrt((1 + bank->rho) / (1 - bank->rho) / rows);
}

/* The most that the past of one of the unit's ranks counts, in nats; 0 when nothing is known. */
static double past_of_unit(const struct engine *engine, enum bank_kind kind, int32_t unit)
{
    enum cut cut = alarm_cut(kind);
    double most = -INFINITY;

    if (engine->history == NULL)
        return 0;
    if (cut == CUT_COUNT)
        return (double)engine->past_nats[unit];
    for (int32_t i = 0; i < grid_size(engine->grid, cut, unit); i++)
        most = fmax(most, (double)engine->past_nats[grid_members(engine->grid, cut, unit)[i]]);
    return most;
}

/* Stalls that are kept, those of rows one after the other as one: a shift that came and went is not
 * many of them. */
static int count_stalls(const struct bank *bank, int32_t unit)
{
    bool inside = false;
    int count = 0;

    for (int back = 0; back < CHART_RING; back++) {
        double value = bank_value(bank, unit, back);
        if (!isfinite(value))
            continue;
        count += !inside && value > bank->spike_over;
        inside = value > bank->spike_over;
    }
    return count;
}

bool alarm_stands(const struct engine *engine, enum bank_kind kind, int32_t unit,
                  struct alarm *alarm)
{
    const struct bank *bank = &engine->banks[kind];
    struct chart_view view = bank_view(bank, unit);
    bool high = view.z >= 0.9 * engine_z_alarm(engine);

    if (high)
        view = steady_view(bank, unit);
    *alarm = (struct alarm){.bank = kind,
                            .unit = unit,
                            .z = view.z,
                            .spikes = view.spikes,
                            .level = view.level,
                            .window = view.window,
                            .test = view.test};
    /* Nothing that the past could count would make an alarm of it. */
    if (!high && view.spikes < engine_nats_alarm(engine) - HISTORY_NATS_MOST)
        return false;
    /* Of a normal score the tail is about exp(-z^2 / 2). */
    double past = past_of_unit(engine, kind, unit);
    double z_alarm = sqrt(fmax(engine_z_alarm(engine) * engine_z_alarm(engine) - 2 * past, 1));
    if (view.z >= z_alarm && view.level >= ALARM_LEVEL_LEAST && is_steady(bank, unit, &view) &&
        is_out_of_own_noise(bank, unit, &view, z_alarm))
        return true;
    if (view.spikes >= engine_nats_alarm(engine) - past && bank->units >= RATE_UNITS_LEAST) {
        /* A shift of nearly every row that the rate test saw first is a shift all the same. */
        alarm->by_rate = bank_share_above(bank, unit, 12, bank->spike_over) < 0.7;
        if (alarm->by_rate && count_stalls(bank, unit) < STALLS_LEAST)
            return false;
        alarm->test = TEST_LEVEL;
        alarm->level = bank_mean(bank, unit, alarm->by_rate ? 32 : 8, TEST_LEVEL);
        return alarm->level >= ALARM_LEVEL_LEAST;
    }
    return false;
}

/* Whether the unit moved with the alarm. */
bool alarm_joins(const struct engine *engine, const struct alarm *alarm, int32_t unit)
{
    const struct bank *bank = &engine->banks[alarm->bank];
    struct chart_view view = bank_view(bank, unit);

    if (alarm->by_rate)
        return view.spikes >= JOIN_SCORE * engine_nats_alarm(engine);
    if (view.z < JOIN_SCORE * engine_z_alarm(engine))
        return false;
    view = steady_view(bank, unit);
    return view.z >= JOIN_SCORE * engine_z_alarm(engine) &&
           view.level >= JOIN_LEVEL * alarm->level && view.level >= ALARM_LEVEL_LEAST / 2 &&
           is_steady(bank, unit, &view);
}

static bool is_unit_covered(const struct engine *engine, enum bank_kind kind, int32_t unit)
{
    enum cut cut = alarm_cut(kind);

    if (cut == CUT_COUNT)
        return engine->covered[unit] != 0;
    for (int32_t i = 0; i < grid_size(engine->grid, cut, unit); i++)
        if (engine->covered[grid_members(engine->grid, cut, unit)[i]] != 0)
            return true;
    return false;
}

/* Ranks under open verdicts; without compute times the victims of a slow rank (its replica) look
 * like it, so they are taken as explained too. */
void alarm_mark_covered(struct engine *engine)
{
    memset(engine->covered, 0, (size_t)engine->job->world_size);
    for (int i = 0; i < engine->open_count; i++)
        for (int32_t r = 0; r < engine->job->world_size; r++)
            engine->covered[r] |= engine->open[i]->covers[r];
}

bool alarm_is_tested(const struct engine *engine, enum bank_kind kind)
{
    const struct model *model = &engine->model;

    switch (kind) {
    case BANK_OWN:
    case BANK_GROUP:
    case BANK_WORK:
        return model->has_compute;
    case BANK_LANE:
        return model->has_compute && model->has_allreduce && model->lanes >= LANES_LEAST;
    case BANK_LATE_LANE:
        return !model->has_compute && model->has_allreduce;
    case BANK_LATE:
    case BANK_COUNT:
        break;
    }
    return false;
}

/* The strongest alarm that no open verdict explains. */
bool alarm_find(const struct engine *engine, enum bank_kind kind, struct alarm *ret_alarm)
{
    bool found = false;

    for (int32_t u = 0; u < engine->banks[kind].units; u++) {
        struct alarm alarm;
        if (!alarm_stands(engine, kind, u, &alarm) || is_unit_covered(engine, kind, u))
            continue;
        if (!found || alarm.level > ret_alarm->level)
            *ret_alarm = alarm;
        found = true;
    }
    return found;
}

/* Flags all ranks of units that moved with the alarm; returns which part of the units that is. */
double alarm_flag_joined(struct engine *engine, const struct alarm *alarm)
{
    enum cut cut = alarm_cut(alarm->bank);
    int32_t units = engine->banks[alarm->bank].units, joined = 0;

    memset(engine->flags, 0, (size_t)engine->job->world_size);
    for (int32_t u = 0; u < units; u++) {
        if ((u != alarm->unit && !alarm_joins(engine, alarm, u)) ||
            is_unit_covered(engine, alarm->bank, u))
            continue;
        joined++;
        if (cut == CUT_COUNT) {
            engine->flags[u] = SUSPECT_ALONE;
            continue;
        }
        for (int32_t i = 0; i < grid_size(engine->grid, cut, u); i++)
            engine->flags[grid_members(engine->grid, cut, u)[i]] = SUSPECT_TOGETHER;
    }
    return (double)joined / units;
}

/* Flags units that moved with the alarm. */
static void mark_joined(const struct engine *engine, const struct alarm *alarm, uint8_t *joined)
{
    for (int32_t u = 0; u < engine->banks[alarm->bank].units; u++)
        joined[u] = u == alarm->unit || alarm_joins(engine, alarm, u);
}

/* The clock of one of the unit's GPUs is low: no expert makes it so. */
static bool is_clock_low(const struct engine *engine, const struct alarm *alarm, double level)
{
    enum cut cut = alarm_cut(alarm->bank);

    if (cut == CUT_COUNT)
        return cause_is_clock_low(engine, alarm->unit, level);
    for (int32_t i = 0; i < grid_size(engine->grid, cut, alarm->unit); i++)
        if (cause_is_clock_low(engine, grid_members(engine->grid, cut, alarm->unit)[i], level))
            return true;
    return false;
}

/* Where there are experts, a few of them may be busy before any was seen to be. Those who wait for
 * one are its lane; what reaches farther is no expert's doing. */
static bool is_in_few_lanes(const struct engine *engine, const struct alarm *alarm,
                            const uint8_t *joined)
{
    enum cut cut = alarm_cut(alarm->bank);
    int32_t lanes = engine->grid->cut[CUT_LANE].count, count = 0;
    int32_t most = lanes / LANES_A_BUSY_ONE > BUSY_LANES ? lanes / LANES_A_BUSY_ONE : BUSY_LANES;
    AUTO_FREE uint8_t *seen = xcalloc((size_t)lanes + 1, 1);

    for (int32_t u = 0; u < engine->banks[alarm->bank].units; u++) {
        if (joined[u] == 0)
            continue;
        int32_t first = cut == CUT_COUNT ? u : grid_members(engine->grid, cut, u)[0];
        int32_t lane = grid_of(engine->grid, CUT_LANE, first);
        int32_t at = lane != JOB_NONE ? lane : lanes;
        count += seen[at] == 0;
        seen[at] = 1;
    }
    return count <= most;
}

/* Whether the shift has lasted for longer than shifts of other units that came and went. */
static bool has_outlasted_bursts(const struct engine *engine, const struct alarm *alarm,
                                 const uint8_t *joined, int since)
{
    const struct bank *bank = &engine->banks[alarm->bank];
    double level = fmax(alarm->level, bank_mean(bank, alarm->unit, since, alarm->test));
    double limit = BURST_SHARE * level;
    int index = bursts_level(limit);

    /* Lower than this it is noise, which is counted by its innovations. */
    if (index < 0 || bursts_level_value(index) < BURST_SIGMAS * bank->sigma)
        return true;
    /* Once a row of a unit, where the threshold is that of one of its tests. */
    double nats = engine_nats_alarm(engine) - log(3.0 * CHART_WINDOWS);
    bool known;
    int needed = bursts_rows_needed(&bank->bursts, alarm->unit, index, nats, &known);

    if (!known && engine->job->size[DIMENSION_EP] > 1 && is_in_few_lanes(engine, alarm, joined))
        needed = BURST_ROWS_UNKNOWN;
    return bursts_run(&bank->bursts, alarm->unit, index) >= needed ||
           is_clock_low(engine, alarm, level);
}

bool alarm_is_beyond_chance(const struct engine *engine, const struct alarm *alarm)
{
    const struct bank *bank = &engine->banks[alarm->bank];
    int rows = bank_rows_since_onset(bank, alarm->unit, alarm->level, alarm->test);

    if (alarm->by_rate)
        return true;
    AUTO_FREE uint8_t *skip = xcalloc((size_t)bank->units + 1, 1);
    mark_joined(engine, alarm, skip);
    if (!has_outlasted_bursts(engine, alarm, skip, rows))
        return false;
    for (int32_t u = 0; u < bank->units; u++)
        skip[u] |= is_unit_covered(engine, alarm->bank, u);
    return chance_nats(bank, alarm->unit, rows, alarm->test, skip) >=
           engine_nats_alarm(engine) - past_of_unit(engine, alarm->bank, alarm->unit);
}

/* Marks racks (trays where racks are unknown) that hold ranks of the joined units. */
static void mark_around(const struct engine *engine, const struct alarm *alarm,
                        const uint8_t *joined, enum cut around, uint8_t *marks)
{
    enum cut cut = alarm_cut(alarm->bank);

    for (int32_t u = 0; u < engine->banks[alarm->bank].units; u++)
        for (int32_t i = 0;
             joined[u] != 0 && i < (cut == CUT_COUNT ? 1 : grid_size(engine->grid, cut, u)); i++) {
            int32_t rank = cut == CUT_COUNT ? u : grid_members(engine->grid, cut, u)[i];
            if (grid_of(engine->grid, around, rank) != JOB_NONE)
                marks[grid_of(engine->grid, around, rank)] = 1;
        }
}

/* Own work tells by itself which ranks an alarm is of: nothing has to be waited for when it has
 * lasted for longer than chance has it, and none of the ranks around moves along. */
bool alarm_extent_is_clear(const struct engine *engine, const struct alarm *alarm)
{
    const struct bank *bank = &engine->banks[alarm->bank];
    enum cut cut = alarm_cut(alarm->bank);
    enum cut around = engine->grid->cut[CUT_RACK].count > 0 ? CUT_RACK : CUT_TRAY;
    double half = alarm->level / 2;

    if (alarm->by_rate || (alarm->bank != BANK_OWN &&
                           !(alarm->bank == BANK_GROUP && engine->job->compute == COMPUTE_KERNEL)))
        return false;
    AUTO_FREE uint8_t *joined = xcalloc((size_t)bank->units + 1, 1);
    AUTO_FREE uint8_t *marks = xcalloc((size_t)engine->grid->cut[around].count + 1, 1);
    AUTO_FREE uint8_t *ranks = xcalloc((size_t)engine->job->world_size, 1);
    mark_joined(engine, alarm, joined);
    if (bank_run_above(bank, alarm->unit,
                       bank_zero(bank, alarm->unit, alarm->window, alarm->test) + half) < RUN_LEAST)
        return false;
    mark_around(engine, alarm, joined, around, marks);
    for (int32_t u = 0; u < bank->units; u++) {
        int32_t first = cut == CUT_COUNT ? u : grid_members(engine->grid, cut, u)[0];
        int32_t place = grid_of(engine->grid, around, first);
        double zero = bank_zero(bank, u, alarm->window, alarm->test);
        if (joined[u] == 0 && place != JOB_NONE && marks[place] != 0 &&
            bank_share_above(bank, u, RUN_LEAST, zero + half) >= CLEAR_SHARE)
            return false;
        ranks[first] = joined[u];
    }
    return cause_gain(engine, ranks, RUN_LEAST) >= CLEAR_GAIN * engine->params.gain_min_ratio;
}
