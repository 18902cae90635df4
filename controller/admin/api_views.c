/* Jobs, ranks and racks as JSON, from engines. */
#include "controller/admin/api_views.h"

#include "controller/topology/job_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 5 };

static void put_int_or_null(struct json_writer *writer, const char *key, int64_t value)
{
    json_add_key(writer, key);
    if (value < 0)
        json_add_null(writer);
    else
        json_add_int(writer, value);
}

static int32_t count_spares(const struct job *job)
{
    AUTO_FREE bool *used = xcalloc((size_t)job->tray_count + 1, sizeof *used);
    int32_t spares = job->tray_count;
    for (int32_t rank = 0; rank < job->world_size; rank++) {
        int32_t tray = job->ranks[rank].tray;
        if (tray != JOB_NONE && !used[tray]) {
            used[tray] = true;
            spares--;
        }
    }
    return spares;
}

static void put_row(struct json_writer *writer, const struct engine *engine)
{
    const struct job *job = engine_job(engine);
    struct engine_progress progress = engine_progress(engine);
    json_put_string(writer, "job", job->name);
    json_put_int(writer, "world_size", job->world_size);
    json_put_int(writer, "ranks_reporting", progress.ranks_reporting);
    put_int_or_null(writer, "step", progress.step);
    json_put_time(writer, "step_time", progress.step_time_ns);
    json_put_rounded(writer, "step_ms", progress.step_ms, DIGITS);
    json_put_rounded(writer, "baseline_ms", progress.baseline_ms, DIGITS);
    json_put_rounded(writer, "pace", progress.step_ms / progress.baseline_ms, DIGITS);
    json_put_string(writer, "phase", progress.phase);
    put_int_or_null(writer, "attempt", progress.attempt);
    json_put_int(writer, "racks", job->rack_count);
    json_put_int(writer, "trays", job->tray_count);
    json_put_int(writer, "spares", count_spares(job));
    put_int_or_null(writer, "checkpoint_step", job->checkpoint_step);
    json_put_bool(writer, "restartable", job->workload_json != NULL);
}

void api_view_job_row(struct json_writer *writer, const struct engine *engine)
{
    json_open_object(writer);
    put_row(writer, engine);
    json_close(writer);
}

/* What the ranks of one tray say together. */
struct tray_view {
    int32_t ranks;
    int32_t *rank;     /* borrowed slice of the job's ranks sorted by tray */
    double slow_ratio; /* of its slowest rank; NAN unknown */
    double suspicion;
    int64_t seen_ns; /* of the rank that is silent the longest */
    bool abnormal, watch;
};

static const struct world_node *find_node(const struct world *world, const char *name)
{
    for (size_t i = 0; world != NULL && world->known && i < world->node_count; i++)
        if (strcmp(world->nodes[i].name, name) == 0)
            return &world->nodes[i];
    return NULL;
}

static const char *tray_state(const struct tray_view *tray, const struct world_node *node,
                              int64_t now_ns, int64_t silent_ns)
{
    bool cordoned = node != NULL && node->cordoned;
    if (tray->ranks == 0)
        return cordoned ? "cordoned" : "spare";
    if (tray->seen_ns > 0 && now_ns - tray->seen_ns > silent_ns)
        return "silent";
    if (cordoned)
        return "cordoned";
    if (tray->abnormal)
        return "abnormal";
    if (tray->watch)
        return "watch";
    return tray->seen_ns > 0 ? "normal" : "unknown";
}

static struct tray_view look_at_tray(const struct engine *engine, int32_t *ranks, int32_t count)
{
    struct tray_view view = {
        .ranks = count, .rank = ranks, .slow_ratio = NAN, .seen_ns = INT64_MAX};
    for (int32_t i = 0; i < count; i++) {
        struct engine_rank rank = engine_rank_get(engine, ranks[i]);
        view.slow_ratio = fmax(view.slow_ratio, rank.slow_ratio); /* fmax leaves a NAN out */
        view.suspicion = fmax(view.suspicion, rank.suspicion);
        view.seen_ns = rank.seen_ns < view.seen_ns ? rank.seen_ns : view.seen_ns;
        view.abnormal |= strcmp(rank.status, "abnormal") == 0;
        view.watch |= strcmp(rank.status, "watch") == 0;
    }
    return view;
}

/* Ranks grouped by tray: order holds all ranks, first[t] is where tray t starts in it. */
struct by_tray {
    int32_t *order;
    int32_t *first;
};

static struct by_tray group_by_tray(const struct job *job)
{
    struct by_tray group = {xcalloc((size_t)job->world_size + 1, sizeof *group.order),
                            xcalloc((size_t)job->tray_count + 2, sizeof *group.first)};
    for (int32_t rank = 0; rank < job->world_size; rank++)
        if (job->ranks[rank].tray != JOB_NONE)
            group.first[job->ranks[rank].tray + 1]++;
    for (int32_t tray = 0; tray < job->tray_count; tray++)
        group.first[tray + 1] += group.first[tray];
    AUTO_FREE int32_t *next = xcalloc((size_t)job->tray_count + 1, sizeof *next);
    memcpy(next, group.first, (size_t)job->tray_count * sizeof *next);
    for (int32_t rank = 0; rank < job->world_size; rank++)
        if (job->ranks[rank].tray != JOB_NONE)
            group.order[next[job->ranks[rank].tray]++] = rank;
    return group;
}

static void write_tray(struct json_writer *writer, const char *name, const struct tray_view *tray,
                       const struct world_node *node, const char *state)
{
    json_open_object(writer);
    json_put_string(writer, "node", name);
    json_put_string(writer, "state", state);
    json_add_key(writer, "ranks");
    json_open_array(writer);
    for (int32_t i = 0; i < tray->ranks; i++)
        json_add_int(writer, tray->rank[i]);
    json_close(writer);
    json_put_rounded(writer, "slow_ratio", tray->slow_ratio, DIGITS);
    json_put_rounded(writer, "suspicion", tray->suspicion, DIGITS);
    json_put_time(writer, "seen", tray->ranks > 0 ? tray->seen_ns : 0);
    json_put_string(writer, "cordoned_by",
                    node != NULL && node->cordoned ? node->cordoned_by : NULL);
    json_put_string(writer, "promised_to", node != NULL ? node->promised_to : NULL);
    json_close(writer);
}

struct rack_walk {
    struct json_writer *writer;
    const struct engine *engine;
    const struct world *world;
    struct by_tray group;
    int64_t now_ns, silent_ns;
};

/* The trays of one rack; rack JOB_NONE: those of no known rack. */
static void write_trays(const struct rack_walk *walk, int32_t rack)
{
    const struct job *job = engine_job(walk->engine);
    json_open_array(walk->writer);
    for (int32_t tray = 0; tray < job->tray_count; tray++) {
        if (job->trays[tray].rack != rack)
            continue;
        const char *name = job->trays[tray].node;
        int32_t first = walk->group.first[tray];
        struct tray_view view = look_at_tray(walk->engine, walk->group.order + first,
                                             walk->group.first[tray + 1] - first);
        const struct world_node *node = find_node(walk->world, name);
        write_tray(walk->writer, name, &view, node,
                   tray_state(&view, node, walk->now_ns, walk->silent_ns));
    }
    json_close(walk->writer);
}

static bool has_rackless_trays(const struct job *job)
{
    for (int32_t tray = 0; tray < job->tray_count; tray++)
        if (job->trays[tray].rack == JOB_NONE)
            return true;
    return false;
}

static void write_rack(const struct rack_walk *walk, int32_t rack, const char *name,
                       const char *domain)
{
    json_open_object(walk->writer);
    json_put_string(walk->writer, "rack", name);
    json_put_string(walk->writer, "nvlink_domain", domain);
    json_add_key(walk->writer, "trays");
    write_trays(walk, rack);
    json_close(walk->writer);
}

void api_view_job(struct json_writer *writer, const struct engine *engine,
                  const struct world *world, int64_t now_ns, int64_t silent_ns)
{
    const struct job *job = engine_job(engine);
    bool is_over = strcmp(engine_progress(engine).phase, "finished") == 0;
    struct rack_walk walk = {
        writer, engine, world, group_by_tray(job), now_ns, is_over ? INT64_MAX : silent_ns};
    json_open_object(writer);
    put_row(writer, engine);
    json_add_key(writer, "rack_view");
    json_open_array(writer);
    for (int32_t rack = 0; rack < job->rack_count; rack++)
        write_rack(&walk, rack, job->racks[rack].name, job->racks[rack].nvlink_domain);
    if (has_rackless_trays(job))
        write_rack(&walk, JOB_NONE, NULL, NULL);
    json_close(writer);
    json_add_key(writer, "document");
    job_file_write(job, writer);
    json_close(writer);
    xfree(walk.group.order);
    xfree(walk.group.first);
}

struct rank_row {
    int32_t rank;
    struct engine_rank seen;
};

static bool is_suspect(const struct engine_rank *rank)
{
    return strcmp(rank->status, "abnormal") == 0 || strcmp(rank->status, "watch") == 0 ||
           strcmp(rank->status, "stale") == 0;
}

static int by_suspicion(const void *a, const void *b)
{
    const struct rank_row *left = a;
    const struct rank_row *right = b;
    if (left->seen.suspicion < right->seen.suspicion)
        return 1;
    if (left->seen.suspicion > right->seen.suspicion)
        return -1;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

static void write_rank(struct json_writer *writer, const struct job *job,
                       const struct rank_row *row)
{
    const struct job_rank *place = &job->ranks[row->rank];
    const struct job_tray *tray = place->tray != JOB_NONE ? &job->trays[place->tray] : NULL;
    bool in_rack = tray != NULL && tray->rack != JOB_NONE;
    const struct engine_rank *seen = &row->seen;
    json_open_object(writer);
    json_put_int(writer, "rank", row->rank);
    json_put_string(writer, "node", tray != NULL ? tray->node : NULL);
    put_int_or_null(writer, "gpu", place->gpu);
    json_put_string(writer, "rack", in_rack ? job->racks[tray->rack].name : NULL);
    json_put_int(writer, "stage", job_place_of(job, row->rank).stage);
    put_int_or_null(writer, "step", seen->step);
    json_put_time(writer, "seen", seen->seen_ns);
    json_put_rounded(writer, "step_ms", seen->step_ms, DIGITS);
    json_put_rounded(writer, "compute_ms", seen->compute_ms, DIGITS);
    json_put_rounded(writer, "allreduce_ms", seen->allreduce_ms, DIGITS);
    json_put_rounded(writer, "wait_ms", seen->wait_ms, DIGITS);
    json_put_rounded(writer, "sm", seen->sm, DIGITS);
    json_put_rounded(writer, "mem", seen->mem, DIGITS);
    json_put_rounded(writer, "slow_ratio", seen->slow_ratio, DIGITS);
    json_put_rounded(writer, "suspicion", seen->suspicion, DIGITS);
    json_put_string(writer, "status", seen->status);
    json_close(writer);
}

void api_view_ranks(struct json_writer *writer, const struct engine *engine, bool slow_only)
{
    const struct job *job = engine_job(engine);
    AUTO_FREE struct rank_row *rows = xcalloc((size_t)job->world_size + 1, sizeof *rows);
    size_t count = 0;
    for (int32_t rank = 0; rank < job->world_size; rank++) {
        struct rank_row row = {rank, engine_rank_get(engine, rank)};
        if (!slow_only || is_suspect(&row.seen))
            rows[count++] = row;
    }
    if (slow_only)
        qsort(rows, count, sizeof *rows, by_suspicion);
    json_open_object(writer);
    json_put_string(writer, "job", job->name);
    put_int_or_null(writer, "step", engine_progress(engine).step);
    json_add_key(writer, "ranks");
    json_open_array(writer);
    for (size_t i = 0; i < count; i++)
        write_rank(writer, job, &rows[i]);
    json_close(writer);
    json_close(writer);
}

static bool is_asked_for(const struct incident *incident, const struct api_query *query)
{
    const struct incident_times *times = &incident->times;
    bool is_going_on = incident->status == INCIDENT_OPEN || incident->status == INCIDENT_MITIGATED;
    bool is_recent = times->detected_ns >= query->since_ns || times->closed_ns >= query->since_ns;
    return (is_going_on || is_recent) &&
           (query->status == NULL ||
            strcmp(query->status, incident_status_name(incident->status)) == 0) &&
           (query->job == NULL || strcmp(query->job, incident->job) == 0);
}

/* The core keeps incidents in order of their numbers; people want the newest first. */
static void recall_list(const struct remediation *core, const struct api_query *query,
                        int64_t now_ns, struct json_writer *writer)
{
    json_open_object(writer);
    json_put_bool(writer, "from_memory", true);
    json_add_key(writer, "incidents");
    json_open_array(writer);
    for (size_t i = remediation_incident_count(core); i-- > 0;)
        if (is_asked_for(remediation_incident_at(core, i), query))
            incident_write(remediation_incident_at(core, i), now_ns, writer);
    json_close(writer);
    json_close(writer);
}

static void recall_one(const struct incident *incident, int64_t now_ns, struct json_writer *writer)
{
    static const char *const lists[] = {"timeline", "decisions", "actions"};
    json_open_object(writer);
    json_put_bool(writer, "from_memory", true);
    json_add_key(writer, "incident");
    incident_write(incident, now_ns, writer);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        json_add_key(writer, lists[i]);
        json_open_array(writer);
        json_close(writer);
    }
    json_close(writer);
}

bool api_recall(const struct remediation *core, const struct api_query *query, int64_t now_ns,
                struct json_writer *writer)
{
    const struct incident *incident = NULL;
    switch (query->read) {
    case API_INCIDENTS:
        recall_list(core, query, now_ns, writer);
        return true;
    case API_INCIDENT:
        incident = remediation_find(core, query->incident_ref);
        if (incident != NULL)
            recall_one(incident, now_ns, writer);
        return incident != NULL;
    case API_TIMELINE:
    case API_EXPORT:
    case API_READ_COUNT:
        break;
    }
    return false;
}
