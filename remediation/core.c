/* The core's inputs: each sets the time, takes the news in, looks at what waits, and emits the
 * records of the incidents that changed.
 */
#include "remediation/core_state.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct remediation *remediation_new(const struct remediation_params *params)
{
    struct remediation *core = xcalloc(1, sizeof *core);
    core->daemon_mode = params->daemon_mode;
    core->next_number = params->next_number > 0 ? params->next_number : 1;
    text_copy(core->actuator, sizeof core->actuator,
              params->actuator != NULL ? params->actuator : "");
    return core;
}

void remediation_free(struct remediation *core)
{
    struct effect effect;
    if (core == NULL)
        return;
    while (remediation_next_effect(core, &effect))
        effect_done(&effect);
    for (size_t i = 0; i < core->incident_count; i++)
        incident_free(core->incidents[i]);
    for (size_t i = 0; i < core->job_count; i++) {
        xfree(core->jobs[i].name);
        job_free(core->jobs[i].job);
    }
    world_view_done(&core->world);
    policy_set_free(core->policies);
    xfree(core->incidents);
    xfree(core->jobs);
    xfree(core->accusations);
    xfree(core->effects);
    xfree(core);
}

struct job_state *core_job(struct remediation *core, const char *name)
{
    for (size_t i = 0; i < core->job_count; i++)
        if (strcmp(core->jobs[i].name, name) == 0) {
            core->jobs[i].told_ns = core->now_ns;
            return &core->jobs[i];
        }
    core->jobs = array_grow(core->jobs, core->job_count, &core->job_capacity, sizeof *core->jobs);
    struct job_state *job = &core->jobs[core->job_count++];
    *job = (struct job_state){.name = xstrdup(name), .told_ns = core->now_ns, .restarts_seen = -1};
    return job;
}

const struct job_state *core_find_job(const struct remediation *core, const char *name)
{
    for (size_t i = 0; i < core->job_count; i++)
        if (strcmp(core->jobs[i].name, name) == 0)
            return &core->jobs[i];
    return NULL;
}

/* Ended incidents are remembered for a while and never without a bound; the oldest go first. */
static void forget_ended(struct remediation *core)
{
    size_t ended = 0, kept = 0;
    for (size_t i = 0; i < core->incident_count; i++)
        ended += incident_has_ended(core->incidents[i]) ? 1 : 0;
    for (size_t i = 0; i < core->incident_count; i++) {
        struct incident *incident = core->incidents[i];
        bool over = incident_has_ended(incident) && incident->times.closed_ns != 0 &&
                    incident_running_action(incident) == NULL &&
                    (ended > ENDED_INCIDENTS_MAX ||
                     core->now_ns - incident->times.closed_ns > MEMORY_NS);
        if (over) {
            ended--;
            incident_free(incident);
        } else {
            core->incidents[kept++] = incident;
        }
    }
    core->incident_count = kept;
}

static bool has_incident(const struct remediation *core, const char *job)
{
    for (size_t i = 0; i < core->incident_count; i++)
        if (strcmp(core->incidents[i]->job, job) == 0)
            return true;
    return false;
}

/* Jobs of which nothing was said for a day and that no incident remembers. */
static void forget_jobs(struct remediation *core)
{
    size_t kept = 0;
    for (size_t i = 0; i < core->job_count; i++) {
        struct job_state *state = &core->jobs[i];
        if (core->now_ns - state->told_ns > DAY_NS && !has_incident(core, state->name)) {
            xfree(state->name);
            job_free(state->job);
        } else {
            core->jobs[kept++] = *state;
        }
    }
    core->job_count = kept;
}

static void add_incident(struct remediation *core, struct incident *take_incident)
{
    core->incidents = array_grow(core->incidents, core->incident_count, &core->incident_capacity,
                                 sizeof(struct incident *));
    size_t at = core->incident_count++;
    while (at > 0 && core->incidents[at - 1]->number > take_incident->number) {
        core->incidents[at] = core->incidents[at - 1];
        at--;
    }
    core->incidents[at] = take_incident;
}

struct incident *core_open_incident(struct remediation *core)
{
    struct incident *incident = incident_new(core->next_number++);
    incident->times.detected_ns = core->now_ns;
    incident->step_since_ns = core->now_ns;
    incident->dirty = true;
    add_incident(core, incident);
    return incident;
}

struct incident *core_incident(const struct remediation *core, const char *ref)
{
    for (size_t i = 0; i < core->incident_count; i++)
        if (strcmp(core->incidents[i]->ref, ref) == 0)
            return core->incidents[i];
    return NULL;
}

const char *core_rack_of(const struct remediation *core, const char *job, const char *node)
{
    const struct view_node *seen = world_view_node(&core->world, node);
    if (seen != NULL && seen->rack[0] != '\0')
        return seen->rack;
    const struct job_state *state = core_find_job(core, job);
    if (state == NULL || state->job == NULL)
        return "";
    int32_t tray = job_find_tray(state->job, node);
    int32_t rack = tray == JOB_NONE ? JOB_NONE : state->job->trays[tray].rack;
    return rack == JOB_NONE ? "" : state->job->racks[rack].name;
}

static void topology_nodes(const struct job *job, struct names *ret_nodes)
{
    AUTO_FREE bool *holds = xcalloc((size_t)job->tray_count + 1, sizeof *holds);
    for (int32_t i = 0; i < job->world_size; i++)
        if (job->ranks[i].tray != JOB_NONE)
            holds[job->ranks[i].tray] = true;
    for (int32_t i = 0; i < job->tray_count; i++)
        if (holds[i])
            names_add(ret_nodes, job->trays[i].node);
}

void core_job_nodes(const struct remediation *core, const char *job, struct names *ret_nodes)
{
    const struct view_job *seen = core->world.known ? world_view_job(&core->world, job) : NULL;
    const struct job_state *state = core_find_job(core, job);
    if (seen != NULL && seen->nodes_known)
        names_copy(ret_nodes, &seen->nodes);
    else if (state != NULL && state->job != NULL)
        topology_nodes(state->job, ret_nodes);
}

bool core_job_stands_still(const struct remediation *core, const char *job)
{
    const struct job_state *state = core_find_job(core, job);
    if (state == NULL || !state->progress_known)
        return false;
    const struct engine_progress *progress = &state->progress;
    bool pauses = strcmp(progress->phase, "checkpoint") == 0 ||
                  strcmp(progress->phase, "eval") == 0 || strcmp(progress->phase, "init") == 0;
    int64_t limit_ns = pauses ? STILL_PAUSE_NS : STILL_MIN_NS;
    double step_ns = isnan(progress->step_ms) ? 0 : progress->step_ms * 1e6;
    if (3 * step_ns > (double)limit_ns)
        limit_ns = (int64_t)(3 * step_ns);
    return core->now_ns - state->advanced_ns > limit_ns;
}

/* --- inputs --- */

static void begin(struct remediation *core, int64_t now_ns)
{
    if (now_ns > core->now_ns)
        core->now_ns = now_ns;
    if (core->born_ns == 0)
        core->born_ns = now_ns;
}

static void end(struct remediation *core)
{
    core->looked_ns = core->now_ns;
    look_all(core);
    record_dirty(core);
}

/* The same for what this input touched; all the rest is looked at a few times a second. */
static void end_touched(struct remediation *core)
{
    if (core->now_ns - core->looked_ns >= LOOK_AGAIN_NS) {
        end(core);
        return;
    }
    for (size_t i = 0; i < core->incident_count; i++)
        if (core->incidents[i]->dirty) {
            look_incident(core, core->incidents[i]);
            look_ask_world(core, core->incidents[i]);
        }
    record_dirty(core);
}

void remediation_set_policy(struct remediation *core, struct policy_set *take_policies,
                            int64_t now_ns)
{
    begin(core, now_ns);
    policy_set_free(core->policies);
    core->policies = take_policies;
    for (size_t i = 0; i < core->incident_count; i++)
        if (core->incidents[i]->phase == PHASE_SUSPECTED && !core->incidents[i]->observer_suspect)
            fold_choose_rule(core, core->incidents[i]);
    end(core);
}

void remediation_restore_control(struct remediation *core, bool paused, bool breaker_open,
                                 const char *reason, int64_t next_number)
{
    core->paused = paused;
    core->breaker_open = breaker_open;
    text_copy(core->paused_by, sizeof core->paused_by, paused && reason != NULL ? reason : "");
    text_copy(core->breaker_reason, sizeof core->breaker_reason,
              breaker_open && reason != NULL ? reason : "");
    if (next_number > core->next_number)
        core->next_number = next_number;
}

enum status remediation_restore(struct remediation *core, const struct json *record, int64_t now_ns,
                                struct error *reterr)
{
    struct incident *incident = NULL;
    begin(core, now_ns);
    TRY(incident_parse(record, &incident, reterr));
    if (core_incident(core, incident->ref) != NULL) {
        enum status status = error_set(reterr, ERR_CONFLICT, "%s is there already", incident->ref);
        incident_free(incident);
        return status;
    }
    if (incident->number >= core->next_number)
        core->next_number = incident->number + 1;
    add_incident(core, incident);
    storm_recall(core, incident);
    /* Its fault may have healed while nobody looked, and an engine that was born now has nothing to
     * take back. */
    if (!incident_has_ended(incident) && !incident_has_acted(incident) &&
        !incident->observer_suspect)
        incident->restored_ns = now_ns;
    return OK;
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Everything that we read of a job: ranks on trays, trays in racks, the workload. */
static bool same_layout(const struct job *a, const struct job *b)
{
    if (a->world_size != b->world_size || a->tray_count != b->tray_count ||
        a->rack_count != b->rack_count || !same_text(a->workload_json, b->workload_json))
        return false;
    for (int32_t i = 0; i < a->world_size; i++)
        if (a->ranks[i].tray != b->ranks[i].tray)
            return false;
    for (int32_t i = 0; i < a->tray_count; i++)
        if (a->trays[i].rack != b->trays[i].rack || strcmp(a->trays[i].node, b->trays[i].node) != 0)
            return false;
    for (int32_t i = 0; i < a->rack_count; i++)
        if (strcmp(a->racks[i].name, b->racks[i].name) != 0)
            return false;
    return true;
}

/* A copy costs milliseconds with thousands of trays; verdicts come in bursts over one layout. */
static void keep_job(struct job_state *state, const struct job *job)
{
    if (state->job != NULL && same_layout(state->job, job)) {
        state->job->checkpoint_step = job->checkpoint_step;
        state->job->checkpoint_time_ns = job->checkpoint_time_ns;
        return;
    }
    job_free(state->job);
    state->job = job_copy(job);
}

void remediation_verdict(struct remediation *core, const struct job *job,
                         const struct verdict *verdict, const char *source, int64_t now_ns)
{
    assert(job != NULL && job->name != NULL && source != NULL);
    begin(core, now_ns);
    struct job_state *state = core_job(core, job->name);
    keep_job(state, job);
    char accuser[SOURCE_BYTES]; /* compared again and again: cut once */
    text_copy(accuser, sizeof accuser, source);
    fold_verdict(core, state->job, verdict, accuser);
    end_touched(core);
}

void remediation_job(struct remediation *core, const struct job *job, int64_t now_ns)
{
    assert(job != NULL && job->name != NULL);
    begin(core, now_ns);
    keep_job(core_job(core, job->name), job);
}

void remediation_progress(struct remediation *core, const char *job,
                          const struct engine_progress *progress, int64_t now_ns)
{
    begin(core, now_ns);
    struct job_state *state = core_job(core, job);
    bool advanced = !state->progress_known || progress->step != state->progress.step ||
                    progress->attempt != state->progress.attempt;
    if (advanced)
        state->advanced_ns = core->now_ns;
    state->progress = *progress;
    state->progress_known = true;
    /* Told with every write of a rank: looking at all that waits is for a few times a second. */
    if (core->now_ns - core->looked_ns >= LOOK_AGAIN_NS)
        end(core);
}

/* A cordon that ended without success may stand on some of its nodes: what the world says is ours
 * is ours to give back and to wait for. What we uncordoned is not: the world may be older than
 * that. */
static void note_own_cordons(struct remediation *core, struct incident *incident)
{
    bool found = false;
    for (size_t i = 0; i < incident->node_count; i++) {
        struct incident_node *node = &incident->nodes[i];
        const struct view_node *seen = world_view_node(&core->world, node->name);
        if (node->ours || seen == NULL || !seen->cordoned ||
            strcmp(seen->cordoned_by, incident->ref) != 0 ||
            act_was_uncordoned(incident, node->name))
            continue;
        node->ours = found = true;
        node->was_cordoned = false;
    }
    if (!found)
        return;
    incident->dirty = true;
    if (incident->times.acted_ns == 0)
        incident->times.acted_ns = core->now_ns;
    if (incident->nodes_spent_ns == 0)
        incident->nodes_spent_ns = core->now_ns;
    if (incident->status == INCIDENT_DECLINED)
        act_run(core, incident, DO_UNDO);
}

/* Our cordon was taken off by somebody else: seen twice, since a first look may be older than the
 * cordon itself. */
static bool is_uncordoned_by_person(const struct remediation *core, struct incident *incident)
{
    bool found = false;
    for (size_t i = 0; i < incident->node_count; i++) {
        struct incident_node *node = &incident->nodes[i];
        const struct view_node *seen = world_view_node(&core->world, node->name);
        if (!node->ours || seen == NULL)
            continue;
        node->seen_uncordoned = seen->cordoned ? 0 : node->seen_uncordoned + 1;
        found = found || node->seen_uncordoned >= 2;
    }
    return found;
}

/* Cordons that stood before we did anything are somebody else's: never counted, never undone. */
static void note_foreign_cordons(const struct remediation *core, struct incident *incident)
{
    for (size_t i = 0; i < incident->node_count; i++) {
        struct incident_node *node = &incident->nodes[i];
        const struct view_node *seen = world_view_node(&core->world, node->name);
        if (seen == NULL || node->ours || incident_has_acted(incident))
            continue;
        bool foreign = seen->cordoned && strcmp(seen->cordoned_by, incident->ref) != 0;
        incident->dirty = incident->dirty || foreign != node->was_cordoned;
        node->was_cordoned = foreign;
    }
}

static void mark_uncordoned(struct remediation *core, struct incident *incident)
{
    struct names nodes = {0};
    AUTO_TEXT list = {0};
    const char *who = "somebody";
    for (size_t i = 0; i < incident->node_count; i++)
        if (incident->nodes[i].seen_uncordoned >= 2) {
            const struct view_node *seen = world_view_node(&core->world, incident->nodes[i].name);
            who = seen != NULL && seen->uncordoned_by[0] != '\0' ? seen->uncordoned_by : who;
            names_add(&nodes, incident->nodes[i].name);
            incident->nodes[i].ours = false;
            incident->nodes[i].seen_uncordoned = 0;
        }
    names_add_sentence(&nodes, 4, &list);
    names_done(&nodes);
    bool known = strcmp(who, "somebody") != 0;
    char reason[SENTENCE_BYTES];
    record_timeline(core, incident, "uncordoned", who, "%s was uncordoned by %.100s", list.bytes,
                    known ? who : "somebody else");
    snprintf(reason, sizeof reason, "the uncordon of %.100s by %.60s cancels the remediation",
             list.bytes, known ? who : "a person");
    look_dispatch(core, incident, EVENT_UNCORDONED, reason);
}

void remediation_world(struct remediation *core, const struct world *world, int64_t now_ns)
{
    begin(core, now_ns);
    core->describe_asked = false;
    world_view_set(&core->world, world, core->now_ns);
    if (core->world.known)
        restarts_watch(core);
    for (size_t i = 0; core->world.known && i < core->incident_count; i++) {
        struct incident *incident = core->incidents[i];
        fence_watch(core, incident);
        back_watch(core, incident);
        bool waits_for_return = incident->phase == PHASE_REPAIRING ||
                                incident->phase == PHASE_VALIDATING;
        note_own_cordons(core, incident);
        if (!incident_has_ended(incident) && !waits_for_return) {
            note_foreign_cordons(core, incident);
            if (is_uncordoned_by_person(core, incident))
                mark_uncordoned(core, incident);
        }
        marks_watch(core, incident);
    }
    end(core);
}

void remediation_outcome(struct remediation *core, const char *operation_id,
                         const struct action_result *result, int64_t now_ns)
{
    begin(core, now_ns);
    for (size_t i = 0; i < core->incident_count; i++) {
        struct incident_action *action = incident_find_action(core->incidents[i], operation_id);
        if (action == NULL)
            continue;
        act_outcome(core, core->incidents[i], action, result);
        break;
    }
    end(core);
}

bool remediation_polled(struct remediation *core, const char *operation_id,
                        const struct action_result *result, int64_t now_ns)
{
    bool is_taken = false;
    begin(core, now_ns);
    for (size_t i = 0; i < core->incident_count; i++) {
        struct incident_action *action = incident_find_action(core->incidents[i], operation_id);
        if (action == NULL)
            continue;
        is_taken = act_polled(core, core->incidents[i], action, result);
        break;
    }
    end(core);
    return is_taken;
}

void remediation_guards(struct remediation *core, struct remediation_guards guards, int64_t now_ns)
{
    begin(core, now_ns);
    core->guards = guards;
    end(core);
}

void remediation_tick(struct remediation *core, int64_t now_ns)
{
    begin(core, now_ns);
    forget_ended(core);
    forget_jobs(core);
    end(core);
}

/* What was said of a node's power may have been taken back by its coming back. */
static bool may_force_delete(const struct remediation *core, const struct incident *incident,
                             const struct incident_action *action)
{
    bool on_its_way = incident->phase == PHASE_RESTARTING || incident->phase == PHASE_PLACING;
    for (size_t i = 0; i < action->nodes.count; i++)
        if (!fence_stands(core, action->nodes.items[i]))
            return false;
    return on_its_way;
}

bool remediation_may_start(const struct remediation *core, const char *operation_id)
{
    for (size_t i = 0; i < core->incident_count; i++) {
        const struct incident *incident = core->incidents[i];
        const struct incident_action *action = incident_find_action(incident, operation_id);
        if (action == NULL)
            continue;
        bool gives_back = action->verb == VERB_UNCORDON || action->verb == VERB_RELEASE_SPARE;
        bool only_tells = action->verb == VERB_NOTIFY || action->verb == VERB_CAPTURE;
        if (action->state != ACTION_STARTED || !core->guards.lease_held || !core->guards.store_up)
            return false;
        if (gives_back || (only_tells && action->step < 0))
            return true;
        if (action->verb == VERB_FORCE_DELETE && !may_force_delete(core, incident, action))
            return false;
        return !incident_has_ended(incident) &&
               (only_tells || (!core->paused && core->guards.clock_trusted));
    }
    return false;
}

size_t remediation_incident_count(const struct remediation *core)
{
    return core->incident_count;
}

const struct incident *remediation_incident_at(const struct remediation *core, size_t index)
{
    assert(index < core->incident_count);
    return core->incidents[index];
}

const struct incident *remediation_find(const struct remediation *core, const char *ref)
{
    return core_incident(core, ref);
}

static const char *first_block(const struct remediation *core)
{
    if (core->paused)
        return "paused";
    if (!core->guards.lease_held)
        return "lease_not_held";
    if (!core->guards.clock_trusted)
        return "clock_not_trusted";
    if (!core->guards.telemetry_ok)
        return "telemetry_blind";
    if (!core->guards.store_up)
        return "store_down";
    return core->breaker_open ? "breaker_open" : NULL;
}

struct remediation_status remediation_status(const struct remediation *core)
{
    struct remediation_status status = {
        .paused = core->paused,
        .paused_by = core->paused_by,
        .breaker_open = core->breaker_open,
        .breaker_reason = core->breaker_reason,
        .blocked = first_block(core),
        .actions_started = core->actions_started,
        .verdicts = core->verdicts,
        .stale_verdicts = core->stale_verdicts,
        .world_known = core->world.known,
        .world_ns = core->world.received_ns,
    };
    memcpy(status.outcomes, core->outcomes, sizeof status.outcomes);
    for (size_t i = 0; i < core->incident_count; i++) {
        const struct incident *incident = core->incidents[i];
        bool escalated = incident->phase == PHASE_ESCALATED && incident->status == INCIDENT_OPEN;
        status.escalated_count += escalated ? 1 : 0;
        if (incident_has_ended(incident))
            continue;
        status.open_count++;
        status.acting_count += incident_running_action(incident) != NULL ? 1 : 0;
    }
    return status;
}
