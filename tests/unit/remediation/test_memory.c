/* What the core keeps is bounded also over years: looked at from inside, since nothing outside
 * tells. */
#include "remediation/core_state.h"
#include "tests/harness/test.h"

#include <stdio.h>

#define SECOND INT64_C(1000000000)
#define DAY    (86400 * SECOND)
#define START  (INT64_C(1800000000) * SECOND)

static void step(struct remediation *core, const char *job, int64_t number, int64_t now_ns)
{
    struct engine_progress progress = {
        .step = number, .step_time_ns = now_ns, .ranks_reporting = 4};
    remediation_progress(core, job, &progress, now_ns);
}

static void drop_effects(struct remediation *core)
{
    struct effect effect;
    while (remediation_next_effect(core, &effect))
        effect_done(&effect);
}

TEST(jobs_of_which_nothing_was_said_for_a_day_are_forgotten_unless_an_incident_remembers_them)
{
    struct remediation_params params = {
        .daemon_mode = MODE_OBSERVE, .actuator = "none", .next_number = 1};
    AUTO(remediation_free) struct remediation *core = remediation_new(&params);
    AUTO(job_free) struct job *broken = job_new("broken", 4);
    struct verdict fault = {
        .kind = VERDICT_CRASH, .scope = SCOPE_RANK, .id = "1", .time_ns = START};
    char name[32];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "short-lived-%d", i);
        step(core, name, 1, START);
    }
    broken->ranks[1].tray = job_intern_tray(broken, "n1", JOB_NONE);
    verdict_add_node(&fault, "n1");
    verdict_add_rank(&fault, 1);
    remediation_verdict(core, broken, &fault, "detector", START);
    verdict_done(&fault);
    remediation_tick(core, START + SECOND);
    drop_effects(core);
    CU_ASSERT_EQUAL(core->job_count, 101);
    CU_ASSERT_EQUAL(remediation_incident_count(core), 1);
    step(core, "short-lived-7", 2, START + DAY);
    remediation_tick(core, START + DAY + 2 * SECOND);
    drop_effects(core);
    CU_ASSERT_EQUAL(core->job_count, 2);
    CU_ASSERT_PTR_NOT_NULL(core_find_job(core, "short-lived-7"));
    CU_ASSERT_PTR_NOT_NULL(core_find_job(core, "broken"));
}

TEST(policies_may_be_handed_to_the_core_that_follows)
{
    struct remediation_params params = {
        .daemon_mode = MODE_OBSERVE, .actuator = "none", .next_number = 1};
    AUTO(remediation_free) struct remediation *core = remediation_new(&params);
    AUTO(remediation_free) struct remediation *next = remediation_new(&params);
    struct policy_set *set = policy_set_new();
    remediation_set_policy(core, set, START);
    remediation_set_policy(next, remediation_give_policies(core), START);
    CU_ASSERT_PTR_EQUAL(next->policies, set);
    CU_ASSERT_PTR_NULL(remediation_give_policies(core));
}

TESTS(T(policies_may_be_handed_to_the_core_that_follows),
      T(jobs_of_which_nothing_was_said_for_a_day_are_forgotten_unless_an_incident_remembers_them))
