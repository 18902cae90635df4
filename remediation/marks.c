/* What is left of a cordon of ours that somebody took off: in Kubernetes an uncordon leaves our
 * taint where it is, which keeps pods away as the cordon did. Looked at with every description of
 * the world, so that it is done once and whoever was killed meanwhile.
 */
#include "remediation/core_state.h"

#include <string.h>

/* Before it is known as an uncordon, a first look may be older than the cordon itself. Where the
 * node's return is waited for, its uncordon is that return. */
static bool is_understood(const struct incident *incident, const struct incident_node *node)
{
    return !node->ours || incident_has_ended(incident) || incident->phase == PHASE_REPAIRING ||
           incident->phase == PHASE_VALIDATING;
}

void marks_watch(struct remediation *core, struct incident *incident)
{
    struct names marked = {0};
    bool may_act = incident->mode != MODE_OBSERVE && !core->paused && core->guards.lease_held &&
                   core->guards.store_up && incident_has_acted(incident);
    for (size_t i = 0; may_act && i < incident->node_count; i++) {
        const struct incident_node *node = &incident->nodes[i];
        const struct view_node *seen = world_view_node(&core->world, node->name);
        if (seen != NULL && !seen->cordoned && strcmp(seen->marked_by, incident->ref) == 0 &&
            is_understood(incident, node) &&
            act_aside_state(core, incident, VERB_UNCORDON, node->name) == ASIDE_DUE)
            names_add(&marked, node->name);
    }
    if (marked.count > 0)
        act_take_marks_off(core, incident, &marked);
    names_done(&marked);
}
