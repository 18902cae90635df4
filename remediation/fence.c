/* Who says that a node is off: a fence step, whoever repairs, a person, or the cluster's own mark.
 * A cordon never does, and silence never does. Whatever was said counts no more once the node is
 * seen ready again.
 */
#include "remediation/core_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Open, or given up and not yet closed by a person. */
static bool takes_words(const struct incident *incident)
{
    return !incident_has_ended(incident) ||
           (incident->phase == PHASE_ESCALATED &&
            (incident->status == INCIDENT_OPEN || incident->status == INCIDENT_MITIGATED));
}

const char *fence_word(const struct remediation *core, const char *node)
{
    const struct view_node *seen = world_view_node(&core->world, node);
    if (seen != NULL && seen->fenced_by[0] != '\0')
        return seen->fenced_by;
    for (size_t i = 0; i < core->incident_count; i++) {
        const struct incident *incident = core->incidents[i];
        const struct incident_node *known = incident_find_node(incident, node);
        if (known != NULL && known->fenced_by != NULL && takes_words(incident))
            return known->fenced_by;
    }
    return NULL;
}

bool fence_stands(const struct remediation *core, const char *node)
{
    const struct view_node *seen = world_view_node(&core->world, node);
    return fence_word(core, node) != NULL && (seen == NULL || !seen->ready);
}

static void mark(const struct remediation *core, struct incident *incident,
                 struct incident_node *node, const char *who)
{
    xfree(node->fenced_by);
    node->fenced_by = xstrdup(who);
    node->fenced_ns = core->now_ns;
    node->seen_down = false;
    incident->dirty = true;
}

void fence_take_answer(struct remediation *core, struct incident *incident,
                       const struct incident_action *action, const char *response)
{
    struct json *root = NULL;
    struct names said = {0}, marked = {0};
    AUTO_TEXT list = {0};
    char who[SENTENCE_BYTES];
    if (response != NULL && json_parse(view_of(response), &root, NULL) != OK)
        root = NULL; /* a body of another kind names no nodes */
    const struct json *fenced = json_get(root, "fenced");
    bool all = fenced == NULL ? action->verb == VERB_FENCE : json_bool(fenced, false);
    names_parse(&said, fenced);
    snprintf(who, sizeof who, "%s [%s]", verb_name(action->verb), action->operation_id);
    for (size_t i = 0; i < action->nodes.count; i++) {
        struct incident_node *node = incident_find_node(incident, action->nodes.items[i]);
        if (node == NULL || !(all || names_has(&said, node->name)))
            continue;
        mark(core, incident, node, who);
        names_add(&marked, node->name);
    }
    names_add_sentence(&marked, 4, &list);
    if (marked.count > 0)
        record_timeline(core, incident, "fenced", "broomd", "Confirmed to be off: %s", list.bytes);
    else if (action->verb == VERB_FENCE)
        record_timeline(core, incident, "not_fenced", "broomd",
                        "The answer confirms no node to be off");
    names_done(&said);
    names_done(&marked);
    json_free(root);
}

static void say_fenced(struct remediation *core, struct incident *incident, const char *node,
                       const char *actor, const char *text)
{
    record_timeline(core, incident, "fenced", actor, "%s is off%s%s", node,
                    text[0] != '\0' ? ": " : "", text);
}

size_t fence_by_person(struct remediation *core, const char *node, const char *actor,
                       const char *text)
{
    size_t count = 0;
    for (size_t i = 0; i < core->incident_count; i++) {
        struct incident *incident = core->incidents[i];
        struct incident_node *known = incident_find_node(incident, node);
        if (known == NULL || !takes_words(incident))
            continue;
        mark(core, incident, known, actor);
        say_fenced(core, incident, node, actor, text);
        count++;
    }
    return count;
}

void fence_whole_incident(struct remediation *core, struct incident *incident, const char *actor)
{
    text_copy(incident->fenced_by, sizeof incident->fenced_by, actor);
    for (size_t i = 0; i < incident->node_count; i++)
        mark(core, incident, &incident->nodes[i], actor);
    incident->dirty = true;
}

/* A node that was running when somebody said that it is off needs a while until it is seen down. */
static bool is_contradicted(const struct remediation *core, struct incident_node *node)
{
    const struct view_node *seen = world_view_node(&core->world, node->name);
    if (seen == NULL || !seen->ready) {
        node->seen_down = true;
        return false;
    }
    return node->seen_down || core->now_ns - node->fenced_ns >= FENCE_SEEN_NS;
}

void fence_watch(struct remediation *core, struct incident *incident)
{
    struct names back = {0};
    AUTO_TEXT list = {0};
    for (size_t i = 0; takes_words(incident) && i < incident->node_count; i++) {
        struct incident_node *node = &incident->nodes[i];
        if (node->fenced_by == NULL || !is_contradicted(core, node))
            continue;
        names_add(&back, node->name);
        xfree(TAKE(node->fenced_by));
        node->fenced_ns = 0;
    }
    names_add_sentence(&back, 4, &list);
    if (back.count > 0)
        record_timeline(core, incident, "unfenced", "broomd",
                        "Seen ready, so not off, whoever said so: %s", list.bytes);
    names_done(&back);
}

/* Power taken from a node that works for somebody else is a fault of our own making. */
static bool works_for_another(const struct remediation *core, const struct incident *incident,
                              const char *node)
{
    const struct view_node *seen = world_view_node(&core->world, node);
    for (size_t i = 0; seen != NULL && seen->ready && i < core->world.job_count; i++)
        if (strcmp(core->world.jobs[i].name, incident->job) != 0 &&
            names_has(&core->world.jobs[i].nodes, node))
            return true;
    return false;
}

void fence_add_due(const struct remediation *core, const struct incident *incident,
                   struct names *nodes)
{
    for (size_t i = 0; i < incident->node_count; i++) {
        const char *name = incident->nodes[i].name;
        if (!fence_stands(core, name) && !works_for_another(core, incident, name))
            names_add(nodes, name);
    }
}
