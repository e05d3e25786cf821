/* SPDX-License-Identifier: Apache-2.0
 *
 * view_layers.c - all that is mounted, in one order.
 *
 * A later mount covers an earlier one, so outer things come first, and that is
 * all the order there is: a path sorts after those that it lies below. Of two
 * layers at one path the later kind holds: what is hidden, in the end.
 *
 * A mask below a writable directory could be taken out of the way: a directory
 * that only *contains* a mount can be renamed, and the path is free for a new
 * one that our user, outside, would then find changed. A mount itself can't be
 * renamed; so each directory on the way is a pin, mounted onto itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "launch/view.h"

enum kind { WAY, TREE, PIN, BIND, MASK };

struct layer {
	enum kind kind;
	char *path;
	const struct view_bind *bind;
	bool dir; /* of a mask */
};

struct layers {
	struct layer *layer;
	size_t n;
};

static int add(struct layers *all, enum kind kind, const char *path,
	       const struct view_bind *bind, bool dir)
{
	struct layer *more =
		reallocarray(all->layer, all->n + 1, sizeof(*more));
	char *copy = strdup(path);

	if (more)
		all->layer = more;
	if (!more || !copy) {
		free(copy);
		return -ENOMEM;
	}
	more[all->n] = (struct layer){
		.kind = kind, .path = copy, .bind = bind, .dir = dir
	};
	all->n++;
	return 0;
}

static void cleanup_layers(struct layers *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->layer[i].path);
	free(all->layer);
}

static int compare(const void *a, const void *b)
{
	const struct layer *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : (int)y->kind - (int)x->kind;
}

/* --- what there is ------------------------------------------------------- */

/* Where @path, as seen inside, is for us now. NULL without memory. */
static char *outside(const struct view *view, const char *path)
{
	const struct view_bind *bind = view_bind_of(view, path);
	char *where;

	if (!bind || strcmp(bind->path, "/") == 0)
		return strdup(path);
	if (asprintf(&where, "%s%s", bind->source, path + strlen(bind->path)) <
	    0)
		return NULL;
	return where;
}

/* We are the sandbox's uid already: what we can't find, it can't either. */
static bool reachable(const struct view *view, const char *path)
{
	AUTO_FREE char *where = outside(view, path);
	struct stat st;

	return where && lstat(where, &st) == 0;
}

/* Can this uid enter @dir? */
static bool can_enter(const char *dir)
{
	AUTO_FREE char *dot = NULL;
	struct stat st;

	if (asprintf(&dot, "%s/.", dir) < 0) {
		dot = NULL;
		return false;
	}
	return lstat(dot, &st) == 0;
}

/* What shows the directory that @path lies in. */
static const struct view_bind *around(const struct view *view, const char *path)
{
	AUTO_FREE char *dir = strdup(path);
	char *slash = dir ? strrchr(dir, '/') : NULL;

	if (!slash || strcmp(path, "/") == 0)
		return NULL;
	slash[slash == dir] = '\0';
	return view_bind_of(view, dir);
}

/* The first directory on the way to @path that this uid can't enter is covered:
 * nothing in it was visible, and the way is free. */
static int open_way(struct layers *all, const char *path)
{
	AUTO_FREE char *dir = strdup(path);
	AUTO_FREE char *closed = NULL;
	struct stat st;

	if (!dir)
		return -ENOMEM;
	for (char *slash = strrchr(dir, '/'); slash && slash != dir;
	     slash = strrchr(dir, '/')) {
		if (lstat(dir, &st) == 0)
			break;
		*slash = '\0';
		free(closed);
		closed = strdup(dir);
		if (!closed)
			return -ENOMEM;
	}
	return closed ? add(all, WAY, closed, NULL, true) : 0;
}

static int add_pins(struct layers *all, const struct view_bind *bind,
		    const char *path)
{
	size_t at = strcmp(bind->path, "/") == 0 ? 0 : strlen(bind->path);

	for (;;) {
		const char *slash = strchr(path + at + 1, '/');
		AUTO_FREE char *dir = NULL;
		int r;

		if (!slash)
			return 0;
		at = (size_t)(slash - path);
		dir = strndup(path, at);
		r = dir ? add(all, PIN, dir, bind, true) : -ENOMEM;
		if (r < 0)
			return r;
	}
}

/* --- gathering ----------------------------------------------------------- */

static int gather_bind(const struct view *view, struct layers *all,
		       const struct view_bind *bind, char *reterr, size_t cap)
{
	const struct view_bind *outer = around(view, bind->path);
	struct stat st;
	int r = 0;

	if (bind->dir ? !can_enter(bind->source)
		      : lstat(bind->source, &st) < 0) {
		snprintf(reterr, cap, "%s%s: uid %u can't %s it",
			 strcmp(bind->path, view->cwd) ? ""
						       : "working directory ",
			 bind->path, view->spec->uid,
			 bind->dir ? "enter" : "reach");
		return -EACCES;
	}
	if (outer && outer->rw && !bind->rw)
		r = add_pins(all, outer, bind->path);
	else if (!outer && !view_in_tree(view, bind->path) &&
		 strcmp(bind->path, "/") != 0)
		r = open_way(all, bind->path);
	return r < 0 ? r : add(all, BIND, bind->path, bind, bind->dir);
}

static int gather_mask(const struct view *view, struct layers *all,
		       const struct view_mask *mask)
{
	const struct view_bind *outer = around(view, mask->path);
	int r = 0;

	if (mask->staged || view_in_tree(view, mask->path) ||
	    !reachable(view, mask->path))
		return 0;
	for (size_t i = 0; i < view->masks; i++)
		if (&view->mask[i] != mask && view->mask[i].dir &&
		    view_covers(view, view->mask[i].path, mask->path))
			return 0;
	if (outer && outer->rw)
		r = add_pins(all, outer, mask->path);
	return r < 0 ? r : add(all, MASK, mask->path, NULL, mask->dir);
}

static int gather(const struct view *view, struct layers *all, char *reterr,
		  size_t cap)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < view->trees; i++)
		r = add(all, TREE, view->tree[i], NULL, true);
	for (size_t i = 0; r == 0 && i < view->binds; i++)
		r = gather_bind(view, all, &view->bind[i], reterr, cap);
	for (size_t i = 0; r == 0 && i < view->masks; i++)
		r = gather_mask(view, all, &view->mask[i]);
	if (r == 0)
		qsort(all->layer, all->n, sizeof(*all->layer), compare);
	return r;
}

/* --- writing ------------------------------------------------------------- */

static void put_tree(struct view *view, const char *tree)
{
	bool shared =
		strcmp(tree, "/tmp") == 0 || strcmp(tree, "/var/tmp") == 0;

	if (strcmp(tree, "/dev") == 0 && view->dev)
		view_put(view, "--dev-bind", view->dev, tree, NULL);
	else if (strcmp(tree, "/dev") == 0)
		view_put(view, "--dev", tree, NULL);
	else if (strcmp(tree, "/proc") == 0)
		view_put(view, "--proc", tree, NULL);
	else
		view_put(view, "--perms", shared ? "1777" : "0755", "--tmpfs",
			 tree, NULL);
}

static int put_pin(struct view *view, const char *path)
{
	AUTO_FREE char *from = outside(view, path);

	if (!from)
		return -ENOMEM;
	view_put(view, "--bind", from, path, NULL);
	return 0;
}

static int put_layer(struct view *view, const struct layer *layer)
{
	switch (layer->kind) {
	case WAY:
		view_put(view, "--perms", "0755", "--tmpfs", layer->path, NULL);
		break;
	case TREE:
		put_tree(view, layer->path);
		break;
	case PIN:
		return put_pin(view, layer->path);
	case BIND:
		if (strcmp(layer->path, "/") != 0)
			view_put(view, layer->bind->rw ? "--bind" : "--ro-bind",
				 layer->bind->source, layer->path, NULL);
		break;
	case MASK:
		if (layer->dir)
			view_put(view, "--perms", "0555", "--tmpfs",
				 layer->path, NULL);
		else
			view_put(view, "--ro-bind", "/dev/null", layer->path,
				 NULL);
	}
	return 0;
}

/* What a mask or a way covers is gone, unless it is a bind or on one. */
static bool is_covered(const struct view *view, const struct layers *all,
		       size_t which)
{
	const struct layer *layer = &all->layer[which];

	if (which && strcmp(all->layer[which - 1].path, layer->path) == 0)
		return true;
	if (layer->kind == BIND)
		return false;
	for (size_t i = 0; i < which; i++)
		if ((all->layer[i].kind == MASK || all->layer[i].kind == WAY) &&
		    view_covers(view, all->layer[i].path, layer->path))
			return true;
	return false;
}

static int put_layers(struct view *view, const struct layers *all)
{
	for (size_t i = 0; i < all->n; i++) {
		int r = 0;

		if (!is_covered(view, all, i))
			r = put_layer(view, &all->layer[i]);
		if (r < 0)
			return r;
	}
	/* Only now: what is shown in a hidden directory had to be made. */
	for (size_t i = 0; i < all->n; i++)
		if (all->layer[i].kind == MASK && all->layer[i].dir &&
		    !is_covered(view, all, i))
			view_put(view, "--remount-ro", all->layer[i].path,
				 NULL);
	return 0;
}

/* Where the cwd is a directory like /etc, or one that is not to be seen. */
static void put_cwd(struct view *view)
{
	if (view->kind != VIEW_CWD_READONLY || view_bind_of(view, view->cwd))
		return;
	if (!can_enter(view->cwd)) {
		view->kind = VIEW_CWD_NONE;
		snprintf(view->note, sizeof(view->note),
			 "%.100s is not visible to the command, which starts "
			 "in /",
			 view->cwd);
	} else if (view_in_tree(view, view->cwd)) {
		view_put(view, "--ro-bind", view->cwd, view->cwd, NULL);
	}
}

int view_layers(struct view *view, char *reterr, size_t cap)
{
	__attribute__((cleanup(cleanup_layers))) struct layers all = { 0 };
	int r = gather(view, &all, reterr, cap);

	if (r < 0)
		return r;
	view_put(view, view->spec->host_files ? "--bind" : "--ro-bind", "/",
		 "/", NULL);
	r = put_layers(view, &all);
	put_cwd(view);
	return r;
}
