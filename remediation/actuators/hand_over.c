/* Routes what only people and their tools can do to the webhook that reaches them. */
#include "remediation/actuators/webhook.h"

struct pair {
    struct actuator port;
    struct actuator *inner, *webhook;
};

static struct actuator *meant(struct pair *pair, enum verb verb)
{
    return verb == VERB_HAND_OVER || verb == VERB_FENCE ? pair->webhook : pair->inner;
}

static void start(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct actuator *actuator = meant(self, action->verb);
    actuator->start(actuator->self, action, done, context);
}

static void poll(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct actuator *actuator = meant(self, action->verb);
    actuator->poll(actuator->self, action, done, context);
}

static void describe(void *self, const struct world_question *question, world_done_fn *done,
                     void *context)
{
    struct pair *pair = self;
    pair->inner->describe(pair->inner->self, question, done, context);
}

static void release(void *self)
{
    struct pair *pair = self;
    pair->inner->free(pair->inner->self);
    pair->webhook->free(pair->webhook->self);
    xfree(pair);
}

struct actuator *with_hand_over_new(struct actuator *take_inner, struct actuator *take_webhook)
{
    struct pair *pair = xcalloc(1, sizeof *pair);
    pair->inner = take_inner;
    pair->webhook = take_webhook;
    pair->port = (struct actuator){.name = take_inner->name,
                                   .changes_world = take_inner->changes_world ||
                                                    take_webhook->changes_world,
                                   .start = start,
                                   .poll = poll,
                                   .describe = describe,
                                   .free = release,
                                   .self = pair};
    return &pair->port;
}
