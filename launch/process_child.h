/* SPDX-License-Identifier: Apache-2.0
 *
 * process_child.h - between process.c and the child it forks.
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

/* Becomes bubblewrap. @parent is who must stay alive. */
_Noreturn void process_child(const struct process_spec *spec,
			     const struct pipes *pipes, const char *bwrap,
			     pid_t parent);

#endif
