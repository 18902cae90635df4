/* The job model: a synchronous training job on racks of trays, as seen by what its ranks send.
 * Pure: no clock, no I/O; two models of one configuration give the same samples.
 *
 *     struct model_config config = model_config_default();
 *     config.tp = 4;
 *     struct model *model = model_new(&config);
 *     model_add_fault(model, &(struct model_fault){.kind = FAULT_SLOW_GPU, .tray = 3, .gpu = 1,
 *                                                  .magnitude = 1.3, .from_step = 200});
 *     model_start(model, config.start_ns, 0);
 *     while (model_info(model).last_step < 1000)
 *         model_step(model, on_sample, context);
 *
 * A step of rank (stage s, replica d, tensor k): own time = base x stage x work of d x offset of
 * the GPU x (1 + correlated heavy-tailed noise) + host; the tensor group and the expert group wait
 * for their last; the pipeline gives waits and arrival times (1F1B); the data-parallel all-reduce
 * is transfer plus the wait for the last; the step ends when every group has ended.
 */
#ifndef BROOM_REHEARSE_MODEL_H
#define BROOM_REHEARSE_MODEL_H

#include "controller/base/sample.h"
#include "controller/rehearse/faults.h"
#include "detectors/job.h"

struct model;

/* Parts of the lines that go wrong on their way, as formats.md section 1 says real senders do. */
struct model_dirt {
    double lost, doubled, late, nan; /* probabilities a line; late: by a step */
    double skew_ms;                  /* deviation of a tray's clock */
};

struct model_config {
    const char *job; /* copied */
    uint64_t seed;
    int64_t start_ns; /* only names a default for model_start's callers */
    /* Hardware: racks that the job uses, whole spare racks, trays a rack, GPUs a tray. */
    int32_t racks, spare_racks, trays_used, trays_spare, gpus;
    /* Parallel layout; data-parallel size is what is left. order tp-dp-pp. */
    int32_t tp, pp, ep;
    int32_t micro_batches; /* a step, for the pipeline */
    /* What is sent. */
    enum compute_meaning compute; /* absent, kernel, inclusive */
    bool send_allreduce, send_recv, send_tp, send_ep, send_data, send_tokens, send_sm, send_loss;
    int64_t beat_ns;  /* between two beats of a rank; 0: none */
    int64_t gauge_ns; /* between two `gpu` lines of a GPU; 0: none */
    /* Times of a healthy rank, ms. */
    double compute_ms, transfer_ms, tp_ms, ep_ms, data_ms;
    double last_stage_ratio; /* the last stage's compute over the others' */
    double rank0_ratio;      /* rank 0's duties of its own; 1: none */
    /* Noise, as parts of the own time. */
    double noise, noise_lag1; /* deviation and lag-1 autocorrelation of a rank's own time */
    /* What is new in a rank's noise is with this probability a draw from its own upper tail, beyond
     * so many deviations: rare shocks, more often than they come. */
    double shock_probability, shock_least;
    double transfer_noise;                       /* of a group's transfer */
    double gpu_offset, tray_offset, rack_offset; /* persistent spread */
    double imbalance;        /* log deviation of a replica's work, each step anew */
    double expert_imbalance; /* log deviation of an expert rank's load, drifting over steps */
    /* In a step with this probability one more rank's experts become busy, for 2 to 13 steps, by
     * up to so much. */
    double expert_burst_probability, expert_burst;
    double gc_probability, gc_ms; /* garbage collection of a rank: rare host stalls */
    int64_t init_ms;              /* hello to the first step */
    int64_t checkpoint_steps;     /* 0: never */
    double checkpoint_ms;
    int64_t eval_steps; /* 0: never */
    double eval_ms;
    bool send_marks; /* the job tells of checkpoints and evaluations */
    struct model_dirt dirt;
};

/* 2 racks of 16 + 2 trays (128 ranks), tp 4, step about 2 s, AR noise of 0.4 %, beats every 10 s.
 */
struct model_config model_config_default(void);

/* config is copied. world size = racks x trays_used x gpus must be a multiple of tp x pp (assert).
 * The job is halted until model_start. Caller frees. */
struct model *model_new(const struct model_config *config);
void model_free(struct model *model);
DEFINE_AUTO(struct model, model_free)

void model_add_fault(struct model *model, const struct model_fault *fault);

/* One sample of any measurement; its strings live as long as the model. Samples come in the order
 * in which they arrive, nearly that of time. */
typedef void model_sample_fn(void *context, const struct sample *sample);

/* The hello of every rank that lives, as of at_ns. */
void model_send_hello(struct model *model, int64_t at_ns, model_sample_fn *fn, void *context);
/* Goes on to the next moment at which something happens (a step ends, a round of beats, a late
 * line) and gives its samples. A halted model with nothing left gives none. */
void model_step(struct model *model, model_sample_fn *fn, void *context);
/* All moments up to until_ns. */
void model_advance(struct model *model, int64_t until_ns, model_sample_fn *fn, void *context);

/* The job's processes start at at_ns: hello of all ranks, then steps from first_step. */
void model_start(struct model *model, int64_t at_ns, int64_t first_step);
/* All processes of the job are ended at at_ns; while they step they say so with a mark `restart`.
 */
void model_halt(struct model *model, int64_t at_ns);
/* Ranks on from_tray go to to_tray, GPU by GPU. Only while halted. */
void model_move(struct model *model, int32_t from_tray, int32_t to_tray);
/* A checkpoint at the end of the step under way; false while no step can end. */
bool model_request_checkpoint(struct model *model);

enum model_phase { MODEL_HALTED = 0, MODEL_INIT, MODEL_STEPPING, MODEL_STUCK, MODEL_PHASE_COUNT };

struct model_info {
    enum model_phase phase;
    int64_t now_ns;    /* of the last moment */
    int64_t last_step; /* finished; -1 before the first */
    int64_t last_step_ns;
    double last_step_ms;
    int64_t steps_done;      /* over all attempts */
    int64_t attempt;         /* starts so far, less one; -1 before the first */
    int64_t checkpoint_step; /* last step that is saved; -1 none */
    int64_t checkpoint_ns;
    int32_t ranks_alive; /* processes that exist */
};
struct model_info model_info(const struct model *model);

/* Hardware. Trays are numbered rack by rack: used ones and their spares, then the spare racks. */
int32_t model_tray_count(const struct model *model);
int32_t model_rack_of(const struct model *model, int32_t tray);
const char *model_tray_name(const struct model *model, int32_t tray);
const char *model_rack_name(const struct model *model, int32_t rack);
bool model_tray_is_dead(const struct model *model, int32_t tray);
bool model_tray_has_ranks(const struct model *model, int32_t tray);
int32_t model_tray_of_rank(const struct model *model, int32_t rank);

/* The job document as of now; the caller frees it. */
struct job *model_job(const struct model *model);

/* Appends one line of formats.md section 1 and its newline. */
void sample_add_line(const struct sample *sample, struct text *out);

#endif
