/* The rehearsal cluster as an actuator: its HTTP protocol is controller/rehearse/cluster_http.h's.
 *
 * PUT /v1/operations/ID starts, GET reads, GET /v1/world describes. What the answer means:
 *   nothing was sent                       transient
 *   no answer, a broken one, HTTP 5xx      unknown: it may have been done
 *   HTTP 4xx                               refused
 *   state running                          asked again until it has ended or timeout_ns is over
 * (unknown) state done                             the outcome that it names; a name that we do not
 * know: unknown
 */
#ifndef BROOM_ACTUATORS_REHEARSAL_H
#define BROOM_ACTUATORS_REHEARSAL_H

#include "controller/io/http_client.h"
#include "controller/io/loop.h"
#include "remediation/actuator.h"

/* url: "http://127.0.0.1:4711". loop and client are lent and must outlive every call; time-outs of
 * actions are pipeline time. actuator->free(actuator->self) frees it, port included, after the
 * client; calls under way are dropped without an answer. */
struct actuator *rehearsal_new(struct loop *loop, struct http_client *client, const char *url);

#endif
