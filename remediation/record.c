/* Every record that the core makes, each with the key that makes a second write of it harmless. */
#include "remediation/core_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct json_writer record_open(struct text *out, const char *type, const char *key,
                                      int64_t now_ns)
{
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_put_string(&writer, "type", type);
    json_put_string(&writer, "key", key);
    json_put_int(&writer, "time_ns", now_ns);
    return writer;
}

static void push(struct remediation *core, struct text *out, struct json_writer *writer,
                 bool spoolable)
{
    json_close(writer);
    effect_push_record(core, out, spoolable);
}

void record_verdict(struct remediation *core, const char *job, const struct verdict *verdict,
                    const char *source, const char *incident_ref, const char *note)
{
    char key[JOB_NAME_BYTES + VERDICT_ID_BYTES + 96];
    struct text out = {0};
    snprintf(key, sizeof key, "verdict/%s/%s/%s/%s/%" PRId64 "/%" PRId64, job,
             verdict_kind_name(verdict->kind), scope_name(verdict->scope), verdict->id,
             verdict->step, verdict->time_ns);
    struct json_writer w = record_open(&out, "verdict", key, core->now_ns);
    json_put_string(&w, "job", job);
    json_put_string(&w, "source", source);
    json_put_string(&w, "incident", incident_ref);
    json_put_string(&w, "note", note);
    json_add_key(&w, "verdict");
    verdict_write(verdict, &w);
    push(core, &out, &w, true);
}

void record_timeline(struct remediation *core, struct incident *incident, const char *kind,
                     const char *actor, const char *format, ...)
{
    char key[64];
    AUTO_TEXT sentence = {0};
    struct text out = {0};
    va_list args;
    va_start(args, format);
    text_addv(&sentence, format, args);
    va_end(args);
    incident->timeline_seq++;
    incident->dirty = true;
    snprintf(key, sizeof key, "timeline/%s/%" PRId64, incident->ref, incident->timeline_seq);
    struct json_writer w = record_open(&out, "timeline", key, core->now_ns);
    json_put_string(&w, "incident", incident->ref);
    json_put_int(&w, "seq", incident->timeline_seq);
    json_put_string(&w, "kind", kind);
    json_put_string(&w, "actor", actor);
    json_put_string(&w, "text", sentence.bytes);
    json_add_key(&w, "details");
    json_open_object(&w);
    json_put_string(&w, "phase", phase_name(incident->phase));
    json_put_string(&w, "status", incident_status_name(incident->status));
    json_close(&w);
    push(core, &out, &w, false);
}

static void put_facts(struct json_writer *w, uint32_t bits)
{
    json_add_key(w, "facts");
    json_open_array(w);
    for (int i = 0; i < FACT_COUNT; i++)
        if (bits >> i & 1u)
            json_add_string(w, fact_name((enum fact)i));
    json_close(w);
}

/* What the decision saw: enough to ask "why" later. */
static void put_values(const struct remediation *core, const struct incident *incident,
                       struct json_writer *w)
{
    const struct job_state *job = core_find_job(core, incident->job);
    const struct view_job *seen = world_view_job(&core->world, incident->job);
    json_add_key(w, "values");
    json_open_object(w);
    json_put_rounded(w, "slowdown", incident->slowdown, 6);
    json_put_rounded(w, "gain", incident->gain, 6);
    json_put_rounded(w, "confidence", incident->confidence, 6);
    json_put_bool(w, "evict", incident->evict);
    json_put_bool(w, "corroborated", incident->corroborated);
    json_put_int(w, "repeats", incident->repeats);
    json_put_rounded(w, "loss_gpu_hours", incident->cost.loss_gpu_hours, 6);
    json_put_rounded(w, "restart_gpu_hours", incident->cost.restart_gpu_hours, 6);
    if (job != NULL && job->progress_known) {
        json_put_int(w, "job_step", job->progress.step);
        json_put_int(w, "job_attempt", job->progress.attempt);
        json_put_rounded(w, "step_ms", job->progress.step_ms, 6);
        json_put_string(w, "job_phase", job->progress.phase);
    }
    json_put_rounded(w, "baseline_ms", incident->baseline_ms, 6);
    if (seen != NULL) {
        json_put_int(w, "job_restarts", seen->restarts);
        json_put_int(w, "job_restarts_max", seen->restarts_max);
    }
    json_put_bool(w, "breaker_open", core->breaker_open);
    json_put_bool(w, "paused", core->paused);
    json_put_time(w, "world_at", core->world.received_ns);
    json_close(w);
}

void record_decision(struct remediation *core, struct incident *incident,
                     const struct transition *transition, enum fsm_event event, bool executed,
                     const char *reason)
{
    char key[64];
    struct text out = {0};
    incident->decision_seq++;
    incident->dirty = true;
    snprintf(key, sizeof key, "decision/%s/%" PRId64, incident->ref, incident->decision_seq);
    struct json_writer w = record_open(&out, "decision", key, core->now_ns);
    json_put_string(&w, "incident", incident->ref);
    json_put_int(&w, "seq", incident->decision_seq);
    json_put_string(&w, "fsm_rule", transition->rule->id);
    json_put_string(&w, "policy_rule", incident->rule[0] != '\0' ? incident->rule : NULL);
    json_put_string(&w, "policy_hash",
                    incident->policy_hash[0] != '\0' ? incident->policy_hash : NULL);
    json_put_string(&w, "event", fsm_event_name(event));
    json_put_string(&w, "command", fsm_command_name(transition->rule->command));
    json_put_string(&w, "phase_from", phase_name(transition->from));
    json_put_string(&w, "phase_to", phase_name(transition->to));
    put_facts(&w, transition->facts);
    put_values(core, incident, &w);
    json_put_string(&w, "mode", mode_name(incident->mode));
    json_put_bool(&w, "executed", executed);
    json_put_string(&w, "reason", reason);
    push(core, &out, &w, false);
}

static void put_names(struct json_writer *w, const char *key, const struct names *names)
{
    json_add_key(w, key);
    names_write(names, w);
}

void record_action(struct remediation *core, const struct incident *incident,
                   const struct incident_action *action, const char *reason)
{
    char key[OPERATION_ID_BYTES + 16];
    struct text out = {0};
    snprintf(key, sizeof key, "action/%s", action->operation_id);
    struct json_writer w = record_open(&out, "action", key, core->now_ns);
    json_put_string(&w, "incident", incident->ref);
    json_put_string(&w, "operation_id", action->operation_id);
    json_put_string(&w, "verb", verb_name(action->verb));
    put_names(&w, "nodes", &action->nodes);
    put_names(&w, "spares", &action->spares);
    json_add_key(&w, "params");
    json_add_raw(&w, view_of(action->params_json != NULL ? action->params_json : "{}"));
    json_put_string(&w, "reason", reason);
    json_put_string(&w, "actuator", core->actuator);
    json_put_string(&w, "mode", mode_name(incident->mode));
    push(core, &out, &w, false);
}

void record_outcome(struct remediation *core, const struct incident *incident,
                    const struct incident_action *action, const char *reason, const char *response)
{
    char key[OPERATION_ID_BYTES + 64];
    struct text out = {0};
    bool ended = action->state == ACTION_ENDED;
    const char *outcome = outcome_name(ended ? action->outcome : OUTCOME_UNKNOWN);
    snprintf(key, sizeof key, "outcome/%s/%s/%" PRId64, action->operation_id, outcome,
             core->now_ns);
    struct json_writer w = record_open(&out, "action_outcome", key, core->now_ns);
    json_put_string(&w, "operation_id", action->operation_id);
    json_put_string(&w, "incident", incident->ref);
    json_put_string(&w, "outcome", outcome);
    json_put_string(&w, "reason", reason);
    json_put_string(&w, "response", response);
    json_put_int(&w, "took_ns", core->now_ns - action->started_ns);
    push(core, &out, &w, false);
}

void record_spare(struct remediation *core, const struct incident *incident, const char *node,
                  const char *state)
{
    char key[320];
    struct text out = {0};
    snprintf(key, sizeof key, "spare/%.200s/%s/%" PRId64 "/%s", node, incident->ref, core->now_ns,
             state);
    struct json_writer w = record_open(&out, "spare", key, core->now_ns);
    json_put_string(&w, "node", node);
    json_put_string(&w, "state", state);
    json_put_string(&w, "job", incident->job);
    json_put_string(&w, "incident", incident->ref);
    push(core, &out, &w, false);
}

void record_control(struct remediation *core, const char *what, const char *actor, const char *text)
{
    char key[96];
    struct text out = {0};
    core->control_seq++;
    snprintf(key, sizeof key, "control/%s/%" PRId64 "/%" PRId64, what, core->now_ns,
             core->control_seq);
    struct json_writer w = record_open(&out, "control", key, core->now_ns);
    json_put_string(&w, "what", what);
    json_put_string(&w, "actor", actor);
    json_put_string(&w, "text", text);
    push(core, &out, &w, false);
}

void record_incident(struct remediation *core, struct incident *incident)
{
    struct text out = {0};
    if (!incident->dirty)
        return;
    incident->dirty = false;
    incident->version++;
    struct json_writer w = json_writer(&out);
    incident_write(incident, core->now_ns, &w);
    effect_push_record(core, &out, false);
}

void record_dirty(struct remediation *core)
{
    for (size_t i = 0; i < core->incident_count; i++)
        record_incident(core, core->incidents[i]);
}
