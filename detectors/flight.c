/* The store of what was recorded by rank and group, and the judge: of all that ranks wait for, the
 * suspects are those who wait for nobody themselves. Streams run in order, so only the operation
 * that a rank enqueued first and that still pends says what it waits in. */
#include "detectors/flight.h"

#include "detectors/flight_state.h"

#include <stdlib.h>
#include <string.h>

enum { TOLD_GROUPS_MOST = 4, TOLD_RANKS_MOST = 12 };

/* What the judge finds out about a rank. */
enum {
    MARK_AWAITED = 1,   /* somebody waits for it */
    MARK_WAITS = 2,     /* it waits for somebody */
    MARK_LEFT = 4,      /* its peers finished the operation that it is in */
    MARK_TRANSPORT = 8, /* all came to its operation and nobody finished it */
    MARK_ODD = 16,      /* it came with another operation than the rest */
};

static const char *const REASON_NAMES[FLIGHT_REASON_COUNT] = {
    [FLIGHT_NOTHING] = "nothing",         [FLIGHT_NEVER_ENTERED] = "never_entered",
    [FLIGHT_LEFT_BEHIND] = "left_behind", [FLIGHT_NO_RECORD] = "no_record",
    [FLIGHT_MISMATCH] = "mismatch",       [FLIGHT_TRANSPORT] = "transport",
};

const char *flight_reason_name(enum flight_reason reason)
{
    return REASON_NAMES[reason];
}

struct flight *flight_new(void)
{
    return xcalloc(1, sizeof(struct flight));
}

void flight_free(struct flight *flight)
{
    if (flight == NULL)
        return;
    for (size_t g = 0; g < flight->group_count; g++)
        xfree(flight->groups[g].members);
    for (int32_t r = 0; r < flight->rank_count; r++)
        xfree(flight->ranks[r].counts);
    xfree(flight->groups);
    xfree(flight->slots);
    xfree(flight->ranks);
    xfree(flight->behind);
    xfree(flight->dead);
    xfree(flight);
}

/* ---- the store ---- */

static size_t slot_of(const struct flight *flight, const char *name, const char *desc)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    for (const char *at = desc; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    size_t slot = (size_t)(hash % flight->slot_count);
    while (flight->slots[slot] != 0) {
        const struct flight_group *group = &flight->groups[flight->slots[slot] - 1];
        if (strcmp(group->name, name) == 0 && strcmp(group->desc, desc) == 0)
            break;
        slot = (slot + 1) % flight->slot_count;
    }
    return slot;
}

static void grow_slots(struct flight *flight)
{
    xfree(flight->slots);
    flight->slot_count = flight->slot_count > 0 ? 2 * flight->slot_count : 256;
    flight->slots = xcalloc(flight->slot_count, sizeof *flight->slots);
    for (size_t g = 0; g < flight->group_count; g++)
        flight->slots[slot_of(flight, flight->groups[g].name, flight->groups[g].desc)] =
            (int32_t)g + 1;
}

int32_t flight_group(struct flight *flight, const char *name, const char *desc)
{
    struct flight_group *group;
    size_t slot;

    if (strlen(name) >= FLIGHT_NAME_BYTES || strlen(desc) >= FLIGHT_NAME_BYTES)
        return FLIGHT_UNKNOWN;
    if (2 * (flight->group_count + 1) > flight->slot_count)
        grow_slots(flight);
    slot = slot_of(flight, name, desc);
    if (flight->slots[slot] != 0)
        return flight->slots[slot] - 1;
    flight->groups = array_grow(flight->groups, flight->group_count, &flight->group_capacity,
                                sizeof *flight->groups);
    group = &flight->groups[flight->group_count++];
    *group = (struct flight_group){.everyone = strcmp(desc, "default_pg") == 0};
    (void)text_copy(group->name, sizeof group->name, name);
    (void)text_copy(group->desc, sizeof group->desc, desc);
    flight->slots[slot] = (int32_t)flight->group_count;
    return (int32_t)flight->group_count - 1;
}

struct flight_rank *flight_rank(struct flight *flight, int64_t rank)
{
    if (rank < 0 || rank >= JOB_RANKS_MAX)
        return NULL;
    if (rank >= flight->rank_count) {
        int32_t count = (int32_t)rank + 1 + (int32_t)rank / 2;
        flight->ranks = xrealloc(flight->ranks, (size_t)count, sizeof *flight->ranks);
        for (int32_t r = flight->rank_count; r < count; r++)
            flight->ranks[r] = (struct flight_rank){.oldest = {.group = FLIGHT_UNKNOWN}};
        flight->rank_count = count;
    }
    return &flight->ranks[rank];
}

static const struct flight_count *find_count(const struct flight_rank *rank, int32_t group)
{
    for (size_t i = 0; i < rank->count_count; i++)
        if (rank->counts[i].group == group)
            return &rank->counts[i];
    return NULL;
}

struct flight_count *flight_count(struct flight_rank *rank, int32_t group)
{
    for (size_t i = 0; i < rank->count_count; i++)
        if (rank->counts[i].group == group)
            return &rank->counts[i];
    rank->counts = array_grow(rank->counts, rank->count_count, &rank->count_capacity,
                              sizeof *rank->counts);
    rank->counts[rank->count_count] = (struct flight_count){
        .group = group, .enqueued = FLIGHT_UNKNOWN, .completed = FLIGHT_UNKNOWN};
    return &rank->counts[rank->count_count++];
}

void flight_list(int32_t **list, size_t *count, size_t *capacity, int64_t rank)
{
    if (rank < 0 || rank >= JOB_RANKS_MAX || *count >= JOB_RANKS_MAX)
        return;
    *list = array_grow(*list, *count, capacity, sizeof **list);
    (*list)[(*count)++] = (int32_t)rank;
}

/* ---- reading ---- */

/* The digits at the end of the name's stem. */
static bool rank_of_name(const char *name, int64_t *ret_rank)
{
    const char *slash = strrchr(name, '/');
    const char *stem = slash != NULL ? slash + 1 : name;
    size_t end = strcspn(stem, "."), begin = end;

    while (begin > 0 && stem[begin - 1] >= '0' && stem[begin - 1] <= '9')
        begin--;
    return end > begin && text_parse_int((struct view){stem + begin, end - begin}, ret_rank);
}

enum status flight_add(struct flight *flight, const char *name, struct view bytes,
                       struct error *reterr)
{
    AUTO(json_free) struct json *root = NULL;
    size_t at = 0;
    int64_t rank;

    while (at < bytes.length && (bytes.bytes[at] == ' ' || bytes.bytes[at] == '\n' ||
                                 bytes.bytes[at] == '\r' || bytes.bytes[at] == '\t'))
        at++;
    AUTO_TEXT unpacked = {0};
    struct error error = {.status = OK};
    if (at < bytes.length && bytes.bytes[at] == (char)0x80) {
        if (flight_pickle_to_json(bytes, &unpacked, &error) != OK)
            return error_set(reterr, error.status, "%s: %s", name, error.message);
        bytes = (struct view){unpacked.bytes, unpacked.length};
        at = 0;
    }
    if (at == bytes.length || bytes.bytes[at] != '{') {
        flight_read_text(flight, bytes);
        return OK;
    }
    if (json_parse(bytes, &root, &error) != OK)
        return error_set(reterr, error.status, "%s: %s", name, error.message);
    if (json_get(root, "communicators") != NULL) {
        flight_read_ras(flight, root);
        return OK;
    }
    if (json_get(root, "entries") == NULL && json_get(root, "pg_status") == NULL)
        return error_set(reterr, ERR_INVALID, "%s: neither a flight recorder dump nor a RAS report",
                         name);
    if (!rank_of_name(name, &rank))
        return error_set(reterr, ERR_INVALID, "%s: no rank at the end of the name", name);
    return flight_read_dump(flight, rank, root, reterr);
}

/* ---- the judge ---- */

struct judge {
    const struct flight *flight;
    int32_t world;
    uint8_t *marks; /* by rank */
    int32_t *start; /* members of each group: list[start[g] .. start[g + 1]) */
    int32_t *list;
    struct flight_finding *finding;
    int told_groups;
    int32_t most_waiting;
};

static const struct flight_rank *record_of(const struct judge *judge, int32_t rank)
{
    static const struct flight_rank NONE = {.oldest = {.group = FLIGHT_UNKNOWN}};

    return rank < judge->flight->rank_count ? &judge->flight->ranks[rank] : &NONE;
}

static bool is_named(const struct flight_group *group)
{
    return group->members != NULL || group->everyone;
}

static int32_t members_most(const struct judge *judge, const struct flight_group *group)
{
    return group->members != NULL ? group->member_count : group->everyone ? judge->world : 0;
}

/* Member lists of all groups; where nothing names them, those who mention the group. */
static void lay_out(struct judge *judge)
{
    const struct flight *flight = judge->flight;
    size_t groups = flight->group_count, total = 0;
    int32_t ranks = flight->rank_count < judge->world ? flight->rank_count : judge->world;

    judge->start = xcalloc(groups + 2, sizeof *judge->start);
    for (size_t g = 0; g < groups; g++)
        judge->start[g + 1] = members_most(judge, &flight->groups[g]);
    for (int32_t r = 0; r < ranks; r++)
        for (size_t i = 0; i < flight->ranks[r].count_count; i++) {
            int32_t group = flight->ranks[r].counts[i].group;
            judge->start[group + 1] += !is_named(&flight->groups[group]);
        }
    for (size_t g = 0; g < groups; g++)
        judge->start[g + 1] += judge->start[g];
    total = (size_t)judge->start[groups];
    judge->list = xcalloc(total + 1, sizeof *judge->list);
    AUTO_FREE int32_t *fill = xcalloc(groups + 1, sizeof *fill);
    for (size_t g = 0; g < groups; g++)
        for (int32_t i = 0; i < members_most(judge, &flight->groups[g]); i++)
            judge->list[judge->start[g] + fill[g]++] = flight->groups[g].members != NULL
                                                           ? flight->groups[g].members[i]
                                                           : i;
    for (int32_t r = 0; r < ranks; r++)
        for (size_t i = 0; i < flight->ranks[r].count_count; i++) {
            int32_t group = flight->ranks[r].counts[i].group;
            if (!is_named(&flight->groups[group]))
                judge->list[judge->start[group] + fill[group]++] = r;
        }
}

static bool is_waiting_in(const struct judge *judge, int32_t rank, int32_t group, int64_t number)
{
    const struct flight_operation *oldest = &record_of(judge, rank)->oldest;

    return oldest->group == group && !oldest->point_to_point && oldest->number == number;
}

/* Does the member keep others from finishing this operation: it never came to it, or is at an
 * earlier one still. */
static bool is_missing(const struct judge *judge, int32_t rank, int32_t group, int64_t number)
{
    const struct flight_rank *record = record_of(judge, rank);
    const struct flight_count *count = find_count(record, group);

    if (is_waiting_in(judge, rank, group, number))
        return false;
    if (!record->recorded || count == NULL)
        return true;
    return (count->enqueued != FLIGHT_UNKNOWN && count->enqueued < number) ||
           (count->completed != FLIGHT_UNKNOWN && count->completed + 1 < number);
}

static bool has_finished(const struct judge *judge, int32_t rank, int32_t group, int64_t number)
{
    const struct flight_count *count = find_count(record_of(judge, rank), group);

    return count != NULL && count->completed != FLIGHT_UNKNOWN && count->completed >= number;
}

static void add_group_name(struct text *out, const struct flight_group *group)
{
    text_addf(out, "group %s", group->name[0] != '\0' ? group->name : "?");
    if (group->desc[0] != '\0')
        text_addf(out, " (%s)", group->desc);
}

/* "group 72 (EXPERT): nccl:all_to_all 45265 lacks ranks 9 14" */
static void tell_missing(struct judge *judge, int32_t group, int64_t number, const char *name)
{
    struct text *out = &judge->finding->lowest;
    int told = 0;

    if (judge->told_groups++ >= TOLD_GROUPS_MOST)
        return;
    text_add(out, out->length > 0 ? "; " : "");
    add_group_name(out, &judge->flight->groups[group]);
    text_addf(out, ": %s %lld lacks", name, (long long)number);
    for (int32_t i = judge->start[group]; i < judge->start[group + 1]; i++) {
        int32_t rank = judge->list[i];
        const struct flight_count *count = find_count(record_of(judge, rank), group);
        if (rank >= judge->world || !is_missing(judge, rank, group, number))
            continue;
        if (told++ >= TOLD_RANKS_MOST) {
            text_add(out, " and more");
            break;
        }
        text_addf(out, " %d", (int)rank);
        if (count != NULL && count->enqueued != FLIGHT_UNKNOWN)
            text_addf(out, " (at %lld)", (long long)count->enqueued);
    }
}

/* Operations whose members must bring the same amount. */
static bool is_even(const char *name)
{
    static const char *const EVEN[] = {"all_reduce", "ALLREDUCE", "broadcast",
                                       "BROADCAST",  "_base",     "reduce_scatter_tensor"};

    for (size_t i = 0; i < ARRAY_LEN(EVEN); i++)
        if (strstr(name, EVEN[i]) != NULL)
            return true;
    return false;
}

static bool is_same(const struct flight_operation *a, const struct flight_operation *b)
{
    return strcmp(a->name, b->name) == 0 && (!is_even(a->name) || a->elements == b->elements);
}

/* All came: do they do the same? Marks those that differ from the most. */
static bool mark_odd(struct judge *judge, int32_t group, int64_t number)
{
    const struct flight_operation *most = NULL;
    int32_t lead = 0, odd = 0;

    for (int32_t i = judge->start[group]; i < judge->start[group + 1]; i++) {
        const struct flight_operation *one = &record_of(judge, judge->list[i])->oldest;
        if (!is_waiting_in(judge, judge->list[i], group, number))
            continue;
        if (lead == 0)
            most = one;
        lead += is_same(most, one) ? 1 : -1;
    }
    for (int32_t i = judge->start[group]; i < judge->start[group + 1]; i++) {
        int32_t rank = judge->list[i];
        if (rank >= judge->world || !is_waiting_in(judge, rank, group, number) ||
            is_same(most, &record_of(judge, rank)->oldest))
            continue;
        judge->marks[rank] |= MARK_ODD;
        odd++;
    }
    return odd > 0;
}

/* One operation of a group: who is missing, and what that makes of those who wait in it. */
static void judge_operation(struct judge *judge, int32_t group, int64_t number, const char *name)
{
    int32_t missing = 0, waiting = 0;
    bool finished = false, odd = false;
    uint8_t mark;

    for (int32_t i = judge->start[group]; i < judge->start[group + 1]; i++) {
        int32_t rank = judge->list[i];
        if (rank >= judge->world)
            continue;
        waiting += is_waiting_in(judge, rank, group, number);
        finished = finished || has_finished(judge, rank, group, number);
        if (!is_missing(judge, rank, group, number))
            continue;
        judge->marks[rank] |= MARK_AWAITED;
        missing++;
    }
    if (missing > 0)
        tell_missing(judge, group, number, name);
    if (waiting > judge->most_waiting) {
        judge->most_waiting = waiting;
        text_clear(&judge->finding->waits_in);
        text_addf(&judge->finding->waits_in, "%s %lld of ", name, (long long)number);
        add_group_name(&judge->finding->waits_in, &judge->flight->groups[group]);
    }
    if (missing == 0 && !finished)
        odd = mark_odd(judge, group, number);
    mark = missing > 0 ? MARK_WAITS : finished ? MARK_LEFT : odd ? MARK_WAITS : MARK_TRANSPORT;
    for (int32_t i = judge->start[group]; i < judge->start[group + 1]; i++)
        if (judge->list[i] < judge->world && is_waiting_in(judge, judge->list[i], group, number))
            judge->marks[judge->list[i]] |= mark;
}

/* A group is judged when at least half of its members recorded something of it. Lines of the
 * watchdog that name no group may be of several ones: they are only held against each other when
 * all speak of the same operation. */
static bool is_judged(const struct judge *judge, int32_t group)
{
    const char *name = judge->flight->groups[group].name;
    int64_t number = FLIGHT_UNKNOWN;
    int32_t recorded = 0;

    for (int32_t i = judge->start[group]; i < judge->start[group + 1]; i++) {
        const struct flight_rank *record = record_of(judge, judge->list[i]);
        recorded += find_count(record, group) != NULL;
        if (record->oldest.group != group)
            continue;
        if (number != FLIGHT_UNKNOWN && record->oldest.number != number && strcmp(name, "?") == 0)
            return false;
        number = record->oldest.number;
    }
    return 2 * recorded >= judge->start[group + 1] - judge->start[group];
}

static void judge_group(struct judge *judge, int32_t group)
{
    if (!is_judged(judge, group))
        return;
    for (int32_t i = judge->start[group]; i < judge->start[group + 1]; i++) {
        int32_t rank = judge->list[i];
        const struct flight_operation *oldest = &record_of(judge, rank)->oldest;
        /* The mark says that this rank's operation has been judged with another's. */
        if (rank >= judge->world || oldest->group != group || oldest->point_to_point ||
            (judge->marks[rank] & (MARK_WAITS | MARK_LEFT | MARK_TRANSPORT)) != 0)
            continue;
        judge_operation(judge, group, oldest->number, oldest->name);
    }
}

/* A send or receive waits for its peer, unless that one stands in the other end of it. */
static void judge_pair(struct judge *judge, int32_t rank)
{
    const struct flight_operation *oldest = &record_of(judge, rank)->oldest;
    int32_t first = judge->start[oldest->group];
    int32_t members = judge->start[oldest->group + 1] - first;
    int32_t peer;

    if (oldest->peer < 0 || oldest->peer >= members)
        return;
    peer = judge->list[first + oldest->peer];
    if (peer >= judge->world || peer == rank)
        return;
    const struct flight_operation *other = &record_of(judge, peer)->oldest;
    if (other->group == oldest->group && other->point_to_point && other->peer >= 0 &&
        other->peer < members && judge->list[first + other->peer] == rank) {
        judge->marks[rank] |= MARK_TRANSPORT;
        return;
    }
    judge->marks[rank] |= MARK_WAITS;
    judge->marks[peer] |= MARK_AWAITED;
}

static size_t collect(struct judge *judge, uint8_t all_of, uint8_t none_of, bool recorded)
{
    struct flight_finding *finding = judge->finding;
    size_t before = finding->rank_count;

    for (int32_t r = 0; r < judge->world; r++) {
        if ((judge->marks[r] & all_of) != all_of || (judge->marks[r] & none_of) != 0 ||
            record_of(judge, r)->recorded != recorded)
            continue;
        finding->ranks[finding->rank_count++] = r;
    }
    return finding->rank_count - before;
}

static int compare_ranks(const void *a, const void *b)
{
    int32_t one = *(const int32_t *)a, other = *(const int32_t *)b;

    return (one > other) - (one < other);
}

/* The first reason that has ranks. */
static enum flight_reason conclude(struct judge *judge)
{
    struct flight_finding *finding = judge->finding;
    size_t never = collect(judge, MARK_AWAITED, MARK_WAITS | MARK_LEFT | MARK_TRANSPORT, true);
    size_t left = collect(judge, MARK_LEFT, MARK_WAITS, true);

    qsort(finding->ranks, finding->rank_count, sizeof *finding->ranks, compare_ranks);
    if (2 * (int64_t)never > finding->recorded) {
        /* Most never came: those who did went somewhere alone. */
        finding->rank_count = 0;
        (void)collect(judge, MARK_WAITS, 0, true);
        return FLIGHT_MISMATCH;
    }
    if (never > 0 || left > 0)
        return never > 0 ? FLIGHT_NEVER_ENTERED : FLIGHT_LEFT_BEHIND;
    if (2 * (int64_t)finding->recorded >= judge->world &&
        collect(judge, MARK_AWAITED, 0, false) > 0)
        return FLIGHT_NO_RECORD;
    if (collect(judge, MARK_ODD, 0, true) > 0)
        return FLIGHT_MISMATCH;
    if (collect(judge, MARK_TRANSPORT, MARK_WAITS, true) > 0)
        return FLIGHT_TRANSPORT;
    return FLIGHT_NOTHING;
}

/* RAS speaks where the dumps say nothing. */
static enum flight_reason judge_ras(struct judge *judge)
{
    const struct flight *flight = judge->flight;
    bool dead = flight->dead_count > 0;
    const int32_t *list = dead ? flight->dead : flight->behind;
    size_t count = dead ? flight->dead_count : flight->behind_count;
    struct flight_finding *finding = judge->finding;

    AUTO_FREE uint8_t *named = xcalloc((size_t)judge->world + 1, 1);
    int32_t distinct = 0;

    /* Ranks of a communicator that is not the whole job are not the job's. */
    if (count == 0 || (flight->ras_size > 0 && flight->ras_size != judge->world))
        return FLIGHT_NOTHING;
    for (size_t i = 0; i < count; i++)
        if (list[i] < judge->world) {
            distinct += named[list[i]] == 0;
            named[list[i]] = 1;
        }
    /* When most are behind, the few others ran ahead of them alone. */
    bool ahead = 2 * distinct > judge->world;
    finding->rank_count = 0;
    for (int32_t r = 0; r < judge->world; r++)
        if ((named[r] != 0) != ahead)
            finding->ranks[finding->rank_count++] = r;
    if (finding->rank_count == 0 || (ahead && dead))
        return FLIGHT_NOTHING;
    return dead ? FLIGHT_NO_RECORD : ahead ? FLIGHT_MISMATCH : FLIGHT_NEVER_ENTERED;
}

static void tell_unrecorded(struct judge *judge)
{
    struct flight_finding *finding = judge->finding;
    int told = 0;

    if (2 * (int64_t)finding->recorded < judge->world)
        return;
    for (int32_t r = 0; r < judge->world; r++) {
        if (record_of(judge, r)->recorded)
            continue;
        if (told++ == TOLD_RANKS_MOST) {
            text_add(&finding->unrecorded, " and more");
            return;
        }
        text_addf(&finding->unrecorded, told > 1 ? " %d" : "%d", (int)r);
    }
}

struct flight_finding flight_judge(const struct flight *flight, int32_t world_size)
{
    struct flight_finding finding = {.reason = FLIGHT_NOTHING};
    struct judge judge = {.flight = flight, .world = world_size, .finding = &finding};

    finding.ranks = xcalloc((size_t)world_size + 1, sizeof *finding.ranks);
    judge.marks = xcalloc((size_t)world_size + 1, 1);
    lay_out(&judge);
    for (int32_t r = 0; r < flight->rank_count && r < world_size; r++) {
        finding.recorded += flight->ranks[r].recorded;
        finding.waiting += flight->ranks[r].oldest.group != FLIGHT_UNKNOWN;
        if (flight->ranks[r].newest_ns > finding.newest_ns)
            finding.newest_ns = flight->ranks[r].newest_ns;
    }
    for (size_t g = 0; g < flight->group_count; g++)
        judge_group(&judge, (int32_t)g);
    for (int32_t r = 0; r < flight->rank_count && r < world_size; r++)
        if (flight->ranks[r].oldest.group != FLIGHT_UNKNOWN &&
            flight->ranks[r].oldest.point_to_point)
            judge_pair(&judge, r);
    tell_unrecorded(&judge);
    finding.reason = conclude(&judge);
    if (finding.reason == FLIGHT_NOTHING)
        finding.reason = judge_ras(&judge);
    xfree(judge.marks);
    xfree(judge.start);
    xfree(judge.list);
    return finding;
}

void flight_finding_done(struct flight_finding *finding)
{
    xfree(finding->ranks);
    text_done(&finding->waits_in);
    text_done(&finding->lowest);
    text_done(&finding->unrecorded);
    *finding = (struct flight_finding){.reason = FLIGHT_NOTHING};
}
