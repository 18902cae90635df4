/* Level, not edge: each look asks what the present snapshot means for an incident, puts that event
 * through the table, and goes on until nothing more follows.
 */
#include "remediation/core_state.h"
#include "remediation/facts.h"
#include "remediation/spare.h"
#include "remediation/verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LOOK_ROUNDS_MAX = 64 };

static struct plan_step *due_step(struct incident *incident)
{
    return incident->step < incident->plan.count ? &incident->plan.steps[incident->step] : NULL;
}

void look_wait_for(struct incident *incident, const char *format, ...)
{
    char sentence[SENTENCE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    if (strcmp(sentence, incident->waiting_for) == 0)
        return;
    text_copy(incident->waiting_for, sizeof incident->waiting_for, sentence);
    incident->dirty = true;
}

static struct incident_action *under_way(struct incident *incident, enum verb verb)
{
    for (size_t i = 0; i < incident->action_count; i++)
        if (incident->actions[i].verb == verb && incident->actions[i].state != ACTION_ENDED)
            return &incident->actions[i];
    return NULL;
}

void look_wait_for_answer(const struct remediation *core, struct incident *incident, enum verb verb)
{
    char sentence[SENTENCE_BYTES];
    struct incident_action *action = under_way(incident, verb);
    if (action == NULL || action->answer == NULL) {
        look_wait_for(incident, "the cluster to answer: %s", verb_name(verb));
        return;
    }
    snprintf(sentence, sizeof sentence, "the cluster to answer: %s: %.200s", verb_name(verb),
             action->answer);
    if (strcmp(sentence, incident->waiting_for) != 0) {
        text_copy(incident->waiting_for, sizeof incident->waiting_for, sentence);
        action->answer_unrecorded = true;
    }
    /* It may count seconds or pods: people see each change, the records one in a while. */
    if (action->answer_unrecorded &&
        (action->answer_record_ns == 0 ||
         core->now_ns - action->answer_record_ns >= ANSWER_RECORD_NS)) {
        action->answer_unrecorded = false;
        action->answer_record_ns = core->now_ns;
        incident->dirty = true;
    }
}

/* GPU-hours: all of the job's while it stood still, the slow part while it was slow. Steps: those
 * between the checkpoint that it went back to and where it was. */
static void count_cost(const struct remediation *core, struct incident *incident)
{
    const struct job_state *job = core_find_job(core, incident->job);
    bool stood_still = incident_is_hard(incident) && incident->corroborated;
    int64_t from_ns = stood_still ? incident->times.fault_started_ns : incident->restart_started_ns;
    double hours = from_ns == 0 ? 0 : (double)(core->now_ns - from_ns) / (double)SECOND_NS / 3600.0;
    incident->cost.gpu_hours = (double)incident->world_size * hours;
    if (!stood_still)
        incident->cost.gpu_hours += incident->cost.loss_gpu_hours;
    if (incident->restart_started_ns != 0 && job != NULL &&
        job->progress.attempt_first_step != JOB_NONE && incident->step_at_fault != JOB_NONE) {
        int64_t lost = incident->step_at_fault - job->progress.attempt_first_step + 1;
        incident->cost.steps_lost = lost > 0 ? lost : 0;
    }
}

/* --- one event through the table --- */

static int64_t timer_deadline(const struct remediation *core, struct incident *incident,
                              enum fsm_timer timer)
{
    const struct plan_step *step = due_step(incident);
    const struct policy_timers *timers = &incident->timers;
    switch (timer) {
    case TIMER_KEEP:
        return incident->deadline_ns;
    case TIMER_NONE:
        return 0;
    case TIMER_SETTLE:
        return look_settle_end(core, incident);
    case TIMER_WATCH:
        return core->now_ns + timers->watch_ns;
    case TIMER_APPROVAL:
        return core->now_ns + timers->approval_ns;
    case TIMER_HOLD:
        return core->now_ns + timers->hold_ns;
    case TIMER_STEP:
        return core->now_ns +
               (step != NULL && step->timeout_ns > 0 ? step->timeout_ns : timers->action_ns);
    case TIMER_REPAIR:
        return core->now_ns + timers->repair_ns;
    case TIMER_VALIDATE: /* and then until somebody takes the cordon off */
        return core->now_ns + timers->validate_ns + timers->repair_ns;
    case FSM_TIMER_COUNT:
        break;
    }
    return 0;
}

void look_give_step_time(const struct remediation *core, struct incident *incident)
{
    incident->deadline_ns = timer_deadline(core, incident, TIMER_STEP);
    incident->dirty = true;
}

static void say_moved(struct remediation *core, struct incident *incident,
                      const struct transition *transition, const char *reason)
{
    const struct fsm_rule *rule = transition->rule;
    if (transition->to != transition->from)
        record_timeline(core, incident, "phase", "broomd", "%s -> %s (%s): %s",
                        phase_name(transition->from), phase_name(transition->to), rule->id, reason);
    if (rule->status != FSM_KEEP_STATUS)
        record_timeline(core, incident, "status", "broomd", "Status is now %s",
                        incident_status_name(incident->status));
}

/* What a person reads as the reason of a hold: the first thing that is missing. */
static void explain(const struct remediation *core, const struct facts *facts,
                    const struct fsm_rule *rule, const char *reason, char *buffer, size_t bytes)
{
    uint32_t wanted = rule->lack | (rule->forbid & (1u << FACT_RESTART_ALLOWED));
    facts_explain(core, facts, wanted, buffer, bytes);
    if (buffer[0] == '\0')
        text_copy(buffer, bytes, reason);
}

/* What a person should know before the word is given. */
static void wait_for_approval(const struct remediation *core, struct incident *incident,
                              const struct plan_step *step)
{
    AUTO_TEXT resume = {0};
    if (plan_has(&incident->plan, STEP_RESTART_JOB) && incident->restart_started_ns == 0)
        place_add_resume(core, incident, &resume);
    look_wait_for(incident, "a person's approval to %s%s%s", plan_step_sentence(step),
                  resume.length > 0 ? "; the job " : "", resume.length > 0 ? resume.bytes : "");
}

static void wait_by_rule(const struct remediation *core, struct incident *incident,
                         const struct fsm_rule *rule, const struct facts *facts)
{
    char sentence[SENTENCE_BYTES];
    const struct plan_step *step = due_step(incident);
    explain(core, facts, rule, "", sentence, sizeof sentence);
    if (sentence[0] != '\0')
        look_wait_for(incident, "%s", sentence);
    else if (incident->phase == PHASE_AWAITING_APPROVAL && step != NULL)
        wait_for_approval(core, incident, step);
}

/* A hold that only a person can end is told to one, once. */
static void note_refusal(struct remediation *core, struct incident *incident,
                         const struct facts *facts)
{
    bool news = facts->refused && !incident->refusal_told;
    if (facts->refused != incident->refusal_told)
        incident->dirty = true;
    incident->refusal_told = facts->refused;
    if (!news)
        return;
    record_timeline(core, incident, "restart_refused", "broomd", "Waits for %s", facts->job);
    act_tell(core, incident, facts->job);
}

void look_dispatch(struct remediation *core, struct incident *incident, enum fsm_event event,
                   const char *reason)
{
    struct facts facts = facts_compute(core, incident);
    const struct fsm_rule *rule = fsm_find(incident->phase, event, facts.bits);
    if (rule == NULL)
        return;
    char why[SENTENCE_BYTES];
    explain(core, &facts, rule, reason, why, sizeof why);
    int64_t deadline_ns = timer_deadline(core, incident, rule->timer);
    bool stays = rule->to == FSM_STAY || rule->to == (unsigned)incident->phase;
    bool holds = rule->to == PHASE_HOLDING && (rule->lack >> FACT_JOB_FREE & 1u);
    if (stays && rule->command == DO_NOTHING && rule->status == FSM_KEEP_STATUS) {
        wait_by_rule(core, incident, rule, &facts);
        if (holds)
            note_refusal(core, incident, &facts);
        return;
    }
    struct transition transition = fsm_apply(incident, rule, facts.bits, deadline_ns, core->now_ns);
    if (!transition.moved)
        return;
    bool ends_unmended = phase_is_end(transition.to) && incident->times.mitigated_ns == 0 &&
                         incident->status != INCIDENT_MERGED;
    if (ends_unmended)
        count_cost(core, incident);
    record_decision(core, incident, &transition, event, rule->command != DO_RECORD_WOULD, why);
    say_moved(core, incident, &transition, why);
    if (transition.to != transition.from)
        look_wait_for(incident, "%s", "");
    wait_by_rule(core, incident, rule, &facts);
    act_run(core, incident, rule->command);
    if (holds)
        note_refusal(core, incident, &facts);
    bool calls_people = transition.to == PHASE_ESCALATED ||
                        transition.to == PHASE_AWAITING_APPROVAL;
    if (calls_people && transition.to != transition.from)
        act_tell(core, incident, why);
}

/* --- what each phase waits for --- */

int64_t look_settle_end(const struct remediation *core, const struct incident *incident)
{
    const struct policy_timers *timers = &incident->timers;
    int64_t detected_ns = incident->times.detected_ns;
    int64_t end_ns = detected_ns;
    if (incident_is_hard(incident) && incident->corroborated) {
        end_ns += timers->settle_corroborated_ns;
    } else if (incident_is_hard(incident)) {
        /* While its accuser goes on accusing, a suspicion that nobody bears out has not settled. */
        int64_t last_ns = storm_last_accusation(core, incident->source);
        int64_t most_ns = detected_ns + 5 * timers->settle_uncorroborated_ns;
        end_ns = (last_ns > detected_ns ? last_ns : detected_ns) + timers->settle_uncorroborated_ns;
        end_ns = end_ns < most_ns ? end_ns : most_ns;
    }
    return detected_ns + incident->for_ns > end_ns ? detected_ns + incident->for_ns : end_ns;
}

static bool job_goes_on(const struct remediation *core, const struct incident *incident)
{
    const struct job_state *job = core_find_job(core, incident->job);
    return job != NULL && job->progress_known && job->advanced_ns > incident->restored_ns &&
           !core_job_stands_still(core, incident->job);
}

bool look_is_unseen(const struct remediation *core, const struct incident *incident)
{
    if (incident->restored_ns == 0 || incident_has_acted(incident))
        return false;
    /* A hard fault needs no second word where the job still stands: that it stopped is its proof.
     */
    if (incident_is_hard(incident) && core->now_ns >= incident->restored_ns + UNSEEN_LOOK_NS)
        return job_goes_on(core, incident);
    return true;
}

static void look_suspected(struct remediation *core, struct incident *incident)
{
    if (look_is_unseen(core, incident)) {
        look_wait_for(incident, "the fault to be seen again: broomd was started anew");
        return;
    }
    if (!incident->corroborated && incident_is_hard(incident) &&
        core_job_stands_still(core, incident->job)) {
        incident->corroborated = true;
        record_timeline(core, incident, "corroborated", "broomd", "Job %s stands still too",
                        incident->job);
    }
    int64_t end_ns = look_settle_end(core, incident);
    if (core->now_ns < end_ns) {
        AUTO_TEXT until = {0};
        text_add_time(&until, end_ns);
        look_wait_for(incident, "the suspicion to settle, until %s", until.bytes);
        return;
    }
    int dirty = incident->dirty;
    if (!fold_choose_rule(core, incident)) {
        incident->dirty = dirty;
        look_wait_for(incident, "the job's %s to end",
                      core_find_job(core, incident->job)->progress.phase);
        return;
    }
    look_dispatch(core, incident, EVENT_SETTLED, "the suspicion has stood long enough");
}

/* What was only recorded grew, and another rule took it up: its `for` counts from the first
 * suspicion, and may not have passed yet. */
static bool is_rule_settling(const struct remediation *core, struct incident *incident)
{
    int64_t end_ns = incident->times.detected_ns + incident->for_ns;
    AUTO_TEXT until = {0};
    if (incident->step > 0 || incident_has_acted(incident) || core->now_ns >= end_ns)
        return false;
    text_add_time(&until, end_ns);
    look_wait_for(incident, "the suspicion to settle, until %s", until.bytes);
    return true;
}

static struct verify_before verify_before(const struct remediation *core,
                                          const struct incident *incident)
{
    int64_t restart_ns = incident->restart_started_ns;
    /* The job may have been moved by another incident's restart. */
    for (size_t i = 0; restart_ns == 0 && i < core->incident_count; i++)
        if (strcmp(core->incidents[i]->job, incident->job) == 0 &&
            core->incidents[i]->restart_started_ns > restart_ns)
            restart_ns = core->incidents[i]->restart_started_ns;
    if (restart_ns == 0)
        restart_ns = incident->times.fault_started_ns; /* or by a person */
    return (struct verify_before){incident->attempt_before, restart_ns, incident->baseline_ms};
}

/* A job that had left these nodes before anything was done has nothing to recover from: it only has
 * to step on at its pace. */
static bool steps_on_untouched(const struct remediation *core, const struct incident *incident,
                               const struct plan_step *step)
{
    const struct job_state *job = core_find_job(core, incident->job);
    if (incident->restart_started_ns != 0 || job == NULL || !act_job_has_moved(core, incident) ||
        job->advanced_ns <= incident->step_since_ns)
        return false;
    return !(job->progress.step_ms > step->pace_within * incident->baseline_ms);
}

static struct verify_result judge(const struct remediation *core, const struct incident *incident,
                                  int64_t new_steps, double pace_within)
{
    const struct job_state *job = core_find_job(core, incident->job);
    struct verify_before before = verify_before(core, incident);
    if (job == NULL || !job->progress_known)
        return (struct verify_result){VERIFY_NO_NEW_ATTEMPT, 0, NAN};
    return verify_judge(&before, &job->progress, new_steps, pace_within);
}

static void say_verified(struct remediation *core, struct incident *incident,
                         const struct verify_result *result)
{
    AUTO_TEXT sentence = {0};
    text_addf(&sentence, "%" PRId64 " new steps", result->new_steps);
    if (isnan(result->pace_ratio))
        text_add(&sentence, ", the old pace is not known");
    else
        text_addf(&sentence, ", pace %.3f of the old one", result->pace_ratio);
    if (incident->cost.steps_lost >= 0)
        text_addf(&sentence, "; %" PRId64 " steps", incident->cost.steps_lost);
    text_addf(&sentence, "%s%.3g GPU-hours lost", incident->cost.steps_lost >= 0 ? " and " : "; ",
              incident->cost.gpu_hours);
    record_timeline(core, incident, "verified", "broomd", "%s", sentence.bytes);
}

static void look_verifying(struct remediation *core, struct incident *incident)
{
    const struct plan_step *step = due_step(incident);
    if (step == NULL || step->kind != STEP_VERIFY)
        return;
    struct verify_result result = judge(core, incident, step->new_steps, step->pace_within);
    if (result.outcome != VERIFY_RECOVERED && !steps_on_untouched(core, incident, step)) {
        look_wait_for(incident, "%" PRId64 " new steps within %.2f of the old pace%s",
                      step->new_steps, step->pace_within,
                      result.outcome == VERIFY_TOO_SLOW ? "; the new pace is too slow" : "");
        return;
    }
    count_cost(core, incident);
    say_verified(core, incident, &result);
    look_dispatch(core, incident, EVENT_VERIFIED, "new steps at the old pace");
    fold_rejudge(core, incident);
}

/* --- the next step of the plan --- */

static bool spares_still_good(struct remediation *core, struct incident *incident)
{
    struct names nodes = {0};
    core_job_nodes(core, incident->job, &nodes);
    struct spare_view view = {&core->world, core->incidents, core->incident_count, &nodes};
    bool good = true;
    for (size_t i = 0; core->world.known && good && i < incident->spares.count; i++) {
        good = spare_is_usable(&view, incident, incident->spares.items[i]);
        if (!good)
            record_timeline(core, incident, "spare_lost", "broomd",
                            "Promised spare %s is not usable now: choosing again",
                            incident->spares.items[i]);
    }
    names_done(&nodes);
    return good;
}

/* Back to choose_spare; its next promise is a new try with a new operation id. */
static bool choose_spares_again(struct remediation *core, struct incident *incident)
{
    for (int i = incident->step - 1; i >= 0; i--)
        if (incident->plan.steps[i].kind == STEP_CHOOSE_SPARE) {
            act_run(core, incident, DO_RELEASE_SPARES);
            incident->step = i;
            incident->step_since_ns = core->now_ns;
            return true;
        }
    return false;
}

/* A job that has ended is not started anew: what it was may be what it was to be. */
static bool has_job_ended(const struct remediation *core, const struct incident *incident,
                          char *reason, size_t bytes)
{
    const struct view_job *job = world_view_job(&core->world, incident->job);
    bool fresh = core->world.known && core->world.received_ns >= incident->step_since_ns;
    if (!fresh || job == NULL || incident->mode == MODE_OBSERVE ||
        incident->restart_started_ns != 0 || !plan_has(&incident->plan, STEP_RESTART_JOB))
        return false;
    bool finished = strcmp(job->phase, "finished") == 0;
    bool failed = strcmp(job->phase, "failed") == 0 && job->restart_refusal[0] != '\0';
    if (finished)
        snprintf(reason, bytes, "job %.150s has finished: there is nothing to restart",
                 incident->job);
    else if (failed)
        snprintf(reason, bytes, "job %.80s has failed: %.150s", incident->job,
                 job->restart_refusal);
    return finished || failed;
}

static void reach_cordon(struct remediation *core, struct incident *incident)
{
    char reason[SENTENCE_BYTES];
    if (incident->node_count == 0 && incident->mode != MODE_OBSERVE)
        look_dispatch(core, incident, EVENT_STEP_REFUSED, "no verdict names a node to cordon");
    else if (has_job_ended(core, incident, reason, sizeof reason))
        look_dispatch(core, incident, EVENT_STEP_REFUSED, reason);
    else
        look_dispatch(core, incident, EVENT_REACHED_CORDON, "the cordon is due");
}

static void reach_restart(struct remediation *core, struct incident *incident)
{
    char reason[SENTENCE_BYTES];
    if (has_job_ended(core, incident, reason, sizeof reason)) {
        look_dispatch(core, incident, EVENT_STEP_REFUSED, reason);
        return;
    }
    if (core->world.known && core->world.received_ns >= incident->step_since_ns) {
        if (incident->mode != MODE_OBSERVE && act_job_has_moved(core, incident)) {
            record_timeline(core, incident, "moved", "broomd",
                            "The job holds no rank on these nodes already: no restart of our own");
            look_dispatch(core, incident, EVENT_STEP_SKIPPED, "the job has left these nodes");
            return;
        }
        if (!spares_still_good(core, incident) && choose_spares_again(core, incident))
            return;
    }
    look_dispatch(core, incident, EVENT_REACHED_RESTART, "the restart is due");
}

static void reach_checkpoint(struct remediation *core, struct incident *incident)
{
    if (incident->mode != MODE_OBSERVE && core_job_stands_still(core, incident->job)) {
        record_timeline(core, incident, "checkpoint_skipped", "broomd",
                        "No checkpoint asked: the job stands still");
        look_dispatch(core, incident, EVENT_STEP_SKIPPED, "a job that stands still cannot save");
        return;
    }
    look_dispatch(core, incident, EVENT_REACHED_CHECKPOINT, "a checkpoint is due");
}

/* A step that decides from the world waits a moment for a fresh look instead of going to hold. */
static bool waits_for_look(const struct remediation *core, struct incident *incident,
                           const struct plan_step *step)
{
    bool needs = step->kind == STEP_CORDON || step->kind == STEP_DRAIN ||
                 step->kind == STEP_FENCE || step->kind == STEP_CHOOSE_SPARE ||
                 step->kind == STEP_RESTART_JOB;
    int64_t since_ns = incident->step_since_ns > core->born_ns ? incident->step_since_ns
                                                               : core->born_ns;
    bool fresh = core->world.known && core->world.received_ns >= since_ns;
    if (!needs || fresh || incident->mode == MODE_OBSERVE ||
        core->now_ns - since_ns >= DESCRIBE_GIVE_UP_NS)
        return false;
    look_wait_for(incident, "the cluster to be described");
    return true;
}

static void reach_spare(struct remediation *core, struct incident *incident,
                        const struct plan_step *step)
{
    if (!step->hold_on_none && incident->mode != MODE_OBSERVE && core->world.known) {
        struct facts facts = facts_compute(core, incident);
        if (facts.spare[0] != '\0') {
            look_dispatch(core, incident, EVENT_STEP_REFUSED, facts.spare);
            return;
        }
    }
    look_dispatch(core, incident, EVENT_REACHED_SPARE, "a spare is to be chosen");
}

static void reach_step(struct remediation *core, struct incident *incident)
{
    const struct plan_step *step = due_step(incident);
    if (core->now_ns < incident->step_since_ns ||
        (step != NULL && waits_for_look(core, incident, step)))
        return;
    if (step == NULL) {
        look_dispatch(core, incident, EVENT_PLAN_ENDED, "the plan has ended");
        return;
    }
    switch (step->kind) {
    case STEP_NOTIFY:
        look_dispatch(core, incident, EVENT_REACHED_NOTIFY, "people are to be told");
        break;
    case STEP_CAPTURE:
        look_dispatch(core, incident, EVENT_REACHED_CAPTURE, "the raw samples are to be kept");
        break;
    case STEP_CORDON:
        reach_cordon(core, incident);
        break;
    case STEP_DRAIN:
        look_dispatch(core, incident, EVENT_REACHED_DRAIN, "what else runs there is to be moved");
        break;
    case STEP_REQUEST_CHECKPOINT:
        reach_checkpoint(core, incident);
        break;
    case STEP_FENCE:
        look_dispatch(core, incident, EVENT_REACHED_FENCE, "the nodes are to be powered off");
        break;
    case STEP_CHOOSE_SPARE:
        reach_spare(core, incident, step);
        break;
    case STEP_RESTART_JOB:
        reach_restart(core, incident);
        break;
    case STEP_VERIFY:
        look_dispatch(core, incident, EVENT_REACHED_VERIFY, "the job was moved already");
        break;
    case STEP_HAND_OVER:
        look_dispatch(core, incident, EVENT_REACHED_HAND_OVER, "the hardware is to be handed over");
        break;
    case STEP_KIND_COUNT:
        break;
    }
}

/* --- deadlines --- */

static void look_deadline(struct remediation *core, struct incident *incident)
{
    const struct plan_step *step = due_step(incident);
    char reason[SENTENCE_BYTES];
    if (core->now_ns < act_read_until(core, incident))
        return;
    snprintf(reason, sizeof reason, "the deadline of %s passed%s%.180s",
             phase_name(incident->phase), incident->waiting_for[0] != '\0' ? "; waited for " : "",
             incident->waiting_for);
    act_abandon(core, incident, reason);
    bool acts = incident->phase == PHASE_SAVING || incident->phase == PHASE_CORDONING;
    bool goes_on = acts && step != NULL && step->on_timeout == ON_TIMEOUT_CONTINUE;
    look_dispatch(core, incident, goes_on ? EVENT_STEP_SKIPPED : EVENT_DEADLINE_PASSED, reason);
    if (incident_has_ended(incident))
        fold_rejudge(core, incident);
}

/* --- one incident, all incidents --- */

static void look_placing(struct remediation *core, struct incident *incident)
{
    if (!place_is_reached(core, incident)) {
        place_watch(core, incident);
        return;
    }
    place_note_landing(core, incident);
    look_dispatch(core, incident, EVENT_PLACED, "the job runs on its new nodes");
}

static void look_phase(struct remediation *core, struct incident *incident)
{
    switch (incident->phase) {
    case PHASE_SUSPECTED:
        look_suspected(core, incident);
        break;
    case PHASE_CONFIRMED:
        if (!is_rule_settling(core, incident))
            reach_step(core, incident);
        break;
    case PHASE_AWAITING_APPROVAL:
    case PHASE_HOLDING:
    case PHASE_CORDONING:
    case PHASE_SAVING:
        reach_step(core, incident);
        break;
    case PHASE_RESTARTING:
        break;
    case PHASE_PLACING:
        look_placing(core, incident);
        break;
    case PHASE_RESUMING:
        if (judge(core, incident, 1, INFINITY).new_steps > 0)
            look_dispatch(core, incident, EVENT_PROGRESSED, "the first new step");
        else
            look_wait_for(incident, "the first new step of job %.150s", incident->job);
        break;
    case PHASE_VERIFYING:
        if (incident->status == INCIDENT_OPEN)
            look_verifying(core, incident);
        else
            reach_step(core, incident);
        break;
    case PHASE_REPAIRING:
        back_look_repairing(core, incident);
        break;
    case PHASE_VALIDATING:
        back_look_validating(core, incident);
        break;
    case PHASE_DONE:
    case PHASE_CANCELLED:
    case PHASE_ESCALATED:
    case PHASE_COUNT:
        break;
    }
}

static void look_cleared(struct remediation *core, struct incident *incident)
{
    if (incident->cleared_ns == 0 && look_is_unseen(core, incident) &&
        job_goes_on(core, incident) && core->now_ns >= incident->restored_ns + UNSEEN_CLEAR_NS)
        incident->cleared_ns = core->now_ns; /* it would have been accused again by now */
    if (incident->cleared_ns == 0 || core->now_ns < incident->cleared_ns + CLEAR_GRACE_NS)
        return;
    incident->cleared_ns = 0;
    incident->dirty = true;
    look_dispatch(core, incident, EVENT_CLEARED, "the detector takes it back");
}

static void wait_for_clear(struct incident *incident)
{
    if (incident->phase != PHASE_CONFIRMED || incident->step < incident->plan.count)
        return;
    look_wait_for(incident, plan_changes_world(&incident->plan)
                                ? "its clear: observe mode changes nothing"
                                : "its clear: the plan only records");
}

/* Behind an action that is not answered nothing else says what is waited for; a restart's wait is
 * told by what the cluster shows of the job. */
static void wait_for_action(const struct remediation *core, struct incident *incident)
{
    const struct incident_action *action = incident_running_action(incident);
    if (action != NULL && !incident->observer_suspect && incident->phase != PHASE_RESTARTING)
        look_wait_for_answer(core, incident, action->verb);
}

void look_incident(struct remediation *core, struct incident *incident)
{
    for (int i = 0; i < LOOK_ROUNDS_MAX; i++) {
        act_poll_due(core, incident);
        place_settle(core, incident);
        if (incident_has_ended(incident))
            return;
        look_cleared(core, incident);
        if (!incident_has_ended(incident) && incident->deadline_ns != 0 &&
            core->now_ns >= incident->deadline_ns)
            look_deadline(core, incident);
        if (incident_has_ended(incident))
            return;
        /* What the restart waits for may have to be done before it can be answered. */
        if (incident->phase == PHASE_RESTARTING)
            place_watch(core, incident);
        bool held = incident->observer_suspect || incident_running_action(incident) != NULL;
        bool looks = !held || incident->phase == PHASE_REPAIRING;
        enum phase phase = incident->phase;
        enum incident_status status = incident->status;
        int step = incident->step;
        if (looks)
            look_phase(core, incident);
        if (incident->phase == phase && incident->status == status && incident->step == step)
            break;
    }
    wait_for_action(core, incident);
    wait_for_clear(incident);
}

/* How often an incident wants the world read again; 0: it does not care. */
static int64_t wants_world_every(const struct remediation *core, const struct incident *incident)
{
    const struct plan_step *step = incident->step < incident->plan.count
                                       ? &incident->plan.steps[incident->step]
                                       : NULL;
    if (place_has_to_settle(incident) &&
        (!incident_has_ended(incident) ||
         core->now_ns - incident->times.closed_ns < 2 * SETTLE_LOOK_NS))
        return DESCRIBE_LATER_NS;
    bool acts = incident->mode != MODE_OBSERVE && step != NULL && !incident->observer_suspect;
    switch (incident->phase) {
    case PHASE_CONFIRMED:
    case PHASE_CORDONING:
    case PHASE_SAVING:
    case PHASE_RESTARTING:
    case PHASE_PLACING:
        return acts ? DESCRIBE_SOON_NS : 0;
    case PHASE_AWAITING_APPROVAL:
    case PHASE_HOLDING:
        return acts ? DESCRIBE_LATER_NS : 0;
    case PHASE_REPAIRING:
    case PHASE_VALIDATING:
        return DESCRIBE_LATER_NS;
    case PHASE_SUSPECTED:
    case PHASE_RESUMING:
    case PHASE_VERIFYING:
    case PHASE_DONE:
    case PHASE_CANCELLED:
    case PHASE_ESCALATED:
    case PHASE_COUNT:
        break;
    }
    return 0;
}

/* The world is wanted at once when a step became due after it was last told. */
static int64_t world_due(const struct remediation *core, const struct incident *incident)
{
    int64_t every_ns = wants_world_every(core, incident);
    if (every_ns == 0)
        return INT64_MAX;
    int64_t last_ns = core->world.received_ns > core->describe_asked_ns ? core->world.received_ns
                                                                        : core->describe_asked_ns;
    bool fresh_step = core->world.received_ns < incident->step_since_ns &&
                      core->describe_asked_ns < incident->step_since_ns;
    return fresh_step ? incident->step_since_ns : last_ns + every_ns;
}

void look_ask_world(struct remediation *core, const struct incident *incident)
{
    bool is_asked = core->describe_asked &&
                    core->now_ns - core->describe_asked_ns < DESCRIBE_GIVE_UP_NS;
    if (!is_asked && core->now_ns >= world_due(core, incident))
        effect_ask_world(core);
}

void look_all(struct remediation *core)
{
    storm_judge(core);
    for (size_t i = 0; i < core->incident_count; i++)
        look_incident(core, core->incidents[i]);
    for (size_t i = 0; i < core->incident_count; i++)
        look_ask_world(core, core->incidents[i]);
}
