/* The health listener: /livez (the loop turns), /readyz (every named check passes; ?verbose lists
 * them), and /metrics. Nothing secret is told here, and nobody is asked who they are.
 */
#ifndef BROOM_ADMIN_HEALTH_H
#define BROOM_ADMIN_HEALTH_H

#include "controller/admin/metrics.h"
#include "controller/io/http_server.h"

enum { HEALTH_CHECKS_MAX = 16 };

enum health_state {
    HEALTH_OK = 0,
    HEALTH_WARN, /* works, but somebody should know: still ready */
    HEALTH_FAILED
};

struct health;

/* refresh (may be NULL) is called before /readyz and /metrics answer, to bring checks and gauges up
 * to date. metrics is lent for the life of the health. Until health_started, /readyz says
 * "starting". */
struct health *health_new(struct metrics *metrics, loop_fn *refresh, void *context);
void health_free(struct health *health);
DEFINE_AUTO(struct health, health_free)

void health_started(struct health *health);
void health_stopping(struct health *health);
/* name: static text, an identifier such as "database"; reason: one line, copied, may be NULL when
 * OK. */
void health_set(struct health *health, const char *name, enum health_state state,
                const char *reason);

/* An http_route_fn: health_route(health, request). */
void health_route(void *health, struct http_request *request);

#endif
