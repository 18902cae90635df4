/* The inside of struct engine, shared by the files of detectors/ that carry out one concern each.
 * Nobody outside detectors/ includes this.
 */
#ifndef BROOM_DETECTORS_ENGINE_STATE_H
#define BROOM_DETECTORS_ENGINE_STATE_H

#include "detectors/chart.h"
#include "detectors/engine.h"
#include "detectors/gauges.h"
#include "detectors/grid.h"
#include "detectors/hardware.h"
#include "detectors/liveness.h"
#include "detectors/model.h"
#include "detectors/numeric.h"
#include "detectors/pace.h"
#include "detectors/steps.h"

/* Rows after a (re)start that say nothing, and then the rows to learn the scale from. */
enum { WARM_UP_ROWS = 5, LEARN_ROWS = 20 };

enum bank_kind {
    BANK_OWN = 0,
    BANK_GROUP,
    BANK_WORK,
    BANK_LANE,
    BANK_LATE_LANE,
    BANK_LATE,
    BANK_COUNT
};

/* A verdict that holds until it is cleared. */
struct open_verdict {
    struct verdict verdict;
    uint8_t *covers;        /* by rank: this verdict explains it */
    struct job_rank *seats; /* where the covered ranks sat: what is suspect is the hardware */
    int32_t seat_count;
    enum bank_kind bank; /* slow: the bank whose units raised it */
    int32_t *units;
    int32_t unit_count;
    double level;         /* slow: shift when it was raised */
    enum chart_test test; /* what it was measured against */
    bool by_rate;
    bool untold;    /* kept without a word: nothing to clear */
    bool by_offset; /* raised for duties of rank 0: told once, never an accusation */
    int64_t opened_row;
    int quiet_rows;
    int quiet_needed; /* rows of quiet before it is cleared; more for what came back before */
};

/* What was cleared lately: a fault that comes and goes is held open longer each time. */
enum { CLEARED_MAX = 16 };
struct cleared {
    enum scope scope;
    char id[VERDICT_ID_BYTES];
    int64_t row; /* closed rows over all attempts */
    int quiet_needed;
};

enum { OPEN_MAX = 256 };

/* Fast means of what each rank sent, for people. */
enum recent_kind {
    RECENT_STEP = 0,
    RECENT_COMPUTE,
    RECENT_ALLREDUCE,
    RECENT_WAIT,
    RECENT_SM,
    RECENT_COUNT
};
struct recent {
    float *values[RECENT_COUNT]; /* by rank; NAN when never sent */
};

struct engine {
    struct engine_params params;
    struct job *job;
    struct grid *grid;
    struct steps *steps;
    struct model model;
    struct bank banks[BANK_COUNT];
    struct gauges gauges;
    struct recent recent;
    float *late_fast, *late_base; /* by tensor group: lateness now and as it was */
    int64_t late_rows;
    struct numeric numeric;
    struct pace pace;
    struct liveness live;
    struct flight_finding finding; /* of records that were handed in */
    bool finding_told;
    struct hardware hardware;

    int64_t now_ns;   /* engine time */
    int64_t ahead_ns; /* a time far ahead of now_ns, waiting for a second clock to agree */
    int64_t ahead_rank;
    int32_t ahead_tray;
    int64_t attempt;
    int64_t attempt_first_step;
    int64_t attempt_time_ns;
    int64_t rows;      /* closed rows in this attempt */
    int64_t last_step; /* last closed step, over all attempts; JOB_NONE */
    int64_t last_step_ns;
    int32_t last_reporting;
    int32_t back_ranks;         /* ranks that report steps from before the last closed one */
    int32_t gauge_tray;         /* tray of the last gauge line */
    uint8_t *went_back;         /* by rank */
    int64_t hello_attempt;      /* largest attempt that a hello named */
    bool is_resumed;            /* and nothing of a newer attempt came since */
    bool restart_pending;       /* restarted, and no row has closed since */
    bool grid_stale;            /* seats or sizes changed since the grid was laid out */
    double z_alarm, nats_alarm; /* from the false-alarm budget */
    int64_t masked_until_step;  /* job-wide pause: rows up to here are not judged */
    int pending_rows;           /* rows until a pending alarm is decided; 0: none */
    enum bank_kind pending_bank;
    int32_t pending_unit;
    int pending_extended; /* times that the wait was made longer */

    struct open_verdict *open[OPEN_MAX];
    int open_count;
    struct cleared cleared[CLEARED_MAX];
    int cleared_count;
    char reweighed[VERDICT_ID_BYTES]; /* id of the info that is being weighed again */
    int64_t all_rows;                 /* closed rows over all attempts */
    struct verdict *queue;
    size_t queue_first, queue_count, queue_capacity;
    struct engine_counts counts;
    struct history *history;        /* NULL: nothing is known */
    float *past_faults, *past_nats; /* by rank; NULL with it */
    uint8_t *flags;                 /* ranks long scratch */
    uint8_t *covered;               /* ranks long scratch */
};

/* verdicts.c */
struct verdict verdict_start(const struct engine *engine, enum verdict_kind kind, enum scope scope);
void verdict_set_domain(const struct engine *engine, struct verdict *verdict, int32_t index);
void verdict_fill_ranks(const struct engine *engine, struct verdict *verdict, const uint8_t *flags);
void engine_emit(struct engine *engine, struct verdict verdict); /* takes it */
/* Takes the verdict, says it and keeps it open; engine_keep keeps a copy and says nothing. */
struct open_verdict *engine_open(struct engine *engine, struct verdict verdict,
                                 const uint8_t *covers);
struct open_verdict *engine_keep(struct engine *engine, const struct verdict *verdict,
                                 const uint8_t *covers);
/* Frees it; say_clear: with a word, where there was one. */
void engine_close(struct engine *engine, int index, bool say_clear);
/* An open verdict on the domain that does not come from a chart; NULL when there is none. */
struct open_verdict *engine_find_open(const struct engine *engine, enum scope scope,
                                      const char *id);
bool engine_is_covered(const struct engine *engine, int32_t rank);

/* One concern a file; each is called at its own place of engine.c. */
void slow_row(struct engine *engine);
/* After a restart: an open slow verdict follows its GPUs to the ranks that sit there now; false
 * when none of its trays holds a rank of the job any more. */
bool slow_rebind(struct engine *engine, struct open_verdict *open);
void pace_row(struct engine *engine, const struct row *row);
void numeric_row(struct engine *engine, const struct row *row);
void liveness_check(struct engine *engine);
/* A step that was not finished before. How long the job stood until then is how long its pauses
 * are. */
void liveness_progress(struct engine *engine, int64_t step);
/* A rank is inside a step, or is about to be: the one before has finished, for all as they wait for
 * each other. One rank may count wrongly; two do not. */
void liveness_ahead(struct engine *engine, int32_t rank, int64_t step);
void hardware_event(struct engine *engine, const struct sample *sample);
void hardware_check(struct engine *engine);

/* What is known of the past of the flagged ranks, where there is something. */
void engine_put_past(const struct engine *engine, struct verdict *verdict, const uint8_t *ranks);

double engine_z_alarm(const struct engine *engine); /* from the false-alarm budget */
double engine_nats_alarm(const struct engine *engine);

#endif
