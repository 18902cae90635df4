/* The fewest, narrowest domains of a set of suspects. 128 ranks, tp 4, racks of 64. */
#include "detectors/domains.h"
#include "tests/unit/detectors/feed.h"

enum { RANKS = 128 };

struct suspects {
    int32_t from, to;
    int how;
};

static int solve(int32_t tp, const struct suspects *spans, size_t count, struct domain *domains)
{
    AUTO(job_free) struct job *job = feed_job(RANKS, tp);
    AUTO(grid_free) struct grid *grid = grid_new(job);
    uint8_t flags[RANKS] = {0};

    for (size_t i = 0; i < count; i++)
        for (int32_t r = spans[i].from; r < spans[i].to; r++)
            flags[r] = (uint8_t)spans[i].how;
    return domains_solve(grid, flags, domains);
}

static void expect_one(int32_t tp, struct suspects span, enum scope scope, int32_t index)
{
    struct domain domains[DOMAINS_MAX];
    int count = solve(tp, &span, 1, domains);

    CU_ASSERT_EQUAL_FATAL(count, 1);
    CU_ASSERT_EQUAL(domains[0].scope, scope);
    CU_ASSERT_EQUAL(domains[0].index, index);
}

TEST(one_rank_is_itself)
{
    expect_one(4, (struct suspects){57, 58, SUSPECT_ALONE}, SCOPE_RANK, 57);
    expect_one(1, (struct suspects){57, 58, SUSPECT_TOGETHER}, SCOPE_RANK, 57);
}

TEST(a_nodes_ranks_are_the_tray)
{
    expect_one(4, (struct suspects){20, 24, SUSPECT_ALONE}, SCOPE_TRAY, 5);
    expect_one(1, (struct suspects){20, 23, SUSPECT_ALONE}, SCOPE_TRAY, 5);
}

TEST(a_tensor_group_that_moves_together_in_a_tray_is_the_tray)
{
    expect_one(2, (struct suspects){20, 22, SUSPECT_TOGETHER}, SCOPE_TRAY, 5);
}

TEST(a_tensor_group_over_two_trays_is_the_group)
{
    expect_one(8, (struct suspects){16, 24, SUSPECT_TOGETHER}, SCOPE_GROUP, 2);
}

TEST(three_quarters_of_a_rack_are_the_rack)
{
    expect_one(4, (struct suspects){64, 112, SUSPECT_ALONE}, SCOPE_RACK, 1);
}

TEST(a_tensor_group_as_wide_as_a_rack_is_not_the_rack)
{
    expect_one(64, (struct suspects){64, 128, SUSPECT_TOGETHER}, SCOPE_GROUP, 1);
}

TEST(a_rack_and_a_rank_elsewhere_are_two)
{
    struct suspects spans[] = {{0, 64, SUSPECT_ALONE}, {99, 100, SUSPECT_ALONE}};
    struct domain domains[DOMAINS_MAX];

    CU_ASSERT_EQUAL_FATAL(solve(4, spans, 2, domains), 2);
    CU_ASSERT_EQUAL(domains[0].scope, SCOPE_RACK);
    CU_ASSERT_EQUAL(domains[0].index, 0);
    CU_ASSERT_EQUAL(domains[1].scope, SCOPE_RANK);
    CU_ASSERT_EQUAL(domains[1].index, 99);
}

TEST(the_same_gpu_of_every_tray_is_the_rail)
{
    AUTO(job_free) struct job *job = feed_job(RANKS, 4);
    AUTO(grid_free) struct grid *grid = grid_new(job);
    struct domain domains[DOMAINS_MAX];
    uint8_t flags[RANKS] = {0};

    for (int32_t r = 2; r < RANKS; r += 4)
        flags[r] = SUSPECT_ALONE;
    CU_ASSERT_EQUAL_FATAL(domains_solve(grid, flags, domains), 1);
    CU_ASSERT_EQUAL(domains[0].scope, SCOPE_RAIL);
    CU_ASSERT_EQUAL(domains[0].index, 2);
}

TEST(replicas_that_share_expert_groups_are_one_lane)
{
    AUTO(job_free) struct job *job = feed_job(32, 2);
    job->size[DIMENSION_EP] = 4;
    AUTO(grid_free) struct grid *grid = grid_new(job);

    CU_ASSERT_EQUAL(grid->cut[CUT_REPLICA].count, 16);
    CU_ASSERT_EQUAL(grid->cut[CUT_LANE].count, 4);
    CU_ASSERT_EQUAL(grid_of(grid, CUT_LANE, 0), grid_of(grid, CUT_LANE, 7));
    CU_ASSERT_NOT_EQUAL(grid_of(grid, CUT_LANE, 0), grid_of(grid, CUT_LANE, 8));
}

TESTS(T(one_rank_is_itself), T(a_nodes_ranks_are_the_tray),
      T(a_tensor_group_that_moves_together_in_a_tray_is_the_tray),
      T(a_tensor_group_over_two_trays_is_the_group), T(three_quarters_of_a_rack_are_the_rack),
      T(a_tensor_group_as_wide_as_a_rack_is_not_the_rack), T(a_rack_and_a_rank_elsewhere_are_two),
      T(the_same_gpu_of_every_tray_is_the_rail), T(replicas_that_share_expert_groups_are_one_lane))
