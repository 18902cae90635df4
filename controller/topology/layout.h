/* Launch help: which rank goes to which GPU of which node, so that the job runs as fast after a
 * restart as before. Pure arithmetic over the job's parallel grid and the nodes that it will have.
 *
 * In this order, the first that can be kept is kept at the cost of those behind it:
 *   1. a tensor group lies in one tray; one that is wider than a tray, in one NVLink domain
 *   2. the ranks of a stage that share experts lie in one NVLink domain
 *   3. a replica with all its stages lies in one NVLink domain, where one can be that large
 *   4. rails: the trays of a data-parallel group use the same GPU indices, so that peers meet on
 *      one rail
 * Of equally good layouts the one that moves fewest ranks is taken, then one that a launcher can
 * give by counting (rank = node * GPUs + GPU). What cannot be kept is told, with how much is
 * missing.
 */
#ifndef BROOM_TOPOLOGY_LAYOUT_H
#define BROOM_TOPOLOGY_LAYOUT_H

#include "controller/base/json.h"
#include "detectors/job.h"

enum {
    LAYOUT_GPUS_DEFAULT = 4,
    LAYOUT_GPUS_MOST = 64,
    LAYOUT_VIOLATIONS_TOLD = 8,
    LAYOUT_DOMAIN_TRAYS = 18 /* of an NVL72 */
};

/* A node that the job will have. Strings are lent. */
struct layout_node {
    const char *name;
    const char *nvlink_domain; /* or the rack; NULL: unknown, it is taken for a domain of its own */
    int32_t gpus;              /* that can be used, the first ones; 0: gpus_per_node */
};

struct layout_request {
    const struct job *job;
    const struct layout_node *nodes; /* each once; those that stand first are used first */
    size_t node_count;
    int32_t gpus_per_node; /* 0: as many as the job uses on a tray today, else 4 */
    bool by_counting;      /* only layouts that a plain list of hosts can express */
    /* Where each rank stays if it can: index into nodes, or JOB_NONE. world_size entries. */
    const int32_t *wanted;
};

struct layout_place {
    int32_t node; /* index into nodes */
    int16_t gpu;  /* from 0 */
    int16_t rail; /* of this GPU: as the job's ranks say today, else the GPU's index */
};

enum layout_rule {
    LAYOUT_TENSOR = 0, /* groups that are split */
    LAYOUT_EXPERT,     /* expert sets that span NVLink domains */
    LAYOUT_REPLICA,    /* replicas that span NVLink domains, though they would fit into one */
    LAYOUT_RAILS,      /* data groups whose trays use different rails */
    LAYOUT_RULE_COUNT
};

struct layout {
    char *job;      /* owned */
    char **nodes;   /* names, owned, in the order of the request */
    char **domains; /* NVLink domain of each, owned, or NULL */
    size_t node_count;
    struct layout_place *ranks; /* world_size entries */
    int32_t world_size, gpus_per_node;
    int32_t broken[LAYOUT_RULE_COUNT]; /* how many groups break it */
    int32_t moved;                     /* ranks that are elsewhere than wanted */
    bool is_by_counting;               /* rank = position of the node * gpus_per_node + gpu */
    bool is_in_order; /* on each node the ranks take GPUs 0, 1, 2 ... in the order of their numbers
                       */
    bool domains_unknown;   /* no node's domain is known: only trays were looked after */
    struct text violations; /* sentences, a line each */
};

/* ERR_REFUSED: the ranks do not fit; the message says which bound is passed and by how much. The
 * caller frees. */
MUST_CHECK enum status layout_plan(const struct layout_request *request, struct layout **ret_layout,
                                   struct error *reterr);
void layout_free(struct layout *layout);
DEFINE_AUTO(struct layout, layout_free)

const char *layout_rule_name(enum layout_rule rule); /* "tensor_groups", ... as in the JSON */

/* Nodes that leave a job, each replaced by the spare of the same index, or by none. */
struct layout_swap {
    const char *const *leaving;
    size_t leaving_count;
    const char *const *spares;
    size_t spare_count;
};

/* Nodes for a request, without their GPUs. Names and domains are lent by the job and the swap;
 * both arrays are the caller's (xfree). */
struct layout_nodes {
    struct layout_node *items;
    size_t count;
    int32_t *wanted; /* world_size entries */
};
/* Those that the job has today, by their lowest rank, after the swap. */
struct layout_nodes layout_nodes_after(const struct job *job, const struct layout_swap *swap);
/* Those that are named; the job's own racks say in which domain each stands. */
struct layout_nodes layout_nodes_named(const struct job *job, const char *const *names,
                                       size_t count);

/* ---- forms: layout_forms.c ---- */

enum layout_form {
    LAYOUT_JSON = 0,
    LAYOUT_HOSTFILE, /* "node slots=4" in the order of ranks */
    LAYOUT_RANKFILE, /* Open MPI: "rank 7=node slot=1:36-71" */
    LAYOUT_SLURM,    /* SLURM_HOSTFILE: a node a task */
    LAYOUT_NCCL,     /* NCCL_TOPO_FILE of a GB300 NVL72 tray, the same for each */
    LAYOUT_FORM_COUNT
};
/* "json", "hostfile", "rankfile", "slurm" or "nccl-topology" */
bool layout_form_parse(const char *name, enum layout_form *ret_form);

/* JSON: {"job","world_size","gpus_per_node","by_counting","in_order","domains_known","moved",
 * "broken":{"tensor_groups","expert_sets","replicas","rails"},"violations":["..."],
 * "nodes":[{"node","nvlink_domain"}],"ranks":[{"rank","node","gpu","rail"}]}.
 * ERR_REFUSED: a hostfile of a layout that is not by counting; the message says which form can. */
MUST_CHECK enum status layout_write(const struct layout *layout, enum layout_form form,
                                    struct text *out, struct error *reterr);
/* What layout_write made of it as JSON. */
MUST_CHECK enum status layout_read(const struct json *root, struct layout **ret_layout,
                                   struct error *reterr);

#endif
