/* The kinds of workload that are known, one row each, and what is kept of an object of each kind.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_WORKLOAD_KINDS_H
#define BROOM_ACTUATORS_KUBERNETES_WORKLOAD_KINDS_H

#include "controller/base/json.h"

/* Our annotations on a workload. */
#define WORKLOAD_OPERATION   "broomwagon.io/operation"       /* the restart that was begun last */
#define WORKLOAD_STATE       "broomwagon.io/operation-state" /* of a Volcano restart, JSON */
#define WORKLOAD_RESUMED     "broomwagon.io/resumed"  /* the operation that ended its suspension */
#define WORKLOAD_RESTARTS    "broomwagon.io/restarts" /* how many of ours it has had */
#define WORKLOAD_CHECKPOINT  "broomwagon.io/checkpoint-requested" /* operation that asked for it */
#define WORKLOAD_SPARE_TAINT "broomwagon.io/spare"

enum workload_kind_id {
    WORKLOAD_VOLCANO = 0,
    WORKLOAD_JOBSET,
    WORKLOAD_JOB,
    WORKLOAD_PYTORCHJOB,
    WORKLOAD_TRAINJOB,
    WORKLOAD_WORKFLOW,
    WORKLOAD_KIND_COUNT
};

/* What a controller says of its object. */
enum workload_phase {
    WORKLOAD_PENDING = 0,
    WORKLOAD_RUNNING, /* its pods tell whether that is true, where `pods_tell` */
    WORKLOAD_RESTARTING,
    WORKLOAD_ENDING, /* somebody takes it down; it does not come back by itself */
    WORKLOAD_FAILED,
    WORKLOAD_FINISHED
};

/* Pods of one template. */
struct workload_group {
    char *name;
    int32_t pods;      /* all of them */
    int32_t per_job;   /* JobSet: pods of each of its jobs */
    int32_t gpus;      /* of each pod */
    bool by_partition; /* Volcano: a pod that is evicted restarts its partition of the task */
    bool bears_any;    /* tolerates the spare's taint whatever its value */
    char *bears;       /* values of the spare's taint that it tolerates, one a line */
};

struct workload_item {
    struct workload_item *next;
    const struct workload_kind *kind;
    char *namespace_name, *name, *uid, *version;
    enum workload_phase phase;
    char said[32]; /* the controller's own word: "Restarting" */
    bool is_suspended, suspension_seen;
    int64_t restarts, restarts_max; /* -1 unknown; max: restarts that it survives */
    int64_t restarts_ours;          /* suspended and resumed by us */
    uint64_t gang_seen; /* newest of its pods when all of them ran and were of one start; 0 none */
    char *operation, *operation_state, *resumed, *checkpoint; /* our annotations, "" none */
    char *cannot_restart;                                     /* one sentence, "" it can */
    char *budget;                                             /* of the job, for people; "" none */
    struct workload_group *groups;
    size_t group_count;
};

struct work_call; /* kubernetes_workload_call.h */

struct workload_kind {
    enum workload_kind_id id;
    const char *word;        /* in formats.md */
    const char *api_version; /* "batch.volcano.sh/v1alpha1" */
    const char *kind;        /* "Job" */
    const char *plural;
    const char *suspend_in; /* member of spec that holds `suspend`: "" spec itself; NULL none */
    bool pods_tell;         /* running is when its pods run */
    void (*read)(const struct json *object, struct workload_item *item);
    void (*restart)(struct work_call *call);
    void (*poll)(struct work_call *call);
};

extern const struct workload_kind WORKLOAD_KINDS[WORKLOAD_KIND_COUNT];

const struct workload_kind *workload_kind_find(const char *word); /* or NULL */
/* Path of all objects, or of one. */
void workload_list_path(const struct workload_kind *kind, struct text *path);
void workload_object_path(const struct workload_kind *kind, const char *namespace_name,
                          const char *name, struct text *path);

/* Reads what is kept; the caller ends it with workload_item_done. A missing member is its default.
 */
void workload_item_read(const struct workload_kind *kind, const struct json *object,
                        struct workload_item *ret_item);
void workload_item_done(struct workload_item *item);
/* Failed or finished: no action leads out of that. */
bool workload_item_is_final(const struct workload_item *item);
/* Suspended by a restart of ours that is not finished. */
bool workload_item_is_ours_suspended(const struct workload_item *item);

/* A quantity of whole things ("4" or 4); 0 when it is none. */
int32_t workload_read_count(const struct json *quantity);
/* GPUs that a pod's containers ask for. */
int32_t workload_read_gpus(const struct json *pod_spec);

#endif
