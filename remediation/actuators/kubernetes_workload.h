/* What restarts a job: one row a kind of workload. All reads of workloads and pods for the world go
 * through here too. A restart is answered when the job's controller has taken it (phase, count, uid
 * or pods have changed), not when it runs again: describe tells that.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_WORKLOAD_H
#define BROOM_ACTUATORS_KUBERNETES_WORKLOAD_H

#include "controller/kube/kube_client.h"
#include "remediation/actuator.h"

struct workloads;  /* watches of pods and of the workload kinds that are installed */
struct node_cache; /* kubernetes_nodes.h */

/* nodes is lent: readiness of a pod's node is asked of it. reads_only: as in kubernetes.h. */
struct workloads *workloads_new(struct kube_client *client, struct loop *loop,
                                const struct node_cache *nodes, bool reads_only);
void workloads_free(struct workloads *workloads);

/* False when the pods are not known whole and fresh; *ret_reason says why. A kind of workload that
 * cannot be read makes its own jobs unknown, not the cluster. */
bool workloads_are_synced(const struct workloads *workloads, const char **ret_reason);

/* Fills one job of the world. Everything it points to is owned by `arena` texts of workloads and is
 * valid until the next call of workloads_describe_begin. A workload that is not found: phase
 * "unknown" and waiting_for says so; its name is told by the question. */
void workloads_describe_begin(struct workloads *workloads);
void workloads_describe(struct workloads *workloads, const struct job_question *question,
                        struct world_job *ret_job);

/* restart_job, request_checkpoint, and the poll of either; answers come from the loop. params of
 * restart_job: {"timeout_ns"}. What was begun is on the workload, as annotations, before anything
 * is done to it; start goes on from there when it is called again for the same operation.
 *
 * restarts of the world are the controller's own count (Volcano: retryCount) and those of ours that
 * it does not count (suspend and resume); restarts_max is how many it survives: Volcano's maxRetry
 * less one, since the last retry ends the job; -1 where a restart of ours spends nothing. */
void workloads_start(struct workloads *workloads, const struct action *action, action_done_fn *done,
                     void *context);
void workloads_poll(struct workloads *workloads, const struct action *action, action_done_fn *done,
                    void *context);

/* The tolerations question of promise_spare: would a pod of this workload bear
 * `broomwagon.io/spare=<value>:NoSchedule`? Unknown workloads: false, *ret_reason says. */
bool workloads_tolerate_spare(const struct workloads *workloads, const char *workload_json,
                              const char *value, const char **ret_reason);

/* Pods on a node, for drain and force_delete; called for each, in order of name. */
struct workload_pod {
    const char *namespace_name, *name, *uid, *node;
    const char *job_uid;       /* uid of the workload that owns it in the end, "" none */
    bool is_daemon, is_mirror; /* never evicted */
    bool has_ended;            /* Succeeded or Failed */
    bool is_terminating;
    int64_t deleted_ns; /* deletionTimestamp, 0 none */
};
typedef void workload_pod_fn(void *context, const struct workload_pod *pod);
void workloads_pods_on(const struct workloads *workloads, const char *node, workload_pod_fn *fn,
                       void *context);
/* uid of a workload, as watched now; "" when it is not there. */
const char *workloads_uid(const struct workloads *workloads, const char *workload_json);

#endif
