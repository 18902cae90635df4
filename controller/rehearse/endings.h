/* Has a rehearsal ended as it must? The cluster's own log and the incidents that broomd tells are
 * held against the scenario and against each other. Pure.
 */
#ifndef BROOM_REHEARSE_ENDINGS_H
#define BROOM_REHEARSE_ENDINGS_H

#include "controller/rehearse/scenario.h"

struct endings;

/* What is true of this scenario and seed: names, the pace of a healthy job. Caller frees. */
struct endings *endings_new(const struct scenario *scenario, uint64_t seed);
void endings_free(struct endings *endings);
DEFINE_AUTO(struct endings, endings_free)

struct endings_evidence {
    struct view log;              /* the cluster's, JSON lines */
    const struct json *world;     /* the cluster as it is */
    const struct json *incidents; /* array of incident records, each with its "timeline" */
};

/* Appends one sentence a disagreement, each on its own line; returns how many there are. */
int endings_check(const struct endings *endings, const struct endings_evidence *evidence,
                  struct text *disagreements);

/* For the timeline's head: "slow_gpu on gpu 2 of gb-... in rk-...". */
void endings_describe_fault(const struct endings *endings, struct text *out);

#endif
