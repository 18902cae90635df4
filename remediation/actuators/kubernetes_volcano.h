/* Volcano jobs restart by Command (bus.volcano.sh/v1alpha1): the job controller takes the Command
 * away first and acts afterwards, at most once, so that a Command that is gone is not one that was
 * carried out. What was there before is written on the job (annotations WORKLOAD_OPERATION and
 * WORKLOAD_STATE, with the resourceVersion that the decision was made on) before the Command is
 * posted under a name made of the operation id; done is it when the job is Restarting, when
 * retryCount has grown, or when none of its pods is one that was there before. status.version runs
 * on by itself and is never looked at. A Command that is taken without effect is issued once more.
 * One that nobody takes is withdrawn before the time is over, and so is one that turns out not to
 * be needed, since the job restarted without it (kubernetes_volcano_withdraw.h).
 *
 * A Command cannot name a partition (its target is an owner reference, without arguments): the
 * whole job restarts.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_VOLCANO_H
#define BROOM_ACTUATORS_KUBERNETES_VOLCANO_H

#include "remediation/actuators/kubernetes_workload_kinds.h"

struct kube_answer; /* controller/kube/kube_client.h */

#define VOLCANO_NAME_BEGIN "broom-"
enum { VOLCANO_NAME_BYTES = 128 };

void volcano_restart(struct work_call *call);
void volcano_poll(struct work_call *call);

/* "INC-3/1/4/1", 2 -> "broom-inc-3-1-4-1-2": the same after a crash. */
void volcano_command_name(const char *operation_id, int issue, char buffer[VOLCANO_NAME_BYTES]);

/* For kubernetes_partition.c and kubernetes_volcano_withdraw.c. Writes WORKLOAD_OPERATION and
 * WORKLOAD_STATE under the version read. */
void volcano_note(struct work_call *call,
                  void (*fn)(struct work_call *call, const struct kube_answer *answer));

/* Reads the job, and goes on from there: what became of the Command? */
void volcano_follow(struct work_call *call);
/* The same from the job as it was just read. */
void volcano_go_on(struct work_call *call);
void volcano_add_commands_path(const struct work_call *call, struct text *path);

#endif
