/* SPDX-License-Identifier: Apache-2.0
 *
 * placed.h - a command in a sandbox of the daemon, for `exec` and for `run`.
 * The daemon has no part in its life: it says where the sandbox is, and writes
 * down that there is a command. What is in the sandbox is nobody's child but
 * ours.
 */
#ifndef CMD_PLACED_H
#define CMD_PLACED_H

#include <jansson.h>

#include "cmd/command_process.h"
#include "cmd/exec_namespace.h"
#include "cmd/options.h"
#include "cmd/run_view.h"
#include "cmd/session.h"

struct placed {
	/* The caller's. */
	const char *name, *socket;
	struct options options; /* as far as the view asks for them */
	struct command_process command;

	/* What the daemon says. */
	char netns[PATH_MAX];
	uid_t owner;
	struct ip gateway;
	uint16_t proxy_port;

	struct session session; /* .dir: of the log */
	struct run_view view;
	struct limits_groups limits;
	struct exec_namespace ns; /* { -1, -1 } */
};

/* In this order; they die with a message (EXIT_SALLYPORT) where they can't. */

/* What the daemon says of the sandbox, @s, which has to be ready. */
void placed_at(struct placed *placed, const json_t *s);
/* Its bounds, below the ceiling that the daemon says in @s. */
void placed_limit(struct placed *placed, const json_t *s);
/* As `run` does it, and the daemon's files too; .options.bundle is what the
 * policy is made of. */
void placed_choose_view(struct placed *placed);
/* There is a record of the command. Before it is prepared: without one it never
 * begins. */
void placed_record(struct placed *placed);
/* Into the namespace, which is looked at; the command is prepared there. */
void placed_enter(struct placed *placed);
/* Runs it to its end: its exit status. */
int placed_run(struct placed *placed);
void placed_free(struct placed *placed);

/* The command as a line for people, cut and without what JSON can't have. */
#define PLACED_LINE_MAX 480
void placed_line(char *const *argv, char buf[PLACED_LINE_MAX]);

#endif
