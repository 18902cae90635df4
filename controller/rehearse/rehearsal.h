/* One rehearsal: the real broomd and the simulated cluster as two processes, watched to the end,
 * and checked.
 */
#ifndef BROOM_REHEARSE_REHEARSAL_H
#define BROOM_REHEARSE_REHEARSAL_H

#include "controller/rehearse/crashes.h"
#include "controller/rehearse/endings.h"

#include <stdio.h>

struct rehearsal_options {
    const struct scenario *scenario;
    const char *policy; /* file or folder; NULL: the shipped enforce policy */
    uint64_t seed;
    double speed;
    const char *out;        /* folder for its files, made when missing; NULL: none */
    bool json;              /* the result as JSON on stdout, the timeline on stderr */
    struct crashes crashes; /* when broomd is killed and started again */
    bool no_detection, swallow_restart, keep;
};

/* Returns the exit code: 0 all agrees, 1 it does not or could not be run, 130 interrupted. */
int rehearsal_run(const struct rehearsal_options *options);

#endif
