/* SPDX-License-Identifier: Apache-2.0
 *
 * run_daemon.h - `sallyport run` where there is a daemon: the sandbox is the
 * daemon's, for this command alone, and all else is as without one.
 */
#ifndef CMD_RUN_DAEMON_H
#define CMD_RUN_DAEMON_H

#include <stdbool.h>

struct options;

#define RUN_DAEMON_ENV "SALLYPORT_NO_DAEMON"

/* Is there a daemon that lets this user in, and can it do what @options ask
 * for? Nothing has happened if not. */
bool run_daemon_serves(const struct options *options);

/* Runs the command of @options, which are taken; the exit status. Dies with a
 * message (EXIT_SALLYPORT) where the daemon refuses: that is no reason to go
 * another way. */
int run_daemon(const struct options *options);

#endif
