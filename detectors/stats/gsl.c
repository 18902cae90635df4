/* GSL's process-wide setting. */
#include "detectors/stats/gsl.h"

#include <gsl/gsl_errno.h>

void stats_init(void)
{
    gsl_set_error_handler_off();
}
