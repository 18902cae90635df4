/* Three ways to place ranks: as they are today, whole trays in the order of ranks, and tensor group
 * by tensor group. */
#include "controller/topology/layout_state.h"

#include <assert.h>
#include <stdlib.h>

/* ---- as today ---- */

bool place_as_wanted(const struct plan *plan, struct layout_place *places)
{
    const struct job *job = plan->job;
    size_t slots = (size_t)plan->gpus_per_node;
    AUTO_FREE bool *taken = xcalloc(plan->request->node_count * slots + 1, sizeof *taken);
    for (int32_t r = 0; r < job->world_size; r++) {
        int32_t node = plan->request->wanted[r];
        int32_t gpu = job->ranks[r].gpu;
        if (node == JOB_NONE || gpu == JOB_NONE || gpu >= plan->gpus[node])
            return false;
        bool *slot = &taken[(size_t)node * slots + (size_t)gpu];
        if (*slot)
            return false;
        *slot = true;
        places[r] = (struct layout_place){.node = node, .gpu = (int16_t)gpu};
    }
    return true;
}

/* ---- atoms into domains ---- */

/* What is placed as one: a tray full of ranks, or a tensor group. */
struct atom {
    int32_t id;
    int32_t run, set;
    int32_t wanted; /* domain, or JOB_NONE */
    int32_t domain; /* the result, or JOB_NONE */
};

/* Sorted by run, set, id: units are neighbours. */
struct atoms {
    struct atom *items;
    int32_t count;
    int32_t *room; /* of each domain, in atoms */
};

static int by_unit(const void *left, const void *right)
{
    const struct atom *a = left;
    const struct atom *b = right;
    if (a->run != b->run)
        return a->run < b->run ? -1 : 1;
    if (a->set != b->set)
        return a->set < b->set ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int by_id(const void *left, const void *right)
{
    const struct atom *a = left;
    const struct atom *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int32_t find_domain(const struct plan *plan, const struct atoms *atoms, int32_t wanted,
                           int32_t size)
{
    if (wanted != JOB_NONE && atoms->room[wanted] >= size)
        return wanted;
    for (int32_t d = 0; d < plan->domain_count; d++)
        if (atoms->room[d] >= size)
            return d;
    return JOB_NONE;
}

static void place_unit(const struct plan *plan, struct atoms *atoms, int32_t first, int32_t end)
{
    int32_t size = end - first;
    int32_t domain = find_domain(plan, atoms, atoms->items[first].wanted, size);
    if (atoms->items[first].domain != JOB_NONE || domain == JOB_NONE)
        return;
    atoms->room[domain] -= size;
    for (int32_t i = first; i < end; i++)
        atoms->items[i].domain = domain;
}

enum unit { UNIT_RUN = 0, UNIT_SET, UNIT_ATOM, UNIT_COUNT };

static bool is_same_unit(const struct atom *a, const struct atom *b, enum unit unit)
{
    return a->run == b->run && (unit == UNIT_RUN || a->set == b->set) && unit != UNIT_ATOM;
}

/* Runs whole where they fit, then the sets of those that did not, then single atoms. Taking a whole
 * run never costs a set its place: sets are equal, and a run is a number of them. */
static void place_atoms(const struct plan *plan, struct atoms *atoms)
{
    qsort(atoms->items, (size_t)atoms->count, sizeof *atoms->items, by_unit);
    for (int unit = UNIT_RUN; unit < UNIT_COUNT; unit++)
        for (int32_t first = 0, end; first < atoms->count; first = end) {
            for (end = first + 1;
                 end < atoms->count &&
                 is_same_unit(&atoms->items[first], &atoms->items[end], (enum unit)unit);)
                end++;
            place_unit(plan, atoms, first, end);
        }
    qsort(atoms->items, (size_t)atoms->count, sizeof *atoms->items, by_id);
}

static struct atom atom_of(const struct plan *plan, int32_t id, int32_t rank)
{
    int32_t position = plan->position_of[rank];
    int32_t node = plan->request->wanted[rank];
    return (struct atom){.id = id,
                         .run = position / plan->run_size,
                         .set = position / plan->set_size,
                         .wanted = node != JOB_NONE ? plan->domains[node] : JOB_NONE,
                         .domain = JOB_NONE};
}

/* ---- whole trays, by counting ---- */

/* Gives each block a node of its domain: the one where it is today if that is free, else the next.
 */
static void blocks_to_nodes(const struct plan *plan, const struct atoms *blocks, int32_t *node_of)
{
    size_t nodes = plan->request->node_count;
    AUTO_FREE bool *used = xcalloc(nodes + 1, sizeof *used);
    AUTO_FREE int32_t *cursor = xcalloc((size_t)plan->domain_count + 1, sizeof *cursor);
    for (int32_t b = 0; b < blocks->count; b++) {
        int32_t wanted = plan->request->wanted[b * plan->gpus_per_node];
        bool stays = wanted != JOB_NONE && !used[wanted] &&
                     plan->gpus[wanted] == plan->gpus_per_node &&
                     plan->domains[wanted] == blocks->items[b].domain;
        node_of[b] = stays ? wanted : JOB_NONE;
        if (stays)
            used[wanted] = true;
    }
    for (int32_t b = 0; b < blocks->count; b++) {
        int32_t domain = blocks->items[b].domain;
        while (node_of[b] == JOB_NONE) {
            int32_t n = cursor[domain]++;
            if (plan->domains[n] == domain && !used[n] && plan->gpus[n] == plan->gpus_per_node) {
                node_of[b] = n;
                used[n] = true;
            }
        }
    }
}

static bool place_blocks(const struct plan *plan, struct atoms *blocks, struct layout_place *places)
{
    for (size_t n = 0; n < plan->request->node_count; n++)
        blocks->room[plan->domains[n]] += plan->gpus[n] == plan->gpus_per_node;
    for (int32_t b = 0; b < blocks->count; b++)
        blocks->items[b] = atom_of(plan, b, b * plan->gpus_per_node);
    place_atoms(plan, blocks);
    for (int32_t b = 0; b < blocks->count; b++)
        if (blocks->items[b].domain == JOB_NONE)
            return false;
    AUTO_FREE int32_t *node_of = xcalloc((size_t)blocks->count, sizeof *node_of);
    blocks_to_nodes(plan, blocks, node_of);
    for (int32_t r = 0; r < plan->job->world_size; r++)
        places[r] = (struct layout_place){.node = node_of[r / plan->gpus_per_node],
                                          .gpu = (int16_t)(r % plan->gpus_per_node)};
    return true;
}

bool place_by_counting(const struct plan *plan, struct layout_place *places)
{
    int32_t gpus = plan->gpus_per_node;
    struct atoms blocks = {.count = (plan->job->world_size + gpus - 1) / gpus,
                           .room = xcalloc((size_t)plan->domain_count + 1, sizeof *blocks.room)};
    blocks.items = xcalloc((size_t)blocks.count, sizeof *blocks.items);
    bool found = place_blocks(plan, &blocks, places);
    xfree(blocks.items);
    xfree(blocks.room);
    return found;
}

/* ---- tensor group by tensor group ---- */

/* GPUs of a node are given away from the first on. */
struct filling {
    const struct plan *plan;
    struct layout_place *places;
    int32_t *filled;  /* GPUs given away, of each node */
    int32_t *order;   /* nodes, whole trays first, else as requested */
    int32_t *starts;  /* of each domain in order; domain_count + 1 entries */
    int32_t *cursors; /* of each domain: no node before it has room */
};

static int compare_places(const struct plan *plan, int32_t a, int32_t b)
{
    if (plan->domains[a] != plan->domains[b])
        return plan->domains[a] < plan->domains[b] ? -1 : 1;
    if (plan->gpus[a] != plan->gpus[b])
        return plan->gpus[a] > plan->gpus[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

static int by_place(const void *left, const void *right, void *context)
{
    return compare_places(context, *(const int32_t *)left, *(const int32_t *)right);
}

static void filling_open(struct filling *filling, const struct plan *plan,
                         struct layout_place *places)
{
    size_t nodes = plan->request->node_count;
    size_t domains = (size_t)plan->domain_count;
    struct plan context = *plan;
    *filling = (struct filling){.plan = plan,
                                .places = places,
                                .filled = xcalloc(nodes + 1, sizeof *filling->filled),
                                .order = xcalloc(nodes + 1, sizeof *filling->order),
                                .starts = xcalloc(domains + 2, sizeof *filling->starts),
                                .cursors = xcalloc(domains + 1, sizeof *filling->cursors)};
    for (size_t n = 0; n < nodes; n++) {
        filling->order[n] = (int32_t)n;
        filling->starts[plan->domains[n] + 1]++;
    }
    qsort_r(filling->order, nodes, sizeof *filling->order, by_place, &context);
    for (size_t d = 0; d < domains; d++) {
        filling->starts[d + 1] += filling->starts[d];
        filling->cursors[d] = filling->starts[d];
    }
}

static void filling_close(struct filling *filling)
{
    xfree(filling->filled);
    xfree(filling->order);
    xfree(filling->starts);
    xfree(filling->cursors);
}

static int32_t free_gpus(const struct filling *filling, int32_t node)
{
    return filling->plan->gpus[node] - filling->filled[node];
}

static void give(struct filling *filling, int32_t position, int32_t node)
{
    filling->places[filling->plan->rank_at[position]] = (struct layout_place){
        .node = node, .gpu = (int16_t)filling->filled[node]++};
}

/* A tray of the domain with room for `least` GPUs, or JOB_NONE; wanted is asked first. Groups are
 * of one size, so a tray without room for one has none for any that follows. */
static int32_t next_tray(struct filling *filling, int32_t domain, int32_t wanted, int32_t least)
{
    const struct plan *plan = filling->plan;
    if (wanted != JOB_NONE && plan->domains[wanted] == domain &&
        free_gpus(filling, wanted) >= least)
        return wanted;
    int32_t *cursor = &filling->cursors[domain];
    while (*cursor < filling->starts[domain + 1]) {
        if (free_gpus(filling, filling->order[*cursor]) >= least)
            return filling->order[*cursor];
        (*cursor)++;
    }
    return JOB_NONE;
}

/* Where the whole group is today, if on one node; else JOB_NONE. */
static int32_t wanted_tray(const struct plan *plan, int32_t group)
{
    int32_t first = group * plan->tensor_size;
    int32_t node = plan->request->wanted[plan->rank_at[first]];
    for (int32_t i = 1; i < plan->tensor_size; i++)
        if (plan->request->wanted[plan->rank_at[first + i]] != node)
            return JOB_NONE;
    return node;
}

/* Rank by rank into what is free in the domain; how many found a place. */
static int32_t pour(struct filling *filling, int32_t domain, int32_t position, int32_t count)
{
    int32_t given = 0;
    while (given < count) {
        int32_t node = next_tray(filling, domain, JOB_NONE, 1);
        if (node == JOB_NONE)
            break;
        give(filling, position + given++, node);
    }
    return given;
}

static bool is_narrow(const struct plan *plan)
{
    return plan->tensor_size <= plan->widest_tray;
}

static void fill_group(struct filling *filling, const struct atom *atom)
{
    const struct plan *plan = filling->plan;
    int32_t first = atom->id * plan->tensor_size;
    if (!is_narrow(plan)) {
        pour(filling, atom->domain, first, plan->tensor_size);
        return;
    }
    int32_t node = next_tray(filling, atom->domain, wanted_tray(plan, atom->id), plan->tensor_size);
    assert(node != JOB_NONE); /* a domain is given no more groups than its trays can hold */
    for (int32_t i = 0; i < plan->tensor_size; i++)
        give(filling, first + i, node);
}

static int32_t free_in(const struct filling *filling, int32_t domain)
{
    int32_t free = 0;
    for (int32_t i = filling->starts[domain]; i < filling->starts[domain + 1]; i++)
        free += free_gpus(filling, filling->order[i]);
    return free;
}

/* Groups that fit nowhere as one: in one domain if that has the GPUs, else wherever there are any.
 */
static void fill_split_group(struct filling *filling, int32_t *free, int32_t group)
{
    const struct plan *plan = filling->plan;
    int32_t position = group * plan->tensor_size;
    int32_t left = plan->tensor_size;
    for (int pass = 0; pass < 2 && left > 0; pass++)
        for (int32_t d = 0; d < plan->domain_count && left > 0; d++) {
            if (free[d] < (pass == 0 ? left : 1))
                continue;
            int32_t given = pour(filling, d, position, left);
            free[d] -= given;
            position += given;
            left -= given;
        }
}

/* Where wanted trays are asked for, others must not have been given them away: two passes. */
static void fill_groups(struct filling *filling, const struct atoms *groups)
{
    const struct plan *plan = filling->plan;
    AUTO_FREE bool *done = xcalloc((size_t)groups->count, sizeof *done);
    for (int32_t g = 0; g < groups->count; g++) {
        const struct atom *atom = &groups->items[g];
        int32_t wanted = is_narrow(plan) ? wanted_tray(plan, g) : JOB_NONE;
        if (wanted == JOB_NONE || plan->domains[wanted] != atom->domain ||
            free_gpus(filling, wanted) < plan->tensor_size)
            continue;
        fill_group(filling, atom);
        done[g] = true;
    }
    for (int32_t g = 0; g < groups->count; g++)
        if (!done[g] && groups->items[g].domain != JOB_NONE)
            fill_group(filling, &groups->items[g]);
    AUTO_FREE int32_t *free = xcalloc((size_t)plan->domain_count + 1, sizeof *free);
    for (int32_t d = 0; d < plan->domain_count; d++) {
        filling->cursors[d] = filling->starts[d];
        free[d] = free_in(filling, d);
    }
    for (int32_t g = 0; g < groups->count; g++)
        if (groups->items[g].domain == JOB_NONE)
            fill_split_group(filling, free, g);
}

void place_by_groups(const struct plan *plan, struct layout_place *places)
{
    int32_t size = plan->tensor_size;
    struct atoms groups = {.count = plan->job->world_size / size,
                           .room = xcalloc((size_t)plan->domain_count + 1, sizeof *groups.room)};
    groups.items = xcalloc((size_t)groups.count, sizeof *groups.items);
    for (int32_t g = 0; g < groups.count; g++)
        groups.items[g] = atom_of(plan, g, plan->rank_at[g * size]);
    for (int32_t d = 0; d < plan->domain_count && !is_narrow(plan); d++)
        groups.room[d] = plan->room[d] / size;
    for (size_t n = 0; n < plan->request->node_count && is_narrow(plan); n++)
        groups.room[plan->domains[n]] += plan->gpus[n] / size;
    place_atoms(plan, &groups);
    struct filling filling;
    filling_open(&filling, plan, places);
    fill_groups(&filling, &groups);
    filling_close(&filling);
    xfree(groups.items);
    xfree(groups.room);
}
