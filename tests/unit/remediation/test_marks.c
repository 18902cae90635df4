/* A cordon of ours that somebody takes off and whose marks stay on the node. */
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim_scenes.h"

static void uncordon(struct sim *sim, const char *name)
{
    sim_node(sim, name)->marked = true;
    sim_node(sim, name)->cordoned = false;
}

TEST(marks_that_a_person_s_uncordon_leaves_are_taken_off_once_it_is_understood)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    for (int i = 0; i < sim.node_count; i++)
        sim.nodes[i].spare = false; /* it holds */
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 120));
    uncordon(&sim, "n0-03");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_CANCELLED, 120));
    sim_run(&sim, 60);
    CU_ASSERT_FALSE(sim_node(&sim, "n0-03")->marked);
    CU_ASSERT_EQUAL(sim.uncordons, 1);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    sim_done(&sim);
}

TEST(marks_that_are_left_when_repaired_hardware_is_uncordoned_are_taken_off)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    sim_run(&sim, 20);
    sim_node(&sim, "n0-03")->ready = false;
    sim_run(&sim, 60);
    sim_node(&sim, "n0-03")->ready = true;
    uncordon(&sim, "n0-03");
    sim_run(&sim, 120);
    CU_ASSERT_FALSE(sim_node(&sim, "n0-03")->marked);
    CU_ASSERT_EQUAL(sim.uncordons, 1);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 1200));
    CU_ASSERT_EQUAL(sim.uncordons, 1);
    sim_done(&sim);
}

TEST(nothing_is_taken_off_while_broom_is_paused)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_PAUSE, NULL), OK);
    uncordon(&sim, "n0-03");
    sim_run(&sim, 120);
    CU_ASSERT_TRUE(sim_node(&sim, "n0-03")->marked);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_RESUME, NULL), OK);
    sim_run(&sim, 120);
    CU_ASSERT_FALSE(sim_node(&sim, "n0-03")->marked);
    sim_done(&sim);
}

TESTS(T(marks_that_a_person_s_uncordon_leaves_are_taken_off_once_it_is_understood),
      T(marks_that_are_left_when_repaired_hardware_is_uncordoned_are_taken_off),
      T(nothing_is_taken_off_while_broom_is_paused))
