/* Kubernetes as an actuator: nodes by patches of our own keys, jobs by what their controllers
 * offer.
 *
 *   cordon          one merge-patch: unschedulable, taint
 *                   broomwagon.io/quarantine=inc-n:NoSchedule, label, annotations; then the
 *                   condition BroomwagonFault. A cordon that was there stays and is remembered. A
 *                   node that is gone does not hold up the others; all gone: superseded
 *   uncordon        takes ours off; what was cordoned before us stays cordoned
 *   promise_spare   checks each spare (Ready, its GPUs, its rack's clique, no quarantine), then
 *                   broomwagon.io/spare:NoSchedule becomes broomwagon.io/spare=<job>:NoSchedule.
 *                   All of them or none. params {"hold_others": true}: trays that stand free get
 *                   broomwagon.io/held=inc-n:NoSchedule, so that the scheduler has but these spares
 *   release_spare   the opposite, and what was held is free again; params {"used": true}: the
 *                   promise is kept, the spare's taint goes
 *   restart_job     by the workload's kind (kubernetes_workload.h)
 *   request_checkpoint  annotation broomwagon.io/checkpoint-requested on the workload
 *   drain           evictions with the uid, never over a disruption budget: blocked names it
 *   force_delete    pods that never end on nodes that somebody vouches are off, uid as precondition
 *   fence, hand_over    refused: a webhook does these
 *
 * Outcomes: KUBE_UNREACHABLE and KUBE_BUSY transient, KUBE_CONFLICT read again and decided again (5
 * times, then transient), KUBE_DENIED and KUBE_REFUSED refused, KUBE_UNKNOWN unknown. poll only
 * reads: every effect leaves the operation id where it can be read (node annotations, name of the
 * Command, annotations of the workload).
 *
 * describe answers from the watches, after one call that shows that the server answers at all.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_H
#define BROOM_ACTUATORS_KUBERNETES_H

#include "controller/io/http_client.h"
#include "controller/io/loop.h"
#include "controller/kube/kube_client.h"
#include "controller/topology/inventory.h"
#include "remediation/actuator.h"
#include "remediation/actuators/kubernetes_topology.h"

struct kubernetes_params {
    const char *kubeconfig;         /* path; "" in-cluster */
    const char *context;            /* of the kubeconfig; "" its current one */
    const char *rack_label;         /* label that names a node's rack; "" HyperNode, else clique */
    struct inventory *inventory;    /* lent: told what the cluster says; NULL: one of its own */
    bool write_topology_labels;     /* broomwagon.io/rack, tray, rail, where the site asks for it */
    bool reads_only;                /* mode observe: no Events, no labels, and nothing is begun */
    bool (*may_act)(void *context); /* asked before labels are written; NULL: they may be */
    void *may_act_context;
    enum rail_state (*rail)(void *context, const char *node); /* NULL: nobody looks */
    void *rail_context;
    struct kube_limits limits;
};

/* loop and client are lent and must outlive every call. Watches start at once. The caller frees
 * with actuator->free(actuator->self). ERR_INVALID: the kubeconfig. */
MUST_CHECK enum status kubernetes_new(struct loop *loop, struct http_client *client,
                                      const struct kubernetes_params *params,
                                      struct actuator **ret_actuator, struct error *reterr);
/* The mode was changed. actuator: as kubernetes_new made it. */
void kubernetes_set_reads_only(struct actuator *actuator, bool reads_only);

#endif
