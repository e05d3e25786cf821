/* SPDX-License-Identifier: Apache-2.0
 *
 * sockets.c - /proc/net/unix, read once.
 *
 *	Num RefCount Protocol Flags Type St Inode Path
 *
 * A path that starts with '@' is abstract: those belong to the network
 * namespace, and a sandbox has its own. A path may have newlines in it: a line
 * that does not start as one of the table goes on with the last one's path.
 *
 * The table has the name that was given to bind(2): not where it was relative
 * to, nor what it was renamed to, nor other network namespaces. So the trees
 * where sockets may be are looked through as well (sockets_walk.c).
 */
#include "launch/sockets.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

int sockets_add(struct sockets *list, char *path)
{
	if (!path)
		return -ENOMEM;
	if (list->n == list->cap) {
		size_t cap = list->cap ? 2 * list->cap : 64;
		char **more = reallocarray(list->path, cap, sizeof(*more));

		if (!more) {
			free(path);
			return -ENOMEM;
		}
		list->path = more;
		list->cap = cap;
	}
	list->path[list->n++] = path;
	return 0;
}

void sockets_free(struct sockets *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->path[i]);
	free(list->path);
	*list = (struct sockets){ 0 };
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_once(struct sockets *list)
{
	size_t kept = 0;

	if (!list->n)
		return;
	qsort(list->path, list->n, sizeof(*list->path), compare);
	for (size_t i = 1; i < list->n; i++) {
		if (strcmp(list->path[kept], list->path[i]) == 0)
			free(list->path[i]);
		else
			list->path[++kept] = list->path[i];
	}
	list->n = kept + 1;
}

static bool starts_entry(const char *line)
{
	size_t n = 0;

	while (isxdigit((unsigned char)line[n]))
		n++;
	return (n == 8 || n == 16) && line[n] == ':';
}

/* What follows the seventh word of the line. The space after it is one. */
static const char *path_of(const char *line)
{
	for (int word = 0; word < 7; word++) {
		line += strspn(line, " ");
		line += strcspn(line, " \n");
	}
	return *line == ' ' ? line + 1 : line;
}

/* Adds the name of the entry from @line to @end, if it has one in the files. */
static int add_entry(struct sockets *list, const char *line, const char *end)
{
	const char *name = path_of(line);

	if (name >= end || *name != '/')
		return 0;
	return sockets_add(list, strndup(name, (size_t)(end - name)));
}

int sockets_parse(struct sockets *list, const char *table)
{
	const char *entry = NULL, *line = table;
	int r = 0;

	while (r == 0 && *line) {
		const char *next = strchr(line, '\n');

		if (starts_entry(line)) {
			if (entry)
				r = add_entry(list, entry, line - 1);
			entry = line;
		}
		line = next ? next + 1 : line + strlen(line);
	}
	if (r == 0 && entry)
		r = add_entry(list, entry, line[-1] == '\n' ? line - 1 : line);
	return r;
}

static int read_table(char **ret)
{
	AUTO_FILE FILE *f = fopen("/proc/self/net/unix", "re");
	AUTO_FREE char *text = NULL;
	size_t cap = 0;

	if (!f)
		return -errno;
	errno = 0;
	if (getdelim(&text, &cap, '\0', f) < 0)
		return errno ? -errno : -EIO;
	*ret = STEAL(text);
	return 0;
}

/* Connected sockets have the path of the one that accepted them, so most lines
 * of a busy host are repetitions: each name is looked up once. */
static int list_bound(struct sockets *ret)
{
	struct sockets name = { 0 };
	AUTO_FREE char *table = NULL;
	int r = read_table(&table);

	if (r == 0)
		r = sockets_parse(&name, table);
	sort_once(&name);
	for (size_t i = 0; r == 0 && i < name.n; i++) {
		AUTO_FREE char *real = realpath(name.path[i], NULL);
		struct stat st;

		/* Or gone, or of another view of the files. */
		if (real && lstat(real, &st) == 0 && S_ISSOCK(st.st_mode))
			r = sockets_add(ret, STEAL(real));
	}
	sockets_free(&name);
	return r;
}

int sockets_list(const struct sockets_search *search, struct sockets *ret)
{
	int r;

	*ret = (struct sockets){ 0 };
	r = list_bound(ret);
	if (r == 0)
		r = sockets_walk(ret, search);
	sort_once(ret);
	return r;
}
