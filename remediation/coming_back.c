/* The way back of hardware that was handed over, stage by stage, each with its time: in the cluster
 * again, ready, free to be scheduled, in its rack's NVLink domain, so for a while, and uncordoned.
 */
#include "remediation/core_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const stage_names[] = {
    [BACK_REGISTERED] = "registered",   [BACK_READY] = "ready",
    [BACK_SCHEDULABLE] = "schedulable", [BACK_IN_DOMAIN] = "in its NVLink domain",
    [BACK_VALIDATED] = "validated",     [BACK_UNCORDONED] = "uncordoned",
};
_Static_assert(ARRAY_LEN(stage_names) == BACK_STAGE_COUNT, "every stage has a name");

/* --- what must come back --- */

/* Those that we took out; where none is ours, all of them. */
static bool must_return(const struct incident *incident, const struct incident_node *node)
{
    bool any_ours = false;
    for (size_t i = 0; i < incident->node_count; i++)
        any_ours = any_ours || incident->nodes[i].ours || incident->nodes[i].given_back;
    return node->ours || node->given_back || !any_ours;
}

void back_watch(const struct remediation *core, struct incident *incident)
{
    bool waits = incident->phase == PHASE_REPAIRING || incident->phase == PHASE_VALIDATING;
    for (size_t i = 0; incident_has_acted(incident) && i < incident->node_count; i++) {
        struct incident_node *node = &incident->nodes[i];
        const struct view_node *seen = world_view_node(&core->world, node->name);
        bool down = seen == NULL || !seen->ready;
        bool in_domain = seen != NULL && seen->domain_known && !waits;
        if ((down && !node->was_down) || (in_domain && !node->had_domain))
            incident->dirty = true;
        node->was_down = node->was_down || down;
        node->had_domain = node->had_domain || in_domain;
    }
}

/* --- stages of one node --- */

/* Does the node belong where the rest of its rack is? Racks of which nothing is known are let be.
 */
static bool is_in_domain(const struct remediation *core, const struct incident_node *node,
                         const struct view_node *seen)
{
    bool mates_known = false, together = false;
    for (size_t i = 0; seen->rack[0] != '\0' && i < core->world.node_count; i++) {
        const struct view_node *mate = &core->world.nodes[i];
        if (mate == seen || !mate->ready || !mate->domain_known ||
            strcmp(mate->rack, seen->rack) != 0)
            continue;
        mates_known = true;
        together = together || strcmp(mate->domain, seen->domain) == 0;
    }
    if (!seen->domain_known)
        return !node->had_domain && !mates_known;
    return together || !mates_known;
}

/* Never seen down, it was not repaired as far as anybody can see: then only a person's uncordon
 * says that it was. */
static bool is_repaired(const struct incident_node *node, const struct view_node *seen)
{
    return node->was_down || !seen->cordoned;
}

static bool is_free(const struct incident *incident, const struct incident_node *node,
                    const struct view_node *seen)
{
    bool by_us = node->ours || strcmp(seen->cordoned_by, incident->ref) == 0;
    return (!seen->cordoned || by_us) && seen->gpus >= incident->gpus_per_node;
}

static bool node_has(const struct remediation *core, const struct incident *incident,
                     const struct incident_node *node, enum back_stage stage)
{
    const struct view_node *seen = world_view_node(&core->world, node->name);
    if (seen == NULL)
        return false;
    switch (stage) {
    case BACK_REGISTERED:
        return is_repaired(node, seen);
    case BACK_READY:
        return seen->ready;
    case BACK_SCHEDULABLE:
        return is_free(incident, node, seen);
    case BACK_IN_DOMAIN:
        return is_in_domain(core, node, seen);
    case BACK_VALIDATED:
        return true; /* by time: of the incident, not of a node */
    case BACK_UNCORDONED:
        return !seen->cordoned;
    case BACK_STAGE_COUNT:
        break;
    }
    return false;
}

static void lacking(const struct remediation *core, const struct incident *incident,
                    enum back_stage stage, struct names *nodes)
{
    for (size_t i = 0; i < incident->node_count; i++)
        if (must_return(incident, &incident->nodes[i]) &&
            !node_has(core, incident, &incident->nodes[i], stage))
            names_add(nodes, incident->nodes[i].name);
}

/* --- stages of the incident --- */

static void add_returning(const struct incident *incident, struct text *out)
{
    struct names nodes = {0};
    for (size_t i = 0; i < incident->node_count; i++)
        if (must_return(incident, &incident->nodes[i]))
            names_add(&nodes, incident->nodes[i].name);
    names_add_sentence(&nodes, 4, out);
    names_done(&nodes);
}

static void reach(struct remediation *core, struct incident *incident, enum back_stage stage)
{
    AUTO_TEXT nodes = {0};
    AUTO_TEXT took = {0};
    if (incident->back_ns[stage] != 0)
        return;
    bool first = stage == BACK_REGISTERED || incident->back_ns[stage - 1] == 0;
    int64_t since_ns = first ? incident->step_since_ns : incident->back_ns[stage - 1];
    incident->back_ns[stage] = core->now_ns;
    incident->dirty = true;
    add_returning(incident, &nodes);
    text_add_duration(&took, core->now_ns - since_ns);
    record_timeline(core, incident, "return", "broomd", "%s: %s, %s after %s", nodes.bytes,
                    stage_names[stage], took.bytes,
                    first ? "the hand-over" : stage_names[stage - 1]);
}

static void lose_from(struct incident *incident, int stage)
{
    for (; stage < BACK_STAGE_COUNT; stage++) {
        incident->dirty = incident->dirty || incident->back_ns[stage] != 0;
        incident->back_ns[stage] = 0;
    }
}

/* The first of the stages up to the domain that is not there; BACK_VALIDATED when all are. */
static enum back_stage first_lacking(struct remediation *core, struct incident *incident,
                                     struct names *ret_nodes)
{
    for (int stage = BACK_REGISTERED; stage <= BACK_IN_DOMAIN; stage++) {
        lacking(core, incident, (enum back_stage)stage, ret_nodes);
        if (ret_nodes->count > 0) {
            lose_from(incident, stage);
            return (enum back_stage)stage;
        }
        reach(core, incident, (enum back_stage)stage);
    }
    return BACK_VALIDATED;
}

static bool is_gone(const struct remediation *core, const char *node)
{
    return world_view_node(&core->world, node) == NULL;
}

static void say_lacking(const struct remediation *core, struct incident *incident,
                        enum back_stage stage, const struct names *nodes)
{
    AUTO_TEXT list = {0};
    names_add_sentence(nodes, 4, &list);
    const struct view_node *seen = world_view_node(&core->world, nodes->items[0]);
    switch (stage) {
    case BACK_REGISTERED:
        look_wait_for(incident,
                      is_gone(core, nodes->items[0])
                          ? "%.200s to be registered again by whoever repairs"
                          : "%.160s to be repaired and uncordoned by a person: never seen down",
                      list.bytes);
        break;
    case BACK_READY:
        look_wait_for(incident, "%.200s to be ready again, by whoever repairs", list.bytes);
        break;
    case BACK_SCHEDULABLE:
        if (seen != NULL && seen->cordoned && seen->gpus >= incident->gpus_per_node)
            look_wait_for(incident, "%.150s to be free: cordoned by %.60s", list.bytes,
                          seen->cordoned_by[0] != '\0' ? seen->cordoned_by : "somebody else");
        else
            look_wait_for(incident, "%.150s to have its GPUs: %d of %d are allocatable", list.bytes,
                          seen != NULL ? (int)seen->gpus : 0, (int)incident->gpus_per_node);
        break;
    case BACK_IN_DOMAIN:
        look_wait_for(incident, "%.150s to join the NVLink domain of its rack", list.bytes);
        break;
    case BACK_VALIDATED:
    case BACK_UNCORDONED:
    case BACK_STAGE_COUNT:
        break;
    }
}

static bool is_fresh(const struct remediation *core, const struct incident *incident)
{
    return core->world.known && core->world.received_ns >= incident->step_since_ns &&
           incident->node_count > 0;
}

void back_look_repairing(struct remediation *core, struct incident *incident)
{
    struct names nodes = {0};
    if (!is_fresh(core, incident))
        return;
    enum back_stage stage = first_lacking(core, incident, &nodes);
    if (stage == BACK_VALIDATED) {
        lose_from(incident, BACK_VALIDATED);
        incident->validating_ns = core->now_ns;
        look_dispatch(core, incident, EVENT_RETURNED, "the hardware is there again");
    } else if (incident_running_action(incident) == NULL)
        say_lacking(core, incident, stage, &nodes);
    names_done(&nodes);
}

/* --- validated, and back in service --- */

static bool broom_gives_back(const struct incident *incident)
{
    for (int i = 0; i < incident->plan.count; i++)
        if (incident->plan.steps[i].kind == STEP_HAND_OVER)
            return incident->plan.steps[i].gives_back;
    return false;
}

void back_add_due(const struct remediation *core, const struct incident *incident,
                  struct names *nodes)
{
    for (size_t i = 0; i < incident->node_count; i++) {
        const struct incident_node *node = &incident->nodes[i];
        const struct view_node *seen = world_view_node(&core->world, node->name);
        if (node->ours && seen != NULL && seen->cordoned &&
            act_aside_state(core, incident, VERB_UNCORDON, node->name) == ASIDE_DUE)
            names_add(nodes, node->name);
    }
}

/* Still cordoned, and nothing of ours will change that. */
static bool needs_person(const struct remediation *core, const struct incident *incident,
                         const struct names *cordoned)
{
    for (size_t i = 0; i < cordoned->count; i++) {
        const struct incident_node *node = incident_find_node(incident, cordoned->items[i]);
        enum aside_state state = act_aside_state(core, incident, VERB_UNCORDON, node->name);
        if (!broom_gives_back(incident) || !node->ours || state == ASIDE_OVER)
            return true;
    }
    return false;
}

static void ask_person(struct remediation *core, struct incident *incident,
                       const struct names *cordoned)
{
    AUTO_TEXT list = {0};
    AUTO_TEXT since = {0};
    char sentence[SENTENCE_BYTES];
    names_add_sentence(cordoned, 4, &list);
    text_add_time(&since, incident->back_ns[BACK_VALIDATED]);
    snprintf(sentence, sizeof sentence, "a person to uncordon %.170s: validated since %s",
             list.bytes, since.bytes);
    look_wait_for(incident, "%s", sentence);
    if (incident->return_told)
        return;
    incident->return_told = true;
    incident->dirty = true;
    act_tell(core, incident, sentence);
}

static void look_cordons(struct remediation *core, struct incident *incident)
{
    struct names cordoned = {0}, due = {0};
    lacking(core, incident, BACK_UNCORDONED, &cordoned);
    back_add_due(core, incident, &due);
    if (cordoned.count == 0) {
        reach(core, incident, BACK_UNCORDONED);
        look_dispatch(core, incident, EVENT_VALIDATED, "the hardware is back in service");
    } else if (needs_person(core, incident, &cordoned)) {
        ask_person(core, incident, &cordoned);
    } else if (due.count > 0) {
        look_dispatch(core, incident, EVENT_REACHED_UNCORDON, "the hardware is validated");
    } else {
        look_wait_for_answer(core, incident, VERB_UNCORDON);
    }
    names_done(&cordoned);
    names_done(&due);
}

void back_look_validating(struct remediation *core, struct incident *incident)
{
    struct names nodes = {0};
    if (incident->validating_ns == 0)
        incident->validating_ns = core->now_ns; /* a record that does not say */
    int64_t until_ns = incident->validating_ns + incident->timers.validate_ns;
    if (!is_fresh(core, incident))
        return;
    enum back_stage stage = first_lacking(core, incident, &nodes);
    if (stage != BACK_VALIDATED) {
        AUTO_TEXT list = {0};
        char reason[SENTENCE_BYTES];
        names_add_sentence(&nodes, 4, &list);
        snprintf(reason, sizeof reason, "%.180s: not %s now", list.bytes, stage_names[stage]);
        look_dispatch(core, incident, EVENT_ACCUSED, reason);
    } else if (core->now_ns < until_ns) {
        AUTO_TEXT until = {0};
        text_add_time(&until, until_ns);
        look_wait_for(incident, "the hardware to stay so until %s", until.bytes);
    } else {
        reach(core, incident, BACK_VALIDATED);
        look_cordons(core, incident);
    }
    names_done(&nodes);
}
