/* Drains of ours that a slurmctld which was killed has forgotten are made again, before the world
 * is told: so its forgetting looks like no person's doing.
 */
#include "controller/sys/log.h"
#include "remediation/actuators/slurm_call.h"
#include "remediation/actuators/slurm_hostlist.h"

#include <string.h>

static void mended(struct slurm_call *call, const struct slurm_answer *answer)
{
    struct slurm_drains *drains = &call->owner->drains;
    struct view boot_time = slurm_config_of(call, "BOOT_TIME");
    for (size_t i = 0; i < call->todo.count; i++) {
        const struct slurm_drain *drain = slurm_drains_find(drains, call->todo.items[i]);
        if (drain == NULL)
            continue;
        log_event(answer->status == OK ? LOG_WARN : LOG_ERROR,
                  answer->status == OK ? "slurm_drain_reapplied" : "slurm_drain_not_reapplied",
                  kv_str("node", drain->node), kv_str("wanted", drain->reason),
                  kv_str("reason", answer->status == OK ? "slurmctld was restarted without it"
                                                        : answer->message));
        if (answer->status == OK) {
            AUTO_FREE char *reason = xstrdup(drain->reason);
            slurm_drains_add(drains, call->todo.items[i], reason, boot_time);
        }
    }
    if (answer->status == OK)
        slurm_mend(call);
    else
        slurm_tell(call);
}

/* The lost ones of one reason in one call, then the next; then the nodes are read again. */
void slurm_mend(struct slurm_call *call)
{
    const struct slurm_drains *drains = &call->owner->drains;
    const char *first = NULL;
    names_done(&call->todo);
    for (size_t i = 0; i < drains->count; i++) {
        if (!drains->items[i].is_lost)
            continue;
        first = first != NULL ? first : drains->items[i].reason;
        if (strcmp(drains->items[i].reason, first) == 0)
            names_add(&call->todo, drains->items[i].node);
    }
    if (first == NULL) {
        call->any_ours = true;
        slurm_read_all(call, 1u << SLURM_READ_CONFIG | 1u << SLURM_READ_NODES, slurm_tell_mended);
        return;
    }
    AUTO_TEXT nodes = {0};
    AUTO_TEXT reason = {0};
    text_add(&nodes, "NodeName=");
    hostlist_add(&nodes, (const char *const *)call->todo.items, call->todo.count);
    text_addf(&reason, "Reason=%s", first);
    slurm_change(call, mended, "update", nodes.bytes, "State=DRAIN", reason.bytes, NULL);
}

bool slurm_judge_drains(struct slurm_call *call)
{
    struct slurm_drains *drains = &call->owner->drains;
    struct view boot_time = slurm_config_of(call, "BOOT_TIME");
    struct names gone = {0};
    bool any_lost = false;
    for (size_t i = 0; i < call->nodes.count; i++)
        slurm_drains_judge(drains, call->nodes.items[i].name, &call->nodes.items[i], boot_time);
    for (size_t i = 0; i < drains->count; i++)
        if (slurm_find_node(&call->nodes, drains->items[i].node) == NULL)
            names_add(&gone, drains->items[i].node);
    for (size_t i = 0; i < gone.count; i++)
        slurm_drains_judge(drains, gone.items[i], NULL, boot_time);
    names_done(&gone);
    for (size_t i = 0; i < drains->count; i++)
        any_lost = any_lost || drains->items[i].is_lost;
    return any_lost;
}
