/* The process's one event loop (libevent; loop.c is the only includer of event2/event.h).
 * Everything runs on one thread: a callback never runs inside a call of this interface.
 */
#ifndef BROOM_IO_LOOP_H
#define BROOM_IO_LOOP_H

#include "controller/base/mem.h"
#include "controller/base/status.h"

struct loop;
struct loop_fd; /* interest in a descriptor */
struct loop_timer;
struct loop_signal;
struct event_base; /* libevent's, for http_server.c alone */

enum { LOOP_READ = 1, LOOP_WRITE = 2 };

typedef void loop_fd_fn(void *context, int fd, int events);
typedef void loop_fn(void *context);
typedef void loop_signal_fn(void *context, int signal);

struct loop *loop_new(void);
/* After everything that lives on it. */
void loop_free(struct loop *loop);
DEFINE_AUTO(struct loop, loop_free)
struct event_base *loop_base(struct loop *loop);

/* Runs until loop_stop; each pass ends with the deferred frees. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Level-triggered interest until loop_fd_free. loop_fd_set changes the events (0 pauses). */
struct loop_fd *loop_fd_new(struct loop *loop, int fd, int events, loop_fd_fn *fn, void *context);
void loop_fd_set(struct loop_fd *watch, int events);
void loop_fd_free(struct loop_fd *watch);

/* libevent's own bits for LOOP_READ and LOOP_WRITE, for http_connection.c alone. */
short loop_event_bits(int events);

/* One-shot timers in real time, re-armed with loop_timer_set; they start unarmed. */
struct loop_timer *loop_timer_new(struct loop *loop, loop_fn *fn, void *context);
void loop_timer_set(struct loop_timer *timer, int64_t after_ns);
void loop_timer_stop(struct loop_timer *timer);
void loop_timer_free(struct loop_timer *timer);

struct loop_signal *loop_signal_new(struct loop *loop, int signal, loop_signal_fn *fn,
                                    void *context);
void loop_signal_free(struct loop_signal *watch);

#endif
