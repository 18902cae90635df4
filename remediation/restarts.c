/* Restarts as the cluster shows them, whoever makes them: one that does not end, ones that come
 * again and again without a step between them, and one of a few pods of a gang alone. People are
 * told, once; nothing is restarted on top but by a rule of the policy.
 */
#include "remediation/core_state.h"

#include <string.h>

/* Who accuses: the scheduler's own account of the job. */
static const char SOURCE[] = "scheduler";

int restarts_without_step(const struct remediation *core, const char *job)
{
    const struct job_state *state = core_find_job(core, job);
    int count = 0;
    for (size_t i = 0; state != NULL && state->progress_known && i < core->incident_count; i++) {
        const struct incident *incident = core->incidents[i];
        if (strcmp(incident->job, job) == 0 && incident->restart_started_ns > state->advanced_ns)
            count++;
    }
    return count;
}

/* A restart begins: the phase turns to it, or the scheduler has counted one. */
static void count_cycle(const struct remediation *core, struct job_state *state,
                        const struct view_job *seen)
{
    /* What was torn down and waits for its place is not through yet; a new job that waits is none.
     */
    bool restarting = strcmp(seen->phase, "restarting") == 0 ||
                      (state->restarting_since_ns != 0 && strcmp(seen->phase, "pending") == 0);
    bool began = restarting && state->restarting_since_ns == 0;
    bool counted = state->restarts_seen >= 0 && seen->restarts > state->restarts_seen;
    bool same = counted && !began && state->restarting_since_ns != 0; /* counted while it lasts */
    if ((began || counted) && !same) {
        bool stepped = state->cycle_ns == 0 || state->advanced_ns > state->cycle_ns;
        state->cycles = stepped ? 1 : state->cycles + 1;
        state->cycle_ns = core->now_ns;
    }
    if (began)
        state->restarting_since_ns = core->now_ns;
    if (!restarting)
        state->restarting_since_ns = 0;
    state->restarts_seen = seen->restarts;
    if (state->advanced_ns > state->cycle_ns)
        state->cycles = 0;
    if (!restarting && state->cycles < RESTART_CYCLES_MAX)
        state->stuck_told = false;
}

/* The shortest patience of all policies. */
static int64_t patience_ns(const struct remediation *core)
{
    int64_t least_ns = policy_timers_default().restart_stuck_ns;
    for (size_t i = 0; core->policies != NULL && i < core->policies->count; i++) {
        int64_t said_ns = core->policies->items[i]->timers.restart_stuck_ns;
        least_ns = i == 0 || said_ns < least_ns ? said_ns : least_ns;
    }
    return least_ns;
}

static struct incident *open_incident_of(const struct remediation *core, const char *job)
{
    for (size_t i = 0; i < core->incident_count; i++)
        if (strcmp(core->incidents[i]->job, job) == 0 && !incident_has_ended(core->incidents[i]) &&
            !core->incidents[i]->observer_suspect)
            return core->incidents[i];
    return NULL;
}

static bool we_restart(const struct remediation *core, const char *job)
{
    for (size_t i = 0; i < core->incident_count; i++)
        if (strcmp(core->incidents[i]->job, job) == 0 && incident_in_restart(core->incidents[i]))
            return true;
    return false;
}

/* In the incident of the job that is open, or in one of its own. */
static void tell(struct remediation *core, const char *job, const char *kind, const char *sentence)
{
    struct incident *incident = open_incident_of(core, job);
    bool known = incident != NULL;
    if (!known)
        incident = fold_accuse_job(core, job, SOURCE);
    if (incident == NULL)
        return;
    record_timeline(core, incident, kind, SOURCE, "%s", sentence);
    if (known)
        act_tell(core, incident, sentence);
}

static void tell_stuck(struct remediation *core, struct job_state *state,
                       const struct view_job *seen)
{
    AUTO_TEXT sentence = {0};
    if (state->cycles >= RESTART_CYCLES_MAX) {
        text_addf(&sentence, "The job was restarted %d times without a new step", state->cycles);
    } else {
        text_add(&sentence, "The job is being restarted since ");
        text_add_time(&sentence, state->restarting_since_ns);
        text_add(&sentence, " and does not get through");
    }
    if (seen->waiting_for[0] != '\0')
        text_addf(&sentence, "; it waits for %s", seen->waiting_for);
    state->stuck_told = true;
    tell(core, state->name, "restart_stuck", sentence.bytes);
}

/* Pods that were made anew alone wait for peers that are in the middle of an earlier start. A job
 * that steps on has taken them in: some can. */
static void watch_gang(struct remediation *core, struct job_state *state,
                       const struct view_job *seen)
{
    bool ours = we_restart(core, state->name); /* of a partition of it, perhaps */
    if (ours || strncmp(seen->made_anew, state->made_anew, SENTENCE_BYTES - 1) != 0) {
        text_copy(state->made_anew, sizeof state->made_anew, seen->made_anew);
        state->made_anew_ns = core->now_ns;
        state->made_anew_told = false;
    }
    if (state->made_anew[0] == '\0' || state->made_anew_told)
        return;
    if (state->advanced_ns > state->made_anew_ns) {
        state->made_anew_told = true;
        return;
    }
    if (core->now_ns - state->made_anew_ns < MADE_ANEW_NS ||
        !core_job_stands_still(core, state->name))
        return;
    AUTO_TEXT sentence = {0};
    text_addf(&sentence, "%s; the others are of an earlier start, and the job makes no step",
              state->made_anew);
    state->made_anew_told = true;
    tell(core, state->name, "gang_mixed", sentence.bytes);
}

/* Ours is over when the job steps again. */
static void clear_when_stepping(struct remediation *core, const struct job_state *state)
{
    for (size_t i = 0; i < core->incident_count; i++) {
        struct incident *incident = core->incidents[i];
        if (strcmp(incident->job, state->name) != 0 || incident_has_ended(incident) ||
            strcmp(incident->source, SOURCE) != 0 || incident->cleared_ns != 0 ||
            state->advanced_ns <= incident->times.detected_ns)
            continue;
        incident->cleared_ns = core->now_ns;
        record_timeline(core, incident, "cleared", SOURCE, "The job steps again");
    }
}

void restarts_watch(struct remediation *core)
{
    for (size_t i = 0; i < core->job_count; i++) {
        struct job_state *state = &core->jobs[i];
        const struct view_job *seen = world_view_job(&core->world, state->name);
        if (seen == NULL)
            continue;
        count_cycle(core, state, seen);
        clear_when_stepping(core, state);
        bool lasts = state->restarting_since_ns != 0 &&
                     core->now_ns - state->restarting_since_ns >= patience_ns(core);
        bool loops = state->cycles >= RESTART_CYCLES_MAX;
        /* A restart of ours has its own deadline, and says itself what it waits for. */
        if ((lasts || loops) && !state->stuck_told && !we_restart(core, state->name))
            tell_stuck(core, state, seen);
        watch_gang(core, state, seen);
    }
}
