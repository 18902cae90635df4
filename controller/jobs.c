/* The registry of live jobs. Few jobs, many samples: the look-up of a sample's job remembers the
 * last one. */
#include "controller/jobs.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { ENGINE_BYTES_PER_RANK = 4096, SERIES_BYTES_MIN_PER_RANK = 1024 };

const char *const JOBS_NO_ROOM =
    "no room for another job (limits.jobs, limits.ranks, limits.memory_bytes)";

struct known_node {
    const char *name;
    const char *rack;
    const char *nvlink_domain;
};

struct jobs {
    struct jobs_limits limits;
    struct engine_params params;
    struct live_job *first;
    struct live_job *last_found;
    int32_t count;
    int64_t bytes;
    struct known_node *nodes;
    size_t node_count;
    const struct inventory *inventory; /* or NULL */
};

static void live_job_free(struct live_job *live)
{
    for (size_t i = 0; i < live->open_count; i++)
        verdict_done(&live->open[i]);
    xfree(live->open);
    engine_free(live->engine);
    series_free(live->series);
    xfree(live->name);
    xfree(live->uid);
    xfree(live);
}
DEFINE_AUTO(struct live_job, live_job_free)

static void forget_world(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->node_count; i++) {
        xfree(jobs->nodes[i].name);
        xfree(jobs->nodes[i].rack);
        xfree(jobs->nodes[i].nvlink_domain);
    }
    xfree(jobs->nodes);
    jobs->nodes = NULL;
    jobs->node_count = 0;
}

struct jobs *jobs_new(const struct jobs_limits *limits, const struct engine_params *params)
{
    struct jobs *jobs = xcalloc(1, sizeof *jobs);
    jobs->limits = *limits;
    jobs->params = *params;
    return jobs;
}

void jobs_free(struct jobs *jobs)
{
    if (jobs == NULL)
        return;
    while (jobs->first != NULL) {
        struct live_job *live = jobs->first;
        jobs->first = live->next;
        live_job_free(live);
    }
    forget_world(jobs);
    xfree(jobs);
}

struct live_job *jobs_first(const struct jobs *jobs)
{
    return jobs->first;
}

int32_t jobs_count(const struct jobs *jobs)
{
    return jobs->count;
}

int64_t jobs_bytes(const struct jobs *jobs)
{
    return jobs->bytes;
}

struct live_job *jobs_find(const struct jobs *jobs, struct view name)
{
    for (struct live_job *live = jobs->first; live != NULL; live = live->next)
        if (view_equals(name, live->name))
            return live;
    return NULL;
}

static struct live_job *find_cached(struct jobs *jobs, struct view name)
{
    if (jobs->last_found == NULL || !view_equals(name, jobs->last_found->name))
        jobs->last_found = jobs_find(jobs, name);
    return jobs->last_found;
}

static int64_t bytes_of_job(const struct jobs *jobs, int64_t used_bytes, int32_t world_size,
                            int64_t *ret_series_bytes)
{
    int64_t engine = (int64_t)world_size * ENGINE_BYTES_PER_RANK;
    int64_t room = jobs->limits.memory_bytes - used_bytes - engine;
    *ret_series_bytes = room < jobs->limits.series_bytes_per_job
                            ? room
                            : jobs->limits.series_bytes_per_job;
    return engine + *ret_series_bytes;
}

/* replaced: the job whose place the new one takes, or NULL. */
static enum status check_room(const struct jobs *jobs, const struct live_job *replaced,
                              const struct job *layout, int64_t *ret_bytes,
                              int64_t *ret_series_bytes, struct error *reterr)
{
    int64_t used_bytes = jobs->bytes - (replaced != NULL ? replaced->bytes : 0);
    if (layout->world_size > jobs->limits.ranks)
        return error_set(reterr, ERR_LIMIT, "job '%s' has %d ranks; limits.ranks is %d",
                         layout->name, layout->world_size, jobs->limits.ranks);
    if (replaced == NULL && jobs->count >= jobs->limits.jobs)
        return error_set(reterr, ERR_LIMIT, "no room for job '%s': limits.jobs is %d", layout->name,
                         jobs->limits.jobs);
    *ret_bytes = bytes_of_job(jobs, used_bytes, layout->world_size, ret_series_bytes);
    if (*ret_series_bytes < (int64_t)layout->world_size * SERIES_BYTES_MIN_PER_RANK)
        return error_set(
            reterr, ERR_LIMIT,
            "no memory for job '%s' of %d ranks: %lld of limits.memory_bytes=%lld are used",
            layout->name, layout->world_size, (long long)used_bytes,
            (long long)jobs->limits.memory_bytes);
    return OK;
}

static const char *workload_uid(const char *workload_json)
{
    AUTO(json_free) struct json *workload = NULL;
    if (workload_json == NULL || json_parse(view_of(workload_json), &workload, NULL) != OK)
        return xstrdup("");
    return xstrdup(json_get_string(workload, "uid", ""));
}

static void insert_by_name(struct jobs *jobs, struct live_job *live)
{
    struct live_job **place = &jobs->first;
    while (*place != NULL && strcmp((*place)->name, live->name) < 0)
        place = &(*place)->next;
    live->next = *place;
    *place = live;
    jobs->count++;
}

static void unlink_job(struct jobs *jobs, struct live_job *live)
{
    struct live_job **place = &jobs->first;
    while (*place != live)
        place = &(*place)->next;
    *place = live->next;
    jobs->count--;
    jobs->bytes -= live->bytes;
    if (jobs->last_found == live)
        jobs->last_found = NULL;
    live_job_free(live);
}

/* Adds the job, in the place of `replaced` when that is not NULL; on failure everything is as
 * before. */
static enum status add_job(struct jobs *jobs, struct live_job *replaced, const struct job *layout,
                           bool has_document, int64_t now_ns, struct error *reterr)
{
    int64_t bytes, series_bytes;
    TRY(check_room(jobs, replaced, layout, &bytes, &series_bytes, reterr));
    struct live_job *live = xcalloc(1, sizeof *live);
    live->name = xstrdup(layout->name);
    live->uid = workload_uid(layout->workload_json);
    live->engine = engine_new(layout, &jobs->params);
    live->series = series_new(layout->world_size, (size_t)series_bytes);
    live->first_seen_ns = now_ns;
    live->has_document = has_document;
    live->layout_changed = true;
    live->bytes = bytes;
    if (replaced != NULL) {
        live->last_sample_ns = replaced->last_sample_ns;
        live->sender_lag_ns = replaced->sender_lag_ns;
        memcpy(live->first_lags_ns, replaced->first_lags_ns, sizeof live->first_lags_ns);
        live->lag_count = replaced->lag_count;
        unlink_job(jobs, replaced);
    }
    jobs->bytes += bytes;
    insert_by_name(jobs, live);
    return OK;
}

static bool is_same_shape(const struct job *a, const struct job *b)
{
    return a->world_size == b->world_size && memcmp(a->size, b->size, sizeof a->size) == 0 &&
           memcmp(a->order, b->order, sizeof a->order) == 0 && a->compute == b->compute;
}

enum { LIVE_NS_S = 600 };

static bool is_live(const struct live_job *live, int64_t now_ns)
{
    return now_ns - live->last_sample_ns < LIVE_NS_S * INT64_C(1000000000);
}

enum status jobs_put(struct jobs *jobs, const struct job *document, int64_t now_ns,
                     bool *ret_created, struct error *reterr)
{
    struct live_job *live = jobs_find(jobs, view_of(document->name));
    *ret_created = live == NULL;
    if (live == NULL)
        return add_job(jobs, NULL, document, true, now_ns, reterr);
    AUTO_FREE const char *uid = workload_uid(document->workload_json);
    if (uid[0] != '\0' && live->uid[0] != '\0' && strcmp(uid, live->uid) != 0 &&
        is_live(live, now_ns))
        return error_set(
            reterr, ERR_CONFLICT,
            "a live job '%s' of workload uid '%s' is here; names are unique in a cluster: "
            "rename this one, or wait 10m after the other has ended",
            live->name, live->uid);
    if (is_same_shape(engine_job(live->engine), document)) {
        engine_update_job(live->engine, document);
        xfree(live->uid);
        live->uid = TAKE(uid);
        live->layout_changed = true;
        live->has_document = true;
        return OK;
    }
    /* Another shape is another run: the old statistics mean nothing for it. */
    return add_job(jobs, live, document, true, now_ns, reterr);
}

static int32_t size_or_one(const struct sample *hello, enum field field)
{
    double value = sample_has(hello, field) ? hello->values[field] : 1;
    return value >= 1 && value <= JOB_RANKS_MAX ? (int32_t)value : 1;
}

/* Racks of the whole cluster: nodes of it without a rank are the spares of the job. */
static void add_known_racks(const struct jobs *jobs, struct job *job)
{
    size_t count = jobs->inventory != NULL ? inventory_count(jobs->inventory) : 0;
    for (size_t i = 0; i < count; i++) {
        struct inventory_node node = inventory_at(jobs->inventory, i);
        if (node.rack != NULL && node.rack_source != INVENTORY_HELLO)
            job_intern_tray(job, node.node, job_intern_rack(job, node.rack, node.nvlink_domain));
    }
    for (size_t i = 0; i < jobs->node_count; i++)
        if (jobs->nodes[i].rack != NULL && job_find_tray(job, jobs->nodes[i].name) == JOB_NONE)
            job_intern_tray(
                job, jobs->nodes[i].name,
                job_intern_rack(job, jobs->nodes[i].rack, jobs->nodes[i].nvlink_domain));
}

/* The layout that a first hello describes: sizes it names, the rest is data-parallel. Racks of
 * nodes come from what is known of the cluster; the engine places each rank by its own hello. */
static struct job *job_of_hello(const struct jobs *jobs, const struct sample *hello)
{
    AUTO_FREE char *name = xstrndup(hello->job.bytes, hello->job.length);
    struct job *job = job_new(name, (int32_t)hello->values[FIELD_WORLD]);
    static const struct {
        enum field field;
        enum parallel_dimension dimension;
    } rows[] = {{FIELD_TP, DIMENSION_TP},
                {FIELD_CP, DIMENSION_CP},
                {FIELD_EP, DIMENSION_EP},
                {FIELD_PP, DIMENSION_PP}};
    int64_t product = 1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int32_t size = size_or_one(hello, rows[i].field);
        job->size[rows[i].dimension] = size;
        product *= rows[i].dimension == DIMENSION_EP ? 1 : size;
    }
    if (product > 0 && job->world_size % product == 0) {
        job->size[DIMENSION_DP] = (int32_t)(job->world_size / product);
    } else {
        for (int d = 0; d < DIMENSION_COUNT; d++)
            job->size[d] = 1;
        job->size[DIMENSION_DP] = job->world_size;
    }
    job->compute = COMPUTE_KERNEL;
    add_known_racks(jobs, job);
    return job;
}

static bool is_whole(double value, double least, double most)
{
    return value >= least && value <= most && floor(value) >= value;
}

static const char *take_first_hello(struct jobs *jobs, const struct sample *hello, int64_t now_ns)
{
    struct error error;
    if (!sample_has(hello, FIELD_WORLD) || !is_whole(hello->values[FIELD_WORLD], 1, JOB_RANKS_MAX))
        return "hello without a usable world: the job is unknown";
    AUTO(job_free) struct job *job = job_of_hello(jobs, hello);
    if (add_job(jobs, NULL, job, false, now_ns, &error) != OK)
        return JOBS_NO_ROOM;
    jobs->last_found = jobs_find(jobs, hello->job);
    return NULL;
}

/* A rank's lines must come from the host that its hello named; hello itself may move it. */
static bool is_foreign_host(const struct job *job, const struct sample *sample)
{
    if (sample->host.length == 0 || sample->measurement == MEASUREMENT_HELLO)
        return false;
    int32_t tray = job->ranks[sample->rank].tray;
    return tray != JOB_NONE && !view_equals(sample->host, job->trays[tray].node);
}

static const int64_t LAG_STEP_NEAR_NS = 10000000, LAG_STEP_FAR_NS = 1000000000;

/* The exact median of the first lines: one of them with a wrong clock is outvoted at once. */
static int64_t first_median(struct live_job *live, int64_t lag_ns)
{
    int place = live->lag_count++;
    for (; place > 0 && live->first_lags_ns[place - 1] > lag_ns; place--)
        live->first_lags_ns[place] = live->first_lags_ns[place - 1];
    live->first_lags_ns[place] = lag_ns;
    return live->first_lags_ns[live->lag_count / 2];
}

/* Later a median by steps: each line pulls the estimate one step towards its own lag, so half of
 * the lines must agree before it moves far. */
static void follow_lag(struct live_job *live, int64_t time_ns, int64_t now_ns)
{
    int64_t lag_ns = now_ns - time_ns;
    if (live->lag_count < JOBS_LAG_LINES) {
        live->sender_lag_ns = first_median(live, lag_ns);
        return;
    }
    int64_t off_ns = lag_ns - live->sender_lag_ns;
    int64_t step_ns = off_ns > LAG_STEP_FAR_NS || off_ns < -LAG_STEP_FAR_NS ? LAG_STEP_FAR_NS / 10
                                                                            : LAG_STEP_NEAR_NS;
    if (off_ns > step_ns || off_ns < -step_ns)
        off_ns = off_ns > 0 ? step_ns : -step_ns;
    live->sender_lag_ns += off_ns;
}

int64_t jobs_sender_time(const struct live_job *live, int64_t now_ns)
{
    return live->lag_count == 0 ? 0 : now_ns - live->sender_lag_ns;
}

bool jobs_is_time_sure(const struct live_job *live)
{
    return live->lag_count == JOBS_LAG_LINES;
}

static void feed(struct live_job *live, const struct sample *sample, int64_t now_ns)
{
    follow_lag(live, sample->time_ns, now_ns);
    engine_feed(live->engine, sample);
    series_add(live->series, sample);
    live->touched = true;
    live->last_sample_ns = now_ns;
    if (sample->measurement == MEASUREMENT_HELLO)
        live->layout_changed = true;
}

static const char *take_rank_sample(struct jobs *jobs, const struct sample *sample, int64_t now_ns)
{
    struct live_job *live = find_cached(jobs, sample->job);
    if (live == NULL) {
        if (sample->measurement != MEASUREMENT_HELLO)
            return "unknown job: send hello first, or PUT its document to /api/v1/jobs/{job}";
        const char *cause = take_first_hello(jobs, sample, now_ns);
        if (cause != NULL)
            return cause;
        live = jobs->last_found;
    }
    const struct job *job = engine_job(live->engine);
    if (sample->measurement != MEASUREMENT_MARK) {
        if (sample->rank < 0 || sample->rank >= job->world_size) {
            live->refused_rank++;
            return "rank beyond the job's world_size";
        }
        if (is_foreign_host(job, sample)) {
            live->refused_host++;
            return "host is not the one that the rank's hello named";
        }
    }
    feed(live, sample, now_ns);
    return NULL;
}

/* Gauges and events name a host or a rack, not a job. */
static const char *take_host_sample(struct jobs *jobs, const struct sample *sample)
{
    AUTO_FREE char *host = xstrndup(sample->host.bytes, sample->host.length);
    AUTO_FREE char *rack = xstrndup(sample->rack.bytes, sample->rack.length);
    for (struct live_job *live = jobs->first; live != NULL; live = live->next) {
        const struct job *job = engine_job(live->engine);
        bool is_here = host[0] != '\0' ? job_find_tray(job, host) != JOB_NONE
                                       : job_find_rack(job, rack) != JOB_NONE;
        if (!is_here)
            continue;
        engine_feed(live->engine, sample); /* a monitor that goes on is no sign of a living job */
        series_add(live->series, sample);
        live->touched = true;
    }
    return NULL; /* recorded as an event whether or not a job runs there */
}

const char *jobs_take(struct jobs *jobs, const struct sample *sample, int64_t now_ns)
{
    bool names_host = sample->measurement == MEASUREMENT_GPU ||
                      sample->measurement == MEASUREMENT_EVENT;
    return names_host ? take_host_sample(jobs, sample) : take_rank_sample(jobs, sample, now_ns);
}

void jobs_learn_world(struct jobs *jobs, const struct world *world)
{
    if (!world->known || world->node_count == 0)
        return;
    forget_world(jobs);
    jobs->nodes = xcalloc(world->node_count, sizeof *jobs->nodes);
    jobs->node_count = world->node_count;
    for (size_t i = 0; i < world->node_count; i++) {
        const struct world_node *node = &world->nodes[i];
        jobs->nodes[i] = (struct known_node){
            .name = xstrdup(node->name),
            .rack = node->rack != NULL ? xstrdup(node->rack) : NULL,
            .nvlink_domain = node->nvlink_domain != NULL ? xstrdup(node->nvlink_domain) : NULL};
    }
}

void jobs_use_inventory(struct jobs *jobs, const struct inventory *inventory)
{
    jobs->inventory = inventory;
}

void jobs_note_verdict(struct live_job *live, const struct verdict *verdict)
{
    if (verdict->kind == VERDICT_INFO)
        return;
    for (size_t i = 0; i < live->open_count; i++) {
        if (live->open[i].scope != verdict->scope || strcmp(live->open[i].id, verdict->id) != 0)
            continue;
        verdict_done(&live->open[i]);
        live->open[i] = live->open[--live->open_count];
        break;
    }
    if (verdict->kind == VERDICT_CLEAR)
        return;
    live->open = array_grow(live->open, live->open_count, &live->open_capacity, sizeof *live->open);
    live->open[live->open_count++] = verdict_copy(verdict);
}

int32_t jobs_expire(struct jobs *jobs, int64_t now_ns, int64_t idle_ns)
{
    int32_t dropped = 0;
    for (struct live_job *live = jobs->first, *next; live != NULL; live = next) {
        next = live->next;
        if (live->first_seen_ns == 0)
            live->first_seen_ns = now_ns; /* put before a recording's time began */
        int64_t seen_ns = live->last_sample_ns > live->first_seen_ns ? live->last_sample_ns
                                                                     : live->first_seen_ns;
        if (now_ns - seen_ns < idle_ns)
            continue;
        unlink_job(jobs, live);
        dropped++;
    }
    return dropped;
}
