/* Verdicts fold into one incident for each fault domain. */
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim.h"

static int unmerged(const struct sim *sim)
{
    int count = 0;
    for (size_t i = 0; i < remediation_incident_count(sim->core); i++)
        count += remediation_incident_at(sim->core, i)->status != INCIDENT_MERGED ? 1 : 0;
    return count;
}

TEST(a_tray_verdict_inside_an_open_rack_incident_joins_it)
{
    struct sim sim;
    sim_init(&sim, 3, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_accuse_rack(&sim, VERDICT_FAULT, "rk-0", "events");
    sim_accuse_tray(&sim, VERDICT_FAULT, "n0-07", "events");
    sim_accuse_tray(&sim, VERDICT_CRASH, "n0-08", "detector");
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->scope, SCOPE_RACK);
    sim_done(&sim);
}

TEST(a_rack_verdict_widens_the_oldest_tray_incident_and_merges_the_others)
{
    struct sim sim;
    sim_init(&sim, 3, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_accuse_tray(&sim, VERDICT_SLOW, "n0-01", "detector");
    sim_run(&sim, 20);
    sim_accuse_tray(&sim, VERDICT_SLOW, "n0-02", "detector");
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 2);
    sim_accuse_rack(&sim, VERDICT_FAULT, "rk-0", "events");
    CU_ASSERT_EQUAL(unmerged(&sim), 1);
    const struct incident *wide = sim_incident(&sim, 1), *merged = sim_incident(&sim, 2);
    CU_ASSERT_EQUAL(wide->scope, SCOPE_RACK);
    CU_ASSERT_EQUAL(wide->kind, VERDICT_FAULT);
    CU_ASSERT_STRING_EQUAL(wide->rule, "rack-down");
    CU_ASSERT_EQUAL(merged->status, INCIDENT_MERGED);
    CU_ASSERT_STRING_EQUAL(merged->merged_into, "INC-1");
    sim_done(&sim);
}

TEST(half_of_a_racks_trays_at_once_is_the_rack)
{
    struct sim sim;
    sim_init(&sim, 3, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    for (int i = 0; i < 8; i++) {
        char node[16];
        snprintf(node, sizeof node, "n0-%02d", i);
        sim_accuse_tray(&sim, VERDICT_CRASH, node, "detector");
    }
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->scope, SCOPE_RACK);
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 1)->domain, "rk-0");
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 1)->rule, "rack-down");
    sim_done(&sim);
}

TEST(what_stops_within_seconds_elsewhere_is_a_victim)
{
    struct sim sim;
    sim_init(&sim, 3, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_accuse_rack(&sim, VERDICT_CRASH, "rk-0", "detector");
    sim_run(&sim, 7);
    sim_accuse_tray(&sim, VERDICT_CRASH, "n1-03", "detector");
    sim_accuse_tray(&sim, VERDICT_HANG, "n1-04", "detector");
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->victim_count, 64);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->node_count, 16);
    sim_done(&sim);
}

TEST(hardware_faults_in_two_racks_are_two_incidents)
{
    struct sim sim;
    sim_init(&sim, 3, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_accuse_tray(&sim, VERDICT_FAULT, "n0-03", "events");
    sim_accuse_tray(&sim, VERDICT_FAULT, "n1-03", "events");
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 2);
    sim_done(&sim);
}

TEST(rack_1_is_not_rack_10)
{
    struct sim sim;
    sim_init(&sim, 3, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    xfree(sim.job->racks[1].name);
    sim.job->racks[1].name = xstrdup("rk-00");
    text_copy(sim.nodes[18].rack, sizeof sim.nodes[18].rack, "rk-00");
    sim_accuse_rack(&sim, VERDICT_FAULT, "rk-0", "events");
    sim_accuse_tray(&sim, VERDICT_FAULT, "n1-00", "events");
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 2);
    sim_done(&sim);
}

TEST(a_clear_before_acting_cancels_after_a_moment)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_accuse_tray(&sim, VERDICT_SLOW, "n0-03", "detector");
    sim_run(&sim, 60);
    sim_clear(&sim, VERDICT_SLOW, SCOPE_TRAY, "n0-03");
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_SUSPECTED);
    sim_run(&sim, 5);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_CANCELLED);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_CLOSED);
    CU_ASSERT_EQUAL(sim.op_count, 0);
    sim_done(&sim);
}

TEST(a_clear_with_a_better_localisation_is_no_new_incident)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_accuse_tray(&sim, VERDICT_SLOW, "n0-03", "detector");
    sim_run(&sim, 5);
    sim_clear(&sim, VERDICT_SLOW, SCOPE_TRAY, "n0-03");
    struct verdict rank = sim_verdict(&sim, VERDICT_SLOW, SCOPE_RANK, "13");
    rank.slowdown = 1.2;
    verdict_add_node(&rank, "n0-03");
    verdict_add_rank(&rank, 13);
    sim_give(&sim, &rank, "detector");
    sim_run(&sim, 10);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->scope, SCOPE_RANK);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_SUSPECTED);
    sim_done(&sim);
}

TEST(what_was_only_recorded_and_grew_stands_its_time_before_anything_is_done)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    struct verdict rank = sim_verdict(&sim, VERDICT_SLOW, SCOPE_RANK, "13");
    rank.slowdown = 1.03;
    verdict_add_node(&rank, "n0-03");
    verdict_add_rank(&rank, 13);
    struct verdict grown = verdict_copy(&rank);
    grown.slowdown = 1.3;
    sim_give(&sim, &rank, "detector");
    sim_run(&sim, 60);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_CONFIRMED);
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 1)->plan.name, "record");
    sim_clear(&sim, VERDICT_SLOW, SCOPE_RANK, "13");
    grown.time_ns = sim.now_ns;
    sim_give(&sim, &grown, "detector");
    sim_run(&sim, 500);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 1)->plan.name, "replace-tray");
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_CONFIRMED);
    CU_ASSERT_EQUAL(sim.op_count, 0);
    sim_run(&sim, 120);
    CU_ASSERT(sim.op_count > 0);
    sim_done(&sim);
}

TEST(the_same_fault_later_opens_a_new_incident_and_a_stale_verdict_does_not)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_accuse_tray(&sim, VERDICT_SLOW, "n0-03", "detector");
    sim_run(&sim, 10);
    struct verdict old = sim_verdict(&sim, VERDICT_SLOW, SCOPE_TRAY, "n0-03");
    verdict_add_node(&old, "n0-03");
    sim_clear(&sim, VERDICT_SLOW, SCOPE_TRAY, "n0-03");
    sim_run(&sim, 10);
    sim_give(&sim, &old, "detector");
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    CU_ASSERT_EQUAL(remediation_status(sim.core).stale_verdicts, 1);
    sim_accuse_tray(&sim, VERDICT_SLOW, "n0-03", "detector");
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 2);
    CU_ASSERT_EQUAL(sim_incident(&sim, 2)->phase, PHASE_SUSPECTED);
    sim_done(&sim);
}

TEST(the_third_incident_of_the_same_hardware_in_a_week_is_a_repeat_offender)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    for (int i = 0; i < 3; i++) {
        sim_accuse_tray(&sim, VERDICT_SLOW, "n0-03", "detector");
        sim_run(&sim, 10);
        sim_clear(&sim, VERDICT_SLOW, SCOPE_TRAY, "n0-03");
        sim_run(&sim, 10);
    }
    CU_ASSERT_EQUAL(sim_incident(&sim, 3)->repeats, 3);
    CU_ASSERT_PTR_NOT_NULL(strstr(sim.log.bytes, "repeat_offender"));
    sim_done(&sim);
}

TEST(a_slow_tray_that_crashes_is_one_incident_of_the_harder_kind)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_accuse_tray(&sim, VERDICT_SLOW, "n0-03", "detector");
    sim_run(&sim, 30);
    sim_lose_tray(&sim, "n0-03");
    sim_run(&sim, 6);
    sim_accuse_tray(&sim, VERDICT_CRASH, "n0-03", "detector");
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    CU_ASSERT_STRING_EQUAL(sim_incident(&sim, 1)->rule, "tray-hard-fault");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    sim_done(&sim);
}

TEST(a_job_that_stands_still_first_and_names_a_tray_later_is_one_incident)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_lose_tray(&sim, "n0-03");
    sim_run(&sim, 30);
    struct verdict hang = sim_verdict(&sim, VERDICT_HANG, SCOPE_JOB, "default/llm");
    hang.evict = false;
    for (int i = 0; i < sim_ranks(&sim); i++)
        verdict_add_rank(&hang, i);
    sim_give(&sim, &hang, "detector");
    sim_run(&sim, 5);
    sim_accuse_tray(&sim, VERDICT_CRASH, "n0-03", "detector");
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->scope, SCOPE_TRAY);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->rank_count, 4);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->victim_count, 124);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    sim_done(&sim);
}

TEST(what_is_accused_during_a_restart_is_judged_again_when_it_ends)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_lose_tray(&sim, "n0-03");
    sim_run(&sim, 6);
    sim_accuse_tray(&sim, VERDICT_CRASH, "n0-03", "detector");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 100));
    sim_run(&sim, 5);
    sim_accuse_tray(&sim, VERDICT_FAULT, "n0-03", "events");
    CU_ASSERT_TRUE(names_has(&sim_incident(&sim, 1)->accused_later, "n0-03"));
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->accused_later.count, 0);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(sim.log.bytes, "the job has left it"));
    sim_done(&sim);
}

TEST(two_lost_trays_of_two_racks_are_both_replaced_one_restart_after_the_other_at_most)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, sim_enforce);
    sim_run(&sim, 120);
    sim_lose_tray(&sim, "n0-03");
    sim_lose_tray(&sim, "n1-03");
    sim_run(&sim, 6);
    sim_accuse_tray(&sim, VERDICT_FAULT, "n0-03", "events");
    sim_accuse_tray(&sim, VERDICT_FAULT, "n1-03", "events");
    /* The percentage of the trays budget is 1 tray an hour for 36 nodes. */
    CU_ASSERT_TRUE(sim_until(&sim, 2, PHASE_HOLDING, 600));
    CU_ASSERT_PTR_NOT_NULL(strstr(sim_incident(&sim, 2)->waiting_for, "budget 'trays'"));
    CU_ASSERT_EQUAL(sim.cordons, 1);
    sim_done(&sim);
}

TESTS(T(a_tray_verdict_inside_an_open_rack_incident_joins_it),
      T(a_rack_verdict_widens_the_oldest_tray_incident_and_merges_the_others),
      T(half_of_a_racks_trays_at_once_is_the_rack),
      T(what_stops_within_seconds_elsewhere_is_a_victim),
      T(hardware_faults_in_two_racks_are_two_incidents), T(rack_1_is_not_rack_10),
      T(a_clear_before_acting_cancels_after_a_moment),
      T(a_clear_with_a_better_localisation_is_no_new_incident),
      T(what_was_only_recorded_and_grew_stands_its_time_before_anything_is_done),
      T(the_same_fault_later_opens_a_new_incident_and_a_stale_verdict_does_not),
      T(the_third_incident_of_the_same_hardware_in_a_week_is_a_repeat_offender),
      T(a_slow_tray_that_crashes_is_one_incident_of_the_harder_kind),
      T(a_job_that_stands_still_first_and_names_a_tray_later_is_one_incident),
      T(what_is_accused_during_a_restart_is_judged_again_when_it_ends),
      T(two_lost_trays_of_two_racks_are_both_replaced_one_restart_after_the_other_at_most))
