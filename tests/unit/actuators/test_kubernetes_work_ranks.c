#include "controller/base/mem.h"
#include "remediation/actuators/kubernetes_ranks.h"
#include "tests/harness/test.h"

#include <string.h>

/* Expects nodes joined with spaces, '-' for a rank without one; "" where nothing can be told. */
static void expect(const struct rank_question *question, const char *wanted)
{
    int32_t count = -1;
    char told[512] = "";
    AUTO_FREE const char **nodes = ranks_find_nodes(question, &count);
    CU_ASSERT_EQUAL(nodes == NULL, count == 0);
    for (int32_t i = 0; i < count; i++) {
        strncat(told, i > 0 ? " " : "", sizeof told - strlen(told) - 1);
        strncat(told, nodes[i] != NULL ? nodes[i] : "-", sizeof told - strlen(told) - 1);
    }
    CU_ASSERT_STRING_EQUAL(told, wanted);
}

static const struct rank_pod PODS[] = {{1, 1, "c"}, {0, 0, "a"}, {1, 0, "b"}};

TEST(ranks_go_through_the_groups_in_the_order_of_the_spec)
{
    const struct rank_group groups[] = {{1, 2}, {2, 2}};
    expect(&(struct rank_question){groups, 2, PODS, 3, 0, 0}, "a a b b c c");
    expect(&(struct rank_question){groups, 2, PODS, 3, 6, 0}, "a a b b c c");
}

TEST(a_rank_whose_pod_is_not_there_has_no_node)
{
    const struct rank_group groups[] = {{1, 1}, {3, 1}};
    expect(&(struct rank_question){groups, 2, PODS, 3, 0, 0}, "a b c -");
    expect(&(struct rank_question){groups, 2, PODS, 0, 0, 0}, "- - - -");
}

TEST(pods_without_gpus_hold_no_rank_where_others_have_some)
{
    const struct rank_group groups[] = {{1, 0}, {2, 2}};
    expect(&(struct rank_question){groups, 2, PODS, 3, 0, 0}, "b b c c");
}

TEST(where_no_pod_names_its_gpus_the_job_tells_how_many_ranks_a_pod_has)
{
    const struct rank_group groups[] = {{1, 0}, {2, 0}};
    expect(&(struct rank_question){groups, 2, PODS, 3, 0, 2}, "a a b b c c");
    expect(&(struct rank_question){groups, 2, PODS, 3, 3, 0}, "a b c");
    expect(&(struct rank_question){groups, 2, PODS, 3, 6, 4}, "a a b b c c");
    expect(&(struct rank_question){groups, 2, PODS, 3, 0, 0}, "");
}

TEST(the_size_of_the_job_goes_before_its_gpus)
{
    const struct rank_group groups[] = {{1, 4}, {2, 4}};
    expect(&(struct rank_question){groups, 2, PODS, 3, 3, 4}, "a b c");
    expect(&(struct rank_question){groups, 2, PODS, 3, 7, 4}, ""); /* they do not add up */
}

TEST(pods_without_a_place_are_left_out)
{
    const struct rank_group groups[] = {{2, 1}};
    const struct rank_pod pods[] = {{0, -1, "a"}, {0, 2, "b"}, {4, 0, "c"}, {0, 1, "d"}};
    expect(&(struct rank_question){groups, 1, pods, 4, 0, 0}, "- d");
    expect(&(struct rank_question){groups, 0, pods, 4, 8, 4}, "");
}

TESTS(T(ranks_go_through_the_groups_in_the_order_of_the_spec),
      T(a_rank_whose_pod_is_not_there_has_no_node),
      T(pods_without_gpus_hold_no_rank_where_others_have_some),
      T(where_no_pod_names_its_gpus_the_job_tells_how_many_ranks_a_pod_has),
      T(the_size_of_the_job_goes_before_its_gpus), T(pods_without_a_place_are_left_out))
