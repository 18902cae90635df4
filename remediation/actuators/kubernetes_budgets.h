/* Which PodDisruptionBudget keeps a pod: its labels against the selectors of its namespace's
 * budgets. Read when an eviction was refused, for the words alone.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_BUDGETS_H
#define BROOM_ACTUATORS_KUBERNETES_BUDGETS_H

#include "controller/kube/kube_client.h"

struct budget_search;

/* done is called when the last question under way is answered. */
struct budget_search *budget_search_new(struct kube_client *client, loop_fn *done, void *context);
/* Not while it is busy, unless the client is freed before the loop runs again. */
void budget_search_free(struct budget_search *search);
bool budget_search_is_busy(const struct budget_search *search);
/* Asks once for each pod, a few at most. */
void budget_search_want(struct budget_search *search, const char *namespace_name, const char *pod);
/* Names, comma separated where several match; NULL: not known (yet). */
const char *budget_search_name(const struct budget_search *search, const char *namespace_name,
                               const char *pod);

#endif
