/* A Command that nobody took is taken back, lest a job controller that returns an hour later
 * restarts a job that runs again. That it is withdrawn is on the job before it is deleted, with its
 * uid as precondition: a Command that is gone after that, and had no effect, was not carried out.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_VOLCANO_WITHDRAW_H
#define BROOM_ACTUATORS_KUBERNETES_VOLCANO_WITHDRAW_H

#include "remediation/actuators/kubernetes_workload_call.h"

/* Pipeline time from which the Command of this call is withdrawn and no other is issued: shortly
 * before the time of the operation is over, counted from when it was first begun. */
int64_t withdraw_due_ns(const struct work_call *call);

/* The Command, as just read, was not taken in time. The call ends transient when it is withdrawn,
 * unknown when it cannot be; a job controller that was faster is followed (volcano_follow). */
void withdraw_untaken(struct work_call *call, const struct json *command);

/* The job has restarted without this Command, which would restart it once more. The call ends
 * succeeded. */
void withdraw_surplus(struct work_call *call, const struct json *command);

#endif
