/* One pass over the ranks for each normalisation; NAN marks what is missing and spreads by itself.
 */
#include "detectors/model.h"

#include "detectors/stats/robust.h"

#include <math.h>
#include <string.h>

/* Below this share of reporting ranks a quantity is treated as not sent. */
static const double QUORUM = 0.05;

static float *floats(int32_t count)
{
    return xcalloc((size_t)count + 1, sizeof(float));
}

/* Counting sort of groups by their unit: start has units + 2 entries while it is filled. */
static void list_groups(const int32_t *unit_of, int32_t groups, int32_t units, int32_t **ret_start,
                        int32_t **ret_list)
{
    int32_t *start = xcalloc((size_t)units + 2, sizeof *start);
    int32_t *list = xcalloc((size_t)groups + 1, sizeof *list);

    for (int32_t k = 0; k < groups; k++)
        start[unit_of[k] + 2]++;
    for (int32_t u = 0; u < units; u++)
        start[u + 2] += start[u + 1];
    for (int32_t k = 0; k < groups; k++)
        list[start[unit_of[k] + 1]++] = k;
    *ret_start = start;
    *ret_list = list;
}

void model_init(struct model *model, const struct grid *grid)
{
    memset(model, 0, sizeof *model);
    model->ranks = grid->ranks;
    model->groups = grid->cut[CUT_TENSOR].count;
    model->replicas = grid->cut[CUT_REPLICA].count;
    model->lanes = grid->cut[CUT_LANE].count;
    model->data_groups = grid->cut[CUT_DATA].count;
    model->stages = grid->cut[CUT_STAGE].count;
    model->classes = grid->cut[CUT_CLASS].count;
    model->ratio = floats(model->ranks);
    model->compute = floats(model->ranks);
    model->own = floats(model->ranks);
    model->sm = floats(model->ranks);
    model->outside = floats(model->ranks);
    model->scratch = floats(model->ranks);
    model->group = floats(model->groups);
    model->group_ratio = floats(model->groups);
    model->late = floats(model->groups);
    model->work = floats(model->replicas);
    model->late_lane = floats(model->lanes);
    model->lane = floats(model->lanes);
    model->transfer_ms = floats(model->data_groups);
    model->class_ms = floats(model->classes);
    model->class_usual = floats(model->classes);
    model->class_first = floats(model->classes * USUAL_ROWS);
    model->class_sm = floats(model->classes);
    model->class_tokens = floats(model->classes);
    model->replica_of_group = xcalloc((size_t)model->groups + 1, sizeof(int32_t));
    model->lane_of_group = xcalloc((size_t)model->groups + 1, sizeof(int32_t));
    model->stage_of_group = xcalloc((size_t)model->groups + 1, sizeof(int32_t));
    for (int32_t k = 0; k < model->groups; k++) {
        int32_t first = grid_members(grid, CUT_TENSOR, k)[0];
        model->replica_of_group[k] = grid_of(grid, CUT_REPLICA, first);
        model->lane_of_group[k] = grid_of(grid, CUT_LANE, first);
        model->stage_of_group[k] = grid_of(grid, CUT_STAGE, first);
    }
    model->experts = model->classes / model->stages;
    model->expert_of_replica = xcalloc((size_t)model->replicas + 1, sizeof(int32_t));
    for (int32_t d = 0; d < model->replicas; d++)
        model->expert_of_replica[d] = grid_of(grid, CUT_CLASS,
                                              grid_members(grid, CUT_REPLICA, d)[0]) %
                                      model->experts;
    list_groups(model->replica_of_group, model->groups, model->replicas, &model->replica_start,
                &model->replica_groups);
    list_groups(model->stage_of_group, model->groups, model->stages, &model->stage_start,
                &model->stage_groups);
}

void model_done(struct model *model)
{
    float *all[] = {model->compute,     model->ratio,      model->own,          model->sm,
                    model->outside,     model->scratch,    model->group,        model->late,
                    model->work,        model->lane,       model->transfer_ms,  model->class_ms,
                    model->class_usual, model->class_sm,   model->class_tokens, model->group_ratio,
                    model->late_lane,   model->class_first};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        xfree(all[i]);
    xfree(model->replica_of_group);
    xfree(model->expert_of_replica);
    xfree(model->lane_of_group);
    xfree(model->stage_of_group);
    xfree(model->replica_start);
    xfree(model->replica_groups);
    xfree(model->stage_start);
    xfree(model->stage_groups);
    memset(model, 0, sizeof *model);
}

/* Collects the finite values of a unit's members into scratch. */
static size_t gather(struct model *model, const struct grid *grid, enum cut cut, int32_t unit,
                     const float *values)
{
    const int32_t *members = grid_members(grid, cut, unit);
    int32_t size = grid_size(grid, cut, unit);
    size_t n = 0;

    for (int32_t i = 0; i < size; i++)
        if (isfinite(values[members[i]]))
            model->scratch[n++] = values[members[i]];
    return n;
}

static size_t gather_all(struct model *model, const float *values, int32_t count)
{
    size_t n = 0;

    for (int32_t i = 0; i < count; i++)
        if (isfinite(values[i]))
            model->scratch[n++] = values[i];
    return n;
}

/* Reference over each class's ranks; returns how many values are finite. */
static int32_t class_references(struct model *model, const struct grid *grid, const float *values,
                                float *ret_reference)
{
    int32_t finite = 0;

    for (int32_t s = 0; s < model->classes; s++) {
        size_t n = gather(model, grid, CUT_CLASS, s, values);
        finite += (int32_t)n;
        ret_reference[s] = n > 0 ? (float)robust_reference(model->scratch, n) : NAN;
    }
    return finite;
}

static void over_class(const struct model *model, const struct grid *grid, const float *values,
                       const float *reference, float *out)
{
    for (int32_t r = 0; r < model->ranks; r++) {
        float of = reference[grid_of(grid, CUT_CLASS, r)];
        out[r] = of > 0 ? values[r] / of : NAN;
    }
}

/* The median of a class's first rows: one long row among them is no part of it. */
static float median_of_first(const float *first, int64_t rows)
{
    float values[USUAL_ROWS];
    size_t n = 0;

    for (int64_t i = 0; i < rows; i++)
        if (first[i] > 0)
            values[n++] = first[i];
    return n > 0 ? (float)robust_median(values, n) : 0;
}

/* The usual references follow the row's as long as they agree with them. */
static void follow_usual(struct model *model)
{
    static const double WEIGHT = 0.02, AGREES = 0.02;

    for (int32_t s = 0; s < model->classes; s++) {
        double now = (double)model->class_ms[s], usual = (double)model->class_usual[s];
        float *first = model->class_first + (size_t)s * USUAL_ROWS;
        if (model->usual_rows < USUAL_ROWS) {
            first[model->usual_rows] = now > 0 ? (float)now : 0;
            model->class_usual[s] = median_of_first(first, model->usual_rows + 1);
        } else if (now > 0 && (!(usual > 0) || fabs(now / usual - 1) < AGREES)) {
            model->class_usual[s] += (float)((usual > 0 ? WEIGHT : 1) * (now - usual));
        }
    }
    model->usual_rows++;
}

void model_restart(struct model *model)
{
    model->usual_rows = 0;
}

/* The middle of the others: each value is held against a reference that it has no part in. Sorts by
 * insertion, since groups are small; order[i] says whose value sorted[i] is. */
enum { PEERS_MAX = 64 };
struct peers {
    int count;
    float sorted[PEERS_MAX];
    int32_t order[PEERS_MAX];
};

static void peers_add(struct peers *peers, int32_t whose, float value)
{
    int place = peers->count;

    if (!isfinite(value) || peers->count == PEERS_MAX)
        return;
    for (; place > 0 && peers->sorted[place - 1] > value; place--) {
        peers->sorted[place] = peers->sorted[place - 1];
        peers->order[place] = peers->order[place - 1];
    }
    peers->sorted[place] = value;
    peers->order[place] = whose;
    peers->count++;
}

/* out[whose] = value - lower median of all others. */
static void peers_subtract(const struct peers *peers, float *out)
{
    int middle = (peers->count - 2) / 2;

    if (peers->count < 2)
        return;
    for (int i = 0; i < peers->count; i++)
        out[peers->order[i]] = peers->sorted[i] - peers->sorted[middle < i ? middle : middle + 1];
}

/* Takes out of r what more or fewer tokens than usual explain: the slope is learned over all ranks,
 * and large residuals count little in it. Without a spread of tokens there is nothing to explain.
 */
static void explain_tokens(struct model *model, const struct grid *grid, const struct row *row)
{
    static const double FORGET = 0.95, TOKENS_DIFFER = 0.005, MOST = 0.5;
    const float *tokens = row->values[STREAM_TOKENS];
    float *extra = model->outside; /* free until the arrivals are made */
    double products = 0, squares = 0;
    int32_t n = 0;

    if ((row->streams & 1u << STREAM_TOKENS) == 0)
        return;
    (void)class_references(model, grid, tokens, model->class_tokens);
    over_class(model, grid, tokens, model->class_tokens, extra);
    for (int32_t r = 0; r < model->ranks; r++) {
        double x = (double)extra[r] - 1, y = (double)model->ratio[r];
        if (!isfinite(x) || !isfinite(y) || fabs(x) > MOST || fabs(y) > MOST)
            continue;
        products += x * y;
        squares += x * x;
        n++;
    }
    if (n < 2 || squares / n < TOKENS_DIFFER * TOKENS_DIFFER)
        return;
    model->token_products = FORGET * model->token_products + products / n;
    model->token_squares = FORGET * model->token_squares + squares / n;
    double slope = fmin(fmax(model->token_products / model->token_squares, 0), 1.5);
    for (int32_t r = 0; r < model->ranks; r++)
        if (isfinite(extra[r]))
            model->ratio[r] -= (float)(slope * ((double)extra[r] - 1));
}

/* Takes a group's waits out of what its members sent as compute: what a member spends in the
 * group's collectives beyond the member that spends the least, for which the others wait. The
 * transfer stays, so that slow links still show. */
static void take_out_waits(struct model *model, const struct grid *grid, enum cut cut,
                           const float *in_group)
{
    for (int32_t k = 0; k < grid->cut[cut].count; k++) {
        const int32_t *members = grid_members(grid, cut, k);
        int32_t size = grid_size(grid, cut, k);
        size_t n = size > 1 ? gather(model, grid, cut, k, in_group) : 0;

        if (n < 2)
            continue;
        float least = (float)robust_select(model->scratch, n, 0);
        for (int32_t i = 0; i < size; i++)
            if (isfinite(in_group[members[i]]))
                model->compute[members[i]] -= in_group[members[i]] - least;
    }
}

static void fill_compute(struct model *model, const struct grid *grid, const struct row *row)
{
    memcpy(model->compute, row->values[STREAM_COMPUTE],
           (size_t)model->ranks * sizeof *model->compute);
    if (!model->inclusive)
        return;
    if ((row->streams & 1u << STREAM_TP) != 0)
        take_out_waits(model, grid, CUT_TENSOR, row->values[STREAM_TP]);
    if ((row->streams & 1u << STREAM_EP) != 0)
        take_out_waits(model, grid, CUT_EXPERT, row->values[STREAM_EP]);
}

/* ratio, own and group_ratio from compute times. */
static void own_work(struct model *model, const struct grid *grid, const struct row *row,
                     bool learn)
{
    fill_compute(model, grid, row);
    const float *compute = model->compute;
    int32_t finite = class_references(model, grid, compute, model->class_ms);

    if (learn && finite > 1)
        follow_usual(model);
    over_class(model, grid, compute,
               model->stages > 1 && model->usual_rows > 0 ? model->class_usual : model->class_ms,
               model->ratio);
    model->has_compute = (double)finite >= QUORUM * model->ranks && finite > 1;
    for (int32_t r = 0; r < model->ranks; r++)
        model->ratio[r] -= 1;
    explain_tokens(model, grid, row);
    for (int32_t k = 0; k < model->groups; k++) {
        const int32_t *members = grid_members(grid, CUT_TENSOR, k);
        size_t n = gather(model, grid, CUT_TENSOR, k, model->ratio);
        double reference = n > 0 ? robust_reference(model->scratch, n) : (double)NAN;

        struct peers peers = {.count = 0};

        model->group_ratio[k] = (float)reference;
        for (int32_t i = 0; i < grid_size(grid, CUT_TENSOR, k); i++) {
            model->own[members[i]] = NAN;
            peers_add(&peers, members[i], model->ratio[members[i]]);
        }
        peers_subtract(&peers, model->own);
    }
}

/* group and work: what the groups of a replica share is its work; a group is held against the
 * others. */
static void share_work(struct model *model)
{
    for (int32_t d = 0; d < model->replicas; d++) {
        struct peers peers = {.count = 0};

        for (int32_t i = model->replica_start[d]; i < model->replica_start[d + 1]; i++) {
            int32_t k = model->replica_groups[i];
            model->group[k] = model->group_ratio[k];
            peers_add(&peers, k, model->group_ratio[k]);
        }
        peers_subtract(&peers, model->group);
        model->work[d] = peers.count > 1 ? peers.sorted[(int)(0.35 * (peers.count - 1))] : NAN;
    }
}

/* A replica's work is held against that of replicas with the same position among the experts, in
 * this very row: experts are busier for a while, all of them at that position. */
static void level_work(struct model *model)
{
    for (int32_t e = 0; e < model->experts; e++) {
        size_t n = 0;
        for (int32_t d = 0; d < model->replicas; d++)
            if (model->expert_of_replica[d] == e && isfinite(model->work[d]))
                model->scratch[n++] = model->work[d];
        double reference = n > 0 ? robust_reference(model->scratch, n) : 0;
        for (int32_t d = 0; d < model->replicas; d++)
            if (model->expert_of_replica[d] == e)
                model->work[d] -= (float)reference;
    }
}

/* late, late_lane and transfer from all-reduce times. */
static void arrivals(struct model *model, const struct grid *grid, const struct row *row)
{
    const float *allreduce = row->values[STREAM_ALLREDUCE];
    float *late = model->outside; /* by rank, until outside_compute needs it */

    for (int32_t g = 0; g < model->data_groups; g++) {
        const int32_t *members = grid_members(grid, CUT_DATA, g);
        size_t n = gather(model, grid, CUT_DATA, g, allreduce);
        double most = 0;

        model->transfer_ms[g] = n > 0 ? (float)robust_select(model->scratch, n, 0) : NAN;
        if (n > 0)
            most = robust_select(model->scratch, n, (n - 1) - (size_t)(0.2 * (double)(n - 1)));
        for (int32_t i = 0; i < grid_size(grid, CUT_DATA, g); i++)
            late[members[i]] = n > 1 ? (float)((most - (double)allreduce[members[i]]) /
                                               model->busy_ms)
                                     : NAN;
    }
    for (int32_t k = 0; k < model->groups; k++) {
        size_t n = gather(model, grid, CUT_TENSOR, k, late);
        model->late[k] = n > 0 ? (float)robust_reference(model->scratch, n) : NAN;
    }
    for (int32_t d = 0; d < model->lanes; d++) {
        size_t n = gather(model, grid, CUT_LANE, d, late);
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += (double)model->scratch[i];
        model->late_lane[d] = n > 0 ? (float)(sum / (double)n) : NAN;
    }
}

/* lane: one whose every group spends more time outside compute and all-reduce than its stage's
 * other groups. The group that others wait for has no extra waiting of its own, so the least is
 * taken. */
static void outside_compute(struct model *model, const struct grid *grid, const struct row *row)
{
    float *outside = model->outside;
    float *by_group = model->group_ratio; /* free again: group and work are made */

    for (int32_t r = 0; r < model->ranks; r++)
        outside[r] = (row->values[STREAM_STEP_MS][r] - row->values[STREAM_ALLREDUCE][r] -
                      model->compute[r]) /
                     (float)model->busy_ms;
    for (int32_t k = 0; k < model->groups; k++) {
        size_t n = gather(model, grid, CUT_TENSOR, k, outside);
        by_group[k] = n > 0 ? (float)robust_select(model->scratch, n, 0) : NAN;
    }
    for (int32_t s = 0; s < model->stages; s++) {
        size_t n = 0;
        for (int32_t i = model->stage_start[s]; i < model->stage_start[s + 1]; i++)
            if (isfinite(by_group[model->stage_groups[i]]))
                model->scratch[n++] = by_group[model->stage_groups[i]];
        double reference = n > 0 ? robust_reference(model->scratch, n) : 0;
        for (int32_t i = model->stage_start[s]; i < model->stage_start[s + 1]; i++)
            by_group[model->stage_groups[i]] -= (float)reference;
    }
    for (int32_t d = 0; d < model->lanes; d++)
        model->lane[d] = NAN;
    for (int32_t k = 0; k < model->groups; k++) {
        float *lane = &model->lane[model->lane_of_group[k]];
        if (isfinite(by_group[k]) && (!isfinite(*lane) || by_group[k] < *lane))
            *lane = by_group[k];
    }
}

void model_row(struct model *model, const struct grid *grid, const struct row *row, bool learn)
{
    const float *step = row->values[STREAM_STEP_MS], *allreduce = row->values[STREAM_ALLREDUCE];
    size_t n = gather_all(model, step, model->ranks);

    model->step_ms = n > 0 ? robust_median(model->scratch, n) : (double)NAN;
    n = 0;
    for (int32_t r = 0; r < model->ranks; r++)
        if (isfinite(step[r]) && isfinite(allreduce[r]))
            model->scratch[n++] = step[r] - allreduce[r];
    model->has_allreduce = n > 1 && (double)n >= QUORUM * model->ranks;
    model->busy_ms = model->has_allreduce ? robust_median(model->scratch, n) : model->step_ms;
    if (!(model->busy_ms > 0))
        model->busy_ms = model->step_ms;
    own_work(model, grid, row, learn);
    share_work(model);
    level_work(model);
    if (model->has_allreduce)
        arrivals(model, grid, row);
    if (model->has_allreduce && model->has_compute)
        outside_compute(model, grid, row);
    (void)class_references(model, grid, row->values[STREAM_SM], model->class_sm);
    over_class(model, grid, row->values[STREAM_SM], model->class_sm, model->sm);
}
