/* Inside of the core: shared by core.c and its parts (fold, look, act, command, record), by nobody
 * else. */
#ifndef BROOM_REMEDIATION_CORE_STATE_H
#define BROOM_REMEDIATION_CORE_STATE_H

#include "remediation/core.h"
#include "remediation/fsm.h"
#include "remediation/world_view.h"

#define SECOND_NS INT64_C(1000000000)
#define DAY_NS    (INT64_C(86400) * SECOND_NS)

enum {
    STEP_TRIES_MAX = 3,         /* tries of one plan step before a person is asked */
    OPEN_INCIDENTS_MAX = 1024,  /* over it verdicts are recorded only */
    ENDED_INCIDENTS_MAX = 1024, /* memory of ended ones */
    STORM_RACKS_MIN = 3,
    RESTART_CYCLES_MAX = 3, /* restarts without a step until a person is asked */
    STORM_PERCENT = 40,
};

#define CLEAR_GRACE_NS (3 * SECOND_NS)  /* a clear may be followed by a better localisation */
#define CASCADE_NS     (10 * SECOND_NS) /* within it, what stops is a victim of the first */
/* The minute in which a storm blows, and what its first accusations may wait for the job's next
 * steps to deny them. */
#define STORM_WINDOW_NS (75 * SECOND_NS)
#define UNSEEN_LOOK_NS                                                                             \
    (10 * SECOND_NS) /* after a restart: until a standing job has shown that it stands */
#define UNSEEN_CLEAR_NS     (600 * SECOND_NS) /* and until a fault that is not seen again is over */
#define MEMORY_NS           (7 * DAY_NS)      /* ended incidents, repeat offenders */
#define LOOK_AGAIN_NS       (SECOND_NS / 4)   /* between two looks that only progress asks for */
#define POLL_EVERY_NS       (5 * SECOND_NS)
#define POLL_START_NS       (10 * SECOND_NS) /* a start that is not answered yet */
#define ANSWER_RECORD_NS    (60 * SECOND_NS) /* between two records of what the cluster waits for */
#define RETRY_AFTER_NS      (10 * SECOND_NS) /* times the number of the try */
#define DESCRIBE_SOON_NS    (2 * SECOND_NS)  /* while a step waits for the world */
#define DESCRIBE_LATER_NS   (15 * SECOND_NS) /* while hardware or spares are waited for */
#define DESCRIBE_GIVE_UP_NS (30 * SECOND_NS)
#define WORLD_STALE_NS      (60 * SECOND_NS)  /* older than that it is not acted on */
#define POLL_AGAIN_NS       (60 * SECOND_NS)  /* a poll that was never answered */
#define FENCE_SEEN_NS       (300 * SECOND_NS) /* said to be off: until it is seen down */
#define SETTLE_LOOK_NS      (600 * SECOND_NS) /* after its end: spares are asked for so long */
#define MADE_ANEW_NS        (60 * SECOND_NS)  /* a whole gang is made anew pod by pod too */
#define STILL_MIN_NS        (5 * SECOND_NS)   /* no step for that long, and for three steps' time */
#define STILL_PAUSE_NS      (600 * SECOND_NS) /* while the job says that it saves or evaluates */

/* What we know of one job besides the world. */
struct job_state {
    char *name;
    struct job *job; /* copy of the last one told; NULL after a restart until a verdict */
    struct engine_progress progress;
    bool progress_known;
    int64_t advanced_ns; /* when the step last moved, on our clock */
    int64_t told_ns;     /* when something was last said of it */
    /* Restarts as the cluster shows them, whoever makes them. */
    int64_t restarting_since_ns;    /* 0: it is not */
    int64_t restarts_seen;          /* the scheduler's count; -1 not seen yet */
    int64_t cycle_ns;               /* when the last restart began; 0 none seen */
    int cycles;                     /* restarts in a row without a step between them */
    bool stuck_told;                /* people know that the present restart does not end */
    char made_anew[SENTENCE_BYTES]; /* pods that were made anew alone, as last told; "" none */
    int64_t made_anew_ns;           /* since when it is told so */
    bool made_anew_told;            /* people know, or the job stepped with them */
};

/* A hardware accusation that the job's progress does not bear out. */
struct accusation {
    char node[256];
    char rack[256];
    char source[SOURCE_BYTES];
    char job[JOB_NAME_BYTES];
    int64_t time_ns;
};

struct remediation {
    enum mode daemon_mode;
    char actuator[32];
    int64_t next_number;
    int64_t now_ns;
    int64_t looked_ns;           /* when all incidents were last looked at */
    int64_t born_ns;             /* first time that we were told anything */
    struct policy_set *policies; /* owned, may be NULL */

    struct incident **incidents; /* owned; open and remembered ones, in order of number */
    size_t incident_count, incident_capacity;
    struct job_state *jobs;
    size_t job_count, job_capacity;
    struct world_view world;
    struct remediation_guards guards;

    bool paused;
    char paused_by[64];
    bool breaker_open;
    char breaker_reason[SENTENCE_BYTES];

    struct accusation *accusations;
    size_t accusation_count, accusation_capacity;

    struct effect *effects; /* ring-less queue: [effect_head, effect_count) */
    size_t effect_head, effect_count, effect_capacity;
    bool describe_asked;
    int64_t describe_asked_ns;

    int64_t actions_started, outcomes[OUTCOME_COUNT];
    int64_t verdicts, stale_verdicts, control_seq;
};

/* core.c */
struct job_state *core_job(struct remediation *core, const char *name); /* finds or adds */
const struct job_state *core_find_job(const struct remediation *core, const char *name);
struct incident *core_open_incident(struct remediation *core); /* new, suspected */
struct incident *core_incident(const struct remediation *core, const char *ref); /* or NULL */
/* Rack of a node: the world's word, else the job's topology, else "". */
const char *core_rack_of(const struct remediation *core, const char *job, const char *node);
/* Nodes that hold ranks of a job, from the world or else from its topology. */
void core_job_nodes(const struct remediation *core, const char *job, struct names *ret_nodes);
bool core_job_stands_still(const struct remediation *core, const char *job);

/* record.c: every record that the core makes. */
void record_verdict(struct remediation *core, const char *job, const struct verdict *verdict,
                    const char *source, const char *incident_ref, const char *note);
void record_timeline(struct remediation *core, struct incident *incident, const char *kind,
                     const char *actor, const char *format, ...) PRINTF_LIKE(5, 6);
void record_decision(struct remediation *core, struct incident *incident,
                     const struct transition *transition, enum fsm_event event, bool executed,
                     const char *reason);
void record_action(struct remediation *core, const struct incident *incident,
                   const struct incident_action *action, const char *reason);
void record_outcome(struct remediation *core, const struct incident *incident,
                    const struct incident_action *action, const char *reason, const char *response);
void record_spare(struct remediation *core, const struct incident *incident, const char *node,
                  const char *state);
void record_control(struct remediation *core, const char *what, const char *actor,
                    const char *text);
/* Emits the incident's record when it changed since the last one. */
void record_incident(struct remediation *core, struct incident *incident);
void record_dirty(struct remediation *core); /* all of them */

/* effect.c: the queue. */
void effect_push_record(struct remediation *core, struct text *take_record, bool spoolable);
void effect_push_action(struct remediation *core, enum effect_kind kind,
                        const struct incident *incident, const struct incident_action *action,
                        const char *reason);
void effect_ask_world(struct remediation *core);

/* storm.c: when one source accuses everybody, the source is the suspect. */
void storm_note(struct remediation *core, const struct job *job, const struct verdict *verdict,
                const char *source);
void storm_judge(struct remediation *core);
/* The accusations that a restored incident stands for. */
void storm_recall(struct remediation *core, const struct incident *incident);
struct incident *storm_incident(const struct remediation *core,
                                const char *source); /* open, or NULL */
int64_t storm_last_accusation(const struct remediation *core, const char *source); /* 0 none */

/* fold.c */
void fold_verdict(struct remediation *core, const struct job *job, const struct verdict *verdict,
                  const char *source);
/* What was accused while we acted is judged again now that we do not. */
void fold_rejudge(struct remediation *core, struct incident *incident);
/* A tray accused on its own account, outside any verdict: opens an incident. */
void fold_accuse_node(struct remediation *core, const char *job, const char *node,
                      const char *source);
/* The same for a whole job that does not get back to work; NULL when it is told already. */
struct incident *fold_accuse_job(struct remediation *core, const char *job, const char *source);
/* Rule, plan, mode and severity by the present policies; false when the rule's `unless` asks to
 * wait. */
bool fold_choose_rule(struct remediation *core, struct incident *incident);
void fold_merge(struct remediation *core, struct incident *from, struct incident *into);

/* look.c: one event through the table, and whatever follows from it. */
void look_dispatch(struct remediation *core, struct incident *incident, enum fsm_event event,
                   const char *reason);
void look_incident(struct remediation *core, struct incident *incident);
void look_all(struct remediation *core);
/* The world is asked for when what this incident waits for needs it read again. */
void look_ask_world(struct remediation *core, const struct incident *incident);
/* The time of its step begins anew: nobody looked while it passed. */
void look_give_step_time(const struct remediation *core, struct incident *incident);
int64_t look_settle_end(const struct remediation *core, const struct incident *incident);
/* Read from the store and not accused since: nothing is done about it until its fault is seen
 * again. */
bool look_is_unseen(const struct remediation *core, const struct incident *incident);
void look_wait_for(struct incident *incident, const char *format, ...) PRINTF_LIKE(2, 3);
/* For the cluster to answer the action of this verb that is under way, with what it last said that
 * it waits for. */
void look_wait_for_answer(const struct remediation *core, struct incident *incident,
                          enum verb verb);

/* act.c: commands of the table -> actions; outcomes -> events. */
void act_run(struct remediation *core, struct incident *incident, enum fsm_command command);
void act_poll_due(struct remediation *core, struct incident *incident);
void act_outcome(struct remediation *core, struct incident *incident,
                 struct incident_action *action, const struct action_result *result);
/* As remediation_polled. */
bool act_polled(struct remediation *core, struct incident *incident, struct incident_action *action,
                const struct action_result *result);
int act_tries(const struct incident *incident, int step);
/* Where the doing of `verb` to one node stands, beside the plan. */
enum aside_state {
    ASIDE_DUE = 0,
    ASIDE_UNDER_WAY,
    ASIDE_LATER, /* did not happen: due again after a while */
    ASIDE_OVER   /* done, refused, or tried often enough */
};
enum aside_state act_aside_state(const struct remediation *core, const struct incident *incident,
                                 enum verb verb, const char *node);
/* An uncordon of ours that the node was in has succeeded, or is under way. */
bool act_was_uncordoned(const struct incident *incident, const char *node);
/* Tells the cluster what became of promised spares: the job runs on them, or they are free. */
void act_settle(struct remediation *core, struct incident *incident, const struct names *spares,
                bool used);
/* Takes off what is left on nodes that somebody else uncordoned. */
void act_take_marks_off(struct remediation *core, struct incident *incident,
                        const struct names *nodes);
/* Tells people something that no step of a plan tells: who has to move now, and why. Not in observe
 * mode, and never in the way of a step. */
void act_tell(struct remediation *core, struct incident *incident, const char *sentence);
/* A step's action that was under way when broomd was started anew is read once before a deadline
 * ends it. Until when that is waited for at most; 0: there is none. */
int64_t act_read_until(const struct remediation *core, const struct incident *incident);
/* Ends an action that never answered, at a deadline. */
void act_abandon(struct remediation *core, struct incident *incident, const char *reason);
/* The job holds no rank on any node of the incident (and somebody knows where its ranks are). */
bool act_job_has_moved(const struct remediation *core, const struct incident *incident);
const char *act_command_verb(enum fsm_command command); /* verb that executes it, or NULL */

/* marks.c: what is left of a cordon that somebody took off. */
void marks_watch(struct remediation *core, struct incident *incident);

/* fence.c: who says that a node is off. */
const char *fence_word(const struct remediation *core, const char *node); /* NULL: nobody */
/* Said, and not contradicted by what the world shows now. */
bool fence_stands(const struct remediation *core, const char *node);
/* A fence step or a hand-over succeeded. Its response may be {"fenced": ["n1"]} or {"fenced":
 * true}; a fence step whose response says nothing of it fenced all its nodes. */
void fence_take_answer(struct remediation *core, struct incident *incident,
                       const struct incident_action *action, const char *response);
/* In every incident that is open and has the node; returns in how many. */
size_t fence_by_person(struct remediation *core, const char *node, const char *actor,
                       const char *text);
void fence_whole_incident(struct remediation *core, struct incident *incident, const char *actor);
/* A new world: a node that is seen ready again is not off. */
void fence_watch(struct remediation *core, struct incident *incident);
/* Nodes of the incident that are to be fenced: not off yet, and working for no other job. */
void fence_add_due(const struct remediation *core, const struct incident *incident,
                   struct names *nodes);

/* restarts.c: restarts as the cluster shows them. A new world: one that does not end, or that comes
 * again and again without a step, or of a part of a gang alone, is an incident where none is open.
 */
void restarts_watch(struct remediation *core);
/* Restarts of ours that the job has not answered with a step. */
int restarts_without_step(const struct remediation *core, const char *job);

/* coming_back.c: the way back of hardware. */
void back_watch(const struct remediation *core, struct incident *incident); /* a new world */
void back_look_repairing(struct remediation *core, struct incident *incident);
void back_look_validating(struct remediation *core, struct incident *incident);
/* Validated nodes whose cordon is ours to take off. */
void back_add_due(const struct remediation *core, const struct incident *incident,
                  struct names *nodes);

/* place.c: from the restart to the job's new place. */
void place_watch(struct remediation *core, struct incident *incident); /* restarting, placing */
void place_add_stuck_due(const struct remediation *core, const struct incident *incident,
                         struct names *nodes);
bool place_is_reached(const struct remediation *core, const struct incident *incident);
void place_note_landing(struct remediation *core, struct incident *incident);
void place_settle(struct remediation *core, struct incident *incident);
/* "resumes from step 1200, saved 2027-01-15T08:02:00Z; 34 steps are lost"; nothing when unknown. */
void place_add_resume(const struct remediation *core, const struct incident *incident,
                      struct text *out);
bool place_has_to_settle(const struct incident *incident);

#endif
