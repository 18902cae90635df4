/* The incident itself: life, small questions, names. Its JSON is in incident_json.c. */
#include "remediation/incident.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const char *owner;   /* who has to move while the incident is in this phase */
    const char *runbook; /* NULL: the kind's */
    bool is_end;
} phases[] = {
    [PHASE_SUSPECTED] = {"suspected", "broomd", NULL, false},
    [PHASE_CONFIRMED] = {"confirmed", "broomd", NULL, false},
    [PHASE_AWAITING_APPROVAL] = {"awaiting_approval", "on-call", "runbooks/awaiting-approval.md",
                                 false},
    [PHASE_HOLDING] = {"holding", "on-call", "runbooks/holding.md", false},
    [PHASE_CORDONING] = {"cordoning", "broomd", NULL, false},
    [PHASE_SAVING] = {"saving", "broomd", NULL, false},
    [PHASE_RESTARTING] = {"restarting", "broomd", NULL, false},
    [PHASE_PLACING] = {"placing", "scheduler", NULL, false},
    [PHASE_RESUMING] = {"resuming", "job", NULL, false},
    [PHASE_VERIFYING] = {"verifying", "broomd", NULL, false},
    [PHASE_REPAIRING] = {"repairing", "hardware", "runbooks/resume-after-repair.md", false},
    [PHASE_VALIDATING] = {"validating", "broomd", "runbooks/resume-after-repair.md", false},
    [PHASE_DONE] = {"done", "nobody", NULL, true},
    [PHASE_CANCELLED] = {"cancelled", "nobody", NULL, true},
    [PHASE_ESCALATED] = {"escalated", "on-call", "runbooks/escalated.md", true},
};
_Static_assert(ARRAY_LEN(phases) == PHASE_COUNT, "every phase has a row");

static const char *const status_names[] = {
    [INCIDENT_OPEN] = "open",         [INCIDENT_MITIGATED] = "mitigated",
    [INCIDENT_RESOLVED] = "resolved", [INCIDENT_CLOSED] = "closed",
    [INCIDENT_MERGED] = "merged",     [INCIDENT_DECLINED] = "declined",
};
_Static_assert(ARRAY_LEN(status_names) == INCIDENT_STATUS_COUNT, "every status has a name");

const char *phase_name(enum phase phase)
{
    assert(phase < PHASE_COUNT);
    return phases[phase].name;
}

bool phase_parse(const char *name, enum phase *ret_phase)
{
    for (int i = 0; i < PHASE_COUNT; i++)
        if (strcmp(phases[i].name, name) == 0) {
            *ret_phase = (enum phase)i;
            return true;
        }
    return false;
}

bool phase_is_end(enum phase phase)
{
    assert(phase < PHASE_COUNT);
    return phases[phase].is_end;
}

const char *phase_owner(enum phase phase)
{
    assert(phase < PHASE_COUNT);
    return phases[phase].owner;
}

#define KIND(x)  (1u << VERDICT_##x)
#define SCOPE(x) (1u << SCOPE_##x)

/* First match wins; 0 takes any. */
static const struct {
    uint32_t kinds, scopes;
    const char *page;
} pages[] = {
    {KIND(SLOW), SCOPE(RANK) | SCOPE(TRAY), "runbooks/slow-rank.md"},
    {KIND(SLOW), SCOPE(RACK), "runbooks/slow-rack.md"},
    {KIND(SLOW), 0, "runbooks/rail-or-link.md"},
    {KIND(HANG), 0, "runbooks/hang.md"},
    {KIND(CRASH) | KIND(FAULT), SCOPE(RACK), "runbooks/rack-lost.md"},
    {KIND(FAULT), SCOPE(SWITCH_TRAY) | SCOPE(RAIL), "runbooks/rail-or-link.md"},
    {KIND(FAULT), 0, "runbooks/hardware-fault.md"},
    {KIND(CRASH), 0, "runbooks/tray-lost.md"},
    {KIND(NUMERIC), 0, "runbooks/numeric.md"},
    {KIND(REGRESSION), 0, "runbooks/regression.md"},
    {0, 0, "runbooks/README.md"},
};

const char *incident_runbook(enum verdict_kind kind, enum scope scope, bool observer_suspect,
                             enum phase phase)
{
    assert(phase < PHASE_COUNT);
    if (observer_suspect)
        return "runbooks/observer-suspect.md";
    if (phases[phase].runbook != NULL)
        return phases[phase].runbook;
    size_t i = 0;
    while ((pages[i].kinds != 0 && !(pages[i].kinds >> kind & 1u)) ||
           (pages[i].scopes != 0 && !(pages[i].scopes >> scope & 1u)))
        i++;
    return pages[i].page;
}

const char *incident_status_name(enum incident_status status)
{
    assert(status < INCIDENT_STATUS_COUNT);
    return status_names[status];
}

bool incident_status_parse(const char *name, enum incident_status *ret_status)
{
    for (int i = 0; i < INCIDENT_STATUS_COUNT; i++)
        if (strcmp(status_names[i], name) == 0) {
            *ret_status = (enum incident_status)i;
            return true;
        }
    return false;
}

struct incident *incident_new(int64_t number)
{
    struct incident *incident = xcalloc(1, sizeof *incident);
    incident->number = number;
    snprintf(incident->ref, sizeof incident->ref, "INC-%lld", (long long)number);
    incident->timers = policy_timers_default();
    incident->mode = MODE_OBSERVE;
    incident->severity = 3;
    incident->step_at_fault = JOB_NONE;
    incident->attempt_before = JOB_NONE;
    incident->restarts_before = -1;
    incident->baseline_ms = NAN;
    incident->slowdown = 1;
    incident->cost = (struct incident_cost){.steps_lost = -1};
    return incident;
}

static void action_done(struct incident_action *action)
{
    names_done(&action->nodes);
    names_done(&action->spares);
    xfree(action->params_json);
    xfree(action->answer);
}

static void node_done(struct incident_node *node)
{
    xfree(node->name);
    xfree(node->rack);
    xfree(node->fenced_by);
}

void incident_free(struct incident *incident)
{
    if (incident == NULL)
        return;
    for (size_t i = 0; i < incident->node_count; i++)
        node_done(&incident->nodes[i]);
    for (size_t i = 0; i < incident->action_count; i++)
        action_done(&incident->actions[i]);
    xfree(incident->nodes);
    xfree(incident->actions);
    xfree(incident->workload_json);
    xfree(incident->ranks);
    xfree(incident->victims);
    names_done(&incident->leaving);
    names_done(&incident->spares);
    names_done(&incident->nodes_before);
    names_done(&incident->stuck_told);
    names_done(&incident->accused_later);
    names_done(&incident->silent_later);
    xfree(incident);
}

struct incident_node *incident_find_node(const struct incident *incident, const char *name)
{
    for (size_t i = 0; i < incident->node_count; i++)
        if (strcmp(incident->nodes[i].name, name) == 0)
            return &incident->nodes[i];
    return NULL;
}

struct incident_node *incident_add_node(struct incident *incident, const char *name,
                                        const char *rack)
{
    struct incident_node *node = incident_find_node(incident, name);
    if (node != NULL)
        return node;
    incident->nodes = xrealloc(incident->nodes, incident->node_count + 1, sizeof *incident->nodes);
    node = &incident->nodes[incident->node_count++];
    *node = (struct incident_node){.name = xstrdup(name),
                                   .rack = xstrdup(rack != NULL ? rack : "")};
    return node;
}

bool incident_remove_node(struct incident *incident, const char *name)
{
    struct incident_node *node = incident_find_node(incident, name);
    if (node == NULL)
        return false;
    size_t at = (size_t)(node - incident->nodes);
    node_done(node);
    memmove(node, node + 1, (incident->node_count - at - 1) * sizeof *node);
    incident->node_count--;
    return true;
}

/* Keeps an ascending list without doubles. */
static void add_sorted(int32_t **list, size_t *count, int32_t value)
{
    size_t at = 0;
    while (at < *count && (*list)[at] < value)
        at++;
    if (at < *count && (*list)[at] == value)
        return;
    *list = xrealloc(*list, *count + 1, sizeof **list);
    memmove(&(*list)[at + 1], &(*list)[at], (*count - at) * sizeof **list);
    (*list)[at] = value;
    (*count)++;
}

static bool list_has(const int32_t *list, size_t count, int32_t value)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == value)
            return true;
    return false;
}

void incident_add_rank(struct incident *incident, int32_t rank)
{
    add_sorted(&incident->ranks, &incident->rank_count, rank);
    for (size_t i = 0; i < incident->victim_count; i++)
        if (incident->victims[i] == rank) {
            memmove(&incident->victims[i], &incident->victims[i + 1],
                    (incident->victim_count - i - 1) * sizeof *incident->victims);
            incident->victim_count--;
            break;
        }
}

void incident_add_victim(struct incident *incident, int32_t rank)
{
    if (!list_has(incident->ranks, incident->rank_count, rank))
        add_sorted(&incident->victims, &incident->victim_count, rank);
}

bool incident_has_ended(const struct incident *incident)
{
    return phase_is_end(incident->phase);
}

bool incident_has_acted(const struct incident *incident)
{
    return incident->times.acted_ns != 0;
}

bool incident_in_restart(const struct incident *incident)
{
    return incident->phase == PHASE_RESTARTING || incident->phase == PHASE_PLACING ||
           incident->phase == PHASE_RESUMING ||
           (incident->phase == PHASE_VERIFYING && incident->status == INCIDENT_OPEN &&
            incident->restart_started_ns != 0);
}

bool incident_is_hard(const struct incident *incident)
{
    return incident->kind == VERDICT_CRASH || incident->kind == VERDICT_HANG ||
           incident->kind == VERDICT_FAULT;
}

struct incident_action *incident_find_action(const struct incident *incident,
                                             const char *operation_id)
{
    for (size_t i = 0; i < incident->action_count; i++)
        if (strcmp(incident->actions[i].operation_id, operation_id) == 0)
            return &incident->actions[i];
    return NULL;
}

struct incident_action *incident_running_action(const struct incident *incident)
{
    for (size_t i = 0; i < incident->action_count; i++)
        if (incident->actions[i].state != ACTION_ENDED && !incident->actions[i].aside)
            return &incident->actions[i];
    return NULL;
}

struct incident_action *incident_add_action(struct incident *incident)
{
    incident->actions = array_grow(incident->actions, incident->action_count,
                                   &incident->action_capacity, sizeof *incident->actions);
    struct incident_action *action = &incident->actions[incident->action_count++];
    *action = (struct incident_action){.step = -1, .try_number = 1};
    return action;
}
