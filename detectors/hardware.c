/* Events become suspicions of trays and racks; a suspicion is told when it has been held long
 * enough to know whether the accused ranks go on. Burst folding: what happens in one rack within a
 * few seconds is one fault of the rack, what happens in one tray is one fault of the tray. */
#include "detectors/hardware.h"

#include "detectors/domains.h"
#include "detectors/engine_state.h"

#include <math.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

static const int64_t CHECK_NS = SECOND / 2, GONE_MARGIN_NS = 2 * SECOND;
static const double HOLD_STEPS = 3;
/* Shorter than what a stop without an event takes to be told. */
static const int64_t STOPPED_NS = 15 * SECOND;
static const double STOPPED_STEPS = 6;
/* A rack is accused as a whole when this part of its trays is, while none of them is told. */
static const double RACK_SHARE = 0.5;
enum { RACK_TRAYS_LEAST = 3 };
/* A NIC that goes down heals itself; a second time within this, after the first was over, it is
 * broken. */
static const int64_t FLAP_NS = 300 * SECOND, FLAP_LEAST_NS = 5 * SECOND;

void hardware_done(struct hardware *hardware)
{
    xfree(hardware->trays);
    xfree(hardware->racks);
    xfree(hardware->not_ready_ns);
    xfree(hardware->nic_down_ns);
    memset(hardware, 0, sizeof *hardware);
}

/* Trays and racks may come to be known after the engine started. */
static void fit(struct hardware *hardware, const struct job *job)
{
    if (hardware->tray_count < job->tray_count) {
        size_t old = (size_t)hardware->tray_count, count = (size_t)job->tray_count;
        hardware->trays = xrealloc(hardware->trays, count, sizeof *hardware->trays);
        hardware->not_ready_ns = xrealloc(hardware->not_ready_ns, count, sizeof(int64_t));
        memset(hardware->trays + old, 0, (count - old) * sizeof *hardware->trays);
        hardware->nic_down_ns = xrealloc(hardware->nic_down_ns, count, sizeof(int64_t));
        memset(hardware->not_ready_ns + old, 0, (count - old) * sizeof(int64_t));
        memset(hardware->nic_down_ns + old, 0, (count - old) * sizeof(int64_t));
        hardware->tray_count = job->tray_count;
    }
    if (hardware->rack_count < job->rack_count) {
        size_t old = (size_t)hardware->rack_count, count = (size_t)job->rack_count;
        hardware->racks = xrealloc(hardware->racks, count, sizeof *hardware->racks);
        memset(hardware->racks + old, 0, (count - old) * sizeof *hardware->racks);
        hardware->rack_count = job->rack_count;
    }
}

static int32_t find_named(const struct job *job, struct view name, bool rack)
{
    char text[VERDICT_ID_BYTES];

    if (name.length == 0 || name.length >= sizeof text)
        return JOB_NONE;
    memcpy(text, name.bytes, name.length);
    text[name.length] = '\0';
    return rack ? job_find_rack(job, text) : job_find_tray(job, text);
}

static int32_t sample_int(const struct sample *sample, enum field field)
{
    if (!sample_has(sample, field) || !(fabs(sample->values[field]) < 1e6))
        return JOB_NONE;
    return (int32_t)sample->values[field];
}

/* What a code of the fifth NVLink generation means by itself, else by the words it comes with. */
static struct nvlink5 decode(const struct sample *sample)
{
    double subcode = sample_has(sample, FIELD_SUBCODE) ? sample->values[FIELD_SUBCODE] : -1;

    return nvlink5_decode(sample_int(sample, FIELD_CODE),
                          subcode >= 0 && subcode < 5e9 ? (int64_t)subcode : -1, sample->message);
}

static enum xid_class class_of_xid(const struct sample *sample)
{
    int32_t code = sample_int(sample, FIELD_CODE);
    struct nvlink5 report;

    if (!nvlink5_is_code(code))
        return xid_class_of(code, JOB_NONE);
    report = decode(sample);
    if (report.severity == NVLINK5_UNKNOWN)
        return xid_class_of(code, report.subcode);
    return report.severity == NVLINK5_FATAL ? XID_NVLINK : XID_INFO;
}

static enum xid_class class_of(const struct sample *sample)
{
    static const struct {
        const char *kind;
        enum xid_class class;
    } KINDS[] = {{"nvlink_error", XID_NVLINK}, {"nvlink_domain_down", XID_FATAL},
                 {"nic_down", XID_INFO},       {"ecc", XID_INFO},
                 {"thermal", XID_INFO},        {"power", XID_INFO},
                 {"sxid", XID_NVLINK}};

    if (view_equals(sample->kind, "xid"))
        return class_of_xid(sample);
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
        if (view_equals(sample->kind, KINDS[i].kind))
            return KINDS[i].class;
    return XID_INFO;
}

static void note(struct hardware *hardware, struct suspicion *suspicion,
                 const struct sample *sample, enum xid_class class, int64_t now_ns)
{
    int64_t gpu = JOB_NONE;

    if (suspicion->first_ns > 0 && suspicion->told && class <= suspicion->worst) {
        suspicion->events++;
        suspicion->last_ns = now_ns;
        return;
    }
    if (suspicion->first_ns == 0 || suspicion->told || class > suspicion->worst) {
        if (suspicion->first_ns == 0 || suspicion->told) {
            suspicion->first_ns = now_ns;
            hardware->waiting++;
        }
        suspicion->worst = class;
        suspicion->code = sample_int(sample, FIELD_CODE);
        suspicion->subcode = JOB_NONE;
        suspicion->unit[0] = '\0';
        if (view_equals(sample->kind, "xid") && nvlink5_is_code(suspicion->code)) {
            struct nvlink5 report = decode(sample);
            suspicion->subcode = report.subcode;
            (void)text_copy(suspicion->unit, sizeof suspicion->unit, report.unit);
        }
        suspicion->gpus = 0;
        suspicion->whole = false;
        suspicion->told = false;
        size_t length = sample->kind.length < sizeof suspicion->kind - 1
                            ? sample->kind.length
                            : sizeof suspicion->kind - 1;
        memcpy(suspicion->kind, sample->kind.bytes, length);
        suspicion->kind[length] = '\0';
    }
    suspicion->events++;
    suspicion->last_ns = now_ns;
    if (class < suspicion->worst)
        return;
    /* A network card is the tray's, whatever number it has. */
    if (!view_equals(sample->kind, "nic_down") && text_parse_int(sample->gpu, &gpu) && gpu >= 0 &&
        gpu < 32)
        suspicion->gpus |= 1u << gpu;
    else
        suspicion->whole = true;
}

/* The event is the root of what was only seen as slowness inside its domain: one fault, one
 * verdict. */
static void supersede_slow(struct engine *engine, const uint8_t *ranks)
{
    for (int i = engine->open_count - 1; i >= 0; i--) {
        const struct open_verdict *open = engine->open[i];
        bool inside = open->verdict.kind == VERDICT_SLOW && open->bank != BANK_COUNT;

        for (int32_t r = 0; inside && r < engine->job->world_size; r++)
            inside = open->covers[r] == 0 || ranks[r] != 0;
        if (inside)
            engine_close(engine, i, true);
    }
}

static void tell_switch_tray(struct engine *engine, const struct sample *sample, int32_t rack)
{
    struct verdict verdict = verdict_start(engine, VERDICT_FAULT, SCOPE_SWITCH_TRAY);
    int32_t number = sample_int(sample, FIELD_TRAY);
    AUTO_TEXT id = {0};

    text_addf(&id, "%s:%d", engine->job->racks[rack].name, (int)number);
    text_copy(verdict.id, sizeof verdict.id, id.bytes);
    verdict.cause = CAUSE_NVLINK;
    verdict_add_evidence_text(&verdict, "event", "nvswitch_tray_fault");
    if (engine_find_open(engine, SCOPE_SWITCH_TRAY, verdict.id) != NULL) {
        verdict_done(&verdict);
        return;
    }
    for (int i = engine->open_count - 1; i >= 0; i--) {
        const struct verdict *slow = &engine->open[i]->verdict;
        if (slow->kind == VERDICT_SLOW && slow->scope == SCOPE_RACK &&
            strcmp(slow->id, engine->job->racks[rack].name) == 0)
            engine_close(engine, i, true);
    }
    (void)engine_open(engine, verdict, NULL);
}

static bool is_flapping(struct engine *engine, int32_t tray)
{
    int64_t *last_ns = &engine->hardware.nic_down_ns[tray];
    int64_t since_ns = engine->now_ns - *last_ns;
    bool again = *last_ns > 0 && since_ns >= FLAP_LEAST_NS && since_ns <= FLAP_NS;

    *last_ns = engine->now_ns;
    return again;
}

void hardware_event(struct engine *engine, const struct sample *sample)
{
    struct hardware *hardware = &engine->hardware;
    int32_t rack = find_named(engine->job, sample->rack, true);
    int32_t tray = find_named(engine->job, sample->host, false);
    enum xid_class class = class_of(sample);

    fit(hardware, engine->job);
    if (view_equals(sample->kind, "nvswitch_tray_fault")) {
        if (rack != JOB_NONE && grid_size(engine->grid, CUT_RACK, rack) > 0)
            tell_switch_tray(engine, sample, rack);
        return;
    }
    if (tray != JOB_NONE && view_equals(sample->kind, "node_not_ready"))
        hardware->not_ready_ns[tray] = engine->now_ns;
    else if (tray != JOB_NONE && view_equals(sample->kind, "node_ready"))
        hardware->not_ready_ns[tray] = 0;
    if (tray != JOB_NONE && view_equals(sample->kind, "nic_down") && is_flapping(engine, tray))
        class = XID_NVLINK;
    if (class == XID_INFO || class == XID_APPLICATION)
        return;
    if (tray != JOB_NONE)
        note(hardware, &hardware->trays[tray], sample, class, engine->now_ns);
    else if (rack != JOB_NONE)
        note(hardware, &hardware->racks[rack], sample, class, engine->now_ns);
}

/* Did any of the domain's ranks finish a step that began after the event? */
static bool goes_on(const struct engine *engine, const struct domain *domain, int64_t since_ns)
{
    double step_ns = pace_recent_ms(&engine->pace) * 1e6;
    int64_t after = since_ns + (int64_t)(isfinite(step_ns) ? 1.5 * step_ns : 0);
    int32_t going = 0, all = 0;

    for (int32_t r = 0; r < engine->job->world_size; r++) {
        if (!domain_holds(engine->grid, domain, r) || engine->live.step_ns[r] == 0)
            continue;
        all++;
        going += engine->live.step_ns[r] > after;
    }
    return all > 0 && 2 * going >= all;
}

static struct domain domain_of(const struct engine *engine, const struct suspicion *suspicion,
                               int32_t tray)
{
    const struct grid *grid = engine->grid;

    if (!suspicion->whole && suspicion->gpus != 0 && (suspicion->gpus & (suspicion->gpus - 1)) == 0)
        for (int32_t i = 0; i < grid_size(grid, CUT_TRAY, tray); i++) {
            int32_t rank = grid_members(grid, CUT_TRAY, tray)[i];
            int16_t gpu = engine->job->ranks[rank].gpu;
            if (gpu >= 0 && gpu < 32 && suspicion->gpus == 1u << gpu)
                return (struct domain){.scope = SCOPE_RANK, .index = rank, .cut = CUT_COUNT};
        }
    return (struct domain){.scope = SCOPE_TRAY, .index = tray, .cut = CUT_TRAY};
}

/* Nothing was heard of these ranks since the job's last step, though of others: after a contained
 * error the process ends, while ranks that wait for somebody else speak on. */
static bool is_gone(const struct engine *engine, const uint8_t *ranks)
{
    bool others_speak = false;

    for (int32_t r = 0; r < engine->job->world_size; r++) {
        if (engine->live.seen_ns[r] <= engine->live.progress_ns + GONE_MARGIN_NS)
            continue;
        if (ranks[r] != 0)
            return false;
        others_speak = true;
    }
    return others_speak;
}

/* No step for longer than pauses of this job take: then ranks that do not go on have stopped. */
static bool is_stopped(const struct engine *engine)
{
    const struct liveness *live = &engine->live;
    double step_ns = pace_recent_ms(&engine->pace) * 1e6;
    double limit = fmax((double)STOPPED_NS, 1.5 * (double)live->longest_gap_ns);

    if (isfinite(step_ns))
        limit = fmax(limit, STOPPED_STEPS * step_ns);
    return engine->now_ns > live->quiet_until_ns &&
           (double)(engine->now_ns - live->progress_ns) >
               fmin(limit, (double)engine->params.hang_after_ns);
}

static void tell(struct engine *engine, struct suspicion *suspicion, const struct domain *domain)
{
    bool going = goes_on(engine, domain, suspicion->first_ns);
    struct verdict verdict = verdict_start(engine, VERDICT_FAULT, domain->scope);
    const struct xid_row *xid = xid_find(suspicion->code);
    AUTO_FREE uint8_t *ranks = xcalloc((size_t)engine->job->world_size, 1);

    suspicion->told = true;
    verdict.since_ns = suspicion->first_ns;
    for (int32_t r = 0; r < engine->job->world_size; r++)
        ranks[r] = domain_holds(engine->grid, domain, r);
    verdict_set_domain(engine, &verdict, domain->index);
    if (engine_find_open(engine, domain->scope, verdict.id) != NULL) {
        verdict_done(&verdict);
        return;
    }
    if (suspicion->worst == XID_CONTAINED && going)
        verdict.kind = VERDICT_INFO;
    supersede_slow(engine, ranks);
    verdict_fill_ranks(engine, &verdict, ranks);
    verdict.cause = suspicion->worst == XID_NVLINK || domain->scope == SCOPE_RACK ? CAUSE_NVLINK
                                                                                  : CAUSE_GPU;
    if (strcmp(suspicion->kind, "nic_down") == 0)
        verdict.cause = CAUSE_NETWORK;
    verdict.evict = !going && (suspicion->worst > XID_CONTAINED || is_gone(engine, ranks));
    verdict_add_evidence_text(&verdict, "event", suspicion->kind);
    if (suspicion->code != JOB_NONE)
        verdict_add_evidence(&verdict, "code", suspicion->code);
    if (xid != NULL && strcmp(suspicion->kind, "xid") == 0)
        verdict_add_evidence_text(&verdict, "meaning", xid->meaning);
    if (suspicion->subcode != JOB_NONE)
        verdict_add_evidence(&verdict, "subcode", suspicion->subcode);
    if (suspicion->unit[0] != '\0')
        verdict_add_evidence_text(&verdict, "unit", suspicion->unit);
    verdict_add_evidence(&verdict, "events", suspicion->events);
    verdict_add_evidence(&verdict, "still_makes_steps", going ? 1 : 0);
    engine_put_past(engine, &verdict, ranks);
    if (!going)
        for (int32_t r = 0; r < engine->job->world_size; r++)
            if (ranks[r] == 0 && engine->live.seen_ns[r] > 0)
                verdict_add_victim(&verdict, r);
    (void)engine_open(engine, verdict, ranks);
}

/* Trays of the rack that hold ranks, and how many of them are accused and untold since `since_ns`.
 */
static int32_t accused_trays(const struct engine *engine, int32_t rack, int32_t *ret_trays)
{
    int32_t accused = 0, trays = 0;

    for (int32_t t = 0; t < engine->hardware.tray_count; t++) {
        const struct suspicion *suspicion = &engine->hardware.trays[t];
        if (engine->job->trays[t].rack != rack || t >= engine->grid->cut[CUT_TRAY].count ||
            grid_size(engine->grid, CUT_TRAY, t) == 0)
            continue;
        trays++;
        accused += suspicion->first_ns > 0 && !suspicion->told;
    }
    *ret_trays = trays;
    return accused;
}

/* Everything reported of the rack's trays is part of the rack's fault. */
static void fold_trays(struct engine *engine, int32_t rack, struct suspicion *into)
{
    for (int32_t t = 0; t < engine->hardware.tray_count; t++) {
        struct suspicion *suspicion = &engine->hardware.trays[t];
        if (engine->job->trays[t].rack != rack || suspicion->first_ns == 0 || suspicion->told)
            continue;
        suspicion->told = true;
        engine->hardware.waiting--;
        into->events += suspicion->events;
        if (into->first_ns == 0 || suspicion->first_ns < into->first_ns)
            into->first_ns = suspicion->first_ns;
    }
}

static bool is_due(const struct engine *engine, const struct suspicion *suspicion,
                   const struct domain *domain)
{
    double step_ns = pace_recent_ms(&engine->pace) * 1e6;
    double hold = fmax((double)engine->params.event_hold_ns,
                       isfinite(step_ns) ? HOLD_STEPS * step_ns : 0);

    if (suspicion->first_ns == 0 || suspicion->told)
        return false;
    if (engine->params.event_hold_ns == 0)
        return true;
    if ((double)(engine->now_ns - suspicion->first_ns) < fmin(hold, 60.0 * (double)SECOND))
        return false;
    return is_stopped(engine) || goes_on(engine, domain, suspicion->first_ns);
}

static void check_racks(struct engine *engine)
{
    struct hardware *hardware = &engine->hardware;

    for (int32_t k = 0; k < hardware->rack_count; k++) {
        struct suspicion *rack = &hardware->racks[k];
        struct domain domain = {.scope = SCOPE_RACK, .index = k, .cut = CUT_RACK};
        int32_t trays, accused;

        if (k >= engine->grid->cut[CUT_RACK].count || grid_size(engine->grid, CUT_RACK, k) == 0)
            continue;
        if (is_due(engine, rack, &domain)) {
            fold_trays(engine, k, rack);
            hardware->waiting--;
            tell(engine, rack, &domain);
            continue;
        }
        if (rack->first_ns > 0 && !rack->told)
            continue;
        accused = accused_trays(engine, k, &trays);
        if (accused < RACK_TRAYS_LEAST || (double)accused < RACK_SHARE * trays)
            continue;
        *rack = (struct suspicion){
            .worst = XID_NVLINK, .code = JOB_NONE, .subcode = JOB_NONE, .whole = true};
        memcpy(rack->kind, "burst", sizeof "burst");
        fold_trays(engine, k, rack);
        hardware->waiting++;
    }
}

static bool is_rack_waiting(const struct engine *engine, int32_t tray)
{
    int32_t rack = engine->job->trays[tray].rack;

    return rack != JOB_NONE && rack < engine->hardware.rack_count &&
           engine->hardware.racks[rack].first_ns > 0 && !engine->hardware.racks[rack].told;
}

void hardware_check(struct engine *engine)
{
    struct hardware *hardware = &engine->hardware;

    /* While something waits every sample comes here; a look at all trays once in a while is enough.
     */
    if (hardware->waiting <= 0 ||
        (engine->now_ns - hardware->checked_ns < CHECK_NS && engine->params.event_hold_ns > 0))
        return;
    hardware->checked_ns = engine->now_ns;
    check_racks(engine);
    for (int32_t t = 0; t < hardware->tray_count; t++) {
        struct suspicion *suspicion = &hardware->trays[t];
        struct domain domain;

        if (suspicion->first_ns == 0 || suspicion->told)
            continue;
        if (t >= engine->grid->cut[CUT_TRAY].count || grid_size(engine->grid, CUT_TRAY, t) == 0) {
            suspicion->told = true; /* a spare: none of this job's business */
            hardware->waiting--;
            continue;
        }
        domain = domain_of(engine, suspicion, t);
        if (!is_due(engine, suspicion, &domain) || is_rack_waiting(engine, t))
            continue;
        hardware->waiting--;
        if (engine_is_covered(engine, grid_members(engine->grid, CUT_TRAY, t)[0]) &&
            domain.scope == SCOPE_TRAY)
            suspicion->told = true;
        else
            tell(engine, suspicion, &domain);
    }
}
