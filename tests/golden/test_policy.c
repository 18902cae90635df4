/* Policy files as people write them: the shipped ones are clean, and a file of mistakes gets each
 * of them named at its place. UPDATE_GOLDEN=1 rewrites the golden file.
 */
#include "controller/config/yaml.h"
#include "remediation/policy.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct linted {
    struct findings findings;
    struct policy *policy;
};

static struct linted lint_text(const char *text)
{
    struct linted linted = {0};
    struct yaml_document document = {0};
    yaml_parse(view_of(text), &document, &linted.findings);
    if (linted.findings.errors == 0 &&
        policy_parse(document.root, &linted.findings, &linted.policy) != OK)
        CU_ASSERT_TRUE(linted.findings.errors > 0);
    yaml_done(&document);
    return linted;
}

static struct linted lint_file(const char *path)
{
    AUTO_FREE char *text = test_read_file(path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    return lint_text(text);
}

static void linted_done(struct linted *linted)
{
    findings_done(&linted->findings);
    policy_free(linted->policy);
}

static bool says(const struct linted *linted, const char *rule, int line)
{
    for (size_t i = 0; i < linted->findings.count; i++)
        if (strcmp(linted->findings.items[i].rule, rule) == 0 &&
            (line == 0 || linted->findings.items[i].line == line))
            return true;
    return false;
}

TEST(the_shipped_policies_have_no_findings)
{
    struct linted observe = lint_file(BROOM_SOURCE_DIR "/deploy/policies/nvl72.yaml");
    struct linted enforce = lint_file(BROOM_SOURCE_DIR "/deploy/policies/nvl72-enforce.yaml");
    CU_ASSERT_EQUAL(observe.findings.count, 0);
    CU_ASSERT_EQUAL(enforce.findings.count, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(observe.policy);
    CU_ASSERT_PTR_NOT_NULL_FATAL(enforce.policy);
    CU_ASSERT_EQUAL(observe.policy->mode, MODE_OBSERVE);
    CU_ASSERT_EQUAL(enforce.policy->mode, MODE_ENFORCE);
    CU_ASSERT_EQUAL(observe.policy->rule_count, 5);
    CU_ASSERT_EQUAL(observe.policy->rules[3].for_ns, INT64_C(600000000000));
    CU_ASSERT_EQUAL(observe.policy->budget_count, 4);
    CU_ASSERT_STRING_NOT_EQUAL(observe.policy->hash, enforce.policy->hash);
    linted_done(&observe);
    linted_done(&enforce);
}

TEST(a_file_of_mistakes_gets_each_of_them_named_at_its_place)
{
    struct linted linted = lint_file(BROOM_SOURCE_DIR "/tests/golden/policy-mistakes.yaml");
    AUTO_TEXT made = {0};
    findings_print(&linted.findings, "policy-mistakes.yaml", &made);
    const char *path = BROOM_SOURCE_DIR "/tests/golden/policy-mistakes.txt";
    if (getenv("UPDATE_GOLDEN") != NULL) {
        FILE *file = fopen(path, "wb");
        CU_ASSERT_PTR_NOT_NULL_FATAL(file);
        fwrite(made.bytes, 1, made.length, file);
        fclose(file);
    }
    AUTO_FREE char *golden = test_read_file(path);
    CU_ASSERT_PTR_NULL(linted.policy);
    CU_ASSERT_STRING_EQUAL(golden != NULL ? golden : "", made.bytes);
    CU_ASSERT_TRUE(linted.findings.errors >= 7);
    linted_done(&linted);
}

#define HEAD                                                                                       \
    "apiVersion: broomwagon.io/v1\nkind: RemediationPolicy\nmetadata: {name: x, owner: y}\n"
#define ALL "rules:\n  - {name: all, match: {}, plan: record}\nplans:\n  record: []\n"

TEST(layout_and_comments_do_not_change_the_hash_and_meaning_does)
{
    struct linted a = lint_text(HEAD "mode: observe\n" ALL);
    struct linted b = lint_text("# a comment\n" HEAD "\nmode:   observe # yes\n" ALL);
    struct linted c = lint_text(HEAD "mode: approve\n" ALL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a.policy);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b.policy);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c.policy);
    CU_ASSERT_STRING_EQUAL(a.policy->hash, b.policy->hash);
    CU_ASSERT_STRING_NOT_EQUAL(a.policy->hash, c.policy->hash);
    linted_done(&a);
    linted_done(&b);
    linted_done(&c);
}

TEST(an_enforced_rack_plan_without_a_racks_budget_is_an_error)
{
    struct linted linted = lint_text(
        HEAD "mode: enforce\nbudgets:\n  - {name: t, scope: cluster, trays: 1, window: 1h}\n"
             "rules:\n  - {name: rack, match: {scope: rack}, plan: out}\n"
             "  - {name: all, match: {}, plan: record}\n"
             "plans:\n  record: []\n  out: [cordon: {target: rack}]\n");
    CU_ASSERT_TRUE(says(&linted, "enforce-without-budget", 8));
    linted_done(&linted);
}

TEST(steps_out_of_order_and_names_used_twice_are_errors)
{
    struct linted linted = lint_text(
        HEAD "rules:\n  - {name: a, match: {kind: slow}, plan: p}\n"
             "  - {name: a, match: {}, plan: p}\n"
             "plans:\n  p:\n    - restart_job\n    - cordon\n    - verify\n    - verify\n");
    CU_ASSERT_TRUE(says(&linted, "duplicate-name", 6));
    CU_ASSERT_TRUE(says(&linted, "step-order", 10));
    CU_ASSERT_TRUE(says(&linted, "step-order", 12));
    linted_done(&linted);
}

TEST(a_missing_catch_all_is_a_warning_and_the_policy_is_usable)
{
    struct linted linted = lint_text(HEAD
                                     "rules:\n  - {name: a, match: {kind: slow}, plan: record}\n"
                                     "plans:\n  record: []\n");
    CU_ASSERT_TRUE(says(&linted, "missing-catch-all", 4));
    CU_ASSERT_EQUAL(linted.findings.errors, 0);
    CU_ASSERT_PTR_NOT_NULL(linted.policy);
    linted_done(&linted);
}

TEST(fencing_draining_and_placement_are_read_and_have_careful_defaults)
{
    struct linted said = lint_text(
        HEAD "rules:\n  - {name: all, match: {}, plan: p}\nplans:\n  p:\n    - cordon\n"
             "    - request_checkpoint\n    - drain: {timeout: 7m, on_timeout: continue}\n"
             "    - choose_spare\n    - fence: {timeout: 90s, on_timeout: continue}\n"
             "    - restart_job: {force_delete: fenced, placement: named}\n    - verify\n"
             "    - hand_over: {to: dc, uncordon: broom}\n");
    struct linted silent = lint_text(
        HEAD "rules:\n  - {name: all, match: {}, plan: p}\nplans:\n  p:\n    - cordon\n"
             "    - drain\n    - request_checkpoint\n    - fence\n    - choose_spare\n"
             "    - restart_job\n    - verify\n    - hand_over\n");
    CU_ASSERT_EQUAL(said.findings.count, 0);
    CU_ASSERT_EQUAL(silent.findings.count, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(said.policy);
    CU_ASSERT_PTR_NOT_NULL_FATAL(silent.policy);
    const struct plan_step *steps = said.policy->plans[0].steps;
    CU_ASSERT_EQUAL(steps[2].kind, STEP_DRAIN);
    CU_ASSERT_EQUAL(steps[2].timeout_ns, INT64_C(420000000000));
    CU_ASSERT_EQUAL(steps[2].on_timeout, ON_TIMEOUT_CONTINUE);
    CU_ASSERT_EQUAL(steps[4].kind, STEP_FENCE);
    CU_ASSERT_EQUAL(steps[4].timeout_ns, INT64_C(90000000000));
    CU_ASSERT_TRUE(steps[5].force_fenced && steps[5].named_only && steps[7].gives_back);
    steps = silent.policy->plans[0].steps;
    CU_ASSERT_EQUAL(steps[1].timeout_ns, INT64_C(600000000000));
    CU_ASSERT_EQUAL(steps[1].on_timeout, ON_TIMEOUT_ESCALATE);
    CU_ASSERT_EQUAL(steps[3].timeout_ns, INT64_C(300000000000));
    CU_ASSERT_EQUAL(steps[3].on_timeout, ON_TIMEOUT_ESCALATE);
    CU_ASSERT_FALSE(steps[5].force_fenced || steps[5].named_only || steps[7].gives_back);
    linted_done(&said);
    linted_done(&silent);
}

TEST(wrong_shapes_are_named_and_never_crash)
{
    static const char *const texts[] = {
        "",
        "just text\n",
        "[1, 2]\n",
        HEAD "rules: 7\nplans: []\n",
        HEAD "rules: [7]\nplans: {p: 3}\n",
        HEAD "budgets: {a: 1}\nrules: []\n",
        HEAD "rules:\n  - match: [kind]\n    plan: {a: b}\n",
        HEAD "plans: {p: [{a: 1, b: 2}, [x], bogus]}\n",
        HEAD "mode: [enforce]\nsettle: 3\ntimers: x\n",
        HEAD "budgets:\n  - {name: b, scope: moon, window: -1h, trays: many, racks: 1}\n",
        HEAD "rules:\n  - {name: r, match: {kind: [], slowdown: {}, evict: maybe}, plan: p}\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct linted linted = lint_text(texts[i]);
        CU_ASSERT_TRUE(linted.findings.errors > 0);
        CU_ASSERT_PTR_NULL(linted.policy);
        linted_done(&linted);
    }
}

TEST(what_an_earlier_file_takes_all_of_is_named_in_the_later_one)
{
    struct linted first = lint_text(HEAD ALL);
    struct linted second = lint_text(
        HEAD "rules:\n  - {name: late, match: {kind: slow}, plan: record}\nplans:\n  record: []\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(first.policy);
    CU_ASSERT_PTR_NOT_NULL_FATAL(second.policy);
    AUTO(policy_set_free) struct policy_set *set = policy_set_new();
    policy_set_add(set, TAKE(first.policy));
    policy_set_add(set, TAKE(second.policy));
    struct linted across = {0};
    policy_set_check(set, 1, &across.findings);
    CU_ASSERT_TRUE(says(&across, "hidden-rule", 5));
    linted_done(&across);
    linted_done(&first);
    linted_done(&second);
}

TESTS(T(the_shipped_policies_have_no_findings),
      T(a_file_of_mistakes_gets_each_of_them_named_at_its_place),
      T(layout_and_comments_do_not_change_the_hash_and_meaning_does),
      T(an_enforced_rack_plan_without_a_racks_budget_is_an_error),
      T(steps_out_of_order_and_names_used_twice_are_errors),
      T(a_missing_catch_all_is_a_warning_and_the_policy_is_usable),
      T(fencing_draining_and_placement_are_read_and_have_careful_defaults),
      T(wrong_shapes_are_named_and_never_crash),
      T(what_an_earlier_file_takes_all_of_is_named_in_the_later_one))
