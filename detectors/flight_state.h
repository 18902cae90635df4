/* The inside of struct flight, shared by its readers (flight_json.c, flight_text.c) and its judge
 * (flight.c). Nobody else includes this.
 */
#ifndef BROOM_DETECTORS_FLIGHT_STATE_H
#define BROOM_DETECTORS_FLIGHT_STATE_H

#include "controller/base/json.h"
#include "detectors/flight.h"

enum { FLIGHT_NAME_BYTES = 96, FLIGHT_UNKNOWN = -1 };

/* A process group. Names are the library's own and the same on all ranks; the numeric ids of a dump
 * are not, they count the groups of one process. */
struct flight_group {
    char name[FLIGHT_NAME_BYTES];
    char desc[FLIGHT_NAME_BYTES];
    int32_t *members; /* owned; NULL: only those who mention it are known */
    int32_t member_count;
    bool everyone;       /* the default group */
    bool point_to_point; /* sends and receives share its counters */
};

/* How far one rank came in one group. */
struct flight_count {
    int32_t group;
    int64_t enqueued, completed; /* sequence numbers; FLIGHT_UNKNOWN */
};

struct flight_operation {
    int32_t group;  /* FLIGHT_UNKNOWN: none pends */
    int64_t number; /* in the group; of a send or receive its own count */
    int64_t elements;
    char name[FLIGHT_NAME_BYTES];
    bool point_to_point;
    int32_t peer; /* of a send or receive: index among the group's members */
};

struct flight_rank {
    bool recorded;
    struct flight_count *counts; /* owned */
    size_t count_count, count_capacity;
    struct flight_operation oldest; /* pending operation that was enqueued first */
    int64_t newest_ns;
};

struct flight {
    struct flight_group *groups;
    size_t group_count, group_capacity;
    int32_t *slots; /* hash of group names: index + 1 */
    size_t slot_count;
    struct flight_rank *ranks; /* by rank */
    int32_t rank_count;
    /* NCCL RAS: ranks of a communicator that is the whole job. */
    int32_t *behind; /* launched fewer operations than the others */
    size_t behind_count, behind_capacity;
    int32_t *dead; /* did not answer, or are missing */
    size_t dead_count, dead_capacity;
    int32_t ras_size; /* ranks of the communicator that was reported on */
};

/* Find or add; FLIGHT_UNKNOWN when the name is too long. */
int32_t flight_group(struct flight *flight, const char *name, const char *desc);
/* The rank's record, made when it is new; NULL when the rank is out of bounds. */
struct flight_rank *flight_rank(struct flight *flight, int64_t rank);
struct flight_count *flight_count(struct flight_rank *rank, int32_t group);
void flight_list(int32_t **list, size_t *count, size_t *capacity, int64_t rank);

/* Appends the value of a pickle of plain data to out. */
MUST_CHECK enum status flight_pickle_to_json(struct view bytes, struct text *out,
                                             struct error *reterr);
MUST_CHECK enum status flight_read_dump(struct flight *flight, int64_t rank,
                                        const struct json *dump, struct error *reterr);
void flight_read_ras(struct flight *flight, const struct json *report);
void flight_read_text(struct flight *flight, struct view bytes);

#endif
