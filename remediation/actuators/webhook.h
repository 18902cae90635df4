/* A service of the site as an actuator: each action is one signed POST, its end one of the closed
 * set of outcomes. runbooks/hand-over.md is the contract for whoever writes the other side.
 *
 *   POST URL                 {"operation_id","verb","incident","job","nodes","spares","reason",
 *                             "params","workload"}
 *   GET  URL/OPERATION_ID    how it stands
 *   GET  URL/world           a world as world_json.h reads it; need not be there
 *
 * Headers: Broom-Operation: ID; Broom-Timestamp: seconds since the epoch, real time;
 * Broom-Signature: v1=HMAC-SHA256 in hex, keyed with the secret, of TIMESTAMP "." BODY. The
 * secret's file is read for each request, so that it can be changed.
 *
 * What an answer means:
 *   200, 201, 202: done         the outcome that it names; one that we do not know: unknown
 *   ...: running                asked for again until it has ended; at the action's limit unknown
 *   ...: anything else          unknown
 *   408, 429, 5xx, no answer    sent again under the same id, more and more seldom; at the limit
 *                               unknown, or transient where nothing can have been done
 *   not reachable, no secret    likewise; transient when nothing was ever sent
 *   409                         the id is known there: asked how it stands
 *   404 to a poll               absent
 *   other 4xx                   refused; unknown where an earlier try may have come through, or
 *                               when it was only asked how it stands
 */
#ifndef BROOM_ACTUATORS_WEBHOOK_H
#define BROOM_ACTUATORS_WEBHOOK_H

#include "controller/io/http_client.h"
#include "controller/io/loop.h"
#include "remediation/actuator.h"

struct webhook_options { /* strings are copied */
    const char *url;
    const char *secret_file;                           /* NULL or "": nothing is signed */
    const char *ca_file, *certificate_file, *key_file; /* or NULL */
};

/* loop and client are lent and must outlive every call; time-outs of actions are pipeline time.
 * actuator->free(actuator->self) frees it, after the client; calls under way are dropped without an
 * answer. */
struct actuator *webhook_new(struct loop *loop, struct http_client *client,
                             const struct webhook_options *options);

/* One actuator out of two: hand_over and fence go to the webhook, everything else, and the world,
 * to the inner one. It is called by the inner one's name and owns both. */
struct actuator *with_hand_over_new(struct actuator *take_inner, struct actuator *take_webhook);

#endif
