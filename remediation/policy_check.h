/* Checks of a policy that look at more than one key: used by policy_parse.c only. */
#ifndef BROOM_REMEDIATION_POLICY_CHECK_H
#define BROOM_REMEDIATION_POLICY_CHECK_H

#include "remediation/policy.h"

/* plan->steps[index] was just read from item; the steps before it are complete. */
void policy_check_step_order(struct findings *findings, const struct tree_node *item,
                             const struct plan *plan, int index);
void policy_check_plan(struct findings *findings, const struct tree_node *node,
                       const struct plan *plan);
/* `said`: how many of trays, racks, restarts the budget names. */
void policy_check_budget(struct findings *findings, const struct tree_node *node,
                         const struct policy_budget *budget, int said);
/* Names, reach, catch-all, budgets behind rack plans. */
void policy_check_whole(struct findings *findings, const struct tree_node *root,
                        const struct policy *policy);

#endif
