/* Reading when, and seeing whether it is time. */
#include "controller/rehearse/crashes.h"

#include "controller/base/text.h"

#include <string.h>

static bool is_at_time(const char *word, int64_t *ret_ns)
{
    return text_parse_duration(view_of(word), ret_ns) && *ret_ns > 0;
}

bool crashes_add(struct crashes *crashes, const char *word)
{
    struct crash crash = {.word = word};
    if (crashes->count == CRASHES_MAX)
        return false;
    if (verb_parse(word, &crash.verb))
        crash.kind = CRASH_AT_VERB;
    else if (phase_parse(word, &crash.phase))
        crash.kind = CRASH_AT_PHASE;
    else if (is_at_time(word, &crash.after_ns))
        crash.kind = CRASH_AT_TIME;
    else
        return false;
    crashes->items[crashes->count++] = crash;
    return true;
}

static bool was_asked(const char *log, enum verb verb)
{
    AUTO_TEXT word = {0};
    text_addf(&word, "\"verb\":\"%s\"", verb_name(verb));
    return strstr(log, word.bytes) != NULL;
}

/* Phases may be shorter than a look, so the timeline counts as well as what is now. */
static bool was_reached(const struct json *incidents, enum phase phase)
{
    AUTO_TEXT word = {0};
    text_addf(&word, " -> %s (", phase_name(phase));
    for (const struct json *i = json_first(incidents); i != NULL; i = json_next(i)) {
        if (strcmp(json_get_string(i, "phase", ""), phase_name(phase)) == 0)
            return true;
        const struct json *timeline = json_get(i, "timeline");
        for (const struct json *t = json_first(timeline); t != NULL; t = json_next(t))
            if (strcmp(json_get_string(t, "kind", ""), "phase") == 0 &&
                strstr(json_get_string(t, "text", ""), word.bytes) != NULL)
                return true;
    }
    return false;
}

static bool is_due(const struct crash *crash, const char *log, const struct json *incidents,
                   int64_t since_start_ns)
{
    switch (crash->kind) {
    case CRASH_AT_VERB:
        return was_asked(log, crash->verb);
    case CRASH_AT_PHASE:
        return was_reached(incidents, crash->phase);
    case CRASH_AT_TIME:
        return since_start_ns >= crash->after_ns;
    }
    return false;
}

struct crash *crashes_find_due(struct crashes *crashes, const char *log,
                               const struct json *incidents, int64_t since_start_ns)
{
    for (size_t i = 0; i < crashes->count; i++) {
        struct crash *crash = &crashes->items[i];
        if (!crash->done && is_due(crash, log, incidents, since_start_ns))
            return crash;
    }
    return NULL;
}

bool crashes_next_verb(const struct crashes *crashes, enum verb *ret_verb)
{
    for (size_t i = 0; i < crashes->count; i++)
        if (!crashes->items[i].done && crashes->items[i].kind == CRASH_AT_VERB) {
            *ret_verb = crashes->items[i].verb;
            return true;
        }
    return false;
}

const struct crash *crashes_find_missed(const struct crashes *crashes)
{
    for (size_t i = 0; i < crashes->count; i++)
        if (!crashes->items[i].done)
            return &crashes->items[i];
    return NULL;
}
