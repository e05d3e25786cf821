/* SPDX-License-Identifier: Apache-2.0
 *
 * view_sockets.c - masks over this host's unix sockets.
 *
 * A unix socket is not bounded by a network namespace, and a read-only mount
 * does not stop connect(2). A daemon that restarts makes a new file, which an
 * old mask does not cover; so where the directory of a socket is not a place
 * that the command needs, all of it is masked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "launch/sockets.h"
#include "launch/view.h"

/* Where sockets are, besides the working directory and HOME. */
static const char *const places[] = { "/srv",	    "/opt",    "/var/lib",
				      "/var/spool", "/home",   "/root",
				      "/tmp",	    "/var/tmp" };

/* Large, of the package managers, without daemons: most of what looking through
 * /var/lib would cost. */
static const char *const databases[] = { "/var/lib/dpkg", "/var/lib/apt",
					 "/var/lib/rpm", "/var/lib/pacman" };

/* Is @path where the command has files as they are outside? */
static bool is_shown(const struct view *view, const char *path)
{
	const struct view_bind *bind = view_bind_of(view, path);

	if (bind && strcmp(bind->path, "/") != 0)
		return true;
	return view->kind == VIEW_CWD_READONLY && strcmp(view->cwd, "/") != 0 &&
	       view_below(path, view->cwd);
}

/* Is something that is shown below @path, or @path itself? */
static bool holds_shown(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->binds; i++)
		if (view_below(view->bind[i].path, path))
			return true;
	return view_below(view->cwd, path);
}

static bool is_hidden(const void *arg, const char *dir)
{
	const struct view *view = arg;

	for (size_t i = 0; i < view->masks; i++)
		if (view->mask[i].dir && view_below(dir, view->mask[i].path) &&
		    !is_shown(view, dir))
			return true;
	if (is_shown(view, dir))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(databases); i++)
		if (strcmp(dir, databases[i]) == 0)
			return true;
	return view_in_tree(view, dir);
}

/* Certain only for a uid that owns nothing: it has no other group, and can't
 * change a mode. In the working directory it stands for the owner. */
static bool is_closed(const void *arg, const char *dir, int fd,
		      const struct stat *st)
{
	const struct view *view = arg;
	const struct process_spec *spec = view->spec;

	if (!spec->as_root || !spec->synthetic || st->st_uid == spec->uid ||
	    st->st_gid == spec->gid || st->st_mode & S_IXOTH ||
	    is_shown(view, dir) || holds_shown(view, dir))
		return false;
	/* With an ACL these bits are the most that it gives to anybody. */
	return !(st->st_mode & S_IXGRP) ||
	       (fd >= 0 &&
		fgetxattr(fd, "system.posix_acl_access", NULL, 0) < 0 &&
		(errno == ENODATA || errno == EOPNOTSUPP));
}

struct roots {
	const char *root[ARRAY_SIZE(places) + VIEW_BINDS + 2];
	size_t n;
};

static void add_root(struct roots *roots, const char *path)
{
	for (size_t i = 0; i < roots->n; i++)
		if (strcmp(roots->root[i], path) == 0)
			return;
	roots->root[roots->n++] = path;
}

static int search(const struct view *view, struct sockets *ret)
{
	char *real[ARRAY_SIZE(places)] = { 0 };
	struct roots roots = { .n = 0 };
	struct sockets_search what = {
		.root = roots.root,
		.budget = SOCKETS_BUDGET,
		.hidden = is_hidden,
		.closed = is_closed,
		.arg = view,
		.known = view->spec->known,
	};
	int r;

	if (is_shown(view, view->cwd))
		add_root(&roots, view->cwd);
	for (size_t i = 0; i < view->binds; i++)
		if (view->bind[i].dir && strcmp(view->bind[i].path, "/") != 0)
			add_root(&roots, view->bind[i].path);
	if (view->home && !is_hidden(view, view->home))
		add_root(&roots, view->home);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		real[i] = realpath(places[i], NULL);
		if (real[i] && !is_hidden(view, real[i]))
			add_root(&roots, real[i]);
	}
	what.roots = roots.n;
	r = sockets_list(&what, ret);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		free(real[i]);
	return r;
}

static size_t depth_of(const char *path)
{
	size_t n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

/* May all of @dir be masked for the sake of a socket in it? */
static bool expendable(const struct view *view, const char *dir)
{
	if (depth_of(dir) < 3 || holds_shown(view, dir) ||
	    is_shown(view, dir) || view_below(dir, view->cwd))
		return false;
	if (view->home && view_below(view->home, dir))
		return false;
	return !view_is_system(dir);
}

/* May it be, if there are too many to mask each? */
static bool coverable(const struct view *view, const char *dir)
{
	return *dir && !holds_shown(view, dir) && !view_is_system(dir);
}

static char *parent_of(const char *path)
{
	return strndup(path, (size_t)(strrchr(path, '/') - path));
}

static bool same_parent(const char *a, const char *b)
{
	size_t n = (size_t)(strrchr(a, '/') - a);

	return (size_t)(strrchr(b, '/') - b) == n && memcmp(a, b, n) == 0;
}

static int compare_masks(const void *a, const void *b)
{
	return strcmp(((const struct view_mask *)a)->path,
		      ((const struct view_mask *)b)->path);
}

/* Sorted, without those that another one covers. */
static void reduce(struct view *view)
{
	size_t kept = 0, dir = 0;

	if (view->masks)
		qsort(view->mask, view->masks, sizeof(*view->mask),
		      compare_masks);
	for (size_t i = 0; i < view->masks; i++) {
		struct view_mask mask = view->mask[i];
		bool covered = false;

		/* Directories are kept in front meanwhile. */
		for (size_t j = 0; j < dir && !covered; j++)
			covered = view_covers(view, view->mask[j].path,
					      mask.path);
		if (covered) {
			free(mask.path);
			continue;
		}
		view->mask[kept] = mask;
		if (mask.dir) {
			view->mask[kept] = view->mask[dir];
			view->mask[dir++] = mask;
		}
		kept++;
	}
	view->masks = kept;
	if (kept)
		qsort(view->mask, kept, sizeof(*view->mask), compare_masks);
}

/* Directories in place of at least @least sockets in each. */
static int cover(struct view *view, size_t least)
{
	for (size_t i = 0, n; i < view->masks; i += n) {
		AUTO_FREE char *dir = parent_of(view->mask[i].path);

		if (!dir)
			return -ENOMEM;
		for (n = 1; i + n < view->masks; n++)
			if (!same_parent(view->mask[i].path,
					 view->mask[i + n].path))
				break;
		if (n < least || !coverable(view, dir))
			continue;
		for (size_t j = i; j < i + n; j++) {
			char *copy;

			if (view->mask[j].dir)
				continue;
			copy = strdup(dir);
			if (!copy)
				return -ENOMEM;
			free(view->mask[j].path);
			view->mask[j].path = copy;
			view->mask[j].dir = true;
		}
	}
	reduce(view);
	return 0;
}

static int bound_masks(struct view *view, char *reterr, size_t cap)
{
	int r = 0;

	reduce(view);
	for (size_t least = 32; r == 0 && view->masks > VIEW_MASKS; least = 1) {
		r = cover(view, least);
		if (least == 1)
			break;
	}
	if (r == 0 && view->masks > VIEW_MASKS) {
		snprintf(reterr, cap,
			 "too many unix sockets to hide (%zu) in and around "
			 "the working directory %s: change to another one",
			 view->masks, view->cwd);
		r = -E2BIG;
	}
	return r;
}

static void note_partial(struct view *view)
{
	size_t n = strlen(view->note);

	snprintf(view->note + n, sizeof(view->note) - n,
		 "%stoo many files to look for every unix socket of this host",
		 n ? "; " : "");
}

int view_sockets(struct view *view, char *reterr, size_t cap)
{
	struct sockets found = { 0 };
	int r = search(view, &found);

	if (r < 0)
		snprintf(reterr, cap,
			 "cannot list this host's unix sockets: %s",
			 strerror(-r));
	for (size_t i = 0; r == 0 && i < found.n; i++) {
		AUTO_FREE char *dir = parent_of(found.path[i]);

		if (!dir)
			r = -ENOMEM;
		else if (expendable(view, dir))
			r = view_add_mask(view, STEAL(dir), true);
		else
			r = view_add_mask(view, strdup(found.path[i]), false);
	}
	if (found.partial)
		note_partial(view);
	sockets_free(&found);
	return r < 0 ? r : bound_masks(view, reterr, cap);
}
