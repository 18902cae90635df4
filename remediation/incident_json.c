/* The `incident` record, both ways. What people read stands at the top level; what only the core
 * needs to go on after a restart stands under `state`.
 */
#include "remediation/fsm.h"
#include "remediation/incident.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void put_nodes(const struct incident *incident, struct json_writer *w)
{
    json_add_key(w, "nodes");
    json_open_array(w);
    for (size_t i = 0; i < incident->node_count; i++)
        json_add_string(w, incident->nodes[i].name);
    json_close(w);
}

static void put_ints(const char *key, const int32_t *list, size_t count, struct json_writer *w)
{
    json_add_key(w, key);
    json_open_array(w);
    for (size_t i = 0; i < count; i++)
        json_add_int(w, list[i]);
    json_close(w);
}

static void put_names(const char *key, const struct names *names, struct json_writer *w)
{
    json_add_key(w, key);
    names_write(names, w);
}

static void put_optional(const char *key, const char *text, struct json_writer *w)
{
    json_put_string(w, key, text[0] != '\0' ? text : NULL);
}

static void put_times(const struct incident_times *times, struct json_writer *w)
{
    json_add_key(w, "times");
    json_open_object(w);
    json_put_int(w, "fault_started_ns", times->fault_started_ns);
    json_put_int(w, "detected_ns", times->detected_ns);
    json_put_int(w, "decided_ns", times->decided_ns);
    json_put_int(w, "acted_ns", times->acted_ns);
    json_put_int(w, "mitigated_ns", times->mitigated_ns);
    json_put_int(w, "resolved_ns", times->resolved_ns);
    json_put_int(w, "closed_ns", times->closed_ns);
    json_close(w);
}

static void put_cost(const struct incident_cost *cost, struct json_writer *w)
{
    json_add_key(w, "cost");
    json_open_object(w);
    if (cost->steps_lost >= 0)
        json_put_int(w, "steps_lost", cost->steps_lost);
    json_put_rounded(w, "gpu_hours", cost->gpu_hours, 6);
    json_put_rounded(w, "loss_gpu_hours", cost->loss_gpu_hours, 6);
    json_put_rounded(w, "restart_gpu_hours", cost->restart_gpu_hours, 6);
    json_close(w);
}

static void put_plan(const struct plan *plan, struct json_writer *w)
{
    json_add_key(w, "steps");
    json_open_array(w);
    for (int i = 0; i < plan->count; i++) {
        const struct plan_step *step = &plan->steps[i];
        json_open_object(w);
        json_put_string(w, "kind", step_kind_name(step->kind));
        json_put_string(w, "severity", step->severity);
        json_put_int(w, "before_ns", step->before_ns);
        json_put_int(w, "after_ns", step->after_ns);
        json_put_bool(w, "whole_rack", step->whole_rack);
        json_put_int(w, "timeout_ns", step->timeout_ns);
        json_put_bool(w, "continue", step->on_timeout == ON_TIMEOUT_CONTINUE);
        put_ints("prefer", (const int32_t[]){(int32_t)step->prefer[0], (int32_t)step->prefer[1]},
                 (size_t)step->prefer_count, w);
        json_put_bool(w, "hold", step->hold_on_none);
        json_put_int(w, "new_steps", step->new_steps);
        json_put_number(w, "pace_within", step->pace_within);
        json_put_string(w, "to", step->to);
        json_put_bool(w, "named", step->named_only);
        json_put_bool(w, "force_fenced", step->force_fenced);
        json_put_bool(w, "gives_back", step->gives_back);
        json_close(w);
    }
    json_close(w);
}

static void put_timers(const struct policy_timers *timers, struct json_writer *w)
{
    json_add_key(w, "timers");
    json_open_array(w);
    json_add_int(w, timers->settle_corroborated_ns);
    json_add_int(w, timers->settle_uncorroborated_ns);
    json_add_int(w, timers->approval_ns);
    json_add_int(w, timers->hold_ns);
    json_add_int(w, timers->action_ns);
    json_add_int(w, timers->repair_ns);
    json_add_int(w, timers->validate_ns);
    json_add_int(w, timers->watch_ns);
    json_add_int(w, timers->restart_cost_ns);
    json_add_int(w, timers->restart_stuck_ns);
    json_close(w);
}

static void put_node_states(const struct incident *incident, struct json_writer *w)
{
    json_add_key(w, "node_states");
    json_open_array(w);
    for (size_t i = 0; i < incident->node_count; i++) {
        const struct incident_node *node = &incident->nodes[i];
        json_open_object(w);
        json_put_string(w, "node", node->name);
        json_put_string(w, "rack", node->rack);
        json_put_bool(w, "was_cordoned", node->was_cordoned);
        json_put_bool(w, "ours", node->ours);
        json_put_bool(w, "was_down", node->was_down);
        json_put_bool(w, "had_domain", node->had_domain);
        json_put_bool(w, "given_back", node->given_back);
        if (node->fenced_by != NULL) {
            json_put_string(w, "fenced_by", node->fenced_by);
            json_put_int(w, "fenced_ns", node->fenced_ns);
            json_put_bool(w, "seen_down", node->seen_down);
        }
        json_close(w);
    }
    json_close(w);
}

static void put_actions(const struct incident *incident, struct json_writer *w)
{
    json_add_key(w, "actions");
    json_open_array(w);
    for (size_t i = 0; i < incident->action_count; i++) {
        const struct incident_action *action = &incident->actions[i];
        json_open_object(w);
        json_put_string(w, "operation_id", action->operation_id);
        json_put_string(w, "verb", verb_name(action->verb));
        json_put_int(w, "step", action->step);
        json_put_int(w, "try", action->try_number);
        if (action->state == ACTION_ENDED)
            json_put_string(w, "outcome", outcome_name(action->outcome));
        json_put_int(w, "started_ns", action->started_ns);
        json_put_int(w, "ended_ns", action->ended_ns);
        json_put_bool(w, "aside", action->aside);
        put_names("nodes", &action->nodes, w);
        put_names("spares", &action->spares, w);
        json_put_string(w, "params", action->params_json);
        json_close(w);
    }
    json_close(w);
}

static void put_back(const struct incident *incident, struct json_writer *w)
{
    json_add_key(w, "back");
    json_open_array(w);
    for (int i = 0; i < BACK_STAGE_COUNT; i++)
        json_add_int(w, incident->back_ns[i]);
    json_close(w);
}

static void put_state(const struct incident *incident, struct json_writer *w)
{
    json_add_key(w, "state");
    json_open_object(w);
    json_put_string(w, "workload", incident->workload_json);
    json_put_int(w, "world_size", incident->world_size);
    json_put_int(w, "gpus_per_node", incident->gpus_per_node);
    json_put_number(w, "slowdown", incident->slowdown);
    json_put_number(w, "gain", incident->gain);
    json_put_number(w, "confidence", incident->confidence);
    json_put_bool(w, "evict", incident->evict);
    json_put_int(w, "for_ns", incident->for_ns);
    json_put_int(w, "step", incident->step);
    json_put_int(w, "step_since_ns", incident->step_since_ns);
    json_put_int(w, "round", incident->round);
    put_plan(&incident->plan, w);
    put_timers(&incident->timers, w);
    put_node_states(incident, w);
    put_names("leaving", &incident->leaving, w);
    put_names("spares", &incident->spares, w);
    json_put_int(w, "validating_ns", incident->validating_ns);
    json_put_bool(w, "return_told", incident->return_told);
    json_put_bool(w, "refusal_told", incident->refusal_told);
    json_put_bool(w, "spares_settled", incident->spares_settled);
    put_names("nodes_before", &incident->nodes_before, w);
    put_names("stuck_told", &incident->stuck_told, w);
    put_names("accused_later", &incident->accused_later, w);
    put_names("silent_later", &incident->silent_later, w);
    json_put_int(w, "cleared_ns", incident->cleared_ns);
    json_put_bool(w, "corroborated", incident->corroborated);
    json_put_int(w, "repeats", incident->repeats);
    json_put_int(w, "step_at_fault", incident->step_at_fault);
    json_put_int(w, "attempt_before", incident->attempt_before);
    json_put_int(w, "restarts_before", incident->restarts_before);
    json_put_string(w, "uid_before", incident->uid_before);
    json_put_number(w, "baseline_ms", incident->baseline_ms);
    json_put_int(w, "restart_started_ns", incident->restart_started_ns);
    json_put_int(w, "nodes_spent_ns", incident->nodes_spent_ns);
    json_put_bool(w, "spent_rack", incident->spent_rack);
    json_put_int(w, "timeline_seq", incident->timeline_seq);
    json_put_int(w, "decision_seq", incident->decision_seq);
    put_back(incident, w);
    put_actions(incident, w);
    json_close(w);
}

void incident_write(const struct incident *incident, int64_t now_ns, struct json_writer *w)
{
    char key[64];
    snprintf(key, sizeof key, "incident/%s/%lld", incident->ref, (long long)incident->version);
    json_open_object(w);
    json_put_string(w, "type", "incident");
    json_put_string(w, "key", key);
    json_put_int(w, "time_ns", now_ns);
    json_put_string(w, "ref", incident->ref);
    json_put_int(w, "number", incident->number);
    json_put_int(w, "version", incident->version);
    json_put_string(w, "job", incident->job);
    json_put_string(w, "kind", verdict_kind_name(incident->kind));
    json_put_string(w, "scope", scope_name(incident->scope));
    json_put_string(w, "domain", incident->domain);
    json_put_string(w, "cause", cause_name(incident->cause));
    json_put_string(w, "source", incident->source);
    json_put_bool(w, "observer_suspect", incident->observer_suspect);
    json_put_int(w, "severity", incident->severity);
    json_put_string(w, "status", incident_status_name(incident->status));
    json_put_string(w, "phase", phase_name(incident->phase));
    json_put_string(w, "owner", phase_owner(incident->phase));
    put_optional("rule", incident->rule, w);
    put_optional("policy", incident->policy, w);
    put_optional("policy_hash", incident->policy_hash, w);
    put_optional("plan", incident->plan.name, w);
    json_put_string(w, "mode", mode_name(incident->mode));
    put_nodes(incident, w);
    put_ints("ranks", incident->ranks, incident->rank_count, w);
    put_ints("victims", incident->victims, incident->victim_count, w);
    put_optional("merged_into", incident->merged_into, w);
    put_optional("approved_by", incident->approved_by, w);
    put_optional("acked_by", incident->acked_by, w);
    put_optional("fenced_by", incident->fenced_by, w);
    put_times(&incident->times, w);
    put_cost(&incident->cost, w);
    put_optional("waiting_for", incident->waiting_for, w);
    json_put_int(w, "deadline_ns", incident->deadline_ns);
    put_state(incident, w);
    json_close(w);
}

static void get_text(const struct json *object, const char *key, char *buffer, size_t bytes)
{
    text_copy(buffer, bytes, json_get_string(object, key, ""));
}

static void get_ranks(const struct json *record, struct incident *incident)
{
    const struct json *list = json_get(record, "ranks");
    for (const struct json *item = json_first(list); item != NULL; item = json_next(item))
        incident_add_rank(incident, (int32_t)json_int(item, 0));
    list = json_get(record, "victims");
    for (const struct json *item = json_first(list); item != NULL; item = json_next(item))
        incident_add_victim(incident, (int32_t)json_int(item, 0));
}

static void get_times(const struct json *times, struct incident_times *ret)
{
    ret->fault_started_ns = json_get_int(times, "fault_started_ns", 0);
    ret->detected_ns = json_get_int(times, "detected_ns", 0);
    ret->decided_ns = json_get_int(times, "decided_ns", 0);
    ret->acted_ns = json_get_int(times, "acted_ns", 0);
    ret->mitigated_ns = json_get_int(times, "mitigated_ns", 0);
    ret->resolved_ns = json_get_int(times, "resolved_ns", 0);
    ret->closed_ns = json_get_int(times, "closed_ns", 0);
}

static void get_step(const struct json *item, struct plan_step *step)
{
    get_text(item, "severity", step->severity, sizeof step->severity);
    step->before_ns = json_get_int(item, "before_ns", 0);
    step->after_ns = json_get_int(item, "after_ns", 0);
    step->whole_rack = json_get_bool(item, "whole_rack", false);
    step->timeout_ns = json_get_int(item, "timeout_ns", 0);
    step->on_timeout = json_get_bool(item, "continue", false) ? ON_TIMEOUT_CONTINUE
                                                              : ON_TIMEOUT_ESCALATE;
    const struct json *prefer = json_first(json_get(item, "prefer"));
    for (; prefer != NULL && step->prefer_count < SPARE_SOURCE_COUNT; prefer = json_next(prefer))
        step->prefer[step->prefer_count++] = json_int(prefer, 0) == SPARE_RACK
                                                 ? SPARE_RACK
                                                 : SPARE_SAME_NVLINK_DOMAIN;
    step->hold_on_none = json_get_bool(item, "hold", true);
    step->new_steps = json_get_int(item, "new_steps", 1);
    step->pace_within = json_get_number(item, "pace_within", 1.1);
    get_text(item, "to", step->to, sizeof step->to);
    step->named_only = json_get_bool(item, "named", false);
    step->force_fenced = json_get_bool(item, "force_fenced", false);
    step->gives_back = json_get_bool(item, "gives_back", false);
}

static void get_plan(const struct json *state, struct plan *plan)
{
    const struct json *item = json_first(json_get(state, "steps"));
    for (; item != NULL && plan->count < PLAN_STEPS_MAX; item = json_next(item)) {
        struct plan_step step = {0};
        if (!step_kind_parse(json_get_string(item, "kind", ""), &step.kind))
            continue;
        get_step(item, &step);
        plan->steps[plan->count++] = step;
    }
}

static void get_timers(const struct json *state, struct policy_timers *timers)
{
    int64_t *const fields[] = {
        &timers->settle_corroborated_ns,
        &timers->settle_uncorroborated_ns,
        &timers->approval_ns,
        &timers->hold_ns,
        &timers->action_ns,
        &timers->repair_ns,
        &timers->validate_ns,
        &timers->watch_ns,
        &timers->restart_cost_ns,
        &timers->restart_stuck_ns,
    };
    const struct json *item = json_first(json_get(state, "timers"));
    for (size_t i = 0; i < ARRAY_LEN(fields) && item != NULL; i++, item = json_next(item))
        *fields[i] = json_int(item, *fields[i]);
}

static void get_nodes(const struct json *record, const struct json *state,
                      struct incident *incident)
{
    const struct json *item = json_first(json_get(state, "node_states"));
    for (; item != NULL; item = json_next(item)) {
        struct incident_node *node = incident_add_node(incident, json_get_string(item, "node", ""),
                                                       json_get_string(item, "rack", ""));
        node->was_cordoned = json_get_bool(item, "was_cordoned", false);
        node->ours = json_get_bool(item, "ours", false);
        node->was_down = json_get_bool(item, "was_down", false);
        node->had_domain = json_get_bool(item, "had_domain", false);
        node->given_back = json_get_bool(item, "given_back", false);
        const char *fenced_by = json_get_string(item, "fenced_by", NULL);
        node->fenced_by = fenced_by != NULL ? xstrdup(fenced_by) : NULL;
        node->fenced_ns = json_get_int(item, "fenced_ns", 0);
        node->seen_down = json_get_bool(item, "seen_down", false);
    }
    item = json_first(json_get(record, "nodes"));
    for (; item != NULL; item = json_next(item))
        incident_add_node(incident, json_string(item, ""), "");
}

static void get_actions(const struct json *state, struct incident *incident)
{
    const struct json *item = json_first(json_get(state, "actions"));
    for (; item != NULL; item = json_next(item)) {
        enum verb verb;
        if (!verb_parse(json_get_string(item, "verb", ""), &verb))
            continue;
        struct incident_action *action = incident_add_action(incident);
        action->verb = verb;
        get_text(item, "operation_id", action->operation_id, sizeof action->operation_id);
        action->step = (int)json_get_int(item, "step", -1);
        action->try_number = (int)json_get_int(item, "try", 1);
        action->aside = json_get_bool(item, "aside", action->step < 0 && verb == VERB_NOTIFY);
        action->state = outcome_parse(json_get_string(item, "outcome", ""), &action->outcome)
                            ? ACTION_ENDED
                            : ACTION_POLLING;
        action->restored = action->state == ACTION_POLLING;
        action->started_ns = json_get_int(item, "started_ns", 0);
        action->ended_ns = json_get_int(item, "ended_ns", 0);
        names_parse(&action->nodes, json_get(item, "nodes"));
        names_parse(&action->spares, json_get(item, "spares"));
        const char *params = json_get_string(item, "params", NULL);
        action->params_json = params != NULL ? xstrdup(params) : NULL;
    }
}

static void get_state(const struct json *record, struct incident *incident)
{
    const struct json *state = json_get(record, "state");
    const char *workload = json_get_string(state, "workload", NULL);
    incident->workload_json = workload != NULL ? xstrdup(workload) : NULL;
    incident->world_size = (int32_t)json_get_int(state, "world_size", 0);
    incident->gpus_per_node = (int32_t)json_get_int(state, "gpus_per_node", 0);
    incident->slowdown = json_get_number(state, "slowdown", 1);
    incident->gain = json_get_number(state, "gain", 0);
    incident->confidence = json_get_number(state, "confidence", 0);
    incident->evict = json_get_bool(state, "evict", false);
    incident->for_ns = json_get_int(state, "for_ns", 0);
    incident->step = (int)json_get_int(state, "step", 0);
    incident->step_since_ns = json_get_int(state, "step_since_ns", 0);
    incident->round = (int)json_get_int(state, "round", 0);
    get_plan(state, &incident->plan);
    get_timers(state, &incident->timers);
    get_nodes(record, state, incident);
    names_parse(&incident->leaving, json_get(state, "leaving"));
    names_parse(&incident->spares, json_get(state, "spares"));
    incident->validating_ns = json_get_int(state, "validating_ns", 0);
    incident->return_told = json_get_bool(state, "return_told", false);
    incident->refusal_told = json_get_bool(state, "refusal_told", false);
    /* A record that does not say: its spares are let alone. */
    incident->spares_settled = json_get_bool(state, "spares_settled", incident->spares.count > 0);
    names_parse(&incident->nodes_before, json_get(state, "nodes_before"));
    names_parse(&incident->stuck_told, json_get(state, "stuck_told"));
    names_parse(&incident->accused_later, json_get(state, "accused_later"));
    names_parse(&incident->silent_later, json_get(state, "silent_later"));
    incident->cleared_ns = json_get_int(state, "cleared_ns", 0);
    incident->corroborated = json_get_bool(state, "corroborated", false);
    incident->repeats = json_get_int(state, "repeats", 0);
    incident->step_at_fault = json_get_int(state, "step_at_fault", JOB_NONE);
    incident->attempt_before = json_get_int(state, "attempt_before", JOB_NONE);
    incident->restarts_before = json_get_int(state, "restarts_before", -1);
    get_text(state, "uid_before", incident->uid_before, sizeof incident->uid_before);
    incident->baseline_ms = json_get_number(state, "baseline_ms", NAN);
    incident->restart_started_ns = json_get_int(state, "restart_started_ns", 0);
    incident->nodes_spent_ns = json_get_int(state, "nodes_spent_ns", 0);
    incident->spent_rack = json_get_bool(state, "spent_rack", false);
    incident->timeline_seq = json_get_int(state, "timeline_seq", 0);
    incident->decision_seq = json_get_int(state, "decision_seq", 0);
    const struct json *back = json_first(json_get(state, "back"));
    for (int i = 0; i < BACK_STAGE_COUNT && back != NULL; i++, back = json_next(back))
        incident->back_ns[i] = json_int(back, 0);
    get_actions(state, incident);
}

static void get_cost(const struct json *cost, struct incident_cost *ret)
{
    ret->steps_lost = json_get_int(cost, "steps_lost", -1);
    ret->gpu_hours = json_get_number(cost, "gpu_hours", 0);
    ret->loss_gpu_hours = json_get_number(cost, "loss_gpu_hours", 0);
    ret->restart_gpu_hours = json_get_number(cost, "restart_gpu_hours", 0);
}

static void get_texts(const struct json *record, struct incident *incident)
{
    get_text(record, "job", incident->job, sizeof incident->job);
    get_text(record, "domain", incident->domain, sizeof incident->domain);
    get_text(record, "source", incident->source, sizeof incident->source);
    get_text(record, "rule", incident->rule, sizeof incident->rule);
    get_text(record, "policy", incident->policy, sizeof incident->policy);
    get_text(record, "policy_hash", incident->policy_hash, sizeof incident->policy_hash);
    get_text(record, "plan", incident->plan.name, sizeof incident->plan.name);
    get_text(record, "merged_into", incident->merged_into, sizeof incident->merged_into);
    get_text(record, "approved_by", incident->approved_by, sizeof incident->approved_by);
    get_text(record, "acked_by", incident->acked_by, sizeof incident->acked_by);
    get_text(record, "fenced_by", incident->fenced_by, sizeof incident->fenced_by);
    get_text(record, "waiting_for", incident->waiting_for, sizeof incident->waiting_for);
}

enum status incident_parse(const struct json *record, struct incident **ret_incident,
                           struct error *reterr)
{
    int64_t number = json_get_int(record, "number", 0);
    enum phase phase;
    enum incident_status status;
    if (number < 1)
        return error_set(reterr, ERR_INVALID, "incident record without a number");
    if (!phase_parse(json_get_string(record, "phase", ""), &phase))
        return error_set(reterr, ERR_INVALID, "INC-%lld: unknown phase '%s'", (long long)number,
                         json_get_string(record, "phase", ""));
    if (!incident_status_parse(json_get_string(record, "status", ""), &status))
        return error_set(reterr, ERR_INVALID, "INC-%lld: unknown status '%s'", (long long)number,
                         json_get_string(record, "status", ""));
    AUTO(incident_free) struct incident *incident = incident_new(number);
    fsm_restore(incident, phase, status);
    if (!verdict_kind_parse(json_get_string(record, "kind", ""), &incident->kind) ||
        !scope_parse(json_get_string(record, "scope", ""), &incident->scope))
        return error_set(reterr, ERR_INVALID, "%s: unknown kind or scope", incident->ref);
    if (!cause_parse(json_get_string(record, "cause", ""), &incident->cause))
        incident->cause = CAUSE_UNKNOWN;
    if (!mode_parse(json_get_string(record, "mode", ""), &incident->mode))
        incident->mode = MODE_OBSERVE;
    incident->version = json_get_int(record, "version", 0);
    incident->severity = (int)json_get_int(record, "severity", 3);
    incident->observer_suspect = json_get_bool(record, "observer_suspect", false);
    incident->deadline_ns = json_get_int(record, "deadline_ns", 0);
    get_texts(record, incident);
    get_times(json_get(record, "times"), &incident->times);
    get_cost(json_get(record, "cost"), &incident->cost);
    get_state(record, incident);
    get_ranks(record, incident);
    *ret_incident = TAKE(incident);
    return OK;
}
