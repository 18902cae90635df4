/* Facts: each a predicate over the snapshot that the core holds. */
#include "remediation/facts.h"

#include "remediation/budget.h"
#include "remediation/core_state.h"
#include "remediation/spare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct plan_step *due_step(const struct incident *incident)
{
    return incident->step < incident->plan.count ? &incident->plan.steps[incident->step] : NULL;
}

static bool budget_fact(const struct remediation *core, const struct incident *incident,
                        const struct plan_step *step, struct facts *facts)
{
    if (step->kind != STEP_CORDON && step->kind != STEP_RESTART_JOB)
        return true; /* spends nothing */
    struct names nodes = {0};
    core_job_nodes(core, incident->job, &nodes);
    struct budget_view view = {core->policies, core->incidents, core->incident_count,
                               &core->world,   nodes.count,     core->now_ns};
    names_done(&nodes);
    bool is_rack = incident->scope == SCOPE_RACK || (step->kind == STEP_CORDON && step->whole_rack);
    bool ok = true;
    if (step->kind == STEP_CORDON && incident->nodes_spent_ns == 0)
        ok = budget_allows(&view, incident, is_rack ? BUDGET_RACKS : BUDGET_TRAYS, facts->budget,
                           sizeof facts->budget);
    /* Whoever cordons also restarts: what cannot be finished is not begun. */
    if (ok && plan_has(&incident->plan, STEP_RESTART_JOB) && incident->restart_started_ns == 0)
        ok = budget_allows(&view, incident, BUDGET_RESTARTS, facts->budget, sizeof facts->budget);
    return ok;
}

/* The job's own budget: more than the last try is left, or a person has spoken. */
static bool restart_fact(const struct remediation *core, const struct incident *incident,
                         struct facts *facts)
{
    if (!plan_has(&incident->plan, STEP_RESTART_JOB) || incident->restart_started_ns != 0)
        return true;
    const struct view_job *job = world_view_job(&core->world, incident->job);
    if (job == NULL || job->restarts < 0 || job->restarts_max < 0)
        return true; /* unknown: FACT_WORLD_KNOWN or the cluster's own limit decides */
    int64_t left = job->restarts_max - job->restarts;
    if (left > 1 || (left == 1 && incident->approved_by[0] != '\0'))
        return true;
    snprintf(facts->restart, sizeof facts->restart,
             left == 1 ? "a person's word: the job has used %" PRId64 " of its %" PRId64
                         " restarts and this would be its last try"
                       : "a person: the job has used %" PRId64 " of its %" PRId64
                         " restarts and the scheduler would refuse another",
             job->restarts, job->restarts_max);
    return false;
}

/* A world that was told after the present step became due; the job must be in it where it matters.
 */
static bool world_fact(const struct remediation *core, const struct incident *incident,
                       const struct plan_step *step)
{
    if (!core->world.known || core->world.received_ns < incident->step_since_ns ||
        core->now_ns - core->world.received_ns > WORLD_STALE_NS)
        return false;
    bool needs_job = step->kind == STEP_RESTART_JOB ||
                     (step->kind == STEP_CORDON && plan_has(&incident->plan, STEP_RESTART_JOB));
    return !needs_job || world_view_job(&core->world, incident->job) != NULL;
}

static double gpu_hours(int32_t gpus, double seconds)
{
    return (double)gpus * seconds / 3600.0;
}

/* Seconds of work since the checkpoint that a restart goes back to. */
static double seconds_since_checkpoint(const struct remediation *core,
                                       const struct incident *incident, const struct job_state *job)
{
    if (plan_has(&incident->plan, STEP_REQUEST_CHECKPOINT))
        return 0;
    const struct view_job *seen = world_view_job(&core->world, incident->job);
    int64_t checkpoint = seen != NULL && seen->checkpoint_step >= 0 ? seen->checkpoint_step
                         : job != NULL && job->job != NULL          ? job->job->checkpoint_step
                                                                    : JOB_NONE;
    if (job == NULL || !job->progress_known || checkpoint == JOB_NONE ||
        job->progress.step < checkpoint || isnan(job->progress.step_ms))
        return 0;
    return (double)(job->progress.step - checkpoint) * job->progress.step_ms / 1000.0;
}

static bool worth_fact(const struct remediation *core, struct incident *incident,
                       struct facts *facts)
{
    const struct job_state *job = core_find_job(core, incident->job);
    double since = (double)(core->now_ns - incident->times.fault_started_ns) / (double)SECOND_NS;
    double part = incident->slowdown > 1 ? 1 - 1 / incident->slowdown : 0;
    part = incident->corroborated ? 1 : part;
    double restart = (double)incident->timers.restart_cost_ns / (double)SECOND_NS +
                     seconds_since_checkpoint(core, incident, job);
    bool hard = incident_is_hard(incident);
    if (!incident_has_acted(incident)) {
        incident->cost.loss_gpu_hours = gpu_hours(incident->world_size,
                                                  part * (since > 0 ? since : 0));
        incident->cost.restart_gpu_hours = gpu_hours(incident->world_size, restart);
    }
    if (hard || incident_has_acted(incident) || !plan_has(&incident->plan, STEP_RESTART_JOB))
        return true;
    if (incident->cost.loss_gpu_hours > incident->cost.restart_gpu_hours)
        return true;
    snprintf(facts->worth, sizeof facts->worth,
             "the loss to outweigh a restart: %.3g GPU-hours lost so far, a restart costs %.3g",
             incident->cost.loss_gpu_hours, incident->cost.restart_gpu_hours);
    return false;
}

static bool spare_fact(const struct remediation *core, const struct incident *incident,
                       const struct plan_step *step, struct facts *facts)
{
    if (step->kind != STEP_CHOOSE_SPARE)
        return false;
    if (!core->world.known) {
        snprintf(facts->spare, sizeof facts->spare, "the cluster to be described");
        return false;
    }
    struct names nodes = {0};
    core_job_nodes(core, incident->job, &nodes);
    struct spare_view view = {&core->world, core->incidents, core->incident_count, &nodes};
    struct spare_choice choice = spare_choose(&view, incident, step);
    bool complete = choice.missing == 0;
    if (!complete)
        text_copy(facts->spare, sizeof facts->spare, choice.sentence);
    spare_choice_done(&choice);
    names_done(&nodes);
    return complete;
}

/* About to take a node of the same job out: one restart shall serve both. */
static bool will_restart_soon(const struct incident *other)
{
    const struct plan_step *step = due_step(other);
    bool gathers = other->phase == PHASE_SUSPECTED || other->phase == PHASE_CONFIRMED ||
                   other->phase == PHASE_CORDONING || other->phase == PHASE_SAVING;
    return gathers && incident_is_hard(other) && other->corroborated &&
           other->mode == MODE_ENFORCE && plan_has(&other->plan, STEP_RESTART_JOB) &&
           step != NULL && step->kind != STEP_RESTART_JOB;
}

/* What cannot be finished is not begun: a restart that would be refused, or that has brought no
 * step three times running, needs a person before anything is taken out for it. */
static bool may_be_restarted(const struct remediation *core, const struct incident *incident,
                             const struct plan_step *step, struct facts *facts)
{
    const struct view_job *seen = world_view_job(&core->world, incident->job);
    int cycles = restarts_without_step(core, incident->job);
    bool begins = step->kind == STEP_CORDON || step->kind == STEP_FENCE ||
                  step->kind == STEP_RESTART_JOB;
    if (!begins || !plan_has(&incident->plan, STEP_RESTART_JOB) ||
        incident->restart_started_ns != 0)
        return true;
    if (seen != NULL && seen->restart_refusal[0] != '\0')
        snprintf(facts->job, sizeof facts->job, "a person: no restart can be made: %.200s",
                 seen->restart_refusal);
    else if (cycles >= RESTART_CYCLES_MAX)
        snprintf(facts->job, sizeof facts->job,
                 "a person: broomd restarted job %.120s %d times and it made no new step",
                 incident->job, cycles);
    facts->refused = facts->job[0] != '\0';
    return !facts->refused;
}

/* Nothing of a job is taken out, and it is not restarted again, while another incident restarts it.
 */
static bool job_fact(const struct remediation *core, const struct incident *incident,
                     const struct plan_step *step, struct facts *facts)
{
    if (!may_be_restarted(core, incident, step, facts))
        return false;
    for (size_t i = 0; i < core->incident_count; i++) {
        const struct incident *other = core->incidents[i];
        bool restarts = incident_in_restart(other);
        bool waits = step->kind == STEP_RESTART_JOB && will_restart_soon(other);
        if (other == incident || strcmp(other->job, incident->job) != 0 || !(restarts || waits))
            continue;
        if (restarts)
            snprintf(facts->job, sizeof facts->job, "the restart of job %.120s by %s to end",
                     incident->job, other->ref);
        else
            snprintf(facts->job, sizeof facts->job, "%s, so that one restart serves both",
                     other->ref);
        return false;
    }
    return true;
}

/* A fault that a second source proves is handled even while the observer is suspect. */
static bool breaker_fact(const struct remediation *core, const struct incident *incident,
                         const struct plan_step *step)
{
    bool takes_nothing = step->kind != STEP_CORDON && step->kind != STEP_DRAIN &&
                         step->kind != STEP_FENCE && step->kind != STEP_CHOOSE_SPARE &&
                         step->kind != STEP_RESTART_JOB;
    return !core->breaker_open || takes_nothing ||
           (incident->corroborated && incident_is_hard(incident));
}

static uint32_t bit(enum fact fact, bool holds)
{
    return holds ? 1u << fact : 0;
}

struct facts facts_compute(const struct remediation *core, struct incident *incident)
{
    static const struct plan_step none = {.kind = STEP_NOTIFY};
    struct facts facts = {0};
    const struct plan_step *step = due_step(incident);
    step = step != NULL ? step : &none;
    /* A plan that only tells is carried out; then its incident is only watched. */
    bool told_all = !plan_changes_world(&incident->plan) && incident->step >= incident->plan.count;
    bool observing = incident->mode == MODE_OBSERVE || told_all;
    facts.bits = bit(FACT_OBSERVING, observing) |
                 bit(FACT_PERMITTED,
                     incident->mode == MODE_ENFORCE || incident->approved_by[0] != '\0') |
                 bit(FACT_RESTART_ALLOWED, restart_fact(core, incident, &facts)) |
                 bit(FACT_LEASE_HELD, core->guards.lease_held) |
                 bit(FACT_CLOCK_TRUSTED, core->guards.clock_trusted) |
                 bit(FACT_TELEMETRY_SEEN,
                     core->guards.telemetry_ok && !look_is_unseen(core, incident)) |
                 bit(FACT_STORE_UP, core->guards.store_up) | bit(FACT_UNPAUSED, !core->paused) |
                 bit(FACT_BREAKER_CLOSED, breaker_fact(core, incident, step)) |
                 bit(FACT_BUDGET_AVAILABLE, budget_fact(core, incident, step, &facts)) |
                 bit(FACT_ATTEMPTS_LEFT, act_tries(incident, incident->step) < STEP_TRIES_MAX) |
                 bit(FACT_WORLD_KNOWN, world_fact(core, incident, step)) |
                 bit(FACT_WORTH_ACTING, worth_fact(core, incident, &facts)) |
                 bit(FACT_SPARE_FREE, spare_fact(core, incident, step, &facts)) |
                 bit(FACT_JOB_FREE, job_fact(core, incident, step, &facts)) |
                 bit(FACT_ACTED, incident_has_acted(incident));
    return facts;
}

void facts_explain(const struct remediation *core, const struct facts *facts, uint32_t wanted,
                   char *buffer, size_t bytes)
{
    /* In the order in which a person would want to know. */
    const struct {
        enum fact fact;
        const char *sentence;
    } reasons[] = {
        {FACT_UNPAUSED, "somebody to resume: acting is paused"},
        {FACT_LEASE_HELD, "the lease: another controller may be acting"},
        {FACT_CLOCK_TRUSTED, "a trusted clock"},
        {FACT_TELEMETRY_SEEN, "telemetry: nothing is seen now"},
        {FACT_STORE_UP, "the database"},
        {FACT_BREAKER_CLOSED, "a person to close the breaker"},
        {FACT_WORTH_ACTING, facts->worth},
        {FACT_BUDGET_AVAILABLE, facts->budget},
        {FACT_RESTART_ALLOWED, facts->restart},
        {FACT_JOB_FREE, facts->job},
        {FACT_WORLD_KNOWN, "the cluster to be described"},
        {FACT_SPARE_FREE, facts->spare},
        {FACT_ATTEMPTS_LEFT, "a person: every try of this step has failed"},
    };
    uint32_t missing = wanted & ~facts->bits;
    buffer[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (missing >> reasons[i].fact & 1u) {
            snprintf(buffer, bytes, "%s", reasons[i].sentence);
            break;
        }
    if ((missing >> FACT_BREAKER_CLOSED & 1u) && core->breaker_reason[0] != '\0')
        snprintf(buffer, bytes, "a person to close the breaker: %.180s", core->breaker_reason);
    if (missing >> FACT_UNPAUSED & 1u)
        snprintf(buffer, bytes, "somebody to resume: acting is paused by %.60s", core->paused_by);
}
