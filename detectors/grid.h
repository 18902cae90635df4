/* The job's ranks cut into domains: who is a peer of whom. Built from a struct job, rebuilt when
 * ranks move. All lists are compressed rows: members of unit u of a kind are list[start[u] ..
 * start[u+1]).
 */
#ifndef BROOM_DETECTORS_GRID_H
#define BROOM_DETECTORS_GRID_H

#include "detectors/job.h"

/* A lane is what must move together within a step, before the gradient all-reduce: a replica, or
 * the replicas that exchange tokens in expert groups. */
/* A class is ranks with the same work: one stage, and one position among the experts. */
enum cut {
    CUT_STAGE = 0,
    CUT_CLASS,
    CUT_REPLICA,
    CUT_LANE,
    CUT_TENSOR,
    CUT_DATA,
    CUT_EXPERT,
    CUT_TRAY,
    CUT_RACK,
    CUT_RAIL,
    CUT_COUNT
};

struct grid_cut {
    int32_t count;  /* units of this kind */
    int32_t *of;    /* by rank: its unit, JOB_NONE when unknown */
    int32_t *start; /* count + 1 */
    int32_t *list;  /* ranks by unit, ascending in each */
};

struct grid {
    int32_t ranks;
    struct grid_cut cut[CUT_COUNT];
};

struct grid *grid_new(const struct job *job);
void grid_free(struct grid *grid);
DEFINE_AUTO(struct grid, grid_free)

/* Number of members of a unit, and the first of them. */
static inline int32_t grid_size(const struct grid *grid, enum cut cut, int32_t unit)
{
    return grid->cut[cut].start[unit + 1] - grid->cut[cut].start[unit];
}

static inline const int32_t *grid_members(const struct grid *grid, enum cut cut, int32_t unit)
{
    return grid->cut[cut].list + grid->cut[cut].start[unit];
}

static inline int32_t grid_of(const struct grid *grid, enum cut cut, int32_t rank)
{
    return grid->cut[cut].of[rank];
}

/* The rack of a tray that holds at least one rank, JOB_NONE when unknown. */
int32_t grid_rack_of_tray(const struct grid *grid, int32_t tray);

#endif
