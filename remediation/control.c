/* What the daemon asks beside incidents: a mode that changes while some are open, and what is left
 * of the budgets. */
#include "remediation/core_state.h"

struct policy_set *remediation_give_policies(struct remediation *core)
{
    return TAKE(core->policies);
}

void remediation_set_mode(struct remediation *core, enum mode mode, int64_t now_ns)
{
    core->daemon_mode = mode == MODE_UNSET ? MODE_OBSERVE : mode;
    for (size_t i = 0; i < core->incident_count; i++) {
        struct incident *incident = core->incidents[i];
        if (incident_has_ended(incident) || incident->mode <= core->daemon_mode)
            continue;
        incident->mode = core->daemon_mode;
        incident->dirty = true;
    }
    remediation_tick(core, now_ns);
}

size_t remediation_budgets(const struct remediation *core, int64_t now_ns,
                           struct budget_use *ret_uses, size_t most)
{
    struct budget_view view = {
        core->policies, core->incidents, core->incident_count, &core->world, 0, now_ns};
    size_t count = 0;
    for (size_t p = 0; core->policies != NULL && p < core->policies->count; p++) {
        const struct policy *policy = core->policies->items[p];
        for (size_t b = 0; b < policy->budget_count && count < most; b++)
            if (policy->budgets[b].scope == BUDGET_CLUSTER)
                ret_uses[count++] = budget_use(&view, policy, &policy->budgets[b]);
    }
    return count;
}
