/* Makes GSL safe for a long-lived process. */
#ifndef BROOM_DETECTORS_STATS_GSL_H
#define BROOM_DETECTORS_STATS_GSL_H

/* First line of every main: GSL's default handler aborts the process on a mere domain error. */
void stats_init(void);

#endif
