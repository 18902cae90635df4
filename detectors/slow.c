/* Slow ranks, trays, racks, rails and replicas: watches the banks, lets an alarm settle until it is
 * known how far it reaches, explains the suspects by domains, weighs the gain, and clears what went
 * away.
 */
#include "detectors/alarm.h"
#include "detectors/cause.h"
#include "detectors/domains.h"
#include "detectors/engine_state.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the smallest shift, what uncertainty may take off it where it is a change. */
static const double CHANGE_MARGIN = 0.15;
/* Of a shift, what its newest rows must still show. */
static const double LASTS_SHARE = 2.0 / 3;
/* Of a spell of so few stalls the chance is below one in a hundred. */
static const double STALLS_ENDED_NATS = 4.6;
/* When more units than this moved it is the job's matter, and no unit's. */
static const double MOST_SHARE = 0.8;
/* A verdict that said little is weighed again when its shift has grown by this factor. */
static const double GREW = 1.4;
/* What was told as slow is told again when it has doubled, and before that once when it has grown
 * enough for the advice to replace that it lacked. */
static const double GREW_TO_ADVICE = 1.6, GREW_AGAIN = 2;
enum { LASTING_ROWS = 24 };
enum {
    SETTLE_LEAST = 3,
    SETTLE_MOST = 10,
    QUIET_ROWS = 8,
    QUIET_MOST = 256,
    FLAP_ROWS = 512,
    ABSORB_STEPS = 16,
    NEWEST_ROWS = 2,
    RATE_ROWS = 48,
    MANY_AT_ONCE = 6, /* more domains at once are the job's doing, not so many faults */
    RACK_FILLING = 3,
    EXTENSIONS = 6,
    EXTENSION_ROWS = 4
};

/* The bank's units that lie in the domain and moved. */
static void collect_units(const struct engine *engine, struct open_verdict *open,
                          const struct alarm *alarm)
{
    enum cut cut = alarm_cut(alarm->bank);
    int32_t units = engine->banks[alarm->bank].units;

    open->bank = alarm->bank;
    open->by_rate = alarm->by_rate;
    open->test = alarm->test;
    open->units = xcalloc((size_t)units + 1, sizeof *open->units);
    for (int32_t u = 0; u < units; u++) {
        int32_t first = cut == CUT_COUNT ? u : grid_members(engine->grid, cut, u)[0];
        bool inside = open->covers[first] != 0;

        for (int32_t i = 1; cut != CUT_COUNT && !inside && i < grid_size(engine->grid, cut, u); i++)
            inside = open->covers[grid_members(engine->grid, cut, u)[i]] != 0;
        if (inside && (u == alarm->unit || alarm_joins(engine, alarm, u)))
            open->units[open->unit_count++] = u;
    }
}

static bool has_level(const struct engine *engine, const struct alarm *alarm, int32_t unit,
                      const uint8_t *domain_ranks)
{
    enum cut cut = alarm_cut(alarm->bank);

    if (cut == CUT_COUNT)
        return domain_ranks[unit] != 0;
    for (int32_t i = 0; i < grid_size(engine->grid, cut, unit); i++)
        if (domain_ranks[grid_members(engine->grid, cut, unit)[i]] != 0)
            return true;
    return false;
}

/* Size and onset of the shift over the domain's units. */
static void measure(const struct engine *engine, const struct alarm *alarm, const uint8_t *ranks,
                    struct slow_facts *facts)
{
    const struct bank *bank = &engine->banks[alarm->bank];
    double sum = 0;
    int n = 0, rows = 1;

    for (int32_t u = 0; u < bank->units; u++) {
        if (!has_level(engine, alarm, u, ranks) ||
            (u != alarm->unit && !alarm_joins(engine, alarm, u)))
            continue;
        struct chart_view view = bank_view(bank, u);
        int since = bank_rows_since_onset(bank, u, fmax(view.level, ALARM_LEVEL_LEAST),
                                          alarm->test);
        double level = bank_mean(bank, u, since < 4 ? 4 : since, alarm->test);
        rows = since > rows ? since : rows;
        if (isfinite(level)) {
            sum += level;
            n++;
        }
    }
    facts->level = n > 0 ? sum / n : alarm->level;
    facts->rows = rows;
    facts->units = n;
    facts->since_step = bank_step(bank, rows - 1);
    facts->from_start = engine->rows <= CHART_RING && rows + WARM_UP_ROWS + 4 >= engine->rows;
}

static void put_evidence(const struct engine *engine, struct verdict *verdict,
                         const struct alarm *alarm, const struct slow_facts *facts)
{
    static const char *const NAMES[BANK_COUNT] = {
        [BANK_OWN] = "compute_z",          [BANK_GROUP] = "group_compute_z",
        [BANK_WORK] = "replica_compute_z", [BANK_LANE] = "outside_compute_z",
        [BANK_LATE_LANE] = "lateness_z",   [BANK_LATE] = "lateness_z"};

    if (alarm->z < engine_z_alarm(engine))
        verdict_add_evidence(verdict, "stall_nats", alarm->spikes);
    else
        verdict_add_evidence(verdict, NAMES[alarm->bank], alarm->z);
    verdict_add_evidence(verdict, "shift", facts->level);
    if (alarm->test == TEST_CHANGE)
        verdict_add_evidence(verdict, "usual_offset",
                             (double)engine->banks[alarm->bank].offset[alarm->unit]);
    verdict_add_evidence(verdict, "allreduce_wait_ms", -facts->lateness_ms);
    verdict_add_evidence(verdict, "noise", engine->banks[alarm->bank].sigma);
    if (isfinite(facts->sm))
        verdict_add_evidence(verdict, "sm", facts->sm);
    if (isfinite(facts->sm_shift))
        verdict_add_evidence(verdict, "sm_shift", facts->sm_shift);
    if (isfinite(facts->mem))
        verdict_add_evidence(verdict, "mem", facts->mem);
    if (isfinite(facts->clock))
        verdict_add_evidence(verdict, "clock_ratio", facts->clock);
    if (isfinite(facts->power))
        verdict_add_evidence(verdict, "power_ratio", facts->power);
    verdict_add_evidence(verdict, "peers", engine->banks[alarm->bank].units - facts->units);
    verdict_add_evidence(verdict, "window_steps", facts->rows);
}

/* Rank 0 logs, saves and reports for all: a few per cent of its host's time in real jobs, more on a
 * busy host, and of those who wait for it where waits are in what is measured. */
static bool is_duty_of_rank0(const struct engine *engine, const struct alarm *alarm,
                             const struct domain *domain, const uint8_t *ranks,
                             const struct slow_facts *facts)
{
    double most = facts->cause == CAUSE_GPU ? 0.1 : 0.2;
    bool waits_inside = engine->job->size[DIMENSION_TP] > 1 &&
                        (engine->job->compute != COMPUTE_KERNEL ||
                         alarm_cut(alarm->bank) == CUT_LANE);

    if (ranks[0] == 0 || domain->scope == SCOPE_RACK)
        return false;
    if (domain->scope != SCOPE_RANK && !waits_inside)
        return false;
    return facts->level < most && (facts->cause != CAUSE_GPU || facts->from_start);
}

/* Causes and scopes that a replacement can mend at all. */
static bool is_replaceable(enum scope scope, enum cause cause)
{
    bool hardware = cause == CAUSE_GPU || cause == CAUSE_HOST || cause == CAUSE_NVLINK ||
                    cause == CAUSE_UNKNOWN;

    return hardware && (scope == SCOPE_RANK || scope == SCOPE_TRAY || scope == SCOPE_RACK);
}

static bool may_evict(const struct engine *engine, const struct domain *domain,
                      const struct slow_facts *facts)
{
    return is_replaceable(domain->scope, facts->cause) &&
           facts->lower >= engine->params.slow_min_ratio &&
           facts->gain >= engine->params.gain_min_ratio;
}

static int32_t first_expert_group(const struct engine *engine, const struct domain *lane)
{
    return grid_of(engine->grid, CUT_EXPERT, grid_members(engine->grid, CUT_LANE, lane->index)[0]);
}

/* A fault that was cleared a while ago and is back must be quiet for longer before it is cleared
 * again. */
static int quiet_needed(const struct engine *engine, const struct verdict *verdict)
{
    for (int i = 0; i < engine->cleared_count; i++) {
        const struct cleared *cleared = &engine->cleared[i];
        if (cleared->scope == verdict->scope && strcmp(cleared->id, verdict->id) == 0 &&
            engine->all_rows - cleared->row < FLAP_ROWS)
            return cleared->quiet_needed * 3 < QUIET_MOST ? cleared->quiet_needed * 3 : QUIET_MOST;
    }
    return QUIET_ROWS;
}

static void remember_cleared(struct engine *engine, const struct open_verdict *open)
{
    struct cleared *place = NULL;

    for (int i = 0; i < engine->cleared_count && place == NULL; i++)
        if (engine->cleared[i].scope == open->verdict.scope &&
            strcmp(engine->cleared[i].id, open->verdict.id) == 0)
            place = &engine->cleared[i];
    if (place == NULL && engine->cleared_count < CLEARED_MAX)
        place = &engine->cleared[engine->cleared_count++];
    for (int i = 0; i < engine->cleared_count && place == NULL; i++)
        if (engine->all_rows - engine->cleared[i].row >= FLAP_ROWS)
            place = &engine->cleared[i];
    if (place == NULL)
        place = &engine->cleared[engine->all_rows % CLEARED_MAX];
    place->scope = open->verdict.scope;
    text_copy(place->id, sizeof place->id, open->verdict.id);
    place->row = engine->all_rows;
    place->quiet_needed = open->quiet_needed;
}

/* A rack that is slow on its links after one of its switch trays failed: that verdict says it
 * already. */
static bool is_told_by_switch_tray(const struct engine *engine, const struct verdict *verdict)
{
    size_t length = strlen(verdict->id);

    if (verdict->scope != SCOPE_RACK || verdict->cause != CAUSE_NVLINK)
        return false;
    for (int i = 0; i < engine->open_count; i++) {
        const struct verdict *open = &engine->open[i]->verdict;
        if (open->scope == SCOPE_SWITCH_TRAY && strncmp(open->id, verdict->id, length) == 0 &&
            open->id[length] == ':')
            return true;
    }
    return false;
}

static void raise_slow(struct engine *engine, const struct alarm *alarm,
                       const struct domain *domain, const uint8_t *ranks)
{
    struct slow_facts facts = {0};
    struct verdict verdict;
    struct open_verdict *open;

    measure(engine, alarm, ranks, &facts);
    cause_find(engine, alarm->bank, domain, ranks, &facts);
    double margin = 2 * engine->banks[alarm->bank].reference[alarm->test][alarm->window].spread;
    facts.lower = facts.level - margin;
    /* What differs from its own past is no lasting difference between GPUs: it needs not be as much
     * as it must be for an advice, within what is known of it. */
    double least = engine->params.slow_min_ratio;
    if (alarm->test == TEST_CHANGE)
        least -= fmin(margin, CHANGE_MARGIN * least);
    bool told = facts.gain >= engine->params.gain_min_ratio && facts.level >= least &&
                domain->scope != SCOPE_STAGE &&
                !is_duty_of_rank0(engine, alarm, domain, ranks, &facts);

    verdict = verdict_start(engine, told ? VERDICT_SLOW : VERDICT_INFO, domain->scope);
    verdict_set_domain(engine, &verdict, domain->index);
    if (domain->scope == SCOPE_GROUP && domain->cut == CUT_LANE)
        (void)snprintf(verdict.id, sizeof verdict.id, "ep:%d",
                       (int)first_expert_group(engine, domain));
    if (domain->scope != SCOPE_REPLICA && domain->scope != SCOPE_STAGE &&
        domain->scope != SCOPE_RAIL && domain->cut != CUT_LANE)
        verdict_fill_ranks(engine, &verdict, ranks);
    verdict.since_step = facts.since_step;
    verdict.cause = facts.cause;
    verdict.slowdown = 1 + facts.level;
    verdict.gain = facts.gain;
    /* Of a normal score the tail is about exp(-z^2 / 2); the rate test counts in nats. */
    verdict.confidence = 1 - exp(-fmin(fmax(alarm->z * alarm->z / 2, alarm->spikes), 30));
    verdict.evict = told && may_evict(engine, domain, &facts);
    put_evidence(engine, &verdict, alarm, &facts);
    engine_put_past(engine, &verdict, ranks);
    int needed = quiet_needed(engine, &verdict);
    /* What was told as info and still is no more than that is not told twice, nor what an event
     * told. */
    if ((!told && strcmp(engine->reweighed, verdict.id) == 0) ||
        is_told_by_switch_tray(engine, &verdict)) {
        open = engine_keep(engine, &verdict, ranks);
        open->untold = true;
        verdict_done(&verdict);
    } else {
        open = engine_open(engine, verdict, ranks);
    }
    engine->reweighed[0] = '\0';
    open->quiet_needed = needed;
    open->level = facts.level;
    open->by_offset = !told;
    collect_units(engine, open, alarm);
}

static void domain_ranks(const struct engine *engine, const struct domain *domain,
                         uint8_t *ret_ranks)
{
    for (int32_t r = 0; r < engine->job->world_size; r++)
        ret_ranks[r] = domain_holds(engine->grid, domain, r);
}

/* A replica that became late together with one that shares trays with it: the same fault, which
 * lies in one of those trays. The open verdict takes it over. */
static bool absorb_replica(struct engine *engine, const struct alarm *alarm,
                           const struct domain *domain, const uint8_t *ranks)
{
    struct slow_facts facts = {0};

    if (domain->scope != SCOPE_REPLICA || alarm_cut(alarm->bank) != CUT_LANE)
        return false;
    measure(engine, alarm, ranks, &facts);
    for (int i = 0; i < engine->open_count; i++) {
        struct open_verdict *open = engine->open[i];
        bool shared = false;

        if (open->verdict.scope != SCOPE_REPLICA || open->verdict.kind != VERDICT_SLOW ||
            llabs(open->verdict.since_step - facts.since_step) > ABSORB_STEPS)
            continue;
        for (int32_t r = 0; r < engine->job->world_size && !shared; r++) {
            int32_t tray = grid_of(engine->grid, CUT_TRAY, r);
            for (int32_t m = 0;
                 ranks[r] && tray != JOB_NONE && m < grid_size(engine->grid, CUT_TRAY, tray); m++)
                shared = shared || open->covers[grid_members(engine->grid, CUT_TRAY, tray)[m]] != 0;
        }
        if (!shared)
            continue;
        for (int32_t r = 0; r < engine->job->world_size; r++)
            open->covers[r] |= ranks[r];
        return true;
    }
    return false;
}

/* Of those who move together one rank stands out: the others wait for it, and with experts all of
 * its lane. */
static void add_waiting(const struct engine *engine, const struct domain *together, int32_t rank,
                        uint8_t *waiting)
{
    int32_t lane = grid_of(engine->grid, CUT_LANE, rank);

    for (int32_t r = 0; r < engine->job->world_size; r++)
        if (domain_holds(engine->grid, together, r) ||
            (engine->job->size[DIMENSION_EP] > 1 && lane != JOB_NONE &&
             grid_of(engine->grid, CUT_LANE, r) == lane))
            waiting[r] = 1;
}

/* Flags those who wait for a rank that stands out of a domain. */
static void find_waiting(const struct engine *engine, const struct alarm *alarm,
                         const struct domain *domains, int count, uint8_t *waiting)
{
    for (int i = 0; i < count && alarm->bank != BANK_OWN; i++) {
        struct domain domain = domains[i];
        if (cause_narrow(engine, alarm->bank, alarm->level, &domain) && domain.scope == SCOPE_RANK)
            add_waiting(engine, &domains[i], domain.index, waiting);
    }
}

static bool are_all_waiting(const struct engine *engine, const uint8_t *ranks,
                            const uint8_t *waiting)
{
    for (int32_t r = 0; r < engine->job->world_size; r++)
        if (ranks[r] != 0 && waiting[r] == 0)
            return false;
    return true;
}

/* The open verdict on a rank explains those who wait for it: they would lead to it again and again.
 * False when there is none. */
static bool absorb_waiting(const struct engine *engine, const struct alarm *alarm,
                           const struct domain *domain, const uint8_t *waiting)
{
    if (domain->scope != SCOPE_RANK || waiting[domain->index] == 0)
        return false;
    for (int i = 0; i < engine->open_count; i++) {
        struct open_verdict *open = engine->open[i];

        if (open->bank != alarm->bank || open->verdict.scope != domain->scope ||
            open->covers[domain->index] == 0)
            continue;
        for (int32_t r = 0; r < engine->job->world_size; r++)
            open->covers[r] |= waiting[r];
        return true;
    }
    return false;
}

static bool share_tray(const struct grid *grid, int32_t replica, int32_t other)
{
    for (int32_t i = 0; i < grid_size(grid, CUT_REPLICA, replica); i++) {
        int32_t tray = grid_of(grid, CUT_TRAY, grid_members(grid, CUT_REPLICA, replica)[i]);
        for (int32_t m = 0; tray != JOB_NONE && m < grid_size(grid, CUT_TRAY, tray); m++)
            if (grid_of(grid, CUT_REPLICA, grid_members(grid, CUT_TRAY, tray)[m]) == other)
                return true;
    }
    return false;
}

/* Takes later replicas of the list that share trays with this one: one fault in one of these trays.
 */
static int merge_replicas(const struct engine *engine, struct domain *domains, int count, int first,
                          uint8_t *ranks)
{
    for (int i = first + 1; i < count; i++) {
        if (domains[i].scope != SCOPE_REPLICA ||
            !share_tray(engine->grid, domains[first].index, domains[i].index))
            continue;
        for (int32_t r = 0; r < engine->job->world_size; r++)
            ranks[r] |= domain_holds(engine->grid, &domains[i], r);
        for (int j = i; j + 1 < count; j++)
            domains[j] = domains[j + 1];
        count--;
        i--;
    }
    return count;
}

/* Units that only moved along may complete a domain; alone they wait for an alarm of their own. */
static bool has_alarm(const struct engine *engine, const struct alarm *alarm, const uint8_t *ranks)
{
    for (int32_t u = 0; u < engine->banks[alarm->bank].units; u++) {
        struct alarm own;
        if (has_level(engine, alarm, u, ranks) && alarm_stands(engine, alarm->bank, u, &own))
            return true;
    }
    return false;
}

/* Several trays of a rack at once, though not yet enough of them for the rack: their neighbours are
 * about to follow, so a few more rows are waited for. */
static bool is_rack_filling(const struct engine *engine, const struct domain *domains, int count)
{
    int lanes = 0;

    for (int i = 0; i < count; i++)
        lanes += domains[i].scope == SCOPE_REPLICA || domains[i].cut == CUT_LANE;
    if (lanes >= RACK_FILLING)
        return true;
    for (int i = 0; i < count; i++) {
        int32_t in_rack = 0, rack;

        if (domains[i].scope != SCOPE_RANK && domains[i].scope != SCOPE_TRAY)
            continue;
        rack = domains[i].scope == SCOPE_RANK ? grid_of(engine->grid, CUT_RACK, domains[i].index)
                                              : grid_rack_of_tray(engine->grid, domains[i].index);
        for (int j = 0; j < count && rack != JOB_NONE; j++)
            in_rack += (domains[j].scope == SCOPE_RANK &&
                        grid_of(engine->grid, CUT_RACK, domains[j].index) == rack) ||
                       (domains[j].scope == SCOPE_TRAY &&
                        grid_rack_of_tray(engine->grid, domains[j].index) == rack);
        if (in_rack >= RACK_FILLING)
            return true;
    }
    return false;
}

/* Lanes of several tensor groups are late as a whole: which part of them is not in the alarm. */
static bool is_lane_shared(const struct engine *engine, enum bank_kind bank)
{
    return alarm_cut(bank) == CUT_LANE && engine->model.lanes < engine->model.groups;
}

/* Domains of the ranks that are flagged; lanes with several stages are told apart by
 * cause_find_lane. */
static void decide(struct engine *engine, const struct alarm *alarm)
{
    struct domain domains[DOMAINS_MAX];
    AUTO_FREE uint8_t *ranks = xcalloc((size_t)engine->job->world_size, 1);
    AUTO_FREE uint8_t *waiting = xcalloc((size_t)engine->job->world_size, 1);
    double share;
    int count;

    share = alarm_flag_joined(engine, alarm);
    if (is_lane_shared(engine, alarm->bank))
        count = cause_split_lanes(engine, alarm->level,
                                  bank_rows_since_onset(&engine->banks[alarm->bank], alarm->unit,
                                                        alarm->level, alarm->test),
                                  engine->flags, domains);
    else
        count = domains_solve(engine->grid, engine->flags, domains);
    if (share > MOST_SHARE)
        return;
    if (engine->pending_extended < EXTENSIONS && is_rack_filling(engine, domains, count)) {
        engine->pending_extended++;
        engine->pending_rows = EXTENSION_ROWS;
        return;
    }
    engine->pending_extended = 0;
    if (count > MANY_AT_ONCE)
        return;
    find_waiting(engine, alarm, domains, count, waiting);
    for (int i = 0; i < count; i++) {
        struct domain domain = domains[i];
        domain_ranks(engine, &domain, ranks);
        if (!has_alarm(engine, alarm, ranks))
            continue;
        if (domain.scope == SCOPE_REPLICA)
            count = merge_replicas(engine, domains, count, i, ranks);
        if (alarm->bank != BANK_OWN && cause_narrow(engine, alarm->bank, alarm->level, &domain))
            domain_ranks(engine, &domain, ranks);
        else if (are_all_waiting(engine, ranks, waiting))
            continue;
        if (domain.scope == SCOPE_RANK && domains[i].scope == SCOPE_RANK &&
            cause_merge_ranks(engine, alarm, domains, &count, i, ranks))
            domain = (struct domain){.scope = SCOPE_TRAY,
                                     .index = grid_of(engine->grid, CUT_TRAY, domains[i].index),
                                     .cut = CUT_TRAY};
        if (absorb_waiting(engine, alarm, &domain, waiting) ||
            absorb_replica(engine, alarm, &domain, ranks))
            continue;
        raise_slow(engine, alarm, &domain, ranks);
        (void)absorb_waiting(engine, alarm, &domain, waiting);
    }
}

static bool is_seat_of(const struct open_verdict *open, const struct job_rank *seat)
{
    for (int32_t i = 0; i < open->seat_count; i++)
        if (open->seats[i].tray == seat->tray && open->seats[i].gpu == seat->gpu)
            return true;
    return false;
}

bool slow_rebind(struct engine *engine, struct open_verdict *open)
{
    enum cut cut = alarm_cut(open->bank);
    int32_t held = 0;

    if (open->verdict.kind == VERDICT_INFO)
        return false;
    for (int32_t r = 0; r < engine->job->world_size; r++) {
        const struct job_rank *seat = &engine->job->ranks[r];
        open->covers[r] = seat->tray != JOB_NONE && is_seat_of(open, seat);
        held += open->covers[r];
    }
    open->unit_count = 0;
    xfree(open->units);
    open->units = xcalloc((size_t)engine->banks[open->bank].units + 1, sizeof *open->units);
    for (int32_t u = 0; u < engine->banks[open->bank].units; u++) {
        bool inside = cut == CUT_COUNT && open->covers[u] != 0;
        for (int32_t i = 0; cut != CUT_COUNT && !inside && i < grid_size(engine->grid, cut, u); i++)
            inside = open->covers[grid_members(engine->grid, cut, u)[i]] != 0;
        if (inside)
            open->units[open->unit_count++] = u;
    }
    open->opened_row = WARM_UP_ROWS + LEARN_ROWS;
    open->quiet_rows = 0;
    return held > 0;
}

/* Mean shift of the verdict's units over the last rows; NAN when nothing came. */
static double level_now(const struct engine *engine, const struct open_verdict *open, int rows)
{
    double sum = 0;
    int n = 0;

    for (int32_t i = 0; i < open->unit_count; i++) {
        double level = bank_mean(&engine->banks[open->bank], open->units[i], rows, open->test);
        if (isfinite(level)) {
            sum += level;
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* Still there? Rate verdicts go when spikes are as rare as anybody's, others when the mean fell to
 * a third, over as many rows as noise of this size takes to be told from a third. */
static bool is_quiet(const struct engine *engine, const struct open_verdict *open)
{
    const struct bank *bank = &engine->banks[open->bank];
    double needed = pow(3 * bank->sigma / (0.35 * fmax(open->level, 0.01)), 2);
    int rows = (int)fmin(fmax(needed, 8), CHART_RING);

    if (engine->rows < open->opened_row + 4)
        return false;
    if (open->by_rate) {
        double usual = fmax(1.0 / RATE_ROWS, 2 * bank->spike_rate);
        for (int32_t i = 0; i < open->unit_count; i++)
            if (bank_share_above(bank, open->units[i], RATE_ROWS, bank->spike_over) > usual)
                return false;
        return true;
    }
    return level_now(engine, open, rows) < 0.35 * open->level;
}

/* A fault that has grown since it was told; or one that seemed to cost nothing and does, now that
 * more rows were seen. What advised a replacement already is told again only when the growth lasts:
 * a drift, whose first figures a policy may have found too small to act on. */
static bool has_grown(const struct engine *engine, const struct open_verdict *open)
{
    int64_t age = engine->rows - open->opened_row;

    if (age < 8)
        return false;
    if (open->verdict.evict)
        return !open->by_rate && age >= LASTING_ROWS &&
               level_now(engine, open, LASTING_ROWS) > GREW_AGAIN * open->level;
    if (open->verdict.kind == VERDICT_SLOW)
        return is_replaceable(open->verdict.scope, open->verdict.cause) &&
               level_now(engine, open, 8) > GREW_TO_ADVICE * open->level;
    if (level_now(engine, open, 8) > GREW * open->level)
        return true;
    return open->verdict.kind == VERDICT_INFO && age % 8 == 0 &&
           open->verdict.gain < engine->params.gain_min_ratio &&
           level_now(engine, open, 16) >= engine->params.slow_min_ratio &&
           cause_gain(engine, open->covers, 16) >= 1.2 * engine->params.gain_min_ratio;
}

/* How far it reaches is known: its alarm, which still stands, is decided in this very step. */
static void tell_at_once(struct engine *engine, const struct open_verdict *open)
{
    engine->pending_bank = open->bank;
    engine->pending_unit = open->units[0];
    engine->pending_rows = 1;
    engine->pending_extended = 0;
}

static void clear_open(struct engine *engine)
{
    for (int i = engine->open_count - 1; i >= 0; i--) {
        struct open_verdict *open = engine->open[i];

        if (open->bank == BANK_COUNT)
            continue;
        open->quiet_rows = is_quiet(engine, open) ? open->quiet_rows + 1 : 0;
        if (open->quiet_rows >= open->quiet_needed) {
            remember_cleared(engine, open);
            for (int32_t u = 0; u < open->unit_count; u++)
                bank_clear_unit(&engine->banks[open->bank], open->units[u]);
            engine_close(engine, i, true);
        } else if (has_grown(engine, open)) {
            if (open->verdict.kind == VERDICT_INFO)
                text_copy(engine->reweighed, sizeof engine->reweighed, open->verdict.id);
            else if (open->unit_count > 0)
                tell_at_once(engine, open);
            engine_close(engine, i, true);
        }
    }
}

/* Rows to wait until it is known how far an alarm reaches: smaller shifts and longer windows take
 * longer to show on their neighbours. */
static int settle_rows(const struct alarm *alarm)
{
    double rows = fmax(chart_window(alarm->window) / 2.0,
                       0.3 / fmax(alarm->level, ALARM_LEVEL_LEAST));

    return (int)fmin(fmax(rows, SETTLE_LEAST), SETTLE_MOST);
}

/* Stalls come and go, but some number of newest rows has so few of them that at the rate of all
 * rows this is hardly chance: then they have ended. */
static bool have_stalls_ended(const struct bank *bank, int32_t unit)
{
    double rate = fmin(bank_share_above(bank, unit, RATE_ROWS, bank->spike_over), 0.99);
    int stalls = 0, rows = 0;

    if (!(rate > 0))
        return true;
    for (int back = 0; back < RATE_ROWS; back++) {
        double value = bank_value(bank, unit, back);
        if (!isfinite(value))
            continue;
        rows++;
        stalls += value > bank->spike_over;
        double share = (double)stalls / rows;
        double nats = (1 - share) * log((1 - share) / (1 - rate)) +
                      (stalls > 0 ? share * log(share / rate) : 0);
        if (share < rate && rows * nats > STALLS_ENDED_NATS)
            return true;
    }
    return false;
}

/* A shock that dies away holds a window up after it is gone: the newest rows must still show two
 * thirds of what the rows since the onset do. Stalls come and go by nature. */
static bool is_still_there(const struct engine *engine, const struct alarm *alarm)
{
    const struct bank *bank = &engine->banks[alarm->bank];
    int since = bank_rows_since_onset(bank, alarm->unit, alarm->level, alarm->test);
    double level = bank_mean(bank, alarm->unit, since < NEWEST_ROWS ? NEWEST_ROWS : since,
                             alarm->test);
    double newest = bank_mean(bank, alarm->unit, NEWEST_ROWS, alarm->test);

    if (alarm->by_rate)
        return !have_stalls_ended(bank, alarm->unit);
    return !isfinite(newest) || newest >= LASTS_SHARE * level;
}

/* An alarm must stand until it is decided; another unit's alarm starts the wait anew. */
static void settle(struct engine *engine, const struct alarm *strongest)
{
    struct alarm still;
    bool is_proven = false;

    if (engine->pending_rows > 0 &&
        !alarm_stands(engine, engine->pending_bank, engine->pending_unit, &still))
        engine->pending_rows = 0;
    if (engine->pending_rows == 0) {
        engine->pending_bank = strongest->bank;
        engine->pending_unit = strongest->unit;
        engine->pending_rows = 1 + settle_rows(strongest);
        engine->pending_extended = 0;
    }
    if (engine->pending_rows > 1 && engine->pending_extended == 0 &&
        alarm_extent_is_clear(engine, strongest)) {
        is_proven = alarm_is_beyond_chance(engine, strongest);
        engine->pending_rows = is_proven ? 1 : engine->pending_rows;
    }
    if (--engine->pending_rows > 0)
        return;
    if (!alarm_stands(engine, engine->pending_bank, engine->pending_unit, &still) ||
        strongest->bank == engine->pending_bank)
        still = *strongest;
    else
        is_proven = false; /* that was of another */
    if (is_still_there(engine, &still) && (is_proven || alarm_is_beyond_chance(engine, &still)))
        decide(engine, &still);
    else
        engine->pending_rows = 1;
}

void slow_row(struct engine *engine)
{
    struct alarm strongest = {.level = 0};
    bool found = false;

    clear_open(engine);
    if (engine->rows < WARM_UP_ROWS + LEARN_ROWS)
        return;
    alarm_mark_covered(engine);
    for (int b = 0; b < BANK_COUNT && !found; b++)
        found = alarm_is_tested(engine, (enum bank_kind)b) &&
                alarm_find(engine, (enum bank_kind)b, &strongest);
    if (found)
        settle(engine, &strongest);
    else
        engine->pending_rows = 0;
}
