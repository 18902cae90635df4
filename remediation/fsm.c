/* Look-up, application and printing of the rule table. */
#include "remediation/fsm.h"

#include <assert.h>

static const char *const fact_names[] = {
    [FACT_OBSERVING] = "observing",
    [FACT_PERMITTED] = "permitted",
    [FACT_RESTART_ALLOWED] = "restart_allowed",
    [FACT_LEASE_HELD] = "lease_held",
    [FACT_CLOCK_TRUSTED] = "clock_trusted",
    [FACT_TELEMETRY_SEEN] = "telemetry_seen",
    [FACT_STORE_UP] = "store_up",
    [FACT_UNPAUSED] = "unpaused",
    [FACT_BREAKER_CLOSED] = "breaker_closed",
    [FACT_BUDGET_AVAILABLE] = "budget_available",
    [FACT_ATTEMPTS_LEFT] = "attempts_left",
    [FACT_WORLD_KNOWN] = "world_known",
    [FACT_WORTH_ACTING] = "worth_acting",
    [FACT_SPARE_FREE] = "spare_free",
    [FACT_JOB_FREE] = "job_free",
    [FACT_ACTED] = "acted",
};
_Static_assert(ARRAY_LEN(fact_names) == FACT_COUNT && FACT_COUNT <= 16, "every fact has a name");

static const char *const event_names[] = {
    [EVENT_ACCUSED] = "accused",
    [EVENT_CLEARED] = "cleared",
    [EVENT_SETTLED] = "settled",
    [EVENT_OBSERVER_SUSPECTED] = "observer_suspected",
    [EVENT_OBSERVER_JUDGED] = "observer_judged",
    [EVENT_REACHED_NOTIFY] = "reached_notify",
    [EVENT_REACHED_CAPTURE] = "reached_capture",
    [EVENT_REACHED_CORDON] = "reached_cordon",
    [EVENT_REACHED_DRAIN] = "reached_drain",
    [EVENT_REACHED_FENCE] = "reached_fence",
    [EVENT_REACHED_CHECKPOINT] = "reached_checkpoint",
    [EVENT_REACHED_SPARE] = "reached_spare",
    [EVENT_REACHED_RESTART] = "reached_restart",
    [EVENT_REACHED_VERIFY] = "reached_verify",
    [EVENT_REACHED_HAND_OVER] = "reached_hand_over",
    [EVENT_PLAN_ENDED] = "plan_ended",
    [EVENT_STEP_SUCCEEDED] = "step_succeeded",
    [EVENT_STEP_SKIPPED] = "step_skipped",
    [EVENT_STEP_FAILED] = "step_failed",
    [EVENT_STEP_REFUSED] = "step_refused",
    [EVENT_PODS_STUCK] = "pods_stuck",
    [EVENT_PLACED] = "placed",
    [EVENT_PROGRESSED] = "progressed",
    [EVENT_VERIFIED] = "verified",
    [EVENT_REACHED_UNCORDON] = "reached_uncordon",
    [EVENT_VALIDATED] = "validated",
    [EVENT_RETURNED] = "returned",
    [EVENT_DEADLINE_PASSED] = "deadline_passed",
    [EVENT_APPROVED] = "approved",
    [EVENT_ABORTED] = "aborted",
    [EVENT_DECLINED] = "declined",
    [EVENT_UNCORDONED] = "uncordoned",
    [EVENT_MERGED] = "merged",
};
_Static_assert(ARRAY_LEN(event_names) == FSM_EVENT_COUNT, "every event has a name");

static const struct {
    const char *name;
    bool changes_world;
    bool spends;
} commands[] = {
    [DO_NOTHING] = {"nothing", false, false},
    [DO_RECORD_WOULD] = {"record_would", false, false},
    [DO_NOTIFY] = {"notify", false, false},
    [DO_CAPTURE] = {"capture", false, false},
    [DO_CORDON] = {"cordon", true, true},
    [DO_DRAIN] = {"drain", true, true},
    [DO_REQUEST_CHECKPOINT] = {"request_checkpoint", true, false},
    [DO_FENCE] = {"fence", true, true},
    [DO_PROMISE_SPARE] = {"promise_spare", true, true},
    [DO_RESTART_JOB] = {"restart_job", true, true},
    [DO_FORCE_DELETE] = {"force_delete", true, true},
    [DO_HAND_OVER] = {"hand_over", true, false},
    [DO_UNCORDON] = {"uncordon", true, true},
    [DO_NEXT_STEP] = {"next_step", false, false},
    [DO_RETRY_STEP] = {"retry_step", false, false},
    /* Giving back is recovery: it is never blocked. */
    [DO_RELEASE_SPARES] = {"release_spares", false, false},
    [DO_UNDO] = {"undo", false, false},
};
_Static_assert(ARRAY_LEN(commands) == FSM_COMMAND_COUNT, "every command has a row");

static const char *const timer_names[] = {
    [TIMER_KEEP] = "keep",   [TIMER_NONE] = "none",         [TIMER_SETTLE] = "settle",
    [TIMER_WATCH] = "watch", [TIMER_APPROVAL] = "approval", [TIMER_HOLD] = "hold",
    [TIMER_STEP] = "step",   [TIMER_REPAIR] = "repair",     [TIMER_VALIDATE] = "validate",
};
_Static_assert(ARRAY_LEN(timer_names) == FSM_TIMER_COUNT, "every timer has a name");

const char *fact_name(enum fact fact)
{
    assert(fact < FACT_COUNT);
    return fact_names[fact];
}

const char *fsm_event_name(enum fsm_event event)
{
    assert(event < FSM_EVENT_COUNT);
    return event_names[event];
}

const char *fsm_command_name(enum fsm_command command)
{
    assert(command < FSM_COMMAND_COUNT);
    return commands[command].name;
}

bool fsm_command_changes_world(enum fsm_command command)
{
    assert(command < FSM_COMMAND_COUNT);
    return commands[command].changes_world;
}

bool fsm_command_spends(enum fsm_command command)
{
    assert(command < FSM_COMMAND_COUNT);
    return commands[command].spends;
}

static bool rule_matches(const struct fsm_rule *rule, enum phase phase, enum fsm_event event,
                         uint32_t facts)
{
    return rule->on == event && (rule->from >> phase & 1u) && (facts & rule->need) == rule->need &&
           (facts & rule->forbid) == 0 && (rule->lack == 0 || (facts & rule->lack) != rule->lack);
}

const struct fsm_rule *fsm_find(enum phase phase, enum fsm_event event, uint32_t facts)
{
    for (size_t i = 0; i < fsm_rule_count; i++)
        if (rule_matches(&fsm_rules[i], phase, event, facts))
            return &fsm_rules[i];
    return NULL;
}

static void stamp(int64_t *time_ns, int64_t now_ns)
{
    if (*time_ns == 0)
        *time_ns = now_ns;
}

/* The times that a phase or a status stands for; each is set once. */
static void stamp_times(struct incident *incident, const struct fsm_rule *rule, int64_t now_ns)
{
    struct incident_times *times = &incident->times;
    if (rule->to == PHASE_CONFIRMED)
        stamp(&times->decided_ns, now_ns);
    if (rule->status == INCIDENT_MITIGATED)
        stamp(&times->mitigated_ns, now_ns);
    if (rule->status == INCIDENT_CLOSED || rule->status == INCIDENT_MERGED ||
        rule->status == INCIDENT_DECLINED) {
        stamp(&times->resolved_ns, now_ns);
        stamp(&times->closed_ns, now_ns);
    }
}

struct transition fsm_apply(struct incident *incident, const struct fsm_rule *rule, uint32_t facts,
                            int64_t deadline_ns, int64_t now_ns)
{
    enum phase from = incident->phase;
    enum phase to = rule->to == FSM_STAY ? from : (enum phase)rule->to;
    enum incident_status status = rule->status == FSM_KEEP_STATUS
                                      ? incident->status
                                      : (enum incident_status)rule->status;
    bool moved = to != from || status != incident->status || rule->command != DO_NOTHING;
    assert(rule->from >> from & 1u);
    if (moved) {
        incident->phase = to;
        incident->status = status;
        if (rule->timer != TIMER_KEEP)
            incident->deadline_ns = deadline_ns;
        stamp_times(incident, rule, now_ns);
        incident->dirty = true;
    }
    return (struct transition){
        .rule = rule, .from = from, .to = to, .facts = facts, .moved = moved};
}

void fsm_restore(struct incident *incident, enum phase phase, enum incident_status status)
{
    incident->phase = phase;
    incident->status = status;
}

static void add_bits(struct text *out, const char *lead, uint32_t bits,
                     const char *(*name)(enum fact))
{
    const char *separator = lead;
    for (int i = 0; i < FACT_COUNT; i++)
        if (bits >> i & 1u) {
            text_addf(out, "%s%s", separator, name((enum fact)i));
            separator = ",";
        }
}

static void add_phases(struct text *out, uint32_t bits)
{
    const char *separator = "";
    for (int i = 0; i < PHASE_COUNT; i++)
        if (bits >> i & 1u) {
            text_addf(out, "%s%s", separator, phase_name((enum phase)i));
            separator = ",";
        }
}

void fsm_dump(struct text *out)
{
    for (size_t i = 0; i < fsm_rule_count; i++) {
        const struct fsm_rule *rule = &fsm_rules[i];
        text_addf(out, "%s: ", rule->id);
        add_phases(out, rule->from);
        text_addf(out, " on %s", event_names[rule->on]);
        add_bits(out, " need ", rule->need, fact_name);
        add_bits(out, " forbid ", rule->forbid, fact_name);
        add_bits(out, " lacking one of ", rule->lack, fact_name);
        text_addf(out, " -> %s", rule->to == FSM_STAY ? "stay" : phase_name((enum phase)rule->to));
        if (rule->status != FSM_KEEP_STATUS)
            text_addf(out, " (%s)", incident_status_name((enum incident_status)rule->status));
        text_addf(out, " do %s timer %s\n", commands[rule->command].name, timer_names[rule->timer]);
    }
    for (size_t i = 0; i < fsm_ignored_count; i++) {
        text_add(out, "ignored: ");
        add_phases(out, fsm_ignored[i].from);
        const char *separator = " on ";
        for (int event = 0; event < FSM_EVENT_COUNT; event++)
            if (fsm_ignored[i].on >> event & 1u) {
                text_addf(out, "%s%s", separator, event_names[event]);
                separator = ",";
            }
        text_addf(out, ": %s\n", fsm_ignored[i].reason);
    }
}

/* One arrow for each pair of phases, labelled with the ids of its rules. */
static void add_arrow(struct text *out, enum phase from, enum phase to)
{
    const char *separator = "";
    AUTO_TEXT label = {0};
    for (size_t i = 0; i < fsm_rule_count; i++)
        if (fsm_rules[i].to == (unsigned)to && (fsm_rules[i].from >> from & 1u) && from != to) {
            text_addf(&label, "%s%s", separator, fsm_rules[i].id);
            separator = ", ";
        }
    if (label.length > 0)
        text_addf(out, "    %s --> %s: %s\n", phase_name(from), phase_name(to), label.bytes);
}

void fsm_mermaid(struct text *out)
{
    text_add(out, "stateDiagram-v2\n    [*] --> suspected\n");
    for (int from = 0; from < PHASE_COUNT; from++)
        for (int to = 0; to < PHASE_COUNT; to++)
            add_arrow(out, (enum phase)from, (enum phase)to);
    for (int i = 0; i < PHASE_COUNT; i++)
        if (phase_is_end((enum phase)i))
            text_addf(out, "    %s --> [*]\n", phase_name((enum phase)i));
}
