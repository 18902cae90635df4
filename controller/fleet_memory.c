/* Incidents that ended and were not declined or merged into another are faults that a unit had. */
#include "controller/fleet_memory.h"

static const int64_t MEMORY_NS = INT64_C(28) * 86400 * 1000000000;

static bool counts(const struct incident *incident, int64_t now_ns)
{
    bool hardware = incident->kind == VERDICT_SLOW || incident->kind == VERDICT_HANG ||
                    incident->kind == VERDICT_CRASH || incident->kind == VERDICT_FAULT;

    return hardware && incident_has_ended(incident) && incident->status != INCIDENT_MERGED &&
           incident->status != INCIDENT_DECLINED &&
           now_ns - incident->times.detected_ns <= MEMORY_NS;
}

static void remember(struct history *history, const struct incident *incident)
{
    if (incident->scope == SCOPE_RACK) {
        history_add(history, incident->domain, NULL, JOB_NONE, 1);
        return;
    }
    if (incident->scope != SCOPE_RANK && incident->scope != SCOPE_TRAY)
        return;
    for (size_t i = 0; i < incident->node_count; i++)
        history_add(history, NULL, incident->nodes[i].name, JOB_NONE, 1);
}

void fleet_memory_tell(const struct remediation *core, struct jobs *jobs, int64_t now_ns)
{
    AUTO(history_free) struct history *history = history_new();

    for (size_t i = 0; i < remediation_incident_count(core); i++) {
        const struct incident *incident = remediation_incident_at(core, i);
        if (counts(incident, now_ns))
            remember(history, incident);
    }
    for (struct live_job *live = jobs_first(jobs); live != NULL; live = live->next)
        engine_take_history(live->engine, history);
}
