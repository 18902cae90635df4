/* Bugs that public controllers had, each as the state that showed it and what must come out of it
 * here. */
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim_scenes.h"

static struct policy_set *roomy(void)
{
    struct policy_set *set = sim_enforce();
    set->items[0]->budgets[0].percent = NAN;
    set->items[0]->budgets[1].count = 8;
    return set;
}

static struct policy_set *draining(void)
{
    struct policy_set *set = sim_enforce();
    sim_insert_step(set, STEP_DRAIN, STEP_REQUEST_CHECKPOINT);
    return set;
}

static void answer_badly(struct sim *sim, enum verb verb, enum outcome outcome, int count)
{
    sim->bad_verb = verb;
    sim->bad_outcome = outcome;
    sim->bad_count = count;
}

static int starts_of(const struct sim *sim, enum verb verb)
{
    int count = 0;
    for (int i = 0; i < sim->op_count; i++)
        count += sim->ops[i].verb == verb ? sim->ops[i].started : 0;
    return count;
}

static void come_back(struct sim *sim, const char *name)
{
    struct sim_node *node = sim_node(sim, name);
    node->cordoned = node->dead = false;
    node->ready = true;
}

/* The drain, and every poll of it, stays without an answer. */
static void drain_in_silence(struct sim *sim)
{
    answer_badly(sim, VERB_DRAIN, OUTCOME_UNKNOWN, 1);
    sim->poll_silent = true;
}

TEST(an_event_that_is_replayed_after_its_incident_was_closed_does_nothing)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    int64_t fault_ns = sim.now_ns;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    come_back(&sim, "n0-03");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 1200));
    int ops = sim.op_count;
    sim_crash_now(&sim);
    struct verdict again = sim_verdict(&sim, VERDICT_FAULT, SCOPE_TRAY, "n0-03");
    verdict_add_node(&again, "n0-03");
    again.time_ns = fault_ns;
    sim_give(&sim, &again, "events");
    sim_run(&sim, 900);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    CU_ASSERT_EQUAL(sim.op_count, ops);
    CU_ASSERT_EQUAL(remediation_status(sim.core).stale_verdicts, 1);
    sim_done(&sim);
}

TEST(a_drain_that_ends_after_a_person_took_the_node_back_is_no_success)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, draining);
    drain_in_silence(&sim);
    while (sim.bad_count > 0)
        sim_tick(&sim);
    sim_run(&sim, 10);
    sim_node(&sim, "n0-03")->cordoned = false;
    sim_node(&sim, "n0-03")->uncordoned_by = "alice";
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_CANCELLED, 60));
    struct action_result late = {
        .outcome = OUTCOME_SUCCEEDED, .poll = POLL_DONE, .reason = "the last pod left"};
    remediation_polled(sim.core, "INC-1/0/3/1", &late, sim.now_ns);
    sim_run(&sim, 600);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_CANCELLED);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    CU_ASSERT_EQUAL(sim.hand_overs, 0);
    CU_ASSERT_FALSE(sim_node(&sim, "n0-03")->cordoned);
    CU_ASSERT_TRUE(sim_log_says(&sim, "n0-03 was uncordoned by alice"));
    sim_done(&sim);
}

TEST(a_fault_right_behind_a_recovery_is_acted_on)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_accuse_tray(&sim, VERDICT_FAULT, "n0-03", "events");
    sim_run(&sim, 1);
    sim_clear(&sim, VERDICT_FAULT, SCOPE_TRAY, "n0-03");
    sim_run(&sim, 2);
    sim_lose_tray(&sim, "n0-03");
    sim_accuse_tray(&sim, VERDICT_FAULT, "n0-03", "events");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.cordons, 1);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

TEST(a_fault_between_ready_and_the_end_of_the_repair_is_not_lost)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    come_back(&sim, "n0-03");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_VALIDATING, 60));
    sim_run(&sim, 300);
    struct verdict again = sim_verdict(&sim, VERDICT_FAULT, SCOPE_TRAY, "n0-03");
    verdict_add_node(&again, "n0-03");
    sim_give(&sim, &again, "events");
    CU_ASSERT_TRUE(sim_log_says(&sim, "fail-validation"));
    sim_run(&sim, 590); /* the ten minutes begin anew */
    CU_ASSERT_FALSE(incident_has_ended(sim_incident(&sim, 1)));
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 60));
    sim_done(&sim);
}

TEST(a_call_that_was_cut_off_is_read_back_and_never_made_twice)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    answer_badly(&sim, VERB_RESTART_JOB, OUTCOME_UNKNOWN, 1);
    sim.poll_silent = true; /* nobody can say whether it happened */
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 1200));
    sim_run(&sim, 600);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    CU_ASSERT_TRUE(sim_log_says(&sim, "the deadline of restarting passed"));
    sim_done(&sim);
}

static const struct incident *observer_of(const struct sim *sim)
{
    for (size_t i = 0; i < remediation_incident_count(sim->core); i++)
        if (remediation_incident_at(sim->core, i)->observer_suspect)
            return remediation_incident_at(sim->core, i);
    return NULL;
}

static void storm(struct sim *sim)
{
    sim_init(sim, 4, 3, 16, roomy);
    sim_run(sim, 130);
    for (int i = 0; i < 20; i++) {
        char node[32];
        snprintf(node, sizeof node, "n%d-%02d", i % 3, i / 3);
        sim_accuse_tray(sim, VERDICT_FAULT, node, "monitor-7");
    }
    sim_run(sim, 2);
}

TEST(what_recovered_while_the_breaker_was_open_is_not_judged_when_it_is_closed)
{
    struct sim sim;
    storm(&sim);
    CU_ASSERT_PTR_NOT_NULL_FATAL(observer_of(&sim));
    CU_ASSERT_EQUAL(observer_of(&sim)->node_count, 20);
    for (int i = 3; i < 20; i++) {
        char node[32];
        snprintf(node, sizeof node, "n%d-%02d", i % 3, i / 3);
        sim_clear(&sim, VERDICT_FAULT, SCOPE_TRAY, node);
    }
    CU_ASSERT_EQUAL(observer_of(&sim)->node_count, 3);
    size_t before = remediation_incident_count(sim.core);
    sim_run(&sim, 600);
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_BREAKER_CLOSE, NULL), OK);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), before + 3);
    sim_run(&sim, 200);
    CU_ASSERT_TRUE(sim.cordons <= 3);
    sim_done(&sim);
}

TEST(a_cluster_that_answers_with_an_error_is_not_a_cluster_without_the_node)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, draining);
    drain_in_silence(&sim);
    while (sim.bad_count > 0)
        sim_tick(&sim);
    sim.world_known = false;
    sim_run(&sim, 120);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    CU_ASSERT_FALSE(sim_log_says(&sim, "Not in the cluster"));
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_OPEN);
    sim_done(&sim);
}

TEST(a_persons_cordon_and_its_reason_are_left_alone_when_our_fault_clears)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_node(&sim, "n0-03")->cordoned = true;
    text_copy(sim_node(&sim, "n0-03")->cordoned_by, 32, "bob: fan swap, JIRA-12");
    sim_accuse_tray(&sim, VERDICT_SLOW, "n0-03", "detector");
    sim_run(&sim, 60);
    sim_clear(&sim, VERDICT_SLOW, SCOPE_TRAY, "n0-03");
    sim_run(&sim, 60);
    CU_ASSERT_TRUE(incident_has_ended(sim_incident(&sim, 1)));
    CU_ASSERT_TRUE(sim_node(&sim, "n0-03")->cordoned);
    CU_ASSERT_STRING_EQUAL(sim_node(&sim, "n0-03")->cordoned_by, "bob: fan swap, JIRA-12");
    CU_ASSERT_EQUAL(sim.uncordons, 0);
    sim_done(&sim);
}

TEST(a_command_that_was_consumed_and_not_carried_out_is_given_again_once)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    sim.restarts = 1;
    sim.restarts_max = 3;
    sim.answers_unknown = sim.loses_restart = true; /* the poll finds no trace of it */
    while (sim_op(&sim, "INC-1/0/5/1") == NULL)
        sim_tick(&sim);
    sim_run(&sim, 3);
    sim.loses_restart = false;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(starts_of(&sim, VERB_RESTART_JOB), 1);
    CU_ASSERT_EQUAL(sim.restarts, 2);
    CU_ASSERT_TRUE(sim_log_says(&sim, "The cluster knows nothing of INC-1/0/5/1"));
    sim_done(&sim);
}

TEST(a_rack_without_enough_spares_does_not_hold_another_racks_repair_up)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, roomy);
    sim_run(&sim, 120);
    sim.stopped = true;
    for (int i = 0; i < 3; i++)
        sim.nodes[i].ready = false;
    sim_run(&sim, 6);
    struct verdict three = sim_verdict(&sim, VERDICT_FAULT, SCOPE_TRAY, "n0-00");
    for (int i = 0; i < 3; i++)
        verdict_add_node(&three, sim.nodes[i].name);
    sim_give(&sim, &three, "events");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 100));
    sim_run(&sim, 60);
    sim_node(&sim, "n1-05")->ready = false;
    sim_accuse_tray(&sim, VERDICT_FAULT, "n1-05", "events");
    CU_ASSERT_TRUE(sim_until(&sim, 2, PHASE_PLACING, 200));
    CU_ASSERT_PTR_NOT_NULL(strstr(sim_incident(&sim, 1)->waiting_for, "1 missing spare tray"));
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->spares.count, 0);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->restart_started_ns, 0);
    for (int r = 0; r < sim_ranks(&sim); r++)
        CU_ASSERT_STRING_NOT_EQUAL(sim.rank_node[r], "n1-05");
    sim_done(&sim);
}

TEST(a_rack_that_is_really_lost_is_replaced_while_a_monitor_accuses_everybody)
{
    struct sim sim;
    storm(&sim);
    CU_ASSERT_TRUE(remediation_status(sim.core).breaker_open);
    CU_ASSERT_EQUAL(sim.cordons, 0);
    for (int i = 18; i < 36; i++) {
        sim.nodes[i].dead = true;
        sim.nodes[i].ready = false;
    }
    sim_run(&sim, 7);
    sim_accuse_rack(&sim, VERDICT_CRASH, "rk-1", "detector");
    sim_run(&sim, 300);
    CU_ASSERT_TRUE(remediation_status(sim.core).breaker_open);
    CU_ASSERT_EQUAL(sim.cordons, 18);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    for (int i = 0; i < sim.node_count; i++)
        CU_ASSERT_EQUAL(sim.nodes[i].cordoned, strcmp(sim.nodes[i].rack, "rk-1") == 0);
    sim_done(&sim);
}

TEST(a_domain_whose_name_changes_in_the_middle_is_the_same_rack)
{
    struct sim sim;
    sim_init(&sim, 3, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    for (int i = 0; i < 18; i++) {
        sim.nodes[i].dead = true;
        sim.nodes[i].ready = false;
    }
    sim.stopped = true;
    sim_run(&sim, 2);
    sim_accuse_rack(&sim, VERDICT_FAULT, "rk-0", "events");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_CONFIRMED, 60) || sim.cordons > 0);
    for (int i = 0; i < 18; i++)
        sim.nodes[i].domain = i < 9 ? "clique-new-a" : "clique-new-b";
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    CU_ASSERT_EQUAL(sim.cordons, 18);
    sim_done(&sim);
}

TESTS(T(an_event_that_is_replayed_after_its_incident_was_closed_does_nothing),
      T(a_drain_that_ends_after_a_person_took_the_node_back_is_no_success),
      T(a_fault_right_behind_a_recovery_is_acted_on),
      T(a_fault_between_ready_and_the_end_of_the_repair_is_not_lost),
      T(a_call_that_was_cut_off_is_read_back_and_never_made_twice),
      T(what_recovered_while_the_breaker_was_open_is_not_judged_when_it_is_closed),
      T(a_cluster_that_answers_with_an_error_is_not_a_cluster_without_the_node),
      T(a_persons_cordon_and_its_reason_are_left_alone_when_our_fault_clears),
      T(a_command_that_was_consumed_and_not_carried_out_is_given_again_once),
      T(a_rack_without_enough_spares_does_not_hold_another_racks_repair_up),
      T(a_rack_that_is_really_lost_is_replaced_while_a_monitor_accuses_everybody),
      T(a_domain_whose_name_changes_in_the_middle_is_the_same_rack))
