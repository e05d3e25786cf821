/* SPDX-License-Identifier: Apache-2.0
 *
 * process_child.h - between process.c and the child it clones.
 */
#ifndef LAUNCH_PROCESS_CHILD_H
#define LAUNCH_PROCESS_CHILD_H

#include "launch/process.h"

#define REPORT_MAX  512
#define STATUS_OURS 125

/* What the child tells us before it executes bubblewrap. */
struct report {
	int status; /* 0: only a note; else -errno */
	char text[REPORT_MAX];
};

enum { START, STATUS, ERROR, REPORT, PIPES };

struct pipes {
	int fd[PIPES][2]; /* read end, write end */
};

/* Becomes bubblewrap; pid 1 of a new pid namespace, in a new mount namespace.
 * Ends with who has the other end of the START pipe. */
_Noreturn void process_child(const struct process_spec *spec,
			     const struct pipes *pipes, const char *bwrap);

#endif
