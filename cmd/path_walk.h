/* SPDX-License-Identifier: Apache-2.0
 *
 * path_walk.h - every step on the way that a path leads now, through all of its
 * links: who could lead it elsewhere?
 */
#ifndef CMD_PATH_WALK_H
#define CMD_PATH_WALK_H

#include <sys/stat.h>

struct path_step {
	const char *dir; /* without links */
	const char *at;	 /* in @dir; may itself be a link */
	struct stat st;	 /* of @at */
};

/* Walks from "/", or from the working directory, and calls @visit for each
 * step, until it returns anything but 0. 0, that, or -errno where the way
 * ends. */
int path_walk(const char *path,
	      int (*visit)(void *arg, const struct path_step *step), void *arg);

#endif
