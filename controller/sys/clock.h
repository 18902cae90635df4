/* The one reader of clocks. In a rehearsal pipeline time is shared: it stands in a file that all
 * its processes map, and goes on only as fast as they can follow. Deadlines of sockets use real
 * monotonic time.
 */
#ifndef BROOM_SYS_CLOCK_H
#define BROOM_SYS_CLOCK_H

#include "controller/base/status.h"

#include <stdint.h>

struct clock_reading {
    int64_t wall_ns;      /* real wall clock since the epoch */
    int64_t monotonic_ns; /* real monotonic time */
    int64_t now_ns;       /* pipeline time since the epoch: wall time, or scaled in a rehearsal */
};

/* A clock of this process alone, scale >= 1 times as fast; origin_ns is the pipeline time that
 * corresponds to real wall time wall_origin_ns. clock_init(1, 0, 0) is plain time. */
void clock_init(double scale, int64_t origin_ns, int64_t wall_origin_ns);
/* Pipeline seconds a real second; of a shared clock at most. */
double clock_scale(void);
struct clock_reading clock_read(void);
int64_t clock_now_ns(void); /* clock_read().now_ns */
int64_t clock_cpu_ns(void); /* CPU time of this process */

/* Makes the file of a shared clock, scale >= 1, and joins it: time stands still at origin_ns until
 * somebody calls clock_advance. ERR_IO; the message names the file. */
MUST_CHECK enum status clock_share(const char *path, double scale, int64_t origin_ns,
                                   struct error *reterr);
/* From here on this process reads the shared clock of the file. ERR_NOT_FOUND, ERR_INVALID (no
 * clock), ERR_IO. */
MUST_CHECK enum status clock_join(const char *path, struct error *reterr);
/* Of a shared clock, one caller: time goes on by so much. */
void clock_advance(int64_t by_ns);
/* This process has done what was to be done up to this moment. Nothing happens without a shared
 * clock, so a daemon may say it always. */
void clock_follow(void);
/* Nobody follows until somebody says so again: whoever did has ended. */
void clock_unfollow(void);
/* How far time has gone on since somebody last followed; 0 when nobody does. */
int64_t clock_unfollowed_ns(void);

#endif
