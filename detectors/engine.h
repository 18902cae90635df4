/* All detection for one job: samples in arrival order in, verdicts out. Pure: no clock, no I/O, no
 * globals; two engines fed the same samples answer the same bytes. `broom detect`, `broom replay`
 * and broomd drive this one interface.
 *
 * Time is the data's: engine time is the largest plausible sample time seen. While samples come,
 * that is enough. When nothing comes at all (a job whose every rank is silent), the daemon passes
 * time with engine_advance; a recording has no such calls, and its end is never evidence.
 */
#ifndef BROOM_DETECTORS_ENGINE_H
#define BROOM_DETECTORS_ENGINE_H

#include "controller/base/sample.h"
#include "detectors/flight.h"
#include "detectors/history.h"
#include "detectors/job.h"
#include "detectors/verdict.h"

struct engine;

struct engine_params {
    double false_evictions_per_10k_gpu_months; /* the false-alarm budget; default 0.3 */
    double slow_min_ratio; /* smallest slowdown that can be advised for eviction; default 0.03 */
    double gain_min_ratio; /* below it a suspect is info; default 0.01 */
    int64_t hang_after_ns; /* the most that a hang verdict may take; default 5 min less a margin */
    int64_t event_hold_ns; /* how long a hardware event is held at least, until it is known whether
                              its ranks go on; 0: told at once, as if they did not; default 10 s */
    bool enabled;          /* false: everything is parsed and nothing is said */
};

struct engine_params engine_params_default(void);

/* job is copied. The engine's memory is bounded by world_size; about 2 KiB a rank. Caller frees. */
struct engine *engine_new(const struct job *job, const struct engine_params *params);
void engine_free(struct engine *engine);
DEFINE_AUTO(struct engine, engine_free)

/* Takes one sample. A line that cannot be meant for this job (rank outside the world, a host that
 * is not the rank's) is counted and left out. sample->time_ns must be set. */
void engine_feed(struct engine *engine, const struct sample *sample);

/* Tells that now_ns has come and no more samples older than it are on their way. Never goes back.
 */
void engine_advance(struct engine *engine, int64_t now_ns);

/* Nobody listened between the newest sample and now_ns: a process was started anew and fed the
 * past. That time is no silence and no standstill; stops are judged again a while after the first
 * rank is heard. */
void engine_resume(struct engine *engine, int64_t now_ns);
/* The largest attempt that a hello named, and the same told to an engine that did not hear it. */
int64_t engine_hello_attempt(const struct engine *engine);
void engine_know_attempt(struct engine *engine, int64_t attempt);

/* Faults that GPUs, trays and racks had before (copied): what they did counts against them, at most
 * HISTORY_NATS_MOST nats, and is told with their verdicts. A later call replaces an earlier one. */
void engine_take_history(struct engine *engine, const struct history *history);

/* What the communication library recorded of a stop (detectors/flight.h), judged at once. A hang
 * that the samples show names these suspects when the records are of the same time. A later call
 * replaces what was taken before. */
void engine_take_flight(struct engine *engine, const struct flight *flight);
/* Tells a hang from these records alone, unless one that is open used them already. */
void engine_tell_flight(struct engine *engine);

/* Pops the next verdict in the order given; false when there is none. Caller calls verdict_done. */
bool engine_next(struct engine *engine, struct verdict *ret_verdict);

/* A newer document of the same job: checkpoint, workload, trays and racks that were not known, and
 * places of ranks that have sent no hello are taken over; statistics stay. The world size must be
 * the same. */
void engine_update_job(struct engine *engine, const struct job *document);

/* The job as the engine knows it now (hello lines move ranks between trays). Borrowed. */
const struct job *engine_job(const struct engine *engine);

/* What is known of the job's progress, for status pages and the verify step. */
struct engine_progress {
    int64_t step;         /* last step finished by a quorum of ranks; JOB_NONE before the first */
    int64_t step_time_ns; /* when it finished */
    int64_t attempt;      /* number of (re)starts seen, from 0 */
    int64_t attempt_first_step;
    int64_t attempt_time_ns; /* time of the first hello or step of this attempt; 0 when unknown */
    double step_ms;          /* median of the last 20 clean steps; NAN when unknown */
    double baseline_ms; /* median of this attempt's first clean 100 steps, before any fault; NAN */
    int32_t ranks_reporting; /* in the last finished step */
    char phase[16];          /* init, compute, allreduce, data, checkpoint, eval, finished */
};
struct engine_progress engine_progress(const struct engine *engine);

/* One rank as a person asks for it: `broom ranks JOB`. */
struct engine_rank {
    int64_t step;    /* last step that it reported */
    int64_t seen_ns; /* time of its last line of any kind; 0 when never */
    double step_ms, compute_ms, allreduce_ms, wait_ms, sm,
        mem;            /* medians of the last 20; NAN unknown */
    double slow_ratio;  /* own busy time over its peers' median; NAN unknown */
    double suspicion;   /* 0 healthy .. 1 at the verdict's threshold */
    const char *status; /* static: normal, watch, abnormal, not_enough_data, stale */
};
struct engine_rank engine_rank_get(const struct engine *engine, int32_t rank);

/* Writes the open verdicts' reasoning as plain sentences, one block a verdict (`detect --explain`).
 */
void engine_explain(const struct engine *engine, const struct verdict *verdict, struct text *out);

struct engine_counts {
    int64_t samples, used, duplicates, late, wrong_rank, wrong_host, not_finite, unknown_kind;
};
struct engine_counts engine_counts(const struct engine *engine);

#endif
