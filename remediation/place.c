/* From the restart to the job's new place: what the scheduler waits for, pods that never end on
 * nodes that are off, where the job landed, and what became of the spares.
 */
#include "remediation/core_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The job as the world showed it after our restart began; NULL: not shown yet. */
static const struct view_job *seen_since_restart(const struct remediation *core,
                                                 const struct incident *incident)
{
    if (!core->world.known || core->world.received_ns < incident->restart_started_ns)
        return NULL;
    return world_view_job(&core->world, incident->job);
}

/* --- pods that never end --- */

enum stuck {
    STUCK_NOT_FENCED = 0, /* in the order in which a person would want to know */
    STUCK_NOT_ALLOWED,
    STUCK_GIVEN_UP,
    STUCK_DUE,
    STUCK_UNDER_WAY,
    STUCK_COUNT
};

static const struct plan_step *restart_step(const struct incident *incident)
{
    for (int i = 0; i < incident->plan.count; i++)
        if (incident->plan.steps[i].kind == STEP_RESTART_JOB)
            return &incident->plan.steps[i];
    return NULL;
}

static enum stuck stuck_of(const struct remediation *core, const struct incident *incident,
                           const char *node)
{
    const struct plan_step *step = restart_step(incident);
    enum aside_state state = act_aside_state(core, incident, VERB_FORCE_DELETE, node);
    if (state == ASIDE_UNDER_WAY)
        return STUCK_UNDER_WAY;
    if (step == NULL || !step->force_fenced)
        return STUCK_NOT_ALLOWED;
    if (!fence_stands(core, node))
        return STUCK_NOT_FENCED;
    return state == ASIDE_OVER ? STUCK_GIVEN_UP : state == ASIDE_DUE ? STUCK_DUE : STUCK_UNDER_WAY;
}

static void stuck_nodes(const struct remediation *core, const struct incident *incident,
                        enum stuck which, struct names *nodes)
{
    const struct view_job *job = seen_since_restart(core, incident);
    for (size_t i = 0; job != NULL && i < job->stuck.count; i++)
        if (stuck_of(core, incident, job->stuck.items[i]) == which)
            names_add(nodes, job->stuck.items[i]);
}

void place_add_stuck_due(const struct remediation *core, const struct incident *incident,
                         struct names *nodes)
{
    stuck_nodes(core, incident, STUCK_DUE, nodes);
}

/* Only a node of an open incident takes a person's word; another one needs the cluster's mark. */
static void add_how_to_fence(const struct remediation *core, const char *node, struct text *out)
{
    bool known = false;
    for (size_t i = 0; i < core->incident_count; i++)
        known = known || (!incident_has_ended(core->incidents[i]) &&
                          incident_find_node(core->incidents[i], node) != NULL);
    if (known)
        text_addf(out, "once it is off: broom fenced %.60s --reason WHY", node);
    else
        text_add(out, "once it is off, mark it out-of-service in the cluster");
}

static void say_stuck(const struct remediation *core, const struct incident *incident,
                      enum stuck which, const struct names *nodes, char *sentence, size_t bytes)
{
    AUTO_TEXT list = {0};
    AUTO_TEXT how = {0};
    names_add_sentence(nodes, 2, &list);
    switch (which) {
    case STUCK_NOT_FENCED:
        add_how_to_fence(core, nodes->items[0], &how);
        snprintf(sentence, bytes,
                 "the pods on %.90s to end: down, but nobody says that it is off; %s", list.bytes,
                 how.bytes);
        break;
    case STUCK_NOT_ALLOWED:
        snprintf(
            sentence, bytes,
            "the pods on %.90s to end: it is down, and the plan deletes none by force; do it by "
            "hand once it is off",
            list.bytes);
        break;
    case STUCK_GIVEN_UP:
        snprintf(sentence, bytes,
                 "the pods on %.90s to end: deleting them by force was tried and they are there",
                 list.bytes);
        break;
    case STUCK_DUE:
    case STUCK_UNDER_WAY:
        snprintf(sentence, bytes, "the cluster to delete the pods of job %.80s on %.90s",
                 incident->job, list.bytes);
        break;
    case STUCK_COUNT:
        break;
    }
}

/* People are told once of each node that only they can help with. */
static void tell_stuck(struct remediation *core, struct incident *incident,
                       const struct names *nodes, const char *sentence)
{
    bool news = false;
    for (size_t i = 0; i < nodes->count; i++)
        news = names_add_new(&incident->stuck_told, nodes->items[i]) || news;
    if (!news)
        return;
    record_timeline(core, incident, "pods_stuck", "broomd", "Waits for %s", sentence);
    act_tell(core, incident, sentence);
}

/* True: the incident says what it waits for. */
static bool watch_stuck(struct remediation *core, struct incident *incident)
{
    for (int which = 0; which < STUCK_COUNT; which++) {
        struct names nodes = {0};
        char sentence[SENTENCE_BYTES] = "";
        stuck_nodes(core, incident, (enum stuck)which, &nodes);
        bool found = nodes.count > 0;
        if (found)
            say_stuck(core, incident, (enum stuck)which, &nodes, sentence, sizeof sentence);
        if (found && which < STUCK_DUE)
            tell_stuck(core, incident, &nodes, sentence);
        names_done(&nodes);
        if (!found)
            continue;
        look_wait_for(incident, "%s", sentence);
        return true;
    }
    return false;
}

static bool is_stuck_due(const struct remediation *core, const struct incident *incident)
{
    struct names due = {0};
    stuck_nodes(core, incident, STUCK_DUE, &due);
    bool is_due = due.count > 0;
    names_done(&due);
    return is_due;
}

void place_watch(struct remediation *core, struct incident *incident)
{
    if (is_stuck_due(core, incident)) {
        look_dispatch(core, incident, EVENT_PODS_STUCK, "their node is off and they never end");
        if (is_stuck_due(core, incident))
            return; /* held back: the table has said by what */
    }
    const struct view_job *job = seen_since_restart(core, incident);
    if (watch_stuck(core, incident))
        return;
    if (job != NULL && job->waiting_for[0] != '\0')
        look_wait_for(incident, "%s", job->waiting_for);
    else if (incident->phase == PHASE_RESTARTING)
        look_wait_for_answer(core, incident, VERB_RESTART_JOB);
    else
        look_wait_for(incident, "the scheduler to place job %.150s", incident->job);
}

/* --- what it resumes from --- */

void place_add_resume(const struct remediation *core, const struct incident *incident,
                      struct text *out)
{
    const struct view_job *seen = world_view_job(&core->world, incident->job);
    const struct job_state *job = core_find_job(core, incident->job);
    int64_t step = JOB_NONE, time_ns = 0;
    if (seen != NULL && seen->checkpoint_step >= 0) {
        step = seen->checkpoint_step;
        time_ns = seen->checkpoint_time_ns;
    } else if (job != NULL && job->job != NULL) {
        step = job->job->checkpoint_step;
        time_ns = job->job->checkpoint_time_ns;
    }
    if (step == JOB_NONE)
        return;
    text_addf(out, "resumes from step %" PRId64, step);
    if (time_ns > 0) {
        text_add(out, ", saved ");
        text_add_time(out, time_ns);
    }
    int64_t last = job != NULL && job->progress_known ? job->progress.step : JOB_NONE;
    if (last != JOB_NONE && last >= step)
        text_addf(out, "; %" PRId64 " step%s lost", last - step,
                  last - step == 1 ? " is" : "s are");
}

/* --- where it landed --- */

bool place_is_reached(const struct remediation *core, const struct incident *incident)
{
    const struct view_job *job = seen_since_restart(core, incident);
    if (job == NULL || strcmp(job->phase, "running") != 0 || job->waiting_for[0] != '\0')
        return false;
    if (job->nodes_known && incident->leaving.count > 0)
        return act_job_has_moved(core, incident);
    bool counted = incident->restarts_before >= 0 && job->restarts > incident->restarts_before;
    bool renewed = incident->uid_before[0] != '\0' && strcmp(job->uid, incident->uid_before) != 0;
    return counted || renewed;
}

static const struct incident_action *last_restart(const struct incident *incident)
{
    for (size_t i = incident->action_count; i > 0; i--)
        if (incident->actions[i - 1].verb == VERB_RESTART_JOB)
            return &incident->actions[i - 1];
    return NULL;
}

/* What was to stay or to be moved to and is not used, and what is used instead. */
static void compare(const struct incident *incident, const struct incident_action *restart,
                    const struct view_job *job, struct names *from, struct names *to)
{
    for (size_t i = 0; i < incident->nodes_before.count; i++) {
        const char *name = incident->nodes_before.items[i];
        if (!names_has(&restart->nodes, name) && !names_has(&job->nodes, name))
            names_add(from, name);
    }
    for (size_t i = 0; i < restart->spares.count; i++)
        if (!names_has(&job->nodes, restart->spares.items[i]))
            names_add(from, restart->spares.items[i]);
    for (size_t i = 0; i < job->nodes.count; i++) {
        const char *name = job->nodes.items[i];
        if (!names_has(&incident->nodes_before, name) && !names_has(&restart->spares, name))
            names_add(to, name);
    }
    for (size_t i = 0; restart->spares.count == 0 && i < restart->nodes.count; i++)
        names_add(from, restart->nodes.items[i]);
}

void place_note_landing(struct remediation *core, struct incident *incident)
{
    const struct view_job *job = seen_since_restart(core, incident);
    const struct incident_action *restart = last_restart(incident);
    struct names from = {0}, to = {0};
    if (job != NULL && job->nodes_known && restart != NULL && incident->nodes_before.count > 0)
        compare(incident, restart, job, &from, &to);
    if (to.count > 0) {
        AUTO_TEXT sentence = {0};
        names_add_sentence(&from, 8, &sentence);
        text_add(&sentence, " -> ");
        names_add_sentence(&to, 8, &sentence);
        bool was_named = restart->spares.count > 0;
        record_timeline(core, incident, was_named ? "placed_elsewhere" : "placed", "broomd", "%s%s",
                        was_named ? "The scheduler chose other nodes than those promised: "
                                  : "The scheduler chose ",
                        sentence.bytes);
    }
    names_done(&from);
    names_done(&to);
    names_done(&incident->nodes_before);
    incident->dirty = true;
}

/* --- what became of the spares --- */

static bool is_over(const struct incident *incident)
{
    bool closed = incident->status == INCIDENT_CLOSED || incident->status == INCIDENT_DECLINED;
    return incident->times.mitigated_ns != 0 ||
           (closed && incident_has_ended(incident) && incident->restart_started_ns != 0);
}

static bool has_landed(const struct incident *incident)
{
    return incident->phase == PHASE_RESUMING ||
           (incident->phase == PHASE_VERIFYING && incident->restart_started_ns != 0);
}

bool place_has_to_settle(const struct incident *incident)
{
    return !incident->spares_settled && incident->spares.count > 0 && is_over(incident);
}

/* job: NULL where it runs nowhere. */
static bool is_used(const struct view_job *job, const char *spare)
{
    return job != NULL && names_has(&job->nodes, spare);
}

/* A person closed it a while ago and the job does not run: nobody will take these spares. */
static bool is_given_up(const struct remediation *core, const struct incident *incident)
{
    int64_t closed_ns = incident->times.closed_ns;
    return incident_has_ended(incident) && closed_ns != 0 && core->world.known &&
           core->world.received_ns - closed_ns >= SETTLE_LOOK_NS;
}

static void add_due(const struct remediation *core, const struct incident *incident,
                    const struct view_job *job, bool used, struct names *due)
{
    for (size_t i = 0; i < incident->spares.count; i++) {
        const char *spare = incident->spares.items[i];
        if (is_used(job, spare) == used &&
            act_aside_state(core, incident, VERB_RELEASE_SPARE, spare) == ASIDE_DUE)
            names_add(due, spare);
    }
}

/* Those that were given back are nobody's now. */
static void drop_released(struct remediation *core, struct incident *incident,
                          const struct view_job *job)
{
    for (size_t i = 0; i < incident->spares.count;) {
        char *spare = incident->spares.items[i];
        if (is_used(job, spare) ||
            act_aside_state(core, incident, VERB_RELEASE_SPARE, spare) != ASIDE_OVER) {
            i++;
            continue;
        }
        record_spare(core, incident, spare, "free");
        incident->dirty = true;
        names_remove(&incident->spares, spare);
    }
}

static bool all_settled(const struct remediation *core, const struct incident *incident)
{
    for (size_t i = 0; i < incident->spares.count; i++)
        if (act_aside_state(core, incident, VERB_RELEASE_SPARE, incident->spares.items[i]) !=
            ASIDE_OVER)
            return false;
    return true;
}

void place_settle(struct remediation *core, struct incident *incident)
{
    bool over = place_has_to_settle(incident);
    if (!over && !(has_landed(incident) && !incident->spares_settled))
        return;
    const struct view_job *job = seen_since_restart(core, incident);
    bool runs = job != NULL && job->nodes_known && strcmp(job->phase, "running") == 0;
    if (!(runs || is_given_up(core, incident)) || !core->guards.lease_held ||
        !core->guards.store_up)
        return;
    for (int used = 0; used < (over ? 2 : 1); used++) {
        struct names due = {0};
        add_due(core, incident, job, used, &due);
        if (due.count > 0)
            act_settle(core, incident, &due, used);
        names_done(&due);
    }
    drop_released(core, incident, job);
    if (over && all_settled(core, incident)) {
        incident->spares_settled = true;
        incident->dirty = true;
    }
}
