/* The one reader of clocks. Pipeline time may run faster than the wall for rehearsals
 * (`--time-scale`); deadlines of sockets use real monotonic time.
 */
#ifndef BROOM_SYS_CLOCK_H
#define BROOM_SYS_CLOCK_H

#include <stdint.h>

struct clock_reading {
    int64_t wall_ns;      /* real wall clock since the epoch */
    int64_t monotonic_ns; /* real monotonic time */
    int64_t now_ns;       /* pipeline time since the epoch: wall time, or scaled in a rehearsal */
};

/* scale >= 1. origin_ns is the pipeline time that corresponds to real wall time wall_origin_ns, so
 * that several processes of one rehearsal share one clock. clock_init(1, 0, 0) is plain time. */
void clock_init(double scale, int64_t origin_ns, int64_t wall_origin_ns);
double clock_scale(void);
struct clock_reading clock_read(void);
int64_t clock_now_ns(void); /* clock_read().now_ns */
int64_t clock_cpu_ns(void); /* CPU time of this process */

#endif
