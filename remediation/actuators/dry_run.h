/* The actuator that changes nothing: every action succeeds and says what would have been done. It
 * asks nobody, so the world is never known to it.
 */
#ifndef BROOM_ACTUATORS_DRY_RUN_H
#define BROOM_ACTUATORS_DRY_RUN_H

#include "remediation/actuator.h"

/* Stateless: nothing to free (free does nothing). Unlike other actuators it answers from within the
 * call, since there is nothing to wait for. poll says absent: nothing has ever been done. */
struct actuator dry_run_actuator(void);

#endif
