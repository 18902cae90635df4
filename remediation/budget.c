/* Budgets: see budget.h. */
#include "remediation/budget.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int64_t budget_limit(const struct policy_budget *budget, size_t population)
{
    int64_t limit = INT64_MAX;
    if (budget->count >= 0)
        limit = budget->count;
    if (!isnan(budget->percent)) {
        int64_t part = (int64_t)(budget->percent * (double)population / 100.0);
        limit = part < limit ? part : limit;
    }
    return limit < 1 ? 1 : limit;
}

static bool node_counts(const struct incident_node *node, const char *rack)
{
    return !node->was_cordoned && (rack == NULL || strcmp(node->rack, rack) == 0);
}

static int64_t count_nodes(const struct incident *incident, const char *rack)
{
    int64_t count = 0;
    for (size_t i = 0; i < incident->node_count; i++)
        count += node_counts(&incident->nodes[i], rack) ? 1 : 0;
    return count;
}

static int64_t count_racks(const struct incident *incident)
{
    int64_t count = 0;
    for (size_t i = 0; i < incident->node_count; i++) {
        bool seen = false;
        for (size_t j = 0; j < i; j++)
            seen = seen || strcmp(incident->nodes[i].rack, incident->nodes[j].rack) == 0;
        count += seen ? 0 : 1;
    }
    return count;
}

/* What one incident has spent, or would spend, of a unit; only nodes of `rack` when it is not NULL.
 */
static int64_t units_of(const struct incident *incident, enum budget_unit unit, const char *rack)
{
    switch (unit) {
    case BUDGET_TRAYS:
        return count_nodes(incident, rack);
    case BUDGET_RACKS:
        return count_racks(incident);
    case BUDGET_RESTARTS:
        return 1;
    case BUDGET_UNIT_COUNT:
        break;
    }
    return 0;
}

/* When the incident spent of this unit; 0: it did not. */
static int64_t spent_at(const struct incident *incident, enum budget_unit unit)
{
    switch (unit) {
    case BUDGET_TRAYS:
        return incident->spent_rack ? 0 : incident->nodes_spent_ns;
    case BUDGET_RACKS:
        return incident->spent_rack ? incident->nodes_spent_ns : 0;
    case BUDGET_RESTARTS:
        return incident->restart_started_ns;
    case BUDGET_UNIT_COUNT:
        break;
    }
    return 0;
}

static int64_t used_of(const struct budget_view *view, const struct incident *asking,
                       const struct policy_budget *budget, const char *rack, int64_t *ret_free_ns)
{
    int64_t used = 0;
    for (size_t i = 0; i < view->incident_count; i++) {
        const struct incident *other = view->incidents[i];
        int64_t spent_ns = spent_at(other, budget->unit);
        if (other == asking || spent_ns == 0 || view->now_ns - spent_ns >= budget->window_ns)
            continue;
        if (budget->scope == BUDGET_JOB && strcmp(other->job, asking->job) != 0)
            continue;
        int64_t units = units_of(other, budget->unit, rack);
        used += units;
        int64_t free_ns = spent_ns + budget->window_ns;
        if (units > 0 && (*ret_free_ns == 0 || free_ns < *ret_free_ns))
            *ret_free_ns = free_ns;
    }
    return used;
}

static size_t population_of(const struct budget_view *view, const struct policy_budget *budget,
                            const char *rack)
{
    if (budget->unit == BUDGET_RACKS)
        return view->world->rack_count;
    if (budget->scope == BUDGET_RACK)
        return world_view_rack_size(view->world, rack);
    return budget->scope == BUDGET_JOB || view->world->node_count == 0 ? view->job_trays
                                                                       : view->world->node_count;
}

static bool one_allows(const struct budget_view *view, const struct incident *incident,
                       const struct policy_budget *budget, const char *rack, char *reason,
                       size_t bytes)
{
    static const char *const units[] = {"tray", "rack", "restart"};
    int64_t free_ns = 0;
    int64_t asked = units_of(incident, budget->unit, rack);
    int64_t used = used_of(view, incident, budget, rack, &free_ns);
    int64_t limit = budget_limit(budget, population_of(view, budget, rack));
    if (used + asked <= limit)
        return true;
    AUTO_TEXT text = {0};
    text_addf(&text, "budget '%s'", budget->name);
    if (rack != NULL)
        text_addf(&text, " of rack %s", rack);
    text_addf(&text, ": %lld of %lld %s%s spent and %lld more asked", (long long)used,
              (long long)limit, units[budget->unit], limit == 1 ? "" : "s", (long long)asked);
    if (free_ns != 0) {
        text_add(&text, ", free from ");
        text_add_time(&text, free_ns);
    }
    snprintf(reason, bytes, "%s", text.bytes);
    return false;
}

static bool each_rack_allows(const struct budget_view *view, const struct incident *incident,
                             const struct policy_budget *budget, char *reason, size_t bytes)
{
    for (size_t i = 0; i < incident->node_count; i++)
        if (!one_allows(view, incident, budget, incident->nodes[i].rack, reason, bytes))
            return false;
    return true;
}

bool budget_allows(const struct budget_view *view, const struct incident *incident,
                   enum budget_unit unit, char *reason, size_t bytes)
{
    reason[0] = '\0';
    if (view->policies == NULL)
        return true;
    for (size_t i = 0; i < view->policies->count; i++)
        for (size_t j = 0; j < view->policies->items[i]->budget_count; j++) {
            const struct policy_budget *budget = &view->policies->items[i]->budgets[j];
            if (budget->unit != unit)
                continue;
            bool allows = budget->scope == BUDGET_RACK
                              ? each_rack_allows(view, incident, budget, reason, bytes)
                              : one_allows(view, incident, budget, NULL, reason, bytes);
            if (!allows)
                return false;
        }
    return true;
}

struct budget_use budget_use(const struct budget_view *view, const struct policy *policy,
                             const struct policy_budget *budget)
{
    int64_t free_ns = 0;
    return (struct budget_use){.policy = policy->name,
                               .name = budget->name,
                               .unit = budget->unit,
                               .used = used_of(view, NULL, budget, NULL, &free_ns),
                               .limit = budget_limit(budget, population_of(view, budget, NULL)),
                               .window_ns = budget->window_ns};
}

const char *budget_unit_name(enum budget_unit unit)
{
    static const char *const names[BUDGET_UNIT_COUNT] = {
        [BUDGET_TRAYS] = "trays", [BUDGET_RACKS] = "racks", [BUDGET_RESTARTS] = "restarts"};
    return names[unit];
}
