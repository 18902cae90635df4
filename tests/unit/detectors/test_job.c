#include "detectors/job.h"
#include "tests/harness/test.h"

#include <stdio.h>

static struct job *grid(int32_t tp, int32_t ep, int32_t dp, int32_t pp, int32_t world)
{
    static const enum parallel_dimension order[] = {DIMENSION_TP, DIMENSION_CP, DIMENSION_EP,
                                                    DIMENSION_DP, DIMENSION_PP};
    struct job *job = job_new("j", world);
    job->size[DIMENSION_TP] = tp;
    job->size[DIMENSION_EP] = ep;
    job->size[DIMENSION_DP] = dp;
    job->size[DIMENSION_PP] = pp;
    for (int i = 0; i < DIMENSION_COUNT; i++)
        job->order[i] = order[i];
    return job;
}

TEST(tp_dp_pp_follows_the_published_formula)
{
    AUTO(job_free) struct job *job = grid(4, 1, 8, 2, 64);
    for (int32_t pp = 0; pp < 2; pp++)
        for (int32_t dp = 0; dp < 8; dp++)
            for (int32_t tp = 0; tp < 4; tp++) {
                struct job_place place = job_place_of(job, tp + 4 * (dp + 8 * pp));
                CU_ASSERT_EQUAL(place.stage, pp);
                CU_ASSERT_EQUAL(place.replica, dp);
                CU_ASSERT_EQUAL(place.tensor, tp);
                CU_ASSERT_EQUAL(place.tensor_group, dp + 8 * pp);
                CU_ASSERT_EQUAL(place.data_group, tp + 4 * pp);
            }
}

TEST(expert_groups_inside_dp_are_runs_of_replicas)
{
    AUTO(job_free) struct job *job = grid(2, 4, 8, 1, 16);
    CU_ASSERT_EQUAL(job_place_of(job, 0).expert_group, 0);
    CU_ASSERT_EQUAL(job_place_of(job, 1).expert_group, 1);
    CU_ASSERT_EQUAL(job_place_of(job, 6).expert_group, 0);
    CU_ASSERT_EQUAL(job_place_of(job, 8).expert_group, 2);
    CU_ASSERT_EQUAL(job_place_of(job, 8).expert, 0);
    CU_ASSERT_EQUAL(job_place_of(job, 6).expert, 3);
}

TEST(names_are_interned_once_and_copies_are_whole)
{
    AUTO(job_free) struct job *job = job_new("default/x", 8);
    int32_t rack = job_intern_rack(job, "r1", NULL);
    CU_ASSERT_EQUAL(job_intern_rack(job, "r1", NULL), rack);
    int32_t tray = job_intern_tray(job, "n1", rack);
    CU_ASSERT_EQUAL(job_intern_tray(job, "n1", JOB_NONE), tray);
    CU_ASSERT_EQUAL(job_find_tray(job, "n"), JOB_NONE);
    for (int i = 0; i < 40; i++)
        job_intern_tray(job, i % 2 ? "n2" : "n3", rack);
    AUTO(job_free) struct job *copy = job_copy(job);
    CU_ASSERT_EQUAL(copy->tray_count, 3);
    CU_ASSERT_STRING_EQUAL(copy->racks[0].nvlink_domain, "r1");
}

TEST(every_tray_of_a_large_cluster_is_found_and_stands_once)
{
    AUTO(job_free) struct job *job = job_new("job", 4);
    char node[32];

    for (int round = 0; round < 2; round++)
        for (int32_t t = 0; t < 30000; t++) {
            (void)snprintf(node, sizeof node, "gb-%06x", (unsigned)t * 2654435761u >> 8);
            if (round == 0)
                CU_ASSERT_EQUAL(job_find_tray(job, node), JOB_NONE);
            CU_ASSERT_EQUAL(job_intern_tray(job, node, JOB_NONE), t);
        }
    AUTO(job_free) struct job *copy = job_copy(job);
    CU_ASSERT_EQUAL(copy->tray_count, 30000);
    CU_ASSERT_EQUAL(job_find_tray(copy, node), 29999);
    CU_ASSERT_EQUAL(job_find_tray(copy, "elsewhere"), JOB_NONE);
}

TESTS(T(tp_dp_pp_follows_the_published_formula), T(expert_groups_inside_dp_are_runs_of_replicas),
      T(names_are_interned_once_and_copies_are_whole),
      T(every_tray_of_a_large_cluster_is_found_and_stands_once))
