/* What the parts of the Slurm actuator share: a call of the port under way, the programs that it
 * runs, the reads that most verbs begin with. Private to slurm*.c.
 */
#ifndef BROOM_ACTUATORS_SLURM_CALL_H
#define BROOM_ACTUATORS_SLURM_CALL_H

#include "controller/io/process.h"
#include "remediation/actuators/slurm.h"
#include "remediation/actuators/slurm_drains.h"
#include "remediation/actuators/slurm_state.h"

#include <sys/queue.h>

struct slurm_call;

struct slurm {
    struct actuator port;
    struct loop *loop;
    struct http_client *client;
    struct process_runner *runner;
    char *scontrol, *scancel, *conf, *cluster, *user, *token_file, *rest_url;
    char *spare_feature, *spare_reservation;
    bool requeue_always;
    char *seen_cluster; /* ClusterName as last told; "" before that */
    int rest_version;   /* 38 for v0.0.38; 0: not known, or no slurmrestd */
    bool (*may_act)(void *context);
    void *may_act_context;
    struct slurm_drains drains; /* those that we made and want to stand */
    LIST_HEAD(, slurm_call) calls;
};

/* --- the call --- */

enum slurm_call_kind { SLURM_START = 0, SLURM_POLL, SLURM_DESCRIBE };

/* What a call can read before it decides. */
enum slurm_read {
    SLURM_READ_CONFIG = 0,
    SLURM_READ_NODES,
    SLURM_READ_TOPOLOGY,
    SLURM_READ_RESERVATIONS,
    SLURM_READ_JOB, /* the action's own */
    SLURM_READ_COUNT
};

/* One program's answer. */
struct slurm_answer {
    /* OK: exit 0. ERR_UNREACHABLE: nothing was done. ERR_TIMEOUT, ERR_IO, ERR_LIMIT: it may have
     * been done. ERR_NOT_FOUND: Slurm knows no such job, node, reservation. ERR_REFUSED: it said
     * no.
     */
    enum status status;
    struct view output;
    const char *message; /* one line when status is not OK; lent for the call */
};
typedef void slurm_answer_fn(struct slurm_call *call, const struct slurm_answer *answer);
typedef void slurm_step_fn(struct slurm_call *call);

struct slurm_reading {
    enum status status;
    struct text text;  /* of scontrol */
    struct json *json; /* of slurmrestd; NULL when scontrol answered */
    char message[256];
};

struct slurm_nodes {
    struct slurm_node *items; /* by name */
    size_t count, capacity;
};

struct slurm_asked_job {
    char *name, *id; /* id "" when the workload names none of ours */
    char *why_not;   /* then: why */
    char *distribution, *cluster;
    int32_t world_size;
    struct slurm_reading reading;
};

struct slurm_call {
    struct slurm *owner;
    LIST_ENTRY(slurm_call) entry;
    enum slurm_call_kind kind;
    action_done_fn *done;
    world_done_fn *described;
    void *context;
    /* the action, owned */
    char operation_id[OPERATION_ID_BYTES];
    enum verb verb;
    char *incident_ref, *reason, *job_id;
    char *workload_problem; /* why job_id is "" */
    struct json *workload, *params;
    struct names nodes_wanted, spares;
    /* what was read */
    struct slurm_reading readings[SLURM_READ_COUNT];
    unsigned read_mask;
    size_t reads_left;
    slurm_step_fn *after_reads;
    struct slurm_nodes nodes;
    struct slurm_job job;
    bool has_job;
    struct slurm_asked_job *asked;
    size_t asked_count;
    /* a verb's own progress */
    struct names todo;   /* nodes still to be written */
    struct text kept;    /* sentence about what was left alone */
    bool any_ours;       /* some of the nodes were drained by this incident already */
    int64_t deadline_ns; /* real monotonic time; of what waits */
    int64_t signalled_s; /* wall time of a checkpoint's signal, seconds */
    struct loop_timer *timer;
    slurm_step_fn *on_timer;
    struct slurm_run *runs; /* programs under way */
    struct slurm_get *gets; /* requests under way */
    struct text said;       /* commands that change and their answers, for the record */
};

struct slurm_call *slurm_call_new(struct slurm *owner, enum slurm_call_kind kind, void *context);
void slurm_call_take_action(struct slurm_call *call, const struct action *action);
void slurm_call_free(struct slurm_call *call);

/* The id of the Slurm job that a workload names, "" when it names none; then why. cluster: our own,
 * "" when not known yet. The caller frees both. */
char *slurm_workload_job(const struct json *workload, const char *cluster, char **ret_why_not);
/* The configured name, else the one that answered; "" before that. */
const char *slurm_cluster(const struct slurm *slurm);

/* Ends the call with its one answer; frees it. */
void slurm_finish(struct slurm_call *call, enum outcome outcome, enum poll_state poll,
                  const char *format, ...) PRINTF_LIKE(4, 5);
/* Ends a start or poll whose read failed: nothing was changed by it. */
void slurm_finish_unread(struct slurm_call *call, enum status status, const char *message);
/* Ends a start whose change failed, by what the answer means. */
void slurm_finish_failed(struct slurm_call *call, const struct slurm_answer *answer);

/* --- programs --- */

/* Runs a program; arguments are copied. recorded: it goes into call->said. */
void slurm_run(struct slurm_call *call, const char *const *argv, bool recorded,
               slurm_answer_fn *fn);
/* scontrol with up to seven arguments, NULL at the end; recorded in call->said. */
void slurm_change(struct slurm_call *call, slurm_answer_fn *fn, const char *first, ...)
    __attribute__((sentinel));

/* `scontrol show WHAT [ID]` into a reading, then fn. */
void slurm_read_by_tool(struct slurm_call *call, struct slurm_reading *reading, const char *what,
                        const char *id, slurm_answer_fn *fn);
void slurm_drop_runs(struct slurm_call *call);
void slurm_drop_gets(struct slurm_call *call);
/* The token file without its line end. */
MUST_CHECK enum status slurm_token(const struct slurm *slurm, struct text *token,
                                   struct error *reterr);

/* Reads what the mask (1 << SLURM_READ_...) names, and the asked jobs; then fn. */
void slurm_read_all(struct slurm_call *call, unsigned mask, slurm_step_fn *fn);
/* The first reading of the mask that failed, or NULL. */
const struct slurm_reading *slurm_failed_reading(const struct slurm_call *call, unsigned mask);
/* Calls fn after this many milliseconds. */
void slurm_wait(struct slurm_call *call, int64_t after_ms, slurm_step_fn *fn);

void slurm_reading_done(struct slurm_reading *reading);
void slurm_nodes_done(struct slurm_nodes *nodes);
/* The caller frees the job. False: no such record. */
bool slurm_reading_job(const struct slurm_reading *reading, struct slurm_job *ret_job);

/* call->nodes from their reading. False: it names no nodes, or was cut. */
bool slurm_take_nodes(struct slurm_call *call);
struct slurm_node *slurm_find_node(const struct slurm_nodes *nodes, const char *name);
/* call->job from its reading. False: no such record. */
bool slurm_take_job(struct slurm_call *call);

/* --- verbs, each its own file --- */

void slurm_cordon_start(struct slurm_call *call);
void slurm_cordon_poll(struct slurm_call *call);
void slurm_uncordon_start(struct slurm_call *call);
void slurm_uncordon_poll(struct slurm_call *call);
void slurm_drain_start(struct slurm_call *call);
void slurm_restart_start(struct slurm_call *call);
void slurm_restart_poll(struct slurm_call *call);
void slurm_checkpoint_start(struct slurm_call *call);
void slurm_spare_start(struct slurm_call *call);
void slurm_spare_poll(struct slurm_call *call);
void slurm_describe_start(struct slurm_call *call);

/* A value of the configuration that was read; empty when missing. */
struct view slurm_config_of(const struct slurm_call *call, const char *key);
/* Ends a describe with the world as it was read. */
void slurm_tell(struct slurm_call *call);
/* The same after its nodes were read again. */
void slurm_tell_mended(struct slurm_call *call);
/* Holds our drains against the nodes that were read. True: some are lost. */
bool slurm_judge_drains(struct slurm_call *call);
/* Makes the lost ones again, then tells. */
void slurm_mend(struct slurm_call *call);

/* Why Slurm would not requeue this job, one sentence; false: it would. */
bool slurm_restart_refusal(const struct slurm_job *job, bool requeue_always, struct text *out);
/* Makes the reservation hold exactly these nodes, for the user of call->job. Needs the reservations
 * to have been read. */
void slurm_reserve(struct slurm_call *call, const char *name, const struct names *nodes,
                   slurm_answer_fn *fn);
/* "broom-job-12". */
void slurm_reservation_name(struct text *out, const char *job_id);

#endif
