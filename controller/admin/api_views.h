/* What the API says of a job, written from its engine: rows of `broom jobs`, ranks of `broom
 * ranks`, and the racks and trays of the page. Pure: engine and world in, JSON out.
 */
#ifndef BROOM_ADMIN_API_VIEWS_H
#define BROOM_ADMIN_API_VIEWS_H

#include "controller/admin/api.h"

/* {"job","world_size","ranks_reporting","step","step_time","step_ms","baseline_ms","pace","phase","attempt",
 *  "racks","trays","spares","checkpoint_step","restartable"}; unknown numbers are null. */
void api_view_job_row(struct json_writer *writer, const struct engine *engine);

/* The row's members and "document" (the job file of formats.md section 2) and
 * "rack_view":[{"rack","nvlink_domain","trays":[{"node","state","ranks":[0,1],"slow_ratio","suspicion","seen",
 * "cordoned_by","promised_to"}]}]. state is the worst that holds: silent, cordoned, abnormal,
 * watch, normal, spare, unknown. world may be NULL or not known: then nothing is called cordoned.
 * now_ns decides who is silent: no line for silent_ns. In a finished job nobody is. */
void api_view_job(struct json_writer *writer, const struct engine *engine,
                  const struct world *world, int64_t now_ns, int64_t silent_ns);

/* {"job","step","ranks":[{"rank","node","gpu","rack","stage","step","seen","step_ms","compute_ms","allreduce_ms",
 * "wait_ms","sm","mem","slow_ratio","suspicion","status"}]}, most suspicious first when slow_only
 * (status watch, abnormal or stale), else by rank. */
void api_view_ranks(struct json_writer *writer, const struct engine *engine, bool slow_only);

/* The incidents of the core in the shape of the query's answer, with "from_memory": true and
 * without what only the database has (timeline, decisions, actions: empty). False, and nothing
 * written, for API_TIMELINE, API_EXPORT and an incident that the core does not hold. */
bool api_recall(const struct remediation *core, const struct api_query *query, int64_t now_ns,
                struct json_writer *writer);

#endif
