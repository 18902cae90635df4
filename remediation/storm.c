/* Suspecting the observer: hard accusations from one source against 40 % of the nodes in three or
 * more racks within a minute, while the jobs on those nodes step on, say more of the source than of
 * the nodes.
 */
#include "remediation/core_state.h"

#include <stdio.h>
#include <string.h>

/* A reporter without a name may be any of the named ones. */
static bool counts_for(const char *accuser, const char *source)
{
    return strcmp(accuser, source) == 0 || strcmp(accuser, REMEDIATION_SOURCE_UNNAMED) == 0 ||
           strcmp(source, REMEDIATION_SOURCE_UNNAMED) == 0;
}

static bool is_old(const struct remediation *core, const struct accusation *accusation)
{
    return core->now_ns - accusation->time_ns > STORM_WINDOW_NS;
}

static void forget_old(struct remediation *core)
{
    size_t kept = 0;
    for (size_t i = 0; i < core->accusation_count; i++)
        if (!is_old(core, &core->accusations[i]))
            core->accusations[kept++] = core->accusations[i];
    core->accusation_count = kept;
}

static struct accusation *find(struct remediation *core, const char *source, const char *node)
{
    for (size_t i = 0; i < core->accusation_count; i++)
        if (strcmp(core->accusations[i].node, node) == 0 &&
            strcmp(core->accusations[i].source, source) == 0)
            return &core->accusations[i];
    return NULL;
}

static void note(struct remediation *core, const char *source, const char *job, const char *node,
                 const char *rack, int64_t time_ns)
{
    struct accusation *entry = find(core, source, node);
    if (entry == NULL) {
        core->accusations = array_grow(core->accusations, core->accusation_count,
                                       &core->accusation_capacity, sizeof *core->accusations);
        entry = &core->accusations[core->accusation_count++];
        *entry = (struct accusation){0};
        text_copy(entry->node, sizeof entry->node, node);
        text_copy(entry->source, sizeof entry->source, source);
        text_copy(entry->job, sizeof entry->job, job);
        text_copy(entry->rack, sizeof entry->rack, rack);
    }
    entry->time_ns = time_ns;
}

void storm_note(struct remediation *core, const struct job *job, const struct verdict *verdict,
                const char *source)
{
    forget_old(core);
    for (size_t i = 0; i < verdict->node_count; i++)
        note(core, source, job->name, verdict->nodes[i],
             core_rack_of(core, job->name, verdict->nodes[i]), core->now_ns);
}

void storm_recall(struct remediation *core, const struct incident *incident)
{
    if (incident_has_ended(incident) || !incident_is_hard(incident) || incident->corroborated ||
        incident->observer_suspect)
        return;
    for (size_t i = 0; i < incident->node_count; i++)
        note(core, incident->source, incident->job, incident->nodes[i].name,
             incident->nodes[i].rack, incident->times.detected_ns);
}

int64_t storm_last_accusation(const struct remediation *core, const char *source)
{
    int64_t last_ns = 0;
    for (size_t i = 0; i < core->accusation_count; i++)
        if (counts_for(core->accusations[i].source, source) &&
            core->accusations[i].time_ns > last_ns)
            last_ns = core->accusations[i].time_ns;
    return last_ns;
}

struct incident *storm_incident(const struct remediation *core, const char *source)
{
    for (size_t i = 0; i < core->incident_count; i++) {
        struct incident *incident = core->incidents[i];
        bool is_open = incident->phase == PHASE_ESCALATED ? incident->status == INCIDENT_OPEN
                                                          : !incident_has_ended(incident);
        if (incident->observer_suspect && is_open && counts_for(source, incident->source))
            return incident;
    }
    return NULL;
}

/* The job made a step after the accusation: a dead node could not have let it. */
static bool is_contradicted(const struct remediation *core, const struct accusation *accusation)
{
    const struct job_state *job = core_find_job(core, accusation->job);
    return job != NULL && job->progress_known && job->advanced_ns > accusation->time_ns &&
           !core_job_stands_still(core, accusation->job);
}

struct storm {
    struct names nodes; /* accused and contradicted */
    size_t population;  /* trays of the accused jobs */
    struct names racks, jobs;
};

static struct storm measure(const struct remediation *core, const char *source)
{
    struct storm storm = {0};
    for (size_t i = 0; i < core->accusation_count; i++) {
        const struct accusation *accusation = &core->accusations[i];
        if (!counts_for(accusation->source, source) || is_old(core, accusation) ||
            !is_contradicted(core, accusation))
            continue;
        names_add_new(&storm.nodes, accusation->node);
        names_add_new(&storm.racks, accusation->rack);
        if (names_add_new(&storm.jobs, accusation->job)) {
            struct names nodes = {0};
            core_job_nodes(core, accusation->job, &nodes);
            storm.population += nodes.count;
            names_done(&nodes);
        }
    }
    return storm;
}

/* The single accusations go into the one incident, whatever job they were about. */
static void fold_single_ones(struct remediation *core, struct incident *observer)
{
    for (size_t i = 0; i < core->incident_count; i++) {
        struct incident *other = core->incidents[i];
        if (other == observer || incident_has_ended(other) || !incident_is_hard(other) ||
            other->corroborated || other->observer_suspect || incident_has_acted(other) ||
            !counts_for(other->source, observer->source))
            continue;
        fold_merge(core, other, observer);
    }
}

static void open_observer(struct remediation *core, const char *source, const struct storm *storm)
{
    struct incident *incident = core_open_incident(core);
    incident->kind = VERDICT_FAULT;
    incident->scope = SCOPE_JOB;
    incident->cause = CAUSE_UNKNOWN;
    incident->observer_suspect = true;
    incident->severity = 0;
    text_copy(incident->source, sizeof incident->source, source);
    text_copy(incident->job, sizeof incident->job, storm->jobs.items[0]);
    snprintf(incident->domain, sizeof incident->domain, "observer %s", source);
    incident->times.fault_started_ns = core->now_ns;
    for (size_t i = 0; i < core->accusation_count; i++)
        if (counts_for(core->accusations[i].source, source))
            incident_add_node(incident, core->accusations[i].node, core->accusations[i].rack);
    core->breaker_open = true;
    snprintf(
        core->breaker_reason, sizeof core->breaker_reason,
        "source '%s' accused %zu of %zu nodes in %zu racks within a minute while the job steps on",
        source, storm->nodes.count, storm->population, storm->racks.count);
    record_control(core, "breaker_open", "broomd", core->breaker_reason);
    record_timeline(core, incident, "observer_suspect", "broomd",
                    "Observer suspect: %s; nothing is done and the breaker is open until a person "
                    "closes it",
                    core->breaker_reason);
    fold_single_ones(core, incident);
    look_dispatch(core, incident, EVENT_OBSERVER_SUSPECTED, core->breaker_reason);
    look_wait_for(incident,
                  "a person to say whether source '%s' can be trusted: close the breaker to "
                  "judge its accusations one by one, decline to drop them",
                  source);
    act_tell(core, incident, core->breaker_reason);
}

void storm_judge(struct remediation *core)
{
    forget_old(core);
    for (size_t i = 0; i < core->accusation_count; i++) {
        const char *source = core->accusations[i].source;
        bool judged = storm_incident(core, source) != NULL;
        for (size_t j = 0; j < i && !judged; j++)
            judged = strcmp(core->accusations[j].source, source) == 0;
        if (judged)
            continue;
        struct storm storm = measure(core, source);
        if (storm.racks.count >= STORM_RACKS_MIN && storm.nodes.count > 0 &&
            storm.nodes.count >= storm.population * STORM_PERCENT / 100)
            open_observer(core, source, &storm);
        names_done(&storm.nodes);
        names_done(&storm.racks);
        names_done(&storm.jobs);
    }
}
