/* Nodes and jobs as Slurm tells them, from scontrol's text or slurmrestd's JSON, judged: is a node
 * ready, cordoned and by whom, drained; what phase a job is in. Pure.
 *
 * A node's state is a base and flags. What is not understood is never good: an unknown word makes a
 * node neither ready nor drained.
 */
#ifndef BROOM_ACTUATORS_SLURM_STATE_H
#define BROOM_ACTUATORS_SLURM_STATE_H

#include "remediation/names.h"

enum slurm_base {
    SLURM_BASE_UNKNOWN =
        0, /* not heard of since slurmctld started, or a word that we do not know */
    SLURM_BASE_IDLE,
    SLURM_BASE_ALLOCATED,
    SLURM_BASE_MIXED,
    SLURM_BASE_DOWN,
    SLURM_BASE_ERROR,
    SLURM_BASE_FUTURE,
    SLURM_BASE_COUNT
};

enum slurm_flag {
    SLURM_DRAIN = 1 << 0,
    SLURM_FAIL = 1 << 1,
    SLURM_COMPLETING = 1 << 2,
    SLURM_NOT_RESPONDING = 1 << 3,
    SLURM_POWER = 1 << 4,  /* powered down, or on its way down or up */
    SLURM_REBOOT = 1 << 5, /* asked for or issued */
    SLURM_MAINT = 1 << 6,
    SLURM_RESERVED = 1 << 7,
    SLURM_PLANNED = 1 << 8,
    SLURM_INVALID = 1 << 9, /* registered with less than configured */
    SLURM_CLOUD = 1 << 10,
    SLURM_STRANGE = 1 << 11 /* a word that we do not know */
};

struct slurm_state {
    enum slurm_base base;
    unsigned flags; /* of enum slurm_flag */
};

/* "IDLE+DRAIN+NOT_RESPONDING", and sinfo's short forms with suffixes: "mixed*", "drained~". */
struct slurm_state slurm_state_parse(struct view text);
/* Adds one word: a base, a flag, or a short form. */
void slurm_state_add(struct slurm_state *state, struct view word);

bool slurm_is_ready(struct slurm_state state);
/* DRAIN, and confirmed to hold no job. */
bool slurm_is_drained(struct slurm_state state);

#define SLURM_REASON_PREFIX "broom:"

struct slurm_node {
    char *name;
    struct slurm_state state;
    char *reason; /* its first line, without [who@when]; "" none */
    char *features;
    int32_t gpus;
};
/* record: one node of `scontrol show node`. The caller frees with slurm_node_done. */
void slurm_node_read(struct view record, struct slurm_node *ret_node);
void slurm_node_done(struct slurm_node *node);

/* "gpu:gb300:4(S:0-1),nic:2" -> 4: the last numbers of the gpu entries, what is in braces left out.
 */
int32_t slurm_count_gpus(struct view gres);

/* The incident that a reason of ours names ("INC-3" of "broom:INC-3 slow ..."); empty when the
 * reason is somebody else's. */
struct view slurm_reason_incident(const char *reason);
/* Whether it was slurmctld, not a person, who gave this reason. */
bool slurm_reason_is_own(const char *reason);
/* Taken out of scheduling by a person or by us: DRAIN, FAIL, or set DOWN with a person's reason. */
bool slurm_is_cordoned(const struct slurm_node *node);
bool slurm_has_feature(const struct slurm_node *node, const char *feature);

struct slurm_job {
    char *id;    /* digits */
    char *state; /* RUNNING, PENDING, ... */
    char *reason;
    char *user;  /* name */
    char *nodes; /* hostlists */
    char *required_nodes, *excluded_nodes;
    char *reservation;
    char *admin_comment;
    char *submit_time;
    int64_t restarts, tasks, node_count;
    bool is_batch, may_requeue;
};
void slurm_job_read(struct view record, struct slurm_job *ret_job);
void slurm_job_done(struct slurm_job *job);

bool slurm_job_is(const struct slurm_job *job, const char *state);
/* It has ended: its record stays for a while. */
bool slurm_job_has_ended(const struct slurm_job *job);
/* Pending, and nothing but a release lets it go on. */
bool slurm_job_is_held(const struct slurm_job *job);

/* Our mark in a job's AdminComment: "broom:INC-3/1/4/1 restarts=2 nodes=r1n[01-04]" says that this
 * operation found the job restarted twice and on these nodes. */
struct slurm_mark {
    char operation_id[64];
    int64_t restarts;
    struct view nodes; /* into the comment; may be empty */
};
/* False when the comment holds none. */
bool slurm_mark_read(const char *admin_comment, struct slurm_mark *ret_mark);
/* The comment with this mark in place of an older one of ours; what stood before it is kept. */
void slurm_mark_write(struct text *out, const char *admin_comment, const char *operation_id,
                      int64_t restarts, const char *nodes);

#endif
