/* What broomd tells of itself in numbers: one table of metrics (metrics.c), values set by the app,
 * text exposition 0.0.4. A metric has at most one label; its values are bounded, the rest is
 * "other".
 */
#ifndef BROOM_ADMIN_METRICS_H
#define BROOM_ADMIN_METRICS_H

#include "controller/base/mem.h"
#include "controller/base/text.h"

enum metric {
    METRIC_BUILD_INFO = 0, /* {version} */
    METRIC_START_TIME,
    METRIC_CPU,
    METRIC_RESIDENT,
    METRIC_MODE, /* {mode}: 1 for the one in force */
    METRIC_HTTP_REQUESTS,
    METRIC_HTTP_REFUSED, /* {reason}: guard, limit, timeout */
    METRIC_HTTP_CONNECTIONS,
    METRIC_HTTP_BODY_BYTES,
    METRIC_API_ERRORS, /* {class}: client, server, denied */
    METRIC_SAMPLES,    /* {measurement} */
    METRIC_LINES_BAD,
    METRIC_LINES_REFUSED,
    METRIC_JOBS,
    METRIC_RANKS,
    METRIC_SERIES_BYTES,
    METRIC_VERDICTS,       /* {kind} */
    METRIC_PASS_SECONDS,   /* histogram */
    METRIC_INCIDENTS_OPEN, /* {severity} */
    METRIC_TRANSITIONS,    /* {rule} */
    METRIC_ACTIONS,        /* {outcome} */
    METRIC_PAUSED,
    METRIC_BREAKER_OPEN,
    METRIC_LEASE_HELD,
    METRIC_CLOCK_JUMPS,
    METRIC_TELEMETRY_OK,
    METRIC_DATABASE_UP,
    METRIC_DATABASE_SECONDS, /* histogram */
    METRIC_SPOOLED_BYTES,
    METRIC_RECORDED_BYTES,
    METRIC_RELOADS, /* {result}: taken, kept_old */
    METRIC_COUNT
};

struct metrics;
struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);
DEFINE_AUTO(struct metrics, metrics_free)

/* label: the label's value, NULL for a metric that has none. A metric appears once it was set. */
void metrics_set(struct metrics *metrics, enum metric metric, const char *label, double value);
void metrics_add(struct metrics *metrics, enum metric metric, const char *label, double value);
/* One observation of a histogram. */
void metrics_observe(struct metrics *metrics, enum metric metric, double seconds);

void metrics_print(const struct metrics *metrics, struct text *out);

#endif
