/* Argo Workflows have no restart: the nearest is to evict the pods that shall leave, where their
 * template retries a pod that is gone (retryPolicy Always or OnError: a pod that is taken away is
 * an error, not a failure). Where it does not, an eviction would end the workflow: refused. The
 * retried pod is placed by the scheduler; the cordon keeps it off the node it left.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_ARGO_H
#define BROOM_ACTUATORS_KUBERNETES_ARGO_H

#include "remediation/actuators/kubernetes_workload_kinds.h"

void argo_read(const struct json *object, struct workload_item *item);
void argo_restart(struct work_call *call);
void argo_poll(struct work_call *call);

#endif
