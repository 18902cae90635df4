/* What every actuator does with an action: how long it may take, how to wait for it, and how it is
 * written for a service that speaks JSON.
 */
#ifndef BROOM_ACTUATORS_ACTION_CALL_H
#define BROOM_ACTUATORS_ACTION_CALL_H

#include "controller/io/loop.h"
#include "remediation/actuator.h"

/* Pipeline time that the action may take: its timeout_ns, 5 minutes where it names none that is
 * sensible (positive, under 30 days). */
int64_t action_time_allowed_ns(const struct action *action);

/* Arms the timer for a wait in pipeline time; 20 ms of real time at least. */
void action_wait(struct loop_timer *timer, int64_t wait_ns);

/* Members of an open object: verb, incident, job, nodes, spares, reason. */
void action_put(const struct action *action, struct json_writer *writer);

#endif
