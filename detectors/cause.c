/* Causes follow from which of compute, SM activity, memory and waiting moved together; the gain
 * from how much earlier the last rank would arrive without the suspects.
 */
#include "detectors/cause.h"

#include "detectors/stats/robust.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A GPU that needs a part more time for the same work keeps its SMs busy while its peers wait:
 * their activity rises by about half of that part. At least so much of it must show, within bounds:
 * activity differs by about one per cent between neighbours and days, and a third more is plain in
 * any case. */
static const double SM_PART = 0.3, SM_LEAST = 0.012, SM_PLAIN = 0.1;
/* A rank stands out of its tensor group when its SMs are this much busier than the next busy one's.
 */
static const double SM_STANDS_OUT = 0.03;
/* Memory used from which the allocator has to search and to retry. */
static const double MEMORY_FULL = 0.93;
/* Clocks differ by a per cent or two for nothing. */
static const double CLOCK_LEAST = 0.025;
enum {
    RACK_LANES_LEAST = 3,
    SAME_ONSET_ROWS = 4, /* an onset is known no better than the shortest window is long */
};

/* Mean over the domain's ranks; NAN when nobody sent it. */
static double mean_of(const float *values, const uint8_t *ranks, int32_t count)
{
    double sum = 0;
    int n = 0;

    for (int32_t r = 0; r < count; r++)
        if (ranks[r] != 0 && isfinite(values[r])) {
            sum += (double)values[r];
            n++;
        }
    return n > 0 ? sum / n : (double)NAN;
}

static double most_of(const float *values, const uint8_t *ranks, int32_t count)
{
    double most = (double)NAN;

    for (int32_t r = 0; r < count; r++)
        if (ranks[r] != 0 && isfinite(values[r]) && !((double)values[r] <= most))
            most = (double)values[r];
    return most;
}

/* Mean over the domain's ranks; of a tray whose members move together the busiest one's, since one
 * slow GPU makes all of them slow while only its own SMs are busier. */
static double sm_shift_of(const struct gauges *gauges, const uint8_t *ranks, bool has_past,
                          bool busiest)
{
    double sum = 0, most = (double)-INFINITY;
    int n = 0;

    for (int32_t r = 0; r < gauges->ranks; r++) {
        double shift = ranks[r] != 0 ? gauges_sm_shift(gauges, r, has_past) : (double)NAN;
        if (isfinite(shift)) {
            sum += shift;
            most = fmax(most, shift);
            n++;
        }
    }
    return n == 0 ? (double)NAN : busiest ? most : sum / n;
}

/* Lanes with a suspect rank (1), and those that another open verdict explains (2). */
static uint8_t *mark_lanes(const struct engine *engine, const uint8_t *ranks)
{
    uint8_t *marks = xcalloc((size_t)engine->model.lanes + 1, 1);

    for (int32_t r = 0; r < engine->job->world_size; r++) {
        int32_t d = grid_of(engine->grid, CUT_LANE, r);
        if (ranks[r] != 0)
            marks[d] |= 1;
        else if (engine_is_covered(engine, r))
            marks[d] |= 2;
    }
    return marks;
}

/* Mean over rows of how much later the suspects' lanes arrive than the last of all others; below 0
 * counts as 0, since then others set the pace. As part of the work. */
static double mean_lead(const struct engine *engine, const uint8_t *marks, int rows,
                        double *ret_late)
{
    const struct bank *late = &engine->banks[BANK_LATE];
    double lead = 0, total = 0;
    int n = 0;

    for (int back = 0; back < rows; back++) {
        double ours = -INFINITY, others = -INFINITY;
        for (int32_t k = 0; k < late->units; k++) {
            double value = bank_value(late, k, back);
            uint8_t mark = marks[engine->model.lane_of_group[k]];
            if (!isfinite(value))
                continue;
            if (mark & 1)
                ours = fmax(ours, value);
            else if (mark == 0)
                others = fmax(others, value);
        }
        if (!isfinite(ours) || !isfinite(others))
            continue;
        lead += fmax(0, ours - others);
        total += ours;
        n++;
    }
    *ret_late = n > 0 ? total / n : 0;
    return n > 0 ? lead / n : (double)NAN;
}

double cause_gain(const struct engine *engine, const uint8_t *ranks, int rows)
{
    AUTO_FREE uint8_t *marks = mark_lanes(engine, ranks);
    double late = 0;
    double lead = mean_lead(engine, marks, rows, &late);

    return isfinite(lead) ? lead * engine->model.busy_ms / engine->model.step_ms : 0;
}

static void find_gain(const struct engine *engine, const uint8_t *ranks, struct slow_facts *facts)
{
    AUTO_FREE uint8_t *marks = mark_lanes(engine, ranks);
    const struct model *model = &engine->model;
    double share = model->busy_ms / model->step_ms, late = 0;
    double lead = mean_lead(engine, marks, facts->rows < 32 ? facts->rows : 32, &late);

    facts->lateness_ms = late * model->busy_ms;
    if (isfinite(lead))
        facts->gain = lead * share;
    else
        facts->gain = facts->level / (1 + facts->level) * share;
}

static bool is_sm_busier(const struct slow_facts *facts)
{
    /* The stage's own pipeline waits with the job: little of it shows. */
    if (facts->whole_stage)
        return facts->sm_shift > SM_LEAST;
    return facts->sm_shift > fmin(fmax(SM_PART * facts->level, SM_LEAST), SM_PLAIN);
}

/* The lowest clock of the domain's GPUs, and that one's power, over the medians of all. */
static void find_clock(const struct engine *engine, const uint8_t *ranks, struct slow_facts *facts)
{
    const struct gauges *gauges = &engine->gauges;
    int32_t lowest = JOB_NONE;

    facts->clock = facts->power = (double)NAN;
    for (int32_t r = 0; r < gauges->ranks; r++)
        if (ranks[r] != 0 && isfinite(gauges->clock_mhz[r]) &&
            (lowest == JOB_NONE || gauges->clock_mhz[r] < gauges->clock_mhz[lowest]))
            lowest = r;
    if (lowest == JOB_NONE)
        return;
    facts->clock = gauges_ratio(gauges, gauges->clock_mhz, lowest, engine->model.scratch);
    facts->power = gauges_ratio(gauges, gauges->power_w, lowest, engine->model.scratch);
}

/* A clock that is lower by half of the shift is why, whatever the SMs say. */
static bool is_clock_low(const struct slow_facts *facts)
{
    return facts->clock < 1 - fmax(facts->level / 2, CLOCK_LEAST);
}

bool cause_is_clock_low(const struct engine *engine, int32_t rank, double level)
{
    const struct gauges *gauges = &engine->gauges;
    struct slow_facts facts = {.level = level};

    if (!isfinite(gauges->clock_mhz[rank]))
        return false;
    facts.clock = gauges_ratio(gauges, gauges->clock_mhz, rank, engine->model.scratch);
    return is_clock_low(&facts);
}

/* Slow in its own work: busy SMs or a low clock say the GPU, starved ones the host. */
static enum cause cause_of_compute(const struct engine *engine, const struct domain *domain,
                                   const struct slow_facts *facts)
{
    bool wide = domain->scope == SCOPE_RACK;

    if (is_clock_low(facts))
        return CAUSE_GPU;
    if (!isfinite(facts->sm_shift))
        return CAUSE_UNKNOWN;
    if (is_sm_busier(facts))
        return CAUSE_GPU;
    /* Inclusive compute holds the waits inside tensor groups: a whole rack whose SMs do no more
     * than before is slow on its links. */
    if (wide && engine->job->compute != COMPUTE_KERNEL && facts->sm_shift > -3 * SM_LEAST)
        return CAUSE_NVLINK;
    return CAUSE_HOST;
}

/* Late, though not in its own compute. */
static enum cause cause_outside_compute(const struct engine *engine, const struct domain *domain,
                                        const uint8_t *ranks, const struct slow_facts *facts)
{
    int32_t count = engine->job->world_size;
    double data = mean_of(engine->gauges.data_fast, ranks, count);
    double before = mean_of(engine->gauges.data_base, ranks, count);

    if (isfinite(data) && data - before > facts->level * engine->model.busy_ms / 3)
        return CAUSE_DATA;
    if (is_sm_busier(facts) && !engine->model.has_compute)
        return CAUSE_GPU;
    if (domain->scope == SCOPE_RACK || domain->scope == SCOPE_GROUP)
        return domain->scope == SCOPE_RACK || engine->model.has_compute ? CAUSE_NVLINK : CAUSE_HOST;
    return isfinite(facts->sm_shift) ? CAUSE_HOST : CAUSE_UNKNOWN;
}

/* The stage that the domain is most of; JOB_NONE when it is most of none. Of such a domain the
 * stage's reference says nothing, since it moved along. */
static int32_t stage_moved_along(const struct engine *engine, const uint8_t *ranks)
{
    for (int32_t s = 0; s < engine->model.stages; s++) {
        int32_t inside = 0, size = grid_size(engine->grid, CUT_STAGE, s);
        for (int32_t i = 0; i < size; i++)
            inside += ranks[grid_members(engine->grid, CUT_STAGE, s)[i]] != 0;
        if (5 * inside > 4 * size)
            return s;
    }
    return JOB_NONE;
}

/* How much busier a stage's SMs became than those of the other stages: while the job waits for one
 * stage, SMs are busy for a smaller part of everybody's step. */
static double stage_sm_shift(const struct engine *engine, int32_t stage, int rows)
{
    double own = 0, others = 0;
    int own_count = 0, others_count = 0;

    for (int32_t s = 0; s < engine->model.stages; s++) {
        int32_t class = grid_of(engine->grid, CUT_CLASS,
                                grid_members(engine->grid, CUT_STAGE, s)[0]);
        double rise = pace_rise(&engine->pace.class_sm[class], rows);
        if (!isfinite(rise))
            continue;
        own += s == stage ? rise : 0;
        own_count += s == stage;
        others += s == stage ? 0 : rise;
        others_count += s != stage;
    }
    if (own_count == 0)
        return (double)NAN;
    return others_count > 0 ? (1 + own) / (1 + others / others_count) - 1 : own;
}

void cause_find(const struct engine *engine, enum bank_kind bank, const struct domain *domain,
                const uint8_t *ranks, struct slow_facts *facts)
{
    const struct gauges *gauges = &engine->gauges;
    int32_t count = engine->job->world_size;

    facts->sm = mean_of(gauges->sm_fast, ranks, count);
    facts->sm_shift = sm_shift_of(
        gauges, ranks, !facts->from_start,
        domain->scope != SCOPE_RACK &&
            (engine->job->compute != COMPUTE_KERNEL || !engine->model.has_compute));
    /* What began a few rows ago has not yet come into the means as a whole. */
    if (!facts->from_start)
        facts->sm_shift /= gauges_shown(facts->rows);
    int32_t stage = stage_moved_along(engine, ranks);
    facts->whole_stage = stage != JOB_NONE;
    if (facts->whole_stage)
        facts->sm_shift = stage_sm_shift(engine, stage, facts->rows);
    facts->mem = most_of(gauges->mem_fast, ranks, count);
    find_gain(engine, ranks, facts);
    find_clock(engine, ranks, facts);
    if (facts->mem >= MEMORY_FULL && facts->mem - most_of(gauges->mem_base, ranks, count) > 0.05)
        facts->cause = CAUSE_MEMORY;
    else if (bank == BANK_LANE || bank == BANK_LATE_LANE)
        facts->cause = cause_outside_compute(engine, domain, ranks, facts);
    else
        facts->cause = cause_of_compute(engine, domain, facts);
}

/* The rank among members whose SMs (or memory) stand out; JOB_NONE when none does. */
static int32_t standing_out(const struct engine *engine, const int32_t *members, int32_t size)
{
    const struct gauges *gauges = &engine->gauges;
    double first = -INFINITY, second = -INFINITY;
    int32_t best = JOB_NONE;

    for (int32_t i = 0; i < size; i++) {
        double shift = gauges_sm_shift(gauges, members[i], true);
        if ((double)gauges->mem_fast[members[i]] >= MEMORY_FULL &&
            (double)gauges->mem_fast[members[i]] - (double)gauges->mem_base[members[i]] > 0.05)
            shift = 1;
        if (!isfinite(shift))
            continue;
        if (shift > first) {
            second = first;
            first = shift;
            best = members[i];
        } else if (shift > second) {
            second = shift;
        }
    }
    if (!isfinite(second) || first - second < SM_STANDS_OUT || first < SM_STANDS_OUT)
        return JOB_NONE;
    return best;
}

/* The tray of all ranks in the lane whose data time grew by a large part of the lateness; JOB_NONE
 * when there is none or more than one. */
static int32_t tray_waiting_for_data(const struct engine *engine, const int32_t *members,
                                     int32_t size, double level)
{
    int32_t tray = JOB_NONE;

    for (int32_t i = 0; i < size; i++) {
        double grown = (double)(engine->gauges.data_fast[members[i]] -
                                engine->gauges.data_base[members[i]]);
        int32_t of = grid_of(engine->grid, CUT_TRAY, members[i]);
        if (!(grown > level * engine->model.busy_ms / 2))
            continue;
        if (of == JOB_NONE || (tray != JOB_NONE && of != tray))
            return JOB_NONE;
        tray = of;
    }
    return tray;
}

bool cause_narrow(const struct engine *engine, enum bank_kind bank, double level,
                  struct domain *domain)
{
    int32_t rank, tray = JOB_NONE;

    if (domain->scope != SCOPE_TRAY && domain->scope != SCOPE_GROUP)
        return false;
    if (domain->scope == SCOPE_GROUP && (bank == BANK_LANE || bank == BANK_LATE_LANE))
        tray = tray_waiting_for_data(engine, grid_members(engine->grid, domain->cut, domain->index),
                                     grid_size(engine->grid, domain->cut, domain->index), level);
    if (tray != JOB_NONE) {
        *domain = (struct domain){.scope = SCOPE_TRAY, .index = tray, .cut = CUT_TRAY};
        return true;
    }
    if (engine->job->compute == COMPUTE_KERNEL && engine->model.has_compute)
        return false;
    rank = standing_out(engine, grid_members(engine->grid, domain->cut, domain->index),
                        grid_size(engine->grid, domain->cut, domain->index));
    if (rank == JOB_NONE)
        return false;
    *domain = (struct domain){.scope = SCOPE_RANK, .index = rank, .cut = CUT_COUNT};
    return true;
}

static int rows_of_rank(const struct engine *engine, const struct alarm *alarm, int32_t rank)
{
    const struct bank *bank = &engine->banks[alarm->bank];
    enum cut cut = alarm_cut(alarm->bank);
    int32_t unit = cut == CUT_COUNT ? rank : grid_of(engine->grid, cut, rank);
    struct chart_view view = bank_view(bank, unit);

    return bank_rows_since_onset(bank, unit, fmax(view.level, ALARM_LEVEL_LEAST), alarm->test);
}

bool cause_merge_ranks(const struct engine *engine, const struct alarm *alarm,
                       struct domain *domains, int *count, int first, uint8_t *ranks)
{
    int32_t tray = grid_of(engine->grid, CUT_TRAY, domains[first].index);
    int rows = rows_of_rank(engine, alarm, domains[first].index), before = *count;

    for (int i = first + 1; i < *count && tray != JOB_NONE; i++) {
        int32_t rank = domains[i].index;

        if (domains[i].scope != SCOPE_RANK || grid_of(engine->grid, CUT_TRAY, rank) != tray ||
            abs(rows_of_rank(engine, alarm, rank) - rows) > SAME_ONSET_ROWS)
            continue;
        ranks[rank] = 1;
        for (int j = i; j + 1 < *count; j++)
            domains[j] = domains[j + 1];
        --*count;
        i--;
    }
    return *count < before;
}

/* The stage most of a rack's ranks are in. */
static int32_t stage_of_rack(const struct engine *engine, int32_t rack)
{
    return grid_of(engine->grid, CUT_STAGE, grid_members(engine->grid, CUT_RACK, rack)[0]);
}

/* The group of a replica in a stage; JOB_NONE when there is none or it is not known to be late. */
static int32_t group_of_stage(const struct model *model, int32_t replica, int32_t stage)
{
    for (int32_t i = model->replica_start[replica]; i < model->replica_start[replica + 1]; i++)
        if (model->stage_of_group[model->replica_groups[i]] == stage)
            return model->replica_groups[i];
    return JOB_NONE;
}

/* Mean of a group's last values of lateness. */
static double mean_lateness(const struct bank *late, int32_t group, int rows)
{
    double sum = 0;
    int n = 0;

    for (int back = 0; back < rows && back < CHART_RING; back++) {
        double value = bank_value(late, group, back);
        if (isfinite(value)) {
            sum += value;
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* How much more lateness one stage gained than another since the onset, over the late replicas,
 * with the standard error of that mean. Before the onset their difference was their usual one. */
struct stage_gap {
    double mean, error;
    int replicas;
};

static struct stage_gap gap_between(const struct engine *engine, const uint8_t *late_replicas,
                                    int32_t stage, int32_t other, int rows)
{
    const struct bank *late = &engine->banks[BANK_LATE];
    struct stage_gap gap = {.error = (double)INFINITY};
    double sum = 0, squares = 0;

    for (int32_t d = 0; d < engine->model.replicas; d++) {
        int32_t k = group_of_stage(&engine->model, d, stage);
        int32_t j = group_of_stage(&engine->model, d, other);
        if (late_replicas[d] == 0 || k == JOB_NONE || j == JOB_NONE)
            continue;
        double now = mean_lateness(late, k, rows) - mean_lateness(late, j, rows);
        double change = now - (double)(engine->late_base[k] - engine->late_base[j]);
        if (!isfinite(change))
            continue;
        sum += change;
        squares += change * change;
        gap.replicas++;
    }
    if (gap.replicas < 3 || engine->late_rows < rows + 8)
        return gap;
    gap.mean = sum / gap.replicas;
    gap.error = sqrt(fmax(squares / gap.replicas - gap.mean * gap.mean, 1e-10) /
                     (gap.replicas - 1));
    return gap;
}

/* In a 1F1B pipeline a slow stage delays itself and all stages before it by the whole, the stages
 * after it by one micro-batch less. So of stages that all look late the guilty one is the last that
 * is late in full. Two stages are told apart when their gap is significant; when there is none,
 * although one micro-batch in 48 would have been seen, it is the later stage. Returns 1: `stage` is
 * guilty, -1: `later` is, 0: cannot be told. */
static int compare_stages(const struct engine *engine, const uint8_t *late_replicas, int32_t stage,
                          int32_t later, double level, int rows)
{
    static const double SIGNIFICANT = 5, MICRO_BATCHES_MOST = 48;
    struct stage_gap gap = gap_between(engine, late_replicas, stage, later, rows);
    double least = level * 2 / 3 / MICRO_BATCHES_MOST;

    if (gap.mean > SIGNIFICANT * gap.error && gap.mean > least)
        return 1;
    if (fabs(gap.mean) + 3 * gap.error < least)
        return -1;
    return 0;
}

/* Of two racks that look late together: the one whose SMs are busier computes for longer, the other
 * waits. 1: `rack`, -1: `other`, 0: nothing to see. */
static int compare_activity(const struct engine *engine, int32_t rack, int32_t other)
{
    double shift[2] = {0, 0};
    int32_t racks[2] = {rack, other};

    for (int i = 0; i < 2; i++) {
        int n = 0;
        for (int32_t m = 0; m < grid_size(engine->grid, CUT_RACK, racks[i]); m++) {
            int32_t rank = grid_members(engine->grid, CUT_RACK, racks[i])[m];
            double one = gauges_sm_shift(&engine->gauges, rank, true);
            if (isfinite(one)) {
                shift[i] += one;
                n++;
            }
        }
        shift[i] = n > 0 ? shift[i] / n : 0;
    }
    if (fabs(shift[0] - shift[1]) < SM_STANDS_OUT)
        return 0;
    return shift[0] > shift[1] ? 1 : -1;
}

/* Of racks that are suspect as a whole, the one that the others only wait for; count 0 when nothing
 * tells. */
static int split_racks(const struct engine *engine, const uint8_t *late_replicas, double level,
                       int rows, struct domain *domains, int count)
{
    int best = 0;

    for (int i = 1; i < count; i++) {
        int32_t ours = stage_of_rack(engine, domains[best].index);
        int32_t theirs = stage_of_rack(engine, domains[i].index);
        int answer;

        answer = compare_activity(engine, domains[best].index, domains[i].index);
        if (answer != 0) {
            best = answer < 0 ? i : best;
            continue;
        }
        if (ours == theirs)
            continue;
        answer = ours < theirs ? compare_stages(engine, late_replicas, ours, theirs, level, rows)
                               : -compare_stages(engine, late_replicas, theirs, ours, level, rows);
        if (answer == 0)
            return 0;
        if (answer < 0)
            best = i;
    }
    domains[0] = domains[best];
    return 1;
}

/* Flags replicas with a suspect rank. */
static uint8_t *late_replicas_of(const struct engine *engine, const uint8_t *suspects)
{
    uint8_t *late = xcalloc((size_t)engine->model.replicas + 1, 1);

    for (int32_t r = 0; r < engine->job->world_size; r++)
        if (suspects[r] != SUSPECT_NO)
            late[grid_of(engine->grid, CUT_REPLICA, r)] = 1;
    return late;
}

/* Drops racks that touch too few of the late replicas: they cannot be why the others are late. */
static int drop_partial_racks(const struct engine *engine, const uint8_t *late,
                              struct domain *domains, int count)
{
    AUTO_FREE uint8_t *touched = xcalloc((size_t)engine->model.replicas + 1, 1);
    int kept = 0;

    for (int i = 0; i < count; i++) {
        int32_t both = 0, all = 0, rack = domains[i].index;

        memset(touched, 0, (size_t)engine->model.replicas + 1);
        for (int32_t m = 0; m < grid_size(engine->grid, CUT_RACK, rack); m++)
            touched[grid_of(engine->grid, CUT_REPLICA,
                            grid_members(engine->grid, CUT_RACK, rack)[m])] = 1;
        for (int32_t d = 0; d < engine->model.replicas; d++) {
            all += late[d];
            both += late[d] && touched[d];
        }
        if ((double)both >= DOMAIN_SHARE * all)
            domains[kept++] = domains[i];
    }
    return kept;
}

/* Late lanes that have ranks in the rack. A rack is accused by several lanes, never by one that
 * happens to fill it. */
static int32_t lanes_in_rack(const struct engine *engine, int32_t rack)
{
    AUTO_FREE uint8_t *seen = xcalloc((size_t)engine->model.lanes + 1, 1);
    int32_t lanes = 0;

    for (int32_t m = 0; m < grid_size(engine->grid, CUT_RACK, rack); m++) {
        int32_t lane = grid_of(engine->grid, CUT_LANE,
                               grid_members(engine->grid, CUT_RACK, rack)[m]);
        lanes += seen[lane] == 0;
        seen[lane] = 1;
    }
    return lanes;
}

/* One late lane: the rank whose SMs stand out, else the lane by its name. */
static struct domain domain_of_lane(const struct engine *engine, int32_t lane, double level)
{
    const struct grid *grid = engine->grid;
    const int32_t *members = grid_members(grid, CUT_LANE, lane);
    int32_t rank = standing_out(engine, members, grid_size(grid, CUT_LANE, lane));
    int32_t tray = tray_waiting_for_data(engine, members, grid_size(grid, CUT_LANE, lane), level);

    if (tray != JOB_NONE)
        return (struct domain){.scope = SCOPE_TRAY, .index = tray, .cut = CUT_TRAY};

    if (rank != JOB_NONE)
        return (struct domain){.scope = SCOPE_RANK, .index = rank, .cut = CUT_COUNT};
    if (grid_size(grid, CUT_LANE, lane) >
        grid_size(grid, CUT_REPLICA, grid_of(grid, CUT_REPLICA, members[0])))
        return (struct domain){.scope = SCOPE_GROUP, .index = lane, .cut = CUT_LANE};
    return (struct domain){.scope = SCOPE_REPLICA,
                           .index = grid_of(grid, CUT_REPLICA, members[0]),
                           .cut = CUT_REPLICA};
}

int cause_split_lanes(const struct engine *engine, double level, int rows, uint8_t *suspects,
                      struct domain *domains)
{
    const struct grid *grid = engine->grid;
    AUTO_FREE uint8_t *late = late_replicas_of(engine, suspects);
    AUTO_FREE uint8_t *kept = xcalloc((size_t)grid->ranks, 1);
    int count, racks = 0;

    memcpy(kept, suspects, (size_t)grid->ranks);
    count = domains_solve(grid, suspects, domains);
    for (int i = 0; i < count; i++)
        if (domains[i].scope == SCOPE_RACK &&
            lanes_in_rack(engine, domains[i].index) >= RACK_LANES_LEAST)
            domains[racks++] = domains[i];
    if (engine->model.stages > 1 && racks > 0) {
        racks = drop_partial_racks(engine, late, domains, racks);
        if (racks > 0)
            return split_racks(engine, late, level, rows, domains, racks);
    }
    count = racks;
    for (int32_t lane = 0; lane < engine->model.lanes && count < DOMAINS_MAX; lane++) {
        int32_t first = grid_members(grid, CUT_LANE, lane)[0];
        bool in_rack = false;
        for (int i = 0; i < racks; i++)
            in_rack = in_rack || domain_holds(grid, &domains[i], first);
        if (kept[first] != SUSPECT_NO && !in_rack)
            domains[count++] = domain_of_lane(engine, lane, level);
    }
    return count;
}
