/* A world as JSON -> struct world: {"nodes": [...], "jobs": [...]} with the members of struct
 * world_node
 * ("gpus" for gpus_allocatable) and struct world_job by name. Anything that is missing is unknown,
 * an answer without nodes is no world.
 */
#ifndef BROOM_ACTUATORS_WORLD_JSON_H
#define BROOM_ACTUATORS_WORLD_JSON_H

#include "remediation/actuator.h"

/* Calls done once with the world that root describes, or with an unknown one: why_unknown says why
 * when there is no root. */
void world_json_tell(const struct json *root, const char *why_unknown, world_done_fn *done,
                     void *context);

#endif
