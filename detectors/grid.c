/* Counting sort of ranks into the units of each cut. */
#include "detectors/grid.h"

#include <assert.h>

static void cut_fill(struct grid_cut *cut, int32_t ranks)
{
    cut->start = xcalloc((size_t)cut->count + 2, sizeof *cut->start);
    cut->list = xcalloc((size_t)ranks, sizeof *cut->list);
    for (int32_t r = 0; r < ranks; r++)
        if (cut->of[r] != JOB_NONE)
            cut->start[cut->of[r] + 2]++;
    for (int32_t u = 0; u < cut->count; u++)
        cut->start[u + 2] += cut->start[u + 1];
    /* start[u + 1] is now where unit u begins; filling moves it to where u ends. */
    for (int32_t r = 0; r < ranks; r++)
        if (cut->of[r] != JOB_NONE)
            cut->list[cut->start[cut->of[r] + 1]++] = r;
}

static void place_rank(struct grid *grid, const struct job *job, int32_t rank)
{
    struct job_place place = job_place_of(job, rank);
    const struct job_rank *seat = &job->ranks[rank];
    int32_t rack = seat->tray != JOB_NONE ? job->trays[seat->tray].rack : JOB_NONE;
    int32_t unit[CUT_COUNT] = {
        [CUT_STAGE] = place.stage,         [CUT_REPLICA] = place.replica,
        [CUT_TENSOR] = place.tensor_group, [CUT_DATA] = place.data_group,
        [CUT_EXPERT] = place.expert_group, [CUT_TRAY] = seat->tray,
        [CUT_RACK] = rack,                 [CUT_RAIL] = seat->rail,
    };

    for (int c = 0; c < CUT_COUNT; c++) {
        grid->cut[c].of[rank] = unit[c];
        if (unit[c] >= grid->cut[c].count)
            grid->cut[c].count = unit[c] + 1;
    }
}

struct grid *grid_new(const struct job *job)
{
    struct grid *grid = xcalloc(1, sizeof *grid);

    grid->ranks = job->world_size;
    for (int c = 0; c < CUT_COUNT; c++)
        grid->cut[c].of = xcalloc((size_t)grid->ranks, sizeof(int32_t));
    for (int32_t r = 0; r < grid->ranks; r++)
        place_rank(grid, job, r);
    for (int c = 0; c < CUT_COUNT; c++)
        cut_fill(&grid->cut[c], grid->ranks);
    return grid;
}

void grid_free(struct grid *grid)
{
    if (grid == NULL)
        return;
    for (int c = 0; c < CUT_COUNT; c++) {
        xfree(grid->cut[c].of);
        xfree(grid->cut[c].start);
        xfree(grid->cut[c].list);
    }
    xfree(grid);
}

int32_t grid_rack_of_tray(const struct grid *grid, int32_t tray)
{
    if (tray == JOB_NONE || tray >= grid->cut[CUT_TRAY].count || grid_size(grid, CUT_TRAY, tray) == 0)
        return JOB_NONE;
    return grid_of(grid, CUT_RACK, grid_members(grid, CUT_TRAY, tray)[0]);
}
