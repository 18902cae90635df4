/* Which node each rank of a job is on, from its pods. Pure.
 *
 * Ranks are counted through the job's groups of pods (tasks of a Volcano job, replicated jobs of a
 * JobSet, master before workers) in the order of its spec, inside a group by the pod's index,
 * inside a pod by GPU. Pods without GPUs hold no rank where other pods of the job have some.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_RANKS_H
#define BROOM_ACTUATORS_KUBERNETES_RANKS_H

#include <stddef.h>
#include <stdint.h>

enum { RANKS_MAX = 131072 };

struct rank_group {
    int32_t pods; /* as the spec wants them */
    int32_t gpus; /* of each pod; 0 none, or not told (claims) */
};

struct rank_pod {
    size_t group;     /* index of its group */
    int32_t index;    /* inside its group; negative: it has none, and no place */
    const char *node; /* lent */
};

struct rank_question {
    const struct rank_group *groups;
    size_t group_count;
    const struct rank_pod *pods; /* live and placed, in any order */
    size_t pod_count;
    int32_t world_size;    /* ranks; 0 unknown */
    int32_t gpus_per_node; /* ranks a pod where its spec does not say; 0 unknown */
};

/* Node of each rank, NULL where no live pod holds it; the caller frees the array, the names are
 * those of the pods. NULL with *ret_count 0 when how many ranks a pod has cannot be told, or when
 * the pods do not add up to world_size. */
const char **ranks_find_nodes(const struct rank_question *question, int32_t *ret_count);

#endif
