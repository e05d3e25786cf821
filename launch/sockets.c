/* SPDX-License-Identifier: Apache-2.0
 *
 * sockets.c - /proc/net/unix, read once.
 *
 *	Num RefCount Protocol Flags Type St Inode Path
 *
 * A path that starts with '@' is abstract: those belong to the network
 * namespace, and a sandbox has its own.
 */
#include "launch/sockets.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* The eighth word of the line, up to its end; NULL without. */
static char *path_of(char *line)
{
	for (int word = 0; word < 7; word++) {
		line += strspn(line, " ");
		line += strcspn(line, " \n");
	}
	line += strspn(line, " ");
	line[strcspn(line, "\n")] = '\0';
	return *line == '/' ? line : NULL;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Connected sockets have the path of the one that accepted them, so most lines
 * of a busy host are repetitions. */
static int add(char **path, size_t *n, const char *name)
{
	AUTO_FREE char *real = realpath(name, NULL);
	struct stat st;

	if (!real || lstat(real, &st) < 0 || !S_ISSOCK(st.st_mode))
		return 0; /* gone, or of another file system view */
	for (size_t i = *n; i > 0; i--)
		if (strcmp(path[i - 1], real) == 0)
			return 0;
	if (*n == SOCKETS_MAX)
		return -E2BIG;
	path[(*n)++] = STEAL(real);
	return 0;
}

int sockets_list(char ***ret_path, size_t *ret_n)
{
	AUTO_FILE FILE *f = fopen("/proc/self/net/unix", "re");
	AUTO_FREE char *line = NULL;
	size_t cap = 0, n = 0;
	char **path;
	int r = 0;

	if (!f)
		return -errno;
	path = calloc(SOCKETS_MAX, sizeof(*path));
	if (!path)
		return -ENOMEM;
	while (r == 0 && getline(&line, &cap, f) >= 0) {
		const char *name = path_of(line);

		if (name)
			r = add(path, &n, name);
	}
	if (r < 0) {
		sockets_free(path, n);
		return r;
	}
	qsort(path, n, sizeof(*path), compare);
	*ret_path = path;
	*ret_n = n;
	return 0;
}

void sockets_free(char **path, size_t n)
{
	for (size_t i = 0; path && i < n; i++)
		free(path[i]);
	free(path);
}
