/* What an incident says that it waits for while the cluster is at work on an action of ours. */
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim_scenes.h"

static const char PDB[] = "2 left: pod team/web-0 on n0-03 is kept by disruption budget team/web";

static struct policy_set *draining(void)
{
    struct policy_set *set = sim_enforce();
    sim_insert_step(set, STEP_DRAIN, STEP_CHOOSE_SPARE)->timeout_ns = 30 * MINUTE;
    return set;
}

/* Runs until the start of the verb was asked for. */
static struct sim_op *until_started(struct sim *sim, enum verb verb)
{
    for (int second = 0; second < 600; second++) {
        for (int i = 0; i < sim->op_count; i++)
            if (sim->ops[i].verb == verb)
                return &sim->ops[i];
        sim_tick(sim);
    }
    CU_FAIL_FATAL("never started");
    return NULL;
}

static void drain_without_answer(struct sim *sim, bool is_unknown)
{
    sim_open_with_lost_tray(sim, draining);
    sim->bad_verb = VERB_DRAIN;
    sim->unanswered = !is_unknown;
    sim->bad_outcome = OUTCOME_UNKNOWN;
    sim->bad_count = is_unknown ? 1 : 0;
    sim->poll_silent = true;
    sim->poll_reason = PDB;
    if (is_unknown)
        while (sim->bad_count > 0)
            sim_tick(sim);
    else
        until_started(sim, VERB_DRAIN);
}

TEST(a_drain_under_way_names_the_disruption_budget_that_keeps_a_pod)
{
    for (int is_unknown = 0; is_unknown < 2; is_unknown++) {
        struct sim sim;
        drain_without_answer(&sim, is_unknown);
        CU_ASSERT_TRUE(sim_waits_for(&sim, "the cluster to answer: drain"));
        sim_run(&sim, 15);
        CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_CORDONING);
        CU_ASSERT_TRUE(sim_waits_for(&sim, PDB));
        CU_ASSERT_PTR_NOT_NULL(strstr(sim.records[1], PDB));
        sim_done(&sim);
    }
}

TEST(what_changes_with_every_poll_is_shown_at_once_and_recorded_once_a_minute)
{
    for (int is_unknown = 0; is_unknown < 2; is_unknown++) {
        struct sim sim;
        drain_without_answer(&sim, is_unknown);
        sim_run(&sim, 20);
        int64_t version = sim_incident(&sim, 1)->version;
        char words[64];
        for (int i = 600; i > 0; i--) {
            snprintf(words, sizeof words, "%d pods are to end", i);
            sim.poll_reason = words;
            sim_tick(&sim);
        }
        CU_ASSERT_TRUE(sim_waits_for(&sim, "drain: ") && sim_waits_for(&sim, " pods are to end"));
        CU_ASSERT_FALSE(sim_waits_for(&sim, "600") || sim_waits_for(&sim, "budget"));
        CU_ASSERT_TRUE(sim_incident(&sim, 1)->version - version <= 11);
        sim_run(&sim, 120);
        CU_ASSERT_PTR_NOT_NULL(strstr(sim.records[1], "drain: 1 pods are to end"));
        sim_done(&sim);
    }
}

TEST(an_answer_that_is_too_long_is_cut_and_an_empty_one_says_nothing)
{
    struct sim sim;
    char words[1024];
    memset(words, 'x', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    drain_without_answer(&sim, true);
    sim.poll_reason = words;
    sim_run(&sim, 15);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "drain: xxx"));
    CU_ASSERT_TRUE(strlen(sim_incident(&sim, 1)->waiting_for) < SENTENCE_BYTES);
    sim.poll_reason = "";
    sim_run(&sim, 15);
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 1)->waiting_for, "the cluster to answer: drain");
    sim_done(&sim);
}

/* A poll says what it read, and that may be the world before the start reached it. */
TEST(a_poll_that_was_asked_before_the_start_was_answered_starts_nothing_again)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, draining);
    sim.bad_verb = VERB_CORDON;
    sim.unanswered = true;
    sim.poll_unanswered = true;
    struct sim_op *op = until_started(&sim, VERB_CORDON);
    sim_run(&sim, 12); /* it has been asked */
    struct action_result unknown = {.outcome = OUTCOME_UNKNOWN, .reason = "time-out"};
    struct action_result absent = {
        .outcome = OUTCOME_UNKNOWN, .poll = POLL_ABSENT, .reason = "nothing there"};
    remediation_outcome(sim.core, op->id, &unknown, sim.now_ns);
    sim_run(&sim, 20);
    CU_ASSERT_FALSE(remediation_polled(sim.core, op->id, &absent, sim.now_ns));
    sim.poll_unanswered = sim.unanswered = false;
    sim_run(&sim, 10);
    CU_ASSERT_EQUAL(op->started, 1);
    CU_ASSERT_TRUE(op->polled > 0);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.cordons, 1);
    sim_done(&sim);
}

TEST(a_poll_while_the_start_is_under_way_ends_nothing)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, draining);
    sim.bad_verb = VERB_CORDON;
    sim.unanswered = true;
    struct sim_op *op = until_started(&sim, VERB_CORDON);
    sim_run(&sim, 60);
    CU_ASSERT_TRUE(op->polled > 0);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_CORDONING);
    struct action_result refused = {.outcome = OUTCOME_REFUSED, .reason = "forbidden"};
    remediation_outcome(sim.core, op->id, &refused, sim.now_ns);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_ESCALATED);
    sim_done(&sim);
}

TEST(validated_hardware_behind_a_hand_over_that_is_not_answered_says_so)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, draining);
    sim.bad_verb = VERB_HAND_OVER;
    sim.bad_outcome = OUTCOME_UNKNOWN;
    sim.bad_count = 1;
    sim.poll_silent = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 900));
    sim_node(&sim, "n0-03")->ready = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_VALIDATING, 60));
    for (int i = 0; i < 60; i++) {
        CU_ASSERT_TRUE(sim_waits_for(&sim, "the cluster to answer: hand_over"));
        sim_tick(&sim);
    }
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_VALIDATING);
    sim.poll_silent = false;
    sim_run(&sim, 10);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "the hardware to stay so until"));
    sim_done(&sim);
}

TESTS(T(a_drain_under_way_names_the_disruption_budget_that_keeps_a_pod),
      T(what_changes_with_every_poll_is_shown_at_once_and_recorded_once_a_minute),
      T(an_answer_that_is_too_long_is_cut_and_an_empty_one_says_nothing),
      T(a_poll_that_was_asked_before_the_start_was_answered_starts_nothing_again),
      T(a_poll_while_the_start_is_under_way_ends_nothing),
      T(validated_hardware_behind_a_hand_over_that_is_not_answered_says_so))
