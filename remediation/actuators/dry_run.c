/* Answers as if all had been done. */
#include "remediation/actuators/dry_run.h"

static void add_names(struct text *reason, const char *before, const char *const *names,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_addf(reason, "%s%s", i == 0 ? before : ", ", names[i]);
}

static void start(void *self, const struct action *action, action_done_fn *done, void *context)
{
    AUTO_TEXT reason = {0};
    (void)self;
    text_addf(&reason, "dry run: would have done %s", verb_name(action->verb));
    add_names(&reason, " of ", action->nodes, action->node_count);
    add_names(&reason, " with ", action->spares, action->spare_count);
    struct action_result result = {
        .outcome = OUTCOME_SUCCEEDED, .poll = POLL_DONE, .reason = reason.bytes};
    done(context, &result);
}

static void poll(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct action_result result = {
        .outcome = OUTCOME_UNKNOWN, .poll = POLL_ABSENT, .reason = "dry run: nothing was done"};
    (void)self;
    (void)action;
    done(context, &result);
}

static void describe(void *self, const struct world_question *question, world_done_fn *done,
                     void *context)
{
    struct world world = {.reason = "dry run: no cluster is asked"};
    (void)self;
    (void)question;
    done(context, &world);
}

static void release(void *self)
{
    (void)self;
}

struct actuator dry_run_actuator(void)
{
    return (struct actuator){.name = "dry_run",
                             .changes_world = false,
                             .start = start,
                             .poll = poll,
                             .describe = describe,
                             .free = release,
                             .self = NULL};
}
