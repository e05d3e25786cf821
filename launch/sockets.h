/* SPDX-License-Identifier: Apache-2.0
 *
 * sockets.h - the unix sockets of this host that have a name in its files.
 */
#ifndef LAUNCH_SOCKETS_H
#define LAUNCH_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define SOCKETS_BUDGET 20000

/* Which directories to look through, besides what the kernel lists. */
struct sockets_search {
	const char *const *root; /* canonical; the first is looked at first */
	size_t roots;
	size_t budget; /* directory entries in all */
	/* Nothing at @dir or below can be seen: don't look. Not asked for the
	 * roots themselves. */
	bool (*hidden)(const void *arg, const char *dir);
	/* Nobody but this directory's owner can go through it, nor be let
	 * through: don't look. @fd: the directory, or -1: then only what is
	 * certain by @st alone. */
	bool (*closed)(const void *arg, const char *dir, int fd,
		       const struct stat *st);
	const void *arg;
	const char *known; /* sockets_known.h; NULL: all is read */
};

/* A growing list of paths, each to be freed. */
struct sockets {
	char **path;
	size_t n, cap;
	bool partial; /* the budget was not enough, or a directory failed */
};

/* Canonical paths of the sockets found: those bound by an absolute path in our
 * network namespace, and those in the trees of @search that anything on this
 * host still has open. Each once, sorted. 0 or -errno; sockets_free() in any
 * case. */
int sockets_list(const struct sockets_search *search, struct sockets *ret);
void sockets_free(struct sockets *list);

/* For sockets_list() and its tests: the names in a table like
 * /proc/net/unix; the sockets in the trees. Both may repeat. */
int sockets_parse(struct sockets *list, const char *table);
int sockets_walk(struct sockets *list, const struct sockets_search *search);

/* Takes @path, also when it fails (-ENOMEM, also for NULL). */
int sockets_add(struct sockets *list, char *path);

#endif
