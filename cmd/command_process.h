/* SPDX-License-Identifier: Apache-2.0
 *
 * command_process.h - the command of `run` and of `exec`: from its preparation
 * to its exit status. Signals go to it, the terminal is its own meanwhile, and
 * it may have a time limit.
 */
#ifndef CMD_COMMAND_PROCESS_H
#define CMD_COMMAND_PROCESS_H

#include <signal.h>
#include <stdint.h>

#include "base/addr.h"
#include "launch/process.h"

struct event;
struct event_base;

struct command_process {
	struct process_spec spec; /* the caller's part: all but .env,
				     .resolv_conf and .interactive */
	struct process process;
	const char *const *env; /* the caller's: "NAME", "NAME=VALUE" to pass,
				   beside what is inherited */
	size_t envs;
	char left[256]; /* names that were left out, as they hold secrets */
	bool timed_out;
	int signal; /* that ended it before it began */

	/* Its own. */
	struct event_base *base;
	struct event *timer, *died, *signals;
	int signal_fd;
	sigset_t caught;
};

/* These die with a message (EXIT_SALLYPORT) where they can't. */

/* From here on signals wait for the command. Before anything is started. */
void command_catch(struct command_process *command);
/* Prepares it, with the proxy's environment; @home: its HOME, or "". */
void command_begin(struct command_process *command, const struct ip *gateway,
		   uint16_t proxy_port, const char *home);
/* Waits until it is prepared; @quiet: without a note about its view. */
void command_ready(struct command_process *command, bool quiet);
/* Looks after it from @base's loop on, which is left when it ends. @timeout_ms
 * 0: as long as it likes. */
void command_attach(struct command_process *command, struct event_base *base,
		    unsigned timeout_ms);

/* After the loop: its exit status; EXIT_TIMEOUT; 128 + the signal that came
 * before it began. */
int command_wait(struct command_process *command);

void command_release(struct command_process *command);

/* Once there is no command any more: those that it did not live to see are
 * dropped, and from here on one ends us as it would have before. */
void command_uncatch(const struct command_process *command);

#endif
