/* The core driven through the six endings of a rehearsal in virtual time. */
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim.h"

static int open_incidents(const struct sim *sim)
{
    int count = 0;
    for (size_t i = 0; i < remediation_incident_count(sim->core); i++)
        count += remediation_incident_at(sim->core, i)->status != INCIDENT_MERGED ? 1 : 0;
    return count;
}

static void return_hardware(struct sim *sim)
{
    for (int i = 0; i < sim->node_count; i++) {
        sim->nodes[i].cordoned = false;
        sim->nodes[i].ready = true;
        sim->nodes[i].dead = false;
    }
}

TEST(a_lost_tray_is_replaced_by_the_spare_of_its_rack_and_the_job_resumes)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 130);
    sim_lose_tray(&sim, "n0-03");
    sim_run(&sim, 6);
    sim_accuse_tray(&sim, VERDICT_CRASH, "n0-03", "detector");
    struct verdict hang = sim_verdict(&sim, VERDICT_HANG, SCOPE_JOB, "default/llm");
    for (int i = 0; i < sim_ranks(&sim); i++)
        verdict_add_rank(&hang, i);
    sim_give(&sim, &hang, "detector");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    const struct incident *incident = sim_incident(&sim, 1);
    CU_ASSERT_EQUAL(open_incidents(&sim), 1);
    CU_ASSERT_EQUAL(incident->status, INCIDENT_MITIGATED);
    CU_ASSERT_EQUAL(incident->severity, 1);
    CU_ASSERT_EQUAL(incident->kind, VERDICT_CRASH);
    CU_ASSERT_EQUAL(incident->rank_count, 4);
    CU_ASSERT_EQUAL(incident->victim_count, (size_t)sim_ranks(&sim) - 4);
    CU_ASSERT_EQUAL(sim.cordons, 1);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    CU_ASSERT_EQUAL(sim.promises, 1);
    CU_ASSERT_EQUAL(sim.hand_overs, 1);
    CU_ASSERT_FALSE(sim_job_uses(&sim, "n0-03"));
    CU_ASSERT_TRUE(sim_job_uses(&sim, "n0-16") || sim_job_uses(&sim, "n0-17"));
    CU_ASSERT_TRUE(incident->cost.steps_lost > 0);
    CU_ASSERT_TRUE(incident->cost.gpu_hours > 0);
    return_hardware(&sim);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_DONE, 1200));
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_CLOSED);
    CU_ASSERT_EQUAL(sim.uncordons, 0);
    sim_done(&sim);
}

TEST(a_rack_fault_moves_the_whole_segment_to_the_spare_rack)
{
    struct sim sim;
    sim_init(&sim, 3, 2, 16, sim_enforce);
    sim_run(&sim, 130);
    for (int i = 0; i < 18; i++)
        sim.nodes[i].dead = true;
    sim.stopped = true;
    sim_run(&sim, 1);
    sim_accuse_tray(&sim, VERDICT_FAULT, "n0-03", "events");
    sim_accuse_tray(&sim, VERDICT_FAULT, "n0-04", "events");
    sim_run(&sim, 1);
    sim_accuse_rack(&sim, VERDICT_FAULT, "rk-0", "events");
    sim_run(&sim, 5);
    sim_accuse_tray(&sim, VERDICT_CRASH, "n1-02", "detector");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    const struct incident *incident = sim_incident(&sim, 1);
    CU_ASSERT_EQUAL(open_incidents(&sim), 1);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    CU_ASSERT_EQUAL(incident->severity, 0);
    CU_ASSERT_EQUAL(incident->scope, SCOPE_RACK);
    CU_ASSERT_STRING_EQUAL(incident->domain, "rk-0");
    CU_ASSERT_EQUAL(incident->node_count, 18);
    CU_ASSERT_EQUAL(incident->victim_count, 64);
    CU_ASSERT_EQUAL(sim.cordons, 18);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    for (int i = 0; i < sim_ranks(&sim); i++)
        CU_ASSERT_STRING_NOT_EQUAL(sim_node(&sim, sim.rank_node[i])->rack, "rk-0");
    sim_done(&sim);
}

TEST(a_slow_rank_is_replaced_once_its_loss_outweighs_the_restart)
{
    struct sim sim;
    sim_init(&sim, 1, 1, 16, sim_enforce);
    sim_run(&sim, 200);
    sim.slow_node = "n0-05";
    sim.slow = 1.3;
    sim_run(&sim, 20);
    struct verdict slow = sim_verdict(&sim, VERDICT_SLOW, SCOPE_RANK, "21");
    slow.slowdown = 1.3;
    slow.cause = CAUSE_GPU;
    verdict_add_node(&slow, "n0-05");
    verdict_add_rank(&slow, 21);
    sim_give(&sim, &slow, "detector");
    sim_run(&sim, 590);
    CU_ASSERT_EQUAL(sim.cordons, 0);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 1200));
    const struct incident *incident = sim_incident(&sim, 1);
    CU_ASSERT_EQUAL(open_incidents(&sim), 1);
    CU_ASSERT_EQUAL(incident->severity, 2);
    CU_ASSERT_EQUAL(sim.cordons, 1);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    CU_ASSERT_TRUE(incident->cost.loss_gpu_hours > incident->cost.restart_gpu_hours);
    CU_ASSERT_TRUE(incident->cost.restart_gpu_hours > 0);
    CU_ASSERT_FALSE(sim_job_uses(&sim, "n0-05"));
    sim_done(&sim);
}

TEST(without_a_spare_it_holds_and_says_one_is_missing_until_one_appears)
{
    struct sim sim;
    sim_init(&sim, 1, 1, 18, sim_enforce);
    sim_run(&sim, 130);
    sim_lose_tray(&sim, "n0-03");
    sim_run(&sim, 6);
    sim_accuse_tray(&sim, VERDICT_CRASH, "n0-03", "detector");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 120));
    sim_run(&sim, 1800);
    const struct incident *incident = sim_incident(&sim, 1);
    CU_ASSERT_EQUAL(incident->phase, PHASE_HOLDING);
    CU_ASSERT_PTR_NOT_NULL(strstr(incident->waiting_for, "1 missing spare tray"));
    CU_ASSERT_EQUAL(sim.cordons, 1);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    struct sim_node *spare = &sim.nodes[sim.node_count++];
    *spare = (struct sim_node){.ready = true, .spare = true};
    text_copy(spare->name, sizeof spare->name, "n0-99");
    text_copy(spare->rack, sizeof spare->rack, "rk-0");
    job_intern_tray(sim.job, "n0-99", 0);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 300));
    CU_ASSERT_EQUAL(sim.cordons, 1);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    CU_ASSERT_TRUE(sim_job_uses(&sim, "n0-99"));
    sim_done(&sim);
}

TEST(when_one_source_accuses_forty_percent_the_observer_is_the_suspect)
{
    struct sim sim;
    sim_init(&sim, 4, 3, 16, sim_enforce);
    sim_run(&sim, 130);
    for (int i = 0; i < 20; i++) {
        char node[32];
        snprintf(node, sizeof node, "n%d-%02d", i % 3, i / 3);
        sim_accuse_tray(&sim, VERDICT_FAULT, node,
                        i % 4 == 0 ? REMEDIATION_SOURCE_UNNAMED : "monitor-7");
        sim_run(&sim, 3);
    }
    sim_run(&sim, 1200);
    int suspects = 0;
    for (size_t i = 0; i < remediation_incident_count(sim.core); i++) {
        const struct incident *incident = remediation_incident_at(sim.core, i);
        if (!incident->observer_suspect) {
            CU_ASSERT_EQUAL(incident->status, INCIDENT_MERGED);
            continue;
        }
        suspects++;
        CU_ASSERT_EQUAL(incident->severity, 0);
        CU_ASSERT_EQUAL(incident->phase, PHASE_HOLDING);
        CU_ASSERT_EQUAL(incident->node_count, 20);
    }
    CU_ASSERT_EQUAL(suspects, 1);
    CU_ASSERT_TRUE(remediation_status(sim.core).breaker_open);
    CU_ASSERT_EQUAL(sim.cordons, 0);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    sim_done(&sim);
}

TEST(a_healthy_job_with_information_only_opens_nothing)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    for (int i = 0; i < 20; i++) {
        sim_run(&sim, 60);
        struct verdict info = sim_verdict(&sim, VERDICT_INFO, SCOPE_TRAY, "n0-01");
        verdict_add_node(&info, "n0-01");
        sim_give(&sim, &info, "events");
    }
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 0);
    CU_ASSERT_EQUAL(sim.op_count, 0);
    sim_done(&sim);
}

TEST(a_swallowed_restart_is_noticed_and_escalated_never_repeated)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim.swallow_restart = true;
    sim_run(&sim, 130);
    sim_lose_tray(&sim, "n0-03");
    sim_run(&sim, 6);
    sim_accuse_tray(&sim, VERDICT_CRASH, "n0-03", "detector");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 1200));
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_OPEN);
    CU_ASSERT_EQUAL(remediation_status(sim.core).escalated_count, 1);
    CU_ASSERT_EQUAL(remediation_status(sim.core).open_count, 0);
    sim_accuse_tray(&sim, VERDICT_HANG, "n0-03", "detector");
    sim_run(&sim, 1200);
    CU_ASSERT_EQUAL(open_incidents(&sim), 1);
    int restarts = 0;
    for (int i = 0; i < sim.op_count; i++)
        restarts += sim.ops[i].verb == VERB_RESTART_JOB ? sim.ops[i].started : 0;
    CU_ASSERT_EQUAL(restarts, 1);
    sim_done(&sim);
}

TEST(with_no_policy_everything_is_recorded_and_nothing_done)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, policy_set_new);
    sim_run(&sim, 130);
    sim_lose_tray(&sim, "n0-03");
    sim_run(&sim, 6);
    sim_accuse_tray(&sim, VERDICT_CRASH, "n0-03", "detector");
    sim_run(&sim, 600);
    CU_ASSERT_EQUAL(open_incidents(&sim), 1);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_CONFIRMED);
    CU_ASSERT_EQUAL(sim.op_count, 0);
    sim_done(&sim);
}

static int count_cordoned(const struct sim *sim)
{
    int count = 0;
    for (int i = 0; i < sim->node_count; i++)
        count += sim->nodes[i].cordoned ? 1 : 0;
    return count;
}

/* 17 of 18 are patched and the last is busy, in every try or only in the last one. */
TEST(what_a_cordon_that_failed_has_cordoned_is_given_back)
{
    for (int partly = 1; partly <= 3; partly++) {
        struct sim sim;
        sim_init(&sim, 3, 2, 16, sim_enforce);
        sim_run(&sim, 120);
        for (int i = 0; i < 18; i++)
            sim.nodes[i].dead = true;
        sim.stopped = true;
        sim.bad_verb = VERB_CORDON;
        sim.bad_outcome = OUTCOME_TRANSIENT;
        sim.bad_count = 3;
        sim.bad_partly = partly;
        sim_run(&sim, 1);
        sim_accuse_rack(&sim, VERDICT_FAULT, "rk-0", "events");
        CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 300));
        CU_ASSERT_EQUAL(count_cordoned(&sim), 17);
        CU_ASSERT_TRUE(sim_incident(&sim, 1)->nodes_spent_ns != 0);
        CU_ASSERT_TRUE(sim_incident(&sim, 1)->times.acted_ns != 0);
        if (partly == 2)
            sim_crash_now(&sim); /* what is ours is in its record */
        CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_DECLINE, "INC-1"), OK);
        sim_run(&sim, 10);
        CU_ASSERT_EQUAL(count_cordoned(&sim), 0);
        CU_ASSERT_EQUAL(sim.uncordons, 17);
        sim_done(&sim);
    }
}

/* The person was faster than the cluster. */
TEST(a_cordon_that_failed_partly_after_it_was_declined_is_given_back)
{
    struct sim sim;
    sim_init(&sim, 3, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    for (int i = 0; i < 18; i++)
        sim.nodes[i].dead = true;
    sim.stopped = true;
    sim.bad_verb = VERB_CORDON;
    sim.bad_outcome = OUTCOME_UNKNOWN;
    sim.bad_count = sim.bad_partly = 1;
    sim.poll_silent = true;
    sim_run(&sim, 1);
    sim_accuse_rack(&sim, VERDICT_FAULT, "rk-0", "events");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_CORDONING, 300));
    sim.world_known = false; /* it is described after the word */
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_DECLINE, "INC-1"), OK);
    CU_ASSERT_EQUAL(count_cordoned(&sim), 17);
    char id[OPERATION_ID_BYTES] = "";
    const struct incident *incident = sim_incident(&sim, 1);
    for (size_t i = 0; i < incident->action_count; i++)
        if (incident->actions[i].verb == VERB_CORDON)
            text_copy(id, sizeof id, incident->actions[i].operation_id);
    struct action_result late = {
        .outcome = OUTCOME_TRANSIENT, .poll = POLL_DONE, .reason = "n0-17 is busy"};
    sim.world_known = true;
    remediation_polled(sim.core, id, &late, sim.now_ns);
    sim_drain(&sim);
    sim_run(&sim, 60);
    CU_ASSERT_EQUAL(count_cordoned(&sim), 0);
    sim_done(&sim);
}

TEST(what_we_uncordoned_is_not_ours_again_in_an_older_world)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_lose_tray(&sim, "n0-03");
    for (int i = 0; i < sim.node_count; i++)
        sim.nodes[i].spare = false; /* it holds */
    sim_run(&sim, 6);
    sim_accuse_tray(&sim, VERDICT_CRASH, "n0-03", "detector");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 120));
    CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_DECLINE, "INC-1"), OK);
    sim_run(&sim, 2);
    CU_ASSERT_EQUAL(sim.uncordons, 1);
    sim_node(&sim, "n0-03")->cordoned = true; /* as it was before */
    sim_describe(&sim);
    sim_drain(&sim);
    CU_ASSERT_FALSE(sim_incident(&sim, 1)->nodes[0].ours);
    CU_ASSERT_EQUAL(sim.uncordons, 1);
    sim_done(&sim);
}

TESTS(T(a_lost_tray_is_replaced_by_the_spare_of_its_rack_and_the_job_resumes),
      T(a_rack_fault_moves_the_whole_segment_to_the_spare_rack),
      T(a_slow_rank_is_replaced_once_its_loss_outweighs_the_restart),
      T(without_a_spare_it_holds_and_says_one_is_missing_until_one_appears),
      T(when_one_source_accuses_forty_percent_the_observer_is_the_suspect),
      T(a_healthy_job_with_information_only_opens_nothing),
      T(a_swallowed_restart_is_noticed_and_escalated_never_repeated),
      T(with_no_policy_everything_is_recorded_and_nothing_done),
      T(what_a_cordon_that_failed_has_cordoned_is_given_back),
      T(a_cordon_that_failed_partly_after_it_was_declined_is_given_back),
      T(what_we_uncordoned_is_not_ours_again_in_an_older_world))
