#include "tests/sim/sim.h"

static void expect(const char *name, const struct sim_options *options, bool well)
{
    struct sim sim;
    AUTO_TEXT disagreements = {0};
    sim_open(&sim, scenario_find(name), options);
    int count = sim_run(&sim, &disagreements);
    CU_ASSERT_EQUAL(count == 0, well);
    if ((count == 0) != well)
        printf("\n%s, seed %d:\n%s", name, (int)options->seed,
               disagreements.bytes != NULL ? disagreements.bytes : "no disagreement\n");
    sim_close(&sim);
}

static void expect_seeds(const char *name)
{
    int rounds = test_rounds(3);
    for (int i = 0; i < rounds; i++)
        expect(name, &(struct sim_options){.seed = test_seed() + (uint64_t)i}, true);
}

TEST(a_slow_rank_is_replaced_by_its_racks_spare)
{
    expect_seeds("slow-rank");
}
TEST(a_lost_tray_is_replaced_by_its_racks_spare)
{
    expect_seeds("tray-lost");
}
TEST(a_lost_rack_moves_to_the_spare_rack_as_one_incident)
{
    expect_seeds("rack-fault");
}
TEST(without_a_spare_it_holds_and_resumes_when_one_appears)
{
    expect_seeds("no-spare");
}
TEST(a_storm_of_accusations_makes_the_observer_the_suspect)
{
    expect_seeds("storm");
}
TEST(two_everyday_hours_pass_without_an_incident)
{
    expect_seeds("healthy");
}

static const char *const FAULTY[] = {"slow-rank", "tray-lost", "rack-fault", "no-spare", "storm"};

TEST(with_detection_off_no_faulty_rehearsal_ends_well)
{
    for (size_t i = 0; i < ARRAY_LEN(FAULTY); i++)
        expect(FAULTY[i], &(struct sim_options){.seed = test_seed(), .detection_off = true}, false);
}

TEST(without_a_policy_nothing_that_must_be_mended_ends_well)
{
    for (size_t i = 0; i < ARRAY_LEN(FAULTY) - 1; i++)
        expect(FAULTY[i], &(struct sim_options){.seed = test_seed(), .policy = ""}, false);
}

TEST(a_cluster_that_swallows_the_restart_is_noticed)
{
    for (size_t i = 0; i < ARRAY_LEN(FAULTY) - 1; i++)
        expect(FAULTY[i], &(struct sim_options){.seed = test_seed(), .swallow_restart = true},
               false);
}

TESTS(T(a_slow_rank_is_replaced_by_its_racks_spare), T(a_lost_tray_is_replaced_by_its_racks_spare),
      T(a_lost_rack_moves_to_the_spare_rack_as_one_incident),
      T(without_a_spare_it_holds_and_resumes_when_one_appears),
      T(a_storm_of_accusations_makes_the_observer_the_suspect),
      T(two_everyday_hours_pass_without_an_incident),
      T(with_detection_off_no_faulty_rehearsal_ends_well),
      T(without_a_policy_nothing_that_must_be_mended_ends_well),
      T(a_cluster_that_swallows_the_restart_is_noticed))
