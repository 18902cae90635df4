/* Mechanical checks of the rule table: what a review misses. UPDATE_GOLDEN=1 rewrites the golden
 * files. */
#include "remediation/core_state.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FACT_SETS = 1 << FACT_COUNT };

static bool is_kebab(const char *id)
{
    for (const char *c = id; *c != '\0'; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c == '-' && c != id && c[1] != '\0' && c[1] != '-')))
            return false;
    return id[0] != '\0';
}

/* Ids that once had a meaning and may not come back with another. */
static const char *const retired_ids[] = {"-"};

TEST(rule_ids_are_unique_kebab_case_and_never_reused)
{
    for (size_t i = 0; i < fsm_rule_count; i++) {
        CU_ASSERT_TRUE(is_kebab(fsm_rules[i].id));
        for (size_t j = 0; j < i; j++)
            CU_ASSERT_STRING_NOT_EQUAL(fsm_rules[i].id, fsm_rules[j].id);
        for (size_t j = 0; j < ARRAY_LEN(retired_ids); j++)
            CU_ASSERT_STRING_NOT_EQUAL(fsm_rules[i].id, retired_ids[j]);
    }
}

TEST(no_rule_contradicts_itself)
{
    for (size_t i = 0; i < fsm_rule_count; i++) {
        CU_ASSERT_EQUAL(fsm_rules[i].need & fsm_rules[i].forbid, 0);
        /* All of `lack` needed could never be lacking. */
        CU_ASSERT_TRUE(fsm_rules[i].lack == 0 || (fsm_rules[i].lack & ~fsm_rules[i].need) != 0);
        CU_ASSERT_NOT_EQUAL(fsm_rules[i].from, 0);
    }
}

static bool separable(const struct fsm_rule *a, const struct fsm_rule *b)
{
    if ((a->need & b->forbid) != 0 || (b->need & a->forbid) != 0)
        return true;
    bool a_blocks = b->lack != 0 && (b->lack & ~a->need) == 0;
    bool b_blocks = a->lack != 0 && (a->lack & ~b->need) == 0;
    return a_blocks || b_blocks;
}

TEST(two_rules_of_one_cell_can_never_both_match)
{
    for (size_t i = 0; i < fsm_rule_count; i++)
        for (size_t j = 0; j < i; j++) {
            const struct fsm_rule *a = &fsm_rules[i], *b = &fsm_rules[j];
            if (a->on != b->on || (a->from & b->from) == 0)
                continue;
            if (!separable(a, b))
                printf("not separable: %s and %s\n", a->id, b->id);
            CU_ASSERT_TRUE(separable(a, b));
        }
}

static bool is_ignored(enum phase phase, enum fsm_event event)
{
    for (size_t i = 0; i < fsm_ignored_count; i++)
        if ((fsm_ignored[i].from >> phase & 1u) && (fsm_ignored[i].on >> event & 1u))
            return true;
    return false;
}

static size_t handled_sets(enum phase phase, enum fsm_event event)
{
    size_t handled = 0;
    for (uint32_t facts = 0; facts < FACT_SETS; facts++)
        handled += fsm_find(phase, event, facts) != NULL ? 1 : 0;
    return handled;
}

TEST(every_cell_is_handled_for_all_facts_or_ignored_with_a_reason)
{
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        for (int event = 0; event < FSM_EVENT_COUNT; event++) {
            size_t handled = handled_sets((enum phase)phase, (enum fsm_event)event);
            bool ignored = is_ignored((enum phase)phase, (enum fsm_event)event);
            bool whole = handled == (ignored ? 0 : FACT_SETS);
            if (!whole)
                printf("%s on %s: %zu of %d fact sets%s\n", phase_name((enum phase)phase),
                       fsm_event_name((enum fsm_event)event), handled, FACT_SETS,
                       ignored ? ", though ignored" : "");
            CU_ASSERT_TRUE(whole);
        }
    for (size_t i = 0; i < fsm_ignored_count; i++)
        CU_ASSERT_TRUE(strlen(fsm_ignored[i].reason) > 10);
}

static uint32_t reachable_from(uint32_t seen)
{
    for (bool grew = true; grew;) {
        grew = false;
        for (size_t i = 0; i < fsm_rule_count; i++) {
            if ((fsm_rules[i].from & seen) == 0 || fsm_rules[i].to == FSM_STAY ||
                (seen >> fsm_rules[i].to & 1u))
                continue;
            seen |= 1u << fsm_rules[i].to;
            grew = true;
        }
    }
    return seen;
}

TEST(all_phases_are_reachable_and_every_open_one_has_a_way_out)
{
    CU_ASSERT_EQUAL(reachable_from(1u << PHASE_SUSPECTED), (1u << PHASE_COUNT) - 1);
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        uint32_t reached = reachable_from(1u << phase);
        bool ends = false;
        for (int end = 0; end < PHASE_COUNT; end++)
            ends = ends || (phase_is_end((enum phase)end) && (reached >> end & 1u));
        CU_ASSERT_TRUE(ends);
    }
}

TEST(every_open_phase_has_a_deadline_that_leads_out_of_it)
{
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        if (phase_is_end((enum phase)phase))
            continue;
        for (uint32_t facts = 0; facts < FACT_SETS; facts += 97) {
            const struct fsm_rule *rule = fsm_find((enum phase)phase, EVENT_DEADLINE_PASSED, facts);
            CU_ASSERT_TRUE(rule != NULL && rule->to != FSM_STAY && rule->to != (unsigned)phase);
        }
        CU_ASSERT_TRUE(strlen(phase_owner((enum phase)phase)) > 0);
    }
}

TEST(whoever_enters_an_open_phase_gets_a_deadline_or_keeps_one)
{
    for (size_t i = 0; i < fsm_rule_count; i++) {
        const struct fsm_rule *rule = &fsm_rules[i];
        if (rule->to == FSM_STAY)
            continue;
        bool is_end = phase_is_end((enum phase)rule->to);
        CU_ASSERT_EQUAL(rule->timer == TIMER_NONE, is_end);
    }
}

TEST(what_touches_the_cluster_needs_every_safety_fact)
{
    const uint32_t touch = 1u << FACT_LEASE_HELD | 1u << FACT_CLOCK_TRUSTED | 1u << FACT_STORE_UP |
                           1u << FACT_UNPAUSED | 1u << FACT_ATTEMPTS_LEFT | 1u << FACT_PERMITTED |
                           1u << FACT_BUDGET_AVAILABLE | 1u << FACT_BREAKER_CLOSED |
                           1u << FACT_TELEMETRY_SEEN;
    int found = 0;
    for (size_t i = 0; i < fsm_rule_count; i++) {
        const struct fsm_rule *rule = &fsm_rules[i];
        if (!fsm_command_changes_world(rule->command))
            continue;
        found++;
        CU_ASSERT_EQUAL(rule->need & touch, touch);
        CU_ASSERT_TRUE(rule->forbid & (1u << FACT_OBSERVING));
        if (fsm_command_spends(rule->command))
            CU_ASSERT_TRUE(rule->need & (1u << FACT_WORLD_KNOWN));
    }
    CU_ASSERT_EQUAL(found, 9);
}

TEST(restarts_need_a_free_job_and_the_jobs_own_budget)
{
    for (size_t i = 0; i < fsm_rule_count; i++)
        if (fsm_rules[i].command == DO_RESTART_JOB) {
            CU_ASSERT_TRUE(fsm_rules[i].need & (1u << FACT_JOB_FREE));
            CU_ASSERT_TRUE(fsm_rules[i].need & (1u << FACT_RESTART_ALLOWED));
            CU_ASSERT_TRUE(fsm_rules[i].need & (1u << FACT_WORTH_ACTING));
        }
}

TEST(every_command_of_the_table_has_an_executor_and_every_verb_a_command)
{
    bool used[FSM_COMMAND_COUNT] = {false};
    for (size_t i = 0; i < fsm_rule_count; i++)
        used[fsm_rules[i].command] = true;
    for (int command = 0; command < FSM_COMMAND_COUNT; command++)
        CU_ASSERT_TRUE(used[command]);
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        int executors = 0;
        for (int command = 0; command < FSM_COMMAND_COUNT; command++) {
            const char *name = act_command_verb((enum fsm_command)command);
            executors += name != NULL && strcmp(name, verb_name((enum verb)verb)) == 0 ? 1 : 0;
        }
        CU_ASSERT_EQUAL(executors, 1);
    }
    for (int command = 0; command < FSM_COMMAND_COUNT; command++)
        if (fsm_command_changes_world((enum fsm_command)command))
            CU_ASSERT_PTR_NOT_NULL(act_command_verb((enum fsm_command)command));
}

static bool updates(void)
{
    return getenv("UPDATE_GOLDEN") != NULL;
}

static void check_golden(const char *path, const struct text *made)
{
    if (updates()) {
        FILE *file = fopen(path, "wb");
        CU_ASSERT_PTR_NOT_NULL_FATAL(file);
        fwrite(made->bytes, 1, made->length, file);
        fclose(file);
    }
    AUTO_FREE char *golden = test_read_file(path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(golden);
    CU_ASSERT_STRING_EQUAL(golden, made->bytes);
}

TEST(the_dump_equals_the_golden_file)
{
    AUTO_TEXT dump = {0};
    fsm_dump(&dump);
    check_golden(BROOM_SOURCE_DIR "/tests/golden/fsm.txt", &dump);
}

TEST(the_diagram_equals_the_golden_file_and_the_one_in_the_readme)
{
    AUTO_TEXT diagram = {0};
    fsm_mermaid(&diagram);
    check_golden(BROOM_SOURCE_DIR "/tests/golden/fsm.mmd", &diagram);
    AUTO_FREE char *readme = test_read_file(BROOM_SOURCE_DIR "/remediation/README.md");
    CU_ASSERT_PTR_NOT_NULL_FATAL(readme);
    CU_ASSERT_PTR_NOT_NULL(strstr(readme, diagram.bytes));
}

/* The first set of facts under which the table answers with this rule in this phase, or none. */
static bool facts_for(const struct fsm_rule *rule, enum phase phase, uint32_t *ret_facts)
{
    for (uint32_t facts = 0; facts < FACT_SETS; facts++)
        if (fsm_find(phase, rule->on, facts) == rule) {
            *ret_facts = facts;
            return true;
        }
    return false;
}

TEST(every_rule_is_found_in_each_of_its_phases_and_applies_as_written)
{
    for (size_t i = 0; i < fsm_rule_count; i++)
        for (int phase = 0; phase < PHASE_COUNT; phase++) {
            const struct fsm_rule *rule = &fsm_rules[i];
            uint32_t facts = 0;
            if (!(rule->from >> phase & 1u))
                continue;
            CU_ASSERT_TRUE(facts_for(rule, (enum phase)phase, &facts));
            AUTO(incident_free) struct incident *incident = incident_new(1);
            fsm_restore(incident, (enum phase)phase, INCIDENT_OPEN);
            struct transition transition = fsm_apply(incident, rule, facts, 77, 5);
            unsigned to = rule->to == FSM_STAY ? (unsigned)phase : rule->to;
            CU_ASSERT_EQUAL(incident->phase, (enum phase)to);
            CU_ASSERT_EQUAL(transition.from, (enum phase)phase);
            CU_ASSERT_EQUAL(transition.facts, facts);
            if (rule->status != FSM_KEEP_STATUS)
                CU_ASSERT_EQUAL(incident->status, (enum incident_status)rule->status);
            if (transition.moved && rule->timer != TIMER_KEEP)
                CU_ASSERT_EQUAL(incident->deadline_ns, 77);
            CU_ASSERT_EQUAL(incident->times.closed_ns == 5, rule->status == INCIDENT_CLOSED ||
                                                                rule->status == INCIDENT_MERGED ||
                                                                rule->status == INCIDENT_DECLINED);
        }
}

TEST(every_incident_has_a_page_that_is_there)
{
    for (int kind = 0; kind < VERDICT_KIND_COUNT; kind++)
        for (int scope = 0; scope < SCOPE_COUNT; scope++)
            for (int phase = 0; phase < PHASE_COUNT; phase++) {
                const char *page = incident_runbook((enum verdict_kind)kind, (enum scope)scope,
                                                    false, (enum phase)phase);
                char path[512];
                snprintf(path, sizeof path, "%s/%s", BROOM_SOURCE_DIR, page);
                CU_ASSERT_EQUAL(access(path, R_OK), 0);
            }
    CU_ASSERT_STRING_EQUAL(incident_runbook(VERDICT_CRASH, SCOPE_TRAY, false, PHASE_RESTARTING),
                           "runbooks/tray-lost.md");
    CU_ASSERT_STRING_EQUAL(incident_runbook(VERDICT_CRASH, SCOPE_TRAY, false, PHASE_HOLDING),
                           "runbooks/holding.md");
    CU_ASSERT_STRING_EQUAL(incident_runbook(VERDICT_FAULT, SCOPE_JOB, true, PHASE_HOLDING),
                           "runbooks/observer-suspect.md");
}

TEST(names_are_stable_and_parse_back)
{
    for (int i = 0; i < PHASE_COUNT; i++) {
        enum phase phase;
        CU_ASSERT_TRUE(phase_parse(phase_name((enum phase)i), &phase) && (int)phase == i);
    }
    for (int i = 0; i < INCIDENT_STATUS_COUNT; i++) {
        enum incident_status status;
        CU_ASSERT_TRUE(
            incident_status_parse(incident_status_name((enum incident_status)i), &status) &&
            (int)status == i);
    }
    CU_ASSERT_FALSE(phase_parse("acting", &(enum phase){0}));
    CU_ASSERT_FALSE(incident_status_parse("", &(enum incident_status){0}));
}

TESTS(T(rule_ids_are_unique_kebab_case_and_never_reused), T(no_rule_contradicts_itself),
      T(two_rules_of_one_cell_can_never_both_match),
      T(every_cell_is_handled_for_all_facts_or_ignored_with_a_reason),
      T(all_phases_are_reachable_and_every_open_one_has_a_way_out),
      T(every_open_phase_has_a_deadline_that_leads_out_of_it),
      T(whoever_enters_an_open_phase_gets_a_deadline_or_keeps_one),
      T(what_touches_the_cluster_needs_every_safety_fact),
      T(restarts_need_a_free_job_and_the_jobs_own_budget),
      T(every_command_of_the_table_has_an_executor_and_every_verb_a_command),
      T(the_dump_equals_the_golden_file),
      T(the_diagram_equals_the_golden_file_and_the_one_in_the_readme),
      T(every_rule_is_found_in_each_of_its_phases_and_applies_as_written),
      T(every_incident_has_a_page_that_is_there), T(names_are_stable_and_parse_back))
