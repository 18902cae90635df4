#include "controller/io/loop.h"
#include "controller/sys/clock.h"
#include "tests/harness/test.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

struct rig {
    struct loop *loop;
    struct loop_timer *timer;
    struct loop_fd *watch;
    int calls;
    int passes_left;
    int64_t fired_ns;
    bool inside;
};

static void stop(void *context)
{
    struct rig *rig = context;
    rig->calls++;
    rig->fired_ns = clock_read().monotonic_ns;
    loop_stop(rig->loop);
}

TEST(a_timer_fires_once_and_never_early)
{
    struct rig rig = {.loop = loop_new()};
    rig.timer = loop_timer_new(rig.loop, stop, &rig);
    int64_t started_ns = clock_read().monotonic_ns;
    loop_timer_set(rig.timer, 20000000);
    loop_run(rig.loop);
    CU_ASSERT_EQUAL(rig.calls, 1);
    CU_ASSERT(rig.fired_ns - started_ns >= 20000000);
    loop_timer_free(rig.timer);
    loop_free(rig.loop);
}

static void count(void *context)
{
    struct rig *rig = context;
    rig->calls += 100;
}

TEST(a_stopped_timer_does_not_fire_and_a_set_one_is_moved)
{
    struct rig rig = {.loop = loop_new()};
    struct loop_timer *stopped = loop_timer_new(rig.loop, count, &rig);
    rig.timer = loop_timer_new(rig.loop, stop, &rig);
    loop_timer_set(stopped, 1000000);
    loop_timer_stop(stopped);
    loop_timer_set(rig.timer, 3600000000000);
    loop_timer_set(rig.timer, 5000000);
    loop_run(rig.loop);
    CU_ASSERT_EQUAL(rig.calls, 1);
    loop_timer_free(stopped);
    loop_timer_free(rig.timer);
    loop_free(rig.loop);
}

static void on_readable(void *context, int fd, int events)
{
    struct rig *rig = context;
    char byte;
    CU_ASSERT_EQUAL(events, LOOP_READ);
    CU_ASSERT_EQUAL(read(fd, &byte, 1), 1);
    if (++rig->calls == 2) {
        loop_fd_free(rig->watch); /* its own watch, from inside its own callback */
        loop_stop(rig->loop);
    }
}

TEST(interest_in_a_descriptor_lasts_until_it_is_freed_and_can_pause)
{
    struct rig rig = {.loop = loop_new()};
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(ends, O_CLOEXEC), 0);
    CU_ASSERT_EQUAL(write(ends[1], "abc", 3), 3);
    rig.watch = loop_fd_new(rig.loop, ends[0], 0, on_readable, &rig);
    rig.timer = loop_timer_new(rig.loop, stop, &rig);
    loop_timer_set(rig.timer, 5000000);
    loop_run(rig.loop);
    CU_ASSERT_EQUAL(rig.calls, 1); /* the timer alone: the watch is paused */
    rig.calls = 0;
    loop_fd_set(rig.watch, LOOP_READ);
    loop_run(rig.loop);
    CU_ASSERT_EQUAL(rig.calls, 2);
    close(ends[0]);
    close(ends[1]);
    loop_timer_free(rig.timer);
    loop_free(rig.loop);
}

static void on_signal(void *context, int signal)
{
    struct rig *rig = context;
    rig->calls = signal;
    loop_stop(rig->loop);
}

TEST(a_signal_is_a_call_on_the_loop_and_a_broken_pipe_is_no_signal)
{
    struct rig rig = {.loop = loop_new()};
    struct loop_signal *watch = loop_signal_new(rig.loop, SIGUSR1, on_signal, &rig);
    raise(SIGPIPE);
    raise(SIGUSR1);
    CU_ASSERT_EQUAL(rig.calls, 0);
    loop_run(rig.loop);
    CU_ASSERT_EQUAL(rig.calls, SIGUSR1);
    loop_signal_free(watch);
    loop_free(rig.loop);
}

TESTS(T(a_timer_fires_once_and_never_early),
      T(a_stopped_timer_does_not_fire_and_a_set_one_is_moved),
      T(interest_in_a_descriptor_lasts_until_it_is_freed_and_can_pause),
      T(a_signal_is_a_call_on_the_loop_and_a_broken_pipe_is_no_signal))
