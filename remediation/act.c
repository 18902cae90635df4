/* Commands of the table -> actions with deterministic operation ids; outcomes -> events. The intent
 * and the incident's record are emitted before the start is asked for, so that what may have
 * happened is always written down.
 */
#include "remediation/core_state.h"
#include "remediation/planner.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int act_tries(const struct incident *incident, int step)
{
    int tries = 0;
    for (size_t i = 0; i < incident->action_count; i++) {
        const struct incident_action *action = &incident->actions[i];
        bool counts = action->step == step && action->state == ACTION_ENDED &&
                      action->outcome == OUTCOME_TRANSIENT;
        tries += counts ? 1 : 0;
    }
    return tries;
}

enum aside_state act_aside_state(const struct remediation *core, const struct incident *incident,
                                 enum verb verb, const char *node)
{
    enum aside_state state = ASIDE_DUE;
    int tries = 0;
    for (size_t i = 0; i < incident->action_count; i++) {
        const struct incident_action *action = &incident->actions[i];
        if (!action->aside || action->verb != verb ||
            !(names_has(&action->nodes, node) || names_has(&action->spares, node)))
            continue;
        if (action->state != ACTION_ENDED)
            return ASIDE_UNDER_WAY;
        tries += action->outcome == OUTCOME_TRANSIENT ? 1 : 0;
        bool again = action->outcome == OUTCOME_CANCELLED ||
                     (action->outcome == OUTCOME_TRANSIENT && tries < STEP_TRIES_MAX);
        int64_t due_ns = action->ended_ns + RETRY_AFTER_NS * (tries > 1 ? tries : 1);
        state = !again ? ASIDE_OVER : core->now_ns < due_ns ? ASIDE_LATER : ASIDE_DUE;
    }
    return state;
}

bool act_was_uncordoned(const struct incident *incident, const char *node)
{
    for (size_t i = 0; i < incident->action_count; i++) {
        const struct incident_action *action = &incident->actions[i];
        if (action->verb == VERB_UNCORDON && names_has(&action->nodes, node) &&
            (action->state != ACTION_ENDED || action->outcome == OUTCOME_SUCCEEDED))
            return true;
    }
    return false;
}

const char *act_command_verb(enum fsm_command command)
{
    switch (command) {
    case DO_NOTIFY:
        return verb_name(VERB_NOTIFY);
    case DO_CAPTURE:
        return verb_name(VERB_CAPTURE);
    case DO_CORDON:
        return verb_name(VERB_CORDON);
    case DO_DRAIN:
        return verb_name(VERB_DRAIN);
    case DO_FENCE:
        return verb_name(VERB_FENCE);
    case DO_FORCE_DELETE:
        return verb_name(VERB_FORCE_DELETE);
    case DO_REQUEST_CHECKPOINT:
        return verb_name(VERB_REQUEST_CHECKPOINT);
    case DO_PROMISE_SPARE:
        return verb_name(VERB_PROMISE_SPARE);
    case DO_RESTART_JOB:
        return verb_name(VERB_RESTART_JOB);
    case DO_HAND_OVER:
        return verb_name(VERB_HAND_OVER);
    case DO_RELEASE_SPARES:
        return verb_name(VERB_RELEASE_SPARE);
    case DO_UNCORDON:
        return verb_name(VERB_UNCORDON);
    case DO_NOTHING:
    case DO_RECORD_WOULD:
    case DO_NEXT_STEP:
    case DO_RETRY_STEP:
    case DO_UNDO:
    case FSM_COMMAND_COUNT:
        break;
    }
    return NULL;
}

bool act_job_has_moved(const struct remediation *core, const struct incident *incident)
{
    const struct view_job *job = world_view_job(&core->world, incident->job);
    if (!core->world.known || job == NULL || !job->nodes_known)
        return false;
    for (size_t i = 0; i < incident->node_count; i++)
        if (names_has(&job->nodes, incident->nodes[i].name))
            return false;
    for (size_t i = 0; i < incident->leaving.count; i++)
        if (names_has(&job->nodes, incident->leaving.items[i]))
            return false;
    return incident->node_count > 0;
}

/* --- starting --- */

static void next_step(struct remediation *core, struct incident *incident)
{
    incident->step++;
    incident->step_since_ns = core->now_ns;
    incident->dirty = true;
}

/* Records the intent, then asks for the start. */
static void launch(struct remediation *core, struct incident *incident, struct planned *planned)
{
    struct incident_action *action = incident_add_action(incident);
    planner_fill_action(incident, planned, action);
    action->started_ns = core->now_ns;
    action->state = ACTION_STARTED;
    action->next_poll_ns = core->now_ns + POLL_START_NS;
    core->actions_started++;
    AUTO_TEXT what = {0};
    text_add(&what, verb_name(action->verb));
    text_add(&what, action->nodes.count > 0 ? " " : "");
    names_add_sentence(&action->nodes, 4, &what);
    text_add(&what, action->spares.count > 0 ? " -> " : "");
    names_add_sentence(&action->spares, 4, &what);
    if (planned->note != NULL)
        text_addf(&what, ": %s", planned->note);
    record_action(core, incident, action, planned->reason);
    record_timeline(core, incident, "action", "broomd", "%s [%s]", what.bytes,
                    action->operation_id);
    if (!action->aside)
        look_wait_for_answer(core, incident, action->verb);
    record_incident(core, incident);
    effect_push_action(core, EFFECT_START, incident, action, planned->reason);
}

static void mark_acted(struct remediation *core, struct incident *incident)
{
    if (incident->times.acted_ns == 0)
        incident->times.acted_ns = core->now_ns;
}

static void start_simple(struct remediation *core, struct incident *incident, enum verb verb)
{
    struct planned planned = {.verb = verb, .step = incident->step};
    planner_step(core, incident, &planned);
    if (verb == VERB_REQUEST_CHECKPOINT || verb == VERB_DRAIN || verb == VERB_FENCE)
        mark_acted(core, incident);
    launch(core, incident, &planned);
    planned_done(&planned);
}

static void start_fence(struct remediation *core, struct incident *incident)
{
    struct names due = {0};
    fence_add_due(core, incident, &due);
    if (due.count > 0) {
        start_simple(core, incident, VERB_FENCE);
    } else {
        record_timeline(core, incident, "fence_skipped", "broomd",
                        "No node is to be powered off: each is off already, or works for others");
        look_dispatch(core, incident, EVENT_STEP_SKIPPED, "nothing to power off");
    }
    names_done(&due);
}

static void start_force_delete(struct remediation *core, struct incident *incident)
{
    struct planned planned = {.verb = VERB_FORCE_DELETE, .step = -1, .aside = true};
    planner_force_delete(core, incident, &planned);
    launch(core, incident, &planned);
    planned_done(&planned);
}

/* For a node that is not in the cluster any more there is nothing to do, now or later. */
static void say_gone(struct remediation *core, struct incident *incident)
{
    struct names gone = {0};
    AUTO_TEXT list = {0};
    for (size_t i = 0; core->world.known && i < incident->node_count; i++)
        if (world_view_node(&core->world, incident->nodes[i].name) == NULL)
            names_add(&gone, incident->nodes[i].name);
    names_add_sentence(&gone, 4, &list);
    if (gone.count > 0)
        record_timeline(core, incident, "node_gone", "broomd",
                        "Not in the cluster, so not cordoned: %s", list.bytes);
    names_done(&gone);
}

static void start_cordon(struct remediation *core, struct incident *incident)
{
    struct planned planned = {.verb = VERB_CORDON, .step = incident->step};
    const struct plan_step *step = &incident->plan.steps[incident->step];
    planner_cordon(core, incident, step->whole_rack, &planned);
    incident->nodes_spent_ns = core->now_ns;
    incident->spent_rack = step->whole_rack || incident->scope == SCOPE_RACK;
    say_gone(core, incident);
    if (planned.nodes.count == 0) {
        record_timeline(
            core, incident, "cordon_skipped", "broomd",
            "Every node is cordoned already, or gone; no cordon of ours is to be undone");
        look_dispatch(core, incident, EVENT_STEP_SKIPPED, "cordoned already");
    } else {
        mark_acted(core, incident);
        launch(core, incident, &planned);
    }
    planned_done(&planned);
}

static void start_promise(struct remediation *core, struct incident *incident)
{
    struct planned planned = {.verb = VERB_PROMISE_SPARE, .step = incident->step};
    planner_promise(core, incident, &planned);
    names_copy(&incident->leaving, &planned.nodes);
    names_copy(&incident->spares, &planned.spares);
    if (planned.spares.count == 0) {
        record_timeline(core, incident, "no_spare_needed", "broomd",
                        "The job holds no rank on these nodes: no spare is needed");
        look_dispatch(core, incident, EVENT_STEP_SKIPPED, "no spare is needed");
    } else {
        mark_acted(core, incident);
        for (size_t i = 0; i < incident->spares.count; i++)
            record_spare(core, incident, incident->spares.items[i], "promised");
        launch(core, incident, &planned);
    }
    planned_done(&planned);
}

static void say_resume(struct remediation *core, struct incident *incident)
{
    AUTO_TEXT resume = {0};
    place_add_resume(core, incident, &resume);
    record_timeline(core, incident, "resumes_from", "broomd", "The job %s",
                    resume.length > 0 ? resume.bytes : "resumes from a step that is not known");
}

/* Somebody restarts it already, and a second restart on top of that could end both. */
static void join_restart(struct remediation *core, struct incident *incident)
{
    if (incident->restarts_before > 0)
        incident->restarts_before--; /* the one under way is counted and is the one that we want */
    record_timeline(core, incident, "restart_joined", "broomd",
                    "The job is being restarted already: no second restart on top of it");
    look_dispatch(core, incident, EVENT_STEP_SUCCEEDED, "a restart is under way");
}

static void start_restart(struct remediation *core, struct incident *incident)
{
    struct planned planned = {.verb = VERB_RESTART_JOB, .step = incident->step};
    const struct job_state *job = core_find_job(core, incident->job);
    const struct view_job *seen = world_view_job(&core->world, incident->job);
    planner_restart(core, incident, &planned);
    names_done(&incident->nodes_before);
    core_job_nodes(core, incident->job, &incident->nodes_before);
    incident->restart_started_ns = core->now_ns;
    mark_acted(core, incident);
    incident->attempt_before = job != NULL && job->progress_known ? job->progress.attempt
                                                                  : JOB_NONE;
    if (job != NULL && job->progress_known && job->progress.step > incident->step_at_fault)
        incident->step_at_fault = job->progress.step;
    incident->restarts_before = seen != NULL ? seen->restarts : -1;
    text_copy(incident->uid_before, sizeof incident->uid_before, seen != NULL ? seen->uid : "");
    say_resume(core, incident);
    if (seen != NULL && strcmp(seen->phase, "restarting") == 0)
        join_restart(core, incident);
    else
        launch(core, incident, &planned);
    planned_done(&planned);
}

void act_tell(struct remediation *core, struct incident *incident, const char *sentence)
{
    struct planned planned = {.verb = VERB_NOTIFY, .step = -1, .aside = true};
    enum mode mode = incident->observer_suspect ? core->daemon_mode : incident->mode;
    if (mode == MODE_OBSERVE || mode == MODE_UNSET || !core->guards.lease_held ||
        !core->guards.store_up)
        return;
    planner_tell(incident, sentence, &planned);
    launch(core, incident, &planned);
    planned_done(&planned);
}

/* --- giving back --- */

static void start_uncordon(struct remediation *core, struct incident *incident)
{
    struct planned planned = {.verb = VERB_UNCORDON, .step = -1, .aside = true};
    back_add_due(core, incident, &planned.nodes);
    snprintf(planned.reason, sizeof planned.reason, "broom:%s validated, back in service",
             incident->ref);
    launch(core, incident, &planned);
    planned_done(&planned);
}

/* Another incident's restart may have moved the job onto ours. */
static bool job_sits_on_spares(const struct remediation *core, const struct incident *incident)
{
    const struct view_job *job = world_view_job(&core->world, incident->job);
    for (size_t i = 0; job != NULL && i < incident->spares.count; i++)
        if (names_has(&job->nodes, incident->spares.items[i]))
            return true;
    return incident->restart_started_ns != 0;
}

static void release_spares(struct remediation *core, struct incident *incident)
{
    struct planned planned = {.verb = VERB_RELEASE_SPARE, .step = -1};
    if (incident->spares.count == 0 || job_sits_on_spares(core, incident))
        return;
    names_copy(&planned.spares, &incident->spares);
    snprintf(planned.reason, sizeof planned.reason, "broom:%s gives its spares back",
             incident->ref);
    for (size_t i = 0; i < incident->spares.count; i++)
        record_spare(core, incident, incident->spares.items[i], "free");
    names_done(&incident->spares);
    names_done(&incident->leaving);
    launch(core, incident, &planned);
    planned_done(&planned);
}

void act_settle(struct remediation *core, struct incident *incident, const struct names *spares,
                bool used)
{
    struct planned planned = {.verb = VERB_RELEASE_SPARE, .step = -1, .aside = true};
    names_copy(&planned.spares, spares);
    planned.note = used ? "the job runs there" : "the job does not run there";
    if (used)
        text_add(&planned.params, "{\"used\":true}");
    snprintf(planned.reason, sizeof planned.reason, "broom:%s %s", incident->ref,
             used ? "the job runs on these spares" : "the job does not run on these spares");
    launch(core, incident, &planned);
    planned_done(&planned);
}

void act_take_marks_off(struct remediation *core, struct incident *incident,
                        const struct names *nodes)
{
    struct planned planned = {.verb = VERB_UNCORDON, .step = -1, .aside = true};
    names_copy(&planned.nodes, nodes);
    snprintf(planned.reason, sizeof planned.reason, "broom:%s what an uncordon left of its cordon",
             incident->ref);
    launch(core, incident, &planned);
    planned_done(&planned);
}

static void undo_cordons(struct remediation *core, struct incident *incident)
{
    struct planned planned = {.verb = VERB_UNCORDON, .step = -1};
    for (size_t i = 0; i < incident->node_count; i++)
        if (incident->nodes[i].ours)
            names_add(&planned.nodes, incident->nodes[i].name);
    snprintf(planned.reason, sizeof planned.reason, "broom:%s takes its own cordon off",
             incident->ref);
    if (planned.nodes.count > 0)
        launch(core, incident, &planned);
    planned_done(&planned);
}

/* --- commands --- */

static void record_would(struct remediation *core, struct incident *incident)
{
    AUTO_TEXT what = {0};
    planner_would(core, incident, &what);
    record_timeline(core, incident, "would", "broomd", "Would %s (mode observe: nothing is done)",
                    what.bytes);
    next_step(core, incident);
}

static void retry_step(struct remediation *core, struct incident *incident)
{
    int tries = act_tries(incident, incident->step);
    incident->step_since_ns = core->now_ns + RETRY_AFTER_NS * (tries > 1 ? tries : 1);
    incident->dirty = true;
}

void act_run(struct remediation *core, struct incident *incident, enum fsm_command command)
{
    switch (command) {
    case DO_NOTHING:
        break;
    case DO_RECORD_WOULD:
        record_would(core, incident);
        break;
    case DO_NOTIFY:
        start_simple(core, incident, VERB_NOTIFY);
        break;
    case DO_CAPTURE:
        start_simple(core, incident, VERB_CAPTURE);
        break;
    case DO_CORDON:
        start_cordon(core, incident);
        break;
    case DO_DRAIN:
        start_simple(core, incident, VERB_DRAIN);
        break;
    case DO_FENCE:
        start_fence(core, incident);
        break;
    case DO_FORCE_DELETE:
        start_force_delete(core, incident);
        break;
    case DO_REQUEST_CHECKPOINT:
        start_simple(core, incident, VERB_REQUEST_CHECKPOINT);
        break;
    case DO_PROMISE_SPARE:
        start_promise(core, incident);
        break;
    case DO_RESTART_JOB:
        start_restart(core, incident);
        break;
    case DO_HAND_OVER:
        start_simple(core, incident, VERB_HAND_OVER);
        break;
    case DO_UNCORDON:
        start_uncordon(core, incident);
        break;
    case DO_NEXT_STEP:
        next_step(core, incident);
        break;
    case DO_RETRY_STEP:
        retry_step(core, incident);
        break;
    case DO_RELEASE_SPARES:
        release_spares(core, incident);
        break;
    case DO_UNDO:
        undo_cordons(core, incident);
        release_spares(core, incident);
        break;
    case FSM_COMMAND_COUNT:
        assert(false && "no such command");
        break;
    }
}

/* --- outcomes --- */

static bool has_own_cordon(const struct incident *incident)
{
    for (size_t i = 0; i < incident->node_count; i++)
        if (incident->nodes[i].ours)
            return true;
    return false;
}

/* Anything that has changed the world for this incident, or may have. */
static bool has_changed_world(const struct incident *incident)
{
    if (has_own_cordon(incident))
        return true;
    for (size_t i = 0; i < incident->action_count; i++) {
        const struct incident_action *action = &incident->actions[i];
        bool tells = action->verb == VERB_NOTIFY || action->verb == VERB_CAPTURE;
        bool never = action->state == ACTION_ENDED &&
                     (action->outcome == OUTCOME_TRANSIENT ||
                      action->outcome == OUTCOME_CANCELLED || action->outcome == OUTCOME_REFUSED);
        if (!tells && !never)
            return true;
    }
    return false;
}

/* The world changed, or did not: what the incident owns follows. */
static void settle_ownership(struct remediation *core, struct incident *incident,
                             const struct incident_action *action)
{
    bool done = action->outcome == OUTCOME_SUCCEEDED;
    bool never = action->outcome == OUTCOME_TRANSIENT || action->outcome == OUTCOME_CANCELLED ||
                 action->outcome == OUTCOME_REFUSED;
    for (size_t i = 0; i < action->nodes.count; i++) {
        struct incident_node *node = incident_find_node(incident, action->nodes.items[i]);
        if (node != NULL && action->verb == VERB_CORDON && done)
            node->ours = true;
        if (node != NULL && action->verb == VERB_UNCORDON && done) {
            node->given_back = node->given_back || (action->aside && node->ours);
            node->ours = false;
        }
    }
    if (action->verb == VERB_CORDON && never && !has_own_cordon(incident))
        incident->nodes_spent_ns = 0;
    if (action->verb == VERB_CORDON && !done && action->outcome != OUTCOME_CANCELLED &&
        !core->describe_asked)
        effect_ask_world(core); /* it may stand on some of its nodes */
    if (never && !has_changed_world(incident))
        incident->times.acted_ns = 0;
    if (action->verb == VERB_RESTART_JOB && never)
        incident->restart_started_ns = 0;
    if (action->verb == VERB_PROMISE_SPARE && never) {
        for (size_t i = 0; i < incident->spares.count; i++)
            record_spare(core, incident, incident->spares.items[i], "free");
        names_done(&incident->spares);
        names_done(&incident->leaving);
    }
    if (action->verb == VERB_RESTART_JOB && done)
        for (size_t i = 0; i < incident->spares.count; i++)
            record_spare(core, incident, incident->spares.items[i], "used");
}

static bool may_be_skipped(const struct incident *incident, const struct incident_action *action)
{
    bool may_fail = action->verb == VERB_REQUEST_CHECKPOINT || action->verb == VERB_DRAIN ||
                    action->verb == VERB_FENCE;
    if (action->verb == VERB_NOTIFY || action->verb == VERB_CAPTURE)
        return true;
    return may_fail && action->step >= 0 && action->step < incident->plan.count &&
           incident->plan.steps[action->step].on_timeout == ON_TIMEOUT_CONTINUE;
}

static enum fsm_event event_of(const struct incident *incident,
                               const struct incident_action *action)
{
    switch (action->outcome) {
    case OUTCOME_SUCCEEDED:
    case OUTCOME_SUPERSEDED: /* somebody else did it: what follows is checked anyway */
        return EVENT_STEP_SUCCEEDED;
    case OUTCOME_REFUSED:
        return may_be_skipped(incident, action) ? EVENT_STEP_SKIPPED : EVENT_STEP_REFUSED;
    case OUTCOME_TRANSIENT:
        return may_be_skipped(incident, action) &&
                       act_tries(incident, action->step) >= STEP_TRIES_MAX
                   ? EVENT_STEP_SKIPPED
                   : EVENT_STEP_FAILED;
    case OUTCOME_CANCELLED: /* taken back before it began: due again, and not a try */
        return EVENT_STEP_FAILED;
    case OUTCOME_UNKNOWN:
    case OUTCOME_COUNT:
        break;
    }
    return EVENT_STEP_REFUSED;
}

static void finish(struct remediation *core, struct incident *incident,
                   struct incident_action *action, enum outcome outcome, const char *reason,
                   const char *response)
{
    action->state = ACTION_ENDED;
    action->outcome = outcome;
    action->ended_ns = core->now_ns;
    incident->dirty = true;
    core->outcomes[outcome]++;
    record_outcome(core, incident, action, reason, response);
    record_timeline(core, incident, "outcome", "broomd", "%s %s%s%s [%s]", verb_name(action->verb),
                    outcome_name(outcome), reason != NULL && reason[0] != '\0' ? ": " : "",
                    reason != NULL ? reason : "", action->operation_id);
    if (!action->aside)
        look_wait_for(incident, "%s", "");
    settle_ownership(core, incident, action);
    if (outcome == OUTCOME_SUCCEEDED &&
        (action->verb == VERB_FENCE || action->verb == VERB_HAND_OVER))
        fence_take_answer(core, incident, action, response);
    /* A cordon that came through after the incident was declined. */
    if (incident->status == INCIDENT_DECLINED && action->verb == VERB_CORDON &&
        outcome == OUTCOME_SUCCEEDED)
        undo_cordons(core, incident);
}

/* The same operation may be started, if it is still wanted and its step has time left. */
static void take_absent(struct remediation *core, struct incident *incident,
                        struct incident_action *action)
{
    bool is_late = !action->aside && incident->deadline_ns != 0 &&
                   core->now_ns >= incident->deadline_ns;
    action->state = ACTION_STARTED;
    action->next_poll_ns = core->now_ns + POLL_START_NS;
    if (is_late || !remediation_may_start(core, action->operation_id)) {
        action->state = ACTION_POLLING;
        if (is_late || incident_has_ended(incident))
            finish(core, incident, action, OUTCOME_CANCELLED,
                   is_late ? "the cluster knows nothing of it, and its time is over"
                           : "the cluster knows nothing of it, and it is not wanted now",
                   NULL);
        return;
    }
    record_timeline(core, incident, "started_again", "broomd",
                    "The cluster knows nothing of %s: started under the same id",
                    action->operation_id);
    record_incident(core, incident);
    effect_push_action(core, EFFECT_START, incident, action, "the cluster knew nothing of it");
}

/* That it is absent is nothing to wait for: it is started again, or given up. */
static void keep_answer(struct incident_action *action, const struct action_result *result)
{
    bool tells = result->poll != POLL_ABSENT && result->reason != NULL && result->reason[0] != '\0';
    xfree(action->answer);
    action->answer = tells ? xstrdup(result->reason) : NULL;
}

/* The step went on without it; what it says of the power is as true. */
static void take_late_answer(struct remediation *core, struct incident *incident,
                             struct incident_action *action, const struct action_result *result)
{
    if (action->verb != VERB_FENCE || action->outcome != OUTCOME_UNKNOWN ||
        result->outcome != OUTCOME_SUCCEEDED)
        return;
    finish(core, incident, action, OUTCOME_SUCCEEDED, result->reason, result->response);
}

/* What the step that waited for it makes of it. */
static void conclude(struct remediation *core, struct incident *incident,
                     struct incident_action *action, const struct action_result *result)
{
    bool was_restored = action->restored;
    action->restored = false;
    finish(core, incident, action, result->outcome, result->reason, result->response);
    bool concerns_step = action->step >= 0 && action->step == incident->step;
    if (incident_has_ended(incident) || !concerns_step)
        return;
    /* One deadline is over the restart and what follows from it, which is still to be looked at. */
    if (was_restored && result->outcome == OUTCOME_SUCCEEDED &&
        incident->phase == PHASE_RESTARTING && core->now_ns >= incident->deadline_ns)
        look_give_step_time(core, incident);
    char reason[SENTENCE_BYTES];
    snprintf(reason, sizeof reason, "%s %s", verb_name(action->verb),
             outcome_name(result->outcome));
    look_dispatch(core, incident, event_of(incident, action), reason);
}

/* A poll that is under way may have read the world before the start reached it. */
static void begin_polling(const struct remediation *core, struct incident_action *action)
{
    action->state = ACTION_POLLING;
    action->next_poll_ns = core->now_ns + POLL_EVERY_NS;
    if (action->asked_ns == 0)
        return;
    action->asked_early = true;
    action->next_poll_ns = action->asked_ns + POLL_AGAIN_NS;
}

void act_outcome(struct remediation *core, struct incident *incident,
                 struct incident_action *action, const struct action_result *result)
{
    if (action->state == ACTION_ENDED) {
        take_late_answer(core, incident, action, result);
        return;
    }
    if (result->outcome != OUTCOME_UNKNOWN) {
        conclude(core, incident, action, result);
        return;
    }
    begin_polling(core, action);
    record_outcome(core, incident, action, result->reason, result->response);
    record_timeline(core, incident, "outcome", "broomd",
                    "%s unknown%s%s: reading the world before anything else [%s]",
                    verb_name(action->verb), result->reason != NULL ? ": " : "",
                    result->reason != NULL ? result->reason : "", action->operation_id);
}

bool act_polled(struct remediation *core, struct incident *incident, struct incident_action *action,
                const struct action_result *result)
{
    bool was_early = action->asked_early;
    action->asked_ns = 0;
    action->asked_early = false;
    if (action->state == ACTION_ENDED) {
        take_late_answer(core, incident, action, result);
        return false;
    }
    if (action->state == ACTION_STARTED) {
        action->next_poll_ns = core->now_ns + POLL_EVERY_NS;
        if (result->poll == POLL_RUNNING)
            keep_answer(action, result);
        return false;
    }
    if (was_early) {
        action->next_poll_ns = core->now_ns;
        return false;
    }
    if (result->poll == POLL_DONE && result->outcome != OUTCOME_UNKNOWN) {
        conclude(core, incident, action, result);
        return true;
    }
    action->next_poll_ns = core->now_ns + POLL_EVERY_NS;
    action->restored = action->restored && result->poll == POLL_UNREACHABLE;
    keep_answer(action, result);
    if (result->poll == POLL_ABSENT)
        take_absent(core, incident, action);
    return false;
}

/* What broomd itself does is answered at once, and telling people is not read back from anywhere.
 */
static int64_t next_poll(const struct remediation *core, const struct incident_action *action)
{
    bool only_told = action->verb == VERB_NOTIFY &&
                     (action->aside || action->state == ACTION_STARTED);
    bool only_kept = action->verb == VERB_CAPTURE && action->state == ACTION_STARTED;
    if (action->state == ACTION_ENDED || only_told || only_kept)
        return INT64_MAX;
    return action->next_poll_ns != 0 ? action->next_poll_ns : core->now_ns;
}

void act_poll_due(struct remediation *core, struct incident *incident)
{
    for (size_t i = 0; i < incident->action_count; i++) {
        struct incident_action *action = &incident->actions[i];
        if (core->now_ns < next_poll(core, action))
            continue;
        action->next_poll_ns = core->now_ns + POLL_AGAIN_NS;
        action->asked_ns = core->now_ns;
        action->asked_early = false; /* one that was lost is not waited for any more */
        if (action->restored && action->restored_poll_ns == 0)
            action->restored_poll_ns = core->now_ns;
        record_incident(core, incident);
        effect_push_action(core, EFFECT_POLL, incident, action, "what became of it?");
    }
}

int64_t act_read_until(const struct remediation *core, const struct incident *incident)
{
    const struct incident_action *action = incident_running_action(incident);
    if (action == NULL || !action->restored)
        return 0;
    return (action->restored_poll_ns != 0 ? action->restored_poll_ns : core->now_ns) +
           POLL_AGAIN_NS;
}

void act_abandon(struct remediation *core, struct incident *incident, const char *reason)
{
    struct incident_action *action = incident_running_action(incident);
    if (action == NULL)
        return;
    finish(core, incident, action, OUTCOME_UNKNOWN, reason, NULL);
}
