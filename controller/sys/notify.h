/* Talks to systemd's NOTIFY_SOCKET, by hand: one datagram a message. Without that variable every
 * call is a no-op.
 */
#ifndef BROOM_SYS_NOTIFY_H
#define BROOM_SYS_NOTIFY_H

#include <stdint.h>

/* Takes NOTIFY_SOCKET and WATCHDOG_USEC out of the environment, so that no child speaks for us. */
void notify_init(void);
void notify_ready(void);
void notify_reloading(void); /* notify_ready ends it */
void notify_stopping(void);
void notify_status(const char *text); /* one line for `systemctl status` */
void notify_watchdog(void);
/* How often notify_watchdog is due: half of what systemd waits; 0 when it does not watch. */
int64_t notify_watchdog_interval_ns(void);

#endif
