/* The daemon's inventory: who tells it, where its changes go, and launch help from it. */
#ifndef BROOM_CONTROLLER_APP_TOPOLOGY_H
#define BROOM_CONTROLLER_APP_TOPOLOGY_H

#include "controller/app_state.h"

/* Makes app->inventory where there is none yet, and reads the topology file when path is not "".
 * ERR_INVALID: the file has mistakes, all of them are logged; what was read before stays. */
MUST_CHECK enum status app_topology_read(struct app *app, const char *path, struct error *reterr);
/* About once a second: what the jobs' layouts and the world say, and records of what changed. */
void app_topology_tick(struct app *app);

/* Of the API's backend. */
void app_topology_write(void *app, struct json_writer *writer);
enum status app_topology_layout(void *app, const struct api_layout *question,
                                struct layout **ret_layout, struct error *reterr);

#endif
