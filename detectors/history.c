/* A hazard that follows earlier faults: with a gamma prior the rate of a unit that had n is as (a +
 * n) / a to that of one that had none. Faults of a tray or rack tell less of each of its GPUs. */
#include "detectors/history.h"

#include "controller/base/json.h"

#include <math.h>

static const double PRIOR_FAULTS = 0.5, TRAY_WEIGHT = 0.5, RACK_WEIGHT = 0.25, FAULTS_MOST = 1e6;

struct history_row {
    char *rack, *node; /* owned; one of them is NULL */
    int32_t gpu;
    double faults;
};

struct history {
    struct history_row *rows;
    size_t count, capacity;
};

struct history *history_new(void)
{
    return xcalloc(1, sizeof(struct history));
}

void history_free(struct history *history)
{
    if (history == NULL)
        return;
    for (size_t i = 0; i < history->count; i++) {
        xfree(history->rows[i].rack);
        xfree(history->rows[i].node);
    }
    xfree(history->rows);
    xfree(history);
}

void history_add(struct history *history, const char *rack, const char *node, int32_t gpu,
                 double faults)
{
    if (history->count == HISTORY_ROWS_MAX || !(faults > 0) || (rack == NULL && node == NULL))
        return;
    history->rows = array_grow(history->rows, history->count, &history->capacity,
                               sizeof *history->rows);
    history->rows[history->count++] = (struct history_row){
        .rack = node == NULL ? xstrdup(rack) : NULL,
        .node = node != NULL ? xstrdup(node) : NULL,
        .gpu = gpu,
        .faults = fmin(faults, FAULTS_MOST)};
}

struct history *history_copy(const struct history *history)
{
    struct history *copy = history_new();

    for (size_t i = 0; i < history->count; i++)
        history_add(copy, history->rows[i].rack, history->rows[i].node, history->rows[i].gpu,
                    history->rows[i].faults);
    return copy;
}

enum status history_parse(struct view bytes, struct history **ret_history, struct error *reterr)
{
    AUTO(json_free) struct json *root = NULL;
    AUTO(history_free) struct history *history = history_new();
    const struct json *faults;
    int index = 0;

    TRY(json_parse(bytes, &root, reterr));
    faults = json_get(root, "faults");
    if (json_kind(faults) != JSON_ARRAY)
        return error_set(reterr, ERR_INVALID, "faults: a list is needed");
    for (const struct json *one = json_first(faults); one != NULL; one = json_next(one), index++) {
        const char *rack = json_get_string(one, "rack", NULL);
        const char *node = json_get_string(one, "node", NULL);
        double count = json_get_number(one, "count", 1);
        int64_t gpu = json_get_int(one, "gpu", JOB_NONE);

        if ((rack == NULL) == (node == NULL))
            return error_set(reterr, ERR_INVALID, "faults[%d]: a node or a rack is needed", index);
        if (!(count >= 0) || gpu < JOB_NONE || gpu >= 1024)
            return error_set(reterr, ERR_INVALID, "faults[%d]: count or gpu is out of range",
                             index);
        history_add(history, rack, node, (int32_t)gpu, count);
    }
    *ret_history = TAKE(history);
    return OK;
}

/* Adds one row to all ranks that it speaks of: weighted into nats, counted into faults. */
static void place_row(const struct history_row *row, const struct job *job, const struct grid *grid,
                      float *faults, float *nats)
{
    enum cut cut = row->node != NULL ? CUT_TRAY : CUT_RACK;
    int32_t unit = row->node != NULL ? job_find_tray(job, row->node)
                                     : job_find_rack(job, row->rack);
    double weight = row->node == NULL ? RACK_WEIGHT : row->gpu == JOB_NONE ? TRAY_WEIGHT : 1;

    if (unit == JOB_NONE || unit >= grid->cut[cut].count)
        return;
    for (int32_t i = 0; i < grid_size(grid, cut, unit); i++) {
        int32_t rank = grid_members(grid, cut, unit)[i];
        if (row->gpu != JOB_NONE && job->ranks[rank].gpu != row->gpu)
            continue;
        faults[rank] += (float)row->faults;
        nats[rank] += (float)(weight * row->faults);
    }
}

void history_place(const struct history *history, const struct job *job, const struct grid *grid,
                   float *ret_faults, float *ret_nats)
{
    double sum = 0;

    for (int32_t r = 0; r < job->world_size; r++)
        ret_faults[r] = ret_nats[r] = 0;
    for (size_t i = 0; history != NULL && i < history->count; i++)
        place_row(&history->rows[i], job, grid, ret_faults, ret_nats);
    for (int32_t r = 0; r < job->world_size; r++) {
        ret_nats[r] = (float)fmin(log1p((double)ret_nats[r] / PRIOR_FAULTS), HISTORY_NATS_MOST);
        sum += exp((double)ret_nats[r]);
    }
    /* Shares of one budget: what is given to some is taken from all. */
    for (int32_t r = 0; r < job->world_size; r++)
        ret_nats[r] -= (float)log(sum / job->world_size);
}
