/* A policy file's tree -> struct policy, naming every mistake at its place. What a key may hold is
 * said once, next to the key; checks over the whole file (order, reach, budgets) are in
 * policy_check.c.
 */
#include "remediation/policy_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void complain(struct findings *findings, const struct tree_node *node, const char *rule,
                     const char *message)
{
    findings_add(findings, true, rule, node->line, node->column, "%s", message);
}

/* Adds "; did you mean 'x'?" where a near name is there. */
static void complain_near(struct findings *findings, int line, int column, const char *rule,
                          const char *what, const char *word, const char *const *names,
                          size_t count)
{
    const char *near = text_nearest(word, names, count);
    if (near != NULL)
        findings_add(findings, true, rule, line, column, "unknown %s '%s'; did you mean '%s'?",
                     what, word, near);
    else
        findings_add(findings, true, rule, line, column, "unknown %s '%s'", what, word);
}

/* True when node is a mapping; every key that is not in the list is a finding. */
static bool check_mapping(struct findings *findings, const struct tree_node *node, const char *what,
                          const char *const *keys, size_t count)
{
    if (node->kind != TREE_MAPPING) {
        findings_add(findings, true, "wrong-type", node->line, node->column,
                     "%s must be a mapping of keys to values", what);
        return false;
    }
    for (const struct tree_node *member = node->first; member != NULL; member = member->next) {
        bool known = false;
        for (size_t i = 0; i < count; i++)
            known = known || strcmp(keys[i], member->key) == 0;
        if (!known)
            complain_near(findings, member->key_line, member->key_column, "unknown-key", "key",
                          member->key, keys, count);
    }
    return true;
}

static const char *scalar_of(struct findings *findings, const struct tree_node *node)
{
    if (node == NULL)
        return NULL;
    if (node->kind == TREE_SCALAR)
        return node->scalar;
    findings_add(findings, true, "wrong-type", node->line, node->column, "'%s' must be one value",
                 node->key != NULL ? node->key : "item");
    return NULL;
}

static void read_text(struct findings *findings, const struct tree_node *node, char *buffer,
                      size_t bytes)
{
    const char *scalar = scalar_of(findings, node);
    if (scalar != NULL && !text_copy(buffer, bytes, scalar))
        findings_add(findings, true, "too-long", node->line, node->column,
                     "longer than %zu characters", bytes - 1);
}

/* Index of the scalar in names, or -1 with a finding; `absent` when node is missing. */
static int read_name(struct findings *findings, const struct tree_node *node, const char *what,
                     const char *const *names, size_t count, int absent)
{
    const char *scalar = scalar_of(findings, node);
    if (scalar == NULL)
        return absent;
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], scalar) == 0)
            return (int)i;
    complain_near(findings, node->line, node->column, "unknown-value", what, scalar, names, count);
    return -1;
}

static void read_duration(struct findings *findings, const struct tree_node *node,
                          int64_t *value_ns)
{
    const char *scalar = scalar_of(findings, node);
    int64_t parsed;
    if (scalar == NULL)
        return;
    if (!text_parse_duration(view_of(scalar), &parsed))
        findings_add(findings, true, "bad-duration", node->line, node->column,
                     "'%s' is no duration; write it with a unit, such as 90s, 10m or 1h30m",
                     scalar);
    else
        *value_ns = parsed;
}

static void read_int(struct findings *findings, const struct tree_node *node, int64_t least,
                     int64_t most, int64_t *value)
{
    const char *scalar = scalar_of(findings, node);
    int64_t parsed;
    if (scalar == NULL)
        return;
    if (!text_parse_int(view_of(scalar), &parsed) || parsed < least || parsed > most)
        findings_add(findings, true, "bad-number", node->line, node->column,
                     "'%s' must be a whole number from %" PRId64 " to %" PRId64, scalar, least,
                     most);
    else
        *value = parsed;
}

static void read_number(struct findings *findings, const struct tree_node *node, double least,
                        double most, double *value)
{
    const char *scalar = scalar_of(findings, node);
    double parsed;
    if (scalar == NULL)
        return;
    if (!text_parse_number(view_of(scalar), &parsed) || parsed < least || parsed > most)
        findings_add(findings, true, "bad-number", node->line, node->column,
                     "'%s' must be a number from %g to %g", scalar, least, most);
    else
        *value = parsed;
}

static int read_bool(struct findings *findings, const struct tree_node *node, int absent)
{
    static const char *const words[] = {"false", "true"};
    return read_name(findings, node, "truth value", words, ARRAY_LEN(words), absent);
}

static enum mode read_mode(struct findings *findings, const struct tree_node *node)
{
    static const char *const names[] = {"observe", "approve", "enforce"};
    int index = read_name(findings, node, "mode", names, ARRAY_LEN(names), MODE_UNSET);
    return index < 0 ? MODE_OBSERVE : (enum mode)index;
}

/* One name or a list of names -> bits; 0 when the node is missing. */
static uint32_t read_mask(struct findings *findings, const struct tree_node *node, const char *what,
                          const char *const *names, size_t count)
{
    uint32_t mask = 0;
    if (node == NULL)
        return 0;
    if (node->kind == TREE_MAPPING) {
        findings_add(findings, true, "wrong-type", node->line, node->column,
                     "%s must be one name or a list of names", what);
        return 0;
    }
    const struct tree_node *item = node->kind == TREE_SEQUENCE ? node->first : node;
    if (item == NULL)
        findings_add(findings, true, "empty-list", node->line, node->column,
                     "an empty list of %ss matches nothing", what);
    for (; item != NULL; item = node->kind == TREE_SEQUENCE ? item->next : NULL) {
        int index = read_name(findings, item, what, names, count, -1);
        if (index >= 0)
            mask |= 1u << index;
    }
    /* A list of nothing but mistakes must not read as "any" in the checks that follow. */
    return mask != 0 ? mask : 1u << 31;
}

static struct range read_range(struct findings *findings, const struct tree_node *node,
                               double least, double most)
{
    static const char *const keys[] = {"at_least", "at_most"};
    struct range range = {NAN, NAN};
    if (node == NULL || !check_mapping(findings, node, "a bound", keys, ARRAY_LEN(keys)))
        return range;
    read_number(findings, tree_get(node, "at_least"), least, most, &range.at_least);
    read_number(findings, tree_get(node, "at_most"), least, most, &range.at_most);
    if (isnan(range.at_least) && isnan(range.at_most) && node->size == 0)
        complain(findings, node, "empty-bound", "a bound needs at_least or at_most");
    if (range.at_least > range.at_most)
        complain(findings, node, "empty-bound", "at_least is above at_most: nothing can match");
    return range;
}

static void read_jobs(struct findings *findings, const struct tree_node *node,
                      struct policy_rule *rule)
{
    if (node == NULL)
        return;
    const struct tree_node *item = node->kind == TREE_SEQUENCE ? node->first : node;
    for (; item != NULL; item = node->kind == TREE_SEQUENCE ? item->next : NULL) {
        if (rule->job_count == MATCH_JOBS_MAX) {
            findings_add(findings, true, "too-many", item->line, item->column,
                         "more than %d jobs in one rule", MATCH_JOBS_MAX);
            return;
        }
        read_text(findings, item, rule->jobs[rule->job_count], sizeof rule->jobs[0]);
        rule->job_count++;
    }
}

static void read_match(struct findings *findings, const struct tree_node *node,
                       struct policy_rule *rule)
{
    static const char *const keys[] = {"kind", "scope",      "cause",   "evict", "slowdown",
                                       "gain", "confidence", "repeats", "job"};
    const char *kinds[VERDICT_KIND_COUNT], *scopes[SCOPE_COUNT], *causes[CAUSE_COUNT];
    for (int i = 0; i < VERDICT_KIND_COUNT; i++)
        kinds[i] = verdict_kind_name((enum verdict_kind)i);
    for (int i = 0; i < SCOPE_COUNT; i++)
        scopes[i] = scope_name((enum scope)i);
    for (int i = 0; i < CAUSE_COUNT; i++)
        causes[i] = cause_name((enum cause)i);
    if (!check_mapping(findings, node, "match", keys, ARRAY_LEN(keys)))
        return;
    rule->kinds = read_mask(findings, tree_get(node, "kind"), "kind", kinds, VERDICT_KIND_COUNT);
    rule->scopes = read_mask(findings, tree_get(node, "scope"), "scope", scopes, SCOPE_COUNT);
    rule->causes = read_mask(findings, tree_get(node, "cause"), "cause", causes, CAUSE_COUNT);
    rule->evict = read_bool(findings, tree_get(node, "evict"), -1);
    rule->slowdown = read_range(findings, tree_get(node, "slowdown"), 0, 1e6);
    rule->gain = read_range(findings, tree_get(node, "gain"), 0, 1);
    rule->confidence = read_range(findings, tree_get(node, "confidence"), 0, 1);
    rule->repeats = read_range(findings, tree_get(node, "repeats"), 1, 1e6);
    read_jobs(findings, tree_get(node, "job"), rule);
}

static void read_unless(struct findings *findings, const struct tree_node *node,
                        struct policy_rule *rule)
{
    static const char *const keys[] = {"phase"};
    static const char *const phases[] = {"init",       "compute", "allreduce", "data",
                                         "checkpoint", "eval",    "finished"};
    if (node != NULL && check_mapping(findings, node, "unless", keys, ARRAY_LEN(keys)))
        rule->unless_phases = read_mask(findings, tree_get(node, "phase"), "phase", phases,
                                        ARRAY_LEN(phases));
}

static int read_severity(struct findings *findings, const struct tree_node *node)
{
    static const char *const names[] = {"P0", "P1", "P2", "P3", "P4"};
    return read_name(findings, node, "severity", names, ARRAY_LEN(names), SEVERITY_UNSET);
}

static int find_plan(const struct policy *policy, const char *name)
{
    for (size_t i = 0; i < policy->plan_count; i++)
        if (strcmp(policy->plans[i].name, name) == 0)
            return (int)i;
    return -1;
}

static void read_plan_name(struct findings *findings, const struct policy *policy,
                           const struct tree_node *node, struct policy_rule *rule)
{
    const char *const *names;
    const char *scalar = scalar_of(findings, node);
    if (scalar == NULL)
        return;
    rule->plan = find_plan(policy, scalar);
    if (rule->plan >= 0)
        return;
    AUTO_FREE const char **list = xcalloc(policy->plan_count + 1, sizeof *list);
    for (size_t i = 0; i < policy->plan_count; i++)
        list[i] = policy->plans[i].name;
    names = list;
    complain_near(findings, node->line, node->column, "unknown-plan", "plan", scalar, names,
                  policy->plan_count);
}

static void need_key(struct findings *findings, const struct tree_node *node, const char *what,
                     const char *key)
{
    if (tree_get(node, key) == NULL)
        findings_add(findings, true, "missing-key", node->line, node->column, "%s needs '%s'", what,
                     key);
}

static void read_rule(struct findings *findings, const struct tree_node *node,
                      const struct policy *policy, struct policy_rule *rule)
{
    static const char *const keys[] = {"name",     "match", "unless", "for",
                                       "severity", "mode",  "plan"};
    *rule = (struct policy_rule){.evict = -1,
                                 .severity = SEVERITY_UNSET,
                                 .mode = MODE_UNSET,
                                 .plan = -1,
                                 .line = node->line,
                                 .column = node->column};
    rule->slowdown = rule->gain = rule->confidence = rule->repeats = (struct range){NAN, NAN};
    if (!check_mapping(findings, node, "a rule", keys, ARRAY_LEN(keys)))
        return;
    need_key(findings, node, "a rule", "name");
    need_key(findings, node, "a rule", "match");
    need_key(findings, node, "a rule", "plan");
    read_text(findings, tree_get(node, "name"), rule->name, sizeof rule->name);
    if (tree_get(node, "match") != NULL)
        read_match(findings, tree_get(node, "match"), rule);
    read_unless(findings, tree_get(node, "unless"), rule);
    read_duration(findings, tree_get(node, "for"), &rule->for_ns);
    rule->severity = read_severity(findings, tree_get(node, "severity"));
    rule->mode = read_mode(findings, tree_get(node, "mode"));
    read_plan_name(findings, policy, tree_get(node, "plan"), rule);
}

static const char *const timeout_names[] = {"escalate", "continue"};

static void read_prefer(struct findings *findings, const struct tree_node *node,
                        struct plan_step *step)
{
    static const char *const names[] = {"same_nvlink_domain", "spare_rack"};
    if (node == NULL)
        return;
    step->prefer_count = 0;
    const struct tree_node *item = node->kind == TREE_SEQUENCE ? node->first : node;
    for (; item != NULL; item = node->kind == TREE_SEQUENCE ? item->next : NULL) {
        int index = read_name(findings, item, "source of spares", names, ARRAY_LEN(names), -1);
        if (index >= 0 && step->prefer_count < SPARE_SOURCE_COUNT)
            step->prefer[step->prefer_count++] = (enum spare_source)index;
    }
    if (step->prefer_count == 0)
        complain(findings, node, "empty-list", "prefer must name at least one source of spares");
}

/* Arguments by step kind; what the file does not say keeps its default. */
static struct plan_step step_default(enum step_kind kind)
{
    const int64_t minute_ns = 60ll * 1000000000ll;
    struct plan_step step = {
        .kind = kind, .hold_on_none = true, .new_steps = 20, .pace_within = 1.10};
    text_copy(step.severity, sizeof step.severity, "warning");
    text_copy(step.to, sizeof step.to, "hardware");
    step.before_ns = 10 * minute_ns;
    step.after_ns = 2 * minute_ns;
    step.prefer[0] = SPARE_SAME_NVLINK_DOMAIN;
    step.prefer[1] = SPARE_RACK;
    step.prefer_count = 2;
    if (kind == STEP_REQUEST_CHECKPOINT || kind == STEP_FENCE)
        step.timeout_ns = 5 * minute_ns;
    else if (kind == STEP_RESTART_JOB || kind == STEP_DRAIN)
        step.timeout_ns = 10 * minute_ns;
    else if (kind == STEP_VERIFY)
        step.timeout_ns = 30 * minute_ns;
    if (kind == STEP_REQUEST_CHECKPOINT)
        step.on_timeout = ON_TIMEOUT_CONTINUE;
    return step;
}

static void read_timeout(struct findings *findings, const struct tree_node *node,
                         struct plan_step *step)
{
    read_duration(findings, tree_get(node, "timeout"), &step->timeout_ns);
    int index = read_name(findings, tree_get(node, "on_timeout"), "way on after a time-out",
                          timeout_names, ARRAY_LEN(timeout_names), (int)step->on_timeout);
    step->on_timeout = index == ON_TIMEOUT_CONTINUE ? ON_TIMEOUT_CONTINUE : ON_TIMEOUT_ESCALATE;
    const struct tree_node *said = tree_get(node, "on_timeout");
    bool may_continue = step->kind == STEP_REQUEST_CHECKPOINT || step->kind == STEP_DRAIN ||
                        step->kind == STEP_FENCE;
    if (said != NULL && step->on_timeout == ON_TIMEOUT_CONTINUE && !may_continue)
        complain(
            findings, said, "unsafe-continue",
            "only request_checkpoint, drain and fence may continue after a time-out; this must "
            "escalate");
}

static void read_step_arguments(struct findings *findings, const struct tree_node *node,
                                struct plan_step *step)
{
    static const char *const severities[] = {"info", "warning", "critical"};
    static const char *const targets[] = {"trays", "rack"};
    static const char *const on_none[] = {"escalate", "hold"};
    static const char *const force_deletes[] = {"never", "fenced"};
    static const char *const placements[] = {"scheduler", "named"};
    static const char *const uncordons[] = {"person", "broom"};
    switch (step->kind) {
    case STEP_NOTIFY: {
        int index = read_name(findings, tree_get(node, "severity"), "severity", severities,
                              ARRAY_LEN(severities), 1);
        text_copy(step->severity, sizeof step->severity, severities[index < 0 ? 1 : index]);
        break;
    }
    case STEP_CAPTURE:
        read_duration(findings, tree_get(node, "before"), &step->before_ns);
        read_duration(findings, tree_get(node, "after"), &step->after_ns);
        break;
    case STEP_CORDON:
        step->whole_rack = read_name(findings, tree_get(node, "target"), "target", targets,
                                     ARRAY_LEN(targets), 0) == 1;
        break;
    case STEP_CHOOSE_SPARE:
        read_prefer(findings, tree_get(node, "prefer"), step);
        step->hold_on_none = read_name(findings, tree_get(node, "on_none"),
                                       "way on without a spare", on_none, ARRAY_LEN(on_none),
                                       1) == 1;
        break;
    case STEP_DRAIN:
    case STEP_REQUEST_CHECKPOINT:
    case STEP_FENCE:
        read_timeout(findings, node, step);
        break;
    case STEP_RESTART_JOB:
        read_timeout(findings, node, step);
        step->force_fenced = read_name(findings, tree_get(node, "force_delete"), "force_delete",
                                       force_deletes, ARRAY_LEN(force_deletes), 0) == 1;
        step->named_only = read_name(findings, tree_get(node, "placement"), "placement", placements,
                                     ARRAY_LEN(placements), 0) == 1;
        break;
    case STEP_VERIFY:
        read_timeout(findings, node, step);
        read_int(findings, tree_get(node, "new_steps"), 1, 1000000, &step->new_steps);
        read_number(findings, tree_get(node, "pace_within"), 1, 100, &step->pace_within);
        break;
    case STEP_HAND_OVER:
        read_text(findings, tree_get(node, "to"), step->to, sizeof step->to);
        step->gives_back = read_name(findings, tree_get(node, "uncordon"), "uncordon", uncordons,
                                     ARRAY_LEN(uncordons), 0) == 1;
        break;
    case STEP_KIND_COUNT:
        break;
    }
}

static void check_step_keys(struct findings *findings, const struct tree_node *node,
                            enum step_kind kind)
{
    static const char
        *const notify[] = {"severity"},
               *const capture[] = {"before", "after"}, *const cordon[] = {"target"},
               *const timed[] = {"timeout", "on_timeout"}, *const spare[] = {"prefer", "on_none"},
               *const hand_over[] = {"to", "uncordon"},
               *const restart[] = {"timeout", "on_timeout", "force_delete", "placement"},
               *const verify[] = {"new_steps", "pace_within", "timeout", "on_timeout"};
    static const struct {
        const char *const *keys;
        size_t count;
    } by_kind[] = {
        [STEP_NOTIFY] = {notify, ARRAY_LEN(notify)},
        [STEP_CAPTURE] = {capture, ARRAY_LEN(capture)},
        [STEP_CORDON] = {cordon, ARRAY_LEN(cordon)},
        [STEP_DRAIN] = {timed, ARRAY_LEN(timed)},
        [STEP_REQUEST_CHECKPOINT] = {timed, ARRAY_LEN(timed)},
        [STEP_FENCE] = {timed, ARRAY_LEN(timed)},
        [STEP_CHOOSE_SPARE] = {spare, ARRAY_LEN(spare)},
        [STEP_RESTART_JOB] = {restart, ARRAY_LEN(restart)},
        [STEP_VERIFY] = {verify, ARRAY_LEN(verify)},
        [STEP_HAND_OVER] = {hand_over, ARRAY_LEN(hand_over)},
    };
    check_mapping(findings, node, step_kind_name(kind), by_kind[kind].keys, by_kind[kind].count);
}

/* `- cordon: {target: rack}` or, with nothing to say, `- restart_job`. */
static bool read_step(struct findings *findings, const struct tree_node *node,
                      struct plan_step *step)
{
    const char *names[STEP_KIND_COUNT];
    for (int i = 0; i < STEP_KIND_COUNT; i++)
        names[i] = step_kind_name((enum step_kind)i);
    bool is_mapping = node->kind == TREE_MAPPING && node->size == 1;
    if (!is_mapping && node->kind != TREE_SCALAR) {
        complain(findings, node, "wrong-type", "a step is one name with its arguments");
        return false;
    }
    const char *name = is_mapping ? node->first->key : node->scalar;
    int line = is_mapping ? node->first->key_line : node->line;
    int column = is_mapping ? node->first->key_column : node->column;
    enum step_kind kind;
    if (!step_kind_parse(name, &kind)) {
        complain_near(findings, line, column, "unknown-step", "step", name, names, STEP_KIND_COUNT);
        return false;
    }
    *step = step_default(kind);
    bool says_nothing = !is_mapping ||
                        (node->first->kind == TREE_SCALAR && node->first->scalar[0] == '\0');
    if (!says_nothing) {
        check_step_keys(findings, node->first, kind);
        read_step_arguments(findings, node->first, step);
    }
    return true;
}

static void read_plan(struct findings *findings, const struct tree_node *node, struct plan *plan)
{
    *plan = (struct plan){0};
    if (!text_copy(plan->name, sizeof plan->name, node->key))
        findings_add(findings, true, "too-long", node->key_line, node->key_column,
                     "longer than %d characters", POLICY_NAME_BYTES - 1);
    if (node->kind != TREE_SEQUENCE) {
        complain(findings, node, "wrong-type", "a plan is a list of steps ([] for none)");
        return;
    }
    for (const struct tree_node *item = node->first; item != NULL; item = item->next) {
        if (plan->count == PLAN_STEPS_MAX) {
            findings_add(findings, true, "too-many", item->line, item->column,
                         "more than %d steps in one plan", PLAN_STEPS_MAX);
            return;
        }
        if (read_step(findings, item, &plan->steps[plan->count])) {
            policy_check_step_order(findings, item, plan, plan->count);
            plan->count++;
        }
    }
    policy_check_plan(findings, node, plan);
}

static void read_budget(struct findings *findings, const struct tree_node *node,
                        struct policy_budget *budget)
{
    static const char *const keys[] = {"name",     "scope",   "trays", "racks",
                                       "restarts", "percent", "window"};
    static const char *const scopes[] = {"cluster", "rack", "job"};
    static const char *const units[] = {"trays", "racks", "restarts"};
    *budget = (struct policy_budget){.count = -1, .percent = NAN, .window_ns = -1};
    if (!check_mapping(findings, node, "a budget", keys, ARRAY_LEN(keys)))
        return;
    need_key(findings, node, "a budget", "name");
    need_key(findings, node, "a budget", "scope");
    need_key(findings, node, "a budget", "window");
    read_text(findings, tree_get(node, "name"), budget->name, sizeof budget->name);
    int scope = read_name(findings, tree_get(node, "scope"), "scope", scopes, ARRAY_LEN(scopes), 0);
    budget->scope = scope < 0 ? BUDGET_CLUSTER : (enum budget_scope)scope;
    read_duration(findings, tree_get(node, "window"), &budget->window_ns);
    read_number(findings, tree_get(node, "percent"), 0, 100, &budget->percent);
    int said = 0;
    for (int i = 0; i < BUDGET_UNIT_COUNT; i++) {
        const struct tree_node *count = tree_get(node, units[i]);
        if (count == NULL)
            continue;
        said++;
        budget->unit = (enum budget_unit)i;
        read_int(findings, count, 0, 1000000, &budget->count);
    }
    policy_check_budget(findings, node, budget, said);
}

static void read_timers(struct findings *findings, const struct tree_node *root,
                        struct policy_timers *timers)
{
    static const char *const settle_keys[] = {"corroborated", "uncorroborated"};
    static const char *const keys[] = {"approval", "hold",  "action",       "repair",
                                       "validate", "watch", "restart_cost", "restart_stuck"};
    const struct tree_node *settle = tree_get(root, "settle");
    if (settle != NULL &&
        check_mapping(findings, settle, "settle", settle_keys, ARRAY_LEN(settle_keys))) {
        read_duration(findings, tree_get(settle, "corroborated"), &timers->settle_corroborated_ns);
        read_duration(findings, tree_get(settle, "uncorroborated"),
                      &timers->settle_uncorroborated_ns);
    }
    const struct tree_node *node = tree_get(root, "timers");
    if (node == NULL || !check_mapping(findings, node, "timers", keys, ARRAY_LEN(keys)))
        return;
    read_duration(findings, tree_get(node, "approval"), &timers->approval_ns);
    read_duration(findings, tree_get(node, "hold"), &timers->hold_ns);
    read_duration(findings, tree_get(node, "action"), &timers->action_ns);
    read_duration(findings, tree_get(node, "repair"), &timers->repair_ns);
    read_duration(findings, tree_get(node, "validate"), &timers->validate_ns);
    read_duration(findings, tree_get(node, "watch"), &timers->watch_ns);
    read_duration(findings, tree_get(node, "restart_cost"), &timers->restart_cost_ns);
    read_duration(findings, tree_get(node, "restart_stuck"), &timers->restart_stuck_ns);
}

static void read_metadata(struct findings *findings, const struct tree_node *root,
                          struct policy *policy)
{
    static const char *const keys[] = {"name", "owner"};
    static const char *const versions[] = {"broomwagon.io/v1"}, *const kinds[] = {
                                                                    "RemediationPolicy"};
    need_key(findings, root, "a policy", "apiVersion");
    need_key(findings, root, "a policy", "kind");
    need_key(findings, root, "a policy", "metadata");
    read_name(findings, tree_get(root, "apiVersion"), "apiVersion", versions, 1, 0);
    read_name(findings, tree_get(root, "kind"), "kind", kinds, 1, 0);
    const struct tree_node *metadata = tree_get(root, "metadata");
    if (metadata == NULL || !check_mapping(findings, metadata, "metadata", keys, ARRAY_LEN(keys)))
        return;
    need_key(findings, metadata, "metadata", "name");
    read_text(findings, tree_get(metadata, "name"), policy->name, sizeof policy->name);
    read_text(findings, tree_get(metadata, "owner"), policy->owner, sizeof policy->owner);
}

/* The sequence under key, or NULL (with a finding when it is something else). */
static const struct tree_node *list_of(struct findings *findings, const struct tree_node *root,
                                       const char *key)
{
    const struct tree_node *node = tree_get(root, key);
    if (node == NULL || node->kind == TREE_SEQUENCE)
        return node;
    findings_add(findings, true, "wrong-type", node->line, node->column, "'%s' must be a list",
                 key);
    return NULL;
}

static void read_plans(struct findings *findings, const struct tree_node *root,
                       struct policy *policy)
{
    const struct tree_node *node = tree_get(root, "plans");
    if (node == NULL)
        return;
    if (node->kind != TREE_MAPPING) {
        complain(findings, node, "wrong-type",
                 "plans must be a mapping of names to lists of steps");
        return;
    }
    policy->plans = xcalloc(node->size + 1, sizeof *policy->plans);
    for (const struct tree_node *item = node->first; item != NULL; item = item->next)
        read_plan(findings, item, &policy->plans[policy->plan_count++]);
}

static void read_budgets(struct findings *findings, const struct tree_node *root,
                         struct policy *policy)
{
    const struct tree_node *node = list_of(findings, root, "budgets");
    if (node == NULL)
        return;
    policy->budgets = xcalloc(node->size + 1, sizeof *policy->budgets);
    for (const struct tree_node *item = node->first; item != NULL; item = item->next)
        read_budget(findings, item, &policy->budgets[policy->budget_count++]);
}

static void read_rules(struct findings *findings, const struct tree_node *root,
                       struct policy *policy)
{
    const struct tree_node *node = list_of(findings, root, "rules");
    if (node == NULL)
        return;
    policy->rules = xcalloc(node->size + 1, sizeof *policy->rules);
    for (const struct tree_node *item = node->first; item != NULL; item = item->next)
        read_rule(findings, item, policy, &policy->rules[policy->rule_count++]);
}

static uint64_t hash_bytes(uint64_t hash, const char *text)
{
    const uint64_t prime = 0x100000001b3ull;
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * prime;
    return (hash ^ 0xffu) * prime;
}

/* Keys and values in file order: comments and layout do not change a policy. */
static uint64_t hash_tree(uint64_t hash, const struct tree_node *node)
{
    static const char *const kinds[] = {
        [TREE_SCALAR] = "s", [TREE_SEQUENCE] = "l", [TREE_MAPPING] = "m"};
    hash = hash_bytes(hash, kinds[node->kind]);
    if (node->key != NULL)
        hash = hash_bytes(hash, node->key);
    if (node->kind == TREE_SCALAR)
        hash = hash_bytes(hash, node->scalar);
    for (const struct tree_node *child = node->first; child != NULL; child = child->next)
        hash = hash_tree(hash, child);
    return hash_bytes(hash, "e");
}

enum status policy_parse(const struct tree_node *root, struct findings *findings,
                         struct policy **ret_policy)
{
    static const char *const keys[] = {"apiVersion", "kind",    "metadata", "mode", "settle",
                                       "timers",     "budgets", "rules",    "plans"};
    size_t errors = findings->errors;
    if (root == NULL) {
        findings_add(findings, true, "empty-file", 1, 1, "the file holds no policy");
        return ERR_INVALID;
    }
    if (!check_mapping(findings, root, "a policy", keys, ARRAY_LEN(keys)))
        return ERR_INVALID;
    AUTO(policy_free) struct policy *policy = xcalloc(1, sizeof *policy);
    policy->timers = policy_timers_default();
    read_metadata(findings, root, policy);
    policy->mode = read_mode(findings, tree_get(root, "mode"));
    read_timers(findings, root, &policy->timers);
    read_budgets(findings, root, policy);
    read_plans(findings, root, policy);
    read_rules(findings, root, policy);
    policy_check_whole(findings, root, policy);
    snprintf(policy->hash, sizeof policy->hash, "%016" PRIx64,
             hash_tree(0xcbf29ce484222325ull, root));
    if (findings->errors > errors)
        return ERR_INVALID;
    *ret_policy = TAKE(policy);
    return OK;
}
