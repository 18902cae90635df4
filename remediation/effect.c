/* The queue of effects. Records come before the actions that they announce: look.c emits an
 * incident's record before it asks for a start.
 */
#include "remediation/core_state.h"

#include <assert.h>

static struct effect *push(struct remediation *core, enum effect_kind kind)
{
    if (core->effect_head > 0 && core->effect_head == core->effect_count)
        core->effect_head = core->effect_count = 0;
    core->effects = array_grow(core->effects, core->effect_count, &core->effect_capacity,
                               sizeof *core->effects);
    struct effect *effect = &core->effects[core->effect_count++];
    *effect = (struct effect){.kind = kind};
    return effect;
}

void effect_push_record(struct remediation *core, struct text *take_record, bool spoolable)
{
    struct effect *effect = push(core, EFFECT_RECORD);
    effect->record = text_take(take_record);
    effect->spoolable = spoolable;
}

static const char *const *copy_names(const struct names *names)
{
    if (names->count == 0)
        return NULL;
    const char **copy = xcalloc(names->count, sizeof *copy);
    for (size_t i = 0; i < names->count; i++)
        copy[i] = xstrdup(names->items[i]);
    return copy;
}

void effect_push_action(struct remediation *core, enum effect_kind kind,
                        const struct incident *incident, const struct incident_action *action,
                        const char *reason)
{
    struct effect *effect = push(core, kind);
    struct action *out = &effect->action;
    text_copy(out->operation_id, sizeof out->operation_id, action->operation_id);
    out->verb = action->verb;
    out->incident_ref = xstrdup(incident->ref);
    out->job = incident->job[0] != '\0' ? xstrdup(incident->job) : NULL;
    out->workload_json = incident->workload_json != NULL ? xstrdup(incident->workload_json) : NULL;
    out->nodes = copy_names(&action->nodes);
    out->node_count = action->nodes.count;
    out->spares = copy_names(&action->spares);
    out->spare_count = action->spares.count;
    out->reason = xstrdup(reason);
    out->params_json = action->params_json != NULL ? xstrdup(action->params_json) : NULL;
}

void effect_ask_world(struct remediation *core)
{
    push(core, EFFECT_DESCRIBE);
    core->describe_asked = true;
    core->describe_asked_ns = core->now_ns;
}

bool remediation_next_effect(struct remediation *core, struct effect *ret_effect)
{
    assert(core != NULL);
    if (core->effect_head == core->effect_count)
        return false;
    *ret_effect = core->effects[core->effect_head++];
    return true;
}

static void free_list(const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        xfree(list[i]);
    xfree(list);
}

void effect_done(struct effect *effect)
{
    xfree(effect->record);
    xfree(effect->action.incident_ref);
    xfree(effect->action.job);
    xfree(effect->action.workload_json);
    free_list(effect->action.nodes, effect->action.node_count);
    free_list(effect->action.spares, effect->action.spare_count);
    xfree(effect->action.reason);
    xfree(effect->action.params_json);
    *effect = (struct effect){0};
}
