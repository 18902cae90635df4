/* A first pass finds how many ranks each pod of each group holds, a second one lays the pods out.
 */
#include "remediation/actuators/kubernetes_ranks.h"

#include "controller/base/mem.h"

#include <stdbool.h>

static bool any_gpus(const struct rank_question *question)
{
    for (size_t i = 0; i < question->group_count; i++)
        if (question->groups[i].gpus > 0)
            return true;
    return false;
}

static bool holds_ranks(const struct rank_question *question, const struct rank_group *group)
{
    return group->pods > 0 && (group->gpus > 0 || !any_gpus(question));
}

/* Sum over the groups that hold ranks: of pods, or of ranks when each pod has those of its GPUs. */
static int64_t sum(const struct rank_question *question, bool by_gpus)
{
    int64_t total = 0;
    for (size_t i = 0; i < question->group_count; i++) {
        const struct rank_group *group = &question->groups[i];
        if (holds_ranks(question, group))
            total += (int64_t)group->pods * (by_gpus ? group->gpus : 1);
    }
    return total;
}

/* Ranks of each pod when it is one number for all; 0: as many as its GPUs; -1: cannot be told. A
 * job may run one rank a pod on four GPUs: what the job says of its size goes before the spec. */
static int32_t uniform_ranks(const struct rank_question *question)
{
    int64_t pods = sum(question, false);
    int64_t by_gpus = sum(question, true);
    int64_t size = question->world_size;
    if (pods == 0)
        return -1;
    if (by_gpus > 0 && (size == 0 || size == by_gpus))
        return 0;
    if (by_gpus == 0 && question->gpus_per_node > 0 &&
        (size == 0 || size == pods * question->gpus_per_node))
        return question->gpus_per_node;
    if (size > 0 && size % pods == 0 && size / pods <= RANKS_MAX)
        return (int32_t)(size / pods);
    return -1;
}

const char **ranks_find_nodes(const struct rank_question *question, int32_t *ret_count)
{
    int32_t uniform = uniform_ranks(question);
    int64_t total = uniform > 0 ? sum(question, false) * uniform : sum(question, true);
    *ret_count = 0;
    if (uniform < 0 || total <= 0 || total > RANKS_MAX)
        return NULL;
    const char **nodes = xcalloc((size_t)total, sizeof *nodes);
    AUTO_FREE int64_t *starts = xcalloc(question->group_count, sizeof *starts);
    int64_t next = 0;
    for (size_t i = 0; i < question->group_count; i++) {
        const struct rank_group *group = &question->groups[i];
        starts[i] = next;
        if (holds_ranks(question, group))
            next += (int64_t)group->pods * (uniform > 0 ? uniform : group->gpus);
    }
    for (size_t i = 0; i < question->pod_count; i++) {
        const struct rank_pod *pod = &question->pods[i];
        const struct rank_group *group = pod->group < question->group_count
                                             ? &question->groups[pod->group]
                                             : NULL;
        if (group == NULL || !holds_ranks(question, group) || pod->index < 0 ||
            pod->index >= group->pods)
            continue;
        int64_t each = uniform > 0 ? uniform : group->gpus;
        for (int64_t k = 0; k < each; k++)
            nodes[starts[pod->group] + pod->index * each + k] = pod->node;
    }
    *ret_count = (int32_t)total;
    return nodes;
}
