/* Inside of the job model, shared by model*.c and faults.c. */
#ifndef BROOM_REHEARSE_MODEL_STATE_H
#define BROOM_REHEARSE_MODEL_STATE_H

#include "controller/rehearse/model.h"
#include "controller/rehearse/random.h"

#define MODEL_SECOND INT64_C(1000000000)
#define MODEL_MS     INT64_C(1000000)

enum { NAME_BYTES = 24, MODEL_FAULTS_MAX = 64 };

struct hardware_tray {
    char name[NAME_BYTES];
    int32_t rack;
    bool dead;
    int64_t skew_ns;
};

struct hardware_rack {
    char name[NAME_BYTES];
    char domain[NAME_BYTES + 4];
};

/* What faults do to one GPU in one step. Neutral: 1, 0, 1, 1, 0, 0, 1. */
struct effect_on_gpu {
    double compute;   /* factor on its kernels */
    double host_part; /* host stall as a part of its own time */
    double link;      /* factor on its network transfer */
    double nvlink;    /* factor on NVLink transfer */
    double data_part; /* loader delay as a part of its own time */
    double memory;    /* 0 to 1: how full beyond the usual */
    double gradient;  /* factor on its own gradient norm */
};

struct active_fault {
    struct model_fault fault;
    int64_t begun_step; /* -1: not yet */
    bool struck;        /* a stopping fault has done its deed */
};

/* One rank in the step under way, ms. */
struct rank_step {
    double own;     /* kernels and host work */
    double kernels; /* part of own in which its SMs are busy */
    double data;
    double tp; /* in the tensor collective, waiting included */
    double ep;
    double recv;
    double arrival;   /* at the all-reduce, from the step's begin */
    double allreduce; /* waiting included */
};

/* A line that comes later than its moment. */
struct pending {
    int64_t due_ns;
    uint64_t order; /* keeps equal times in order */
    struct sample sample;
};

struct model {
    struct model_config config;
    char *job_name;
    struct random random;
    struct heavy_tail tail;
    /* hardware; slot = tray x gpus + gpu */
    struct hardware_rack *racks;
    int32_t rack_count;
    struct hardware_tray *trays;
    int32_t tray_count;
    double *offset;                /* by slot */
    double *memory;                /* by slot: usual share */
    struct effect_on_gpu *effects; /* by slot */
    bool effects_set;
    double job_compute, job_transfer, job_transfer_noise; /* faults of the whole job */
    double loss_factor;                                   /* NAN: not a number */
    /* ranks */
    int32_t world, dp;
    int32_t *slot_of;
    double *noise;         /* by rank: AR(1) state */
    double *expert_load;   /* by expert rank: AR(1) state */
    double *burst;         /* by replica: how much more work its experts have */
    int32_t *burst_steps;  /* by replica: for so many steps more */
    double *work;          /* by replica, this step */
    double *group_ms;      /* by stage x dp + replica: the tensor group's pace */
    int64_t *silent_ns;    /* by rank: its process ends then; INT64_MAX: alive */
    struct rank_step *now; /* by rank */
    double loss_noise;
    struct active_fault faults[MODEL_FAULTS_MAX];
    int32_t fault_count;
    /* time */
    struct model_info info;
    int64_t step;             /* under way */
    int64_t begin_ns, end_ns; /* of the step under way; end INT64_MAX: never */
    int64_t pause_ns;         /* checkpoint or evaluation at its end, included in end_ns */
    const char *pause_kind;   /* "checkpoint", "eval" or NULL */
    double pause_ms;
    int64_t beat_ns, gauge_ns; /* next rounds */
    int64_t attempt_steps;     /* finished in this attempt */
    bool checkpoint_asked;
    /* lines on their way: a binary heap */
    struct pending *pending;
    size_t pending_count, pending_capacity;
    uint64_t pending_order;
};

/* model_timing.c: fills now[], end_ns and the pause of the step that begins at begin_ns. */
void model_time_step(struct model *model);
/* model_strike.c: what lasts, before the step is timed; what strikes, after: it may make the step
 * endless. */
void model_apply_faults(struct model *model);
void model_strike(struct model *model);
/* A hardware event that a tray's monitor tells; gpu -1: of the whole tray. */
void model_tell_event(struct model *model, const char *kind, int32_t tray, int32_t gpu,
                      int64_t at_ns);
/* model_lines.c */
void model_send_steps(struct model *model, model_sample_fn *fn, void *context);
void model_send_beats(struct model *model, int64_t at_ns, model_sample_fn *fn, void *context);
void model_send_gauges(struct model *model, int64_t at_ns, model_sample_fn *fn, void *context);
void model_send_mark(struct model *model, const char *kind, int64_t at_ns, double dur_ms,
                     model_sample_fn *fn, void *context);
/* Queues a line for later. */
void model_queue(struct model *model, const struct sample *sample, int64_t due_ns);
bool model_unqueue(struct model *model, int64_t until_ns, struct sample *ret_sample);

#endif
