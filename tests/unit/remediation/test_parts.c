/* The parts of the core by themselves: budgets, spares, verification, matching, names. */
#include "remediation/budget.h"
#include "remediation/spare.h"
#include "remediation/verify.h"
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim.h"

/* --- budgets --- */

TEST(a_limit_is_the_smaller_of_count_and_percent_and_never_below_one)
{
    struct policy_budget budget = {.count = 8, .percent = 5};
    CU_ASSERT_EQUAL(budget_limit(&budget, 1000), 8);
    CU_ASSERT_EQUAL(budget_limit(&budget, 100), 5);
    CU_ASSERT_EQUAL(budget_limit(&budget, 4), 1);
    CU_ASSERT_EQUAL(budget_limit(&budget, 0), 1);
    budget.percent = NAN;
    CU_ASSERT_EQUAL(budget_limit(&budget, 4), 8);
    budget.count = 0;
    CU_ASSERT_EQUAL(budget_limit(&budget, 1000), 1);
}

struct budget_fixture {
    struct policy_set *policies;
    struct incident *incidents[4];
    struct world_view world;
    struct budget_view view;
};

static void fixture_init(struct budget_fixture *fixture)
{
    *fixture = (struct budget_fixture){.policies = sim_enforce()};
    static const struct world_node nodes[200] = {{.name = "x", .rack = "r"}};
    struct world world = {.known = true, .nodes = nodes, .node_count = 1};
    world_view_set(&fixture->world, &world, SIM_START);
    for (int i = 0; i < 4; i++) {
        fixture->incidents[i] = incident_new(i + 1);
        text_copy(fixture->incidents[i]->job, JOB_NAME_BYTES, "a");
    }
    fixture->view = (struct budget_view){.policies = fixture->policies,
                                         .incidents = fixture->incidents,
                                         .incident_count = 4,
                                         .world = &fixture->world,
                                         .job_trays = 100,
                                         .now_ns = SIM_START};
}

static void fixture_done(struct budget_fixture *fixture)
{
    for (int i = 0; i < 4; i++)
        incident_free(fixture->incidents[i]);
    world_view_done(&fixture->world);
    policy_set_free(fixture->policies);
}

TEST(a_rack_spends_one_rack_and_none_of_its_trays)
{
    struct budget_fixture fixture;
    char reason[SENTENCE_BYTES];
    fixture_init(&fixture);
    struct incident *rack = fixture.incidents[0], *tray = fixture.incidents[1],
                    *second = fixture.incidents[2];
    for (int i = 0; i < 18; i++) {
        char node[16];
        snprintf(node, sizeof node, "n%d", i);
        incident_add_node(rack, node, "rk-0");
    }
    incident_add_node(tray, "m1", "rk-1");
    incident_add_node(second, "o1", "rk-2");
    CU_ASSERT_TRUE(budget_allows(&fixture.view, rack, BUDGET_RACKS, reason, sizeof reason));
    rack->nodes_spent_ns = SIM_START - MINUTE;
    rack->spent_rack = true;
    CU_ASSERT_TRUE(budget_allows(&fixture.view, tray, BUDGET_TRAYS, reason, sizeof reason));
    CU_ASSERT_FALSE(budget_allows(&fixture.view, second, BUDGET_RACKS, reason, sizeof reason));
    CU_ASSERT_PTR_NOT_NULL(strstr(reason, "budget 'racks': 1 of 1"));
    fixture.view.now_ns = SIM_START + 6 * HOUR;
    CU_ASSERT_TRUE(budget_allows(&fixture.view, second, BUDGET_RACKS, reason, sizeof reason));
    fixture_done(&fixture);
}

TEST(trays_are_bounded_in_the_rack_too_and_a_foreign_cordon_does_not_count)
{
    struct budget_fixture fixture;
    char reason[SENTENCE_BYTES];
    fixture_init(&fixture);
    fixture.policies->items[0]->budgets[0].percent = NAN;
    for (int i = 0; i < 3; i++) {
        char node[16];
        snprintf(node, sizeof node, "n%d", i);
        incident_add_node(fixture.incidents[i], node, "rk-0");
        fixture.incidents[i]->nodes_spent_ns = SIM_START - HOUR / 2;
    }
    CU_ASSERT_FALSE(
        budget_allows(&fixture.view, fixture.incidents[2], BUDGET_TRAYS, reason, sizeof reason));
    CU_ASSERT_PTR_NOT_NULL(strstr(reason, "budget 'per-rack' of rack rk-0: 2 of 2"));
    fixture.incidents[0]->nodes[0].was_cordoned = true;
    CU_ASSERT_TRUE(
        budget_allows(&fixture.view, fixture.incidents[2], BUDGET_TRAYS, reason, sizeof reason));
    fixture_done(&fixture);
}

TEST(restarts_are_counted_by_job)
{
    struct budget_fixture fixture;
    char reason[SENTENCE_BYTES];
    fixture_init(&fixture);
    for (int i = 0; i < 3; i++)
        fixture.incidents[i]->restart_started_ns = SIM_START - HOUR;
    CU_ASSERT_FALSE(
        budget_allows(&fixture.view, fixture.incidents[3], BUDGET_RESTARTS, reason, sizeof reason));
    text_copy(fixture.incidents[0]->job, JOB_NAME_BYTES, "b");
    CU_ASSERT_TRUE(
        budget_allows(&fixture.view, fixture.incidents[3], BUDGET_RESTARTS, reason, sizeof reason));
    fixture_done(&fixture);
}

/* --- spares --- */

struct spare_fixture {
    struct sim sim;
    struct world_view world;
    struct names job_nodes;
    struct incident *incident;
    struct incident *list[2];
    struct spare_view view;
    struct plan plan;
};

static void look_again(struct spare_fixture *fixture)
{
    struct world_node nodes[SIM_NODES_MAX];
    for (int i = 0; i < fixture->sim.node_count; i++) {
        const struct sim_node *node = &fixture->sim.nodes[i];
        nodes[i] = (struct world_node){
            .name = node->name,
            .rack = node->rack,
            .nvlink_domain = node->rack,
            .ready = node->ready,
            .cordoned = node->cordoned,
            .spare = node->spare,
            .promised_to = node->promised_to[0] != '\0' ? node->promised_to : NULL,
            .gpus_allocatable = node->dead ? 3 : SIM_GPUS};
    }
    struct world world = {
        .known = true, .nodes = nodes, .node_count = (size_t)fixture->sim.node_count};
    world_view_set(&fixture->world, &world, SIM_START);
}

static void spare_init(struct spare_fixture *fixture, int racks, int job_racks, int used)
{
    *fixture = (struct spare_fixture){0};
    sim_init(&fixture->sim, racks, job_racks, used, sim_enforce);
    fixture->incident = incident_new(1);
    fixture->incident->gpus_per_node = SIM_GPUS;
    fixture->list[0] = fixture->incident;
    fixture->list[1] = incident_new(2);
    for (int i = 0; i < fixture->sim.node_count; i++)
        if (!fixture->sim.nodes[i].spare)
            names_add(&fixture->job_nodes, fixture->sim.nodes[i].name);
    fixture->view = (struct spare_view){&fixture->world, fixture->list, 2, &fixture->job_nodes};
    sim_steps(&fixture->plan, "replace-tray", false);
    look_again(fixture);
}

static struct spare_choice choose(const struct spare_fixture *fixture)
{
    return spare_choose(&fixture->view, fixture->incident, &fixture->plan.steps[4]);
}

static void spare_done(struct spare_fixture *fixture)
{
    incident_free(fixture->list[0]);
    incident_free(fixture->list[1]);
    names_done(&fixture->job_nodes);
    world_view_done(&fixture->world);
    sim_done(&fixture->sim);
}

TEST(a_spare_of_the_same_domain_comes_first)
{
    struct spare_fixture fixture;
    spare_init(&fixture, 3, 2, 16);
    incident_add_node(fixture.incident, "n1-05", "rk-1");
    struct spare_choice choice = choose(&fixture);
    CU_ASSERT_EQUAL(choice.missing, 0);
    CU_ASSERT_EQUAL_FATAL(choice.spares.count, 1);
    CU_ASSERT_STRING_EQUAL(choice.spares.items[0], "n1-16");
    CU_ASSERT_STRING_EQUAL(choice.leaving.items[0], "n1-05");
    spare_choice_done(&choice);
    spare_done(&fixture);
}

TEST(without_enough_in_the_domain_the_whole_segment_moves_and_never_a_half)
{
    struct spare_fixture fixture;
    spare_init(&fixture, 3, 2, 16);
    for (int i = 0; i < 3; i++)
        incident_add_node(fixture.incident, fixture.sim.nodes[i].name, "rk-0");
    struct spare_choice choice = choose(&fixture);
    CU_ASSERT_EQUAL(choice.missing, 0);
    CU_ASSERT_EQUAL(choice.spares.count, 16);
    for (size_t i = 0; i < choice.spares.count; i++)
        CU_ASSERT_STRING_EQUAL(sim_node(&fixture.sim, choice.spares.items[i])->rack, "rk-2");
    spare_choice_done(&choice);
    for (int i = 0; i < 3; i++)
        fixture.sim.nodes[2 * 18 + i].ready = false;
    look_again(&fixture);
    choice = choose(&fixture);
    CU_ASSERT_EQUAL(choice.spares.count, 0);
    CU_ASSERT_EQUAL(choice.missing, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(choice.sentence, "1 missing spare tray"));
    CU_ASSERT_PTR_NOT_NULL(strstr(choice.sentence, "the best has 15"));
    spare_choice_done(&choice);
    spare_done(&fixture);
}

TEST(a_spare_that_is_not_whole_and_free_is_not_promised)
{
    struct spare_fixture fixture;
    spare_init(&fixture, 1, 1, 16);
    incident_add_node(fixture.incident, "n0-05", "rk-0");
    struct sim_node *a = sim_node(&fixture.sim, "n0-16"), *b = sim_node(&fixture.sim, "n0-17");
    b->ready = false;
    for (int fault = 0; fault < 5; fault++) {
        a->ready = fault != 0;
        a->cordoned = fault == 1;
        a->dead = fault == 2; /* one GPU short */
        text_copy(a->promised_to, sizeof a->promised_to, fault == 3 ? "other/job" : "");
        names_done(&fixture.list[1]->spares);
        if (fault == 4)
            names_add(&fixture.list[1]->spares, "n0-16");
        look_again(&fixture);
        struct spare_choice choice = choose(&fixture);
        CU_ASSERT_EQUAL(choice.spares.count, 0);
        CU_ASSERT_EQUAL(choice.missing, 1);
        spare_choice_done(&choice);
    }
    names_done(&fixture.list[1]->spares);
    look_again(&fixture);
    CU_ASSERT_TRUE(spare_is_usable(&fixture.view, fixture.incident, "n0-16"));
    incident_add_node(fixture.list[1], "n0-16", "rk-0");
    CU_ASSERT_FALSE(spare_is_usable(&fixture.view, fixture.incident, "n0-16"));
    CU_ASSERT_FALSE(spare_is_usable(&fixture.view, fixture.incident, "n0-05"));
    CU_ASSERT_FALSE(spare_is_usable(&fixture.view, fixture.incident, "nowhere"));
    spare_done(&fixture);
}

TEST(a_node_that_holds_no_rank_needs_no_spare)
{
    struct spare_fixture fixture;
    spare_init(&fixture, 1, 1, 16);
    incident_add_node(fixture.incident, "n0-17", "rk-0");
    struct spare_choice choice = choose(&fixture);
    CU_ASSERT_EQUAL(choice.spares.count, 0);
    CU_ASSERT_EQUAL(choice.missing, 0);
    spare_choice_done(&choice);
    spare_done(&fixture);
}

/* --- verification --- */

static struct engine_progress progress_of(int64_t step, int64_t first, double step_ms)
{
    return (struct engine_progress){.step = step,
                                    .step_time_ns = SIM_START + 200 * SECOND,
                                    .attempt = 1,
                                    .attempt_first_step = first,
                                    .attempt_time_ns = SIM_START + 100 * SECOND,
                                    .step_ms = step_ms,
                                    .baseline_ms = step_ms};
}

TEST(only_new_steps_of_a_new_attempt_at_the_old_pace_count)
{
    struct verify_before before = {0, SIM_START + 60 * SECOND, 1000};
    struct engine_progress progress = progress_of(119, 100, 1050);
    CU_ASSERT_EQUAL(verify_judge(&before, &progress, 20, 1.10).outcome, VERIFY_RECOVERED);
    CU_ASSERT_EQUAL(verify_judge(&before, &progress, 21, 1.10).outcome, VERIFY_TOO_FEW_STEPS);
    progress = progress_of(119, 100, 1101);
    CU_ASSERT_EQUAL(verify_judge(&before, &progress, 20, 1.10).outcome, VERIFY_TOO_SLOW);
    progress = progress_of(119, 100, NAN);
    CU_ASSERT_EQUAL(verify_judge(&before, &progress, 20, 1.10).outcome, VERIFY_TOO_FEW_STEPS);
    progress = progress_of(119, 100, 1000);
    progress.attempt_time_ns = SIM_START;
    CU_ASSERT_EQUAL(verify_judge(&before, &progress, 20, 1.10).outcome, VERIFY_NO_NEW_ATTEMPT);
    progress = progress_of(119, 100, 1000);
    progress.step_time_ns = SIM_START;
    CU_ASSERT_EQUAL(verify_judge(&before, &progress, 20, 1.10).outcome, VERIFY_NO_NEW_ATTEMPT);
    progress = progress_of(JOB_NONE, JOB_NONE, NAN);
    CU_ASSERT_EQUAL(verify_judge(&before, &progress, 20, 1.10).outcome, VERIFY_NO_NEW_ATTEMPT);
}

TEST(without_a_known_pace_the_steps_alone_decide_and_without_a_time_the_attempt)
{
    struct verify_before before = {0, SIM_START + 60 * SECOND, NAN};
    struct engine_progress progress = progress_of(119, 100, 5000);
    CU_ASSERT_EQUAL(verify_judge(&before, &progress, 20, 1.10).outcome, VERIFY_RECOVERED);
    progress.attempt_time_ns = 0;
    CU_ASSERT_EQUAL(verify_judge(&before, &progress, 20, 1.10).outcome, VERIFY_RECOVERED);
    before.attempt = 1;
    CU_ASSERT_EQUAL(verify_judge(&before, &progress, 20, 1.10).outcome, VERIFY_NO_NEW_ATTEMPT);
    before.attempt = JOB_NONE;
    CU_ASSERT_EQUAL(verify_judge(&before, &progress, 20, 1.10).outcome, VERIFY_NO_NEW_ATTEMPT);
}

/* --- matching --- */

TEST(the_first_rule_that_matches_wins_within_and_over_files)
{
    struct policy_set *set = policy_set_new();
    struct policy *first = sim_policy(MODE_OBSERVE), *second = sim_policy(MODE_ENFORCE);
    first->rule_count = 1;
    text_copy(first->rules[0].jobs[0], sizeof first->rules[0].jobs[0], "prod/*");
    first->rules[0].job_count = 1;
    policy_set_add(set, first);
    policy_set_add(set, second);
    struct policy_case item = {
        .kind = VERDICT_FAULT, .scope = SCOPE_RACK, .job = "prod/x", .job_phase = ""};
    CU_ASSERT_PTR_EQUAL(policy_choose(set, &item).policy, first);
    item.job = "test/x";
    CU_ASSERT_PTR_EQUAL(policy_choose(set, &item).policy, second);
    item = (struct policy_case){.kind = VERDICT_SLOW,
                                .scope = SCOPE_RANK,
                                .slowdown = 1.04,
                                .confidence = 1,
                                .job = "test/x",
                                .job_phase = "eval"};
    CU_ASSERT_STRING_EQUAL(policy_choose(set, &item).rule->name, "everything-else");
    item.slowdown = 1.05;
    CU_ASSERT_STRING_EQUAL(policy_choose(set, &item).rule->name, "slow-tray");
    CU_ASSERT_TRUE(policy_choose(set, &item).unless_holds);
    item.slowdown = NAN;
    CU_ASSERT_STRING_EQUAL(policy_choose(set, &item).rule->name, "everything-else");
    policy_set_free(set);
    CU_ASSERT_PTR_NULL(policy_choose(NULL, &item).policy);
}

TEST(a_list_of_names_reads_as_a_sentence)
{
    struct names names = {0};
    AUTO_TEXT text = {0};
    names_add(&names, "a");
    names_add(&names, "b");
    names_add_sentence(&names, 4, &text);
    CU_ASSERT_STRING_EQUAL(text.bytes, "a and b");
    CU_ASSERT_FALSE(names_add_new(&names, "a"));
    for (int i = 0; i < 4; i++)
        names_add(&names, "c");
    text_clear(&text);
    names_add_sentence(&names, 2, &text);
    CU_ASSERT_STRING_EQUAL(text.bytes, "a, b and 4 more");
    names_remove(&names, "a");
    CU_ASSERT_FALSE(names_has(&names, "a"));
    CU_ASSERT_EQUAL(names.count, 5);
    names_done(&names);
}

TESTS(T(a_limit_is_the_smaller_of_count_and_percent_and_never_below_one),
      T(a_rack_spends_one_rack_and_none_of_its_trays),
      T(trays_are_bounded_in_the_rack_too_and_a_foreign_cordon_does_not_count),
      T(restarts_are_counted_by_job), T(a_spare_of_the_same_domain_comes_first),
      T(without_enough_in_the_domain_the_whole_segment_moves_and_never_a_half),
      T(a_spare_that_is_not_whole_and_free_is_not_promised),
      T(a_node_that_holds_no_rank_needs_no_spare),
      T(only_new_steps_of_a_new_attempt_at_the_old_pace_count),
      T(without_a_known_pace_the_steps_alone_decide_and_without_a_time_the_attempt),
      T(the_first_rule_that_matches_wins_within_and_over_files),
      T(a_list_of_names_reads_as_a_sentence))
