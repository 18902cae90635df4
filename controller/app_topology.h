/* The daemon's inventory: who tells it, where its changes go, and launch help from it. */
#ifndef BROOM_CONTROLLER_APP_TOPOLOGY_H
#define BROOM_CONTROLLER_APP_TOPOLOGY_H

#include "controller/app_state.h"

/* Makes app->inventory where there is none yet, and reads topology.file when there is one. On error
 * what was read before stays; every mistake of the file is logged. */
MUST_CHECK enum status app_topology_read(struct app *app, struct error *reterr);
/* About once a second: what the jobs' layouts and the world say, and records of what changed. */
void app_topology_tick(struct app *app);

/* What was last known of the rails of a node; a node_rail_fn. */
enum rail_state app_topology_rail(void *app, const char *node);

/* Of the API's backend. */
void app_topology_write(void *app, struct json_writer *writer);
enum status app_topology_layout(void *app, const struct api_layout *question,
                                struct layout **ret_layout, struct error *reterr);

#endif
