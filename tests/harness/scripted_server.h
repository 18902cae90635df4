/* An HTTP server for what no real one does on demand: a test's function gets each request and sends
 * what it likes, whole answers or single chunks, at once or later, or cuts the connection. On the
 * test's own loop; plain HTTP/1.1 on a free port of 127.0.0.1. One includer a program.
 */
#ifndef BROOM_TESTS_HARNESS_SCRIPTED_SERVER_H
#define BROOM_TESTS_HARNESS_SCRIPTED_SERVER_H

#include "controller/base/text.h"
#include "controller/io/loop.h"
#include "tests/harness/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct scripted_server;

struct scripted_connection {
    struct scripted_server *server;
    struct scripted_connection *next;
    int fd; /* -1 after scripted_cut */
    struct loop_fd *watch;
    struct text in;
    int requests;    /* on this connection, this one counted */
    char method[8];  /* of the newest request */
    char path[1024]; /* as sent, with its query */
    char head[4096]; /* request line and headers */
    struct text body;
};

typedef void scripted_fn(void *context, struct scripted_connection *connection);

struct scripted_server {
    struct loop *loop;
    int fd, port;
    struct loop_fd *watch;
    struct scripted_connection *connections; /* freed with the server */
    int accepted, requests;
    scripted_fn *fn;
    void *context;
};

static inline void scripted_send(struct scripted_connection *connection, const char *bytes,
                                 size_t length)
{
    while (length > 0 && connection->fd >= 0) {
        ssize_t sent = send(connection->fd, bytes, length, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        bytes += sent;
        length -= (size_t)sent;
    }
}

/* headers: whole lines, or "". */
static inline void scripted_reply(struct scripted_connection *connection, int code,
                                  const char *headers, const char *body)
{
    AUTO_TEXT out = {0};
    text_addf(&out, "HTTP/1.1 %d Said\r\nContent-Length: %zu\r\n%s\r\n%s", code, strlen(body),
              headers, body);
    scripted_send(connection, out.bytes, out.length);
}

static inline void scripted_open_stream(struct scripted_connection *connection)
{
    static const char HEAD[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    scripted_send(connection, HEAD, sizeof HEAD - 1);
}

static inline void scripted_chunk(struct scripted_connection *connection, const char *bytes)
{
    AUTO_TEXT out = {0};
    text_addf(&out, "%zx\r\n%s\r\n", strlen(bytes), bytes);
    scripted_send(connection, out.bytes, out.length);
}

static inline void scripted_end_stream(struct scripted_connection *connection)
{
    scripted_send(connection, "0\r\n\r\n", 5);
}

static inline void scripted_cut(struct scripted_connection *connection)
{
    if (connection->fd < 0)
        return;
    loop_fd_free(TAKE(connection->watch));
    close(connection->fd);
    connection->fd = -1;
}

/* Takes one whole request out of what came; false when there is none yet. */
static inline bool scripted_take(struct scripted_connection *connection)
{
    struct text *in = &connection->in;
    const char *end = in->length > 0 ? strstr(in->bytes, "\r\n\r\n") : NULL;
    if (end == NULL)
        return false;
    size_t head = (size_t)(end - in->bytes) + 4;
    const char *length_line = strcasestr(in->bytes, "content-length:");
    size_t body = length_line != NULL && length_line < end
                      ? (size_t)strtol(length_line + 15, NULL, 10)
                      : 0;
    if (in->length < head + body)
        return false;
    snprintf(connection->head, sizeof connection->head, "%.*s", (int)head, in->bytes);
    sscanf(in->bytes, "%7s %1023s", connection->method, connection->path);
    text_clear(&connection->body);
    text_add(&connection->body, "");
    text_add_bytes(&connection->body, in->bytes + head, body);
    memmove(in->bytes, in->bytes + head + body, in->length - head - body + 1);
    in->length -= head + body;
    return true;
}

static inline void scripted_readable(void *context, int fd, int events)
{
    struct scripted_connection *connection = context;
    char block[16384];
    (void)events;
    ssize_t got = recv(fd, block, sizeof block, 0);
    if (got <= 0) {
        scripted_cut(connection);
        return;
    }
    text_add_bytes(&connection->in, block, (size_t)got);
    while (connection->fd >= 0 && scripted_take(connection)) {
        connection->requests++;
        connection->server->requests++;
        connection->server->fn(connection->server->context, connection);
    }
}

static inline void scripted_accept(void *context, int fd, int events)
{
    struct scripted_server *server = context;
    (void)events;
    int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    if (accepted < 0)
        return;
    server->accepted++;
    struct scripted_connection *connection = xcalloc(1, sizeof *connection);
    *connection = (struct scripted_connection){
        .server = server, .next = server->connections, .fd = accepted};
    connection->watch = loop_fd_new(server->loop, accepted, LOOP_READ, scripted_readable,
                                    connection);
    server->connections = connection;
}

/* port 0 takes a free one. */
static inline void scripted_open(struct scripted_server *server, struct loop *loop, int port,
                                 scripted_fn *fn, void *context)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int yes = 1;
    *server = (struct scripted_server){.loop = loop, .fn = fn, .context = context};
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(server->fd >= 0);
    setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    CU_ASSERT_FATAL(bind(server->fd, (struct sockaddr *)&address, sizeof address) == 0);
    CU_ASSERT_FATAL(listen(server->fd, 64) == 0);
    CU_ASSERT_FATAL(getsockname(server->fd, (struct sockaddr *)&address, &length) == 0);
    server->port = ntohs(address.sin_port);
    server->watch = loop_fd_new(loop, server->fd, LOOP_READ, scripted_accept, server);
}

static inline void scripted_close(struct scripted_server *server)
{
    if (server->watch == NULL)
        return;
    loop_fd_free(TAKE(server->watch));
    close(server->fd);
    while (server->connections != NULL) {
        struct scripted_connection *connection = server->connections;
        server->connections = connection->next;
        scripted_cut(connection);
        text_done(&connection->in);
        text_done(&connection->body);
        xfree(connection);
    }
}

#endif
