/* Watchdog lines of ProcessGroupNCCL and the text of `ncclras`, line by line. Both changed their
 * spelling between versions; what is looked for are the parts that stayed. */
#include "detectors/flight_state.h"

#include <string.h>

enum { LINE_MOST = 4096 };

/* The integer right behind a word of the line. */
static bool number_behind(const char *line, const char *word, int64_t *ret_value)
{
    const char *at = strstr(line, word);
    size_t digits = at != NULL ? strspn(at + strlen(word), "0123456789") : 0;

    return digits > 0 && text_parse_int((struct view){at + strlen(word), digits}, ret_value);
}

/* The rank that speaks: of the prefix that the launcher puts there, which is the rank in the job,
 * else the one in the group. */
static bool speaker(const char *line, int64_t *ret_rank)
{
    return number_behind(line, "[rank", ret_rank) || number_behind(line, "Rank ", ret_rank);
}

static int32_t unnamed_group(struct flight *flight)
{
    int32_t group = flight_group(flight, "?", "");

    flight->groups[group].everyone = true;
    return group;
}

/* "[PG 0 (default_pg) Rank 3]", "[PG ID 2 PG GUID 35(TENSOR_PARALLEL) Rank 3]"; older lines name no
 * group, and share the one without a name. */
static int32_t group_of_line(struct flight *flight, const char *line)
{
    char name[FLIGHT_NAME_BYTES] = "", desc[FLIGHT_NAME_BYTES] = "";
    int64_t number;
    const char *open;

    if (!number_behind(line, "PG GUID ", &number) && !number_behind(line, "[PG ", &number))
        return unnamed_group(flight);
    AUTO_TEXT digits = {0};
    text_addf(&digits, "%lld", (long long)number);
    (void)text_copy(name, sizeof name, digits.bytes);
    open = strstr(line, "[PG ");
    open = open != NULL ? strchr(open, '(') : NULL;
    if (open != NULL && strchr(open, ')') != NULL) {
        size_t length = (size_t)(strchr(open, ')') - open) - 1;
        if (length < sizeof desc) {
            memcpy(desc, open + 1, length);
            desc[length] = '\0';
        }
    }
    return flight_group(flight, name, desc);
}

static void read_operation(const char *line, struct flight_operation *operation)
{
    const char *at = strstr(line, "OpType=");
    size_t length = at != NULL ? strcspn(at + 7, ",) ") : 0;

    if (length > 0 && length < sizeof operation->name) {
        memcpy(operation->name, at + 7, length);
        operation->name[length] = '\0';
    }
    if (!number_behind(line, "NumelIn=", &operation->elements))
        operation->elements = 0;
}

/* A collective of this rank that timed out. */
static void read_watchdog(struct flight *flight, const char *line)
{
    struct flight_operation operation = {.peer = FLIGHT_UNKNOWN};
    int64_t number = FLIGHT_UNKNOWN, enqueued, completed = FLIGHT_UNKNOWN, speaks;
    int32_t group;

    if (!speaker(line, &speaks) || (!number_behind(line, "SeqNum=", &number) &&
                                    !number_behind(line, "Timeout at NCCL work: ", &number)))
        return;
    group = group_of_line(flight, line);
    struct flight_rank *rank = flight_rank(flight, speaks);
    if (rank == NULL || group == FLIGHT_UNKNOWN)
        return;
    rank->recorded = true;
    struct flight_count *count = flight_count(rank, group);
    if (!number_behind(line, "last enqueued NCCL work: ", &enqueued))
        enqueued = number;
    (void)number_behind(line, "last completed NCCL work: ", &completed);
    count->enqueued = enqueued > count->enqueued ? enqueued : count->enqueued;
    count->completed = completed > count->completed ? completed : count->completed;
    operation.group = group;
    operation.number = number;
    read_operation(line, &operation);
    if (rank->oldest.group == FLIGHT_UNKNOWN ||
        (rank->oldest.group == group && number < rank->oldest.number))
        rank->oldest = operation;
}

/* RAS lists the ranks of its smaller sets below the line that counts them. */
struct ras_reading {
    bool inside;     /* a MISMATCH of operation counts is being told */
    int64_t lowest;  /* operations of the set that is furthest behind; FLIGHT_UNKNOWN */
    int64_t current; /* of the set whose ranks are listed now */
    int64_t ranks;   /* of all sets */
    int32_t *listed; /* ranks that were listed, with their set's operations */
    int64_t *counts;
    size_t count, capacity;
};

/* All ranks but those that were listed. */
static void list_others(struct flight *flight, const struct ras_reading *ras)
{
    AUTO_FREE uint8_t *listed = xcalloc((size_t)ras->ranks + 1, 1);

    for (size_t i = 0; i < ras->count; i++)
        if (ras->listed[i] < ras->ranks)
            listed[ras->listed[i]] = 1;
    for (int32_t r = 0; r < ras->ranks; r++)
        if (listed[r] == 0)
            flight_list(&flight->behind, &flight->behind_count, &flight->behind_capacity, r);
}

/* The ranks of the set that is furthest behind: those listed under it, or, where it is the large
 * one that is not listed, all others. */
static void end_mismatch(struct flight *flight, struct ras_reading *ras)
{
    bool is_listed = false;

    for (size_t i = 0; i < ras->count; i++)
        is_listed = is_listed || ras->counts[i] == ras->lowest;
    if (ras->inside && ras->lowest != FLIGHT_UNKNOWN && ras->ranks > flight->ras_size &&
        ras->ranks <= JOB_RANKS_MAX) {
        flight->ras_size = (int32_t)ras->ranks;
        flight->behind_count = 0;
        for (size_t i = 0; i < ras->count && is_listed; i++)
            if (ras->counts[i] == ras->lowest)
                flight_list(&flight->behind, &flight->behind_count, &flight->behind_capacity,
                            ras->listed[i]);
        if (!is_listed)
            list_others(flight, ras);
    }
    ras->inside = false;
    ras->count = 0;
    ras->ranks = 0;
    ras->lowest = ras->current = FLIGHT_UNKNOWN;
}

static void list_rank(struct ras_reading *ras, int64_t rank)
{
    if (rank < 0 || rank >= JOB_RANKS_MAX)
        return;
    if (ras->count == ras->capacity) {
        ras->capacity = ras->capacity > 0 ? 2 * ras->capacity : 64;
        ras->listed = xrealloc(ras->listed, ras->capacity, sizeof *ras->listed);
        ras->counts = xrealloc(ras->counts, ras->capacity, sizeof *ras->counts);
    }
    ras->listed[ras->count] = (int32_t)rank;
    ras->counts[ras->count++] = ras->current;
}

static void read_ras_line(struct flight *flight, struct ras_reading *ras, const char *line)
{
    int64_t value, ranks;
    const char *text = line + strspn(line, " ");

    if (strstr(line, "operation counts") != NULL) {
        end_mismatch(flight, ras);
        ras->inside = true;
        return;
    }
    if (number_behind(line, "The missing rank: ", &value))
        flight_list(&flight->dead, &flight->dead_count, &flight->dead_capacity, value);
    if (!ras->inside)
        return;
    if (number_behind(line, "launched up to operation ", &value)) {
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || !text_parse_int((struct view){text, digits}, &ranks))
            return;
        ras->ranks += ranks < JOB_RANKS_MAX ? ranks : JOB_RANKS_MAX;
        ras->current = value;
        if (ras->lowest == FLIGHT_UNKNOWN || value < ras->lowest)
            ras->lowest = value;
    } else if (strncmp(text, "Rank ", 5) == 0 && number_behind(text, "Rank ", &value)) {
        list_rank(ras, value);
    } else if (text[0] == '#' || text[0] == '=') {
        end_mismatch(flight, ras);
    }
}

void flight_read_text(struct flight *flight, struct view bytes)
{
    struct ras_reading ras = {.lowest = FLIGHT_UNKNOWN, .current = FLIGHT_UNKNOWN};
    char line[LINE_MOST];

    for (size_t at = 0; at < bytes.length;) {
        const char *newline = memchr(bytes.bytes + at, '\n', bytes.length - at);
        size_t length = newline != NULL ? (size_t)(newline - bytes.bytes) - at : bytes.length - at;
        size_t taken = length < sizeof line - 1 ? length : sizeof line - 1;

        memcpy(line, bytes.bytes + at, taken);
        line[taken] = '\0';
        at += length + 1;
        if (strstr(line, "Watchdog caught collective operation timeout") != NULL ||
            strstr(line, "Timeout at NCCL work: ") != NULL)
            read_watchdog(flight, line);
        else
            read_ras_line(flight, &ras, line);
    }
    end_mismatch(flight, &ras);
    xfree(ras.listed);
    xfree(ras.counts);
}
