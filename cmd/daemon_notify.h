/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_notify.h - what systemd and a service say to each other:
 * sd_notify(3), sd_listen_fds(3).
 */
#ifndef CMD_DAEMON_NOTIFY_H
#define CMD_DAEMON_NOTIFY_H

#include <stdint.h>

/* Sends @state ("READY=1") to $NOTIFY_SOCKET; without one, to nobody. */
void notify_systemd(const char *state);

/* "RELOADING=1", with the time that Type=notify-reload asks for. */
void notify_reloading(void);

/* How often "WATCHDOG=1" is to be sent; 0: nobody waits for it. */
uint64_t notify_watchdog_us(void);

/* The socket that was passed to us under @name; close-on-exec. -ENOENT: there
 * is none. */
int notify_listen_fd(const char *name);

#endif
