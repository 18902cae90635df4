/* What people say: approve, abort, decline, pause and the rest. Each answers at once, or says why
 * not. */
#include "remediation/core_state.h"

#include <assert.h>
#include <string.h>

static const char *const verb_names[] = {
    [COMMAND_APPROVE] = "approve",
    [COMMAND_ABORT] = "abort",
    [COMMAND_ACK] = "ack",
    [COMMAND_DECLINE] = "decline",
    [COMMAND_NOTE] = "note",
    [COMMAND_PAUSE] = "pause",
    [COMMAND_RESUME] = "resume",
    [COMMAND_FENCED] = "fenced",
    [COMMAND_BREAKER_CLOSE] = "breaker_close",
};
_Static_assert(ARRAY_LEN(verb_names) == COMMAND_VERB_COUNT, "every verb has a name");

static void say(struct remediation *core, struct incident *incident,
                const struct remediation_command *command)
{
    const char *text = command->text != NULL ? command->text : "";
    record_timeline(core, incident, verb_names[command->verb], command->actor, "%s%s%s",
                    command->verb == COMMAND_NOTE ? "" : verb_names[command->verb],
                    text[0] != '\0' && command->verb != COMMAND_NOTE ? ": " : "", text);
}

static enum status approve(struct remediation *core, struct incident *incident,
                           const struct remediation_command *command, struct error *reterr)
{
    if (incident->phase != PHASE_AWAITING_APPROVAL)
        return error_set(reterr, ERR_REFUSED, "%s does not await approval: it is %s", incident->ref,
                         phase_name(incident->phase));
    say(core, incident, command);
    text_copy(incident->approved_by, sizeof incident->approved_by, command->actor);
    look_dispatch(core, incident, EVENT_APPROVED, "a person approved");
    return OK;
}

static enum status stop(struct remediation *core, struct incident *incident,
                        const struct remediation_command *command, enum fsm_event event,
                        struct error *reterr)
{
    bool closes = incident->phase == PHASE_ESCALATED &&
                  (incident->status == INCIDENT_OPEN || incident->status == INCIDENT_MITIGATED);
    if (incident_has_ended(incident) && !closes)
        return error_set(reterr, ERR_REFUSED, "%s has ended: it is %s", incident->ref,
                         incident_status_name(incident->status));
    say(core, incident, command);
    look_dispatch(core, incident, event, command->text != NULL ? command->text : "a person's word");
    fold_rejudge(core, incident);
    return OK;
}

static void pause_or_resume(struct remediation *core, const struct remediation_command *command)
{
    core->paused = command->verb == COMMAND_PAUSE;
    text_copy(core->paused_by, sizeof core->paused_by, core->paused ? command->actor : "");
    record_control(core, verb_names[command->verb], command->actor, command->text);
}

/* The standing accusations are believed again: each becomes an incident of its own. */
static void judge_observer(struct remediation *core, struct incident *observer)
{
    struct names nodes = {0};
    for (size_t i = 0; i < observer->node_count; i++)
        names_add(&nodes, observer->nodes[i].name);
    core->accusation_count = 0;
    look_dispatch(core, observer, EVENT_OBSERVER_JUDGED, "a person closed the breaker");
    for (size_t i = 0; i < nodes.count; i++)
        fold_accuse_node(core, observer->job, nodes.items[i], "judged by a person");
    core->accusation_count = 0;
    names_done(&nodes);
}

static enum status close_breaker(struct remediation *core,
                                 const struct remediation_command *command, struct error *reterr)
{
    if (!core->breaker_open)
        return error_set(reterr, ERR_REFUSED, "the breaker is closed already");
    core->breaker_open = false;
    core->breaker_reason[0] = '\0';
    record_control(core, "breaker_close", command->actor, command->text);
    size_t count = core->incident_count;
    for (size_t i = 0; i < count; i++) {
        struct incident *incident = core->incidents[i];
        if (!incident->observer_suspect || incident_has_ended(incident))
            continue;
        say(core, incident, command);
        judge_observer(core, incident);
    }
    return OK;
}

static enum status decline(struct remediation *core, struct incident *incident,
                           const struct remediation_command *command, struct error *reterr)
{
    if (incident->observer_suspect)
        core->accusation_count = 0;
    return stop(core, incident, command, EVENT_DECLINED, reterr);
}

static enum status run_on_incident(struct remediation *core,
                                   const struct remediation_command *command, struct error *reterr)
{
    struct incident *incident = command->incident_ref != NULL
                                    ? core_incident(core, command->incident_ref)
                                    : NULL;
    if (incident == NULL)
        return error_set(reterr, ERR_NOT_FOUND, "no incident '%s'; 'broom incidents' lists them",
                         command->incident_ref != NULL ? command->incident_ref : "");
    switch (command->verb) {
    case COMMAND_APPROVE:
        return approve(core, incident, command, reterr);
    case COMMAND_ABORT:
        return stop(core, incident, command, EVENT_ABORTED, reterr);
    case COMMAND_DECLINE:
        return decline(core, incident, command, reterr);
    case COMMAND_ACK:
        text_copy(incident->acked_by, sizeof incident->acked_by, command->actor);
        break;
    case COMMAND_FENCED:
        fence_whole_incident(core, incident, command->actor);
        break;
    case COMMAND_NOTE:
    case COMMAND_PAUSE:
    case COMMAND_RESUME:
    case COMMAND_BREAKER_CLOSE:
    case COMMAND_VERB_COUNT:
        break;
    }
    say(core, incident, command);
    return OK;
}

static enum status fence_node(struct remediation *core, const struct remediation_command *command,
                              struct error *reterr)
{
    const char *text = command->text != NULL ? command->text : "";
    if (fence_by_person(core, command->node, command->actor, text) > 0)
        return OK;
    return error_set(reterr, ERR_NOT_FOUND,
                     "no open incident has a node '%.150s'; 'broom incidents show INC-n' names its "
                     "nodes",
                     command->node);
}

enum status remediation_command(struct remediation *core, const struct remediation_command *command,
                                int64_t now_ns, struct error *reterr)
{
    enum status status = OK;
    assert(command->actor != NULL);
    if (now_ns > core->now_ns)
        core->now_ns = now_ns;
    if (command->verb == COMMAND_PAUSE || command->verb == COMMAND_RESUME)
        pause_or_resume(core, command);
    else if (command->verb == COMMAND_BREAKER_CLOSE)
        status = close_breaker(core, command, reterr);
    else if (command->verb == COMMAND_FENCED && command->incident_ref == NULL &&
             command->node != NULL)
        status = fence_node(core, command, reterr);
    else
        status = run_on_incident(core, command, reterr);
    look_all(core);
    record_dirty(core);
    return status;
}
