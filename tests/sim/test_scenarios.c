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
TEST(a_tray_whose_host_stalls_is_replaced)
{
    expect_seeds("slow-tray");
}
TEST(a_slow_rack_is_recorded_and_nothing_is_done_to_it)
{
    expect_seeds("slow-rack");
}
TEST(a_failed_switch_tray_is_one_open_incident_without_nodes_while_its_rack_is_slow)
{
    expect_seeds("nvswitch-tray");
}
TEST(a_gpu_that_is_slow_in_bursts_is_replaced_once)
{
    expect_seeds("flapping");
}
TEST(a_hang_is_recorded_with_its_victims)
{
    expect_seeds("hang");
}
TEST(a_gpu_that_slows_down_by_and_by_is_replaced_as_one_incident)
{
    expect_seeds("drift");
}

/* Those that are mended, then those that policy only records or holds. */
static const char *const FAULTY[] = {"slow-rank", "tray-lost", "rack-fault",   "no-spare",
                                     "slow-tray", "flapping",  "drift",        "storm",
                                     "slow-rack", "hang",      "nvswitch-tray"};
enum { MENDED = 7 };

TEST(with_detection_off_no_faulty_rehearsal_ends_well)
{
    for (size_t i = 0; i < ARRAY_LEN(FAULTY); i++)
        expect(FAULTY[i], &(struct sim_options){.seed = test_seed(), .detection_off = true}, false);
}

TEST(without_a_policy_no_faulty_rehearsal_but_the_storm_ends_well)
{
    for (size_t i = 0; i < ARRAY_LEN(FAULTY); i++)
        if (strcmp(FAULTY[i], "storm") != 0)
            expect(FAULTY[i], &(struct sim_options){.seed = test_seed(), .policy = ""}, false);
}

TEST(a_cluster_that_swallows_the_restart_is_noticed)
{
    for (size_t i = 0; i < MENDED; i++)
        expect(FAULTY[i], &(struct sim_options){.seed = test_seed(), .swallow_restart = true},
               false);
}

TESTS(T(a_slow_rank_is_replaced_by_its_racks_spare), T(a_lost_tray_is_replaced_by_its_racks_spare),
      T(a_lost_rack_moves_to_the_spare_rack_as_one_incident),
      T(without_a_spare_it_holds_and_resumes_when_one_appears),
      T(a_storm_of_accusations_makes_the_observer_the_suspect),
      T(two_everyday_hours_pass_without_an_incident), T(a_tray_whose_host_stalls_is_replaced),
      T(a_slow_rack_is_recorded_and_nothing_is_done_to_it),
      T(a_failed_switch_tray_is_one_open_incident_without_nodes_while_its_rack_is_slow),
      T(a_gpu_that_is_slow_in_bursts_is_replaced_once), T(a_hang_is_recorded_with_its_victims),
      T(a_gpu_that_slows_down_by_and_by_is_replaced_as_one_incident),
      T(with_detection_off_no_faulty_rehearsal_ends_well),
      T(without_a_policy_no_faulty_rehearsal_but_the_storm_ends_well),
      T(a_cluster_that_swallows_the_restart_is_noticed))
