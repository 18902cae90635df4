/* The port to a cluster: everything that broomd does to the world goes through start, and
 * everything that it believes of the world comes from poll and describe. Kubernetes, Slurm, the
 * rehearsal cluster and dry_run fill it. Answers come later, on the loop, exactly once a call.
 *
 * start may be called once for an operation id. When its answer is `unknown` (a time-out, a crash
 * between intent and outcome) the truth is found with poll, which only reads; start is called again
 * for the same id only when poll says `absent`. While start has not answered poll may be asked too:
 * it then says what is waited for.
 */
#ifndef BROOM_REMEDIATION_ACTUATOR_H
#define BROOM_REMEDIATION_ACTUATOR_H

#include "controller/base/json.h"

enum verb {
    VERB_NOTIFY = 0,
    VERB_CAPTURE,
    VERB_CORDON,
    VERB_UNCORDON,
    VERB_REQUEST_CHECKPOINT,
    VERB_PROMISE_SPARE,
    VERB_RELEASE_SPARE,
    VERB_RESTART_JOB,
    VERB_HAND_OVER,
    VERB_FENCE, /* nodes: power them off, or confirm that they are; never done by cordoning */
    VERB_DRAIN, /* nodes: evict what runs there, the job's own pods left out */
    VERB_FORCE_DELETE, /* nodes, fenced by somebody's word: the job's pods that never end there */
    VERB_COUNT
};

/* How an action ended. Closed set: DESIGN.md, laws of remediation, 2. */
enum outcome {
    OUTCOME_SUCCEEDED = 0,
    OUTCOME_REFUSED,    /* the cluster or a guard said no: final */
    OUTCOME_TRANSIENT,  /* did not happen; may be tried again under a new operation id */
    OUTCOME_SUPERSEDED, /* somebody else made it unnecessary or impossible */
    OUTCOME_CANCELLED,  /* a person took it back */
    OUTCOME_UNKNOWN,    /* it may have happened: read the world */
    OUTCOME_COUNT
};

enum poll_state { POLL_RUNNING = 0, POLL_DONE, POLL_ABSENT, POLL_UNREACHABLE };

enum { OPERATION_ID_BYTES = 64 };

struct action {
    char operation_id[OPERATION_ID_BYTES]; /* deterministic: INC-n/epoch/step/try */
    enum verb verb;
    const char *incident_ref;  /* INC-n */
    const char *job;           /* NULL for actions on nodes alone */
    const char *workload_json; /* what a restart acts on; NULL when unknown */
    const char *const *nodes;  /* cordon, uncordon, hand_over: nodes; restart: nodes to leave */
    size_t node_count;
    const char *const
        *spares; /* promise and release: spares; restart: nodes that replace `nodes`, by index */
    size_t spare_count;
    const char *reason;      /* one line for people, written beside the effect */
    const char *params_json; /* further parameters of the plan's step; NULL for none */
};

struct action_result {
    enum outcome outcome;
    enum poll_state poll; /* answers of poll only */
    const char *reason;   /* why, in one line; lent for the time of the call */
    const char *response; /* what the cluster answered, for the record; may be NULL; lent */
};
typedef void action_done_fn(void *context, const struct action_result *result);

/* One node as the cluster describes it. */
struct world_node {
    const char *name;
    const char *rack;          /* NULL when the cluster does not know */
    const char *nvlink_domain; /* NULL when unknown */
    bool domain_is_past;       /* nvlink_domain is the last word of a source that is silent now */
    bool ready;
    bool cordoned; /* by anybody */
    const char
        *cordoned_by; /* incident ref when it is ours, else a name or "", NULL when not cordoned */
    bool spare;       /* set aside for replacement, holds no rank */
    const char *promised_to; /* job or NULL */
    int32_t gpus_allocatable;
    const char *fenced_by; /* who vouches that it is off (an out-of-service taint): NULL nobody */
    const char *uncordoned_by; /* who took a cordon of ours off, where the cluster tells; or NULL */
    const char *marked_by;     /* incident whose marks keep pods away though it is not cordoned */
};

struct world_job {
    const char *name;
    const char *uid;
    const char *phase;              /* running, restarting, pending, failed, finished, unknown */
    int64_t restarts, restarts_max; /* the scheduler's own budget; -1 unknown */
    int64_t checkpoint_step;        /* -1 unknown */
    int64_t checkpoint_time_ns;
    const char *const *rank_nodes; /* node of each rank, or NULL when unknown */
    int32_t rank_count;
    const char *waiting_for; /* what keeps it from running, one sentence, names the node; or NULL */
    const char *made_anew;   /* which pods of a gang were made anew alone, while the others are of
                                before, one sentence; or NULL */
    const char *restart_refusal; /* why a restart cannot be made now, one sentence; NULL: it can */
    const char *const *stuck_nodes; /* nodes that are down and whose pods of this job never end */
    size_t stuck_count;
};

/* What describe is asked about: the jobs that broomd knows, and the workload that each is. */
struct job_question {
    const char *job;
    const char *workload_json; /* NULL when unknown: the job cannot be described then */
    int32_t world_size;        /* ranks; 0 unknown */
    int32_t gpus_per_node;     /* ranks a node; 0 unknown */
};
struct world_question {
    const struct job_question *jobs;
    size_t job_count;
};

struct world {
    bool known;         /* false: the cluster did not answer; nothing below is meant */
    const char *reason; /* why not known */
    const struct world_node *nodes;
    size_t node_count;
    const struct world_job *jobs;
    size_t job_count;
};
typedef void world_done_fn(void *context, const struct world *world);

struct actuator {
    const char *name;   /* dry_run, rehearsal, kubernetes, slurm */
    bool changes_world; /* false for dry_run */
    void (*start)(void *self, const struct action *action, action_done_fn *done, void *context);
    void (*poll)(void *self, const struct action *action, action_done_fn *done, void *context);
    /* question is borrowed for the call. The answer tells every node, and the jobs asked about. */
    void (*describe)(void *self, const struct world_question *question, world_done_fn *done,
                     void *context);
    void (*free)(void *self);
    void *self;
};

/* A description that outlives its call. The caller frees the copy. */
struct world *world_copy(const struct world *world);
void world_free(struct world *world);
DEFINE_AUTO(struct world, world_free)

const char *verb_name(enum verb verb);
const char *outcome_name(enum outcome outcome);
bool verb_parse(const char *name, enum verb *ret_verb);
bool outcome_parse(const char *name, enum outcome *ret_outcome);

#endif
