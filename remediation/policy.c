/* Policies in use: names, matching, modes, sets. Reading them is policy_parse.c. */
#include "remediation/policy.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const char *const mode_names[] = {
    [MODE_OBSERVE] = "observe",
    [MODE_APPROVE] = "approve",
    [MODE_ENFORCE] = "enforce",
    [MODE_UNSET] = "unset",
};
_Static_assert(ARRAY_LEN(mode_names) == MODE_COUNT, "every mode has a name");

static const char *const step_names[] = {
    [STEP_NOTIFY] = "notify",
    [STEP_CAPTURE] = "capture",
    [STEP_CORDON] = "cordon",
    [STEP_DRAIN] = "drain",
    [STEP_REQUEST_CHECKPOINT] = "request_checkpoint",
    [STEP_FENCE] = "fence",
    [STEP_CHOOSE_SPARE] = "choose_spare",
    [STEP_RESTART_JOB] = "restart_job",
    [STEP_VERIFY] = "verify",
    [STEP_HAND_OVER] = "hand_over",
};
_Static_assert(ARRAY_LEN(step_names) == STEP_KIND_COUNT, "every step has a name");

/* What engine_progress calls the phases of a job. */
static const char *const job_phases[] = {"init",       "compute", "allreduce", "data",
                                         "checkpoint", "eval",    "finished"};
_Static_assert(ARRAY_LEN(job_phases) == JOB_PHASE_COUNT, "every job phase has a name");

enum { SECOND_PER_MINUTE = 60, SECOND_PER_HOUR = 3600, SECOND_PER_DAY = 86400 };
static const int64_t second_ns = 1000000000;

const char *mode_name(enum mode mode)
{
    assert(mode < MODE_COUNT);
    return mode_names[mode];
}

bool mode_parse(const char *name, enum mode *ret_mode)
{
    for (int i = 0; i < MODE_UNSET; i++)
        if (strcmp(mode_names[i], name) == 0) {
            *ret_mode = (enum mode)i;
            return true;
        }
    return false;
}

const char *step_kind_name(enum step_kind kind)
{
    assert(kind < STEP_KIND_COUNT);
    return step_names[kind];
}

bool step_kind_parse(const char *name, enum step_kind *ret_kind)
{
    for (int i = 0; i < STEP_KIND_COUNT; i++)
        if (strcmp(step_names[i], name) == 0) {
            *ret_kind = (enum step_kind)i;
            return true;
        }
    return false;
}

static bool job_phase_parse(const char *name, int *ret_index)
{
    for (int i = 0; i < JOB_PHASE_COUNT; i++)
        if (strcmp(job_phases[i], name) == 0) {
            *ret_index = i;
            return true;
        }
    return false;
}

struct policy_timers policy_timers_default(void)
{
    return (struct policy_timers){
        .settle_corroborated_ns = 10 * second_ns,
        .settle_uncorroborated_ns = SECOND_PER_MINUTE * second_ns,
        .approval_ns = SECOND_PER_HOUR * second_ns,
        .hold_ns = SECOND_PER_DAY * second_ns,
        .action_ns = 5 * SECOND_PER_MINUTE * second_ns,
        .repair_ns = 7 * SECOND_PER_DAY * second_ns,
        .validate_ns = 10 * SECOND_PER_MINUTE * second_ns,
        .watch_ns = SECOND_PER_DAY * second_ns,
        .restart_cost_ns = 2 * SECOND_PER_MINUTE * second_ns,
        .restart_stuck_ns = 15 * SECOND_PER_MINUTE * second_ns,
    };
}

void policy_free(struct policy *policy)
{
    if (policy == NULL)
        return;
    xfree(policy->budgets);
    xfree(policy->rules);
    xfree(policy->plans);
    xfree(policy);
}

struct policy_set *policy_set_new(void)
{
    return xcalloc(1, sizeof(struct policy_set));
}

void policy_set_add(struct policy_set *set, struct policy *take_policy)
{
    set->items = xrealloc(set->items, set->count + 1, sizeof *set->items);
    set->items[set->count++] = take_policy;
}

void policy_set_free(struct policy_set *set)
{
    if (set == NULL)
        return;
    for (size_t i = 0; i < set->count; i++)
        policy_free(set->items[i]);
    xfree(set->items);
    xfree(set);
}

static bool range_takes(struct range range, double value)
{
    if (!isnan(range.at_least) && !(value >= range.at_least))
        return false;
    return isnan(range.at_most) || value <= range.at_most;
}

static bool job_matches(const struct policy_rule *rule, const char *job)
{
    for (int i = 0; i < rule->job_count; i++) {
        const char *pattern = rule->jobs[i];
        size_t length = strlen(pattern);
        if (length > 0 && pattern[length - 1] == '*' ? strncmp(job, pattern, length - 1) == 0
                                                     : strcmp(job, pattern) == 0)
            return true;
    }
    return rule->job_count == 0;
}

static bool mask_takes(uint32_t mask, unsigned value)
{
    return mask == 0 || (mask >> value & 1u);
}

static bool rule_matches(const struct policy_rule *rule, const struct policy_case *item)
{
    return mask_takes(rule->kinds, item->kind) && mask_takes(rule->scopes, item->scope) &&
           mask_takes(rule->causes, item->cause) &&
           (rule->evict < 0 || rule->evict == (item->evict ? 1 : 0)) &&
           range_takes(rule->slowdown, item->slowdown) && range_takes(rule->gain, item->gain) &&
           range_takes(rule->confidence, item->confidence) &&
           range_takes(rule->repeats, (double)item->repeats) && job_matches(rule, item->job);
}

struct policy_choice policy_choose(const struct policy_set *set, const struct policy_case *item)
{
    for (size_t i = 0; set != NULL && i < set->count; i++) {
        const struct policy *policy = set->items[i];
        for (size_t j = 0; j < policy->rule_count; j++) {
            const struct policy_rule *rule = &policy->rules[j];
            if (!rule_matches(rule, item))
                continue;
            int phase;
            bool unless_holds = job_phase_parse(item->job_phase, &phase) &&
                                (rule->unless_phases >> phase & 1u);
            return (struct policy_choice){policy, rule, &policy->plans[rule->plan], unless_holds};
        }
    }
    return (struct policy_choice){0};
}

enum mode policy_mode(enum mode daemon, const struct policy *policy, const struct policy_rule *rule)
{
    /* MODE_UNSET is the largest value: it never wins against a word that was said. */
    enum mode said = policy->mode < rule->mode ? policy->mode : rule->mode;
    if (said == MODE_UNSET || daemon == MODE_UNSET)
        return MODE_OBSERVE;
    return said < daemon ? said : daemon;
}

bool plan_changes_world(const struct plan *plan)
{
    for (int i = 0; i < plan->count; i++)
        if (plan->steps[i].kind != STEP_NOTIFY && plan->steps[i].kind != STEP_CAPTURE)
            return true;
    return false;
}

bool plan_has(const struct plan *plan, enum step_kind kind)
{
    for (int i = 0; i < plan->count; i++)
        if (plan->steps[i].kind == kind)
            return true;
    return false;
}

const char *plan_step_sentence(const struct plan_step *step)
{
    switch (step->kind) {
    case STEP_NOTIFY:
        return "notify people";
    case STEP_CAPTURE:
        return "keep the raw samples round the fault";
    case STEP_CORDON:
        return step->whole_rack ? "cordon the rack" : "cordon the trays";
    case STEP_DRAIN:
        return "drain the trays of everything else";
    case STEP_REQUEST_CHECKPOINT:
        return "ask the job for a checkpoint";
    case STEP_FENCE:
        return "power the trays off";
    case STEP_CHOOSE_SPARE:
        return "promise spares";
    case STEP_RESTART_JOB:
        return "restart the job";
    case STEP_VERIFY:
        return "verify new steps at the old pace";
    case STEP_HAND_OVER:
        return "hand the hardware over";
    case STEP_KIND_COUNT:
        break;
    }
    return "do nothing";
}
