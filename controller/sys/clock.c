/* The process's only caller of clock_gettime. */
#include "controller/sys/clock.h"

#include <assert.h>
#include <time.h>

enum { NS_PER_SECOND = 1000000000 };

static struct {
    double scale;
    int64_t origin_ns;
    int64_t wall_origin_ns;
} clock_state = {.scale = 1.0};

static int64_t read_ns(clockid_t id)
{
    struct timespec time;
    int failed = clock_gettime(id, &time);
    assert(failed == 0); /* the ids are constants that every Linux knows */
    (void)failed;
    return (int64_t)time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}

void clock_init(double scale, int64_t origin_ns, int64_t wall_origin_ns)
{
    assert(scale >= 1.0);
    clock_state.scale = scale;
    clock_state.origin_ns = origin_ns;
    clock_state.wall_origin_ns = wall_origin_ns;
}

double clock_scale(void)
{
    return clock_state.scale;
}

struct clock_reading clock_read(void)
{
    int64_t wall_ns = read_ns(CLOCK_REALTIME);
    int64_t elapsed_ns = wall_ns - clock_state.wall_origin_ns;
    /* Plain time keeps its last digits: a double has none to spare for 1.8e18. */
    int64_t scaled_ns = clock_state.scale > 1.0 ? (int64_t)((double)elapsed_ns * clock_state.scale)
                                                : elapsed_ns;
    return (struct clock_reading){
        .wall_ns = wall_ns,
        .monotonic_ns = read_ns(CLOCK_MONOTONIC),
        .now_ns = clock_state.origin_ns + scaled_ns,
    };
}

int64_t clock_now_ns(void)
{
    return clock_read().now_ns;
}

int64_t clock_cpu_ns(void)
{
    return read_ns(CLOCK_PROCESS_CPUTIME_ID);
}
