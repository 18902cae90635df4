/* The incident's state machine as data: rows (fsm_rules.c), a pure look-up, and the only writer of
 * an incident's phase and status. A row matches when every `need` fact holds, no `forbid` fact
 * holds and, if it has a `lack` mask, at least one of those facts is missing. Two rows of one cell
 * can never both match, so their order means nothing; a test proves it.
 */
#ifndef BROOM_REMEDIATION_FSM_H
#define BROOM_REMEDIATION_FSM_H

#include "remediation/incident.h"

/* What holds while we decide; computed in facts.c from one snapshot. At most 16. */
enum fact {
    FACT_OBSERVING = 0,   /* mode observe, or a plan that only tells and has told */
    FACT_PERMITTED,       /* mode enforce, or a person approved */
    FACT_RESTART_ALLOWED, /* the job's own restart budget has more than its last try, or a person
                             said so */
    FACT_LEASE_HELD,
    FACT_CLOCK_TRUSTED,
    FACT_TELEMETRY_SEEN,
    FACT_STORE_UP,
    FACT_UNPAUSED,
    FACT_BREAKER_CLOSED, /* or open for another cause and this fault is proven by a second source */
    FACT_BUDGET_AVAILABLE, /* what this step would spend is left */
    FACT_ATTEMPTS_LEFT,    /* of this step */
    FACT_WORLD_KNOWN,      /* the cluster was read since this step became due */
    FACT_WORTH_ACTING,     /* hard fault, or the piled-up loss outweighs a restart */
    FACT_SPARE_FREE,       /* as many as this incident needs, checked */
    FACT_JOB_FREE,         /* it may be restarted: no other incident does or is about to, the
                              cluster would take it, and the last restarts brought steps */
    FACT_ACTED,            /* the world was changed for this incident */
    FACT_COUNT
};

enum fsm_event {
    EVENT_ACCUSED = 0,
    EVENT_CLEARED,
    EVENT_SETTLED,
    EVENT_OBSERVER_SUSPECTED,
    EVENT_OBSERVER_JUDGED,
    EVENT_REACHED_NOTIFY, /* the next step of the plan is due, by kind */
    EVENT_REACHED_CAPTURE,
    EVENT_REACHED_CORDON,
    EVENT_REACHED_DRAIN,
    EVENT_REACHED_CHECKPOINT,
    EVENT_REACHED_FENCE,
    EVENT_REACHED_SPARE,
    EVENT_REACHED_RESTART,
    EVENT_REACHED_VERIFY,
    EVENT_REACHED_HAND_OVER,
    EVENT_PLAN_ENDED,
    EVENT_STEP_SUCCEEDED,
    EVENT_STEP_SKIPPED,
    EVENT_STEP_FAILED, /* did not happen; may be tried again */
    EVENT_STEP_REFUSED,
    EVENT_PODS_STUCK, /* on a node that is off: the restart waits for them */
    EVENT_PLACED,
    EVENT_PROGRESSED,
    EVENT_VERIFIED,
    EVENT_RETURNED,
    EVENT_REACHED_UNCORDON, /* validated, and ours to give back */
    EVENT_VALIDATED,        /* and in service again */
    EVENT_DEADLINE_PASSED,
    EVENT_APPROVED,
    EVENT_ABORTED,
    EVENT_DECLINED,
    EVENT_UNCORDONED, /* by a person */
    EVENT_MERGED,
    FSM_EVENT_COUNT
};

enum fsm_command {
    DO_NOTHING = 0,
    DO_RECORD_WOULD, /* observe mode: the step as a decision that was not executed */
    DO_NOTIFY,
    DO_CAPTURE,
    DO_CORDON,
    DO_DRAIN,
    DO_REQUEST_CHECKPOINT,
    DO_FENCE,
    DO_PROMISE_SPARE,
    DO_RESTART_JOB,
    DO_FORCE_DELETE,
    DO_HAND_OVER,
    DO_UNCORDON,
    DO_NEXT_STEP,
    DO_RETRY_STEP,
    DO_RELEASE_SPARES,
    DO_UNDO, /* our cordons off, spares given back */
    FSM_COMMAND_COUNT
};

/* Which duration a transition sets the phase's deadline to; the values come from the policy. */
enum fsm_timer {
    TIMER_KEEP = 0,
    TIMER_NONE,
    TIMER_SETTLE,
    TIMER_WATCH,
    TIMER_APPROVAL,
    TIMER_HOLD,
    TIMER_STEP,
    TIMER_REPAIR,
    TIMER_VALIDATE,
    FSM_TIMER_COUNT
};

enum { FSM_STAY = PHASE_COUNT, FSM_KEEP_STATUS = INCIDENT_STATUS_COUNT };

struct fsm_rule {
    const char *id; /* kebab-case, never reused */
    uint32_t from;  /* bit per phase */
    enum fsm_event on;
    uint32_t need, forbid, lack;
    unsigned to;     /* enum phase, or FSM_STAY */
    unsigned status; /* enum incident_status, or FSM_KEEP_STATUS */
    enum fsm_command command;
    enum fsm_timer timer;
};

struct fsm_ignored {
    uint32_t from;
    uint64_t on; /* bit per event */
    const char *reason;
};

extern const struct fsm_rule fsm_rules[];
extern const size_t fsm_rule_count;
extern const struct fsm_ignored fsm_ignored[];
extern const size_t fsm_ignored_count;

/* What a transition was: stored as a decision, printed, and shown. */
struct transition {
    const struct fsm_rule *rule;
    enum phase from, to;
    uint32_t facts;
    bool moved; /* phase or status changed, or a command is to be run */
};

/* The row for this phase, event and facts; NULL when the event means nothing here. */
const struct fsm_rule *fsm_find(enum phase phase, enum fsm_event event, uint32_t facts);
/* Applies a row: the only place that writes phase and status. Sets deadline and the times that
 * belong to the new phase. `deadline_ns` is what the row's timer stands for now (0 for none). */
struct transition fsm_apply(struct incident *incident, const struct fsm_rule *rule, uint32_t facts,
                            int64_t deadline_ns, int64_t now_ns);
/* For a record that is read back, and for nothing else. */
void fsm_restore(struct incident *incident, enum phase phase, enum incident_status status);

const char *fact_name(enum fact fact);
const char *fsm_event_name(enum fsm_event event);
const char *fsm_command_name(enum fsm_command command);
/* Does a command change the cluster, and does it spend a budget? */
bool fsm_command_changes_world(enum fsm_command command);
bool fsm_command_spends(enum fsm_command command);

/* The whole table as text (golden file) and as a Mermaid state diagram. */
void fsm_dump(struct text *out);
void fsm_mermaid(struct text *out);

#endif
