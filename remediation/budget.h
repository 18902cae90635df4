/* What may still be taken out: counted over the incidents themselves, so that nothing can be
 * forgotten in a restart. A rack plan spends the racks budgets only; a limit is the smaller of
 * count and percent and never below one.
 */
#ifndef BROOM_REMEDIATION_BUDGET_H
#define BROOM_REMEDIATION_BUDGET_H

#include "remediation/incident.h"
#include "remediation/world_view.h"

struct budget_view {
    const struct policy_set *policies;
    struct incident *const *incidents;
    size_t incident_count;
    const struct world_view *world;
    size_t job_trays; /* trays that hold ranks of this incident's job; 0 unknown */
    int64_t now_ns;
};

/* True when `incident` may spend `unit` now; else `reason` says which budget is spent and until
 * when. */
bool budget_allows(const struct budget_view *view, const struct incident *incident,
                   enum budget_unit unit, char *reason, size_t bytes);

/* What is spent of a budget of the whole cluster now, and of how much. The world tells the
 * population. */
struct budget_use {
    const char *policy, *name; /* borrowed from the policies */
    enum budget_unit unit;
    int64_t used, limit, window_ns;
};
struct budget_use budget_use(const struct budget_view *view, const struct policy *policy,
                             const struct policy_budget *budget);
const char *budget_unit_name(enum budget_unit unit); /* trays, racks, restarts */

/* The limit of one budget for a population (0: unknown). At least 1. */
int64_t budget_limit(const struct policy_budget *budget, size_t population);

#endif
