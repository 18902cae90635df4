/* Where nodes stand, by what the cluster says: a label of the site, Volcano HyperNodes of tier 1,
 * and nvidia.com/gpu.clique; told to an inventory, which merges them.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_TOPOLOGY_H
#define BROOM_ACTUATORS_KUBERNETES_TOPOLOGY_H

#include "controller/topology/inventory.h"
#include "remediation/actuators/kubernetes_nodes.h"

struct topology;

/* What is known of the rails of a node: label broomwagon.io/rail=ready or degraded. */
enum rail_state {
    RAIL_UNREAD = 0, /* nobody has looked yet: a label that stands there stays */
    RAIL_UNKNOWN,    /* no label */
    RAIL_READY,
    RAIL_DEGRADED
};
typedef enum rail_state node_rail_fn(void *context, const char *node);

struct topology_params {
    struct kube_client *client;
    struct loop *loop;
    struct node_cache *nodes;
    struct inventory *inventory; /* lent; NULL: one of its own */
    const char *rack_label;      /* "" none */
    bool write_labels;           /* broomwagon.io/rack, broomwagon.io/tray, broomwagon.io/rail */
    node_rail_fn *rail;          /* NULL: nobody looks */
    void *rail_context;
};

struct topology *topology_new(const struct topology_params *params);
void topology_free(struct topology *topology);
void topology_set_writing(struct topology *topology, bool write_labels);

/* Without HyperNodes a rack may be taken for another one: false, with the reason, until they are
 * read, where no label names the racks. A cluster that has no such kind is whole without. */
bool topology_is_synced(const struct topology *topology, const char **ret_reason);
/* Tells the inventory what has changed, and writes labels where they are asked for. */
void topology_refresh(struct topology *topology);
/* By the last refresh; false when the inventory does not know the node. */
bool topology_find(const struct topology *topology, const char *node,
                   struct inventory_node *ret_node);
const char *topology_rack(void *topology, const char *node); /* a node_rack_fn */

#endif
