/* What makes a policy wrong although every key is right: steps out of order, rules that can never
 * match, names used twice, a rack plan that nothing bounds.
 */
#include "remediation/policy_check.h"

#include <math.h>
#include <string.h>

void policy_check_step_order(struct findings *findings, const struct tree_node *item,
                             const struct plan *plan, int index)
{
    /* Telling and looking may stand anywhere; the rest has one order. What is saved is saved before
     * the power goes. */
    static const int rank[] = {
        [STEP_NOTIFY] = 0,
        [STEP_CAPTURE] = 0,
        [STEP_CORDON] = 1,
        [STEP_DRAIN] = 2,
        [STEP_REQUEST_CHECKPOINT] = 2,
        [STEP_FENCE] = 3,
        [STEP_CHOOSE_SPARE] = 3,
        [STEP_RESTART_JOB] = 4,
        [STEP_VERIFY] = 5,
        [STEP_HAND_OVER] = 6,
    };
    enum step_kind kind = plan->steps[index].kind;
    for (int i = 0; i < index; i++) {
        enum step_kind before = plan->steps[i].kind;
        if (rank[kind] == 0)
            return;
        if (before == kind)
            findings_add(findings, true, "step-order", item->line, item->column,
                         "'%s' stands twice in plan '%s'", step_kind_name(kind), plan->name);
        else if (rank[before] > rank[kind])
            findings_add(findings, true, "step-order", item->line, item->column,
                         "'%s' must stand before '%s' in plan '%s'", step_kind_name(kind),
                         step_kind_name(before), plan->name);
        else
            continue;
        return;
    }
}

void policy_check_plan(struct findings *findings, const struct tree_node *node,
                       const struct plan *plan)
{
    bool restarts = plan_has(plan, STEP_RESTART_JOB);
    if (restarts && !plan_has(plan, STEP_VERIFY))
        findings_add(findings, true, "restart-unverified", node->key_line, node->key_column,
                     "plan '%s' restarts the job and never verifies that it makes new steps",
                     plan->name);
    if (restarts && !plan_has(plan, STEP_CHOOSE_SPARE) && plan_has(plan, STEP_CORDON))
        findings_add(
            findings, false, "no-spare-step", node->key_line, node->key_column,
            "plan '%s' cordons and restarts without choose_spare: the job may find no place",
            plan->name);
    for (int i = 0; i < plan->count; i++)
        if (plan->steps[i].named_only && !plan_has(plan, STEP_CHOOSE_SPARE))
            findings_add(findings, true, "nothing-named", node->key_line, node->key_column,
                         "plan '%s' has placement 'named' and no choose_spare that names a place",
                         plan->name);
    static const enum step_kind on_cordoned[] = {STEP_DRAIN, STEP_FENCE};
    for (size_t i = 0; i < ARRAY_LEN(on_cordoned); i++)
        if (plan_has(plan, on_cordoned[i]) && !plan_has(plan, STEP_CORDON))
            findings_add(findings, true, "not-cordoned", node->key_line, node->key_column,
                         "plan '%s' has '%s' and no cordon: what is taken off would come back",
                         plan->name, step_kind_name(on_cordoned[i]));
    if (plan_has(plan, STEP_VERIFY) && !restarts)
        findings_add(findings, true, "verify-nothing", node->key_line, node->key_column,
                     "plan '%s' verifies a restart that it does not make", plan->name);
    if (plan_has(plan, STEP_CHOOSE_SPARE) && !restarts)
        findings_add(findings, true, "spare-unused", node->key_line, node->key_column,
                     "plan '%s' promises a spare and never restarts the job onto it", plan->name);
}

void policy_check_budget(struct findings *findings, const struct tree_node *node,
                         const struct policy_budget *budget, int said)
{
    if (said != 1)
        findings_add(findings, true, "budget-unit", node->line, node->column,
                     "budget '%s' must name exactly one of trays, racks and restarts",
                     budget->name);
    if (budget->unit == BUDGET_RESTARTS && !isnan(budget->percent))
        findings_add(findings, true, "budget-percent", node->line, node->column,
                     "budget '%s': a percentage of restarts means nothing", budget->name);
    if (budget->unit == BUDGET_RACKS && budget->scope == BUDGET_RACK)
        findings_add(findings, true, "budget-scope", node->line, node->column,
                     "budget '%s': racks are counted in a cluster or a job, not in a rack",
                     budget->name);
    if (budget->unit == BUDGET_RESTARTS && budget->scope == BUDGET_RACK)
        findings_add(findings, true, "budget-scope", node->line, node->column,
                     "budget '%s': restarts are counted in a job or in the cluster", budget->name);
    if (budget->window_ns == 0)
        findings_add(findings, true, "bad-duration", node->line, node->column,
                     "budget '%s' has an empty window: it would bound nothing", budget->name);
}

static void check_budget_names(struct findings *findings, const struct tree_node *root,
                               const struct policy *policy)
{
    const struct tree_node *node = tree_get(root, "budgets");
    node = node != NULL ? node->first : NULL;
    for (size_t i = 0; i < policy->budget_count; i++, node = node->next)
        for (size_t j = 0; j < i; j++)
            if (policy->budgets[i].name[0] != '\0' &&
                strcmp(policy->budgets[i].name, policy->budgets[j].name) == 0) {
                findings_add(findings, true, "duplicate-name", node->line, node->column,
                             "two budgets are named '%s'", policy->budgets[i].name);
                break;
            }
}

static bool mask_covers(uint32_t wide, uint32_t narrow)
{
    return wide == 0 || (narrow != 0 && (narrow & ~wide) == 0);
}

static bool range_covers(struct range wide, struct range narrow)
{
    bool low = isnan(wide.at_least) || narrow.at_least >= wide.at_least;
    bool high = isnan(wide.at_most) || narrow.at_most <= wide.at_most;
    return low && high;
}

static bool jobs_cover(const struct policy_rule *wide, const struct policy_rule *narrow)
{
    if (wide->job_count == 0)
        return true;
    if (narrow->job_count == 0)
        return false;
    for (int i = 0; i < narrow->job_count; i++) {
        bool found = false;
        for (int j = 0; j < wide->job_count; j++)
            found = found || strcmp(wide->jobs[j], narrow->jobs[i]) == 0;
        if (!found)
            return false;
    }
    return true;
}

/* Whatever `narrow` matches, `wide` matches too. */
static bool rule_covers(const struct policy_rule *wide, const struct policy_rule *narrow)
{
    return mask_covers(wide->kinds, narrow->kinds) && mask_covers(wide->scopes, narrow->scopes) &&
           mask_covers(wide->causes, narrow->causes) &&
           (wide->evict < 0 || wide->evict == narrow->evict) &&
           range_covers(wide->slowdown, narrow->slowdown) &&
           range_covers(wide->gain, narrow->gain) &&
           range_covers(wide->confidence, narrow->confidence) &&
           range_covers(wide->repeats, narrow->repeats) && jobs_cover(wide, narrow);
}

static bool takes_all(const struct policy_rule *rule)
{
    struct policy_rule all = {.evict = -1,
                              .slowdown = {NAN, NAN},
                              .gain = {NAN, NAN},
                              .confidence = {NAN, NAN},
                              .repeats = {NAN, NAN}};
    return rule_covers(rule, &all);
}

static void check_rules(struct findings *findings, const struct tree_node *root,
                        const struct policy *policy)
{
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct policy_rule *rule = &policy->rules[i];
        for (size_t j = 0; j < i; j++)
            if (rule->name[0] != '\0' && strcmp(rule->name, policy->rules[j].name) == 0) {
                findings_add(findings, true, "duplicate-name", rule->line, rule->column,
                             "two rules are named '%s'", rule->name);
                break;
            }
        for (size_t j = 0; j < i; j++)
            if (rule_covers(&policy->rules[j], rule)) {
                findings_add(findings, true, "unreachable-rule", rule->line, rule->column,
                             "rule '%s' can never match: '%s' before it takes all of it",
                             rule->name, policy->rules[j].name);
                break;
            }
    }
    if (policy->rule_count == 0 || !takes_all(&policy->rules[policy->rule_count - 1])) {
        const struct tree_node *rules = tree_get(root, "rules");
        const struct tree_node *place = rules != NULL ? rules : root;
        findings_add(
            findings, false, "missing-catch-all", rules != NULL ? rules->key_line : root->line,
            rules != NULL ? rules->key_column : place->column,
            "no last rule with 'match: {}': what no rule matches is recorded without a plan");
    }
}

static bool plan_cordons_rack(const struct plan *plan)
{
    for (int i = 0; i < plan->count; i++)
        if (plan->steps[i].kind == STEP_CORDON && plan->steps[i].whole_rack)
            return true;
    return false;
}

/* In enforce mode what is taken out unasked must be bounded. */
static void check_bounds(struct findings *findings, const struct policy *policy)
{
    bool bounded[BUDGET_UNIT_COUNT] = {false};
    for (size_t i = 0; i < policy->budget_count; i++)
        bounded[policy->budgets[i].unit] = true;
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct policy_rule *rule = &policy->rules[i];
        if (rule->plan < 0)
            continue;
        const struct plan *plan = &policy->plans[rule->plan];
        bool is_rack = plan_cordons_rack(plan);
        if (policy_mode(MODE_ENFORCE, policy, rule) != MODE_ENFORCE || !plan_has(plan, STEP_CORDON))
            continue;
        if (!bounded[is_rack ? BUDGET_RACKS : BUDGET_TRAYS])
            findings_add(findings, true, "enforce-without-budget", rule->line, rule->column,
                         "rule '%s' cordons %s unasked and no budget counts %s", rule->name,
                         is_rack ? "a rack" : "trays", is_rack ? "racks" : "trays");
    }
}

static void check_plan_use(struct findings *findings, const struct tree_node *root,
                           const struct policy *policy)
{
    const struct tree_node *node = tree_get(root, "plans");
    if (node == NULL || node->kind != TREE_MAPPING)
        return;
    node = node->first;
    for (size_t i = 0; i < policy->plan_count; i++, node = node->next) {
        bool used = false;
        for (size_t j = 0; j < policy->rule_count; j++) /* a misspelt plan was reported already */
            used = used || policy->rules[j].plan == (int)i || policy->rules[j].plan < 0;
        if (!used)
            findings_add(findings, false, "unused-plan", node->key_line, node->key_column,
                         "no rule uses plan '%s'", policy->plans[i].name);
    }
}

void policy_check_whole(struct findings *findings, const struct tree_node *root,
                        const struct policy *policy)
{
    check_budget_names(findings, root, policy);
    check_rules(findings, root, policy);
    check_bounds(findings, policy);
    check_plan_use(findings, root, policy);
}

void policy_set_check(const struct policy_set *set, size_t index, struct findings *findings)
{
    for (size_t i = 0; i < index; i++)
        for (size_t j = 0; j < set->items[i]->rule_count; j++) {
            const struct policy_rule *hiding = &set->items[i]->rules[j];
            for (size_t k = 0; k < set->items[index]->rule_count; k++) {
                const struct policy_rule *rule = &set->items[index]->rules[k];
                if (rule_covers(hiding, rule))
                    findings_add(
                        findings, false, "hidden-rule", rule->line, rule->column,
                        "rule '%s' can never match: '%s' of policy '%s' takes all of it first",
                        rule->name, hiding->name, set->items[i]->name);
            }
        }
}
