/* A job's recent samples in bounded memory: for each metric a ring of steps, a row a step, a float
 * a rank. The raw window of an incident and the one-minute rollups come from it. Pure.
 */
#ifndef BROOM_SERIES_SERIES_H
#define BROOM_SERIES_SERIES_H

#include "controller/base/mem.h"
#include "controller/base/sample.h"

struct series;

/* Holds as many of the newest steps as the budget allows (at least 16). Memory is taken metric by
 * metric as they are first sent. Caller frees. */
struct series *series_new(int32_t world_size, size_t budget_bytes);
void series_free(struct series *series);
DEFINE_AUTO(struct series, series_free)

/* Keeps the fields of a `step` sample; others are not kept. A second sample of a rank and step
 * replaces the first; one older than the ring is dropped and counted. rank must be below
 * world_size. */
void series_add(struct series *series, const struct sample *sample);

struct series_counts {
    int64_t kept;
    int64_t too_old;   /* the ring had gone past its step */
    int64_t no_memory; /* planes that the system had no memory for */
    int64_t clock_off; /* weeks away from the other ranks of its step: left out */
    int64_t no_minute; /* kept, but in no rollup: its minute has closed, or is far ahead */
};
struct series_counts series_counts(const struct series *series);
size_t series_bytes(const struct series *series);
int32_t series_steps(const struct series *series); /* capacity of the ring */

/* One minute of one metric: mean of each rank, NAN where it sent none. */
struct rollup {
    enum field metric;
    int64_t minute_ns;
    int32_t ranks;
    float *values; /* owned: ranks entries */
};
/* Takes the next closed minute; false when there is none. A minute closes ROLLUP_LATE_S after its
 * end, by the senders' time now_ns. Call until false, at least once a minute. A clock that is more
 * than ten minutes ahead of now_ns gets no rollups; its raw samples stay. */
enum { ROLLUP_LATE_S = 30 };
bool series_take_rollup(struct series *series, int64_t now_ns, struct rollup *ret_rollup);
void rollup_done(struct rollup *rollup);

/* Columns of raw samples, all of one length, ordered by step and rank within the order of arrival.
 */
struct raw_window {
    size_t count;
    int64_t *time_ns;
    int64_t *step;
    int32_t *rank;
    float *value;
};
/* What the ring holds of a metric with from_ns <= time <= to_ns. Owned: raw_window_done. */
struct raw_window series_window(const struct series *series, enum field metric, int64_t from_ns,
                                int64_t to_ns);
void raw_window_done(struct raw_window *window);

#endif
