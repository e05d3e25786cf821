/* SPDX-License-Identifier: Apache-2.0
 *
 * run_end.h - the last words of a `run` to the daemon, and of the daemon to the
 * user.
 *
 * They are a process's of its own, which stays what we were: in the sandbox's
 * user namespace nobody can be told from anybody, least of all who answers at
 * the control socket. Meanwhile it answers `sallyport reload`. It ends with us.
 */
#ifndef CMD_RUN_END_H
#define CMD_RUN_END_H

#include <stdbool.h>
#include <sys/types.h>

struct placed;

struct run_end {
	int sock;
	pid_t pid;
};

/* Before placed_enter(); dies with a message (EXIT_SALLYPORT) where it can't.
 * @placed knows its sandbox. */
void run_end_prepare(struct run_end *end, struct placed *placed);

/* The command has ended with @status: ends the sandbox, prints the summary.
 * False: not all of it is known to be in the log. */
bool run_end_now(struct run_end *end, const struct placed *placed, int status);

#endif
