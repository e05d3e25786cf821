/* SPDX-License-Identifier: Apache-2.0
 *
 * sockets_known.h - directories that were read before, and are as they were.
 *
 * For the search for sockets (sockets.h): what it costs is reading directories,
 * and hardly one of them changes between two sandboxes.
 */
#ifndef LAUNCH_SOCKETS_KNOWN_H
#define LAUNCH_SOCKETS_KNOWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct known;

/* A directory without sockets. */
struct known_dir {
	uint32_t entries;	/* all, whatever they are */
	const char *name, *end; /* of the directories in it, each terminated */
};

/* What @path has. A file that is not there, not ours alone or not whole has
 * nothing. NULL without memory. */
struct known *known_open(const char *path);

/* The directory with the status @st, if it has not changed since. True, and
 * @ret until the next call of any of these. */
bool known_find(struct known *known, const struct stat *st,
		struct known_dir *ret);

/* @dir of the status @st, which is from before it was read, holds @entries, and
 * no socket; @name: as above. Kept if a later change is sure to show. */
void known_add(struct known *known, int dir, const struct stat *st,
	       const struct known_dir *what);

/* Writes the file anew, if enough has changed; frees. NULL is fine. */
void known_close(struct known *known);

#endif
