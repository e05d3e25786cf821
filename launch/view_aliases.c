/* SPDX-License-Identifier: Apache-2.0
 *
 * view_aliases.c - one directory, mounted in two places: what is hidden in one
 * would be there to read in the other.
 *
 * /proc/self/mountinfo says which part of which file system each mount shows.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "launch/view.h"

/* More than that no host has; what came later is not compared. */
#define MOUNTS_MAX 4096

struct mount {
	char *dev, *root, *at; /* in line */
	char *line;
};

struct mounts {
	struct mount *mount;
	size_t n;
};

static void cleanup_mounts(struct mounts *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->mount[i].line);
	free(all->mount);
}

/* "\040" is a blank. In place. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' &&
		    text[2] >= '0' && text[2] <= '7' && text[3] >= '0' &&
		    text[3] <= '7') {
			*to++ = (char)((text[1] - '0') * 64 +
				       (text[2] - '0') * 8 + (text[3] - '0'));
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

/* id parent major:minor root mountpoint ... */
static bool parse(char *line, struct mount *ret)
{
	char *field[5], *rest = line;

	for (size_t i = 0; i < ARRAY_SIZE(field); i++) {
		field[i] = strsep(&rest, " ");
		if (!field[i] || !rest)
			return false;
	}
	*ret = (struct mount){
		.dev = field[2], .root = field[3], .at = field[4], .line = line
	};
	unescape(ret->root);
	unescape(ret->at);
	return ret->root[0] == '/' && ret->at[0] == '/';
}

static int read_mounts(struct mounts *ret)
{
	AUTO_FILE FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t cap = 0;

	if (!f)
		return -errno;
	ret->mount = calloc(MOUNTS_MAX, sizeof(*ret->mount));
	while (ret->mount && ret->n < MOUNTS_MAX &&
	       getline(&line, &cap, f) > 0) {
		if (!parse(line, &ret->mount[ret->n]))
			continue;
		ret->n++;
		line = NULL; /* it is the mount's */
		cap = 0;
	}
	free(line);
	return ret->mount ? 0 : -ENOMEM;
}

/* What follows @dir in @path, which is below it: "" or "/...". */
static const char *rest_of(const char *path, const char *dir)
{
	return strcmp(dir, "/") == 0 ? (path[1] ? path : "")
				     : path + strlen(dir);
}

static char *join(const char *dir, const char *rest)
{
	char *path;

	if (strcmp(dir, "/") == 0)
		return strdup(*rest ? rest : "/");
	return asprintf(&path, "%s%s", dir, rest) < 0 ? NULL : path;
}

/* The mount that shows @path: the last of the innermost. */
static const struct mount *mount_of(const struct mounts *all, const char *path)
{
	const struct mount *found = NULL;

	for (size_t i = 0; i < all->n; i++)
		if (view_below(path, all->mount[i].at) &&
		    (!found || strlen(all->mount[i].at) >= strlen(found->at)))
			found = &all->mount[i];
	return found;
}

static bool is_bind(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->binds; i++)
		if (view->bind[i].named &&
		    strcmp(view->bind[i].path, path) == 0)
			return true;
	return false;
}

/* Hides @path, if it is there and shows what it should. */
static int hide(struct view *view, char *path, const struct stat *what)
{
	AUTO_FREE char *own = path;
	struct stat st;

	if (!own)
		return -ENOMEM;
	if (lstat(own, &st) < 0 || S_ISLNK(st.st_mode) || is_bind(view, own) ||
	    (what && (st.st_dev != what->st_dev || st.st_ino != what->st_ino)))
		return 0;
	if (S_ISDIR(st.st_mode) && view_below(view->cwd, own))
		return -EBUSY;
	return view_add_mask(view, STEAL(own), S_ISDIR(st.st_mode));
}

static int hide_elsewhere(struct view *view, const struct mounts *all,
			  const char *path)
{
	const struct mount *own = mount_of(all, path);
	AUTO_FREE char *inside = NULL; /* its file system */
	struct stat st;
	int r = 0;

	if (!own || lstat(path, &st) < 0)
		return 0;
	inside = join(own->root, rest_of(path, own->at));
	if (!inside)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < all->n; i++) {
		const struct mount *other = &all->mount[i];

		if (other == own || strcmp(other->dev, own->dev) != 0 ||
		    view_in_tree(view, other->at))
			continue;
		if (view_below(inside, other->root))
			r = hide(view,
				 join(other->at, rest_of(inside, other->root)),
				 &st);
		else if (view_below(other->root, inside) &&
			 !view_below(other->at, path))
			r = hide(view, strdup(other->at), NULL);
	}
	return r;
}

int view_aliases(struct view *view, char *reterr, size_t cap)
{
	__attribute__((cleanup(cleanup_mounts))) struct mounts all = { 0 };
	size_t n = view->masks;
	int r = read_mounts(&all);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = hide_elsewhere(view, &all, view->mask[i].path);
	if (r == -EBUSY)
		snprintf(reterr, cap,
			 "the working directory %s is, by another mount, what "
			 "must stay hidden from the command: change to another "
			 "directory",
			 view->cwd);
	else if (r < 0)
		snprintf(reterr, cap, "cannot look through the mounts: %s",
			 strerror(-r));
	return r;
}
