/* What a person sees of a rehearsal: the timeline as it happens, and what it cost. */
#ifndef BROOM_REHEARSE_NARRATE_H
#define BROOM_REHEARSE_NARRATE_H

#include "controller/base/json.h"

#include <stdio.h>

enum { NARRATED_MAX = 512 };

struct narrator {
    FILE *out;
    int64_t start_ns;           /* of the job, pipeline time */
    int64_t told[NARRATED_MAX]; /* by incident number: last seq told */
};

/* "20:29:02 +5m 11s  text" */
void narrate(struct narrator *narrator, int64_t now_ns, const char *format, ...) PRINTF_LIKE(3, 4);
/* The entries of all incidents' timelines that were not told yet, in the order of their times. */
void narrate_incidents(struct narrator *narrator, const struct json *incidents);
/* Times and losses of one incident, as lines. */
void narrate_cost(struct narrator *narrator, const struct json *incident);

#endif
