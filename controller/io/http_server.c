/* Listeners and the server that owns them. Accepting stops for a moment when descriptors run out;
 * beyond the cap a connection is only told 503, and beyond OVER_CAP_MAX of those it is closed
 * unheard.
 */
#include "controller/io/http_connection.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { OVER_CAP_MAX = 64, ACCEPTS_PER_PASS = 64, LISTEN_BACKLOG = 1024, ACCEPT_PAUSE_MS = 100 };

union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

struct http_limits http_limits_default(void)
{
    return (struct http_limits){
        .header_bytes = 16 * 1024,
        .body_bytes = 16u << 20,
        .inflated_bytes = 64u << 20,
        .held_bytes = 512u << 20,
        .connections = 1024,
        .header_ms = 10000,
        .request_ms = 60000,
        .idle_ms = 120000,
    };
}

struct http_server *http_server_new(struct loop *loop, const struct http_limits *limits,
                                    http_route_fn *fn, void *context)
{
    struct http_server *server = xcalloc(1, sizeof *server);
    server->loop = loop;
    server->limits = *limits;
    server->route = fn;
    server->route_context = context;
    return server;
}

static bool is_loopback(const union any_address *address)
{
    if (address->any.sa_family == AF_INET)
        return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
    if (address->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
    return false;
}

static void format_address(const union any_address *address, char *text, size_t bytes)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (address->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof host);
        snprintf(text, bytes, "%s:%d", host, ntohs(address->v4.sin_port));
    } else {
        inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof host);
        snprintf(text, bytes, "[%s]:%d", host, ntohs(address->v6.sin6_port));
    }
}

/* What the transport proves; false when a Unix peer has no credentials, which means it is not
 * trusted. */
static bool fill_peer(const struct http_listener *listener, int fd,
                      const union any_address *address, struct http_peer *ret_peer)
{
    *ret_peer = (struct http_peer){.is_tls = listener->tls != NULL};
    if (listener->unix_path == NULL) {
        ret_peer->is_loopback = is_loopback(address);
        format_address(address, ret_peer->address, sizeof ret_peer->address);
        return true;
    }
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
        return false;
    ret_peer->is_unix = true;
    ret_peer->uid = credentials.uid;
    text_copy(ret_peer->address, sizeof ret_peer->address, "unix");
    return true;
}

static void accept_one(struct http_listener *listener, int fd, const union any_address *address)
{
    struct http_server *server = listener->server;
    struct http_peer peer;
    bool over_cap = server->connection_count >= server->limits.connections;
    /* A handshake costs more than the 503 is worth. */
    bool is_unheard = over_cap && (server->over_cap_count >= OVER_CAP_MAX || listener->tls != NULL);
    if (is_unheard || !fill_peer(listener, fd, address, &peer)) {
        server->counts.refused_limit++;
        close(fd);
        return;
    }
    http_connection_start(server, fd, listener->tls, &peer, over_cap);
}

static void resume_accepting(void *context)
{
    struct http_listener *listener = context;
    loop_fd_set(listener->watch, LOOP_READ);
}

static void on_accept(void *context, int listening, int events)
{
    struct http_listener *listener = context;
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_PASS; i++) {
        union any_address address = {0};
        socklen_t length = sizeof address;
        int fd = accept4(listening, &address.any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            accept_one(listener, fd, &address);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            loop_fd_set(listener->watch, 0);
            loop_timer_set(listener->pause, (int64_t)ACCEPT_PAUSE_MS * 1000000);
        }
        if (errno != ECONNABORTED && errno != EINTR)
            return;
    }
}

/* "127.0.0.1:7430", "localhost:7430" or "[::1]:7430"; other names are not looked up: that could
 * wait. */
static enum status parse_address(const char *text, union any_address *ret_address,
                                 socklen_t *ret_length, struct error *reterr)
{
    const char *colon = strrchr(text, ':');
    char host[INET6_ADDRSTRLEN + 2] = "";
    int64_t port = -1;
    memset(ret_address, 0, sizeof *ret_address);
    if (colon != NULL && (size_t)(colon - text) < sizeof host) {
        memcpy(host, text, (size_t)(colon - text));
        if (!text_parse_int(view_of(colon + 1), &port))
            port = -1;
    }
    if (strcmp(host, "localhost") == 0)
        text_copy(host, sizeof host, "127.0.0.1");
    size_t length = strlen(host);
    bool is_port = port >= 0 && port <= 65535;
    if (is_port && inet_pton(AF_INET, host, &ret_address->v4.sin_addr) == 1) {
        ret_address->v4.sin_family = AF_INET;
        ret_address->v4.sin_port = htons((uint16_t)port);
        *ret_length = sizeof ret_address->v4;
        return OK;
    }
    if (is_port && length > 2 && host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        if (inet_pton(AF_INET6, host + 1, &ret_address->v6.sin6_addr) == 1) {
            ret_address->v6.sin6_family = AF_INET6;
            ret_address->v6.sin6_port = htons((uint16_t)port);
            *ret_length = sizeof ret_address->v6;
            return OK;
        }
    }
    return error_set(reterr, ERR_INVALID,
                     "'%s' is not an address: write 127.0.0.1:7430, [::1]:7430 or unix:/path",
                     text);
}

static int open_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static enum status open_tcp(const char *text, int *ret_fd, int *ret_port, struct error *reterr)
{
    union any_address address;
    socklen_t length;
    TRY(parse_address(text, &address, &length, reterr));
    int fd = open_socket(address.any.sa_family);
    if (fd < 0)
        return error_set(reterr, ERR_IO, "no socket for '%s': %s", text, strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (address.any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){1}, sizeof(int));
    if (bind(fd, &address.any, length) != 0 || listen(fd, LISTEN_BACKLOG) != 0) {
        int cause = errno;
        close(fd);
        return error_set(reterr, cause == EADDRINUSE ? ERR_CONFLICT : ERR_IO,
                         "cannot listen on '%s': %s", text, strerror(cause));
    }
    getsockname(fd, &address.any, &length);
    *ret_port = ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port
                                                       : address.v6.sin6_port);
    *ret_fd = fd;
    return OK;
}

/* Removes a socket file that nobody listens on; one that somebody does is a conflict. */
static enum status clear_stale_socket(const union any_address *address, struct error *reterr)
{
    const char *path = address->local.sun_path;
    struct stat info;
    if (lstat(path, &info) != 0)
        return OK;
    if (!S_ISSOCK(info.st_mode))
        return error_set(reterr, ERR_CONFLICT, "'%s' is there and is not a socket", path);
    int fd = open_socket(AF_UNIX);
    int failed = connect(fd, &address->any, sizeof address->local);
    int cause = errno;
    close(fd);
    if (failed == 0 || cause != ECONNREFUSED)
        return error_set(reterr, ERR_CONFLICT, "another process listens on '%s'", path);
    unlink(path);
    return OK;
}

static enum status open_unix(const char *path, int *ret_fd, struct error *reterr)
{
    union any_address address = {.local.sun_family = AF_UNIX};
    if (!text_copy(address.local.sun_path, sizeof address.local.sun_path, path))
        return error_set(reterr, ERR_INVALID, "the socket path '%s' is longer than 107 bytes",
                         path);
    TRY(clear_stale_socket(&address, reterr));
    int fd = open_socket(AF_UNIX);
    if (fd < 0)
        return error_set(reterr, ERR_IO, "no socket for '%s': %s", path, strerror(errno));
    mode_t mask = umask(0117); /* mode 0660 from the first moment on */
    int failed = bind(fd, &address.any, sizeof address.local);
    int cause = errno;
    umask(mask);
    if (failed == 0 && listen(fd, LISTEN_BACKLOG) != 0) {
        failed = -1;
        cause = errno;
    }
    if (failed != 0) {
        close(fd);
        return error_set(reterr, ERR_IO, "cannot listen on '%s': %s", path, strerror(cause));
    }
    *ret_fd = fd;
    return OK;
}

static char *copy_or_null(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

static void listener_free(struct http_listener *listener)
{
    loop_fd_free(listener->watch);
    loop_timer_free(listener->pause);
    if (listener->fd >= 0)
        close(listener->fd);
    if (listener->unix_path != NULL && listener->fd >= 0)
        unlink(listener->unix_path);
    tls_context_free(listener->tls);
    xfree(listener->unix_path);
    xfree(listener->certificate_file);
    xfree(listener->key_file);
    xfree(listener->client_ca_file);
    xfree(listener);
}
DEFINE_AUTO(struct http_listener, listener_free)

static struct http_tls listener_files(const struct http_listener *listener)
{
    return (struct http_tls){
        .certificate_file = listener->certificate_file,
        .key_file = listener->key_file,
        .client_ca_file = listener->client_ca_file,
        .client_required = listener->client_required,
    };
}

static enum status listener_open(struct http_listener *listener, const char *address,
                                 const struct http_tls *tls, struct error *reterr)
{
    static const char unix_prefix[] = "unix:";
    if (tls != NULL) {
        TRY(tls_context_new(tls, &listener->tls, reterr));
        listener->certificate_file = xstrdup(tls->certificate_file);
        listener->key_file = xstrdup(tls->key_file);
        listener->client_ca_file = copy_or_null(tls->client_ca_file);
        listener->client_required = tls->client_required;
    }
    if (strncmp(address, unix_prefix, sizeof unix_prefix - 1) != 0)
        return open_tcp(address, &listener->fd, &listener->port, reterr);
    const char *path = address + sizeof unix_prefix - 1;
    TRY(open_unix(path, &listener->fd, reterr));
    listener->unix_path = xstrdup(path);
    return OK;
}

enum status http_server_listen(struct http_server *server, const char *address,
                               const struct http_tls *tls, struct error *reterr)
{
    AUTO(listener_free) struct http_listener *listener = xcalloc(1, sizeof *listener);
    listener->fd = -1;
    listener->server = server;
    TRY(listener_open(listener, address, tls, reterr));
    listener->pause = loop_timer_new(server->loop, resume_accepting, listener);
    listener->watch = loop_fd_new(server->loop, listener->fd, LOOP_READ, on_accept, listener);
    struct http_listener **end = &server->listeners;
    while (*end != NULL)
        end = &(*end)->next;
    *end = TAKE(listener);
    return OK;
}

static enum status read_fresh_tls(struct http_server *server, struct error *reterr)
{
    for (struct http_listener *listener = server->listeners; listener; listener = listener->next) {
        struct http_tls files = listener_files(listener);
        if (listener->tls != NULL)
            TRY(tls_context_new(&files, &listener->fresh_tls, reterr));
    }
    return OK;
}

enum status http_server_reload_tls(struct http_server *server, struct error *reterr)
{
    enum status status = read_fresh_tls(server, reterr);
    for (struct http_listener *listener = server->listeners; listener; listener = listener->next) {
        struct tls_context *fresh = TAKE(listener->fresh_tls);
        if (status == OK && fresh != NULL) {
            tls_context_free(listener->tls);
            listener->tls = TAKE(fresh);
        }
        tls_context_free(fresh);
    }
    return status;
}

int http_server_port(const struct http_server *server)
{
    for (const struct http_listener *listener = server->listeners; listener;
         listener = listener->next)
        if (listener->unix_path == NULL)
            return listener->port;
    return 0;
}

void http_server_free(struct http_server *server)
{
    if (server == NULL)
        return;
    while (server->connections != NULL)
        http_connection_free(server->connections);
    while (server->listeners != NULL) {
        struct http_listener *listener = server->listeners;
        server->listeners = listener->next;
        listener_free(listener);
    }
    xfree(server);
}

struct http_server_counts http_server_counts(const struct http_server *server)
{
    struct http_server_counts counts = server->counts;
    counts.connections_now = server->connection_count;
    return counts;
}
