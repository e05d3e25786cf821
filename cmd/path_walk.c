/* SPDX-License-Identifier: Apache-2.0
 *
 * path_walk.c - what the kernel does to a path, in slow motion.
 */
#include "cmd/path_walk.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX 40 /* the kernel's */

struct walk {
	char done[PATH_MAX];	 /* without links; "" is the root */
	char left[2 * PATH_MAX]; /* still to go */
	unsigned links;
};

/* Takes the next name off what is left; false at the end. */
static bool next_name(struct walk *walk, char name[NAME_MAX + 1], int *ret_err)
{
	const char *from = walk->left + strspn(walk->left, "/");
	size_t len = strcspn(from, "/");

	*ret_err = len > NAME_MAX ? -ENAMETOOLONG : 0;
	if (!len || *ret_err)
		return false;
	memcpy(name, from, len);
	name[len] = '\0';
	memmove(walk->left, from + len, strlen(from + len) + 1);
	return true;
}

static void go_up(struct walk *walk)
{
	char *slash = strrchr(walk->done, '/');

	if (slash)
		*slash = '\0';
}

static int follow(struct walk *walk, const char *link)
{
	char rest[2 * PATH_MAX], target[PATH_MAX];
	ssize_t n = readlink(link, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	memcpy(rest, walk->left, sizeof(rest));
	n = snprintf(walk->left, sizeof(walk->left), "%s/%s", target, rest);
	if (n < 0 || (size_t)n >= sizeof(walk->left))
		return -ENAMETOOLONG;
	if (*target == '/')
		walk->done[0] = '\0';
	return 0;
}

static int step_to(struct walk *walk, const char *name,
		   int (*visit)(void *arg, const struct path_step *step),
		   void *arg)
{
	char at[PATH_MAX];
	struct path_step step = { .dir = *walk->done ? walk->done : "/",
				  .at = at };
	int len = snprintf(at, sizeof(at), "%s/%s", walk->done, name), r;

	if (len < 0 || (size_t)len >= sizeof(at))
		return -ENAMETOOLONG;
	if (lstat(at, &step.st) < 0)
		return -errno;
	r = visit(arg, &step);
	if (r)
		return r;
	if (S_ISLNK(step.st.st_mode))
		return follow(walk, at);
	memcpy(walk->done, at, (size_t)len + 1);
	return 0;
}

int path_walk(const char *path,
	      int (*visit)(void *arg, const struct path_step *step), void *arg)
{
	struct walk walk = { .links = 0 };
	char name[NAME_MAX + 1];
	int r = 0;

	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(walk.left, path, strlen(path) + 1);
	if (*path != '/' && !getcwd(walk.done, sizeof(walk.done)))
		return -errno;
	if (strcmp(walk.done, "/") == 0)
		walk.done[0] = '\0';
	while (r == 0 && next_name(&walk, name, &r)) {
		if (strcmp(name, "..") == 0)
			go_up(&walk);
		else if (strcmp(name, ".") != 0)
			r = step_to(&walk, name, visit, arg);
	}
	return r;
}
