/* The remediation core: verdicts, progress, the world and people's commands in; records and actions
 * out. Pure: no clock, no I/O, no randomness; the same inputs give the same bytes. It holds the
 * policies, the open incidents, the spare ledger, what was spent of the budgets, and the breaker.
 *
 * How to drive it: give inputs as they come, call remediation_tick about every second, and after
 * every input drain
 * remediation_next_effect. The records of one drain are one transaction; a START or POLL that
 * follows them is executed only after that transaction is durable, and only when
 * remediation_may_start still agrees at that moment. Every START is answered by exactly one
 * remediation_outcome and every POLL by at most one remediation_polled.
 *
 * After a crash: remediation_new, remediation_set_policy, remediation_restore_control, then
 * remediation_restore for every incident that store_restore gives (ended ones too: they are the
 * memory against stale verdicts, of budgets and of repeat offenders), then go on. An action with an
 * intent and no outcome is polled first, never started blindly.
 */
#ifndef BROOM_REMEDIATION_CORE_H
#define BROOM_REMEDIATION_CORE_H

#include "detectors/engine.h"
#include "remediation/actuator.h"
#include "remediation/budget.h"
#include "remediation/incident.h"
#include "remediation/policy.h"

struct remediation;

struct remediation_params {
    enum mode daemon_mode; /* of broomd itself; MODE_UNSET counts as observe */
    const char *actuator;  /* its name, for the records */
    int64_t next_number;   /* of the next incident; at least 1 */
};

struct remediation *remediation_new(const struct remediation_params *params);
void remediation_free(struct remediation *core);
DEFINE_AUTO(struct remediation, remediation_free)

/* Takes the set over. Incidents that are confirmed keep the plan they were confirmed with. */
void remediation_set_policy(struct remediation *core, struct policy_set *take_policies,
                            int64_t now_ns);

/* Gives the set back, for a core that takes this one's place; NULL when there is none. This one has
 * none after it. */
struct policy_set *remediation_give_policies(struct remediation *core);

/* The daemon's own mode changed. A stricter one also binds incidents that are open; a freer one
 * only new ones. */
void remediation_set_mode(struct remediation *core, enum mode mode, int64_t now_ns);

/* Pause and breaker as they stood, from the store. reason and actor may be NULL. */
void remediation_restore_control(struct remediation *core, bool paused, bool breaker_open,
                                 const char *reason, int64_t next_number);
/* record: the `incident` record's JSON. ERR_INVALID when it is none. */
MUST_CHECK enum status remediation_restore(struct remediation *core, const struct json *record,
                                           int64_t now_ns, struct error *reterr);

/* One verdict of a job's engine. `source` says who accuses: "detector" for statistics, else the
 * name of the reporter of hardware events ("monitor-7"), or REMEDIATION_SOURCE_UNNAMED where that
 * is not known. job is borrowed for the call. */
#define REMEDIATION_SOURCE_UNNAMED "events"
void remediation_verdict(struct remediation *core, const struct job *job,
                         const struct verdict *verdict, const char *source, int64_t now_ns);
/* A job as its engine knows it now, borrowed: what the cluster accuses without a verdict is
 * restarted by the workload that stands there. Cheap where nothing changed. */
void remediation_job(struct remediation *core, const struct job *job, int64_t now_ns);
/* A job's progress as its engine sees it; call it about once a second a job. */
void remediation_progress(struct remediation *core, const char *job,
                          const struct engine_progress *progress, int64_t now_ns);
/* The answer to EFFECT_DESCRIBE, or a periodic one. Borrowed for the call. */
void remediation_world(struct remediation *core, const struct world *world, int64_t now_ns);

enum command_verb {
    COMMAND_APPROVE = 0,
    COMMAND_ABORT,
    COMMAND_ACK,
    COMMAND_DECLINE,
    COMMAND_NOTE,
    COMMAND_PAUSE,
    COMMAND_RESUME,
    COMMAND_FENCED,
    COMMAND_BREAKER_CLOSE,
    COMMAND_VERB_COUNT
};

struct remediation_command {
    enum command_verb verb;
    const char *incident_ref; /* NULL for pause, resume, breaker_close, and fenced of one node */
    const char *node;         /* fenced without an incident: that node, wherever it is; else NULL */
    const char *actor;        /* what authentication proved; never a parameter */
    const char *text;         /* why; may be NULL */
};
/* ERR_NOT_FOUND: no such incident. ERR_REFUSED: it makes no sense now; the message says why.
 * abort leaves cordons as they stand and gives spares back; on an escalated incident it closes it.
 * decline (false alarm) also takes our own cordons off. breaker_close judges the standing
 * accusations of an observer-suspect incident one by one; declining that incident drops them.
 * fenced says of a node, or of all nodes of an incident, that it is powered off; it counts until
 * the node is seen ready again. */
MUST_CHECK enum status remediation_command(struct remediation *core,
                                           const struct remediation_command *command,
                                           int64_t now_ns, struct error *reterr);

/* The answer to a START. An unknown operation id is ignored (a late answer). */
void remediation_outcome(struct remediation *core, const char *operation_id,
                         const struct action_result *result, int64_t now_ns);
/* The answer to a POLL. False: no outcome was taken from it, whatever it says; while a start is not
 * answered a poll only tells what it waits for. */
bool remediation_polled(struct remediation *core, const char *operation_id,
                        const struct action_result *result, int64_t now_ns);

/* All false until the first call: nothing is done before somebody vouches. */
struct remediation_guards {
    bool lease_held;
    bool clock_trusted;
    bool telemetry_ok;
    bool store_up;
};
void remediation_guards(struct remediation *core, struct remediation_guards guards, int64_t now_ns);

/* Looks at everything that waits. */
void remediation_tick(struct remediation *core, int64_t now_ns);

enum effect_kind { EFFECT_RECORD = 0, EFFECT_START, EFFECT_POLL, EFFECT_DESCRIBE };

/* Parameters (action.params_json) by verb: notify {"severity","text"}; capture
 * {"before_ns","after_ns", "around_ns"}; drain, request_checkpoint, fence {"timeout_ns"};
 * promise_spare {"hold_others": true} or none: the job's other free places are kept from it;
 * restart_job {"timeout_ns", "placement": "named"|"scheduler"}; force_delete {"fenced": {node: who
 * says that it is off}}; release_spare {"used": true}: the job runs on them, or none: they are
 * free; hand_over {"to"}. */
struct effect {
    enum effect_kind kind;
    char *record;         /* owned: one JSON object, no newline */
    bool spoolable;       /* of a record: event-like, may wait on disk while the store is away */
    struct action action; /* START, POLL: everything it points to is owned by the effect */
};
/* Pops the next effect in order; false when there is none. The caller calls effect_done. */
bool remediation_next_effect(struct remediation *core, struct effect *ret_effect);
void effect_done(struct effect *effect);

/* Asked right before actuator->start: false when the intent has been taken back since (paused, a
 * guard, a person); then the start is not made and remediation_outcome(CANCELLED) is given. */
bool remediation_may_start(const struct remediation *core, const char *operation_id);

/* What is there, for status pages; borrowed until the next input. */
size_t
remediation_incident_count(const struct remediation *core); /* ended ones kept in memory too */
const struct incident *remediation_incident_at(const struct remediation *core, size_t index);
const struct incident *remediation_find(const struct remediation *core, const char *ref);

struct remediation_status {
    bool paused;
    const char *paused_by; /* "" when not */
    bool breaker_open;
    const char *breaker_reason; /* "" when closed */
    const char *blocked;        /* first guard that stops the act half: static name, or NULL */
    int64_t open_count, acting_count;
    int64_t escalated_count; /* given up by the robot, and not closed by a person */
    int64_t actions_started, outcomes[OUTCOME_COUNT];
    int64_t verdicts, stale_verdicts;
    bool world_known;
    int64_t world_ns; /* when it was last told; 0 never */
};
struct remediation_status remediation_status(const struct remediation *core);

/* Budgets of the whole cluster (those of racks and jobs depend on who asks): how much is spent.
 * Fills at most `most`, returns how many. Names are borrowed until the next input. */
size_t remediation_budgets(const struct remediation *core, int64_t now_ns,
                           struct budget_use *ret_uses, size_t most);

#endif
