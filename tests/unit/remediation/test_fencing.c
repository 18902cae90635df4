/* Power, and pods that never end: cordoned is not fenced, and nothing is deleted by force unless
 * the plan says so and somebody vouches that the node is off.
 */
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim_scenes.h"

static struct policy_set *fencing(void)
{
    struct policy_set *set = sim_enforce();
    sim_insert_step(set, STEP_FENCE, STEP_CHOOSE_SPARE);
    sim_plan_step(set, STEP_RESTART_JOB)->force_fenced = true;
    return set;
}

static struct policy_set *fencing_or_not(void)
{
    struct policy_set *set = fencing();
    sim_plan_step(set, STEP_FENCE)->on_timeout = ON_TIMEOUT_CONTINUE;
    return set;
}

static struct policy_set *forcing(void)
{
    struct policy_set *set = sim_enforce();
    sim_plan_step(set, STEP_RESTART_JOB)->force_fenced = true;
    return set;
}

static struct policy_set *draining(void)
{
    struct policy_set *set = sim_enforce();
    sim_insert_step(set, STEP_DRAIN, STEP_REQUEST_CHECKPOINT);
    return set;
}

static void lose_a_tray_with_stuck_pods(struct sim *sim, struct policy_set *(*policies)(void))
{
    sim_open_with_lost_tray(sim, policies);
    sim_node(sim, "n0-03")->stuck = true;
}

static const struct incident_node *lost(const struct sim *sim)
{
    return incident_find_node(sim_incident(sim, 1), "n0-03");
}

static int started(const struct sim *sim, enum verb verb)
{
    int count = 0;
    for (int i = 0; i < sim->op_count; i++)
        count += sim->ops[i].verb == verb ? sim->ops[i].started : 0;
    return count;
}

TEST(a_fence_step_that_succeeds_vouches_for_its_nodes)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, fencing);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 200));
    CU_ASSERT_EQUAL(sim.fences, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(lost(&sim)->fenced_by);
    CU_ASSERT_STRING_EQUAL(lost(&sim)->fenced_by, "fence [INC-1/0/4/1]");
    CU_ASSERT_TRUE(sim_log_says(&sim, "Confirmed to be off: n0-03"));
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    sim_done(&sim);
}

TEST(a_refused_fence_ends_the_plan_or_is_passed_by_as_the_plan_says)
{
    for (int goes_on = 0; goes_on < 2; goes_on++) {
        struct sim sim;
        sim_open_with_lost_tray(&sim, goes_on ? fencing_or_not : fencing);
        sim.bad_verb = VERB_FENCE;
        sim.bad_outcome = OUTCOME_REFUSED;
        sim.bad_count = 1;
        CU_ASSERT_TRUE(sim_until(&sim, 1, goes_on ? PHASE_REPAIRING : PHASE_ESCALATED, 600));
        CU_ASSERT_PTR_NULL(lost(&sim)->fenced_by);
        CU_ASSERT_EQUAL(sim.restarts_done, goes_on);
        sim_done(&sim);
    }
}

/* Runs without answering a verb, so that its deadline passes. */
static void start_without_answer(struct sim *sim, enum verb verb)
{
    sim->bad_verb = verb;
    sim->bad_outcome = OUTCOME_UNKNOWN;
    sim->bad_count = 1;
    sim->poll_silent = true;
}

TEST(a_fence_that_never_answers_is_passed_by_and_its_late_answer_still_counts)
{
    struct sim sim;
    lose_a_tray_with_stuck_pods(&sim, fencing_or_not);
    start_without_answer(&sim, VERB_FENCE);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 600));
    sim_run(&sim, 10);
    CU_ASSERT_EQUAL(sim.force_deletes, 0);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "nobody says that it is off"));
    struct action_result late = {
        .outcome = OUTCOME_SUCCEEDED, .poll = POLL_DONE, .reason = "off at last"};
    remediation_polled(sim.core, "INC-1/0/4/1", &late, sim.now_ns);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 300));
    CU_ASSERT_EQUAL(sim.force_deletes, 1);
    sim_done(&sim);
}

TEST(what_is_off_already_or_works_for_others_is_not_powered_off)
{
    for (int others = 0; others < 2; others++) {
        struct sim sim;
        sim_open_with_lost_tray(&sim, fencing);
        if (others) {
            sim.other_job_node = "n0-03";
            sim_node(&sim, "n0-03")->ready = true;
        } else {
            CU_ASSERT_EQUAL(sim_say_fenced(&sim, "n0-03"), OK);
        }
        CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
        CU_ASSERT_EQUAL(sim.fences, 0);
        CU_ASSERT_TRUE(sim_log_says(&sim, "No node is to be powered off"));
        sim_done(&sim);
    }
}

TEST(a_stuck_node_of_no_incident_needs_the_clusters_own_mark)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, forcing);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 200));
    sim_node(&sim, "n1-17")->stuck = true;
    sim_node(&sim, "n1-17")->ready = false;
    sim_run(&sim, 30);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "once it is off, mark it out-of-service in the cluster"));
    CU_ASSERT_EQUAL(sim_say_fenced(&sim, "n1-17"), ERR_NOT_FOUND);
    sim_node(&sim, "n1-17")->fenced_by = "taint out-of-service";
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 300));
    CU_ASSERT_EQUAL(sim.force_deletes, 1);
    sim_done(&sim);
}

TEST(a_drain_moves_what_else_runs_there_before_anything_is_saved)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, draining);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.drains, 1);
    CU_ASSERT_EQUAL(sim.fences, 0);
    CU_ASSERT_TRUE(sim_log_says(&sim, "drain n0-03"));
    sim_done(&sim);
}

TEST(pods_that_never_end_wait_for_a_person_where_the_plan_deletes_none_by_force)
{
    struct sim sim;
    lose_a_tray_with_stuck_pods(&sim, sim_enforce);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 200));
    CU_ASSERT_EQUAL(sim_say_fenced(&sim, "n0-03"), OK);
    sim_run(&sim, 60);
    CU_ASSERT_EQUAL(sim.force_deletes, 0);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "the pods on n0-03 to end"));
    CU_ASSERT_TRUE(sim_waits_for(&sim, "the plan deletes none by force"));
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 700));
    CU_ASSERT_TRUE(
        sim_log_says(&sim, "the deadline of placing passed; waited for the pods on n0-03"));
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

TEST(cordoned_is_not_fenced_and_a_persons_word_is_asked_for_once)
{
    struct sim sim;
    lose_a_tray_with_stuck_pods(&sim, forcing);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 200));
    int told = sim.notifies;
    sim_run(&sim, 60);
    CU_ASSERT_TRUE(sim_node(&sim, "n0-03")->cordoned);
    CU_ASSERT_EQUAL(sim.force_deletes, 0);
    CU_ASSERT_EQUAL(sim.notifies, told + 1);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "broom fenced n0-03 --reason WHY"));
    CU_ASSERT_EQUAL(sim_say_fenced(&sim, "n0-03"), OK);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 200));
    CU_ASSERT_EQUAL(sim.force_deletes, 1);
    CU_ASSERT_PTR_NOT_NULL(sim_op(&sim, "INC-1/0/force_delete/1"));
    CU_ASSERT_TRUE(sim_log_says(&sim, "n0-03 is off: pulled the plug"));
    sim_done(&sim);
}

TEST(a_restart_that_is_answered_only_when_the_pods_are_gone_does_not_lock_up)
{
    struct sim sim;
    lose_a_tray_with_stuck_pods(&sim, forcing);
    sim.restart_waits = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_RESTARTING, 200));
    sim_run(&sim, 60);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_RESTARTING);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "nobody says that it is off"));
    CU_ASSERT_EQUAL(sim_say_fenced(&sim, "n0-03"), OK);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 200));
    CU_ASSERT_EQUAL(sim.force_deletes, 1);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

TEST(the_clusters_own_mark_is_word_enough)
{
    struct sim sim;
    lose_a_tray_with_stuck_pods(&sim, forcing);
    sim_node(&sim, "n0-03")->fenced_by = "taint out-of-service";
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.force_deletes, 1);
    CU_ASSERT_TRUE(sim_log_says(&sim, "taint out-of-service"));
    sim_done(&sim);
}

TEST(a_node_that_is_seen_ready_again_is_not_off_whoever_said_so)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    CU_ASSERT_EQUAL(sim_say_fenced(&sim, "n0-03"), OK);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_PTR_NOT_NULL(lost(&sim)->fenced_by);
    sim_node(&sim, "n0-03")->ready = true;
    sim_run(&sim, 30);
    CU_ASSERT_PTR_NULL(lost(&sim)->fenced_by);
    CU_ASSERT_TRUE(sim_log_says(&sim, "Seen ready, so not off, whoever said so: n0-03"));
    sim_done(&sim);
}

TEST(a_word_on_a_node_that_no_incident_has_is_not_found)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    CU_ASSERT_EQUAL(sim_say_fenced(&sim, "n1-03"), ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(sim_say_fenced(&sim, "n0-03"), OK);
    CU_ASSERT_STRING_EQUAL(lost(&sim)->fenced_by, "alice");
    sim_done(&sim);
}

TEST(an_answer_may_name_the_nodes_that_are_off)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, fencing);
    sim.response = "{\"fenced\": [\"n0-04\"]}";
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 200));
    CU_ASSERT_PTR_NULL(lost(&sim)->fenced_by);
    CU_ASSERT_TRUE(sim_log_says(&sim, "The answer confirms no node to be off"));
    sim.response = "{\"fenced\": true}"; /* of the hand-over */
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_PTR_NOT_NULL_FATAL(lost(&sim)->fenced_by);
    CU_ASSERT_STRING_EQUAL(lost(&sim)->fenced_by, "hand_over [INC-1/0/8/1]");
    sim_done(&sim);
}

TEST(a_force_delete_that_did_not_happen_is_tried_three_times_and_then_said)
{
    struct sim sim;
    lose_a_tray_with_stuck_pods(&sim, forcing);
    CU_ASSERT_EQUAL(sim_say_fenced(&sim, "n0-03"), OK);
    sim.bad_verb = VERB_FORCE_DELETE;
    sim.bad_outcome = OUTCOME_TRANSIENT;
    sim.bad_count = 2;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.force_deletes, 1);
    CU_ASSERT_PTR_NOT_NULL(sim_op(&sim, "INC-1/0/force_delete/3"));
    sim_done(&sim);
    lose_a_tray_with_stuck_pods(&sim, forcing);
    CU_ASSERT_EQUAL(sim_say_fenced(&sim, "n0-03"), OK);
    sim.bad_verb = VERB_FORCE_DELETE;
    sim.bad_outcome = OUTCOME_TRANSIENT;
    sim.bad_count = 9;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 200));
    sim_run(&sim, 120);
    CU_ASSERT_EQUAL(sim.bad_count, 6);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "deleting them by force was tried"));
    sim_done(&sim);
}

TEST(pods_that_are_still_there_after_it_are_not_deleted_again)
{
    struct sim sim;
    lose_a_tray_with_stuck_pods(&sim, forcing);
    CU_ASSERT_EQUAL(sim_say_fenced(&sim, "n0-03"), OK);
    sim.force_delete_does_nothing = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 1200));
    CU_ASSERT_EQUAL(sim.force_deletes, 1);
    CU_ASSERT_TRUE(sim_log_says(&sim, "deleting them by force was tried and they are there"));
    sim_done(&sim);
}

TEST(while_paused_nothing_is_deleted_and_that_is_what_it_waits_for)
{
    struct sim sim;
    lose_a_tray_with_stuck_pods(&sim, forcing);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 200));
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_PAUSE, NULL), OK);
    CU_ASSERT_EQUAL(sim_say_fenced(&sim, "n0-03"), OK);
    int records = sim.record_count;
    sim_run(&sim, 60);
    CU_ASSERT_EQUAL(sim.force_deletes, 0);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "acting is paused by alice"));
    CU_ASSERT_TRUE(sim.record_count - records < 10);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_RESUME, NULL), OK);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 200));
    sim_done(&sim);
}

static void accuse_again(struct sim *sim)
{
    if (sim->stopped && sim_job_uses(sim, "n0-03") && sim->starts_at_ns == 0)
        sim_accuse_tray(sim, VERDICT_CRASH, "n0-03", "detector");
}

/* The whole way with fence and force_delete, killed at every start and at every commit. */
static bool run_and_crash(enum sim_crash crash, int crash_at)
{
    struct sim sim;
    lose_a_tray_with_stuck_pods(&sim, fencing);
    sim.redeliver = accuse_again;
    sim.commit_count = sim.start_count = 0;
    sim.crash = crash;
    sim.crash_at = crash_at;
    bool good = sim_until(&sim, 1, PHASE_REPAIRING, 1200);
    sim_run(&sim, 70);
    good = good && sim.restarts_done == 1 && sim.cordons == 1 && sim.settles == 1;
    good = good && started(&sim, VERB_FENCE) == 1 && started(&sim, VERB_FORCE_DELETE) == 1;
    if (!good)
        printf("crash kind %d at %d: %s, fences %d, deletes %d, settles %d\n", (int)crash, crash_at,
               sim_incident(&sim, 1)->waiting_for, sim.fences, sim.force_deletes, sim.settles);
    CU_ASSERT_TRUE(good);
    bool crashed = sim.crashes > 0;
    sim_done(&sim);
    return crashed;
}

TEST(fencing_and_deleting_happen_once_wherever_we_are_killed)
{
    int points = 0;
    for (int crash = CRASH_BEFORE_COMMIT; crash <= CRASH_AFTER_START; crash++)
        for (int at = crash == CRASH_BEFORE_COMMIT ? 1 : 0; at < 200; at++) {
            if (!run_and_crash((enum sim_crash)crash, at))
                break;
            points++;
        }
    CU_ASSERT_TRUE(points >= 30);
}

TESTS(T(a_fence_step_that_succeeds_vouches_for_its_nodes),
      T(a_refused_fence_ends_the_plan_or_is_passed_by_as_the_plan_says),
      T(a_fence_that_never_answers_is_passed_by_and_its_late_answer_still_counts),
      T(what_is_off_already_or_works_for_others_is_not_powered_off),
      T(a_stuck_node_of_no_incident_needs_the_clusters_own_mark),
      T(a_drain_moves_what_else_runs_there_before_anything_is_saved),
      T(pods_that_never_end_wait_for_a_person_where_the_plan_deletes_none_by_force),
      T(cordoned_is_not_fenced_and_a_persons_word_is_asked_for_once),
      T(a_restart_that_is_answered_only_when_the_pods_are_gone_does_not_lock_up),
      T(the_clusters_own_mark_is_word_enough),
      T(a_node_that_is_seen_ready_again_is_not_off_whoever_said_so),
      T(a_word_on_a_node_that_no_incident_has_is_not_found),
      T(an_answer_may_name_the_nodes_that_are_off),
      T(a_force_delete_that_did_not_happen_is_tried_three_times_and_then_said),
      T(pods_that_are_still_there_after_it_are_not_deleted_again),
      T(while_paused_nothing_is_deleted_and_that_is_what_it_waits_for),
      T(fencing_and_deleting_happen_once_wherever_we_are_killed))
