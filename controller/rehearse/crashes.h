/* When broomd is to die in a rehearsal: at a verb, at a phase, at a time. */
#ifndef BROOM_REHEARSE_CRASHES_H
#define BROOM_REHEARSE_CRASHES_H

#include "controller/base/json.h"
#include "remediation/incident.h"

enum { CRASHES_MAX = 16 };

enum crash_kind {
    CRASH_AT_VERB,  /* the cluster has done it and has not answered */
    CRASH_AT_PHASE, /* an incident has come to it */
    CRASH_AT_TIME   /* so long after the job's start */
};

struct crash {
    enum crash_kind kind;
    enum verb verb;
    enum phase phase;
    int64_t after_ns; /* pipeline time */
    const char *word; /* as it was given; borrowed */
    bool done;
};

/* Zeroed: none. */
struct crashes {
    struct crash items[CRASHES_MAX];
    size_t count;
};

/* The word is a verb, a phase, or a duration such as 345s. False: it is none of them, or one too
 * many. */
bool crashes_add(struct crashes *crashes, const char *word);
/* The first one that is due and not done, or NULL. The log is the cluster's (JSON lines), incidents
 * an array with their timelines. */
struct crash *crashes_find_due(struct crashes *crashes, const char *log,
                               const struct json *incidents, int64_t since_start_ns);
/* The verb that the cluster is to do and not answer, for the first verb that is not done; false:
 * none. */
bool crashes_next_verb(const struct crashes *crashes, enum verb *ret_verb);
/* The first one that is not done, or NULL. */
const struct crash *crashes_find_missed(const struct crashes *crashes);

#endif
