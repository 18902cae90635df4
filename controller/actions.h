/* Carries out actions whose intent is durable: notify and capture here, everything else by the
 * actuator; each answer goes back exactly once.
 */
#ifndef BROOM_CONTROLLER_ACTIONS_H
#define BROOM_CONTROLLER_ACTIONS_H

#include "controller/capture.h"
#include "controller/pipeline.h"

struct actions;

/* asked: which question this answers, EFFECT_START or EFFECT_POLL. */
typedef void actions_outcome_fn(void *context, const char *operation_id, enum effect_kind asked,
                                const struct action_result *result);

struct actions *actions_new(const struct pipeline_ports *ports, struct captures *captures,
                            actions_outcome_fn *fn, void *context);
void actions_free(struct actions *actions);
DEFINE_AUTO(struct actions, actions_free)

/* effect: START or POLL, lent. may_start false: answered `cancelled` without a start. */
void actions_run(struct actions *actions, const struct effect *effect, bool may_start,
                 int64_t now_ns);

#endif
