/* A raw client and a server on one loop, for tests: bytes go out as written, and the loop turns
 * until something is there. Waiting is always for a condition, with a limit that only a failure
 * reaches.
 */
#ifndef BROOM_TESTS_UNIT_IO_WIRE_H
#define BROOM_TESTS_UNIT_IO_WIRE_H

#include "controller/base/mem.h"
#include "controller/io/http_server.h"
#include "controller/sys/clock.h"
#include "tests/harness/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct wire {
    struct loop *loop;
    struct loop_fd *watch;
    int fd;
    struct text got;
    bool ended; /* end of file or reset */
    bool reset;
};

static inline void wire_on_readable(void *context, int fd, int events)
{
    struct wire *wire = context;
    (void)events;
    char bytes[65536];
    ssize_t length = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (length > 0) {
        text_add_bytes(&wire->got, bytes, (size_t)length);
        return;
    }
    if (length < 0 && errno == EAGAIN)
        return;
    wire->ended = true;
    wire->reset = length < 0;
    loop_fd_set(wire->watch, 0);
}

static inline void wire_attach(struct wire *wire, struct loop *loop, int fd)
{
    *wire = (struct wire){.loop = loop, .fd = fd};
    text_add(&wire->got, "");
    wire->watch = loop_fd_new(loop, fd, LOOP_READ, wire_on_readable, wire);
}

static inline void wire_open(struct wire *wire, struct loop *loop, int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int failed = connect(fd, (const struct sockaddr *)&address, sizeof address);
    CU_ASSERT_EQUAL_FATAL(failed, 0);
    wire_attach(wire, loop, fd);
}

static inline void wire_close(struct wire *wire)
{
    loop_fd_free(wire->watch);
    if (wire->fd >= 0)
        close(wire->fd);
    text_done(&wire->got);
    *wire = (struct wire){.fd = -1};
}

static inline void wire_pass_over(void *context)
{
    loop_stop(context);
}

/* Turns the loop for at most that long, or until one deferred stop. */
static inline void wire_turn(struct loop *loop, int64_t ms)
{
    struct loop_timer *timer = loop_timer_new(loop, wire_pass_over, loop);
    loop_timer_set(timer, ms * 1000000);
    loop_run(loop);
    loop_timer_free(timer);
}

#define WIRE_UNTIL(loop, condition)                                                                \
    do {                                                                                           \
        int64_t wire_end_ns = clock_read().monotonic_ns + 10000000000;                             \
        while (!(condition) && clock_read().monotonic_ns < wire_end_ns)                            \
            wire_turn((loop), 1);                                                                  \
        CU_ASSERT(condition);                                                                      \
    } while (0)

static inline void wire_send_bytes(struct wire *wire, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length > 0) {
        ssize_t sent = send(wire->fd, at, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            at += sent;
            length -= (size_t)sent;
        } else if (errno == EAGAIN && !wire->ended) {
            wire_turn(wire->loop, 1);
        } else {
            return;
        }
    }
}

static inline void wire_send(struct wire *wire, const char *text)
{
    wire_send_bytes(wire, text, strlen(text));
}

static inline bool wire_has(const struct wire *wire, const char *text)
{
    return strstr(wire->got.bytes, text) != NULL;
}

/* The status code of the first answer, or 0. */
static inline int wire_code(const struct wire *wire)
{
    return wire->got.length >= 12 ? (int)strtol(wire->got.bytes + 9, NULL, 10) : 0;
}

#endif
