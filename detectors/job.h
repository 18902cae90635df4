/* A job as detectors see it: which rank sits on which GPU of which tray of which rack, and how
 * ranks are cut into pipeline stages, replicas and tensor groups. Pure data; made by
 * controller/topology from a job file, from `hello` lines, or from a scheduler.
 */
#ifndef BROOM_DETECTORS_JOB_H
#define BROOM_DETECTORS_JOB_H

#include "controller/base/mem.h"
#include "controller/base/status.h"

#include <stdint.h>

enum { JOB_NONE = -1, JOB_NAME_BYTES = 256, JOB_RANKS_MAX = 131072 };

enum compute_meaning { COMPUTE_ABSENT = 0, COMPUTE_KERNEL, COMPUTE_INCLUSIVE };

enum parallel_dimension {
    DIMENSION_TP = 0,
    DIMENSION_CP,
    DIMENSION_EP,
    DIMENSION_DP,
    DIMENSION_PP,
    DIMENSION_COUNT
};

struct job_rack {
    const char *name;          /* owned by the job */
    const char *nvlink_domain; /* never NULL; the rack's name where not told apart */
};

struct job_tray {
    const char *node; /* owned by the job */
    int32_t rack;     /* index into racks, JOB_NONE when the node is in no known rack */
};

struct job_rank {
    int32_t tray; /* index into trays, JOB_NONE while unknown */
    int16_t gpu;  /* index in its tray, JOB_NONE while unknown */
    int16_t rail; /* JOB_NONE while unknown */
};

struct job {
    const char *name; /* opaque: nothing may be read from it */
    int32_t world_size;
    int32_t size[DIMENSION_COUNT];                  /* tp, cp, ep, dp, pp; at least 1 each */
    enum parallel_dimension order[DIMENSION_COUNT]; /* fastest-changing first, all five */
    enum compute_meaning compute;
    int64_t checkpoint_step;    /* JOB_NONE when unknown */
    int64_t checkpoint_time_ns; /* 0 when unknown */
    const char *workload_json;  /* what a restart acts on, as given; NULL: cannot be restarted */
    struct job_rack *racks;
    int32_t rack_count;
    struct job_tray *trays; /* trays without a rank are spares */
    int32_t tray_count;
    struct job_rank *ranks; /* world_size entries */
    int32_t *tray_slots;    /* private: hash of node names to indices into trays */
    int32_t tray_slot_count;
};

/* The place of a rank in the parallel grid. */
struct job_place {
    int32_t stage;        /* pp index */
    int32_t replica;      /* dp index */
    int32_t tensor;       /* tp index */
    int32_t expert;       /* ep index */
    int32_t context;      /* cp index */
    int32_t tensor_group; /* ranks that share all but tp: `group` id "tp:N" */
    int32_t data_group;   /* ranks that share all but dp */
    int32_t expert_group; /* ranks that share all but ep: `group` id "ep:N" */
};

/* Groups are numbered by the lowest rank order: group N is the N-th distinct group met when ranks
 * are walked from 0. Where dp counts the expert dimension too (world = tp*cp*dp*pp, ep divides dp),
 * ep groups are ep consecutive replicas. */
struct job_place job_place_of(const struct job *job, int32_t rank);

/* A job of world_size ranks, all places unknown, tp = pp = 1, dp = world_size. Caller frees. */
struct job *job_new(const char *name, int32_t world_size);
struct job *job_copy(const struct job *job);
void job_free(struct job *job);
DEFINE_AUTO(struct job, job_free)

/* Find-or-add by exact name; indices stay valid for ever. */
int32_t job_intern_rack(struct job *job, const char *name, const char *nvlink_domain);
int32_t job_intern_tray(struct job *job, const char *node, int32_t rack);
int32_t job_find_tray(const struct job *job, const char *node); /* JOB_NONE when unknown */
int32_t job_find_rack(const struct job *job, const char *name);

#endif
