/* SPDX-License-Identifier: Apache-2.0
 *
 * reload_daemon.h - `sallyport reload`, where the daemon is meant.
 */
#ifndef CMD_RELOAD_DAEMON_H
#define CMD_RELOAD_DAEMON_H

#include <stdbool.h>

/* What was to be read is wrong, and what was in force still is. */
#define EXIT_REFUSED 1

/* @sandbox NULL: configuration and named policies are read again. Else that
 * sandbox is given the policy of the configuration which it has. Returns the
 * exit status; dies where there is no daemon. */
int reload_daemon(const char *socket, const char *sandbox, bool json);

#endif
