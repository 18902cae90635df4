/* One incident: a fault domain that misbehaves, everything that is known of it and everything that
 * was done about it. incident.c turns it into the `incident` record and back; a restored incident
 * goes on where its last record stood. Phase and status are written by fsm.c alone.
 */
#ifndef BROOM_REMEDIATION_INCIDENT_H
#define BROOM_REMEDIATION_INCIDENT_H

#include "detectors/job.h"
#include "detectors/verdict.h"
#include "remediation/actuator.h"
#include "remediation/names.h"
#include "remediation/policy.h"

enum phase {
    PHASE_SUSPECTED = 0,
    PHASE_CONFIRMED,
    PHASE_AWAITING_APPROVAL,
    PHASE_HOLDING,
    PHASE_CORDONING,
    PHASE_SAVING,
    PHASE_RESTARTING,
    PHASE_PLACING,
    PHASE_RESUMING,
    PHASE_VERIFYING,
    PHASE_REPAIRING,
    PHASE_VALIDATING,
    PHASE_DONE,
    PHASE_CANCELLED,
    PHASE_ESCALATED,
    PHASE_COUNT
};

enum incident_status {
    INCIDENT_OPEN = 0,
    INCIDENT_MITIGATED,
    INCIDENT_RESOLVED,
    INCIDENT_CLOSED,
    INCIDENT_MERGED,
    INCIDENT_DECLINED,
    INCIDENT_STATUS_COUNT
};

enum { INCIDENT_REF_BYTES = 24, SENTENCE_BYTES = 256, SOURCE_BYTES = 64 };

/* A node of the incident, and what we did to it. */
struct incident_node {
    char *name;          /* owned */
    char *rack;          /* owned; "" unknown */
    bool was_cordoned;   /* somebody else had cordoned it before: never ours to undo */
    bool ours;           /* our cordon succeeded */
    int seen_uncordoned; /* times in a row that the world showed our cordon gone */
    char *fenced_by;     /* owned: who vouches that it is off; NULL nobody */
    int64_t fenced_ns;   /* since when; 0 not */
    bool seen_down;      /* not ready since then: seen ready again it is not off */
    bool was_down;       /* seen not ready or gone since we acted: it may have been repaired */
    bool had_domain;     /* it was in an NVLink domain before that */
    bool given_back;     /* we took our cordon off when it was validated */
};

enum action_state {
    ACTION_STARTED = 0, /* intent recorded, start asked */
    ACTION_POLLING,     /* outcome unknown: only reading */
    ACTION_ENDED,
    ACTION_STATE_COUNT
};

struct incident_action {
    char operation_id[OPERATION_ID_BYTES];
    enum verb verb;
    int step;       /* index into plan.steps; -1: undoing */
    int try_number; /* from 1 */
    enum action_state state;
    enum outcome outcome; /* once ended */
    int64_t started_ns, ended_ns;
    int64_t next_poll_ns;
    int64_t asked_ns;         /* when the poll under way was asked; 0 none is */
    bool asked_early;         /* that was before the start was answered: it tells nothing now */
    char *answer;             /* owned, or NULL: what the cluster last said that it waits for;
                                 not of the record, for it may change with every poll */
    bool answer_unrecorded;   /* it changed since the incident's record */
    int64_t answer_record_ns; /* when a change of it was last recorded; 0 never */
    bool restored;            /* under way when it was read from the store, and no poll since has
                                 told what became of it */
    int64_t restored_poll_ns; /* when the first of those polls was asked; 0 not yet */
    bool aside;               /* beside the plan: no step waits for it */
    struct names nodes, spares;
    char *params_json; /* owned, or NULL */
};

/* The way back of hardware: stages in their order. */
enum back_stage {
    BACK_REGISTERED = 0,
    BACK_READY,
    BACK_SCHEDULABLE, /* no cordon but ours, and its GPUs allocatable */
    BACK_IN_DOMAIN,   /* the NVLink domain of its rack */
    BACK_VALIDATED,   /* so for timers.validate */
    BACK_UNCORDONED,
    BACK_STAGE_COUNT
};

struct incident_times {
    int64_t fault_started_ns, detected_ns, decided_ns, acted_ns, mitigated_ns, resolved_ns,
        closed_ns;
};

struct incident_cost {
    int64_t steps_lost;       /* -1 unknown */
    double gpu_hours;         /* lost from the fault to the mitigation */
    double loss_gpu_hours;    /* piled up by the slowdown when last judged */
    double restart_gpu_hours; /* what a restart would cost when last judged */
};

struct incident {
    int64_t number;
    char ref[INCIDENT_REF_BYTES]; /* INC-n */
    int64_t version;              /* of the last record emitted */
    char job[JOB_NAME_BYTES];
    char *workload_json; /* owned, or NULL */
    int32_t world_size;
    int32_t gpus_per_node;
    enum verdict_kind kind;
    enum scope scope;
    char domain[VERDICT_ID_BYTES];
    enum cause cause;
    char source[SOURCE_BYTES];
    bool observer_suspect; /* the accuser is the suspect */
    bool evict;
    double slowdown, gain, confidence;
    int severity; /* 0 worst */
    enum phase phase;
    enum incident_status status;

    char rule[POLICY_NAME_BYTES], policy[POLICY_NAME_BYTES], policy_hash[POLICY_HASH_BYTES];
    enum mode mode;
    struct plan plan; /* pinned when the incident is confirmed */
    struct policy_timers timers;
    int64_t for_ns;
    int step;              /* plan step that is due or running */
    int64_t step_since_ns; /* when it became due */
    int round;             /* part of every operation id */

    struct incident_node *nodes;
    size_t node_count;
    struct names leaving;              /* what the restart leaves, by index with spares */
    struct names spares;               /* promised to this incident */
    int64_t back_ns[BACK_STAGE_COUNT]; /* when all its nodes had come so far; 0 not */
    int64_t validating_ns;             /* since when it is validated, each time anew; 0 not */
    bool return_told;                  /* people know that it is theirs to uncordon */
    bool refusal_told;                 /* people know that no restart can be made */
    bool spares_settled;               /* what became of them is told: used, or given back */
    struct names nodes_before;  /* the job's, when it was restarted; emptied when it is placed */
    struct names stuck_told;    /* nodes whose pods never end, of which people were told */
    struct names accused_later; /* nodes accused while we acted: judged again at the end */
    struct names silent_later;  /* nodes silent while their job restarts: only if it fails */
    int32_t *ranks, *victims;   /* ascending */
    size_t rank_count, victim_count;
    char merged_into[INCIDENT_REF_BYTES];

    struct incident_times times;
    struct incident_cost cost;
    char waiting_for[SENTENCE_BYTES]; /* "" when it waits for nothing */
    int64_t deadline_ns;              /* of the phase; 0 in the ends */
    int64_t restored_ns; /* a new process read it and nobody has accused it since; 0: seen by this
                            one */
    int64_t cleared_ns;  /* a clear came and may be superseded; 0 none */
    bool corroborated;   /* a second source agrees: the job stopped */
    int64_t repeats;     /* incidents of these nodes in seven days, this one included */
    char approved_by[64], acked_by[64], fenced_by[64];

    int64_t step_at_fault;   /* last step before; JOB_NONE */
    int64_t attempt_before;  /* job attempt before our restart */
    int64_t restarts_before; /* the scheduler's count before it; -1 unknown */
    char uid_before[64];
    double baseline_ms;         /* the old pace; NAN unknown */
    int64_t restart_started_ns; /* 0: none */
    int64_t nodes_spent_ns;     /* when the cordon budget was spent; 0: not yet */
    bool spent_rack;            /* it was a rack unit */

    struct incident_action *actions;
    size_t action_count, action_capacity;
    int64_t timeline_seq, decision_seq;

    bool dirty; /* changed since the last record */
};

struct incident *incident_new(int64_t number);
void incident_free(struct incident *incident);
DEFINE_AUTO(struct incident, incident_free)

/* The `incident` record, complete with the private state that incident_parse reads back. */
void incident_write(const struct incident *incident, int64_t now_ns, struct json_writer *writer);
/* From the record. The caller frees it. */
MUST_CHECK enum status incident_parse(const struct json *record, struct incident **ret_incident,
                                      struct error *reterr);

struct incident_node *incident_find_node(const struct incident *incident, const char *name);
struct incident_node *incident_add_node(struct incident *incident, const char *name,
                                        const char *rack);
/* It is none of the incident's any more; false when it was not. */
bool incident_remove_node(struct incident *incident, const char *name);
void incident_add_rank(struct incident *incident, int32_t rank);
void incident_add_victim(struct incident *incident, int32_t rank);
bool incident_has_ended(const struct incident *incident);  /* done, cancelled, escalated */
bool incident_has_acted(const struct incident *incident);  /* changed the world, or asked to */
bool incident_in_restart(const struct incident *incident); /* its own restart, up to verifying */
bool incident_is_hard(const struct incident *incident);    /* crash, hang, fault */
struct incident_action *incident_find_action(const struct incident *incident,
                                             const char *operation_id);
/* The one that a step or giving back waits for, or NULL; what is done beside the plan (telling
 * people, ending stuck pods, settling spares) is not waited for. */
struct incident_action *incident_running_action(const struct incident *incident);
struct incident_action *incident_add_action(struct incident *incident);

const char *phase_name(enum phase phase);
bool phase_parse(const char *name, enum phase *ret_phase);
bool phase_is_end(enum phase phase);
const char *phase_owner(enum phase phase); /* broomd or on-call or hardware */
/* The page of runbooks/ that helps with such an incident now. */
const char *incident_runbook(enum verdict_kind kind, enum scope scope, bool observer_suspect,
                             enum phase phase);
const char *incident_status_name(enum incident_status status);
bool incident_status_parse(const char *name, enum incident_status *ret_status);

#endif
