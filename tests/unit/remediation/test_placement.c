/* Where a restarted job lands, what it waits for there, and what becomes of the spares. */
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim_scenes.h"

static struct policy_set *named(void)
{
    struct policy_set *set = sim_enforce();
    sim_plan_step(set, STEP_RESTART_JOB)->named_only = true;
    return set;
}

static struct policy_set *roomy(void)
{
    struct policy_set *set = sim_enforce();
    set->items[0]->budgets[0].percent = NAN;
    return set;
}

static struct policy_set *without_hand_over(void)
{
    struct policy_set *set = sim_enforce();
    set->items[0]->plans[1].count--;
    return set;
}

/* Cordon and restart, wherever the scheduler likes. */
static struct policy_set *without_spares(void)
{
    struct policy_set *set = sim_enforce();
    struct plan *plan = &set->items[0]->plans[1];
    struct plan_step *spare = sim_plan_step(set, STEP_CHOOSE_SPARE);
    memmove(spare, spare + 1, (size_t)(&plan->steps[plan->count] - (spare + 1)) * sizeof *spare);
    plan->count--;
    return set;
}

static void answer_badly(struct sim *sim, enum verb verb, enum outcome outcome, int count)
{
    sim->bad_verb = verb;
    sim->bad_outcome = outcome;
    sim->bad_count = count;
}

TEST(spares_that_the_job_runs_on_are_settled_once_it_is_verified_and_not_before)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_VERIFYING, 600));
    CU_ASSERT_EQUAL(sim.settles, 0);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    sim_run(&sim, 120);
    CU_ASSERT_EQUAL(sim.settles, 1);
    CU_ASSERT_EQUAL(sim.releases, 0);
    CU_ASSERT_TRUE(sim_incident(&sim, 1)->spares_settled);
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 1)->spares.items[0], "n0-16");
    sim_done(&sim);
}

TEST(a_plan_that_ends_with_the_verification_settles_its_spares_too)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, without_hand_over);
    answer_badly(&sim, VERB_RELEASE_SPARE, OUTCOME_TRANSIENT, 1);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 600));
    sim_run(&sim, 120);
    CU_ASSERT_EQUAL(sim.settles, 1);
    sim_done(&sim);
}

TEST(settling_is_never_in_the_way_of_a_step)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    answer_badly(&sim, VERB_RELEASE_SPARE, OUTCOME_TRANSIENT, 9);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    sim_run(&sim, 5);
    CU_ASSERT_EQUAL(sim.hand_overs, 1);
    sim_run(&sim, 300);
    CU_ASSERT_EQUAL(sim.bad_count, 6); /* three tries, then it is let alone */
    CU_ASSERT_TRUE(sim_incident(&sim, 1)->spares_settled);
    sim_done(&sim);
}

TEST(a_job_that_lands_elsewhere_is_written_down_and_its_unused_spare_is_free_at_once)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    sim.elsewhere = "n1-17";
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_VERIFYING, 600));
    sim_run(&sim, 1);
    CU_ASSERT_EQUAL(sim.releases, 1);
    CU_ASSERT_STRING_EQUAL(sim_node(&sim, "n0-16")->promised_to, "");
    CU_ASSERT_TRUE(sim_log_says(&sim, "placed_elsewhere"));
    CU_ASSERT_TRUE(sim_log_says(&sim, "other nodes than those promised: n0-16 -> n1-17"));
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->spares.count, 0);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->nodes_before.count, 0);
    CU_ASSERT_EQUAL(sim.settles, 0);
    CU_ASSERT_EQUAL(sim.releases, 1);
    /* The next decision starts from where the job is, not from where it was to be. */
    sim_lose_tray(&sim, "n1-17");
    sim_run(&sim, 8);
    sim.elsewhere = NULL;
    sim_accuse_tray(&sim, VERDICT_CRASH, "n1-17", "detector");
    CU_ASSERT_TRUE(sim_until(&sim, 2, PHASE_PLACING, 4000));
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 2)->spares.items[0], "n1-16");
    sim_done(&sim);
}

TEST(a_job_that_lands_as_promised_needs_no_words)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_FALSE(sim_log_says(&sim, "The scheduler chose"));
    sim_done(&sim);
}

TEST(a_named_placement_holds_the_other_free_places_back)
{
    for (int is_named = 0; is_named < 2; is_named++) {
        struct sim sim;
        sim_open_with_lost_tray(&sim, is_named ? named : sim_enforce);
        CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
        CU_ASSERT_EQUAL(sim_log_says(&sim, "\"hold_others\":true"), is_named);
        CU_ASSERT_EQUAL(sim_log_says(&sim, "\"placement\":\"named\""), is_named);
        CU_ASSERT_EQUAL(sim_log_says(&sim, "\"placement\":\"scheduler\""), !is_named);
        sim_done(&sim);
    }
}

TEST(a_tray_that_is_not_ready_in_its_domain_is_waited_for_and_named)
{
    struct sim sim;
    static const char words[] = "n0-16 to be ready in ComputeDomain train-0 (it is NotReady)";
    sim_open_with_lost_tray(&sim, sim_enforce);
    sim.waiting_for = words;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 600));
    sim_run(&sim, 60);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_PLACING);
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 1)->waiting_for, words);
    sim.waiting_for = NULL;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    sim_done(&sim);
}

TEST(a_restart_past_its_deadline_says_what_the_cluster_waited_for)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    sim.restart_waits = true;
    sim.waiting_for = "the PodGroup to be enqueued";
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_RESTARTING, 600));
    sim_node(&sim, "n1-17")->stuck = true; /* nobody's node: it only holds the restart up */
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 900));
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    CU_ASSERT_TRUE(
        sim_log_says(&sim, "the deadline of restarting passed; waited for the pods on n1-17"));
    CU_ASSERT_TRUE(sim_log_says(&sim, "Waits for the pods on n1-17"));
    sim_done(&sim);
}

TEST(where_no_spare_is_named_the_schedulers_choice_is_written_down)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, without_spares);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 600));
    for (int r = 0; r < sim_ranks(&sim); r++)
        if (strcmp(sim.rank_node[r], "n0-03") == 0)
            sim.rank_node[r] = "n1-16";
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_TRUE(sim_log_says(&sim, "The scheduler chose n0-03 -> n1-16"));
    CU_ASSERT_EQUAL(sim.promises, 0);
    CU_ASSERT_EQUAL(sim.settles, 0);
    sim_done(&sim);
}

TEST(a_promised_spare_that_fails_before_the_restart_is_chosen_again)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    answer_badly(&sim, VERB_RESTART_JOB, OUTCOME_TRANSIENT, 1);
    while (sim.bad_count > 0)
        sim_tick(&sim);
    sim_node(&sim, "n0-16")->gpus_missing = 1;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_TRUE(sim_log_says(&sim, "Promised spare n0-16 is not usable now: choosing again"));
    CU_ASSERT_TRUE(sim_job_uses(&sim, "n0-17"));
    CU_ASSERT_EQUAL(sim.releases, 1);
    CU_ASSERT_EQUAL(sim.settles, 1);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

TEST(one_restart_for_two_incidents_settles_the_spares_of_both)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, roomy);
    sim_run(&sim, 120);
    sim_lose_tray(&sim, "n0-03");
    sim_lose_tray(&sim, "n1-03");
    sim_run(&sim, 6);
    sim_accuse_tray(&sim, VERDICT_FAULT, "n0-03", "events");
    sim_accuse_tray(&sim, VERDICT_FAULT, "n1-03", "events");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 4000));
    CU_ASSERT_TRUE(sim_until(&sim, 2, PHASE_REPAIRING, 4000));
    sim_run(&sim, 60);
    CU_ASSERT_EQUAL(sim.settles, 2);
    CU_ASSERT_EQUAL(sim.releases, 0);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

TEST(spares_of_a_restart_that_never_came_are_given_back_a_while_after_it_was_closed)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, named);
    sim.swallow_restart = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 600));
    text_copy(sim.job_phase, sizeof sim.job_phase, "pending");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 1200));
    sim_run(&sim, 1200);
    CU_ASSERT_EQUAL(sim.releases, 0); /* whoever looks at it may still need them */
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_ABORT, "INC-1"), OK);
    sim_run(&sim, 300);
    CU_ASSERT_EQUAL(sim.releases, 0);
    sim_run(&sim, 600);
    CU_ASSERT_EQUAL(sim.releases, 1);
    CU_ASSERT_STRING_EQUAL(sim_node(&sim, "n0-16")->promised_to, "");
    sim_done(&sim);
}

TESTS(T(spares_that_the_job_runs_on_are_settled_once_it_is_verified_and_not_before),
      T(a_plan_that_ends_with_the_verification_settles_its_spares_too),
      T(settling_is_never_in_the_way_of_a_step),
      T(a_job_that_lands_elsewhere_is_written_down_and_its_unused_spare_is_free_at_once),
      T(a_job_that_lands_as_promised_needs_no_words),
      T(a_named_placement_holds_the_other_free_places_back),
      T(a_tray_that_is_not_ready_in_its_domain_is_waited_for_and_named),
      T(a_restart_past_its_deadline_says_what_the_cluster_waited_for),
      T(spares_of_a_restart_that_never_came_are_given_back_a_while_after_it_was_closed),
      T(where_no_spare_is_named_the_schedulers_choice_is_written_down),
      T(a_promised_spare_that_fails_before_the_restart_is_chosen_again),
      T(one_restart_for_two_incidents_settles_the_spares_of_both))
