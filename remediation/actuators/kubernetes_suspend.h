/* JobSet, batch Job, PyTorchJob and TrainJob restart by suspend and resume, which spends none of
 * their own restarts. Suspension and the annotation WORKLOAD_OPERATION are one patch, under the
 * resourceVersion that the decision was made on; the job is resumed (WORKLOAD_RESUMED, and
 * WORKLOAD_RESTARTS one more) when its pods are gone. What somebody else suspended is never
 * resumed.
 *
 * A broomd that ends in between leaves a job that is suspended under its annotation: poll says
 * running while pods of it are there, then absent, and start goes on where it was.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_SUSPEND_H
#define BROOM_ACTUATORS_KUBERNETES_SUSPEND_H

#include "remediation/actuators/kubernetes_workload_kinds.h"

void suspend_restart(struct work_call *call);
void suspend_poll(struct work_call *call);

#endif
