/* Restarts that cannot be made, that somebody else makes, that do not end, and where they lead
 * back to. */
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim_scenes.h"

/* The shipped rule for a job that does not get back to work: tell, and keep the samples. */
static void add_page(struct policy_set *set)
{
    struct policy *policy = set->items[0];
    struct policy_rule last = policy->rules[--policy->rule_count];
    policy->plans[0].count = 0;
    sim_rule(policy, "hang-without-culprit", KIND(HANG), 0, 0, 1, 0);
    policy->plans[0].steps[policy->plans[0].count++] = (struct plan_step){.kind = STEP_NOTIFY};
    policy->rules[policy->rule_count++] = last;
}

static struct policy_set *paging(void)
{
    struct policy_set *set = sim_enforce();
    add_page(set);
    return set;
}

static struct policy_set *roomy(void)
{
    struct policy_set *set = sim_enforce();
    for (size_t i = 0; i < set->items[0]->budget_count; i++) {
        set->items[0]->budgets[i].percent = NAN;
        set->items[0]->budgets[i].count = 100;
    }
    return set;
}

static struct policy_set *approving(void)
{
    return sim_approve();
}

static void set_phase(struct sim *sim, const char *phase)
{
    text_copy(sim->job_phase, sizeof sim->job_phase, phase);
}

/* The world as the pipeline has it described while nothing is open. */
static void look(struct sim *sim, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        sim_tick(sim);
        if (i % 15 == 0) {
            sim_describe(sim);
            sim_drain(sim);
        }
    }
}

TEST(a_restart_that_would_be_refused_is_told_before_anything_is_cordoned)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    sim.refusal = "policy PodFailed:TerminateJob of the Job would end it";
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_HOLDING, 60));
    int told = sim.notifies;
    sim_run(&sim, 300);
    CU_ASSERT_EQUAL(sim.cordons, 0);
    CU_ASSERT_EQUAL(sim.promises, 0);
    CU_ASSERT_EQUAL(sim.notifies, told); /* told when the hold began, and once */
    CU_ASSERT_EQUAL(told, 2);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "a person: no restart can be made: policy PodFailed"));
    sim.refusal = NULL;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

TEST(a_refusal_that_comes_up_behind_the_cordon_holds_the_restart)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    sim.bad_verb = VERB_RESTART_JOB;
    sim.bad_outcome = OUTCOME_TRANSIENT;
    sim.bad_count = 1;
    while (sim.bad_count > 0)
        sim_tick(&sim);
    sim.refusal = "the Job is suspended by somebody";
    sim_run(&sim, 120);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_HOLDING);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "suspended by somebody"));
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    sim.refusal = NULL;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    sim_done(&sim);
}

TEST(a_job_that_has_ended_is_never_started_anew)
{
    for (int finished = 0; finished < 2; finished++) {
        struct sim sim;
        sim_open_with_lost_tray(&sim, sim_enforce);
        set_phase(&sim, finished ? "finished" : "failed");
        sim.refusal = finished ? NULL : "Job is Failed, no restart leads out of that";
        CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 60));
        CU_ASSERT_EQUAL(sim.cordons, 0);
        CU_ASSERT_EQUAL(sim.restarts_done, 0);
        CU_ASSERT_TRUE(sim_log_says(&sim, finished ? "has finished: there is nothing to restart"
                                                   : "has failed: Job is Failed"));
        sim_done(&sim);
    }
}

TEST(a_failed_job_that_may_be_restarted_is)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    set_phase(&sim, "failed");
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

TEST(a_restart_that_somebody_makes_already_is_joined_and_not_doubled)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    set_phase(&sim, "restarting");
    sim.restarts++;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 120));
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    CU_ASSERT_TRUE(sim_log_says(&sim, "no second restart on top of it"));
    sim_run(&sim, 60);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_PLACING);
    struct action scheduler = {.verb = VERB_RESTART_JOB,
                               .node_count = 1,
                               .spare_count = 1,
                               .nodes = (const char *const[]){"n0-03"},
                               .spares = (const char *const[]){"n0-16"}};
    sim_begin_restart(&sim, &scheduler);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 300));
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

TEST(a_restart_of_nobodys_incident_that_does_not_end_is_an_incident)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, paging);
    look(&sim, 120);
    set_phase(&sim, "restarting");
    sim.stopped = true;
    sim.waiting_for = "the PodGroup to be enqueued";
    look(&sim, 7 * 60);
    set_phase(&sim, "pending"); /* torn down, and not placed */
    look(&sim, 7 * 60);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 0);
    look(&sim, 180);
    CU_ASSERT_EQUAL_FATAL(remediation_incident_count(sim.core), 1);
    const struct incident *incident = sim_incident(&sim, 1);
    CU_ASSERT_EQUAL(incident->kind, VERDICT_HANG);
    CU_ASSERT_EQUAL(incident->scope, SCOPE_JOB);
    CU_ASSERT_EQUAL(incident->severity, 1);
    CU_ASSERT_EQUAL(sim.notifies, 1);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    CU_ASSERT_TRUE(sim_log_says(&sim, "does not get through; it waits for the PodGroup to be enq"));
    set_phase(&sim, "running");
    sim.stopped = false;
    sim.waiting_for = NULL;
    look(&sim, 60);
    CU_ASSERT_TRUE(incident_has_ended(sim_incident(&sim, 1)));
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    sim_done(&sim);
}

/* There is no spare. */
static void open_holding(struct sim *sim)
{
    sim_init(sim, 1, 1, 18, paging);
    look(sim, 120);
    sim_lose_tray(sim, "n0-03");
    sim_run(sim, 6);
    sim_accuse_tray(sim, VERDICT_CRASH, "n0-03", "detector");
    CU_ASSERT_TRUE(sim_until(sim, 1, PHASE_HOLDING, 100));
}

TEST(an_incident_that_is_open_tells_of_the_restart_that_does_not_end)
{
    struct sim sim;
    open_holding(&sim);
    int told = sim.notifies;
    set_phase(&sim, "restarting");
    look(&sim, 20 * 60);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    CU_ASSERT_EQUAL(sim.notifies, told + 1);
    CU_ASSERT_TRUE(sim_log_says(&sim, "restart_stuck"));
    sim_done(&sim);
}

TEST(three_restarts_of_ours_without_a_step_need_a_person)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, roomy);
    look(&sim, 120);
    sim_lose_tray(&sim, "n0-03");
    sim.swallow_restart = true;
    for (int i = 1; i <= 3; i++) {
        char ref[16];
        snprintf(ref, sizeof ref, "INC-%d", i);
        sim_run(&sim, 6);
        sim_accuse_tray(&sim, VERDICT_CRASH, "n0-03", "detector");
        CU_ASSERT_TRUE(sim_until(&sim, i, PHASE_ESCALATED, 1500));
        CU_ASSERT_EQUAL(sim_say(&sim, COMMAND_DECLINE, ref), OK);
        sim_run(&sim, 20);
    }
    sim_accuse_tray(&sim, VERDICT_CRASH, "n0-03", "detector");
    CU_ASSERT_TRUE(sim_until(&sim, 4, PHASE_HOLDING, 100));
    CU_ASSERT_PTR_NOT_NULL(strstr(sim_incident(&sim, 4)->waiting_for,
                                  "broomd restarted job default/llm 3 times and it made no new"));
    sim_done(&sim);
}

TEST(three_restarts_by_others_without_a_step_are_told_once)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, paging);
    look(&sim, 120);
    sim.stopped = true;
    for (int cycle = 0; cycle < 5; cycle++) {
        set_phase(&sim, "restarting");
        look(&sim, 60);
        sim.restarts++;
        set_phase(&sim, "running");
        look(&sim, 60);
        CU_ASSERT_EQUAL(remediation_incident_count(sim.core), cycle < 2 ? 0 : 1);
    }
    CU_ASSERT_EQUAL(sim.notifies, 1);
    CU_ASSERT_TRUE(sim_log_says(&sim, "The job was restarted 3 times without a new step"));
    sim_done(&sim);
}

TEST(restarts_with_steps_between_them_are_nobodys_business)
{
    struct sim sim;
    sim_init(&sim, 2, 2, 16, paging);
    look(&sim, 120);
    for (int cycle = 0; cycle < 6; cycle++) {
        set_phase(&sim, "restarting");
        look(&sim, 60);
        sim.restarts++;
        set_phase(&sim, "running");
        look(&sim, 60);
    }
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 0);
    sim_done(&sim);
}

TEST(where_the_job_resumes_from_and_what_is_lost_is_said_before_it_is_restarted)
{
    struct sim sim;
    sim_open_with_lost_tray(&sim, sim_enforce);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 200));
    const char *said = strstr(sim.log.bytes, "The job resumes from step 100; ");
    const char *acted = strstr(sim.log.bytes, "restart_job n0-03 -> n0-16");
    CU_ASSERT_PTR_NOT_NULL_FATAL(said);
    CU_ASSERT_PTR_NOT_NULL_FATAL(acted);
    CU_ASSERT_TRUE(said < acted);
    sim_done(&sim);
    sim_open_with_lost_tray(&sim, approving);
    sim.checkpoint_time_ns = SIM_START + 100 * SECOND;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_AWAITING_APPROVAL, 100));
    CU_ASSERT_TRUE(sim_waits_for(&sim, "a person's approval to cordon the trays"));
    sim_run(&sim, 5);
    CU_ASSERT_TRUE(sim_waits_for(&sim, "; the job resumes from step 100, saved 2027-"));
    sim_done(&sim);
}

static const char ANEW[] = "1 of its 32 pods was made anew alone: llm-w-3";

/* One pod of the gang is replaced and the others run on: the cluster says "running". */
static void replace_a_pod_alone(struct sim *sim, struct policy_set *(*policies)(void))
{
    sim_init(sim, 2, 2, 16, policies);
    look(sim, 120);
    sim->made_anew = ANEW;
    sim->stopped = true;
}

TEST(a_pod_of_a_gang_that_is_replaced_alone_is_an_incident_once_and_nothing_is_restarted)
{
    struct sim sim;
    replace_a_pod_alone(&sim, paging);
    look(&sim, 45);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 0); /* the rest may follow */
    look(&sim, 600);
    CU_ASSERT_EQUAL_FATAL(remediation_incident_count(sim.core), 1);
    const struct incident *incident = sim_incident(&sim, 1);
    CU_ASSERT_EQUAL(incident->kind, VERDICT_HANG);
    CU_ASSERT_EQUAL(incident->scope, SCOPE_JOB);
    CU_ASSERT_STRING_EQUAL(incident->source, "scheduler");
    CU_ASSERT_TRUE(sim_log_says(&sim, "gang_mixed"));
    CU_ASSERT_TRUE(sim_log_says(&sim,
                                "1 of its 32 pods was made anew alone: llm-w-3; the others are "
                                "of an earlier start, and the job makes no step"));
    CU_ASSERT_EQUAL(sim.notifies, 1);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    sim.made_anew = NULL; /* somebody restarted the whole of it */
    sim.stopped = false;
    look(&sim, 60);
    CU_ASSERT_TRUE(incident_has_ended(sim_incident(&sim, 1)));
    sim_done(&sim);
}

TEST(a_gang_that_takes_the_new_pod_in_is_let_be)
{
    struct sim sim;
    replace_a_pod_alone(&sim, paging);
    look(&sim, 30);
    sim.stopped = false;
    look(&sim, 30);
    sim.stopped = true; /* for another reason, later */
    look(&sim, 120);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 0);
    sim.made_anew = "2 of its 32 pods were made anew alone: llm-w-3 and 1 more";
    look(&sim, 120);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    sim_done(&sim);
}

TEST(an_open_incident_tells_of_the_pod_that_was_replaced_alone)
{
    struct sim sim;
    open_holding(&sim);
    int told = sim.notifies;
    sim.made_anew = ANEW;
    look(&sim, 300);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    CU_ASSERT_EQUAL(sim.notifies, told + 1);
    CU_ASSERT_TRUE(sim_log_says(&sim, ANEW));
    sim_done(&sim);
}

static struct policy_set *restarting_gangs(void)
{
    struct policy_set *set = sim_enforce();
    struct policy *policy = set->items[0];
    struct policy_rule last = policy->rules[--policy->rule_count];
    struct plan *plan = &policy->plans[0];
    sim_rule(policy, "hang-without-culprit", KIND(HANG), SCOPE(JOB), 0, 1, 0);
    plan->steps[plan->count++] = (struct plan_step){.kind = STEP_RESTART_JOB,
                                                    .timeout_ns = 10 * MINUTE};
    plan->steps[plan->count++] = (struct plan_step){
        .kind = STEP_VERIFY, .new_steps = 20, .pace_within = 1.1, .timeout_ns = 30 * MINUTE};
    policy->rules[policy->rule_count++] = last;
    return set;
}

TEST(the_whole_gang_is_restarted_where_the_policy_says_so)
{
    struct sim sim;
    replace_a_pod_alone(&sim, restarting_gangs);
    look(&sim, 90);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_PLACING, 120));
    sim.made_anew = NULL;
    look(&sim, 300);
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    CU_ASSERT_EQUAL(sim.cordons, 0);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->status, INCIDENT_CLOSED);
    CU_ASSERT_TRUE(sim_incident(&sim, 1)->times.mitigated_ns != 0);
    CU_ASSERT_EQUAL(remediation_incident_count(sim.core), 1);
    sim_done(&sim);
}

TESTS(T(a_restart_that_would_be_refused_is_told_before_anything_is_cordoned),
      T(a_refusal_that_comes_up_behind_the_cordon_holds_the_restart),
      T(a_job_that_has_ended_is_never_started_anew), T(a_failed_job_that_may_be_restarted_is),
      T(a_restart_that_somebody_makes_already_is_joined_and_not_doubled),
      T(a_restart_of_nobodys_incident_that_does_not_end_is_an_incident),
      T(an_incident_that_is_open_tells_of_the_restart_that_does_not_end),
      T(three_restarts_of_ours_without_a_step_need_a_person),
      T(three_restarts_by_others_without_a_step_are_told_once),
      T(restarts_with_steps_between_them_are_nobodys_business),
      T(where_the_job_resumes_from_and_what_is_lost_is_said_before_it_is_restarted),
      T(a_pod_of_a_gang_that_is_replaced_alone_is_an_incident_once_and_nothing_is_restarted),
      T(a_gang_that_takes_the_new_pod_in_is_let_be),
      T(an_open_incident_tells_of_the_pod_that_was_replaced_alone),
      T(the_whole_gang_is_restarted_where_the_policy_says_so))
