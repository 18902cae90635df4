/* Sends bytes to a server that runs on the same loop, and gives back all that it answered: status
 * line, headers and body, as they came.
 */
#ifndef BROOM_TESTS_UNIT_ADMIN_RAW_CLIENT_H
#define BROOM_TESTS_UNIT_ADMIN_RAW_CLIENT_H

#include "controller/base/mem.h"
#include "controller/base/text.h"
#include "controller/io/loop.h"
#include "tests/harness/test.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct raw_client {
    struct loop *loop;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *timer;
    struct text answer;
    bool timed_out;
};

static inline void raw_client_readable(void *context, int fd, int events)
{
    struct raw_client *client = context;
    char block[4096];
    ssize_t got = read(fd, block, sizeof block);
    (void)events;
    if (got > 0) {
        text_add_bytes(&client->answer, block, (size_t)got);
        return;
    }
    loop_fd_set(client->watch, 0);
    loop_stop(client->loop);
}

static inline void raw_client_late(void *context)
{
    struct raw_client *client = context;
    client->timed_out = true;
    loop_stop(client->loop);
}

/* Connects and writes; a request of a test fits into the socket's buffer. */
static inline void raw_client_open(struct raw_client *client, struct loop *loop, int port,
                                   const char *request, size_t bytes)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *client = (struct raw_client){.loop = loop,
                                  .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    CU_ASSERT_TRUE_FATAL(client->fd >= 0);
    CU_ASSERT_EQUAL_FATAL(connect(client->fd, (const struct sockaddr *)&address, sizeof address),
                          0);
    CU_ASSERT_EQUAL_FATAL(write(client->fd, request, bytes), (ssize_t)bytes);
    client->watch = loop_fd_new(loop, client->fd, LOOP_READ, raw_client_readable, client);
    client->timer = loop_timer_new(loop, raw_client_late, client);
}

static inline void raw_client_close(struct raw_client *client)
{
    loop_fd_free(client->watch);
    loop_timer_free(client->timer);
    close(client->fd);
}

/* Runs the loop until the server has closed the connection; false when it did not within wait_ns.
 */
static inline bool raw_client_wait(struct raw_client *client, int64_t wait_ns)
{
    client->timed_out = false;
    loop_timer_set(client->timer, wait_ns);
    loop_run(client->loop);
    loop_timer_stop(client->timer);
    return !client->timed_out;
}

#endif
