/* A cluster, a job and a store in virtual time, for tests of the remediation core. One tick is one
 * second. The store keeps the last record of every incident, so that a crash is: throw the core
 * away, make a new one, restore. Static functions, since a test is one file.
 */
#ifndef BROOM_TESTS_REMEDIATION_SIM_H
#define BROOM_TESTS_REMEDIATION_SIM_H

#include "remediation/core.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIM_UNUSED __attribute__((unused))
#define SECOND     INT64_C(1000000000)
#define MINUTE     (60 * SECOND)
#define HOUR       (60 * MINUTE)
#define SIM_START  (INT64_C(1800000000) * SECOND)

enum { SIM_NODES_MAX = 128, SIM_OPS_MAX = 4096, SIM_REFS_MAX = 256, SIM_GPUS = 4 };

struct sim_node {
    char name[32], rack[16];
    bool ready, cordoned, spare, dead;
    char cordoned_by[32], promised_to[32];
    const char *fenced_by, *uncordoned_by; /* what the cluster itself says; NULL nothing */
    bool gone;                             /* not in the cluster's list */
    int gpus_missing;
    const char *domain; /* NULL: as its rack; "": not known */
    bool marked;        /* an uncordon by somebody else leaves our marks */
    bool stuck;         /* its pods of the job never end: a restart does not get past them */
};

struct sim_op {
    char id[OPERATION_ID_BYTES];
    enum verb verb;
    int started, polled; /* times that the cluster carried it out, and was asked about it */
    enum outcome outcome;
    size_t node_count;
};

enum sim_crash { CRASH_NEVER = 0, CRASH_BEFORE_COMMIT, CRASH_BEFORE_START, CRASH_AFTER_START };

struct sim {
    struct remediation *core;
    int64_t now_ns;
    struct sim_node nodes[SIM_NODES_MAX];
    int node_count, trays_per_rack, used_per_rack, job_racks;
    struct job *job;
    const char *rank_node[SIM_NODES_MAX * SIM_GPUS];

    int64_t step, attempt, attempt_first_step, attempt_time_ns, step_time_ns, checkpoint_step;
    int64_t checkpoint_every, checkpoint_time_ns, restarts, restarts_max;
    double pace_ms, base_ms, slow;
    const char *slow_node;
    bool stopped;           /* a hang that no node explains */
    char job_phase[16];     /* scheduler's */
    int64_t starts_at_ns;   /* of a restart on its way; 0 none */
    const char *says_phase; /* what the job says of itself */

    const char *other_job_node; /* holds the one rank of another job; NULL none */
    const char *waiting_for, *refusal,
        *made_anew;        /* what the cluster says of the job; NULL nothing */
    const char *elsewhere; /* the scheduler takes this node instead of the first spare */
    bool restart_waits;    /* a restart is answered when the job runs again, not before */
    char waiting_restart[OPERATION_ID_BYTES];
    const char *response, *poll_reason; /* of whatever is started or polled; NULL none */
    bool poll_silent, poll_unanswered;  /* a poll is answered with `running`, or not at all */
    bool unanswered;                    /* a start of bad_verb is carried out and never answered */
    bool force_delete_does_nothing, swallow_restart; /* accepted and never done */
    bool world_known, answers_unknown, loses_restart, paused;
    enum verb bad_verb; /* the next bad_count starts of it end so, and do nothing */
    enum outcome bad_outcome;
    int bad_count, bad_partly; /* the last bad_partly of them do all nodes but the last */
    struct remediation_guards guards;
    struct sim_op ops[SIM_OPS_MAX];
    int op_count;
    int cordons, restarts_done, notifies, captures, uncordons, promises, releases, hand_overs;
    int settles, fences, drains, force_deletes; /* settles: spares that the job runs on */

    char *records[SIM_REFS_MAX]; /* latest incident record by number */
    struct text log;             /* all records, one a line */
    int record_count, decisions_not_executed;
    enum sim_crash crash;
    int crash_at; /* index of the START, or of the commit, at which to crash; -1 never */
    int start_count, commit_count, crashes;
    void (*redeliver)(struct sim *); /* what the detector says again after a crash; may be NULL */
    struct policy_set *(*make_policies)(void);
    enum mode daemon_mode;
};

/* --- policies --- */

static SIM_UNUSED void sim_steps(struct plan *plan, const char *name, bool rack)
{
    static const enum step_kind tray_kinds[] = {
        STEP_NOTIFY,       STEP_CAPTURE,     STEP_CORDON, STEP_REQUEST_CHECKPOINT,
        STEP_CHOOSE_SPARE, STEP_RESTART_JOB, STEP_VERIFY, STEP_HAND_OVER};
    *plan = (struct plan){0};
    text_copy(plan->name, sizeof plan->name, name);
    for (size_t i = 0; i < ARRAY_LEN(tray_kinds); i++) {
        if (rack && tray_kinds[i] == STEP_REQUEST_CHECKPOINT)
            continue;
        struct plan_step *step = &plan->steps[plan->count++];
        *step = (struct plan_step){.kind = tray_kinds[i],
                                   .whole_rack = rack,
                                   .hold_on_none = true,
                                   .new_steps = 20,
                                   .pace_within = 1.10};
        text_copy(step->severity, sizeof step->severity, "critical");
        text_copy(step->to, sizeof step->to, "hardware");
        step->before_ns = 10 * MINUTE;
        step->after_ns = 2 * MINUTE;
        step->prefer[0] = rack ? SPARE_RACK : SPARE_SAME_NVLINK_DOMAIN;
        step->prefer[1] = SPARE_RACK;
        step->prefer_count = rack ? 1 : 2;
        if (tray_kinds[i] == STEP_REQUEST_CHECKPOINT) {
            step->timeout_ns = 5 * MINUTE;
            step->on_timeout = ON_TIMEOUT_CONTINUE;
        }
        if (tray_kinds[i] == STEP_RESTART_JOB)
            step->timeout_ns = 10 * MINUTE;
        if (tray_kinds[i] == STEP_VERIFY)
            step->timeout_ns = 30 * MINUTE;
    }
}

static SIM_UNUSED struct policy_rule *sim_rule(struct policy *policy, const char *name,
                                               uint32_t kinds, uint32_t scopes, int evict,
                                               int severity, int plan)
{
    struct policy_rule *rule = &policy->rules[policy->rule_count++];
    *rule = (struct policy_rule){.kinds = kinds,
                                 .scopes = scopes,
                                 .evict = evict,
                                 .severity = severity,
                                 .mode = MODE_UNSET,
                                 .plan = plan};
    rule->slowdown = rule->gain = rule->confidence = rule->repeats = (struct range){NAN, NAN};
    text_copy(rule->name, sizeof rule->name, name);
    return rule;
}

static SIM_UNUSED struct policy_budget *sim_budget(struct policy *policy, const char *name,
                                                   enum budget_scope scope, enum budget_unit unit,
                                                   int64_t count, double percent, int64_t window_ns)
{
    struct policy_budget *budget = &policy->budgets[policy->budget_count++];
    *budget = (struct policy_budget){
        .scope = scope, .unit = unit, .count = count, .percent = percent, .window_ns = window_ns};
    text_copy(budget->name, sizeof budget->name, name);
    return budget;
}

#define KIND(x)  (1u << VERDICT_##x)
#define SCOPE(x) (1u << SCOPE_##x)

/* The shipped policy's shape, with everything enforced. */
static SIM_UNUSED struct policy *sim_policy(enum mode mode)
{
    struct policy *policy = xcalloc(1, sizeof *policy);
    text_copy(policy->name, sizeof policy->name, "test");
    text_copy(policy->hash, sizeof policy->hash, "0123456789abcdef");
    policy->mode = mode;
    policy->timers = policy_timers_default();
    policy->budgets = xcalloc(8, sizeof *policy->budgets);
    policy->rules = xcalloc(8, sizeof *policy->rules);
    policy->plans = xcalloc(3, sizeof *policy->plans);
    policy->plan_count = 3;
    text_copy(policy->plans[0].name, POLICY_NAME_BYTES, "record");
    sim_steps(&policy->plans[1], "replace-tray", false);
    sim_steps(&policy->plans[2], "replace-rack", true);
    sim_budget(policy, "trays", BUDGET_CLUSTER, BUDGET_TRAYS, 8, 5, HOUR);
    sim_budget(policy, "per-rack", BUDGET_RACK, BUDGET_TRAYS, 2, NAN, 6 * HOUR);
    sim_budget(policy, "racks", BUDGET_CLUSTER, BUDGET_RACKS, 1, NAN, 6 * HOUR);
    sim_budget(policy, "restarts", BUDGET_JOB, BUDGET_RESTARTS, 3, NAN, 6 * HOUR);
    sim_rule(policy, "rack-down", KIND(CRASH) | KIND(FAULT), SCOPE(RACK), -1, 0, 2);
    sim_rule(policy, "tray-hard-fault", KIND(CRASH) | KIND(FAULT) | KIND(HANG),
             SCOPE(RANK) | SCOPE(TRAY), 1, 1, 1);
    struct policy_rule *slow = sim_rule(policy, "slow-tray", KIND(SLOW), SCOPE(RANK) | SCOPE(TRAY),
                                        -1, 2, 1);
    slow->slowdown.at_least = 1.05;
    slow->confidence.at_least = 0.99;
    slow->unless_phases = 1u << 4 | 1u << 5;
    slow->for_ns = 10 * MINUTE;
    sim_rule(policy, "everything-else", 0, 0, -1, SEVERITY_UNSET, 0);
    return policy;
}

static SIM_UNUSED struct policy_set *sim_enforce(void)
{
    struct policy_set *set = policy_set_new();
    policy_set_add(set, sim_policy(MODE_ENFORCE));
    return set;
}

static SIM_UNUSED struct policy_set *sim_observe(void)
{
    struct policy_set *set = policy_set_new();
    policy_set_add(set, sim_policy(MODE_OBSERVE));
    return set;
}

static SIM_UNUSED struct policy_set *sim_approve(void)
{
    struct policy_set *set = policy_set_new();
    policy_set_add(set, sim_policy(MODE_APPROVE));
    return set;
}

/* --- the cluster --- */

static SIM_UNUSED struct sim_node *sim_node(struct sim *sim, const char *name)
{
    for (int i = 0; i < sim->node_count; i++)
        if (strcmp(sim->nodes[i].name, name) == 0)
            return &sim->nodes[i];
    return NULL;
}

static SIM_UNUSED int sim_ranks(const struct sim *sim)
{
    return sim->job->world_size;
}

static SIM_UNUSED bool sim_job_uses(const struct sim *sim, const char *node)
{
    for (int i = 0; i < sim_ranks(sim); i++)
        if (strcmp(sim->rank_node[i], node) == 0)
            return true;
    return false;
}

static SIM_UNUSED void sim_place_job(struct sim *sim)
{
    for (int i = 0; i < sim_ranks(sim); i++)
        sim->job->ranks[i].tray = job_find_tray(sim->job, sim->rank_node[i]);
}

static SIM_UNUSED void sim_new_core(struct sim *sim)
{
    struct remediation_params params = {
        .daemon_mode = sim->daemon_mode, .actuator = "sim", .next_number = 1};
    sim->core = remediation_new(&params);
    remediation_guards(sim->core, sim->guards, sim->now_ns);
    remediation_set_policy(sim->core, sim->make_policies(), sim->now_ns);
}

/* racks x 18 trays; the job takes the first `used` trays of the first `job_racks` racks, one rank a
 * GPU. */
static SIM_UNUSED void sim_init(struct sim *sim, int racks, int job_racks, int used,
                                struct policy_set *(*make_policies)(void))
{
    *sim = (struct sim){.now_ns = SIM_START,
                        .trays_per_rack = 18,
                        .used_per_rack = used,
                        .job_racks = job_racks,
                        .crash_at = -1,
                        .world_known = true,
                        .guards = {true, true, true, true},
                        .make_policies = make_policies,
                        .daemon_mode = MODE_ENFORCE,
                        .base_ms = 1000,
                        .slow = 1,
                        .checkpoint_every = 100,
                        .restarts_max = 10,
                        .says_phase = "compute"};
    for (int r = 0; r < racks; r++)
        for (int t = 0; t < 18; t++) {
            struct sim_node *node = &sim->nodes[sim->node_count++];
            snprintf(node->name, sizeof node->name, "n%d-%02d", r, t);
            snprintf(node->rack, sizeof node->rack, "rk-%d", r);
            node->ready = true;
            node->spare = !(r < job_racks && t < used);
        }
    sim->job = job_new("default/llm", job_racks * used * SIM_GPUS);
    sim->job->workload_json = xstrdup("{\"kind\":\"sim\"}");
    for (int i = 0; i < sim->node_count; i++)
        job_intern_tray(sim->job, sim->nodes[i].name,
                        job_intern_rack(sim->job, sim->nodes[i].rack, sim->nodes[i].rack));
    int rank = 0;
    for (int i = 0; i < sim->node_count; i++)
        for (int g = 0; g < SIM_GPUS && !sim->nodes[i].spare; g++)
            sim->rank_node[rank++] = sim->nodes[i].name;
    sim_place_job(sim);
    text_copy(sim->job_phase, sizeof sim->job_phase, "running");
    sim->attempt_time_ns = sim->now_ns;
    sim_new_core(sim);
}

static SIM_UNUSED void sim_done(struct sim *sim)
{
    remediation_free(sim->core);
    job_free(sim->job);
    for (int i = 0; i < SIM_REFS_MAX; i++)
        xfree(sim->records[i]);
    text_done(&sim->log);
}

static SIM_UNUSED struct sim_op *sim_op(struct sim *sim, const char *id)
{
    for (int i = 0; i < sim->op_count; i++)
        if (strcmp(sim->ops[i].id, id) == 0)
            return &sim->ops[i];
    return NULL;
}

static SIM_UNUSED void sim_begin_restart(struct sim *sim, const struct action *action)
{
    if (sim->swallow_restart)
        return;
    for (size_t i = 0; i < action->node_count && i < action->spare_count; i++)
        for (int r = 0; r < sim_ranks(sim); r++)
            if (strcmp(sim->rank_node[r], action->nodes[i]) == 0)
                sim->rank_node[r] = sim_node(sim, i == 0 && sim->elsewhere != NULL
                                                      ? sim->elsewhere
                                                      : action->spares[i])
                                        ->name;
    text_copy(sim->job_phase, sizeof sim->job_phase, "restarting");
    sim->starts_at_ns = sim->now_ns + 30 * SECOND;
    sim->restarts++;
    sim->restarts_done++;
}

static SIM_UNUSED void sim_execute(struct sim *sim, const struct action *action)
{
    for (size_t i = 0; i < action->node_count; i++) {
        struct sim_node *node = sim_node(sim, action->nodes[i]);
        if (action->verb == VERB_CORDON && !node->cordoned) {
            node->cordoned = true;
            text_copy(node->cordoned_by, sizeof node->cordoned_by, action->incident_ref);
        }
        if (action->verb == VERB_FORCE_DELETE && !sim->force_delete_does_nothing)
            node->stuck = false;
        if (action->verb == VERB_FENCE)
            node->ready = false;
        if (action->verb == VERB_UNCORDON && strcmp(node->cordoned_by, action->incident_ref) == 0)
            node->cordoned = node->marked = false;
    }
    for (size_t i = 0; i < action->spare_count; i++) {
        struct sim_node *node = sim_node(sim, action->spares[i]);
        if (action->verb == VERB_PROMISE_SPARE)
            text_copy(node->promised_to, sizeof node->promised_to, action->job);
        if (action->verb == VERB_RELEASE_SPARE)
            node->promised_to[0] = '\0';
    }
    sim->cordons += action->verb == VERB_CORDON ? (int)action->node_count : 0;
    sim->uncordons += action->verb == VERB_UNCORDON ? (int)action->node_count : 0;
    sim->promises += action->verb == VERB_PROMISE_SPARE ? 1 : 0;
    bool used = action->params_json != NULL && strstr(action->params_json, "\"used\":true") != NULL;
    sim->releases += action->verb == VERB_RELEASE_SPARE && !used ? 1 : 0;
    sim->settles += action->verb == VERB_RELEASE_SPARE && used ? 1 : 0;
    sim->fences += action->verb == VERB_FENCE ? 1 : 0;
    sim->drains += action->verb == VERB_DRAIN ? 1 : 0;
    sim->force_deletes += action->verb == VERB_FORCE_DELETE ? 1 : 0;
    sim->notifies += action->verb == VERB_NOTIFY ? 1 : 0;
    sim->captures += action->verb == VERB_CAPTURE ? 1 : 0;
    sim->hand_overs += action->verb == VERB_HAND_OVER ? 1 : 0;
    if (action->verb == VERB_REQUEST_CHECKPOINT && !sim->stopped)
        sim->checkpoint_step = sim->step;
    if (action->verb == VERB_RESTART_JOB)
        sim_begin_restart(sim, action);
}

static SIM_UNUSED void sim_crash_now(struct sim *sim);

static SIM_UNUSED bool sim_start(struct sim *sim, const struct action *action)
{
    bool crash = sim->start_count++ == sim->crash_at;
    if (crash && sim->crash == CRASH_BEFORE_START) {
        sim_crash_now(sim);
        return false;
    }
    if (!remediation_may_start(sim->core, action->operation_id)) {
        struct action_result cancelled = {.outcome = OUTCOME_CANCELLED, .reason = "taken back"};
        remediation_outcome(sim->core, action->operation_id, &cancelled, sim->now_ns);
        return true;
    }
    if (sim->bad_count > 0 && action->verb == sim->bad_verb) {
        struct action_result bad = {.outcome = sim->bad_outcome, .reason = "by the test"};
        struct action partly = *action;
        partly.node_count -= partly.node_count > 0 ? 1 : 0;
        if (sim->bad_count <= sim->bad_partly)
            sim_execute(sim, &partly);
        sim->bad_count--;
        remediation_outcome(sim->core, action->operation_id, &bad, sim->now_ns);
        return true;
    }
    struct sim_op *op = sim_op(sim, action->operation_id);
    if (op == NULL) {
        op = &sim->ops[sim->op_count++];
        text_copy(op->id, sizeof op->id, action->operation_id);
        op->verb = action->verb;
        op->node_count = action->node_count;
    }
    if (!(sim->loses_restart && action->verb == VERB_RESTART_JOB)) {
        op->started++;
        sim_execute(sim, action);
    }
    if (crash) {
        sim_crash_now(sim);
        return false;
    }
    if (sim->unanswered && action->verb == sim->bad_verb)
        return true;
    if (sim->restart_waits && action->verb == VERB_RESTART_JOB) {
        text_copy(sim->waiting_restart, sizeof sim->waiting_restart, action->operation_id);
        return true;
    }
    struct action_result result = {.outcome = sim->answers_unknown ? OUTCOME_UNKNOWN
                                                                   : OUTCOME_SUCCEEDED,
                                   .reason = "sim",
                                   .response = sim->response};
    remediation_outcome(sim->core, action->operation_id, &result, sim->now_ns);
    return true;
}

static SIM_UNUSED void sim_poll(struct sim *sim, const struct action *action)
{
    struct sim_op *op = sim_op(sim, action->operation_id);
    bool done = op != NULL && op->started > 0;
    struct action_result result = {.outcome = done ? OUTCOME_SUCCEEDED : OUTCOME_UNKNOWN,
                                   .poll = sim->poll_silent ? POLL_RUNNING
                                           : done           ? POLL_DONE
                                                            : POLL_ABSENT,
                                   .reason = sim->poll_reason};
    if (op != NULL)
        op->polled++;
    remediation_polled(sim->core, action->operation_id, &result, sim->now_ns);
}

static SIM_UNUSED struct world_node sim_world_node(struct sim *sim, const struct sim_node *node)
{
    const char *domain = node->domain != NULL ? node->domain : node->rack;
    return (struct world_node){
        .name = node->name,
        .rack = node->rack,
        .nvlink_domain = domain[0] != '\0' ? domain : NULL,
        .ready = node->ready,
        .cordoned = node->cordoned,
        .cordoned_by = node->cordoned ? node->cordoned_by : NULL,
        .spare = node->spare && !sim_job_uses(sim, node->name),
        .promised_to = node->promised_to[0] != '\0' ? node->promised_to : NULL,
        .gpus_allocatable = SIM_GPUS - node->gpus_missing,
        .fenced_by = node->fenced_by,
        .uncordoned_by = node->uncordoned_by,
        .marked_by = node->marked && !node->cordoned ? node->cordoned_by : NULL};
}

static SIM_UNUSED void sim_describe(struct sim *sim)
{
    struct world_node nodes[SIM_NODES_MAX];
    const char *stuck[SIM_NODES_MAX];
    size_t count = 0, stuck_count = 0;
    for (int i = 0; i < sim->node_count; i++) {
        const struct sim_node *node = &sim->nodes[i];
        if (!node->gone)
            nodes[count++] = sim_world_node(sim, node);
        if (node->stuck)
            stuck[stuck_count++] = node->name;
    }
    struct world_job job = {.name = sim->job->name,
                            .uid = "u1",
                            .phase = sim->job_phase,
                            .restarts = sim->restarts,
                            .restarts_max = sim->restarts_max,
                            .checkpoint_step = sim->checkpoint_step,
                            .rank_nodes = sim->rank_node,
                            .rank_count = sim_ranks(sim),
                            .waiting_for = sim->waiting_for,
                            .restart_refusal = sim->refusal,
                            .made_anew = sim->made_anew,
                            .stuck_nodes = stuck,
                            .stuck_count = sim->starts_at_ns != 0 ? stuck_count : 0};
    job.checkpoint_time_ns = sim->checkpoint_time_ns;
    struct world_job other = {.name = "other/job",
                              .phase = "running",
                              .restarts = -1,
                              .restarts_max = -1,
                              .checkpoint_step = -1,
                              .rank_nodes = &sim->other_job_node,
                              .rank_count = 1};
    const struct world_job jobs[] = {job, other};
    struct world world = {.known = sim->world_known,
                          .nodes = nodes,
                          .node_count = count,
                          .jobs = jobs,
                          .job_count = sim->other_job_node != NULL ? 2 : 1};
    remediation_world(sim->core, &world, sim->now_ns);
}

/* --- the store --- */

static SIM_UNUSED void sim_store(struct sim *sim, const char *record)
{
    struct json *json = NULL;
    sim->record_count++;
    text_add(&sim->log, record);
    text_add(&sim->log, "\n");
    if (json_parse(view_of(record), &json, NULL) != OK)
        abort();
    const char *type = json_get_string(json, "type", "");
    if (strcmp(type, "incident") == 0) {
        int64_t number = json_get_int(json, "number", 0);
        xfree(sim->records[number]);
        sim->records[number] = xstrdup(record);
    }
    if (strcmp(type, "decision") == 0 && !json_get_bool(json, "executed", true))
        sim->decisions_not_executed++;
    json_free(json);
}

/* What the pipeline does: all records of a drain are one transaction, then the actions. False: we
 * crashed and the core is another one. */
static SIM_UNUSED bool sim_drain_once(struct sim *sim, struct effect *batch, size_t count)
{
    bool alive = true;
    if (sim->crash == CRASH_BEFORE_COMMIT && sim->commit_count == sim->crash_at)
        alive = false;
    sim->commit_count++;
    for (size_t i = 0; i < count && alive; i++)
        if (batch[i].kind == EFFECT_RECORD)
            sim_store(sim, batch[i].record);
    if (!alive)
        sim_crash_now(sim);
    for (size_t i = 0; i < count && alive; i++) {
        switch (batch[i].kind) {
        case EFFECT_RECORD:
            break;
        case EFFECT_START:
            alive = sim_start(sim, &batch[i].action);
            break;
        case EFFECT_POLL:
            if (!sim->poll_unanswered)
                sim_poll(sim, &batch[i].action);
            break;
        case EFFECT_DESCRIBE:
            sim_describe(sim);
            break;
        }
    }
    return alive;
}

static SIM_UNUSED void sim_drain(struct sim *sim)
{
    struct effect *batch = NULL;
    size_t capacity = 0;
    for (bool alive = true; alive;) {
        size_t count = 0;
        struct effect effect;
        while (remediation_next_effect(sim->core, &effect)) {
            batch = array_grow(batch, count, &capacity, sizeof *batch);
            batch[count++] = effect;
        }
        if (count == 0)
            break;
        alive = sim_drain_once(sim, batch, count);
        for (size_t i = 0; i < count; i++)
            effect_done(&batch[i]);
    }
    xfree(batch);
}

static SIM_UNUSED void sim_crash_now(struct sim *sim)
{
    sim->crashes++;
    remediation_free(sim->core);
    sim_new_core(sim);
    for (int i = 0; i < SIM_REFS_MAX; i++) {
        struct json *json = NULL;
        if (sim->records[i] == NULL)
            continue;
        if (json_parse(view_of(sim->records[i]), &json, NULL) != OK ||
            remediation_restore(sim->core, json, sim->now_ns, NULL) != OK)
            abort();
        json_free(json);
    }
    if (sim->redeliver != NULL)
        sim->redeliver(sim);
}

/* --- time --- */

static SIM_UNUSED bool sim_job_can_step(struct sim *sim)
{
    if (sim->stopped || strcmp(sim->job_phase, "running") != 0)
        return false;
    for (int i = 0; i < sim_ranks(sim); i++)
        if (sim_node(sim, sim->rank_node[i])->dead)
            return false;
    return true;
}

static SIM_UNUSED bool sim_is_stuck(const struct sim *sim)
{
    for (int i = 0; i < sim->node_count; i++)
        if (sim->nodes[i].stuck)
            return true;
    return false;
}

static SIM_UNUSED void sim_answer_restart(struct sim *sim)
{
    struct action_result result = {.outcome = OUTCOME_SUCCEEDED, .reason = "it runs again"};
    if (sim->waiting_restart[0] != '\0')
        remediation_outcome(sim->core, sim->waiting_restart, &result, sim->now_ns);
    sim->waiting_restart[0] = '\0';
}

static SIM_UNUSED void sim_move_job(struct sim *sim)
{
    if (sim->starts_at_ns != 0 && sim->now_ns >= sim->starts_at_ns && !sim_is_stuck(sim)) {
        sim->starts_at_ns = 0;
        text_copy(sim->job_phase, sizeof sim->job_phase, "running");
        sim->stopped = false;
        sim->attempt++;
        sim->attempt_time_ns = sim->now_ns;
        sim->step = sim->checkpoint_step;
        sim->attempt_first_step = sim->checkpoint_step + 1;
        sim_place_job(sim);
        sim_answer_restart(sim);
    }
    if (!sim_job_can_step(sim))
        return;
    bool slow = sim->slow_node != NULL && sim_job_uses(sim, sim->slow_node);
    sim->pace_ms = sim->base_ms * (slow ? sim->slow : 1);
    sim->step++;
    sim->step_time_ns = sim->now_ns;
    if (sim->step % sim->checkpoint_every == 0)
        sim->checkpoint_step = sim->step;
}

static SIM_UNUSED void sim_say_progress(struct sim *sim)
{
    struct engine_progress progress = {.step = sim->step,
                                       .step_time_ns = sim->step_time_ns,
                                       .attempt = sim->attempt,
                                       .attempt_first_step = sim->attempt_first_step,
                                       .attempt_time_ns = sim->attempt_time_ns,
                                       .step_ms = sim->pace_ms,
                                       .baseline_ms = sim->base_ms,
                                       .ranks_reporting = sim_ranks(sim)};
    text_copy(progress.phase, sizeof progress.phase, sim->says_phase);
    remediation_progress(sim->core, sim->job->name, &progress, sim->now_ns);
}

static SIM_UNUSED void sim_tell_progress(struct sim *sim)
{
    sim_say_progress(sim);
    sim_drain(sim);
}

/* One second: the job moves, its progress is told, the core looks. */
static SIM_UNUSED void sim_tick(struct sim *sim)
{
    sim->now_ns += SECOND;
    sim_move_job(sim);
    sim_tell_progress(sim);
    remediation_tick(sim->core, sim->now_ns);
    sim_drain(sim);
}

static SIM_UNUSED void sim_run(struct sim *sim, int64_t seconds)
{
    for (int64_t i = 0; i < seconds; i++)
        sim_tick(sim);
}

static SIM_UNUSED const struct incident *sim_incident(const struct sim *sim, int number)
{
    char ref[INCIDENT_REF_BYTES];
    snprintf(ref, sizeof ref, "INC-%d", number);
    return remediation_find(sim->core, ref);
}

/* Runs until the incident is in the phase; false when it does not come within the seconds. */
static SIM_UNUSED bool sim_until(struct sim *sim, int number, enum phase phase, int64_t seconds)
{
    for (int64_t i = 0;; i++) {
        const struct incident *incident = sim_incident(sim, number);
        if ((incident != NULL && incident->phase == phase) || i >= seconds)
            return incident != NULL && incident->phase == phase;
        sim_tick(sim);
    }
}

/* --- plans --- */

static SIM_UNUSED struct plan_step *sim_plan_step(struct policy_set *set, enum step_kind kind)
{
    struct plan *plan = &set->items[0]->plans[1];
    for (int i = 0; i < plan->count; i++)
        if (plan->steps[i].kind == kind)
            return &plan->steps[i];
    abort(); /* the tray plan has one of each */
}

/* A step of the tray plan in front of another one. */
static SIM_UNUSED struct plan_step *sim_insert_step(struct policy_set *set, enum step_kind kind,
                                                    enum step_kind before)
{
    struct plan *plan = &set->items[0]->plans[1];
    struct plan_step *at = sim_plan_step(set, before);
    memmove(at + 1, at, (size_t)(&plan->steps[plan->count] - at) * sizeof *at);
    plan->count++;
    *at = (struct plan_step){.kind = kind, .timeout_ns = 5 * MINUTE};
    return at;
}

/* --- verdicts --- */

static SIM_UNUSED struct verdict sim_verdict(const struct sim *sim, enum verdict_kind kind,
                                             enum scope scope, const char *id)
{
    struct verdict verdict = {.kind = kind,
                              .scope = scope,
                              .step = sim->step,
                              .since_step = sim->step,
                              .time_ns = sim->now_ns,
                              .cause = CAUSE_UNKNOWN,
                              .slowdown = 1,
                              .confidence = 0.999,
                              .evict = true};
    text_copy(verdict.id, sizeof verdict.id, id);
    return verdict;
}

static SIM_UNUSED void sim_give(struct sim *sim, struct verdict *verdict, const char *source)
{
    remediation_verdict(sim->core, sim->job, verdict, source, sim->now_ns);
    verdict_done(verdict);
    sim_drain(sim);
}

static SIM_UNUSED void sim_accuse_tray(struct sim *sim, enum verdict_kind kind, const char *node,
                                       const char *source)
{
    struct verdict verdict = sim_verdict(sim, kind, SCOPE_TRAY, node);
    verdict.slowdown = kind == VERDICT_SLOW ? 1.2 : 1;
    verdict_add_node(&verdict, node);
    for (int i = 0; i < sim_ranks(sim); i++)
        if (strcmp(sim->rank_node[i], node) == 0)
            verdict_add_rank(&verdict, i);
    sim_give(sim, &verdict, source);
}

static SIM_UNUSED void sim_accuse_rack(struct sim *sim, enum verdict_kind kind, const char *rack,
                                       const char *source)
{
    struct verdict verdict = sim_verdict(sim, kind, SCOPE_RACK, rack);
    for (int i = 0; i < sim_ranks(sim); i++) {
        if (strcmp(sim_node(sim, sim->rank_node[i])->rack, rack) == 0) {
            verdict_add_node(&verdict, sim->rank_node[i]);
            verdict_add_rank(&verdict, i);
        } else {
            verdict_add_victim(&verdict, i);
        }
    }
    sim_give(sim, &verdict, source);
}

static SIM_UNUSED void sim_clear(struct sim *sim, enum verdict_kind of_kind, enum scope scope,
                                 const char *id)
{
    struct verdict verdict = sim_verdict(sim, VERDICT_CLEAR, scope, id);
    verdict.of_kind = of_kind;
    verdict.evict = false;
    if (scope == SCOPE_TRAY)
        verdict_add_node(&verdict, id);
    sim_give(sim, &verdict, "detector");
}

static SIM_UNUSED void sim_lose_tray(struct sim *sim, const char *node)
{
    sim_node(sim, node)->dead = true;
    sim_node(sim, node)->ready = false;
    sim->stopped = true;
}

static SIM_UNUSED enum status sim_say(struct sim *sim, enum command_verb verb, const char *ref)
{
    struct remediation_command command = {
        .verb = verb, .incident_ref = ref, .actor = "alice", .text = "because"};
    enum status status = remediation_command(sim->core, &command, sim->now_ns, NULL);
    sim_drain(sim);
    return status;
}

static SIM_UNUSED enum status sim_say_fenced(struct sim *sim, const char *node)
{
    struct remediation_command command = {
        .verb = COMMAND_FENCED, .node = node, .actor = "alice", .text = "pulled the plug"};
    enum status status = remediation_command(sim->core, &command, sim->now_ns, NULL);
    sim_drain(sim);
    return status;
}

#endif
