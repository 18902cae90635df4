/* Hardware that comes back, stage by stage, and who puts it in service again; and cordons that
 * other people take off before that.
 */
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim_scenes.h"

static struct policy_set *giving_back(void)
{
    struct policy_set *set = sim_enforce();
    sim_plan_step(set, STEP_HAND_OVER)->gives_back = true;
    return set;
}

/* Handed over, and the hand-over is answered. */
static struct sim_node *hand_over(struct sim *sim, struct policy_set *(*policies)(void))
{
    sim_open_with_lost_tray(sim, policies);
    CU_ASSERT_TRUE(sim_until(sim, 1, PHASE_REPAIRING, 600));
    sim_run(sim, 20);
    return sim_node(sim, "n0-03");
}

static void lose_a_rack(struct sim *sim)
{
    sim_init(sim, 3, 2, 16, sim_enforce);
    sim_run(sim, 120);
    for (int i = 0; i < 18; i++) {
        sim->nodes[i].dead = true;
        sim->nodes[i].ready = false;
    }
    for (int i = 36; i < 54; i++)
        sim->nodes[i].ready = false; /* no spare rack yet: it holds after the cordon */
    sim->stopped = true;
    sim_run(sim, 6);
    sim_accuse_rack(sim, VERDICT_FAULT, "rk-0", "events");
}

TEST(each_stage_of_the_way_back_is_waited_for_by_name_and_timed)
{
    struct sim sim;
    struct sim_node *node = hand_over(&sim, sim_enforce);
    node->gone = true;
    sim_run(&sim, 60);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "n0-03 to be registered again by whoever repairs"));
    node->gone = false;
    sim_run(&sim, 60);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "n0-03 to be ready again"));
    node->ready = true;
    node->dead = false;
    node->gpus_missing = 1;
    sim_run(&sim, 60);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "3 of 4 are allocatable"));
    node->gpus_missing = 0;
    node->domain = "";
    sim_run(&sim, 60);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "n0-03 to join the NVLink domain of its rack"));
    node->domain = "another-clique";
    sim_run(&sim, 60);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "n0-03 to join the NVLink domain of its rack"));
    node->domain = NULL;
    sim_crash_now(&sim); /* what was reached is kept */
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_VALIDATING, 60));
    sim_run(&sim, 300);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "the hardware to stay so until"));
    sim_run(&sim, 330);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "a person to uncordon n0-03: validated since"));
    node->cordoned = false;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 60));
    CU_ASSERT_TRUE(sim_log_says(&sim, "n0-03: registered, "));
    CU_ASSERT_TRUE(sim_log_says(&sim, " after the hand-over"));
    CU_ASSERT_TRUE(sim_log_says(&sim, "n0-03: ready, "));
    CU_ASSERT_TRUE(sim_log_says(&sim, "n0-03: schedulable, "));
    CU_ASSERT_TRUE(sim_log_says(&sim, "n0-03: in its NVLink domain, "));
    CU_ASSERT_TRUE(sim_log_says(&sim, "n0-03: validated, 10m"));
    CU_ASSERT_TRUE(sim_log_says(&sim, "n0-03: uncordoned, "));
    const struct incident *incident = sim_incident(&sim, 1);
    for (int i = 1; i < BACK_STAGE_COUNT; i++)
        CU_ASSERT_TRUE(incident->back_ns[i] >= incident->back_ns[i - 1]);
    sim_done(&sim);
}

TEST(a_person_takes_the_cordon_off_and_is_asked_once)
{
    struct sim sim;
    struct sim_node *node = hand_over(&sim, sim_enforce);
    node->ready = true;
    int told = sim.notifies;
    sim_run(&sim, 1800);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_VALIDATING);
    CU_ASSERT_EQUAL(sim.notifies, told + 1);
    CU_ASSERT_EQUAL(sim.uncordons, 0);
    sim.now_ns += 8 * 24 * HOUR;
    sim_tick(&sim);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_ESCALATED);
    sim_done(&sim);
}

TEST(broom_takes_its_own_cordon_off_where_the_plan_says_so_and_not_before_the_validation)
{
    struct sim sim;
    struct sim_node *node = hand_over(&sim, giving_back);
    node->ready = true;
    sim_run(&sim, 590);
    CU_ASSERT_TRUE(node->cordoned);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 120));
    CU_ASSERT_FALSE(node->cordoned);
    CU_ASSERT_EQUAL(sim.uncordons, 1);
    CU_ASSERT_PTR_NOT_NULL(sim_op(&sim, "INC-1/0/uncordon/1"));
    CU_ASSERT_TRUE(sim_log_says(&sim, "n0-03: uncordoned, "));
    sim_done(&sim);
}

TEST(an_uncordon_of_ours_happens_once_wherever_we_are_killed)
{
    for (int crash = CRASH_BEFORE_COMMIT; crash <= CRASH_AFTER_START; crash++)
        for (int at = 0; at < 12; at++) {
            struct sim sim;
            hand_over(&sim, giving_back)->ready = true;
            sim.commit_count = sim.start_count = 0;
            sim.crash = (enum sim_crash)crash;
            sim.crash_at = at;
            CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 1200));
            CU_ASSERT_EQUAL(sim.uncordons, 1);
            sim_done(&sim);
        }
}

TEST(an_uncordon_that_the_cluster_refuses_is_a_persons)
{
    struct sim sim;
    struct sim_node *node = hand_over(&sim, giving_back);
    sim.bad_verb = VERB_UNCORDON;
    sim.bad_outcome = OUTCOME_REFUSED;
    sim.bad_count = 9;
    node->ready = true;
    sim_run(&sim, 900);
    CU_ASSERT_EQUAL(sim.bad_count, 8);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "a person to uncordon n0-03"));
    node->cordoned = false;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 60));
    sim_done(&sim);
}

TEST(while_paused_nothing_is_given_back)
{
    struct sim sim;
    struct sim_node *node = hand_over(&sim, giving_back);
    node->ready = true;
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_PAUSE, NULL), OK);
    sim_run(&sim, 900);
    CU_ASSERT_TRUE(node->cordoned);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "acting is paused by alice"));
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_RESUME, NULL), OK);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 60));
    sim_done(&sim);
}

TEST(hardware_that_was_never_seen_down_is_not_taken_as_repaired)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, giving_back);
    sim_run(&sim, 120);
    sim.slow_node = "n0-05";
    sim.slow = 1.5;
    struct verdict slow = sim_verdict(&sim, VERDICT_SLOW, SCOPE_RANK, "21");
    slow.slowdown = 1.5;
    verdict_add_node(&slow, "n0-05");
    sim_give(&sim, &slow, "detector");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 3000));
    sim_run(&sim, 3600);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_REPAIRING);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "n0-05 to be repaired and uncordoned by a person"));
    CU_ASSERT_EQUAL(sim.uncordons, 0);
    sim_node(&sim, "n0-05")->cordoned = false;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 900));
    sim_done(&sim);
}

TEST(a_cordon_that_somebody_else_sets_meanwhile_is_waited_for_and_left)
{
    struct sim sim;
    struct sim_node *node = hand_over(&sim, giving_back);
    node->ready = true;
    node->cordoned = false;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_VALIDATING, 60));
    CU_ASSERT_EQUAL(sim.uncordons, 0);
    sim_done(&sim);
    sim_open_with_lost_tray(&sim, giving_back);
    sim_node(&sim, "n0-03")->cordoned = true;
    text_copy(sim_node(&sim, "n0-03")->cordoned_by, 32, "bob: fan swap");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    sim_node(&sim, "n0-03")->ready = true;
    sim_run(&sim, 1200);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "n0-03 to be free: cordoned by bob: fan swap"));
    CU_ASSERT_EQUAL(sim.uncordons, 0);
    sim_done(&sim);
}

TEST(what_fails_while_it_is_validated_begins_its_way_back_anew)
{
    struct sim sim;
    struct sim_node *node = hand_over(&sim, giving_back);
    node->ready = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_VALIDATING, 60));
    sim_run(&sim, 500);
    node->ready = false;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 60));
    CU_ASSERT_TRUE(sim_log_says(&sim, "n0-03: not ready now"));
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->back_ns[BACK_READY], 0);
    node->ready = true;
    sim_run(&sim, 500);
    CU_ASSERT_TRUE(node->cordoned);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 300));
    sim_done(&sim);
}

TEST(a_node_that_is_gone_is_not_cordoned_and_not_tried_again)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    sim_node(&sim, "n0-03")->gone = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.cordons, 0);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    CU_ASSERT_TRUE(sim_log_says(&sim, "Not in the cluster, so not cordoned: n0-03"));
    sim_run(&sim, 60);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "n0-03 to be registered again"));
    sim_done(&sim);
}

TEST(one_gone_tray_of_a_rack_does_not_hold_the_other_seventeen)
{
    struct sim sim;
    lose_a_rack(&sim);
    sim_node(&sim, "n0-07")->gone = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 120));
    CU_ASSERT_EQUAL(sim.cordons, 17);
    for (int i = 36; i < 54; i++)
        sim.nodes[i].ready = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    for (int i = 0; i < 18; i++)
        sim.nodes[i].ready = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_VALIDATING, 60));
    sim_done(&sim);
}

TEST(a_persons_uncordon_of_one_tray_of_a_rack_cancels_and_names_who)
{
    struct sim sim;
    lose_a_rack(&sim);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 120));
    CU_ASSERT_EQUAL(sim.cordons, 18);
    sim_node(&sim, "n0-07")->cordoned = false;
    sim_node(&sim, "n0-07")->uncordoned_by = "alice@example.com (kubectl)";
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_CANCELLED, 120));
    for (int i = 36; i < 54; i++)
        sim.nodes[i].ready = true;
    sim_run(&sim, 300);
    CU_ASSERT_TRUE(sim_log_says(&sim, "n0-07 was uncordoned by alice@example.com (kubectl)"));
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_CLOSED);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    CU_ASSERT_EQUAL(sim.uncordons, 0);
    int still = 0;
    for (int i = 0; i < 18; i++)
        still += sim.nodes[i].cordoned ? 1 : 0;
    CU_ASSERT_EQUAL(still, 17);
    sim_done(&sim);
}

TESTS(T(each_stage_of_the_way_back_is_waited_for_by_name_and_timed),
      T(a_person_takes_the_cordon_off_and_is_asked_once),
      T(broom_takes_its_own_cordon_off_where_the_plan_says_so_and_not_before_the_validation),
      T(an_uncordon_of_ours_happens_once_wherever_we_are_killed),
      T(an_uncordon_that_the_cluster_refuses_is_a_persons), T(while_paused_nothing_is_given_back),
      T(hardware_that_was_never_seen_down_is_not_taken_as_repaired),
      T(a_cordon_that_somebody_else_sets_meanwhile_is_waited_for_and_left),
      T(what_fails_while_it_is_validated_begins_its_way_back_anew),
      T(a_node_that_is_gone_is_not_cordoned_and_not_tried_again),
      T(one_gone_tray_of_a_rack_does_not_hold_the_other_seventeen),
      T(a_persons_uncordon_of_one_tray_of_a_rack_cancels_and_names_who))
