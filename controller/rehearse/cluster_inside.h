/* Inside of the simulated cluster: its nodes and the lines of its log. */
#ifndef BROOM_REHEARSE_CLUSTER_INSIDE_H
#define BROOM_REHEARSE_CLUSTER_INSIDE_H

#include "controller/rehearse/cluster_state.h"

enum { CLUSTER_WHO_BYTES = 64 };

struct cluster_node {
    bool hidden;
    bool ready;
    bool spare;                          /* set aside and never used */
    char cordoned_by[CLUSTER_WHO_BYTES]; /* "" when not cordoned */
    char promised_to[JOB_NAME_BYTES];    /* "" when to nobody */
    char handed_to[CLUSTER_WHO_BYTES];   /* whoever repairs it; "" nobody */
    int64_t died_ns;                     /* 0: alive */
    int64_t blip_until_ns;               /* NotReady by a blip until then; 0 none */
};

enum cluster_job_phase {
    CLUSTER_JOB_PENDING = 0,
    CLUSTER_JOB_RUNNING,
    CLUSTER_JOB_RESTARTING,
    CLUSTER_JOB_FAILED,
    CLUSTER_JOB_PHASE_COUNT
};

struct cluster {
    struct cluster_config config;
    char *job_name;
    struct model *model;
    struct cluster_node *nodes; /* by tray */
    int32_t node_count;
    enum cluster_job_phase phase;
    int64_t restarts;
    int64_t restart_due_ns;             /* CLUSTER_JOB_RESTARTING */
    int64_t started_ns, first_death_ns; /* 0: not yet */
    int64_t now_ns;
    int64_t logged_checkpoint;
    struct cluster_operation *operations;
    size_t operation_count, operation_capacity;
    bool waiting_checkpoint; /* an operation waits for one */
    int64_t checkpoint_before;
    struct text log;
};

int32_t cluster_find_node(const struct cluster *cluster,
                          const char *name); /* -1 unknown or hidden */
const char *cluster_phase_name(enum cluster_job_phase phase);

/* Log lines. */
void cluster_log_node(struct cluster *cluster, const char *what, int32_t tray);
void cluster_log_job(struct cluster *cluster, const char *what, int64_t step);
void cluster_log_operation(struct cluster *cluster, const struct cluster_operation *operation,
                           const struct json *body, bool repeated);

/* cluster_operations.c: the operation that waits for a checkpoint ends. */
void cluster_end_checkpoint(struct cluster *cluster, bool saved);

#endif
