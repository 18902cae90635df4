/* Facts of one incident at one moment: computed once from a snapshot, then decided on. */
#ifndef BROOM_REMEDIATION_FACTS_H
#define BROOM_REMEDIATION_FACTS_H

#include "remediation/fsm.h"

struct remediation;

struct facts {
    uint32_t bits;
    /* Why a fact does not hold, for the sentence that people read; "" when nothing is in the way.
     */
    char budget[SENTENCE_BYTES];
    char spare[SENTENCE_BYTES];
    char restart[SENTENCE_BYTES];
    char worth[SENTENCE_BYTES];
    char job[SENTENCE_BYTES];
    bool refused; /* `job` is something that only a person can change */
};

/* Reads the core and the incident; updates nothing but the incident's cost figures. */
struct facts facts_compute(const struct remediation *core, struct incident *incident);
/* The sentence for the first fact of `wanted` that is missing. */
void facts_explain(const struct remediation *core, const struct facts *facts, uint32_t wanted,
                   char *buffer, size_t bytes);

#endif
