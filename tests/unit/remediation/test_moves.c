/* The rarer ways through: what other people and other incidents do while one is under way. */
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim_scenes.h"

/* The shipped rules with room for several trays an hour. */
static struct policy_set *roomy(void)
{
    struct policy_set *set = sim_enforce();
    set->items[0]->budgets[0].percent = NAN;
    return set;
}

static struct policy_set *without_step(enum step_kind kind)
{
    struct policy_set *set = roomy();
    struct plan *plan = &set->items[0]->plans[1];
    for (int i = 0; i < plan->count; i++)
        if (plan->steps[i].kind == kind) {
            memmove(&plan->steps[i], &plan->steps[i + 1],
                    (size_t)(plan->count - i - 1) * sizeof plan->steps[0]);
            plan->count--;
        }
    return set;
}

static struct policy_set *without_hand_over(void)
{
    return without_step(STEP_HAND_OVER);
}

static struct policy_set *only_telling(void)
{
    struct policy_set *set = sim_enforce();
    set->items[0]->plans[1].count = 2;
    return set;
}

static struct policy_set *only_cordoning(void)
{
    struct policy_set *set = sim_enforce();
    set->items[0]->plans[1].count = 3;
    return set;
}

static struct policy_set *escalating_without_spare(void)
{
    struct policy_set *set = sim_enforce();
    set->items[0]->plans[1].steps[4].hold_on_none = false;
    return set;
}

TEST(a_rack_that_fails_after_one_of_its_trays_was_cordoned_takes_that_incident_over)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 1, 18, sim_enforce);
    for (int i = 18; i < 36; i++)
        sim.nodes[i].ready = false;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 100));
    for (int i = 0; i < 36; i++) {
        sim.nodes[i].dead = i < 18;
        sim.nodes[i].ready = i >= 18;
    }
    sim_accuse_rack(&sim, VERDICT_FAULT, "rk-0", "events");
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_MERGED);
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 1)->merged_into, "INC-2");
    CU_ASSERT_TRUE(incident_find_node(sim_incident(&sim, 2), "n0-03")->ours);
    CU_ASSERT_TRUE(sim_until(&sim, 2, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.cordons, 18);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

TEST(a_rack_that_fails_during_a_restart_is_judged_as_a_rack_when_that_ends)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 3, 2, 16, roomy);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 100));
    sim_run(&sim, 10);
    for (int i = 18; i < 36; i++)
        sim.nodes[i].dead = true;
    sim_accuse_rack(&sim, VERDICT_FAULT, "rk-1", "events");
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 2);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 1200));
    CU_ASSERT_TRUE(sim_until(&sim, 2, PHASE_REPAIRING, 1200));
    CU_ASSERT_EQUAL(sim.restarts_done, 2);
    sim_done(&sim);
}

TEST(one_restart_takes_along_what_another_incident_waits_for)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, roomy);
    sim_run(&sim, 120);
    sim_lose_tray(&sim, "n0-03");
    sim_lose_tray(&sim, "n1-03");
    sim_run(&sim, 6);
    sim_accuse_tray(&sim, VERDICT_FAULT, "n0-03", "events");
    sim_accuse_tray(&sim, VERDICT_FAULT, "n1-03", "events");
    CU_ASSERT_TRUE(sim_until(&sim, 2, PHASE_REPAIRING, 4000));
    CU_ASSERT_EQUAL(sim_incident(&sim, 2)->status, INCIDENT_MITIGATED);
    CU_ASSERT_FALSE(sim_job_uses(&sim, "n0-03"));
    CU_ASSERT_FALSE(sim_job_uses(&sim, "n1-03"));
    sim_done(&sim);
}

TEST(a_job_that_a_person_moved_meanwhile_is_verified_and_not_restarted)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 1, 1, 18, sim_enforce);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 100));
    struct sim_node *spare = &sim.nodes[sim.node_count++];
    *spare = (struct sim_node){.ready = true};
    text_copy(spare->name, sizeof spare->name, "n0-98");
    text_copy(spare->rack, sizeof spare->rack, "rk-0");
    job_intern_tray(sim.job, "n0-98", 0);
    struct action by_hand = {.verb = VERB_RESTART_JOB,
                             .node_count = 1,
                             .spare_count = 1,
                             .nodes = (const char *const[]){"n0-03"},
                             .spares = (const char *const[]){"n0-98"}};
    sim_begin_restart(&sim, &by_hand);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_MITIGATED);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

TEST(a_node_that_the_job_has_left_already_is_cordoned_and_the_job_let_alone)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, roomy);
    sim_run(&sim, 120);
    struct verdict fault = sim_verdict(&sim, VERDICT_FAULT, SCOPE_TRAY, "n0-17");
    verdict_add_node(&fault, "n0-17");
    sim_give(&sim, &fault, "events");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 300));
    CU_ASSERT_EQUAL(sim.cordons, 1);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    CU_ASSERT_EQUAL(sim.promises, 0);
    sim_done(&sim);
}

TEST(returned_hardware_that_fails_again_goes_back_to_repair)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, sim_enforce);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    struct sim_node *node = sim_node(&sim, "n0-03");
    node->cordoned = false;
    node->ready = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_VALIDATING, 60));
    node->ready = false;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 60));
    node->ready = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 1200));
    CU_ASSERT_TRUE(sim_incident(&sim, 1)->times.resolved_ns >
                   sim_incident(&sim, 1)->times.mitigated_ns);
    sim_done(&sim);
}

TEST(a_repair_that_never_ends_is_escalated_after_a_week)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, sim_enforce);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    sim_run(&sim, 20);
    sim.now_ns += 7 * 24 * HOUR;
    sim_tick(&sim);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_ESCALATED);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_MITIGATED);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_DECLINE, "INC-1"), OK);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_DECLINED);
    CU_ASSERT_FALSE(sim_node(&sim, "n0-03")->cordoned);
    sim_done(&sim);
}

TEST(a_hold_that_lasts_a_day_is_escalated)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 1, 1, 18, sim_enforce);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 100));
    sim.now_ns += 24 * HOUR;
    sim_tick(&sim);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_ESCALATED);
    sim_done(&sim);
}

TEST(where_the_policy_says_so_a_missing_spare_is_escalated_at_once)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 1, 1, 18, escalating_without_spare);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 100));
    CU_ASSERT_EQUAL(sim.cordons, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(sim.log.bytes, "(step-refused): 1 missing spare tray"));
    sim_done(&sim);
}

TEST(a_plan_without_hand_over_is_done_when_the_job_is_back)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, without_hand_over);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 600));
    CU_ASSERT_TRUE(sim_incident(&sim, 1)->times.mitigated_ns > 0);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

TEST(a_plan_that_only_cordons_is_done_when_it_has)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, only_cordoning);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 100));
    CU_ASSERT_EQUAL(sim.cordons, 1);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    sim_done(&sim);
}

TEST(a_plan_that_only_tells_tells_and_watches_until_the_clear)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, only_telling);
    sim_run(&sim, 60);
    CU_ASSERT_EQUAL(sim.notifies, 1);
    CU_ASSERT_EQUAL(sim.captures, 1);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_CONFIRMED);
    sim_clear(&sim, VERDICT_CRASH, SCOPE_TRAY, "n0-03");
    sim_run(&sim, 10);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_DONE);
    sim_done(&sim);
}

TEST(what_is_only_watched_is_closed_after_a_day)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, sim_observe);
    sim_run(&sim, 60);
    sim.now_ns += 24 * HOUR;
    sim_tick(&sim);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_DONE);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_CLOSED);
    sim_done(&sim);
}

TEST(a_hang_that_names_no_node_never_restarts_a_job_by_itself)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim.stopped = true;
    sim_run(&sim, 30);
    struct verdict hang = sim_verdict(&sim, VERDICT_HANG, SCOPE_RANK, "5");
    verdict_add_rank(&hang, 5);
    sim_give(&sim, &hang, "detector");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 100));
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(sim.log.bytes, "no verdict names a node to cordon"));
    sim_done(&sim);
}

TEST(a_slow_job_that_does_not_recover_its_pace_is_escalated)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, sim_enforce);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_VERIFYING, 300));
    sim.base_ms = 1000;
    sim.slow_node = "n1-00";
    sim.slow = 1.5;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 2000));
    CU_ASSERT_PTR_NOT_NULL(strstr(sim.log.bytes, "the new pace is too slow"));
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

TEST(a_new_policy_counts_for_what_is_only_suspected)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, sim_observe);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->mode, MODE_OBSERVE);
    remediation_set_policy(sim.core, sim_enforce(), sim.now_ns);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->mode, MODE_ENFORCE);
    remediation_set_mode(sim.core, MODE_OBSERVE, sim.now_ns);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->mode, MODE_OBSERVE);
    sim_run(&sim, 60);
    CU_ASSERT_EQUAL(sim.op_count, 0);
    sim_done(&sim);
}

TEST(control_and_incidents_come_back_after_a_restart)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, sim_enforce);
    sim_crash_now(&sim);
    remediation_restore_control(sim.core, true, true, "bob", 7);
    struct remediation_status status = remediation_status(sim.core);
    CU_ASSERT_TRUE(status.paused && status.breaker_open);
    CU_ASSERT_STRING_EQUAL(status.paused_by, "bob");
    CU_ASSERT_EQUAL(status.open_count, 1);
    struct json *json = NULL;
    CU_ASSERT_EQUAL_FATAL(json_parse(view_of(sim.records[1]), &json, NULL), OK);
    CU_ASSERT_EQUAL(remediation_restore(sim.core, json, sim.now_ns, NULL), ERR_CONFLICT);
    json_free(json);
    sim_accuse_tray(&sim, VERDICT_SLOW, "n1-03", "detector");
    CU_ASSERT_PTR_NOT_NULL(remediation_find(sim.core, "INC-7"));
    sim_done(&sim);
}

TEST(a_week_later_an_ended_incident_is_forgotten)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_accuse_tray(&sim, VERDICT_SLOW, "n0-03", "detector");
    sim_run(&sim, 5);
    sim_clear(&sim, VERDICT_SLOW, SCOPE_TRAY, "n0-03");
    sim_run(&sim, 10);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    sim.now_ns += 7 * 24 * HOUR;
    sim_tick(&sim);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 0);
    sim_done(&sim);
}

TEST(a_node_that_somebody_else_cordoned_is_replaced_without_a_cordon_of_ours)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_node(&sim, "n0-03")->cordoned = true;
    text_copy(sim_node(&sim, "n0-03")->cordoned_by, 32, "bob: JIRA-12");
    sim_lose_tray(&sim, "n0-03");
    sim_run(&sim, 6);
    sim_accuse_tray(&sim, VERDICT_CRASH, "n0-03", "detector");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.cordons, 0);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    CU_ASSERT_STRING_EQUAL(sim_node(&sim, "n0-03")->cordoned_by, "bob: JIRA-12");
    sim_done(&sim);
}

TEST(only_accusations_that_still_matter_are_judged_again)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, roomy);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 100));
    sim_run(&sim, 5);
    struct verdict both = sim_verdict(&sim, VERDICT_FAULT, SCOPE_TRAY, "n0-03");
    verdict_add_node(&both, "n0-03");
    verdict_add_node(&both, "n0-05");
    sim_give(&sim, &both, "events");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 2);
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 2)->domain, "n0-05");
    sim_done(&sim);
}

static void answer_badly(struct sim *sim, enum verb verb, enum outcome outcome, int count)
{
    sim->bad_verb = verb;
    sim->bad_outcome = outcome;
    sim->bad_count = count;
}

TEST(a_restart_that_did_not_happen_is_tried_again_under_a_new_id)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, sim_enforce);
    answer_badly(&sim, VERB_RESTART_JOB, OUTCOME_TRANSIENT, 2);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    CU_ASSERT_PTR_NOT_NULL(sim_op(&sim, "INC-1/0/5/3"));
    sim_done(&sim);
}

TEST(a_restart_that_fails_three_times_is_escalated_and_gives_its_spare_back)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, sim_enforce);
    answer_badly(&sim, VERB_RESTART_JOB, OUTCOME_TRANSIENT, 3);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 600));
    sim_run(&sim, 5);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    CU_ASSERT_EQUAL(sim.releases, 1);
    CU_ASSERT_TRUE(sim_incident(&sim, 1)->cost.gpu_hours > 0);
    sim_done(&sim);
}

TEST(a_refused_restart_is_final)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, sim_enforce);
    answer_badly(&sim, VERB_RESTART_JOB, OUTCOME_REFUSED, 1);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 600));
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->restart_started_ns, 0);
    sim_done(&sim);
}

TEST(a_hand_over_is_tried_again_and_its_refusal_told_to_people)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, sim_enforce);
    answer_badly(&sim, VERB_HAND_OVER, OUTCOME_TRANSIENT, 1);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_VERIFYING, 600));
    sim_run(&sim, 90);
    CU_ASSERT_EQUAL(sim.hand_overs, 1);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_REPAIRING);
    sim_done(&sim);
    sim_open_losing_tray(&sim, 2, 2, 16, sim_enforce);
    answer_badly(&sim, VERB_HAND_OVER, OUTCOME_REFUSED, 1);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 600));
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_MITIGATED);
    sim_done(&sim);
}

TEST(a_last_try_that_comes_up_while_holding_asks_before_the_restart)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 1, 1, 18, sim_enforce);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 100));
    sim.restarts_max = sim.restarts + 1;
    struct sim_node *spare = &sim.nodes[sim.node_count++];
    *spare = (struct sim_node){.ready = true, .spare = true};
    text_copy(spare->name, sizeof spare->name, "n0-99");
    text_copy(spare->rack, sizeof spare->rack, "rk-0");
    job_intern_tray(sim.job, "n0-99", 0);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_AWAITING_APPROVAL, 100));
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_APPROVE, "INC-1"), OK);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    sim_done(&sim);
}

TEST(a_clear_while_people_are_asked_cancels)
{
    struct sim sim;
    sim_open_losing_tray(&sim, 2, 2, 16, sim_approve);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_AWAITING_APPROVAL, 100));
    sim_clear(&sim, VERDICT_CRASH, SCOPE_TRAY, "n0-03");
    sim_run(&sim, 10);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_CANCELLED);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_CLOSED);
    sim_done(&sim);
}

TEST(a_pause_between_cordon_and_checkpoint_holds)
{
    struct sim sim;
    sim_init(&sim, 1, 1, 16, sim_enforce);
    sim_run(&sim, 130);
    answer_badly(&sim, VERB_REQUEST_CHECKPOINT, OUTCOME_TRANSIENT, 1);
    sim_accuse_tray(&sim, VERDICT_FAULT, "n0-03", "events");
    while (sim.bad_count > 0)
        sim_tick(&sim);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_PAUSE, NULL), OK);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 60));
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_RESUME, NULL), OK);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.cordons, 1);
    sim_done(&sim);
}

TEST(what_never_settles_or_never_begins_is_told_to_people)
{
    struct sim sim;
    sim_init(&sim, 1, 1, 16, sim_enforce);
    sim_run(&sim, 130);
    sim.says_phase = "eval";
    sim_accuse_tray(&sim, VERDICT_SLOW, "n0-03", "detector");
    sim.now_ns += 25 * HOUR;
    sim_run(&sim, 2);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_ESCALATED);
    sim_done(&sim);
    sim_open_losing_tray(&sim, 2, 2, 16, sim_enforce);
    sim.guards.lease_held = false;
    remediation_guards(sim.core, sim.guards, sim.now_ns);
    sim_run(&sim, 60);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_CONFIRMED);
    sim.now_ns += 25 * HOUR;
    sim_run(&sim, 2);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_ESCALATED);
    CU_ASSERT_EQUAL(sim.op_count, 0);
    sim_done(&sim);
}

TESTS(T(a_restart_that_did_not_happen_is_tried_again_under_a_new_id),
      T(a_restart_that_fails_three_times_is_escalated_and_gives_its_spare_back),
      T(a_refused_restart_is_final), T(a_hand_over_is_tried_again_and_its_refusal_told_to_people),
      T(a_last_try_that_comes_up_while_holding_asks_before_the_restart),
      T(a_clear_while_people_are_asked_cancels), T(a_pause_between_cordon_and_checkpoint_holds),
      T(what_never_settles_or_never_begins_is_told_to_people),
      T(a_rack_that_fails_after_one_of_its_trays_was_cordoned_takes_that_incident_over),
      T(a_rack_that_fails_during_a_restart_is_judged_as_a_rack_when_that_ends),
      T(one_restart_takes_along_what_another_incident_waits_for),
      T(a_job_that_a_person_moved_meanwhile_is_verified_and_not_restarted),
      T(a_node_that_the_job_has_left_already_is_cordoned_and_the_job_let_alone),
      T(returned_hardware_that_fails_again_goes_back_to_repair),
      T(a_repair_that_never_ends_is_escalated_after_a_week),
      T(a_hold_that_lasts_a_day_is_escalated),
      T(where_the_policy_says_so_a_missing_spare_is_escalated_at_once),
      T(a_plan_without_hand_over_is_done_when_the_job_is_back),
      T(a_plan_that_only_cordons_is_done_when_it_has),
      T(a_plan_that_only_tells_tells_and_watches_until_the_clear),
      T(what_is_only_watched_is_closed_after_a_day),
      T(a_hang_that_names_no_node_never_restarts_a_job_by_itself),
      T(a_slow_job_that_does_not_recover_its_pace_is_escalated),
      T(a_new_policy_counts_for_what_is_only_suspected),
      T(control_and_incidents_come_back_after_a_restart),
      T(a_week_later_an_ended_incident_is_forgotten),
      T(a_node_that_somebody_else_cordoned_is_replaced_without_a_cordon_of_ours),
      T(only_accusations_that_still_matter_are_judged_again))
