/* One partition of a Volcano job restarts by the job's own policy (PodEvicted: RestartPartition)
 * when one of its pods is evicted. One eviction is enough: the controller takes the others down.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_PARTITION_H
#define BROOM_ACTUATORS_KUBERNETES_PARTITION_H

#include "remediation/actuators/kubernetes_workload_kinds.h"

/* False when this is not the way: the pods that shall leave are of several partitions, or no policy
 * says so. Else the call goes on here. */
bool partition_restart(struct work_call *call);
/* After a crash: call->evicted is the pod that was to be evicted. */
void partition_go_on(struct work_call *call);
void partition_poll(struct work_call *call);

#endif
