/* Widest first: a domain is named when at least three quarters of its ranks are suspect and it is
 * more than one of the next narrower kind; what it explains is taken away before narrower ones are
 * tried. */
#include "detectors/domains.h"

bool domain_holds(const struct grid *grid, const struct domain *domain, int32_t rank)
{
    if (domain->scope == SCOPE_RANK)
        return rank == domain->index;
    return grid_of(grid, domain->cut, rank) == domain->index;
}

static int32_t count_suspects(const struct grid *grid, enum cut cut, int32_t unit,
                              const uint8_t *suspects)
{
    int32_t n = 0;

    for (int32_t i = 0; i < grid_size(grid, cut, unit); i++)
        n += suspects[grid_members(grid, cut, unit)[i]] != SUSPECT_NO;
    return n;
}

/* Distinct trays among the suspects of a unit. Members of one tray need not be neighbours in the
 * list, so each tray is counted at its first suspect. */
static int32_t count_trays(const struct grid *grid, enum cut cut, int32_t unit,
                           const uint8_t *suspects)
{
    int32_t trays = 0;

    for (int32_t i = 0; i < grid_size(grid, cut, unit); i++) {
        int32_t rank = grid_members(grid, cut, unit)[i];
        int32_t tray = grid_of(grid, CUT_TRAY, rank);
        bool first = suspects[rank] != SUSPECT_NO && tray != JOB_NONE;

        for (int32_t j = 0; first && j < grid_size(grid, CUT_TRAY, tray); j++) {
            int32_t other = grid_members(grid, CUT_TRAY, tray)[j];
            if (other >= rank)
                break;
            first = !(suspects[other] != SUSPECT_NO && grid_of(grid, cut, other) == unit);
        }
        trays += first;
    }
    return trays;
}

static void explain(const struct grid *grid, enum cut cut, int32_t unit, uint8_t *suspects)
{
    for (int32_t i = 0; i < grid_size(grid, cut, unit); i++)
        suspects[grid_members(grid, cut, unit)[i]] = SUSPECT_NO;
}

static int add(struct domain *domains, int count, enum scope scope, int32_t index, enum cut cut)
{
    if (count < DOMAINS_MAX)
        domains[count++] = (struct domain){.scope = scope, .index = index, .cut = cut};
    return count;
}

/* True when all suspects of the unit move with one tensor group: then nothing says that it is the
 * unit. */
static bool is_one_group(const struct grid *grid, enum cut cut, int32_t unit,
                         const uint8_t *suspects)
{
    int32_t group = JOB_NONE;

    for (int32_t i = 0; i < grid_size(grid, cut, unit); i++) {
        int32_t rank = grid_members(grid, cut, unit)[i];
        if (suspects[rank] == SUSPECT_ALONE)
            return false;
        if (suspects[rank] == SUSPECT_NO)
            continue;
        if (group != JOB_NONE && grid_of(grid, CUT_TENSOR, rank) != group)
            return false;
        group = grid_of(grid, CUT_TENSOR, rank);
    }
    return true;
}

/* All units of one cut that are suspect nearly as a whole and reach over at least min_trays trays.
 */
static int solve_cut(const struct grid *grid, enum cut cut, enum scope scope, int32_t min_trays,
                     uint8_t *suspects, struct domain *domains, int count)
{
    for (int32_t u = 0; u < grid->cut[cut].count; u++) {
        int32_t size = grid_size(grid, cut, u);
        int32_t n = size > 0 ? count_suspects(grid, cut, u, suspects) : 0;

        if (n == 0 || (double)n < DOMAIN_SHARE * size)
            continue;
        if (min_trays > 1 && count_trays(grid, cut, u, suspects) < min_trays)
            continue;
        if ((cut == CUT_TRAY && size < 2) ||
            (cut == CUT_RACK && is_one_group(grid, cut, u, suspects)))
            continue;
        count = add(domains, count, scope, u, cut);
        explain(grid, cut, u, suspects);
    }
    return count;
}

/* Ranks that only move with a tensor group which reaches into an explained rack wait for that rack.
 */
static void explain_groups_of_racks(const struct grid *grid, uint8_t *suspects,
                                    const struct domain *domains, int count)
{
    for (int i = 0; i < count; i++) {
        if (domains[i].scope != SCOPE_RACK)
            continue;
        for (int32_t m = 0; m < grid_size(grid, CUT_RACK, domains[i].index); m++) {
            int32_t rank = grid_members(grid, CUT_RACK, domains[i].index)[m];
            int32_t group = grid_of(grid, CUT_TENSOR, rank);
            for (int32_t j = 0; j < grid_size(grid, CUT_TENSOR, group); j++) {
                int32_t peer = grid_members(grid, CUT_TENSOR, group)[j];
                if (suspects[peer] == SUSPECT_TOGETHER)
                    suspects[peer] = SUSPECT_NO;
            }
        }
    }
}

/* Tensor groups that move together and reach over several trays: nothing says which of the trays.
 */
static int solve_wide_groups(const struct grid *grid, uint8_t *suspects, struct domain *domains,
                             int count)
{
    for (int32_t k = 0; k < grid->cut[CUT_TENSOR].count; k++) {
        int32_t first = grid_members(grid, CUT_TENSOR, k)[0];

        if (suspects[first] != SUSPECT_TOGETHER || count_trays(grid, CUT_TENSOR, k, suspects) < 2)
            continue;
        count = add(domains, count, SCOPE_GROUP, k, CUT_TENSOR);
        explain(grid, CUT_TENSOR, k, suspects);
    }
    return count;
}

/* Ranks that move with a tensor group inside one tray: the tray, since the group is part of it. */
static int solve_together(const struct grid *grid, uint8_t *suspects, struct domain *domains,
                          int count)
{
    for (int32_t r = 0; r < grid->ranks; r++) {
        int32_t tray = grid_of(grid, CUT_TRAY, r);

        if (suspects[r] != SUSPECT_TOGETHER || tray == JOB_NONE ||
            grid_size(grid, CUT_TENSOR, grid_of(grid, CUT_TENSOR, r)) < 2)
            continue;
        count = add(domains, count, SCOPE_TRAY, tray, CUT_TRAY);
        explain(grid, CUT_TRAY, tray, suspects);
    }
    return count;
}

static bool spans_racks(const struct grid *grid, int32_t stage)
{
    int32_t first = grid_of(grid, CUT_RACK, grid_members(grid, CUT_STAGE, stage)[0]);

    for (int32_t i = 0; i < grid_size(grid, CUT_STAGE, stage); i++)
        if (grid_of(grid, CUT_RACK, grid_members(grid, CUT_STAGE, stage)[i]) != first)
            return true;
    return false;
}

/* A whole stage that is more than one rack: its work changed, no hardware is that wide. */
static int solve_stages(const struct grid *grid, uint8_t *suspects, struct domain *domains,
                        int count)
{
    for (int32_t s = 0; s < grid->cut[CUT_STAGE].count && grid->cut[CUT_STAGE].count > 1; s++) {
        int32_t size = grid_size(grid, CUT_STAGE, s);

        if (size == 0 || (double)count_suspects(grid, CUT_STAGE, s, suspects) < 0.9 * size ||
            !spans_racks(grid, s))
            continue;
        count = add(domains, count, SCOPE_STAGE, s, CUT_STAGE);
        explain(grid, CUT_STAGE, s, suspects);
    }
    return count;
}

int domains_solve(const struct grid *grid, uint8_t *suspects, struct domain *domains)
{
    int count = solve_stages(grid, suspects, domains, 0);
    int32_t racks = grid->cut[CUT_RACK].count;

    count = solve_cut(grid, CUT_RACK, SCOPE_RACK, 2, suspects, domains, count);
    explain_groups_of_racks(grid, suspects, domains, count);
    if (racks > 0 && grid->cut[CUT_RAIL].count > 1)
        count = solve_cut(grid, CUT_RAIL, SCOPE_RAIL, 3, suspects, domains, count);
    count = solve_wide_groups(grid, suspects, domains, count);
    count = solve_cut(grid, CUT_TRAY, SCOPE_TRAY, 1, suspects, domains, count);
    count = solve_together(grid, suspects, domains, count);
    for (int32_t r = 0; r < grid->ranks; r++)
        if (suspects[r] != SUSPECT_NO && count < DOMAINS_MAX) {
            count = add(domains, count, SCOPE_RANK, r, CUT_COUNT);
            suspects[r] = SUSPECT_NO;
        }
    return count;
}
