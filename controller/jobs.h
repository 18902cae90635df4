/* The jobs that are alive: for each its layout, its detection engine and its recent samples. A job
 * appears by its first `hello`, by a job document, or both; samples of other jobs are refused.
 */
#ifndef BROOM_CONTROLLER_JOBS_H
#define BROOM_CONTROLLER_JOBS_H

#include "controller/base/sample.h"
#include "controller/series/series.h"
#include "controller/topology/inventory.h"
#include "detectors/engine.h"
#include "remediation/actuator.h"

struct jobs;

struct jobs_limits {
    int64_t memory_bytes;         /* of all jobs together: engines and series */
    int64_t series_bytes_per_job; /* at most; less when the budget is short */
    int32_t jobs;
    int32_t ranks; /* of one job */
};

enum { JOBS_LAG_LINES = 15 };

struct live_job {
    const char *name;
    struct engine *engine;
    struct series *series;
    struct live_job *next;
    int64_t first_seen_ns;
    int64_t last_sample_ns; /* arrival of its newest line; 0 when only a document came */
    int64_t
        sender_lag_ns; /* our clock less the senders', a running median; 0 before the first line */
    int64_t first_lags_ns[JOBS_LAG_LINES]; /* ascending, of its first lines */
    int lag_count;
    int64_t bytes;        /* charged to the budget */
    const char *uid;      /* of the workload, "" when unknown */
    int64_t warm_from_ns; /* recorded lines of its ranks before that are of another attempt, which
                             may have stood elsewhere; 0 none */
    bool has_document;    /* else its layout comes from hello lines alone */
    bool touched;         /* fed since the last pass */
    bool layout_changed;  /* its record of topology is due */
    int64_t attempt;      /* of the layout last recorded */
    int64_t refused_rank, refused_host;
    struct verdict *open; /* verdicts that hold, for a core that is read again; owned */
    size_t open_count, open_capacity;
};

struct jobs *jobs_new(const struct jobs_limits *limits, const struct engine_params *params);
void jobs_free(struct jobs *jobs);
DEFINE_AUTO(struct jobs, jobs_free)

struct live_job *jobs_find(const struct jobs *jobs, struct view name); /* NULL when unknown */
struct live_job *jobs_first(const struct jobs *jobs);                  /* by name; then ->next */
int32_t jobs_count(const struct jobs *jobs);

/* A job document (lent). ERR_CONFLICT: a live job of this name has another workload uid. ERR_LIMIT:
 * no room. A document of the same shape leaves the engine's state as it is; one of another shape
 * makes the job anew. On failure everything is as before. */
MUST_CHECK enum status jobs_put(struct jobs *jobs, const struct job *document, int64_t now_ns,
                                bool *ret_created, struct error *reterr);

/* The cause that jobs_take gives when the budget is used up: compare the pointer. */
extern const char *const JOBS_NO_ROOM;

/* Where a sample went: NULL when taken, else the cause for the sender (static text). A `hello` with
 * a world makes its job. gpu and event lines without a job go to every job that has ranks on their
 * host. */
const char *jobs_take(struct jobs *jobs, const struct sample *sample, int64_t now_ns);

/* What the senders' clocks show now, by how far they were behind ours when lines came; 0 before the
 * first line. A median: one rank whose clock is an hour off does not move it. */
int64_t jobs_sender_time(const struct live_job *live, int64_t now_ns);

/* Whether enough lines came to tell a wrong clock from the right ones: before that, time says
 * nothing of silence. */
bool jobs_is_time_sure(const struct live_job *live);

/* Remembers a verdict that holds, or forgets the one that a clear ends. */
void jobs_note_verdict(struct live_job *live, const struct verdict *verdict);

/* Which rack a node stands in, as the cluster or a site's inventory says; used for jobs known by
 * hello. */
void jobs_learn_world(struct jobs *jobs, const struct world *world);

/* Where nodes stand by the site's inventory, asked before what the world says; what the ranks
 * themselves said does not count. Lent for the life of jobs. */
void jobs_use_inventory(struct jobs *jobs, const struct inventory *inventory);

/* Drops jobs that sent nothing for idle_ns, and frees their budget. Returns how many. */
int32_t jobs_expire(struct jobs *jobs, int64_t now_ns, int64_t idle_ns);

int64_t jobs_bytes(const struct jobs *jobs);

#endif
