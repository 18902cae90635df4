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
        [CUT_STAGE] = place.stage,
        [CUT_REPLICA] = place.replica,
        [CUT_CLASS] = place.stage * job->size[DIMENSION_EP] + place.expert,
        [CUT_TENSOR] = place.tensor_group,
        [CUT_DATA] = place.data_group,
        [CUT_EXPERT] = place.expert_group,
        [CUT_TRAY] = seat->tray,
        [CUT_RACK] = rack,
        [CUT_RAIL] = seat->rail,
    };

    for (int c = 0; c < CUT_COUNT; c++) {
        grid->cut[c].of[rank] = unit[c];
        if (unit[c] >= grid->cut[c].count)
            grid->cut[c].count = unit[c] + 1;
    }
}

static int32_t root_of(int32_t *parent, int32_t unit)
{
    while (parent[unit] != unit) {
        parent[unit] = parent[parent[unit]];
        unit = parent[unit];
    }
    return unit;
}

/* Joins replicas that share an expert group, and numbers the joined sets by their lowest replica.
 */
static void place_lanes(struct grid *grid)
{
    const struct grid_cut *replicas = &grid->cut[CUT_REPLICA], *experts = &grid->cut[CUT_EXPERT];
    struct grid_cut *lanes = &grid->cut[CUT_LANE];
    AUTO_FREE int32_t *parent = xcalloc((size_t)replicas->count + 1, sizeof *parent);
    AUTO_FREE int32_t *number = xcalloc((size_t)replicas->count + 1, sizeof *number);
    AUTO_FREE int32_t *first = xcalloc((size_t)experts->count + 1, sizeof *first);

    for (int32_t d = 0; d < replicas->count; d++)
        parent[d] = d;
    for (int32_t r = 0; r < grid->ranks; r++) {
        int32_t expert = experts->of[r], replica = replicas->of[r];
        int32_t a, b;
        if (first[expert] == 0)
            first[expert] = replica + 1;
        a = root_of(parent, first[expert] - 1);
        b = root_of(parent, replica);
        parent[a > b ? a : b] = a < b ? a : b;
    }
    lanes->count = 0;
    for (int32_t d = 0; d < replicas->count; d++)
        number[d] = root_of(parent, d) == d ? lanes->count++ : number[root_of(parent, d)];
    for (int32_t r = 0; r < grid->ranks; r++)
        lanes->of[r] = number[replicas->of[r]];
}

struct grid *grid_new(const struct job *job)
{
    struct grid *grid = xcalloc(1, sizeof *grid);

    grid->ranks = job->world_size;
    for (int c = 0; c < CUT_COUNT; c++)
        grid->cut[c].of = xcalloc((size_t)grid->ranks, sizeof(int32_t));
    for (int32_t r = 0; r < grid->ranks; r++)
        place_rank(grid, job, r);
    place_lanes(grid);
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
    if (tray == JOB_NONE || tray >= grid->cut[CUT_TRAY].count ||
        grid_size(grid, CUT_TRAY, tray) == 0)
        return JOB_NONE;
    return grid_of(grid, CUT_RACK, grid_members(grid, CUT_TRAY, tray)[0]);
}
