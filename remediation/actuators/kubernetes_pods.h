/* Pods that have to leave nodes.
 *
 *   drain         evicts every pod of the nodes but those of the action's job, of DaemonSets and
 *                 static ones; asks again while a disruption budget is in the way, and ends when
 * all have gone or time is over: the reason then names pod, node and budget. params {"timeout_ns"}
 *   force_delete  deletes, without waiting for their kubelet, the pods of the action's job whose
 *                 node is not Ready. That the node is off is for whoever asks to know: nothing here
 *                 proves it. On a node that is Ready again none is deleted: transient, if no other
 *
 * Both name each pod by its uid: a new pod of the same name is left alone.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_PODS_H
#define BROOM_ACTUATORS_KUBERNETES_PODS_H

#include "controller/kube/kube_client.h"
#include "remediation/actuators/kubernetes_nodes.h"
#include "remediation/actuators/kubernetes_workload.h"

struct pod_actions;

/* All are lent. */
struct pod_actions *pod_actions_new(struct kube_client *client, struct loop *loop,
                                    const struct node_cache *nodes,
                                    const struct workloads *workloads);
void pod_actions_free(struct pod_actions *actions);

void pod_actions_start(struct pod_actions *actions, const struct action *action,
                       action_done_fn *done, void *context);
/* By the watched pods: nothing of it left is done, else absent; a start goes on where it was. */
void pod_actions_poll(struct pod_actions *actions, const struct action *action,
                      action_done_fn *done, void *context);

#endif
