/* ComputeDomains (resource.nvidia.com/v1beta1, NVIDIA's DRA driver): which trays of a job are not
 * ready for memory traffic between nodes. Only what a domain says of each node counts: its own word
 * is not for workloads, and numNodes is deprecated. Pure.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_DOMAIN_H
#define BROOM_ACTUATORS_KUBERNETES_DOMAIN_H

#include "controller/base/json.h"
#include "remediation/actuators/kubernetes_workload_pods.h"

struct domain_node {
    char *name;
    bool is_ready;
};

struct domain {
    struct domain *next;
    char *namespace_name, *name;
    char *template_name; /* of the ResourceClaimTemplate by which pods join it */
    bool names_nodes;    /* status.nodes is there at all */
    struct domain_node *nodes;
    size_t node_count;
};

void domains_put(struct domain **first, const struct json *object);
void domains_remove(struct domain **first, const char *namespace_name, const char *name);
void domains_done(struct domain **first);

/* The domain that a pod joins, or NULL. */
const struct domain *domains_find(const struct domain *first, const struct pod *pod);
/* False while the pod's node has not joined or is not ready there. A domain that names no nodes at
 * all tells nothing: true. */
bool domain_has_ready(const struct domain *domain, const char *node);

#endif
