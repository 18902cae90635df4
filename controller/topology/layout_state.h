/* Inside of the layout planner: for layout*.c alone. */
#ifndef BROOM_TOPOLOGY_LAYOUT_STATE_H
#define BROOM_TOPOLOGY_LAYOUT_STATE_H

#include "controller/topology/layout.h"

/* The request, made countable. Ranks are put into an order of positions in which every tensor
 * group, every expert set (the ranks of one stage that share experts) and every run (the replicas
 * that share experts, all stages) is consecutive: group k holds positions k*size .. k*size+size-1.
 */
struct plan {
    const struct layout_request *request;
    const struct job *job;
    int32_t gpus_per_node;
    int32_t *gpus;    /* of each node */
    int32_t *domains; /* of each node: from 0, in order of first appearance */
    int32_t *room;    /* GPUs of each domain */
    int32_t domain_count;
    int32_t widest_tray, widest_domain; /* GPUs */
    bool domains_unknown;
    bool is_ep_inside_dp; /* ep cuts dp into runs of replicas that share experts */
    int32_t *rank_at;     /* position -> rank */
    int32_t *position_of; /* rank -> position */
    int32_t tensor_size, set_size, run_size;
};

void plan_open(struct plan *plan, const struct layout_request *request);
void plan_close(struct plan *plan);

/* Candidates: fill places (world_size entries) and answer true, or false where this way there is
 * none. The last one always finds a place when there are enough GPUs. */
bool place_as_wanted(const struct plan *plan, struct layout_place *places);
bool place_by_counting(const struct plan *plan, struct layout_place *places);
void place_by_groups(const struct plan *plan, struct layout_place *places);

/* Counts what is broken; sentences may be NULL. */
void score_places(const struct plan *plan, const struct layout_place *places,
                  int32_t ret_broken[LAYOUT_RULE_COUNT], struct text *sentences);

/* Lists of hosts have no quotes: a name is printable, without blanks and '='. */
bool is_host_name(const char *name);

#endif
