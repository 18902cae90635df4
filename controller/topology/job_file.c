/* The job document: read with every check that a wrong one could slip past, and written back. */
#include "controller/topology/job_file.h"

#include <assert.h>
#include <string.h>

static const char *const DIMENSION_NAMES[DIMENSION_COUNT] = {[DIMENSION_TP] = "tp",
                                                             [DIMENSION_CP] = "cp",
                                                             [DIMENSION_EP] = "ep",
                                                             [DIMENSION_DP] = "dp",
                                                             [DIMENSION_PP] = "pp"};
static const char *const COMPUTE_NAMES[] = {
    [COMPUTE_ABSENT] = "absent", [COMPUTE_KERNEL] = "kernel", [COMPUTE_INCLUSIVE] = "inclusive"};

/* ---- reading ---- */

/* A member of the wrong type is a mistake to be told, not a member that is missing. */
static enum status check_kind(const struct json *member, enum json_kind kind, const char *place,
                              struct error *reterr)
{
    static const char *const WORDS[] = {
        [JSON_NULL] = "null",       [JSON_BOOL] = "true or false", [JSON_NUMBER] = "a number",
        [JSON_STRING] = "a string", [JSON_ARRAY] = "an array",     [JSON_OBJECT] = "an object"};
    if (member == NULL || json_kind(member) == JSON_NULL || json_kind(member) == kind)
        return OK;
    return error_set(reterr, ERR_INVALID, "%s: must be %s", place, WORDS[kind]);
}

static bool is_whole_or_missing(const struct json *object, const char *key)
{
    const struct json *member = json_get(object, key);
    return json_kind(member) == JSON_NULL || json_int(member, 0) == json_int(member, 1);
}

static enum status read_sizes(struct job *job, const struct json *parallel, struct error *reterr)
{
    for (int d = 0; d < DIMENSION_COUNT; d++) {
        const struct json *member = json_get(parallel, DIMENSION_NAMES[d]);
        bool is_missing = json_kind(member) == JSON_NULL;
        int64_t size = is_missing ? (d == DIMENSION_DP ? 0 : 1) : json_int(member, -1);
        if (size > JOB_RANKS_MAX || (size < 1 && !is_missing))
            return error_set(reterr, ERR_INVALID,
                             "parallel.%s: must be a whole number from 1 to %d", DIMENSION_NAMES[d],
                             JOB_RANKS_MAX);
        job->size[d] = (int32_t)size;
    }
    return OK;
}

/* ep either multiplies into the world like the others, or cuts dp into runs of replicas. */
static enum status check_sizes(struct job *job, struct error *reterr)
{
    int64_t others = (int64_t)job->size[DIMENSION_TP] * job->size[DIMENSION_CP] *
                     job->size[DIMENSION_PP];
    int64_t ep = job->size[DIMENSION_EP];
    int64_t dp = job->size[DIMENSION_DP];
    if (others > job->world_size) /* also keeps the products below within 64 bits */
        return error_set(reterr, ERR_INVALID, "parallel: tp*cp*pp=%lld is over world_size=%d",
                         (long long)others, job->world_size);
    if (dp == 0) {
        if (job->world_size % others != 0)
            return error_set(reterr, ERR_INVALID,
                             "parallel: tp*cp*pp=%lld does not divide world_size=%d",
                             (long long)others, job->world_size);
        dp = job->world_size / others;
        job->size[DIMENSION_DP] = (int32_t)dp;
    }
    if (others * dp == job->world_size) {
        if (dp % ep != 0)
            return error_set(reterr, ERR_INVALID, "parallel.ep: %lld does not divide dp=%lld",
                             (long long)ep, (long long)dp);
        return OK;
    }
    if (others * dp * ep == job->world_size)
        return OK;
    return error_set(reterr, ERR_INVALID, "parallel: tp*cp*dp*pp=%lld is not world_size=%d",
                     (long long)(others * dp), job->world_size);
}

static int dimension_find(struct view name)
{
    for (int d = 0; d < DIMENSION_COUNT; d++)
        if (view_equals(name, DIMENSION_NAMES[d]))
            return d;
    return DIMENSION_COUNT;
}

/* "tp-dp-pp": fastest-changing first. Dimensions of size 1 that are not named change nowhere. */
static enum status read_order(struct job *job, const char *order, struct error *reterr)
{
    unsigned seen = 0;
    int count = 0;
    for (const char *at = order; *at != '\0';) {
        size_t length = strcspn(at, "-");
        int dimension = dimension_find((struct view){at, length});
        if (dimension == DIMENSION_COUNT || (seen >> dimension & 1u))
            return error_set(
                reterr, ERR_INVALID,
                "parallel.order: '%s' must name tp, cp, ep, dp, pp once each, joined by '-'",
                order);
        seen |= 1u << dimension;
        job->order[count++] = (enum parallel_dimension)dimension;
        at += length + (at[length] == '-' ? 1 : 0);
    }
    for (int d = 0; d < DIMENSION_COUNT; d++) {
        if (seen >> d & 1u)
            continue;
        if (job->size[d] > 1 && d != DIMENSION_EP)
            return error_set(reterr, ERR_INVALID, "parallel.order: '%s' leaves out %s=%d", order,
                             DIMENSION_NAMES[d], job->size[d]);
        job->order[count++] = (enum parallel_dimension)d;
    }
    return OK;
}

static enum status read_parallel(struct job *job, const struct json *parallel, struct error *reterr)
{
    if (parallel == NULL)
        return OK; /* pure data parallelism, as job_new made it */
    if (json_kind(parallel) != JSON_OBJECT)
        return error_set(reterr, ERR_INVALID, "parallel: must be an object");
    TRY(read_sizes(job, parallel, reterr));
    TRY(check_sizes(job, reterr));
    TRY(check_kind(json_get(parallel, "order"), JSON_STRING, "parallel.order", reterr));
    return read_order(job, json_get_string(parallel, "order", "tp-cp-ep-dp-pp"), reterr);
}

static enum status read_compute(struct job *job, const struct json *root, struct error *reterr)
{
    TRY(check_kind(json_get(root, "compute_ms"), JSON_STRING, "compute_ms", reterr));
    const char *word = json_get_string(root, "compute_ms", "kernel");
    for (int i = 0; i <= COMPUTE_INCLUSIVE; i++)
        if (strcmp(word, COMPUTE_NAMES[i]) == 0) {
            job->compute = (enum compute_meaning)i;
            return OK;
        }
    return error_set(reterr, ERR_INVALID, "compute_ms: '%s' must be kernel, inclusive or absent",
                     word);
}

static enum status read_rack(struct job *job, const struct json *rack, int index,
                             struct error *reterr)
{
    const char *name = json_get_string(rack, "rack", NULL);
    if (name == NULL || name[0] == '\0')
        return error_set(reterr, ERR_INVALID, "topology.racks[%d].rack: a name is missing", index);
    if (job_find_rack(job, name) != JOB_NONE)
        return error_set(reterr, ERR_INVALID, "topology.racks[%d].rack: '%s' stands twice", index,
                         name);
    if (json_get(rack, "trays") != NULL && json_kind(json_get(rack, "trays")) != JSON_ARRAY)
        return error_set(reterr, ERR_INVALID, "topology.racks[%d].trays: must be an array", index);
    int32_t at = job_intern_rack(job, name, json_get_string(rack, "nvlink_domain", NULL));
    int tray_index = 0;
    for (const struct json *tray = json_first(json_get(rack, "trays")); tray != NULL;
         tray = json_next(tray)) {
        const char *node = json_string(tray, NULL);
        if (node == NULL || node[0] == '\0')
            return error_set(reterr, ERR_INVALID,
                             "topology.racks[%d].trays[%d]: must be a node name", index,
                             tray_index);
        int32_t found = job_find_tray(job, node);
        if (found != JOB_NONE)
            return error_set(reterr, ERR_INVALID,
                             "topology.racks[%d].trays[%d]: '%s' stands in rack '%s' already",
                             index, tray_index, node, job->racks[job->trays[found].rack].name);
        job_intern_tray(job, node, at);
        tray_index++;
    }
    return OK;
}

static enum status read_topology(struct job *job, const struct json *topology, struct error *reterr)
{
    int index = 0;
    TRY(check_kind(topology, JSON_OBJECT, "topology", reterr));
    TRY(check_kind(json_get(topology, "racks"), JSON_ARRAY, "topology.racks", reterr));
    for (const struct json *rack = json_first(json_get(topology, "racks")); rack != NULL;
         rack = json_next(rack))
        TRY(read_rack(job, rack, index++, reterr));
    return OK;
}

enum { GPUS_PER_NODE_MAX = 1024 };

static enum status read_rank(struct job *job, const struct json *item, int index, bool *seen,
                             struct error *reterr)
{
    int64_t rank = json_get_int(item, "rank", -1);
    const char *node = json_get_string(item, "node", NULL);
    int64_t gpu = json_get_int(item, "gpu", JOB_NONE);
    int64_t rail = json_get_int(item, "rail", gpu);
    if (!is_whole_or_missing(item, "rank") || json_get(item, "rank") == NULL)
        return error_set(reterr, ERR_INVALID, "ranks[%d].rank: must be a whole number", index);
    if (rank < 0 || rank >= job->world_size)
        return error_set(reterr, ERR_INVALID, "ranks[%d].rank: %lld is beyond world_size=%d", index,
                         (long long)rank, job->world_size);
    if (seen[rank])
        return error_set(reterr, ERR_INVALID, "ranks[%d].rank: %lld stands twice", index,
                         (long long)rank);
    seen[rank] = true;
    if (node == NULL || node[0] == '\0')
        return error_set(reterr, ERR_INVALID, "ranks[%d].node: a node name is missing", index);
    int32_t tray = job_find_tray(job, node);
    if (tray == JOB_NONE && job->rack_count > 0)
        return error_set(
            reterr, ERR_INVALID,
            "ranks[%d].node: '%s' is in no rack; add it to the trays of a rack in topology.racks",
            index, node);
    if (!is_whole_or_missing(item, "gpu") || gpu < JOB_NONE || gpu >= GPUS_PER_NODE_MAX)
        return error_set(reterr, ERR_INVALID, "ranks[%d].gpu: must be a whole number below %d",
                         index, GPUS_PER_NODE_MAX);
    if (!is_whole_or_missing(item, "rail") || rail < JOB_NONE || rail >= GPUS_PER_NODE_MAX)
        return error_set(reterr, ERR_INVALID, "ranks[%d].rail: must be a whole number below %d",
                         index, GPUS_PER_NODE_MAX);
    job->ranks[rank] = (struct job_rank){
        .tray = tray != JOB_NONE ? tray : job_intern_tray(job, node, JOB_NONE),
        .gpu = (int16_t)gpu,
        .rail = (int16_t)rail};
    return OK;
}

static enum status read_ranks(struct job *job, const struct json *ranks, struct error *reterr)
{
    AUTO_FREE bool *seen = xcalloc((size_t)job->world_size, sizeof *seen);
    int index = 0;
    TRY(check_kind(ranks, JSON_ARRAY, "ranks", reterr));
    for (const struct json *item = json_first(ranks); item != NULL; item = json_next(item))
        TRY(read_rank(job, item, index++, seen, reterr));
    return OK;
}

static enum status read_checkpoint(struct job *job, const struct json *checkpoint,
                                   struct error *reterr)
{
    TRY(check_kind(checkpoint, JSON_OBJECT, "checkpoint", reterr));
    TRY(check_kind(json_get(checkpoint, "time"), JSON_STRING, "checkpoint.time", reterr));
    if (!is_whole_or_missing(checkpoint, "step"))
        return error_set(reterr, ERR_INVALID, "checkpoint.step: must be a whole number");
    const char *time = json_get_string(checkpoint, "time", NULL);
    job->checkpoint_step = json_get_int(checkpoint, "step", JOB_NONE);
    if (time != NULL && !text_parse_time(view_of(time), &job->checkpoint_time_ns))
        return error_set(reterr, ERR_INVALID,
                         "checkpoint.time: '%s' is not a UTC time such as 2026-05-28T20:29:02Z",
                         time);
    return OK;
}

enum { WORKLOAD_DEPTH_MAX = 16, WORKLOAD_BYTES_MAX = 65536 };

static bool is_deeper_than(const struct json *json, int levels)
{
    for (const struct json *child = json_first(json); child != NULL; child = json_next(child))
        if (levels == 0 || is_deeper_than(child, levels - 1))
            return true;
    return false;
}

/* Kept as it is and written into records: bounded, so that those can be read again. */
static enum status read_workload(struct job *job, const struct json *workload, struct error *reterr)
{
    AUTO_TEXT text = {0};
    if (workload == NULL || json_kind(workload) == JSON_NULL)
        return OK;
    if (json_get_string(workload, "kind", NULL) == NULL)
        return error_set(reterr, ERR_INVALID, "workload.kind: is missing");
    if (is_deeper_than(workload, WORKLOAD_DEPTH_MAX))
        return error_set(reterr, ERR_INVALID, "workload: is nested deeper than %d levels",
                         WORKLOAD_DEPTH_MAX);
    json_print(workload, &text);
    if (text.length > WORKLOAD_BYTES_MAX)
        return error_set(reterr, ERR_INVALID, "workload: is over %d bytes", WORKLOAD_BYTES_MAX);
    job->workload_json = text_take(&text);
    return OK;
}

static enum status fill(struct job *job, const struct json *root, struct error *reterr)
{
    TRY(read_parallel(job, json_get(root, "parallel"), reterr));
    TRY(read_compute(job, root, reterr));
    TRY(read_topology(job, json_get(root, "topology"), reterr));
    TRY(read_ranks(job, json_get(root, "ranks"), reterr));
    TRY(read_checkpoint(job, json_get(root, "checkpoint"), reterr));
    return read_workload(job, json_get(root, "workload"), reterr);
}

enum status job_file_parse(struct view bytes, struct job **ret_job, struct error *reterr)
{
    AUTO(json_free) struct json *root = NULL;
    TRY(json_parse(bytes, &root, reterr));
    const char *name = json_get_string(root, "job", NULL);
    int64_t world_size = json_get_int(root, "world_size", 0);
    if (json_kind(root) != JSON_OBJECT)
        return error_set(reterr, ERR_INVALID, "a job document is an object");
    if (name == NULL || name[0] == '\0' || strlen(name) >= JOB_NAME_BYTES)
        return error_set(reterr, ERR_INVALID, "job: a name of at most %d bytes is missing",
                         JOB_NAME_BYTES - 1);
    if (world_size < 1 || world_size > JOB_RANKS_MAX)
        return error_set(reterr, ERR_INVALID, "world_size: must be a whole number from 1 to %d",
                         JOB_RANKS_MAX);
    AUTO(job_free) struct job *job = job_new(name, (int32_t)world_size);
    TRY(fill(job, root, reterr));
    *ret_job = TAKE(job);
    return OK;
}

/* ---- writing ---- */

static void write_parallel(const struct job *job, struct json_writer *writer)
{
    AUTO_TEXT order = {0};
    json_add_key(writer, "parallel");
    json_open_object(writer);
    for (int d = 0; d < DIMENSION_COUNT; d++) {
        json_put_int(writer, DIMENSION_NAMES[d], job->size[d]);
        text_addf(&order, "%s%s", d > 0 ? "-" : "", DIMENSION_NAMES[job->order[d]]);
    }
    json_put_string(writer, "order", order.bytes);
    json_close(writer);
}

static void write_topology(const struct job *job, struct json_writer *writer)
{
    json_add_key(writer, "topology");
    json_open_object(writer);
    json_add_key(writer, "racks");
    json_open_array(writer);
    for (int32_t r = 0; r < job->rack_count; r++) {
        json_open_object(writer);
        json_put_string(writer, "rack", job->racks[r].name);
        json_put_string(writer, "nvlink_domain", job->racks[r].nvlink_domain);
        json_add_key(writer, "trays");
        json_open_array(writer);
        for (int32_t t = 0; t < job->tray_count; t++)
            if (job->trays[t].rack == r)
                json_add_string(writer, job->trays[t].node);
        json_close(writer);
        json_close(writer);
    }
    json_close(writer);
    json_close(writer);
}

static void write_ranks(const struct job *job, struct json_writer *writer)
{
    json_add_key(writer, "ranks");
    json_open_array(writer);
    for (int32_t r = 0; r < job->world_size; r++) {
        const struct job_rank *rank = &job->ranks[r];
        /* A node outside all racks may only be written where there are none: the document must read
         * back. */
        if (rank->tray == JOB_NONE ||
            (job->rack_count > 0 && job->trays[rank->tray].rack == JOB_NONE))
            continue;
        json_open_object(writer);
        json_put_int(writer, "rank", r);
        json_put_string(writer, "node", job->trays[rank->tray].node);
        if (rank->gpu != JOB_NONE)
            json_put_int(writer, "gpu", rank->gpu);
        if (rank->rail != JOB_NONE)
            json_put_int(writer, "rail", rank->rail);
        json_close(writer);
    }
    json_close(writer);
}

void job_file_write(const struct job *job, struct json_writer *writer)
{
    json_open_object(writer);
    json_put_string(writer, "job", job->name);
    json_put_int(writer, "world_size", job->world_size);
    if (job->workload_json != NULL) {
        json_add_key(writer, "workload");
        json_add_raw(writer, view_of(job->workload_json));
    }
    if (job->checkpoint_step != JOB_NONE) {
        json_add_key(writer, "checkpoint");
        json_open_object(writer);
        json_put_int(writer, "step", job->checkpoint_step);
        if (job->checkpoint_time_ns > 0)
            json_put_time(writer, "time", job->checkpoint_time_ns);
        json_close(writer);
    }
    write_parallel(job, writer);
    json_put_string(writer, "compute_ms", COMPUTE_NAMES[job->compute]);
    write_topology(job, writer);
    write_ranks(job, writer);
    json_close(writer);
}
