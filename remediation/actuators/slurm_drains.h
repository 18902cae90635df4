/* The drains that this process made, or found standing with our reason: what slurmctld has to show
 * after a restart of its own. Pure.
 */
#ifndef BROOM_ACTUATORS_SLURM_DRAINS_H
#define BROOM_ACTUATORS_SLURM_DRAINS_H

#include "remediation/actuators/slurm_state.h"

struct slurm_drain {
    char *node, *reason;
    char boot_time[32]; /* of slurmctld when it was last seen to stand */
    bool is_lost;
};

struct slurm_drains {
    struct slurm_drain *items;
    size_t count, capacity;
};

void slurm_drains_done(struct slurm_drains *drains);
void slurm_drains_add(struct slurm_drains *drains, const char *node, const char *reason,
                      struct view boot_time);
void slurm_drains_remove(struct slurm_drains *drains, const char *node);
const struct slurm_drain *slurm_drains_find(const struct slurm_drains *drains, const char *node);

/* What a node shows against what is wanted. A drain of ours that stands is learned; one that is
 * gone under another slurmctld is marked lost; one that a person took off or took over is
 * forgotten. node NULL: Slurm knows no such node any more. */
void slurm_drains_judge(struct slurm_drains *drains, const char *name,
                        const struct slurm_node *node, struct view boot_time);

#endif
