/* SPDX-License-Identifier: Apache-2.0
 *
 * run_view.h - as whom a command runs, and what it must not see.
 */
#ifndef CMD_RUN_VIEW_H
#define CMD_RUN_VIEW_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cmd/policy_marks.h"

struct bounds;
struct options;
struct session;
struct process_spec;

struct run_view {
	char cwd[PATH_MAX]; /* canonical */
	uid_t uid;	    /* the command's */
	dev_t cwd_dev;
	ino_t cwd_ino;
	char home[PATH_MAX];	     /* the command's, or "": ours */
	char known[PATH_MAX];	     /* launch/sockets_known.h, or "" */
	const struct bounds *bounds; /* or NULL: a view as it is by default */
	char **hide;
	size_t hides;
	struct policy_marks marks;
};

/* These die with a message (EXIT_SALLYPORT) where they can't. */

/* Fills in who @spec runs as. */
void run_view_user(struct run_view *view, const struct options *options,
		   struct process_spec *spec);
/* Before any file is opened: are our standard descriptors a way out? */
void run_view_descriptors(const struct options *options);
/* One path more that @spec will hide, if it is there; before the next. */
void run_view_hide(struct run_view *view, const char *path);
/* Fills in where @spec runs and what it hides: every log, every file that the
 * policy is made of, and where those of later sessions are. They are @view's.
 */
void run_view_choose(struct run_view *view, const struct options *options,
		     const struct session *session, struct process_spec *spec);

/* All is masked, and the command may start: notes what later sessions must know
 * if it is replaced meanwhile. */
void run_view_mark(struct run_view *view, const struct options *options,
		   const struct session *session);
/* The command has ended. The first policy file that it could have written to,
 * or NULL. */
const char *run_view_settle(struct run_view *view);

/* Can the command whose pid 1 is @init write to @path, or put another file in
 * its place? A mask is over a file, not over its name. */
bool run_view_exposes(const struct run_view *view, pid_t init,
		      const char *path);

void run_view_free(struct run_view *view);

#endif
