/* Names of verbs and outcomes: the words stored outside the process. */
#include "remediation/actuator.h"

#include <assert.h>
#include <string.h>

static const char *const VERB_NAMES[VERB_COUNT] = {
    [VERB_NOTIFY] = "notify",
    [VERB_CAPTURE] = "capture",
    [VERB_CORDON] = "cordon",
    [VERB_UNCORDON] = "uncordon",
    [VERB_REQUEST_CHECKPOINT] = "request_checkpoint",
    [VERB_PROMISE_SPARE] = "promise_spare",
    [VERB_RELEASE_SPARE] = "release_spare",
    [VERB_RESTART_JOB] = "restart_job",
    [VERB_HAND_OVER] = "hand_over",
};

static const char *const OUTCOME_NAMES[OUTCOME_COUNT] = {
    [OUTCOME_SUCCEEDED] = "succeeded",   [OUTCOME_REFUSED] = "refused",
    [OUTCOME_TRANSIENT] = "transient",   [OUTCOME_SUPERSEDED] = "superseded",
    [OUTCOME_CANCELLED] = "cancelled",   [OUTCOME_UNKNOWN] = "unknown",
};

static bool name_find(const char *const *names, int count, const char *name, int *ret_index)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) {
            *ret_index = i;
            return true;
        }
    return false;
}

const char *verb_name(enum verb verb)
{
    assert(verb < VERB_COUNT);
    return VERB_NAMES[verb];
}

const char *outcome_name(enum outcome outcome)
{
    assert(outcome < OUTCOME_COUNT);
    return OUTCOME_NAMES[outcome];
}

bool verb_parse(const char *name, enum verb *ret_verb)
{
    int index;
    if (!name_find(VERB_NAMES, VERB_COUNT, name, &index))
        return false;
    *ret_verb = (enum verb)index;
    return true;
}

bool outcome_parse(const char *name, enum outcome *ret_outcome)
{
    int index;
    if (!name_find(OUTCOME_NAMES, OUTCOME_COUNT, name, &index))
        return false;
    *ret_outcome = (enum outcome)index;
    return true;
}
