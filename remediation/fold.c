/* Verdicts -> incidents, one for each fault domain. A rack counts once; what stops because of it is
 * a victim; a wider finding takes the narrower ones over; what is older than its incident is
 * recorded only.
 */
#include "remediation/core_state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SAME_INSTANT_NS (2 * SECOND_NS) /* trays of one rack that stop together */
enum { RACK_TRAYS_MIN = 3 };

static bool kind_is_hard(enum verdict_kind kind)
{
    return kind == VERDICT_CRASH || kind == VERDICT_HANG || kind == VERDICT_FAULT;
}

static bool is_mitigated(const struct incident *incident)
{
    return incident->status == INCIDENT_MITIGATED;
}

/* May still take verdicts up: open, or escalated and not yet closed by a person. */
static bool takes_verdicts(const struct incident *incident)
{
    if (incident->observer_suspect)
        return false;
    if (incident->phase == PHASE_ESCALATED)
        return incident->status == INCIDENT_OPEN || incident->status == INCIDENT_MITIGATED;
    return !incident_has_ended(incident);
}

/* --- how a verdict lies to an incident --- */

enum relation { RELATION_NONE = 0, RELATION_SAME, RELATION_INSIDE, RELATION_WIDER };

static bool shares_node(const struct incident *incident, const struct verdict *verdict)
{
    for (size_t i = 0; i < verdict->node_count; i++)
        if (incident_find_node(incident, verdict->nodes[i]) != NULL)
            return true;
    return false;
}

static bool shares_rack(const struct remediation *core, const struct incident *incident,
                        const struct verdict *verdict)
{
    for (size_t i = 0; i < verdict->node_count; i++) {
        const char *rack = core_rack_of(core, incident->job, verdict->nodes[i]);
        for (size_t j = 0; j < incident->node_count && rack[0] != '\0'; j++)
            if (strcmp(incident->nodes[j].rack, rack) == 0)
                return true;
    }
    return false;
}

static bool lies_in_rack(const struct remediation *core, const char *job,
                         const struct verdict *verdict, const char *rack)
{
    for (size_t i = 0; i < verdict->node_count; i++)
        if (strcmp(core_rack_of(core, job, verdict->nodes[i]), rack) != 0)
            return false;
    return verdict->node_count > 0;
}

static enum relation relation_of(const struct remediation *core, const struct incident *incident,
                                 const struct verdict *verdict)
{
    bool both_hard = incident_is_hard(incident) && kind_is_hard(verdict->kind);
    bool same_place = incident->scope == verdict->scope &&
                      strcmp(incident->domain, verdict->id) == 0;
    if (verdict->node_count == 0) {
        if (same_place && (incident->kind == verdict->kind || both_hard))
            return RELATION_SAME;
        /* A job that stands still is no second fault beside the one that stopped it. */
        bool stands = both_hard && verdict->scope == SCOPE_JOB && !is_mitigated(incident);
        return stands ? RELATION_INSIDE : RELATION_NONE;
    }
    if (incident->node_count == 0)
        return both_hard && incident->scope == SCOPE_JOB && !is_mitigated(incident) ? RELATION_SAME
                                                                                    : RELATION_NONE;
    if (verdict->scope == SCOPE_RACK && incident->scope != SCOPE_RACK)
        return shares_rack(core, incident, verdict) ? RELATION_WIDER : RELATION_NONE;
    if (incident->scope == SCOPE_RACK && verdict->scope != SCOPE_RACK &&
        lies_in_rack(core, incident->job, verdict, incident->domain))
        return RELATION_INSIDE;
    return shares_node(incident, verdict) ? RELATION_SAME : RELATION_NONE;
}

/* --- taking a verdict in --- */

static void take_nodes(struct remediation *core, struct incident *incident,
                       const struct verdict *verdict)
{
    for (size_t i = 0; i < verdict->node_count; i++)
        incident_add_node(incident, verdict->nodes[i],
                          core_rack_of(core, incident->job, verdict->nodes[i]));
    for (size_t i = 0; i < verdict->rank_count; i++)
        incident_add_rank(incident, verdict->ranks[i]);
    for (size_t i = 0; i < verdict->victim_count; i++)
        incident_add_victim(incident, verdict->victims[i]);
}

static void take_victims(struct incident *incident, const struct verdict *verdict)
{
    for (size_t i = 0; i < verdict->rank_count; i++)
        incident_add_victim(incident, verdict->ranks[i]);
    for (size_t i = 0; i < verdict->victim_count; i++)
        incident_add_victim(incident, verdict->victims[i]);
}

static void take_figures(struct incident *incident, const struct verdict *verdict)
{
    incident->kind = verdict->kind;
    incident->cause = verdict->cause;
    incident->evict = verdict->evict;
    incident->slowdown = verdict->slowdown;
    incident->gain = verdict->gain;
    incident->confidence = verdict->confidence;
}

static void take_place(struct incident *incident, const struct verdict *verdict)
{
    incident->scope = verdict->scope;
    text_copy(incident->domain, sizeof incident->domain, verdict->id);
}

static int64_t count_repeats(const struct remediation *core, const struct incident *incident)
{
    int64_t count = 1;
    for (size_t i = 0; i < core->incident_count; i++) {
        const struct incident *other = core->incidents[i];
        bool counts = other != incident && incident_has_ended(other) &&
                      other->status != INCIDENT_MERGED && other->status != INCIDENT_DECLINED &&
                      core->now_ns - other->times.detected_ns <= MEMORY_NS;
        bool shared = false;
        for (size_t j = 0; counts && !shared && j < incident->node_count; j++)
            shared = incident_find_node(other, incident->nodes[j].name) != NULL;
        count += shared ? 1 : 0;
    }
    return count;
}

static int severity_of(const struct incident *incident)
{
    if (incident_is_hard(incident))
        return incident->scope == SCOPE_RACK ? 1 : 2;
    return incident->kind == VERDICT_SLOW ? 3 : 4;
}

static struct policy_choice choose(const struct remediation *core, const struct incident *incident)
{
    const struct job_state *job = core_find_job(core, incident->job);
    struct policy_case item = {
        .kind = incident->kind,
        .scope = incident->scope,
        .cause = incident->cause,
        .evict = incident->evict,
        .slowdown = incident->slowdown,
        .gain = incident->gain,
        .confidence = incident->confidence,
        .repeats = incident->repeats,
        .job = incident->job,
        .job_phase = job != NULL && job->progress_known ? job->progress.phase : "",
    };
    return policy_choose(core->policies, &item);
}

bool fold_choose_rule(struct remediation *core, struct incident *incident)
{
    struct policy_choice choice = choose(core, incident);
    incident->dirty = true;
    incident->step = 0;
    incident->step_since_ns = core->now_ns;
    if (choice.policy == NULL) {
        incident->rule[0] = incident->policy[0] = incident->policy_hash[0] = '\0';
        incident->plan = (struct plan){.name = "record"};
        incident->mode = MODE_OBSERVE;
        incident->for_ns = 0;
        incident->severity = severity_of(incident);
        return true;
    }
    text_copy(incident->rule, sizeof incident->rule, choice.rule->name);
    text_copy(incident->policy, sizeof incident->policy, choice.policy->name);
    text_copy(incident->policy_hash, sizeof incident->policy_hash, choice.policy->hash);
    incident->plan = *choice.plan;
    incident->mode = policy_mode(core->daemon_mode, choice.policy, choice.rule);
    incident->timers = choice.policy->timers;
    incident->for_ns = choice.rule->for_ns;
    incident->severity = choice.rule->severity == SEVERITY_UNSET ? severity_of(incident)
                                                                 : choice.rule->severity;
    return !choice.unless_holds;
}

static void note_job(const struct remediation *core, const struct job *job,
                     struct incident *incident)
{
    const struct job_state *state = core_find_job(core, job->name);
    text_copy(incident->job, sizeof incident->job, job->name);
    incident->world_size = job->world_size;
    incident->workload_json = job->workload_json != NULL ? xstrdup(job->workload_json) : NULL;
    int32_t most = 0;
    AUTO_FREE int32_t *ranks = xcalloc((size_t)job->tray_count + 1, sizeof *ranks);
    for (int32_t i = 0; i < job->world_size; i++)
        if (job->ranks[i].tray != JOB_NONE && ++ranks[job->ranks[i].tray] > most)
            most = ranks[job->ranks[i].tray];
    incident->gpus_per_node = most;
    if (state != NULL && state->progress_known) {
        incident->baseline_ms = state->progress.baseline_ms;
        incident->step_at_fault = state->progress.step;
    }
}

/* Onset: for a stopped job the last step that was finished, for a slow one the estimated first
 * step. */
static int64_t fault_started(const struct remediation *core, const struct incident *incident,
                             const struct verdict *verdict)
{
    const struct job_state *job = core_find_job(core, incident->job);
    int64_t onset_ns = verdict->since_ns > 0 ? verdict->since_ns : verdict->time_ns;
    if (job == NULL || !job->progress_known)
        return onset_ns;
    bool stopped = verdict->kind == VERDICT_CRASH || verdict->kind == VERDICT_HANG;
    if (stopped && job->progress.step_time_ns > 0 && job->progress.step_time_ns < onset_ns)
        return job->progress.step_time_ns;
    if (verdict->kind == VERDICT_SLOW && verdict->step > verdict->since_step &&
        !isnan(job->progress.step_ms))
        return onset_ns - (int64_t)((double)(verdict->step - verdict->since_step) *
                                    job->progress.step_ms * 1e6);
    return onset_ns;
}

static void say_opened(struct remediation *core, struct incident *incident)
{
    record_timeline(core, incident, "opened", "broomd",
                    "%s of %s %s in job %s, reported by %s; rule %s, plan %s, mode %s",
                    verdict_kind_name(incident->kind), scope_name(incident->scope),
                    incident->domain, incident->job, incident->source,
                    incident->rule[0] != '\0' ? incident->rule : "none", incident->plan.name,
                    mode_name(incident->mode));
    if (incident->repeats >= 3)
        record_timeline(core, incident, "repeat_offender", "broomd",
                        "This is incident %lld of the same hardware in seven days",
                        (long long)incident->repeats);
}

static struct incident *open_incident(struct remediation *core, const struct job *job,
                                      const struct verdict *verdict, const char *source)
{
    struct incident *incident = core_open_incident(core);
    note_job(core, job, incident);
    text_copy(incident->source, sizeof incident->source, source);
    take_place(incident, verdict);
    take_figures(incident, verdict);
    take_nodes(core, incident, verdict);
    incident->times.fault_started_ns = fault_started(core, incident, verdict);
    incident->repeats = count_repeats(core, incident);
    fold_choose_rule(core, incident); /* asked again when it has settled */
    incident->deadline_ns = core->now_ns + incident->for_ns + incident->timers.watch_ns;
    say_opened(core, incident);
    return incident;
}

/* --- joining, widening, merging --- */

void fold_merge(struct remediation *core, struct incident *from, struct incident *into)
{
    for (size_t i = 0; i < from->node_count; i++) {
        struct incident_node *node = incident_add_node(into, from->nodes[i].name,
                                                       from->nodes[i].rack);
        node->was_cordoned = node->was_cordoned || from->nodes[i].was_cordoned;
        node->ours = node->ours || from->nodes[i].ours;
        from->nodes[i].ours = false;
        if (node->fenced_by == NULL && from->nodes[i].fenced_by != NULL) {
            node->fenced_by = TAKE(from->nodes[i].fenced_by);
            node->fenced_ns = from->nodes[i].fenced_ns;
            node->seen_down = from->nodes[i].seen_down;
        }
    }
    for (size_t i = 0; i < from->rank_count; i++)
        incident_add_rank(into, from->ranks[i]);
    for (size_t i = 0; i < from->victim_count; i++)
        incident_add_victim(into, from->victims[i]);
    if (from->times.fault_started_ns < into->times.fault_started_ns)
        into->times.fault_started_ns = from->times.fault_started_ns;
    if (into->scope == SCOPE_RACK)
        from->nodes_spent_ns = 0; /* the rack spends one rack, and its trays nothing */
    text_copy(from->merged_into, sizeof from->merged_into, into->ref);
    record_timeline(core, from, "merged", "broomd", "Part of %s: one fault, one incident",
                    into->ref);
    record_timeline(core, into, "took_over", "broomd", "%s (%s %s) is part of this", from->ref,
                    scope_name(from->scope), from->domain);
    act_run(core, from, DO_RELEASE_SPARES);
    look_dispatch(core, from, EVENT_MERGED, "one fault, one incident");
}

/* The plan that was chosen no longer fits: choose again, and what was approved was something else.
 */
static void choose_anew(struct remediation *core, struct incident *incident)
{
    incident->approved_by[0] = '\0';
    incident->round++;
    incident->repeats = count_repeats(core, incident);
    fold_choose_rule(core, incident);
}

/* Everything else that is open inside the wider domain belongs to it now. */
static void absorb_inside(struct remediation *core, struct incident *wide,
                          const struct verdict *verdict)
{
    for (size_t i = 0; i < core->incident_count; i++) {
        struct incident *other = core->incidents[i];
        if (other == wide || incident_has_ended(other) || other->observer_suspect ||
            strcmp(other->job, wide->job) != 0 || is_mitigated(other) ||
            incident_in_restart(other) || incident_running_action(other) != NULL)
            continue;
        if (relation_of(core, other, verdict) == RELATION_WIDER)
            fold_merge(core, other, wide);
    }
}

static void widen(struct remediation *core, struct incident *incident,
                  const struct verdict *verdict)
{
    record_timeline(core, incident, "widened", "broomd", "From %s %s to %s %s",
                    scope_name(incident->scope), incident->domain, scope_name(verdict->scope),
                    verdict->id);
    take_place(incident, verdict);
    take_figures(incident, verdict);
    take_nodes(core, incident, verdict);
    choose_anew(core, incident);
    absorb_inside(core, incident, verdict);
}

/* The job stood still for an unknown reason; now the reason is known and they are its victims. */
static void blame_nobody(struct incident *incident)
{
    while (incident->rank_count > 0) {
        int32_t rank = incident->ranks[--incident->rank_count];
        incident_add_victim(incident, rank);
    }
}

static void join(struct remediation *core, struct incident *incident, const struct verdict *verdict,
                 enum relation relation)
{
    bool acted = incident_has_acted(incident) || incident_has_ended(incident);
    bool relocalised = incident->cleared_ns != 0 && !acted;
    bool harder = kind_is_hard(verdict->kind) && !incident_is_hard(incident) && !acted;
    bool located = incident->node_count == 0 && verdict->node_count > 0 && !acted;
    incident->cleared_ns = acted ? incident->cleared_ns : 0;
    incident->restored_ns = 0;
    incident->dirty = true;
    if (located)
        blame_nobody(incident);
    if (relation == RELATION_SAME && !acted)
        take_nodes(core, incident, verdict);
    else
        take_victims(incident, verdict);
    if (relocalised || harder || located) {
        record_timeline(core, incident, "relocated", "broomd", "Now %s of %s %s (was %s of %s %s)",
                        verdict_kind_name(verdict->kind), scope_name(verdict->scope), verdict->id,
                        verdict_kind_name(incident->kind), scope_name(incident->scope),
                        incident->domain);
        take_place(incident, verdict);
        take_figures(incident, verdict);
        choose_anew(core, incident);
    } else if (!acted && verdict->kind == incident->kind && relation == RELATION_SAME) {
        take_figures(incident, verdict);
    }
    look_dispatch(core, incident, EVENT_ACCUSED, "a verdict on the same domain");
}

static size_t job_trays_in_rack(const struct remediation *core, const char *job, const char *rack)
{
    struct names nodes = {0};
    size_t count = 0;
    core_job_nodes(core, job, &nodes);
    for (size_t i = 0; i < nodes.count; i++)
        count += strcmp(core_rack_of(core, job, nodes.items[i]), rack) == 0 ? 1 : 0;
    names_done(&nodes);
    return count;
}

/* Half of a rack's trays are no coincidence: the rack is the fault domain. */
static void widen_when_rack(struct remediation *core, struct incident *incident,
                            const struct verdict *verdict)
{
    const char *rack = incident->nodes[0].rack;
    size_t trays = job_trays_in_rack(core, incident->job, rack);
    if (incident->scope == SCOPE_RACK || rack[0] == '\0' || incident->node_count < RACK_TRAYS_MIN ||
        incident->node_count * 2 < trays)
        return;
    struct verdict wide = verdict_copy(verdict);
    wide.scope = SCOPE_RACK;
    text_copy(wide.id, sizeof wide.id, rack);
    widen(core, incident, &wide);
    verdict_done(&wide);
}

/* Another tray stops while the first suspicion settles: part of the same fault, or its victim?
 * Returns false when it is neither. */
static bool join_cascade(struct remediation *core, struct incident *incident,
                         const struct verdict *verdict)
{
    bool settling = incident->phase == PHASE_SUSPECTED && incident_is_hard(incident);
    int64_t apart_ns = core->now_ns - incident->times.detected_ns;
    if (!settling || !kind_is_hard(verdict->kind) || apart_ns > CASCADE_NS ||
        incident->node_count == 0)
        return false;
    bool near = shares_rack(core, incident, verdict);
    bool together = verdict->kind == VERDICT_FAULT ||
                    (verdict->kind == VERDICT_CRASH && apart_ns <= SAME_INSTANT_NS);
    if (near && together) {
        take_nodes(core, incident, verdict);
        incident->evict = incident->evict || verdict->evict;
        widen_when_rack(core, incident, verdict);
    } else if (verdict->kind == VERDICT_FAULT) {
        return false;
    } else {
        take_victims(incident, verdict);
    }
    incident->dirty = true;
    return true;
}

/* A hard accusation that arrives while we restart: old news, or to be judged when we are done.
 * Until the job makes its first new step its ranks are silent, and silence says nothing of their
 * nodes. */
static bool join_restart(struct remediation *core, struct incident *incident,
                         const struct verdict *verdict)
{
    bool related = relation_of(core, incident, verdict) != RELATION_NONE;
    bool old = verdict->time_ns <= incident->restart_started_ns;
    bool silence = verdict->kind != VERDICT_FAULT && incident->phase != PHASE_VERIFYING;
    if (!incident_in_restart(incident) || !kind_is_hard(verdict->kind) ||
        !(related || old || silence))
        return false;
    for (size_t i = 0; i < verdict->node_count && !old; i++)
        names_add_new(silence ? &incident->silent_later : &incident->accused_later,
                      verdict->nodes[i]);
    if (old)
        take_victims(incident, verdict);
    incident->dirty = true;
    return true;
}

/* A rack verdict over an incident that has acted already: the rack gets its own incident, which
 * takes the narrower one over together with its cordons. */
static struct incident *outgrow(struct remediation *core, struct incident *incident,
                                const struct job *job, const struct verdict *verdict,
                                const char *source)
{
    if (is_mitigated(incident) || incident->phase == PHASE_ESCALATED)
        return NULL;
    if (incident_in_restart(incident) || incident_running_action(incident) != NULL) {
        for (size_t i = 0; i < verdict->node_count; i++)
            names_add_new(&incident->accused_later, verdict->nodes[i]);
        incident->dirty = true;
        return incident;
    }
    struct incident *wide = open_incident(core, job, verdict, source);
    absorb_inside(core, wide, verdict);
    return wide;
}

/* The incident that takes this verdict up, or NULL when it is a fault of its own. */
static struct incident *fold_into(struct remediation *core, const struct job *job,
                                  const struct verdict *verdict, const char *source)
{
    size_t count = core->incident_count;
    for (size_t i = 0; i < count; i++) {
        struct incident *incident = core->incidents[i];
        if (!takes_verdicts(incident) || strcmp(incident->job, job->name) != 0)
            continue;
        if (join_restart(core, incident, verdict))
            return incident;
        enum relation relation = relation_of(core, incident, verdict);
        if (relation == RELATION_WIDER) {
            if (incident_has_acted(incident) || incident_has_ended(incident)) {
                struct incident *taker = outgrow(core, incident, job, verdict, source);
                if (taker != NULL)
                    return taker;
                continue;
            }
            widen(core, incident, verdict);
            return incident;
        }
        if (relation != RELATION_NONE) {
            join(core, incident, verdict, relation);
            return incident;
        }
        if (join_cascade(core, incident, verdict))
            return incident;
    }
    return NULL;
}

/* --- verdicts that change nothing --- */

/* Older than the end of an incident of the same domain. */
static const struct incident *stale_for(const struct remediation *core, const char *job,
                                        const struct verdict *verdict)
{
    for (size_t i = 0; i < core->incident_count; i++) {
        const struct incident *ended = core->incidents[i];
        if (!incident_has_ended(ended) || ended->times.closed_ns == 0 ||
            verdict->time_ns > ended->times.closed_ns || strcmp(ended->job, job) != 0 ||
            ended->status == INCIDENT_MERGED)
            continue;
        enum relation relation = relation_of(core, ended, verdict);
        if (relation == RELATION_SAME || relation == RELATION_INSIDE)
            return ended;
    }
    return NULL;
}

static bool clear_concerns(const struct incident *incident, const struct verdict *verdict)
{
    bool same_kind = incident->kind == verdict->of_kind ||
                     (incident_is_hard(incident) && kind_is_hard(verdict->of_kind));
    bool same_place = incident->scope == verdict->scope &&
                      strcmp(incident->domain, verdict->id) == 0;
    bool only_node = incident->node_count == 1 && verdict->node_count == 1 &&
                     strcmp(incident->nodes[0].name, verdict->nodes[0]) == 0;
    return same_kind && (same_place || only_node);
}

/* A recovery counts also while the accuser is the suspect: what has recovered is not judged again
 * when a person closes the breaker. */
static struct incident *clear_observed(struct remediation *core, const struct verdict *verdict)
{
    struct incident *found = NULL;
    for (size_t i = 0; i < core->incident_count; i++) {
        struct incident *observer = core->incidents[i];
        if (!observer->observer_suspect || incident_has_ended(observer))
            continue;
        for (size_t j = 0; j < verdict->node_count; j++) {
            if (!incident_remove_node(observer, verdict->nodes[j]))
                continue;
            record_timeline(core, observer, "cleared", observer->source, "%s has recovered",
                            verdict->nodes[j]);
            found = observer;
        }
    }
    return found;
}

static struct incident *fold_clear(struct remediation *core, const char *job,
                                   const struct verdict *verdict)
{
    for (size_t i = 0; i < core->incident_count; i++) {
        struct incident *incident = core->incidents[i];
        if (incident_has_ended(incident) || incident->observer_suspect ||
            strcmp(incident->job, job) != 0 || !clear_concerns(incident, verdict))
            continue;
        incident->cleared_ns = core->now_ns;
        record_timeline(core, incident, "cleared", incident->source,
                        "The %s of %s %s holds no more", verdict_kind_name(verdict->of_kind),
                        scope_name(verdict->scope), verdict->id);
        return incident;
    }
    return kind_is_hard(verdict->of_kind) ? clear_observed(core, verdict) : NULL;
}

static struct incident *fold_into_observer(struct remediation *core, const struct job *job,
                                           const struct verdict *verdict, const char *source)
{
    struct incident *observer = storm_incident(core, source);
    if (observer == NULL || core_job_stands_still(core, job->name))
        return NULL;
    take_nodes(core, observer, verdict);
    observer->dirty = true;
    return observer;
}

static int64_t open_count(const struct remediation *core)
{
    int64_t count = 0;
    for (size_t i = 0; i < core->incident_count; i++)
        count += incident_has_ended(core->incidents[i]) ? 0 : 1;
    return count;
}

static struct incident *fold_accusation(struct remediation *core, const struct job *job,
                                        const struct verdict *verdict, const char *source)
{
    struct incident *incident = NULL;
    if (kind_is_hard(verdict->kind)) {
        storm_note(core, job, verdict, source);
        incident = fold_into_observer(core, job, verdict, source);
    }
    if (incident == NULL)
        incident = fold_into(core, job, verdict, source);
    if (incident == NULL && open_count(core) < OPEN_INCIDENTS_MAX)
        incident = open_incident(core, job, verdict, source);
    return incident;
}

void fold_verdict(struct remediation *core, const struct job *job, const struct verdict *verdict,
                  const char *source)
{
    struct incident *incident = NULL;
    const struct incident *stale = NULL;
    core->verdicts++;
    if (verdict->kind == VERDICT_CLEAR)
        incident = fold_clear(core, job->name, verdict);
    else if (verdict->kind != VERDICT_INFO)
        stale = stale_for(core, job->name, verdict);
    if (stale != NULL) {
        core->stale_verdicts++;
        record_verdict(core, job->name, verdict, source, stale->ref, "stale: recorded only");
        return;
    }
    if (verdict->kind != VERDICT_CLEAR && verdict->kind != VERDICT_INFO)
        incident = fold_accusation(core, job, verdict, source);
    record_verdict(core, job->name, verdict, source, incident != NULL ? incident->ref : NULL, NULL);
}

/* Not asked whether it is stale: it stands now, because somebody says so now. */
static struct incident *accuse(struct remediation *core, const char *job, struct verdict *verdict,
                               const char *source, const char *note)
{
    const struct job_state *state = core_find_job(core, job);
    AUTO(job_free)
    struct job *unknown = state == NULL || state->job == NULL ? job_new(job, 1) : NULL;
    verdict->cause = CAUSE_UNKNOWN;
    verdict->slowdown = verdict->confidence = 1;
    verdict->step = verdict->since_step = JOB_NONE;
    verdict->time_ns = core->now_ns;
    struct incident *incident = fold_accusation(core, unknown != NULL ? unknown : state->job,
                                                verdict, source);
    record_verdict(core, job, verdict, source, incident != NULL ? incident->ref : NULL, note);
    return incident;
}

void fold_accuse_node(struct remediation *core, const char *job, const char *node,
                      const char *source)
{
    struct verdict verdict = {.kind = VERDICT_FAULT, .scope = SCOPE_TRAY, .evict = true};
    text_copy(verdict.id, sizeof verdict.id, node);
    verdict_add_node(&verdict, node);
    (void)accuse(core, job, &verdict, source, "judged again");
    verdict_done(&verdict);
}

struct incident *fold_accuse_job(struct remediation *core, const char *job, const char *source)
{
    struct verdict verdict = {.kind = VERDICT_HANG, .scope = SCOPE_JOB};
    text_copy(verdict.id, sizeof verdict.id, job);
    struct incident *incident = accuse(core, job, &verdict, source, "as the cluster shows it");
    verdict_done(&verdict);
    return incident;
}

void fold_rejudge(struct remediation *core, struct incident *incident)
{
    struct names later = {0}, nodes = {0};
    names_copy(&later, &incident->accused_later);
    /* New steps prove that whoever was silent is there. */
    for (size_t i = 0; incident->status == INCIDENT_OPEN && i < incident->silent_later.count; i++)
        names_add_new(&later, incident->silent_later.items[i]);
    names_done(&incident->accused_later);
    names_done(&incident->silent_later);
    core_job_nodes(core, incident->job, &nodes);
    for (size_t i = 0; i < later.count; i++) {
        bool matters = names_has(&nodes, later.items[i]);
        record_timeline(core, incident, "judged_again", "broomd",
                        "%s was accused while we acted: %s", later.items[i],
                        matters ? "it is judged again now" : "the job has left it, nothing to do");
        if (matters)
            fold_accuse_node(core, incident->job, later.items[i], incident->source);
    }
    names_done(&later);
    names_done(&nodes);
}
