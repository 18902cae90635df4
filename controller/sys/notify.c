/* sd_notify's protocol over a Unix datagram socket. A message that cannot be sent is lost:
 * systemd's own time-outs are the answer to that.
 */
#include "controller/sys/notify.h"

#include "controller/base/text.h"
#include "controller/sys/clock.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct {
    struct sockaddr_un address;
    socklen_t length; /* 0: nobody listens */
    int64_t watchdog_ns;
} notify_state;

static void take_socket(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    if (path == NULL || (path[0] != '/' && path[0] != '@'))
        return;
    notify_state.address.sun_family = AF_UNIX;
    if (!text_copy(notify_state.address.sun_path, sizeof notify_state.address.sun_path, path))
        return;
    notify_state.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (path[0] == '@')
        notify_state.address.sun_path[0] = '\0'; /* the abstract name space */
    else
        notify_state.length++;
}

static void take_watchdog(void)
{
    const char *period = getenv("WATCHDOG_USEC"), *owner = getenv("WATCHDOG_PID");
    int64_t period_us = 0, pid = 0;
    if (period == NULL || !text_parse_int(view_of(period), &period_us) || period_us <= 0 ||
        period_us > INT64_MAX / 1000)
        return;
    bool is_ours = owner == NULL || (text_parse_int(view_of(owner), &pid) && pid == getpid());
    if (is_ours)
        notify_state.watchdog_ns = period_us * 1000 / 2;
}

void notify_init(void)
{
    memset(&notify_state, 0, sizeof notify_state);
    take_socket();
    take_watchdog();
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

static void notify_send(const char *message)
{
    if (notify_state.length == 0)
        return;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    union {
        const struct sockaddr_un *local;
        const struct sockaddr *any;
    } address = {.local = &notify_state.address};
    ssize_t sent = sendto(fd, message, strlen(message), MSG_NOSIGNAL, address.any,
                          notify_state.length);
    (void)sent;
    close(fd);
}

void notify_ready(void)
{
    notify_send("READY=1");
}

void notify_reloading(void)
{
    AUTO_TEXT message = {0};
    text_addf(&message, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_read().monotonic_ns / 1000);
    notify_send(message.bytes);
}

void notify_stopping(void)
{
    notify_send("STOPPING=1");
}

void notify_status(const char *text)
{
    AUTO_TEXT message = {0};
    text_add(&message, "STATUS=");
    for (; *text != '\0'; text++)
        text_add_bytes(&message, *text == '\n' ? " " : text,
                       1); /* a new line would begin another message */
    notify_send(message.bytes);
}

void notify_watchdog(void)
{
    notify_send("WATCHDOG=1");
}

int64_t notify_watchdog_interval_ns(void)
{
    return notify_state.length > 0 ? notify_state.watchdog_ns : 0;
}
