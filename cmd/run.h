/* SPDX-License-Identifier: Apache-2.0
 *
 * run.h - a session of one command, for who is not `run`.
 */
#ifndef CMD_RUN_H
#define CMD_RUN_H

struct options;
struct warden;

struct run_hook {
	/* The command ended with @status, and the session is still open: its
	 * log, its counters, its ledger. Returns the status to go on with. */
	int (*ended)(void *arg, struct warden *warden, int status);
	void *arg;
};

/* Runs @options->argv, to whose strings and bundle this takes over; @hook may
 * be NULL. Returns what `run` exits with. */
int run_session(const struct options *options, const struct run_hook *hook);

#endif
