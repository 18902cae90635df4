/* broomd as a process: everything is built in one visible order, and stopped in the reverse. */
#ifndef BROOM_CONTROLLER_APP_H
#define BROOM_CONTROLLER_APP_H

#include "controller/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { APP_OVERRIDES_MAX = 128 };

struct app_options {
    const char *config_path; /* a missing file is an error only when it was named */
    bool config_is_named;
    const char *overrides[APP_OVERRIDES_MAX]; /* "section.key=value" */
    size_t override_count;
    const char *time_file; /* a rehearsal's shared clock, only with actuators that touch nothing
                              real; NULL: plain time */
};

/* Runs until SIGTERM or SIGINT. Returns the exit code; what went wrong stands on stderr. */
int app_run(const struct app_options *options);

#endif
