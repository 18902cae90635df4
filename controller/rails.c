/* Two passes: who carries an all-reduce over its rails, then who is accused; an accusation wins. */
#include "controller/rails.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct known {
    char *node;
    enum rail_state state;
};

struct rails {
    struct known *items; /* by node, the accused first */
    size_t count, capacity;
};

static void add(struct rails *rails, const char *node, enum rail_state state)
{
    rails->items = array_grow(rails->items, rails->count, &rails->capacity, sizeof *rails->items);
    rails->items[rails->count++] = (struct known){xstrdup(node), state};
}

/* ---- what works ---- */

/* A step of this attempt: an older one was made where the ranks stood before. */
static bool has_stepped(const struct live_job *live, int64_t now_ns)
{
    struct engine_progress progress = engine_progress(live->engine);
    int64_t sender_ns = jobs_sender_time(live, now_ns);
    return progress.step != JOB_NONE && sender_ns != 0 &&
           progress.step_time_ns > progress.attempt_time_ns &&
           sender_ns - progress.step_time_ns <= RAILS_SEEN_NS;
}

/* Who says in which NVLink domain a tray is: one witness for a whole job, since two may call one
 * domain by two names. */
enum witness { WITNESS_DOMAIN = 0, WITNESS_RACK, WITNESS_JOB, WITNESS_COUNT };

static const char *testify(const struct inventory *inventory, enum witness witness,
                           const struct job *job, int32_t tray)
{
    struct inventory_node node;
    int32_t rack = job->trays[tray].rack;
    if (witness == WITNESS_JOB)
        return rack != JOB_NONE ? job->racks[rack].nvlink_domain : NULL;
    if (inventory == NULL || !inventory_find(inventory, job->trays[tray].node, &node))
        return NULL;
    return witness == WITNESS_DOMAIN ? node.nvlink_domain : node.rack;
}

/* Of each tray, NULL unknown: by the first witness who knows all trays with ranks, else by the job.
 */
static const char **find_domains(const struct inventory *inventory, const struct job *job)
{
    const char **domains = xcalloc((size_t)job->tray_count + 1, sizeof *domains);
    for (int witness = 0; witness < WITNESS_COUNT; witness++) {
        bool is_whole = true;
        for (int32_t t = 0; t < job->tray_count; t++)
            domains[t] = testify(inventory, (enum witness)witness, job, t);
        for (int32_t r = 0; r < job->world_size; r++)
            is_whole = is_whole &&
                       (job->ranks[r].tray == JOB_NONE || domains[job->ranks[r].tray] != NULL);
        if (is_whole)
            break;
    }
    return domains;
}

/* Groups whose all-reduce leaves its NVLink domain. A rank whose domain is not known proves
 * nothing. */
static bool *find_crossing(const struct inventory *inventory, const struct job *job)
{
    bool *crosses = xcalloc((size_t)job->world_size, sizeof *crosses);
    AUTO_FREE const char **domains = find_domains(inventory, job);
    AUTO_FREE const char **first = xcalloc((size_t)job->world_size, sizeof *first);
    for (int32_t r = 0; r < job->world_size; r++) {
        int32_t group = job_place_of(job, r).data_group;
        const char *domain = job->ranks[r].tray != JOB_NONE ? domains[job->ranks[r].tray] : NULL;
        if (domain == NULL)
            continue;
        if (first[group] == NULL)
            first[group] = domain;
        crosses[group] = crosses[group] || strcmp(first[group], domain) != 0;
    }
    return crosses;
}

/* All ranks of a node have to cross, and to be as many as on the fullest node: a GPU without a rank
 * leaves its NIC unproven. */
static void add_working(struct rails *rails, const struct inventory *inventory,
                        const struct job *job)
{
    AUTO_FREE bool *crosses = find_crossing(inventory, job);
    AUTO_FREE int32_t *crossing = xcalloc((size_t)job->tray_count + 1, sizeof *crossing);
    int32_t most = 0;
    for (int32_t r = 0; r < job->world_size; r++) {
        int32_t tray = job->ranks[r].tray;
        if (tray == JOB_NONE || !crosses[job_place_of(job, r).data_group])
            continue;
        crossing[tray]++;
        most = crossing[tray] > most ? crossing[tray] : most;
    }
    for (int32_t t = 0; t < job->tray_count; t++)
        if (most > 0 && crossing[t] == most)
            add(rails, job->trays[t].node, RAIL_READY);
}

/* ---- what is accused ---- */

static bool accuses_network(const struct incident *incident)
{
    bool stands = incident->status == INCIDENT_OPEN || incident->status == INCIDENT_MITIGATED;
    return stands && incident->cause == CAUSE_NETWORK && incident->phase != PHASE_SUSPECTED &&
           incident->kind != VERDICT_INFO && !incident->observer_suspect;
}

/* Every tray of the job has a NIC on the rail. */
static void add_rail(struct rails *rails, const struct job *job, const struct incident *incident)
{
    for (int32_t r = 0; r < job->world_size; r++) {
        char rail[16];
        snprintf(rail, sizeof rail, "%d", (int)job->ranks[r].rail);
        if (job->ranks[r].tray != JOB_NONE && strcmp(rail, incident->domain) == 0)
            add(rails, job->trays[job->ranks[r].tray].node, RAIL_DEGRADED);
    }
}

static void add_accused(struct rails *rails, const struct jobs *jobs,
                        const struct incident *incident)
{
    const struct live_job *live = jobs_find(jobs, view_of(incident->job));
    for (size_t i = 0; i < incident->node_count; i++)
        add(rails, incident->nodes[i].name, RAIL_DEGRADED);
    if (incident->scope == SCOPE_RAIL && live != NULL)
        add_rail(rails, engine_job(live->engine), incident);
}

/* ---- the table ---- */

static int by_node(const void *left, const void *right)
{
    const struct known *a = left, *b = right;
    int order = strcmp(a->node, b->node);
    return order != 0 ? order : (int)b->state - (int)a->state;
}

struct rails *rails_read(const struct remediation *core, const struct jobs *jobs,
                         const struct inventory *inventory, int64_t now_ns)
{
    struct rails *rails = xcalloc(1, sizeof *rails);
    for (const struct live_job *live = jobs_first(jobs); live != NULL; live = live->next)
        if (has_stepped(live, now_ns))
            add_working(rails, inventory, engine_job(live->engine));
    for (size_t i = 0; i < remediation_incident_count(core); i++)
        if (accuses_network(remediation_incident_at(core, i)))
            add_accused(rails, jobs, remediation_incident_at(core, i));
    if (rails->count > 0)
        qsort(rails->items, rails->count, sizeof *rails->items, by_node);
    return rails;
}

void rails_free(struct rails *rails)
{
    if (rails == NULL)
        return;
    for (size_t i = 0; i < rails->count; i++)
        xfree(rails->items[i].node);
    xfree(rails->items);
    xfree(rails);
}

static int compare_name(const void *name, const void *item)
{
    return strcmp(name, ((const struct known *)item)->node);
}

enum rail_state rails_of(const struct rails *rails, const char *node)
{
    size_t place = array_lower_bound(node, rails->items, rails->count, sizeof *rails->items,
                                     compare_name);
    bool found = place < rails->count && strcmp(rails->items[place].node, node) == 0;
    return found ? rails->items[place].state : RAIL_UNKNOWN;
}
