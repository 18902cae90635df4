/* What stands between a decision and an effect: modes, people, guards, budgets, unknown outcomes.
 */
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim_scenes.h"

/* A crash of one tray that the core knows of; the job stands still. */
TEST(observe_mode_records_what_it_would_have_done_and_ends_with_the_clear)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_observe);
    sim_run(&sim, 120);
    CU_ASSERT_EQUAL(sim.op_count, 0);
    CU_ASSERT_EQUAL(sim.decisions_not_executed, 8);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_CONFIRMED);
    CU_ASSERT_PTR_NOT_NULL(strstr(sim_incident(&sim, 1)->waiting_for, "clear"));
    sim_clear(&sim, VERDICT_CRASH, SCOPE_TRAY, "n0-03");
    sim_run(&sim, 10);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_DONE);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_CLOSED);
    sim_done(&sim);
}

TEST(the_strictest_of_daemon_policy_and_rule_wins)
{
    struct policy *policy = sim_policy(MODE_ENFORCE);
    struct policy_rule *rule = &policy->rules[0];
    CU_ASSERT_EQUAL(policy_mode(MODE_ENFORCE, policy, rule), MODE_ENFORCE);
    CU_ASSERT_EQUAL(policy_mode(MODE_OBSERVE, policy, rule), MODE_OBSERVE);
    CU_ASSERT_EQUAL(policy_mode(MODE_UNSET, policy, rule), MODE_OBSERVE);
    rule->mode = MODE_APPROVE;
    CU_ASSERT_EQUAL(policy_mode(MODE_ENFORCE, policy, rule), MODE_APPROVE);
    policy->mode = MODE_UNSET;
    rule->mode = MODE_ENFORCE;
    CU_ASSERT_EQUAL(policy_mode(MODE_ENFORCE, policy, rule), MODE_ENFORCE);
    rule->mode = MODE_UNSET;
    CU_ASSERT_EQUAL(policy_mode(MODE_ENFORCE, policy, rule), MODE_OBSERVE);
    policy_free(policy);
}

TEST(approve_mode_tells_people_and_waits_for_one_of_them)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_approve);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_AWAITING_APPROVAL, 60));
    sim_run(&sim, 60);
    CU_ASSERT_EQUAL(sim.notifies, 2); /* the fault, and that a word is waited for */
    CU_ASSERT_EQUAL(sim.cordons, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(sim_incident(&sim, 1)->waiting_for, "approval to cordon"));
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_APPROVE, "INC-1"), OK);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 1)->approved_by, "alice");
    CU_ASSERT_EQUAL(sim.cordons, 1);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_APPROVE, "INC-1"), ERR_REFUSED);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_APPROVE, "INC-9"), ERR_NOT_FOUND);
    sim_done(&sim);
}

TEST(an_approval_that_never_comes_is_escalated)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_approve);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 3700));
    CU_ASSERT_EQUAL(sim.cordons, 0);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_ABORT, "INC-1"), OK);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_CLOSED);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_ABORT, "INC-1"), ERR_REFUSED);
    sim_done(&sim);
}

TEST(pause_blocks_new_actions_and_not_verification)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_PAUSE, NULL), OK);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 60));
    sim_run(&sim, 300);
    CU_ASSERT_EQUAL(sim.cordons, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(sim_incident(&sim, 1)->waiting_for, "paused by alice"));
    CU_ASSERT_STRING_EQUAL(remediation_status(sim.core).blocked, "paused");
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_RESUME, NULL), OK);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_VERIFYING, 300));
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_PAUSE, NULL), OK);
    sim_run(&sim, 60);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_MITIGATED);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_HOLDING);
    CU_ASSERT_EQUAL(sim.hand_overs, 0);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_RESUME, NULL), OK);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 60));
    sim_done(&sim);
}

TEST(each_guard_blocks_the_act_half_with_its_name)
{
    static const char *const names[] = {"lease_not_held", "clock_not_trusted", "telemetry_blind",
                                        "store_down"};
    for (int guard = 0; guard < 4; guard++) {
        struct sim sim;
        sim_open_with_lost_tray(&sim, sim_enforce);
        sim.guards = (struct remediation_guards){guard != 0, guard != 1, guard != 2, guard != 3};
        remediation_guards(sim.core, sim.guards, sim.now_ns);
        sim_run(&sim, 300);
        CU_ASSERT_EQUAL(sim.cordons, 0);
        CU_ASSERT_EQUAL(sim.restarts_done, 0);
        CU_ASSERT_STRING_EQUAL(remediation_status(sim.core).blocked, names[guard]);
        sim.guards = (struct remediation_guards){true, true, true, true};
        remediation_guards(sim.core, sim.guards, sim.now_ns);
        CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
        sim_done(&sim);
    }
}

TEST(a_world_that_does_not_answer_is_not_acted_on)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    sim.world_known = false;
    sim_run(&sim, 300);
    CU_ASSERT_EQUAL(sim.cordons, 0);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(sim_incident(&sim, 1)->waiting_for, "the cluster to be described"));
    sim.world_known = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    sim_done(&sim);
}

TEST(a_persons_uncordon_cancels_the_remediation)
{
    struct sim sim;
    sim_init(&sim, 1, 1, 18, sim_enforce);
    sim_run(&sim, 120);
    sim_lose_tray(&sim, "n0-03");
    sim_run(&sim, 6);
    sim_accuse_tray(&sim, VERDICT_CRASH, "n0-03", "detector");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 100));
    sim_node(&sim, "n0-03")->cordoned = false;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_CANCELLED, 120));
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_CLOSED);
    sim_run(&sim, 300);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    CU_ASSERT_EQUAL(sim.cordons, 1);
    sim_done(&sim);
}

TEST(the_jobs_last_restart_needs_a_person_before_anything_is_cordoned)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    sim.restarts = 2;
    sim.restarts_max = 3;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_AWAITING_APPROVAL, 60));
    CU_ASSERT_EQUAL(sim.cordons, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(sim_incident(&sim, 1)->waiting_for, "last try"));
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_APPROVE, "INC-1"), OK);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    sim_done(&sim);
}

TEST(a_spent_restart_budget_is_never_overdrawn)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    sim.restarts = 3;
    sim.restarts_max = 3;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_AWAITING_APPROVAL, 60));
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_APPROVE, "INC-1"), OK);
    sim_run(&sim, 600);
    CU_ASSERT_EQUAL(sim.cordons, 0);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    sim_done(&sim);
}

TEST(decline_takes_our_own_cordon_off_and_leaves_anothers)
{
    struct sim sim;
    sim_init(&sim, 1, 1, 18, sim_enforce);
    sim_run(&sim, 120);
    sim_node(&sim, "n0-04")->cordoned = true;
    text_copy(sim_node(&sim, "n0-04")->cordoned_by, 32, "bob: fan swap");
    sim_lose_tray(&sim, "n0-03");
    sim_run(&sim, 6);
    struct verdict both = sim_verdict(&sim, VERDICT_CRASH, SCOPE_TRAY, "n0-03");
    verdict_add_node(&both, "n0-03");
    verdict_add_node(&both, "n0-04");
    sim_give(&sim, &both, "detector");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 100));
    CU_ASSERT_EQUAL(sim.cordons, 1);
    CU_ASSERT_TRUE(incident_find_node(sim_incident(&sim, 1), "n0-04")->was_cordoned);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_DECLINE, "INC-1"), OK);
    sim_run(&sim, 30);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_DECLINED);
    CU_ASSERT_FALSE(sim_node(&sim, "n0-03")->cordoned);
    CU_ASSERT_TRUE(sim_node(&sim, "n0-04")->cordoned);
    CU_ASSERT_STRING_EQUAL(sim_node(&sim, "n0-04")->cordoned_by, "bob: fan swap");
    CU_ASSERT_EQUAL(sim.uncordons, 1);
    sim_done(&sim);
}

TEST(an_unknown_outcome_is_polled_and_never_repeated)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    sim.answers_unknown = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.cordons, 1);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_run(&sim, 10);
    for (int i = 0; i < sim.op_count; i++) {
        CU_ASSERT_EQUAL(sim.ops[i].started, 1);
        CU_ASSERT_TRUE(sim.ops[i].polled >= 1);
    }
    sim_done(&sim);
}

TEST(a_restart_that_the_cluster_knows_nothing_of_is_started_under_the_same_id)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    sim.answers_unknown = sim.loses_restart = true;
    sim_run(&sim, 12);
    sim.loses_restart = false;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

static void answer(struct sim *sim, enum verb verb, enum outcome outcome)
{
    const struct incident *incident = sim_incident(sim, 1);
    const struct incident_action *action = incident_running_action(incident);
    if (action == NULL)
        printf("no %s is running: %s, %s\n", verb_name(verb), phase_name(incident->phase),
               incident->waiting_for);
    CU_ASSERT_PTR_NOT_NULL_FATAL(action);
    CU_ASSERT_EQUAL(action->verb, verb);
    struct action_result result = {.outcome = outcome, .reason = "by the test"};
    char id[OPERATION_ID_BYTES];
    text_copy(id, sizeof id, action->operation_id);
    remediation_outcome(sim->core, id, &result, sim->now_ns);
}

/* Runs without answering starts, so that the test can. */
static void run_silent(struct sim *sim, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        struct effect effect;
        sim->now_ns += SECOND;
        sim_say_progress(sim);
        remediation_tick(sim->core, sim->now_ns);
        while (remediation_next_effect(sim->core, &effect)) {
            if (effect.kind == EFFECT_RECORD)
                sim_store(sim, effect.record);
            if (effect.kind == EFFECT_DESCRIBE)
                sim_describe(sim);
            effect_done(&effect);
        }
    }
}

static void settle_silently(struct sim *sim)
{
    while (sim_incident(sim, 1)->phase == PHASE_SUSPECTED) {
        sim->now_ns += SECOND;
        remediation_tick(sim->core, sim->now_ns);
    }
    run_silent(sim, 1);
}

TEST(a_transient_failure_is_tried_again_with_a_new_id_and_given_up_after_three)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    settle_silently(&sim);
    answer(&sim, VERB_NOTIFY, OUTCOME_SUCCEEDED);
    run_silent(&sim, 1);
    answer(&sim, VERB_CAPTURE, OUTCOME_REFUSED);
    run_silent(&sim, 2);
    for (int i = 0; i < 3; i++) {
        answer(&sim, VERB_CORDON, OUTCOME_TRANSIENT);
        run_silent(&sim, 35);
    }
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_ESCALATED);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->nodes_spent_ns, 0);
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 1)->actions[2].operation_id, "INC-1/0/2/1");
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 1)->actions[4].operation_id, "INC-1/0/2/3");
    sim_done(&sim);
}

TEST(abort_leaves_the_cordon_and_gives_the_spare_back)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    settle_silently(&sim);
    answer(&sim, VERB_NOTIFY, OUTCOME_SUCCEEDED);
    run_silent(&sim, 1);
    answer(&sim, VERB_CAPTURE, OUTCOME_SUCCEEDED);
    run_silent(&sim, 2);
    answer(&sim, VERB_CORDON, OUTCOME_SUCCEEDED);
    sim_node(&sim, "n0-03")->cordoned = true;
    text_copy(sim_node(&sim, "n0-03")->cordoned_by, 32, "INC-1");
    run_silent(&sim, 2);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->spares.count, 1);
    struct remediation_command pause = {.verb = COMMAND_PAUSE, .actor = "alice"};
    struct remediation_command abort_it = {
        .verb = COMMAND_ABORT, .incident_ref = "INC-1", .actor = "alice"};
    CU_ASSERT_EQUAL(remediation_command(sim.core, &pause, sim.now_ns, NULL), OK);
    answer(&sim, VERB_PROMISE_SPARE, OUTCOME_SUCCEEDED);
    run_silent(&sim, 2);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_HOLDING);
    CU_ASSERT_EQUAL(remediation_command(sim.core, &abort_it, sim.now_ns, NULL), OK);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_CANCELLED);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->spares.count, 0);
    CU_ASSERT_TRUE(incident_find_node(sim_incident(&sim, 1), "n0-03")->ours);
    answer(&sim, VERB_RELEASE_SPARE, OUTCOME_SUCCEEDED);
    CU_ASSERT_PTR_NULL(incident_running_action(sim_incident(&sim, 1)));
    sim_done(&sim);
}

TEST(an_action_that_never_answers_is_escalated_at_its_deadline)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    settle_silently(&sim);
    answer(&sim, VERB_NOTIFY, OUTCOME_SUCCEEDED);
    run_silent(&sim, 1);
    answer(&sim, VERB_CAPTURE, OUTCOME_SUCCEEDED);
    run_silent(&sim, 400);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_ESCALATED);
    CU_ASSERT_PTR_NOT_NULL(strstr(sim.log.bytes, "the deadline of cordoning passed"));
    sim_done(&sim);
}

TEST(what_was_taken_back_may_not_start)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    settle_silently(&sim);
    const struct incident_action *action = incident_running_action(sim_incident(&sim, 1));
    CU_ASSERT_PTR_NOT_NULL_FATAL(action);
    CU_ASSERT_TRUE(remediation_may_start(sim.core, action->operation_id));
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_ABORT, "INC-1"), OK);
    CU_ASSERT_FALSE(remediation_may_start(sim.core, "INC-1/0/0/1"));
    CU_ASSERT_FALSE(remediation_may_start(sim.core, "INC-7/0/0/1"));
    sim_done(&sim);
}

TEST(a_closed_breaker_judges_the_standing_accusations_and_a_decline_drops_them)
{
    for (int declines = 0; declines < 2; declines++) {
        struct sim sim;
        sim_init(&sim, 4, 3, 16, sim_enforce);
        sim_run(&sim, 130);
        for (int i = 0; i < 20; i++) {
            char node[32];
            snprintf(node, sizeof node, "n%d-%02d", i % 3, i / 3);
            sim_accuse_tray(&sim, VERDICT_FAULT, node, "monitor-7");
        }
        sim_run(&sim, 2);
        const struct incident *observer = NULL;
        for (size_t i = 0; i < remediation_incident_count(sim.core); i++)
            if (remediation_incident_at(sim.core, i)->observer_suspect)
                observer = remediation_incident_at(sim.core, i);
        CU_ASSERT_PTR_NOT_NULL_FATAL(observer);
        size_t before = remediation_incident_count(sim.core);
        if (declines) {
            CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_DECLINE, observer->ref), OK);
            CU_ASSERT_TRUE(remediation_status(sim.core).breaker_open);
        }
        CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_BREAKER_CLOSE, NULL), OK);
        CU_ASSERT_FALSE(remediation_status(sim.core).breaker_open);
        CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_BREAKER_CLOSE, NULL), ERR_REFUSED);
        sim_run(&sim, 120);
        size_t after = remediation_incident_count(sim.core);
        CU_ASSERT_TRUE(declines ? after == before : after > before);
        CU_ASSERT_TRUE(sim.cordons <= 3);
        sim_done(&sim);
    }
}

TEST(a_rack_fault_of_a_stopped_job_in_a_small_cluster_is_no_storm)
{
    struct sim sim;
    sim_init(&sim, 2, 1, 16, sim_enforce);
    sim_run(&sim, 130);
    for (int i = 0; i < 18; i++)
        sim.nodes[i].dead = true;
    sim_run(&sim, 1);
    sim_accuse_rack(&sim, VERDICT_FAULT, "rk-0", "events");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_FALSE(remediation_status(sim.core).breaker_open);
    CU_ASSERT_EQUAL(sim.cordons, 18);
    sim_done(&sim);
}

TEST(a_hard_fault_of_a_job_that_steps_on_settles_for_a_minute)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 130);
    sim_accuse_tray(&sim, VERDICT_FAULT, "n0-03", "events");
    sim_run(&sim, 58);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_SUSPECTED);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.cordons, 1);
    sim_done(&sim);
}

TEST(a_slow_verdict_waits_while_the_job_saves)
{
    struct sim sim;
    sim_init(&sim, 1, 1, 16, sim_enforce);
    sim_run(&sim, 130);
    sim.slow_node = "n0-05";
    sim.slow = 1.5;
    struct verdict slow = sim_verdict(&sim, VERDICT_SLOW, SCOPE_RANK, "21");
    slow.slowdown = 1.5;
    verdict_add_node(&slow, "n0-05");
    sim_give(&sim, &slow, "detector");
    sim_run(&sim, 590);
    sim.says_phase = "checkpoint";
    sim_run(&sim, 60);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_SUSPECTED);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(sim_incident(&sim, 1)->waiting_for, "the job's checkpoint to end"));
    sim.says_phase = "compute";
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 900));
    sim_done(&sim);
}

TEST(notes_acks_and_fencing_are_kept_with_their_actor)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_observe);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_ACK, "INC-1"), OK);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_FENCED, "INC-1"), OK);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_NOTE, "INC-1"), OK);
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 1)->acked_by, "alice");
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 1)->fenced_by, "alice");
    sim_done(&sim);
}

TEST(a_deadline_is_always_known_while_something_is_open)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    for (int i = 0; i < 200; i++) {
        sim_tick(&sim);
        const struct incident *incident = sim_incident(&sim, 1);
        CU_ASSERT_TRUE(incident_has_ended(incident) || incident->deadline_ns > sim.now_ns);
    }
    sim_done(&sim);
}

TESTS(T(observe_mode_records_what_it_would_have_done_and_ends_with_the_clear),
      T(the_strictest_of_daemon_policy_and_rule_wins),
      T(approve_mode_tells_people_and_waits_for_one_of_them),
      T(an_approval_that_never_comes_is_escalated),
      T(pause_blocks_new_actions_and_not_verification),
      T(each_guard_blocks_the_act_half_with_its_name),
      T(a_world_that_does_not_answer_is_not_acted_on),
      T(a_persons_uncordon_cancels_the_remediation),
      T(abort_leaves_the_cordon_and_gives_the_spare_back),
      T(the_jobs_last_restart_needs_a_person_before_anything_is_cordoned),
      T(a_spent_restart_budget_is_never_overdrawn),
      T(decline_takes_our_own_cordon_off_and_leaves_anothers),
      T(an_unknown_outcome_is_polled_and_never_repeated),
      T(a_restart_that_the_cluster_knows_nothing_of_is_started_under_the_same_id),
      T(a_transient_failure_is_tried_again_with_a_new_id_and_given_up_after_three),
      T(an_action_that_never_answers_is_escalated_at_its_deadline),
      T(what_was_taken_back_may_not_start),
      T(a_closed_breaker_judges_the_standing_accusations_and_a_decline_drops_them),
      T(a_rack_fault_of_a_stopped_job_in_a_small_cluster_is_no_storm),
      T(a_hard_fault_of_a_job_that_steps_on_settles_for_a_minute),
      T(a_slow_verdict_waits_while_the_job_saves),
      T(notes_acks_and_fencing_are_kept_with_their_actor),
      T(a_deadline_is_always_known_while_something_is_open))
