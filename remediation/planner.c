/* See planner.h. */
#include "remediation/planner.h"

#include "remediation/core_state.h"
#include "remediation/spare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void planned_done(struct planned *planned)
{
    names_done(&planned->nodes);
    names_done(&planned->spares);
    text_done(&planned->params);
}

static void add_incident_nodes(const struct incident *incident, struct names *nodes)
{
    for (size_t i = 0; i < incident->node_count; i++)
        names_add_new(nodes, incident->nodes[i].name);
}

static void say_reason(const struct incident *incident, struct planned *planned, const char *what)
{
    snprintf(planned->reason, sizeof planned->reason, "broom:%s %s of %s %.80s: %s", incident->ref,
             verdict_kind_name(incident->kind), scope_name(incident->scope), incident->domain,
             what);
}

static void put_notify(const struct incident *incident, const struct plan_step *step,
                       struct json_writer *w)
{
    AUTO_TEXT sentence = {0};
    text_addf(&sentence, "%s P%d: %s of %s %s in job %s; plan %s, mode %s", incident->ref,
              incident->severity, verdict_kind_name(incident->kind), scope_name(incident->scope),
              incident->domain, incident->job, incident->plan.name, mode_name(incident->mode));
    json_put_string(w, "severity", step->severity);
    json_put_string(w, "text", sentence.bytes);
}

void planner_step(const struct remediation *core, const struct incident *incident,
                  struct planned *planned)
{
    const struct plan_step *step = &incident->plan.steps[planned->step];
    struct json_writer w = json_writer(&planned->params);
    json_open_object(&w);
    switch (step->kind) {
    case STEP_NOTIFY:
        put_notify(incident, step, &w);
        break;
    case STEP_CAPTURE:
        json_put_int(&w, "before_ns", step->before_ns);
        json_put_int(&w, "after_ns", step->after_ns);
        json_put_int(&w, "around_ns", incident->times.fault_started_ns);
        break;
    case STEP_DRAIN:
    case STEP_REQUEST_CHECKPOINT:
    case STEP_FENCE:
        json_put_int(&w, "timeout_ns", step->timeout_ns);
        break;
    case STEP_HAND_OVER:
        json_put_string(&w, "to", step->to);
        break;
    case STEP_CORDON:
    case STEP_CHOOSE_SPARE:
    case STEP_RESTART_JOB:
    case STEP_VERIFY:
    case STEP_KIND_COUNT:
        break;
    }
    json_close(&w);
    if (step->kind == STEP_FENCE)
        fence_add_due(core, incident, &planned->nodes);
    else if (step->kind != STEP_REQUEST_CHECKPOINT)
        add_incident_nodes(incident, &planned->nodes);
    say_reason(incident, planned, plan_step_sentence(step));
}

void planner_tell(const struct incident *incident, const char *sentence, struct planned *planned)
{
    AUTO_TEXT text = {0};
    struct json_writer w = json_writer(&planned->params);
    text_addf(&text, "%s P%d %s, %s: %s of %s %s in job %s: %s", incident->ref, incident->severity,
              incident_status_name(incident->status), phase_name(incident->phase),
              verdict_kind_name(incident->kind), scope_name(incident->scope), incident->domain,
              incident->job, sentence);
    json_open_object(&w);
    json_put_string(&w, "severity", "critical");
    json_put_string(&w, "text", text.bytes);
    json_close(&w);
    say_reason(incident, planned, "tell people");
}

static void add_rack_nodes(const struct remediation *core, struct incident *incident)
{
    struct names racks = {0};
    for (size_t i = 0; i < incident->node_count; i++)
        if (incident->nodes[i].rack[0] != '\0')
            names_add_new(&racks, incident->nodes[i].rack);
    for (size_t i = 0; i < core->world.node_count; i++)
        if (names_has(&racks, core->world.nodes[i].rack))
            incident_add_node(incident, core->world.nodes[i].name, core->world.nodes[i].rack);
    names_done(&racks);
}

void planner_cordon(const struct remediation *core, struct incident *incident, bool whole_rack,
                    struct planned *planned)
{
    if (whole_rack)
        add_rack_nodes(core, incident);
    for (size_t i = 0; i < incident->node_count; i++) {
        struct incident_node *node = &incident->nodes[i];
        const struct view_node *seen = world_view_node(&core->world, node->name);
        bool gone = core->world.known && seen == NULL; /* nothing is there to be cordoned */
        bool cordoned = seen != NULL && seen->cordoned;
        if (cordoned && strcmp(seen->cordoned_by, incident->ref) == 0)
            node->ours = true;
        else if (cordoned && !node->ours)
            node->was_cordoned = true;
        if (!node->ours && !node->was_cordoned && !gone)
            names_add(&planned->nodes, node->name);
    }
    say_reason(incident, planned, whole_rack ? "cordon the rack" : "cordon");
}

/* On the promised spares or nowhere. */
static bool is_named(const struct incident *incident)
{
    for (int i = 0; i < incident->plan.count; i++)
        if (incident->plan.steps[i].kind == STEP_RESTART_JOB)
            return incident->plan.steps[i].named_only;
    return false;
}

void planner_promise(const struct remediation *core, const struct incident *incident,
                     struct planned *planned)
{
    struct names nodes = {0};
    core_job_nodes(core, incident->job, &nodes);
    struct spare_view view = {&core->world, core->incidents, core->incident_count, &nodes};
    struct spare_choice choice = spare_choose(&view, incident,
                                              &incident->plan.steps[planned->step]);
    names_copy(&planned->nodes, &choice.leaving);
    names_copy(&planned->spares, &choice.spares);
    spare_choice_done(&choice);
    if (is_named(incident))
        text_add(&planned->params, "{\"hold_others\":true}");
    names_done(&nodes);
    say_reason(incident, planned, "promise spares");
}

static bool waits_for_restart(const struct incident *other, const struct incident *incident)
{
    return other != incident && !incident_has_ended(other) &&
           strcmp(other->job, incident->job) == 0 && other->spares.count > 0 &&
           other->restart_started_ns == 0 && incident_running_action(other) == NULL &&
           other->step < other->plan.count &&
           other->plan.steps[other->step].kind == STEP_RESTART_JOB;
}

void planner_restart(const struct remediation *core, const struct incident *incident,
                     struct planned *planned)
{
    struct json_writer w = json_writer(&planned->params);
    names_copy(&planned->nodes, &incident->leaving);
    names_copy(&planned->spares, &incident->spares);
    if (planned->nodes.count == 0)
        add_incident_nodes(incident, &planned->nodes);
    for (size_t i = 0; i < core->incident_count; i++) {
        const struct incident *other = core->incidents[i];
        for (size_t j = 0; waits_for_restart(other, incident) && j < other->leaving.count; j++) {
            names_add(&planned->nodes, other->leaving.items[j]);
            names_add(&planned->spares, other->spares.items[j]);
        }
    }
    json_open_object(&w);
    json_put_int(&w, "timeout_ns", incident->plan.steps[planned->step].timeout_ns);
    json_put_string(&w, "placement", is_named(incident) ? "named" : "scheduler");
    json_close(&w);
    say_reason(incident, planned, "restart the job");
}

void planner_force_delete(const struct remediation *core, const struct incident *incident,
                          struct planned *planned)
{
    struct json_writer w = json_writer(&planned->params);
    place_add_stuck_due(core, incident, &planned->nodes);
    json_open_object(&w);
    json_add_key(&w, "fenced");
    json_open_object(&w);
    for (size_t i = 0; i < planned->nodes.count; i++)
        json_put_string(&w, planned->nodes.items[i], fence_word(core, planned->nodes.items[i]));
    json_close(&w);
    json_close(&w);
    say_reason(incident, planned, "end the pods that never end");
}

void planner_would(const struct remediation *core, const struct incident *incident,
                   struct text *out)
{
    const struct plan_step *step = &incident->plan.steps[incident->step];
    text_add(out, plan_step_sentence(step));
    if (step->kind == STEP_CORDON || step->kind == STEP_DRAIN || step->kind == STEP_FENCE) {
        struct names nodes = {0};
        add_incident_nodes(incident, &nodes);
        text_add(out, " ");
        names_add_sentence(&nodes, 4, out);
        names_done(&nodes);
    }
    if (step->kind == STEP_CHOOSE_SPARE && core->world.known) {
        struct planned planned = {.verb = VERB_PROMISE_SPARE, .step = incident->step};
        planner_promise(core, incident, &planned);
        text_add(out, planned.spares.count > 0 ? " " : " (none is free)");
        names_add_sentence(&planned.spares, 4, out);
        planned_done(&planned);
    }
}

static int count_actions(const struct incident *incident, int step, enum verb verb)
{
    int count = 0;
    for (size_t i = 0; i + 1 < incident->action_count; i++)
        if (incident->actions[i].step == step && (step >= 0 || incident->actions[i].verb == verb))
            count++;
    return count;
}

void planner_fill_action(const struct incident *incident, const struct planned *planned,
                         struct incident_action *action)
{
    action->verb = planned->verb;
    action->step = planned->step;
    action->aside = planned->aside;
    action->try_number = count_actions(incident, planned->step, planned->verb) + 1;
    if (planned->step >= 0)
        snprintf(action->operation_id, sizeof action->operation_id, "%s/%d/%d/%d", incident->ref,
                 incident->round, planned->step, action->try_number);
    else
        snprintf(action->operation_id, sizeof action->operation_id, "%s/%d/%s/%d", incident->ref,
                 incident->round, verb_name(planned->verb), action->try_number);
    names_copy(&action->nodes, &planned->nodes);
    names_copy(&action->spares, &planned->spares);
    if (planned->params.length > 0)
        action->params_json = xstrdup(planned->params.bytes);
}
