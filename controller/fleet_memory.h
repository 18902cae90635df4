/* What the incidents of the last weeks say of trays and racks, handed to the detection engines of
 * the jobs that are alive: repeat offenders are believed a little sooner. */
#ifndef BROOM_CONTROLLER_FLEET_MEMORY_H
#define BROOM_CONTROLLER_FLEET_MEMORY_H

#include "controller/jobs.h"
#include "remediation/core.h"

/* Replaces what every engine knew. Cheap: one row for each node of each incident that has ended. */
void fleet_memory_tell(const struct remediation *core, struct jobs *jobs, int64_t now_ns);

#endif
