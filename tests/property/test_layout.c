/* Layouts under random grids and random nodes: every rank has one GPU of its own, and a rule is
 * broken only where counting room shows that it cannot be kept. */
#include "controller/topology/layout.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

enum { NODES_MOST = 40, GPUS = 4 };

struct world {
    struct job *job;
    struct layout_node nodes[NODES_MOST];
    char names[NODES_MOST][16], domains[NODES_MOST][16];
    int count;
    int32_t *wanted;
};

static int below(uint64_t *state, int limit)
{
    return (int)(test_random(state) % (uint64_t)limit);
}

static void shuffle_order(struct job *job, uint64_t *state)
{
    for (int d = DIMENSION_COUNT - 1; d > 0; d--) {
        int other = below(state, d + 1);
        enum parallel_dimension kept = job->order[d];
        job->order[d] = job->order[other];
        job->order[other] = kept;
    }
}

static int pick(uint64_t *state, const int *choices, int count)
{
    return choices[below(state, count)];
}

static void make_job(struct world *world, uint64_t *state)
{
    static const int widths[] = {1, 2, 3, 4, 4, 8, 6};
    static const int small[] = {1, 1, 2, 3};
    int tp = pick(state, widths, 7), cp = pick(state, small, 3), pp = pick(state, small, 4);
    int ep = pick(state, small, 4), dp = ep * (1 + below(state, 3));
    bool is_ep_inside = below(state, 2) == 0;
    int size = tp * cp * pp * dp * (is_ep_inside ? 1 : ep);
    world->job = job_new("j", size);
    world->job->size[DIMENSION_TP] = tp;
    world->job->size[DIMENSION_CP] = cp;
    world->job->size[DIMENSION_PP] = pp;
    world->job->size[DIMENSION_EP] = ep;
    world->job->size[DIMENSION_DP] = dp;
    shuffle_order(world->job, state);
}

/* About as many GPUs as the job needs, sometimes fewer; some trays have lost one. */
static void make_nodes(struct world *world, uint64_t *state)
{
    int trays = 1 + below(state, 6);
    world->count = (world->job->world_size + GPUS - 1) / GPUS + below(state, 4);
    if (world->count > NODES_MOST)
        world->count = NODES_MOST;
    for (int n = 0; n < world->count; n++) {
        snprintf(world->names[n], 16, "n%d", n);
        snprintf(world->domains[n], 16, "d%d", (n * 7 + n / 3) % 5 % (1 + trays));
        world->nodes[n] = (struct layout_node){.name = world->names[n],
                                               .nvlink_domain = world->domains[n],
                                               .gpus = below(state, 5) == 0 ? GPUS - 1 : GPUS};
    }
}

/* As today: some ranks by counting, some nowhere, some at odd places. */
static void make_wanted(struct world *world, uint64_t *state)
{
    int habit = below(state, 3);
    world->wanted = xcalloc((size_t)world->job->world_size, sizeof *world->wanted);
    for (int r = 0; r < world->job->world_size; r++) {
        bool counts = habit > 0 && r / GPUS < world->count;
        world->wanted[r] = counts ? r / GPUS : JOB_NONE;
        if (habit == 2 && below(state, 8) == 0)
            world->wanted[r] = below(state, world->count);
        world->job->ranks[r].gpu = (int16_t)(r % GPUS);
    }
}

static void check_places(const struct world *world, const struct layout *layout)
{
    bool used[NODES_MOST][GPUS] = {{false}};
    int next[NODES_MOST] = {0};
    bool is_in_order = true;
    for (int r = 0; r < world->job->world_size; r++) {
        const struct layout_place *place = &layout->ranks[r];
        CU_ASSERT_FATAL(place->node >= 0 && place->node < world->count);
        CU_ASSERT_FATAL(place->gpu >= 0 && place->gpu < world->nodes[place->node].gpus);
        CU_ASSERT_FALSE(used[place->node][place->gpu]);
        used[place->node][place->gpu] = true;
        is_in_order &= place->gpu == next[place->node]++;
    }
    CU_ASSERT_EQUAL(layout->is_in_order, is_in_order);
}

/* How many sets of ranks with one key are on several nodes, or in several domains. */
static int count_split(const struct world *world, const struct layout *layout, bool by_domain,
                       int (*key_of)(const struct job *job, int rank))
{
    const char *first[4096] = {NULL};
    bool split[4096] = {false};
    int count = 0;
    for (int r = 0; r < world->job->world_size; r++) {
        const struct layout_node *node = &world->nodes[layout->ranks[r].node];
        const char *where = by_domain ? node->nvlink_domain : node->name;
        int key = key_of(world->job, r);
        CU_ASSERT_FATAL(key < 4096);
        if (first[key] == NULL)
            first[key] = where;
        if (strcmp(first[key], where) != 0 && !split[key]) {
            split[key] = true;
            count++;
        }
    }
    return count;
}

static int tensor_key(const struct job *job, int rank)
{
    return job_place_of(job, rank).tensor_group;
}

static bool is_ep_inside(const struct job *job)
{
    return job->size[DIMENSION_TP] * job->size[DIMENSION_CP] * job->size[DIMENSION_PP] *
               job->size[DIMENSION_DP] ==
           job->world_size;
}

static int run_key(const struct job *job, int rank)
{
    int replica = job_place_of(job, rank).replica;
    return is_ep_inside(job) ? replica / job->size[DIMENSION_EP] : replica;
}

static int set_key(const struct job *job, int rank)
{
    return run_key(job, rank) * job->size[DIMENSION_PP] + job_place_of(job, rank).stage;
}

/* How many units of so many tensor groups find room in whole domains (or trays, for size 1). */
static int room_for(const struct world *world, int groups_a_unit)
{
    int tp = world->job->size[DIMENSION_TP];
    int room = 0;
    for (int d = 0; d < world->count; d++) {
        int in_domain = 0, gpus = 0;
        bool is_first = true;
        for (int n = 0; n < world->count; n++) {
            if (strcmp(world->domains[n], world->domains[d]) != 0)
                continue;
            is_first &= n >= d;
            in_domain += world->nodes[n].gpus / tp;
            gpus += world->nodes[n].gpus;
        }
        if (is_first)
            room += (tp > GPUS ? gpus / tp : in_domain) / groups_a_unit;
    }
    return room;
}

static void check_rules(const struct world *world, const struct layout *layout)
{
    const struct job *job = world->job;
    int tp = job->size[DIMENSION_TP], groups = job->world_size / tp;
    int set = job->size[DIMENSION_CP] * job->size[DIMENSION_EP],
        run = set * job->size[DIMENSION_PP];
    int widest = 0;
    for (int n = 0; n < world->count; n++)
        widest = world->nodes[n].gpus > widest ? world->nodes[n].gpus : widest;
    if (tp <= GPUS && tp > widest)
        return; /* every tray has lost a GPU: the rule is another one */
    int split = count_split(world, layout, tp > GPUS, tensor_key);
    CU_ASSERT_EQUAL(split, layout->broken[LAYOUT_TENSOR]);
    CU_ASSERT_EQUAL(split == 0, room_for(world, 1) >= groups);
    if (split > 0)
        return;
    if (room_for(world, set) >= groups / set) {
        CU_ASSERT_EQUAL(layout->broken[LAYOUT_EXPERT], 0);
        CU_ASSERT_EQUAL(count_split(world, layout, true, set_key), 0);
    }
    if (room_for(world, run) >= groups / run) {
        CU_ASSERT_EQUAL(layout->broken[LAYOUT_REPLICA], 0);
        CU_ASSERT_EQUAL(count_split(world, layout, true, run_key), 0);
    }
}

static void one_round(uint64_t *state, int *planned, int *refused)
{
    struct world world = {0};
    AUTO(layout_free) struct layout *layout = NULL;
    struct error error = {0};
    int gpus = 0;
    make_job(&world, state);
    make_nodes(&world, state);
    make_wanted(&world, state);
    for (int n = 0; n < world.count; n++)
        gpus += world.nodes[n].gpus;
    enum status status = layout_plan(&(struct layout_request){.job = world.job,
                                                              .nodes = world.nodes,
                                                              .node_count = (size_t)world.count,
                                                              .gpus_per_node = GPUS,
                                                              .wanted = world.wanted},
                                     &layout, &error);
    CU_ASSERT_EQUAL(status == OK, gpus >= world.job->world_size);
    if (status == OK) {
        check_places(&world, layout);
        check_rules(&world, layout);
    }
    *planned += status == OK;
    *refused += status != OK;
    job_free(world.job);
    xfree(world.wanted);
}

TEST(every_rank_once_and_no_rule_broken_that_could_be_kept)
{
    uint64_t seed = test_seed();
    uint64_t state = seed;
    int planned = 0, refused = 0;
    int rounds = test_rounds(3000);
    for (int i = 0; i < rounds; i++) {
        unsigned failed = CU_get_number_of_failures();
        uint64_t before = state;
        one_round(&state, &planned, &refused);
        if (CU_get_number_of_failures() > failed) {
            printf("seed %llu, round %d, state %llu\n", (unsigned long long)seed, i,
                   (unsigned long long)before);
            break;
        }
    }
    printf("%d layouts, %d refused ", planned, refused);
    CU_ASSERT(planned > rounds / 2 || rounds < 100);
}

TESTS(T(every_rank_once_and_no_rule_broken_that_could_be_kept))
