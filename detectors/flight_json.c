/* Flight Recorder dumps and RAS reports as JSON. Numbers may be written as strings; the state of an
 * operation may stay `scheduled` for ever (gloo), then only `retired` tells that it is over. */
#include "detectors/flight_state.h"

#include <string.h>

enum { GROUPS_MAX = 4096, IDS_MAX = 4096 };

/* An integer that may be a string. */
static int64_t int_of(const struct json *json, int64_t fallback)
{
    int64_t value;

    if (json_kind(json) == JSON_STRING && text_parse_int(view_of(json_string(json, "")), &value))
        return value;
    return json_int(json, fallback);
}

static int64_t get_int(const struct json *object, const char *key)
{
    return int_of(json_get(object, key), FLIGHT_UNKNOWN);
}

static void add_member(struct flight_group *group, int64_t rank)
{
    if (rank < 0 || rank >= JOB_RANKS_MAX)
        return;
    /* Room doubles at powers of two. */
    if ((group->member_count & (group->member_count - 1)) == 0)
        group->members = xrealloc(group->members,
                                  group->member_count > 0 ? (size_t)group->member_count * 2 : 1,
                                  sizeof *group->members);
    group->members[group->member_count++] = (int32_t)rank;
}

/* Members as "[0, 1]" or as an array. */
static void read_members(struct flight_group *group, const struct json *ranks)
{
    const char *at = json_string(ranks, "");

    if (json_kind(ranks) == JSON_ARRAY)
        for (const struct json *one = json_first(ranks); one != NULL; one = json_next(one))
            add_member(group, int_of(one, FLIGHT_UNKNOWN));
    while (*at != '\0') {
        size_t digits = strspn(at, "0123456789");
        int64_t rank;
        if (digits > 0 && text_parse_int((struct view){at, digits}, &rank))
            add_member(group, rank);
        at += digits > 0 ? digits : 1;
    }
}

static void read_groups(struct flight *flight, const struct json *config)
{
    for (const struct json *one = json_first(config); one != NULL; one = json_next(one)) {
        int32_t index = flight_group(flight, json_get_string(one, "name", ""),
                                     json_get_string(one, "desc", ""));
        if (index == FLIGHT_UNKNOWN || flight->groups[index].members != NULL)
            continue;
        read_members(&flight->groups[index], json_get(one, "ranks"));
    }
}

/* "nccl:send 0->3", "nccl:recv 0<-1": the peer's index in the group. */
static bool parse_peer(const char *name, int32_t *ret_peer)
{
    const char *arrow = strstr(name, "->") != NULL ? strstr(name, "->") : strstr(name, "<-");
    int64_t peer;

    if (arrow == NULL || !text_parse_int(view_of(arrow + 2), &peer) || peer < 0 ||
        peer >= JOB_RANKS_MAX)
        return false;
    *ret_peer = (int32_t)peer;
    return true;
}

static int64_t count_elements(const struct json *sizes)
{
    int64_t total = 0;

    for (const struct json *one = json_first(sizes); one != NULL; one = json_next(one)) {
        double product = 1;
        for (const struct json *size = json_first(one); size != NULL; size = json_next(size))
            product *= (double)int_of(size, 0);
        if (product >= 0 && product < 1e15)
            total += (int64_t)product;
    }
    return total;
}

static bool is_pending(const struct json *entry)
{
    return !json_get_bool(entry, "retired", false) &&
           strcmp(json_get_string(entry, "state", ""), "completed") != 0;
}

/* Which group a number in pg_status means: entries name both. */
struct id_map {
    int64_t id;
    int32_t group;
};

static int32_t find_group(const struct id_map *map, size_t count, int64_t id)
{
    for (size_t i = 0; i < count; i++)
        if (map[i].id == id)
            return map[i].group;
    return FLIGHT_UNKNOWN;
}

/* A count that the group had; sends and receives would make collectives of it look newer. */
static void read_entry(struct flight *flight, struct flight_rank *rank, const struct json *entry,
                       int32_t group)
{
    const char *name = json_get_string(entry, "profiling_name", "");
    int64_t number = get_int(entry, "collective_seq_id");
    int64_t created_ns = get_int(entry, "time_created_ns");
    struct flight_operation operation = {.group = group,
                                         .number = number,
                                         .elements = count_elements(json_get(entry, "input_sizes")),
                                         .peer = FLIGHT_UNKNOWN};

    bool has_peer = parse_peer(name, &operation.peer);
    operation.point_to_point = has_peer || json_get_bool(entry, "is_p2p", false);
    (void)text_copy(operation.name, sizeof operation.name, name);
    if (operation.point_to_point)
        flight->groups[group].point_to_point = true;
    struct flight_count *count = flight_count(rank, group);
    if (!operation.point_to_point && number > count->enqueued)
        count->enqueued = number;
    if (created_ns > rank->newest_ns)
        rank->newest_ns = created_ns;
    if (!is_pending(entry)) {
        if (!operation.point_to_point && number > count->completed)
            count->completed = number;
        return;
    }
    if (rank->oldest.group == FLIGHT_UNKNOWN)
        rank->oldest = operation;
}

/* Counters of groups whose number the entries explain. Where sends and receives share them, only
 * the entries count. */
static void read_status(const struct flight *flight, struct flight_rank *rank,
                        const struct json *status, const struct id_map *map, size_t map_count)
{
    for (const struct json *one = json_first(status); one != NULL; one = json_next(one)) {
        int64_t id;
        int32_t group = text_parse_int(view_of(json_key(one)), &id) ? find_group(map, map_count, id)
                                                                    : FLIGHT_UNKNOWN;
        int64_t enqueued = get_int(one, "last_enqueued_collective");
        int64_t completed = get_int(one, "last_completed_collective");

        if (group == FLIGHT_UNKNOWN || flight->groups[group].point_to_point)
            continue;
        struct flight_count *count = flight_count(rank, group);
        if (enqueued > count->enqueued)
            count->enqueued = enqueued;
        if (completed > count->completed)
            count->completed = completed;
    }
}

enum status flight_read_dump(struct flight *flight, int64_t rank_number, const struct json *dump,
                             struct error *reterr)
{
    struct flight_rank *rank = flight_rank(flight, rank_number);
    AUTO_FREE struct id_map *map = xcalloc(IDS_MAX, sizeof *map);
    size_t map_count = 0;
    const struct json *entries = json_get(dump, "entries");

    if (rank == NULL)
        return error_set(reterr, ERR_INVALID, "rank %lld is out of bounds", (long long)rank_number);
    if (json_size(json_get(dump, "pg_config")) > GROUPS_MAX)
        return error_set(reterr, ERR_LIMIT, "more than %d process groups", GROUPS_MAX);
    rank->recorded = true;
    read_groups(flight, json_get(dump, "pg_config"));
    for (const struct json *entry = json_first(entries); entry != NULL; entry = json_next(entry)) {
        const struct json *pair = json_first(json_get(entry, "process_group"));
        int32_t group = flight_group(flight, json_string(pair, ""),
                                     json_string(pair != NULL ? json_next(pair) : NULL, ""));
        int64_t id = get_int(entry, "pg_id");

        if (pair == NULL || group == FLIGHT_UNKNOWN)
            continue;
        read_entry(flight, rank, entry, group);
        if (find_group(map, map_count, id) == FLIGHT_UNKNOWN && map_count < IDS_MAX)
            map[map_count++] = (struct id_map){.id = id, .group = group};
    }
    read_status(flight, rank, json_get(dump, "pg_status"), map, map_count);
    return OK;
}

/* ---- NCCL RAS ---- */

static int64_t launched(const struct json *rank)
{
    int64_t sum = 0;

    for (const struct json *one = json_first(json_get(rank, "collective_counts")); one != NULL;
         one = json_next(one)) {
        int64_t count = int_of(one, 0);
        sum += count > 0 && count < INT64_C(1) << 40 ? count : 0;
    }
    return sum;
}

static void read_communicator(struct flight *flight, const struct json *communicator)
{
    const struct json *ranks = json_get(communicator, "ranks");
    int64_t most = 0, size = get_int(communicator, "size");

    if (size <= flight->ras_size || size > JOB_RANKS_MAX)
        return;
    flight->ras_size = (int32_t)size;
    flight->behind_count = flight->dead_count = 0;
    for (const struct json *one = json_first(ranks); one != NULL; one = json_next(one))
        most = launched(one) > most ? launched(one) : most;
    for (const struct json *one = json_first(ranks); one != NULL; one = json_next(one))
        if (launched(one) < most)
            flight_list(&flight->behind, &flight->behind_count, &flight->behind_capacity,
                        get_int(one, "rank"));
    for (const struct json *one = json_first(json_get(communicator, "missing_ranks")); one != NULL;
         one = json_next(one))
        flight_list(&flight->dead, &flight->dead_count, &flight->dead_capacity,
                    get_int(one, "rank"));
}

void flight_read_ras(struct flight *flight, const struct json *report)
{
    for (const struct json *one = json_first(json_get(report, "communicators")); one != NULL;
         one = json_next(one))
        read_communicator(flight, one);
}
