/* Events of the API: what was begun and how it ended, on each node and on the job. Best effort:
 * they go out after the action itself, nothing waits for them, and nothing is told twice (the name
 * of an Event follows from what it says).
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_EVENTS_H
#define BROOM_ACTUATORS_KUBERNETES_EVENTS_H

#include "controller/kube/kube_client.h"
#include "remediation/actuators/kubernetes_nodes.h"
#include "remediation/actuators/kubernetes_workload.h"

struct events;

/* All are lent. */
struct events *events_new(struct kube_client *client, struct loop *loop,
                          const struct node_cache *nodes, const struct workloads *workloads);
void events_free(struct events *events);
void events_set_silent(struct events *events, bool is_silent); /* mode observe */

/* result NULL: the action begins. */
void events_tell(struct events *events, const struct action *action,
                 const struct action_result *result);

#endif
