/* What is known of the rails of each node: that they carry a job's all-reduce, or that an incident
 * that is open accuses the network of the node. Of most nodes nothing is known most of the time: a
 * spare sends nothing, and what stays inside an NVLink domain uses no rail.
 */
#ifndef BROOM_CONTROLLER_RAILS_H
#define BROOM_CONTROLLER_RAILS_H

#include "controller/jobs.h"
#include "remediation/actuators/kubernetes_topology.h"
#include "remediation/core.h"

#define RAILS_SEEN_NS                                                                              \
    (3600 * INT64_C(1000000000)) /* what worked an hour ago is not known to work */

struct rails;
/* inventory: where nodes stand, asked before what the job says of itself; NULL none. */
struct rails *rails_read(const struct remediation *core, const struct jobs *jobs,
                         const struct inventory *inventory, int64_t now_ns);
void rails_free(struct rails *rails);
DEFINE_AUTO(struct rails, rails_free)

enum rail_state rails_of(const struct rails *rails, const char *node);

#endif
