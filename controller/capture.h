/* What is kept of the samples: the raw window round each incident, and one-minute rollups; both
 * become spoolable records.
 */
#ifndef BROOM_CONTROLLER_CAPTURE_H
#define BROOM_CONTROLLER_CAPTURE_H

#include "controller/jobs.h"

#define CAPTURE_BEFORE_NS INT64_C(600000000000)
#define CAPTURE_AFTER_NS  INT64_C(120000000000)

struct captures;

/* A record to be submitted; lent for the call. */
typedef void captures_record_fn(void *context, const char *record);

struct captures *captures_new(void);
void captures_free(struct captures *captures);
DEFINE_AUTO(struct captures, captures_free)

/* Keeps [from_ns, to_ns] (our time) of a job for an incident once to_ns has come. A second plan for
 * one incident widens the first while that waits. */
void captures_plan(struct captures *captures, const char *incident_ref, const char *job,
                   int64_t from_ns, int64_t to_ns);
/* Emits the raw_window records that are due. Returns how many. */
int64_t captures_emit_due(struct captures *captures, const struct jobs *jobs, int64_t now_ns,
                          captures_record_fn *fn, void *context);
/* Emits the rollup records of closed minutes of one job. Returns how many. */
int64_t captures_emit_rollups(struct live_job *live, int64_t now_ns, captures_record_fn *fn,
                              void *context);

#endif
