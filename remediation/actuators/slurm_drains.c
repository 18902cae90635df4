/* See slurm_drains.h. Few: the trays of open incidents. */
#include "remediation/actuators/slurm_drains.h"

#include <string.h>

static void drain_done(struct slurm_drain *drain)
{
    xfree(drain->node);
    xfree(drain->reason);
}

void slurm_drains_done(struct slurm_drains *drains)
{
    for (size_t i = 0; i < drains->count; i++)
        drain_done(&drains->items[i]);
    xfree(drains->items);
    *drains = (struct slurm_drains){0};
}

static struct slurm_drain *find(const struct slurm_drains *drains, const char *node)
{
    for (size_t i = 0; i < drains->count; i++)
        if (strcmp(drains->items[i].node, node) == 0)
            return &drains->items[i];
    return NULL;
}

const struct slurm_drain *slurm_drains_find(const struct slurm_drains *drains, const char *node)
{
    return find(drains, node);
}

static void set_boot_time(struct slurm_drain *drain, struct view boot_time)
{
    AUTO_FREE char *text = xstrndup(boot_time.bytes, boot_time.length);
    text_copy(drain->boot_time, sizeof drain->boot_time, text);
}

void slurm_drains_add(struct slurm_drains *drains, const char *node, const char *reason,
                      struct view boot_time)
{
    struct slurm_drain *drain = find(drains, node);
    if (drain == NULL) {
        drains->items = array_grow(drains->items, drains->count, &drains->capacity,
                                   sizeof *drains->items);
        drain = &drains->items[drains->count++];
        *drain = (struct slurm_drain){.node = xstrdup(node), .reason = xstrdup("")};
    }
    if (strcmp(drain->reason, reason) != 0) {
        xfree(drain->reason);
        drain->reason = xstrdup(reason);
    }
    drain->is_lost = false;
    set_boot_time(drain, boot_time);
}

void slurm_drains_remove(struct slurm_drains *drains, const char *node)
{
    struct slurm_drain *drain = find(drains, node);
    if (drain == NULL)
        return;
    drain_done(drain);
    *drain = drains->items[--drains->count];
}

void slurm_drains_judge(struct slurm_drains *drains, const char *name,
                        const struct slurm_node *node, struct view boot_time)
{
    struct slurm_drain *drain = find(drains, name);
    bool stands = node != NULL && (node->state.flags & SLURM_DRAIN) != 0;
    bool is_ours = stands && slurm_reason_incident(node->reason).length > 0;
    if (is_ours) {
        slurm_drains_add(drains, name, node->reason, boot_time);
        return;
    }
    if (drain == NULL)
        return;
    bool is_new_slurmctld = boot_time.length > 0 && drain->boot_time[0] != '\0' &&
                            !view_equals(boot_time, drain->boot_time);
    /* Where a person has drained or marked the node meanwhile, the node is theirs. */
    bool is_bare = node != NULL && !stands &&
                   (node->reason[0] == '\0' || slurm_reason_is_own(node->reason));
    if (is_bare && (is_new_slurmctld || drain->is_lost))
        drain->is_lost = true;
    else
        slurm_drains_remove(drains, name);
}
