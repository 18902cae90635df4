/* A stop is judged by who is silent, who still computes and who only waits. */
#include "detectors/liveness.h"

#include "detectors/domains.h"
#include "detectors/engine_state.h"
#include "detectors/stats/robust.h"

#include <math.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

/* Silence and waiting are judged after so many usual steps and usual gaps between beats, within
 * bounds. An event on the silent tray halves the time. */
static const double STOPPED_STEPS = 10, SILENT_GAPS = 3;
static const int64_t CRASH_LEAST_NS = 30 * SECOND, HANG_LEAST_NS = 90 * SECOND;
static const int64_t CONFIRMED_LEAST_NS = 15 * SECOND, SILENT_LEAST_NS = 15 * SECOND;
/* A start may load data and compile for long; a pause that ranks name themselves may be long as
 * well. */
static const int64_t START_LIMIT_NS = 1800 * SECOND, PAUSE_LIMIT_NS = 1800 * SECOND;
/* Clocks of ranks differ, and a step takes its time. */
static const int64_t RECORD_SLACK_NS = 120 * SECOND;
/* After a time without anybody who listened: until the last of the senders has come back (they wait
 * half a minute at most), and how long to wait for the first one. */
static const int64_t LISTEN_NS = 60 * SECOND, DEAF_MOST_NS = 600 * SECOND;
enum { RECORD_DOMAINS_MOST = 8 };

static const char *const PHASE_NAMES[PHASE_COUNT] = {
    [PHASE_NONE] = "",           [PHASE_INIT] = "init",
    [PHASE_COMPUTE] = "compute", [PHASE_ALLREDUCE] = "allreduce",
    [PHASE_DATA] = "data",       [PHASE_CHECKPOINT] = "checkpoint",
    [PHASE_EVAL] = "eval",       [PHASE_OTHER] = "other",
};

enum phase liveness_phase(const char *bytes, unsigned long length)
{
    for (int p = PHASE_INIT; p < PHASE_OTHER; p++)
        if (strlen(PHASE_NAMES[p]) == length && memcmp(PHASE_NAMES[p], bytes, length) == 0)
            return (enum phase)p;
    return length == 0 ? PHASE_NONE : PHASE_OTHER;
}

const char *liveness_phase_name(enum phase phase)
{
    return PHASE_NAMES[phase];
}

void liveness_init(struct liveness *live, int32_t ranks)
{
    size_t count = (size_t)ranks;

    memset(live, 0, sizeof *live);
    live->ranks = ranks;
    live->seen_ns = xcalloc(count, sizeof(int64_t));
    live->step_ns = xcalloc(count, sizeof(int64_t));
    live->beat_ns = xcalloc(count, sizeof(int64_t));
    live->beat_step = xcalloc(count, sizeof(int64_t));
    live->gauge_ns = xcalloc(count, sizeof(int64_t));
    live->own_ns = xcalloc(count, sizeof(int64_t));
    live->stale_ns = xcalloc(count, sizeof(int64_t));
    live->phase = xcalloc(count, 1);
    live->progress_step = JOB_NONE;
}

void liveness_done(struct liveness *live)
{
    xfree(live->seen_ns);
    xfree(live->step_ns);
    xfree(live->beat_ns);
    xfree(live->beat_step);
    xfree(live->gauge_ns);
    xfree(live->own_ns);
    xfree(live->stale_ns);
    xfree(live->phase);
    memset(live, 0, sizeof *live);
}

void liveness_restart(struct liveness *live)
{
    live->progress_step = JOB_NONE;
    live->ahead_step = 0;
    live->progress_ns = 0;
    live->finished = false;
    live->told = false;
    live->quiet_until_ns = 0;
    memset(live->phase, 0, (size_t)live->ranks);
    memset(live->beat_ns, 0, (size_t)live->ranks * sizeof(int64_t));
}

void liveness_gauges(struct liveness *live, int32_t rank, int64_t time_ns)
{
    int64_t gap = time_ns - live->gauge_ns[rank];

    if (live->gauge_ns[rank] > 0 && gap > SECOND && gap < 120 * SECOND) {
        double weight = live->gauge_gap_ns > 0 ? 0.01 : 1;
        live->gauge_gap_ns += weight * ((double)gap - live->gauge_gap_ns);
    }
    if (gap > 0)
        live->gauge_ns[rank] = time_ns;
}

void liveness_progress(struct engine *engine, int64_t step)
{
    struct liveness *live = &engine->live;

    if (step <= live->progress_step)
        return;
    if (live->progress_ns > 0 && engine->rows > WARM_UP_ROWS && !live->told &&
        engine->now_ns - live->progress_ns > live->longest_gap_ns)
        live->longest_gap_ns = engine->now_ns - live->progress_ns;
    live->progress_step = step;
    live->progress_ns = engine->now_ns;
    live->told = false;
}

void liveness_ahead(struct engine *engine, int32_t rank, int64_t step)
{
    struct liveness *live = &engine->live;

    if (step - 1 <= live->progress_step)
        return;
    if (live->ranks == 1 || (live->ahead_step > 0 && live->ahead_rank != rank))
        liveness_progress(
            engine, (live->ahead_step < step && live->ranks > 1 ? live->ahead_step : step) - 1);
    live->ahead_step = step;
    live->ahead_rank = rank;
}

static void put_off(int64_t *times_ns, int32_t count, int64_t by_ns)
{
    for (int32_t i = 0; i < count; i++)
        if (times_ns[i] > 0)
            times_ns[i] += by_ns;
}

static void skip_time(struct liveness *live, int64_t by_ns)
{
    put_off(live->seen_ns, live->ranks, by_ns);
    put_off(live->step_ns, live->ranks, by_ns);
    put_off(live->beat_ns, live->ranks, by_ns);
    put_off(&live->progress_ns, 1, by_ns);
}

void liveness_resume(struct liveness *live, int64_t from_ns, int64_t now_ns)
{
    skip_time(live, now_ns - from_ns);
    live->deaf_from_ns = now_ns;
    live->deaf_until_ns = now_ns + DEAF_MOST_NS;
}

void liveness_heard(struct liveness *live, int64_t now_ns)
{
    if (live->deaf_from_ns == 0)
        return;
    skip_time(live, now_ns - live->deaf_from_ns);
    live->deaf_from_ns = 0;
    live->deaf_until_ns = now_ns + LISTEN_NS;
}

/* What each rank does while the job stands. */
struct census {
    int32_t silent, computing, waiting, pausing, known;
};

double liveness_speaking_gap(const struct liveness *live)
{
    return live->beat_gap_ns > 0 ? live->beat_gap_ns : live->gauge_gap_ns;
}

static int64_t silence_limit(const struct engine *engine)
{
    double limit = SILENT_GAPS * liveness_speaking_gap(&engine->live);

    return (int64_t)fmax(limit, (double)SILENT_LEAST_NS);
}

/* Ranks speak in rounds, and the first of a round must not make all others look silent: silence
 * counts up to the time that a quarter of the ranks have passed, or to long ago when hardly any
 * rank speaks. */
static void set_round_time(struct engine *engine)
{
    struct liveness *live = &engine->live;
    int64_t newest = 0, long_ago = engine->now_ns - 2 * silence_limit(engine);
    size_t n = 0;

    for (int32_t r = 0; r < live->ranks; r++)
        newest = live->seen_ns[r] > newest ? live->seen_ns[r] : newest;
    for (int32_t r = 0; r < live->ranks; r++)
        if (live->seen_ns[r] > 0)
            engine->model.scratch[n++] = (float)((double)(newest - live->seen_ns[r]) / 1e6);
    if (n == 0) {
        live->round_ns = engine->now_ns;
        return;
    }
    double quarter_ms = robust_select(engine->model.scratch, n, n / 4);
    live->round_ns = newest - (int64_t)(quarter_ms * 1e6);
    if (live->round_ns < long_ago)
        live->round_ns = long_ago;
}

static bool is_silent(const struct engine *engine, int32_t rank)
{
    const struct liveness *live = &engine->live;

    int64_t from_ns = live->seen_ns[rank] > live->floor_ns ? live->seen_ns[rank] : live->floor_ns;

    return live->seen_ns[rank] > 0 && live->round_ns - from_ns > silence_limit(engine);
}

/* Ranks heard of within the limit, by engine time. When nobody is, the monitor is blind or
 * everything is gone, and who was the first to be late means nothing. */
static int32_t speaking_ranks(const struct engine *engine)
{
    int32_t speaking = 0;

    for (int32_t r = 0; r < engine->live.ranks; r++)
        speaking += engine->live.seen_ns[r] > 0 &&
                    engine->now_ns - engine->live.seen_ns[r] <= silence_limit(engine);
    return speaking;
}

static struct census take_census(const struct engine *engine)
{
    const struct liveness *live = &engine->live;
    struct census census = {0};

    for (int32_t r = 0; r < live->ranks; r++) {
        if (live->seen_ns[r] == 0)
            continue;
        census.known++;
        if (is_silent(engine, r)) {
            census.silent++;
            continue;
        }
        switch ((enum phase)live->phase[r]) {
        case PHASE_CHECKPOINT:
        case PHASE_EVAL:
        case PHASE_INIT:
            census.pausing++;
            break;
        case PHASE_ALLREDUCE:
            census.waiting++;
            break;
        case PHASE_NONE:
        case PHASE_COMPUTE:
        case PHASE_DATA:
        case PHASE_OTHER:
        case PHASE_COUNT:
            census.computing++;
            break;
        }
    }
    return census;
}

/* True when every rank in flags sits under a hard verdict that is open: it needs no second one. */
static bool is_explained(const struct engine *engine, const uint8_t *flags)
{
    for (int32_t r = 0; r < engine->job->world_size; r++) {
        bool explained = flags[r] == 0;
        for (int i = 0; i < engine->open_count && !explained; i++) {
            const struct open_verdict *open = engine->open[i];
            explained = open->bank == BANK_COUNT && open->covers[r] != 0 && open->verdict.evict;
        }
        if (!explained)
            return false;
    }
    return true;
}

static bool is_tray_accused(const struct engine *engine, int32_t tray)
{
    const struct hardware *hardware = &engine->hardware;

    if (tray == JOB_NONE || tray >= hardware->tray_count)
        return false;
    return hardware->not_ready_ns[tray] > 0 ||
           (hardware->trays[tray].first_ns > 0 && hardware->trays[tray].worst >= XID_CONTAINED);
}

/* Silent ranks whose tray or rack an event accuses as well. */
static bool is_silence_confirmed(const struct engine *engine)
{
    for (int32_t r = 0; r < engine->job->world_size; r++)
        if (is_silent(engine, r) && is_tray_accused(engine, engine->job->ranks[r].tray))
            return true;
    return false;
}

static void add_victims(struct engine *engine, struct verdict *verdict, const uint8_t *guilty)
{
    for (int32_t r = 0; r < engine->job->world_size; r++)
        if (guilty[r] == 0 && engine->live.seen_ns[r] > 0)
            verdict_add_victim(verdict, r);
}

/* Records that were handed in speak of this stop: their newest operation was enqueued about when
 * the last step ended, and not later than now. */
static bool is_finding_of_stop(const struct engine *engine)
{
    const struct flight_finding *finding = &engine->finding;

    return finding->reason != FLIGHT_NOTHING &&
           (finding->newest_ns == 0 ||
            (finding->newest_ns > engine->live.progress_ns - RECORD_SLACK_NS &&
             finding->newest_ns < engine->now_ns + RECORD_SLACK_NS));
}

/* The library runs ahead of the device: who never enqueued was kept by its host, who did not finish
 * what its peers finished by its device. */
static enum cause cause_of_finding(enum flight_reason reason)
{
    switch (reason) {
    case FLIGHT_NEVER_ENTERED:
        return CAUSE_HOST;
    case FLIGHT_LEFT_BEHIND:
        return CAUSE_GPU;
    case FLIGHT_TRANSPORT:
        return CAUSE_NETWORK;
    case FLIGHT_NOTHING:
    case FLIGHT_NO_RECORD:
    case FLIGHT_MISMATCH:
    case FLIGHT_REASON_COUNT:
        break;
    }
    return CAUSE_UNKNOWN;
}

static void put_finding(struct engine *engine, struct verdict *verdict)
{
    const struct flight_finding *finding = &engine->finding;

    verdict->cause = cause_of_finding(finding->reason);
    verdict_add_evidence_text(verdict, "recorded", flight_reason_name(finding->reason));
    if (finding->waits_in.length > 0)
        verdict_add_evidence_text(verdict, "waits_in", finding->waits_in.bytes);
    if (finding->lowest.length > 0)
        verdict_add_evidence_text(verdict, "lacking", finding->lowest.bytes);
    if (finding->unrecorded.length > 0)
        verdict_add_evidence_text(verdict, "without_record", finding->unrecorded.bytes);
    verdict_add_evidence(verdict, "ranks_with_record", finding->recorded);
    engine->finding_told = true;
}

/* census: NULL where only records speak. */
static void raise_stop(struct engine *engine, enum verdict_kind kind, const struct domain *domain,
                       const uint8_t *guilty, bool evict, const struct census *census)
{
    struct verdict verdict = verdict_start(engine, kind, domain->scope);

    verdict_set_domain(engine, &verdict, domain->index);
    if (domain->scope != SCOPE_JOB)
        verdict_fill_ranks(engine, &verdict, guilty);
    add_victims(engine, &verdict, guilty);
    verdict.evict = evict;
    verdict.gain = 1;
    verdict.since_step = engine->live.progress_step;
    if (census != NULL) {
        verdict_add_evidence(&verdict, "seconds_without_step",
                             (double)(engine->now_ns - engine->live.progress_ns) / 1e9);
        verdict_add_evidence(&verdict, "silent_ranks", census->silent);
        verdict_add_evidence(&verdict, "waiting_ranks", census->waiting);
        verdict_add_evidence(&verdict, "computing_ranks", census->computing);
    }
    engine_put_past(engine, &verdict, guilty);
    if (census == NULL || is_finding_of_stop(engine))
        put_finding(engine, &verdict);
    if (census == NULL && engine->finding.newest_ns > 0)
        verdict.time_ns = engine->finding.newest_ns;
    (void)engine_open(engine, verdict, guilty);
    engine->live.told = true;
}

static void flag_domain(const struct engine *engine, const struct domain *domain, uint8_t *flags)
{
    for (int32_t r = 0; r < engine->job->world_size; r++)
        flags[r] = domain_holds(engine->grid, domain, r);
}

/* The rack of the ranks that fell silent first, when those are most of a rack; JOB_NONE otherwise.
 */
static int32_t first_silent_rack(const struct engine *engine, const struct domain *domains,
                                 int count)
{
    int64_t best_ns = INT64_MAX;
    int32_t best = JOB_NONE;

    for (int i = 0; i < count; i++) {
        int64_t last_ns = 0;
        if (domains[i].scope != SCOPE_RACK)
            continue;
        for (int32_t m = 0; m < grid_size(engine->grid, CUT_RACK, domains[i].index); m++) {
            int32_t rank = grid_members(engine->grid, CUT_RACK, domains[i].index)[m];
            if (engine->live.seen_ns[rank] > last_ns)
                last_ns = engine->live.seen_ns[rank];
        }
        if (last_ns < best_ns) {
            best_ns = last_ns;
            best = domains[i].index;
        }
    }
    return best;
}

/* Ranks that went silent while others still speak: each domain of them crashed. Several racks: the
 * one that fell silent first is the root, the others fell with the job. */
static void tell_crash(struct engine *engine, const struct census *census)
{
    struct domain domains[DOMAINS_MAX];
    AUTO_FREE uint8_t *guilty = xcalloc((size_t)engine->job->world_size, 1);
    int count;
    int32_t rack;

    for (int32_t r = 0; r < engine->job->world_size; r++)
        engine->flags[r] = is_silent(engine, r) ? SUSPECT_ALONE : SUSPECT_NO;
    if (is_explained(engine, engine->flags)) {
        engine->live.told = true;
        return;
    }
    count = domains_solve(engine->grid, engine->flags, domains);
    rack = first_silent_rack(engine, domains, count);
    if (rack != JOB_NONE) {
        domains[0] = (struct domain){.scope = SCOPE_RACK, .index = rack, .cut = CUT_RACK};
        count = 1;
    }
    for (int i = 0; i < count && i < 8; i++) {
        flag_domain(engine, &domains[i], guilty);
        if (!is_explained(engine, guilty))
            raise_stop(engine, VERDICT_CRASH, &domains[i], guilty, true, census);
    }
}

static bool shares_unit(const struct engine *engine, enum cut cut, const uint8_t *flags,
                        int32_t *ret_unit)
{
    int32_t unit = JOB_NONE;

    for (int32_t r = 0; r < engine->job->world_size; r++) {
        if (flags[r] == 0)
            continue;
        int32_t of = grid_of(engine->grid, cut, r);
        if (of == JOB_NONE || (unit != JOB_NONE && of != unit))
            return false;
        unit = of;
    }
    *ret_unit = unit;
    return unit != JOB_NONE;
}

/* The narrowest unit that holds all ranks which never came to the collective. */
static struct domain enclosing(const struct engine *engine, const uint8_t *flags, int32_t flagged)
{
    static const struct {
        enum cut cut;
        enum scope scope;
    } WIDER[] = {{CUT_TRAY, SCOPE_TRAY}, {CUT_REPLICA, SCOPE_REPLICA}, {CUT_RACK, SCOPE_RACK}};
    int32_t unit;

    if (flagged == 1)
        for (int32_t r = 0; r < engine->job->world_size; r++)
            if (flags[r] != 0)
                return (struct domain){.scope = SCOPE_RANK, .index = r, .cut = CUT_COUNT};
    for (size_t i = 0; i < sizeof WIDER / sizeof WIDER[0]; i++)
        if (shares_unit(engine, WIDER[i].cut, flags, &unit))
            return (struct domain){.scope = WIDER[i].scope, .index = unit, .cut = WIDER[i].cut};
    return (struct domain){.scope = SCOPE_JOB, .index = 0, .cut = CUT_COUNT};
}

/* A hardware verdict of this very stop says already why nobody steps. */
static bool is_stop_explained(const struct engine *engine)
{
    for (int i = 0; i < engine->open_count; i++) {
        const struct verdict *verdict = &engine->open[i]->verdict;
        if (verdict->kind == VERDICT_FAULT && verdict->evict &&
            verdict->time_ns >= engine->live.progress_ns)
            return true;
    }
    return false;
}

static int64_t foremost_step(const struct liveness *live)
{
    int64_t foremost = 0;

    for (int32_t r = 0; r < live->ranks; r++)
        if (live->beat_ns[r] > 0 && live->beat_step[r] > foremost)
            foremost = live->beat_step[r];
    return foremost;
}

/* Flags ranks that beat in an earlier step than the others; none, when those are the most. */
static int32_t flag_behind(struct engine *engine, int64_t foremost)
{
    const struct liveness *live = &engine->live;
    int32_t behind = 0, speaking = 0;

    for (int32_t r = 0; r < live->ranks; r++) {
        bool speaks = live->beat_ns[r] > 0;
        engine->flags[r] = speaks && live->beat_step[r] < foremost;
        speaking += speaks;
        behind += engine->flags[r];
    }
    return 4 * behind <= speaking ? behind : 0;
}

/* Domains of the records' suspects; 0 when they name nobody, or too many to be one fault. */
static int domains_of_finding(struct engine *engine, struct domain *domains)
{
    const struct flight_finding *finding = &engine->finding;
    int count;

    memset(engine->flags, 0, (size_t)engine->job->world_size);
    if (finding->reason == FLIGHT_TRANSPORT)
        return 0;
    for (size_t i = 0; i < finding->rank_count; i++)
        engine->flags[finding->ranks[i]] = SUSPECT_ALONE;
    count = domains_solve(engine->grid, engine->flags, domains);
    return count <= RECORD_DOMAINS_MOST ? count : 0;
}

/* One hang for each domain that the records accuse, else one of the job. census may be NULL. */
static void tell_finding(struct engine *engine, const struct census *census)
{
    struct domain domains[DOMAINS_MAX];
    AUTO_FREE uint8_t *guilty = xcalloc((size_t)engine->job->world_size, 1);
    int count = domains_of_finding(engine, domains);

    if (count == 0) {
        domains[0] = (struct domain){.scope = SCOPE_JOB, .index = 0, .cut = CUT_COUNT};
        raise_stop(engine, VERDICT_HANG, &domains[0], guilty, false, census);
    }
    for (int i = 0; i < count; i++) {
        flag_domain(engine, &domains[i], guilty);
        raise_stop(engine, VERDICT_HANG, &domains[i], guilty, false, census);
    }
}

/* Everybody speaks and nobody steps: the suspects are those who compute while the others wait. */
static void tell_hang(struct engine *engine, const struct census *census)
{
    const struct liveness *live = &engine->live;
    AUTO_FREE uint8_t *guilty = xcalloc((size_t)engine->job->world_size, 1);
    int32_t flagged = 0;
    struct domain domain = {.scope = SCOPE_JOB, .index = 0, .cut = CUT_COUNT};

    if (is_finding_of_stop(engine)) {
        tell_finding(engine, census);
        return;
    }
    int64_t foremost = foremost_step(live);
    bool some_behind = flag_behind(engine, foremost) > 0;

    for (int32_t r = 0; r < live->ranks; r++) {
        enum phase phase = (enum phase)live->phase[r];
        if (!some_behind)
            engine->flags[r] = live->seen_ns[r] > 0 && phase != PHASE_ALLREDUCE &&
                               phase != PHASE_NONE;
        flagged += engine->flags[r];
    }
    if (flagged > 0 && census->known >= 2 * flagged)
        domain = enclosing(engine, engine->flags, flagged);
    if (domain.scope != SCOPE_JOB)
        memcpy(guilty, engine->flags, (size_t)live->ranks);
    raise_stop(engine, VERDICT_HANG, &domain, guilty, false, census);
}

void engine_take_flight(struct engine *engine, const struct flight *flight)
{
    flight_finding_done(&engine->finding);
    engine->finding = flight_judge(flight, engine->job->world_size);
    engine->finding_told = false;
}

void engine_tell_flight(struct engine *engine)
{
    if (engine->params.enabled && !engine->finding_told && engine->finding.reason != FLIGHT_NOTHING)
        tell_finding(engine, NULL);
}

/* How long without a step is a stop, for a kind of stop. */
static int64_t stop_limit(const struct engine *engine, int64_t least_ns)
{
    double step_ns = pace_recent_ms(&engine->pace) * 1e6;
    double limit = fmax((double)least_ns, SILENT_GAPS * engine->live.beat_gap_ns);

    if (isfinite(step_ns))
        limit = fmax(limit, STOPPED_STEPS * step_ns);
    limit = fmax(limit, 1.5 * (double)engine->live.longest_gap_ns);
    return (int64_t)fmin(limit, (double)engine->params.hang_after_ns);
}

/* A start that never comes to a first step. */
static void judge_start(struct engine *engine)
{
    struct domain domain = {.scope = SCOPE_JOB, .index = 0, .cut = CUT_COUNT};

    if (engine->attempt_time_ns == 0 || engine->now_ns - engine->attempt_time_ns <= START_LIMIT_NS)
        return;
    AUTO_FREE uint8_t *nobody = xcalloc((size_t)engine->live.ranks, 1);
    set_round_time(engine);
    struct census census = take_census(engine);
    engine->live.progress_ns = engine->attempt_time_ns;
    raise_stop(engine, VERDICT_HANG, &domain, nobody, false, &census);
}

void liveness_check(struct engine *engine)
{
    struct liveness *live = &engine->live;
    int64_t stopped_ns;

    if (live->finished || live->told || engine->now_ns < live->quiet_until_ns ||
        engine->now_ns < live->deaf_until_ns || engine->now_ns - live->checked_ns < SECOND)
        return;
    if (live->progress_step < 0 || engine->rows == 0) {
        judge_start(engine);
        return;
    }
    stopped_ns = engine->now_ns - live->progress_ns;
    if (stopped_ns < CONFIRMED_LEAST_NS || (double)stopped_ns < live->beat_gap_ns)
        return;
    live->checked_ns = engine->now_ns;
    set_round_time(engine);
    struct census census = take_census(engine);
    if (2 * census.pausing > census.known && stopped_ns < PAUSE_LIMIT_NS)
        return;
    /* Who fell silent in the last step is known after the silence and the round that shows it. */
    int64_t all_known_ns = (int64_t)((SILENT_GAPS + 1) * liveness_speaking_gap(live));
    int64_t hang_least_ns = all_known_ns > HANG_LEAST_NS ? all_known_ns : HANG_LEAST_NS;
    bool some_speak = census.silent > 0 && 20 * speaking_ranks(engine) >= census.known;
    bool confirmed = census.silent > 0 && is_silence_confirmed(engine);
    if (some_speak &&
        stopped_ns > stop_limit(engine, confirmed ? CONFIRMED_LEAST_NS : CRASH_LEAST_NS))
        tell_crash(engine, &census);
    else if (stopped_ns > stop_limit(engine, hang_least_ns) && is_stop_explained(engine))
        live->told = true;
    else if (stopped_ns > stop_limit(engine, hang_least_ns))
        tell_hang(engine, &census);
}
