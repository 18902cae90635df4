/* libevent's event_base under our names. */
#include "controller/io/loop.h"

#include <assert.h>
#include <event2/event.h>
#include <signal.h>

struct loop {
    struct event_base *base;
    bool stopping;
};

struct loop_fd {
    struct event *event;
    struct loop *loop;
    loop_fd_fn *fn;
    void *context;
    int fd;
    int events;
};

struct loop_timer {
    struct event *event;
    loop_fn *fn;
    void *context;
};

struct loop_signal {
    struct event *event;
    loop_signal_fn *fn;
    void *context;
};

struct loop *loop_new(void)
{
    /* A peer that has gone is an error of write(2), never a reason to die. */
    signal(SIGPIPE, SIG_IGN);
    struct loop *loop = xcalloc(1, sizeof *loop);
    struct event_config *config = event_config_new();
    assert(config != NULL);
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    loop->base = event_base_new_with_config(config);
    assert(loop->base != NULL);
    event_config_free(config);
    return loop;
}

void loop_free(struct loop *loop)
{
    if (loop == NULL)
        return;
    /* libevent ends freed buffers in a pass of the loop; nothing of ours is left to be called in
     * it. */
    event_base_loop(loop->base, EVLOOP_NONBLOCK);
    event_base_free(loop->base);
    xfree(loop);
}

struct event_base *loop_base(struct loop *loop)
{
    return loop->base;
}

void loop_run(struct loop *loop)
{
    while (!loop->stopping)
        if (event_base_loop(loop->base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY) < 0)
            break;
    loop->stopping = false;
}

void loop_stop(struct loop *loop)
{
    loop->stopping = true;
    event_base_loopbreak(loop->base);
}

short loop_event_bits(int events)
{
    return (short)(((events & LOOP_READ) != 0 ? EV_READ : 0) |
                   ((events & LOOP_WRITE) != 0 ? EV_WRITE : 0));
}

static void on_fd(evutil_socket_t fd, short what, void *context)
{
    struct loop_fd *watch = context;
    int events = ((what & EV_READ) != 0 ? LOOP_READ : 0) |
                 ((what & EV_WRITE) != 0 ? LOOP_WRITE : 0);
    watch->fn(watch->context, (int)fd, events);
}

struct loop_fd *loop_fd_new(struct loop *loop, int fd, int events, loop_fd_fn *fn, void *context)
{
    struct loop_fd *watch = xcalloc(1, sizeof *watch);
    watch->loop = loop;
    watch->fd = fd;
    watch->fn = fn;
    watch->context = context;
    watch->event = event_new(loop->base, fd, EV_PERSIST, on_fd, watch);
    assert(watch->event != NULL);
    loop_fd_set(watch, events);
    return watch;
}

void loop_fd_set(struct loop_fd *watch, int events)
{
    if (watch->events == events)
        return;
    if (watch->events != 0)
        event_del(watch->event);
    watch->events = events;
    if (events == 0)
        return;
    short what = (short)(EV_PERSIST | loop_event_bits(events));
    event_assign(watch->event, watch->loop->base, watch->fd, what, on_fd, watch);
    event_add(watch->event, NULL);
}

void loop_fd_free(struct loop_fd *watch)
{
    if (watch == NULL)
        return;
    event_free(watch->event);
    xfree(watch);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct loop_timer *timer = context;
    timer->fn(timer->context);
}

struct loop_timer *loop_timer_new(struct loop *loop, loop_fn *fn, void *context)
{
    struct loop_timer *timer = xcalloc(1, sizeof *timer);
    timer->fn = fn;
    timer->context = context;
    timer->event = event_new(loop->base, -1, 0, on_timer, timer);
    assert(timer->event != NULL);
    return timer;
}

void loop_timer_set(struct loop_timer *timer, int64_t after_ns)
{
    if (after_ns < 0)
        after_ns = 0;
    int64_t after_us = (after_ns + 999) / 1000; /* never early */
    struct timeval delay = {.tv_sec = after_us / 1000000, .tv_usec = after_us % 1000000};
    event_add(timer->event, &delay);
}

void loop_timer_stop(struct loop_timer *timer)
{
    event_del(timer->event);
}

void loop_timer_free(struct loop_timer *timer)
{
    if (timer == NULL)
        return;
    event_free(timer->event);
    xfree(timer);
}

static void on_signal(evutil_socket_t number, short what, void *context)
{
    (void)what;
    struct loop_signal *watch = context;
    watch->fn(watch->context, (int)number);
}

struct loop_signal *loop_signal_new(struct loop *loop, int signal, loop_signal_fn *fn,
                                    void *context)
{
    struct loop_signal *watch = xcalloc(1, sizeof *watch);
    watch->fn = fn;
    watch->context = context;
    watch->event = evsignal_new(loop->base, signal, on_signal, watch);
    assert(watch->event != NULL);
    event_add(watch->event, NULL);
    return watch;
}

void loop_signal_free(struct loop_signal *watch)
{
    if (watch == NULL)
        return;
    event_free(watch->event);
    xfree(watch);
}
