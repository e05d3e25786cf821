/* SPDX-License-Identifier: Apache-2.0
 *
 * view_args.c - writing the plan down for bubblewrap. Order matters: a later
 * mount covers an earlier one.
 *
 * A mask below a writable directory could be taken out of the way: a directory
 * that only *contains* a mount can be renamed, and the path is free for a new
 * one that our user, outside, would then find changed. A mount itself can't be
 * renamed; so each directory on the way is mounted onto itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/view.h"

extern const char launch_init_start[], launch_init_end[];

/* Writes the arguments up to NULL; errors stick to the stream. */
static void put(struct view *view, const char *arg, ...)
{
	va_list ap;

	va_start(ap, arg);
	for (; arg; arg = va_arg(ap, const char *)) {
		fputs(arg, view->out);
		putc('\0', view->out);
	}
	va_end(ap);
}

static int keep(struct view *view, int fd)
{
	if (view->fds == VIEW_FDS)
		return -E2BIG;
	view->fd[view->fds++] = fd;
	return 0;
}

/* A file inside, of the @len bytes at @text. */
static int put_data(struct view *view, const char *how, const char *path,
		    const char *perms, const char *text, size_t len)
{
	AUTO_FD int fd = memfd_create("sallyport-view", MFD_CLOEXEC);
	char number[16];
	size_t done = 0;
	int r;

	if (fd < 0)
		return -errno;
	while (done < len) {
		ssize_t n = write(fd, text + done, len - done);

		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	snprintf(number, sizeof(number), "%d", fd);
	put(view, "--perms", perms, how, number, path, NULL);
	r = keep(view, fd);
	if (r == 0)
		fd = -1;
	return r;
}

/* Where @path, as seen inside, is for us now. NULL without memory. */
static char *outside(const struct view *view, const char *path)
{
	char *where = NULL;

	if (!view_below_cwd(view, path))
		return strdup(path);
	if (asprintf(&where, "%s%s", view->source, path + strlen(view->cwd)) <
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

static void put_trees(struct view *view)
{
	put(view, "--ro-bind", "/", "/", NULL);
	for (size_t i = 0; i < view->trees; i++) {
		const char *tree = view->tree[i];
		bool shared = strcmp(tree, "/tmp") == 0 ||
			      strcmp(tree, "/var/tmp") == 0;

		if (strcmp(tree, "/dev") == 0 && view->dev)
			put(view, "--dev-bind", view->dev, tree, NULL);
		else if (strcmp(tree, "/dev") == 0)
			put(view, "--dev", tree, NULL);
		else if (strcmp(tree, "/proc") == 0)
			put(view, "--proc", tree, NULL);
		else
			put(view, "--perms", shared ? "1777" : "0755",
			    "--tmpfs", tree, NULL);
	}
}

/* The first directory on the way to the cwd that this uid can't enter is
 * covered: nothing in it was visible, and the way is free. */
static int open_way(struct view *view)
{
	AUTO_FREE char *path = strdup(view->cwd);
	AUTO_FREE char *closed = NULL;
	struct stat st;

	if (!path)
		return -ENOMEM;
	for (char *slash = strrchr(path, '/'); slash && slash != path;
	     slash = strrchr(path, '/')) {
		if (lstat(path, &st) == 0)
			break;
		*slash = '\0';
		free(closed);
		closed = strdup(path);
		if (!closed)
			return -ENOMEM;
	}
	if (closed && !view_in_tree(view, closed))
		put(view, "--perms", "0755", "--tmpfs", closed, NULL);
	return 0;
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

static int put_cwd(struct view *view, char *reterr, size_t cap)
{
	int r = 0;

	if (view->kind == VIEW_CWD_WRITABLE) {
		if (!can_enter(view->source)) {
			snprintf(reterr, cap,
				 "working directory %s: uid %u can't enter it",
				 view->cwd, view->spec->uid);
			return -EACCES;
		}
		if (!view_in_tree(view, view->cwd))
			r = open_way(view);
		put(view, "--bind", view->source, view->cwd, NULL);
	} else if (view->kind == VIEW_CWD_READONLY && !can_enter(view->cwd)) {
		view->kind = VIEW_CWD_NONE;
		snprintf(view->note, sizeof(view->note),
			 "%.100s is not visible to the command, which starts "
			 "in /",
			 view->cwd);
	} else if (view->kind == VIEW_CWD_READONLY &&
		   view_in_tree(view, view->cwd)) {
		put(view, "--ro-bind", view->cwd, view->cwd, NULL);
	}
	return r;
}

/* Each directory once: a second mount would cover the pins below the first. */
static bool is_pinned(const struct view *view, size_t before, const char *dir)
{
	for (size_t i = 0; i < before; i++)
		if (view->mask[i].pinned && view_below(view->mask[i].path, dir))
			return true;
	return false;
}

static int put_pins(struct view *view, size_t which)
{
	const char *path = view->mask[which].path;
	size_t at = strlen(view->cwd);

	if (!view_below_cwd(view, path))
		return 0;
	view->mask[which].pinned = true;
	for (;;) {
		const char *slash = strchr(path + at + 1, '/');
		AUTO_FREE char *dir = NULL;
		AUTO_FREE char *from = NULL;

		if (!slash)
			return 0;
		at = (size_t)(slash - path);
		dir = strndup(path, at);
		from = dir ? outside(view, dir) : NULL;
		if (!from)
			return -ENOMEM;
		if (!is_pinned(view, which, dir))
			put(view, "--bind", from, dir, NULL);
	}
}

static bool covered(const struct view *view, size_t which)
{
	const char *path = view->mask[which].path;

	for (size_t i = 0; i < which; i++)
		if (view_below(path, view->mask[i].path))
			return true;
	if (view->mask[which].staged)
		return true;
	return !view_below_cwd(view, path) && view_in_tree(view, path);
}

static int put_masks(struct view *view)
{
	/* All the pins first: a pin shows what is below it anew. */
	for (size_t i = 0; i < view->masks; i++) {
		int r = 0;

		if (!covered(view, i) && reachable(view, view->mask[i].path))
			r = put_pins(view, i);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < view->masks; i++) {
		const char *path = view->mask[i].path;

		if (covered(view, i) || !reachable(view, path))
			continue;
		if (view->mask[i].dir)
			put(view, "--perms", "0555", "--tmpfs", path,
			    "--remount-ro", path, NULL);
		else
			put(view, "--ro-bind", "/dev/null", path, NULL);
	}
	return 0;
}

static int put_names(struct view *view)
{
	struct view_names names;
	int r = view_names(view, &names);

	if (r == 0 && names.passwd)
		r = put_data(view, "--ro-bind-data", view->passwd, "0444",
			     names.passwd, names.passwd_len);
	if (r == 0 && names.groups)
		r = put_data(view, "--ro-bind-data", view->groups, "0444",
			     names.groups, names.groups_len);
	view_names_free(&names);
	return r;
}

static int put_files(struct view *view)
{
	const char *resolv = view->spec->resolv_conf;
	int r = 0;

	if (resolv && view->resolv)
		r = put_data(view, "--ro-bind-data", view->resolv, "0444",
			     resolv, strlen(resolv));
	if (r == 0)
		r = put_names(view);
	/* In a private directory: nobody executes it a second time. */
	if (r == 0)
		r = put_data(view, "--file", VIEW_INIT, "0555",
			     launch_init_start,
			     (size_t)(launch_init_end - launch_init_start));
	return r;
}

static void put_identity(struct view *view)
{
	char uid[16], gid[16];

	snprintf(uid, sizeof(uid), "%u", view->spec->uid);
	snprintf(gid, sizeof(gid), "%u", view->spec->gid);
	put(view, "--unshare-user", "--uid", uid, "--gid", gid, "--unshare-pid",
	    "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
	    "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", NULL);
}

static int put_all(struct view *view, char *reterr, size_t cap)
{
	int r;

	put_identity(view);
	put_trees(view);
	r = put_cwd(view, reterr, cap);
	if (r == 0)
		r = put_masks(view);
	if (r == 0)
		r = put_files(view);
	put(view, "--chdir", view->kind == VIEW_CWD_NONE ? "/" : view->cwd,
	    NULL);
	return r;
}

int view_write(struct view *view, char *reterr, size_t cap)
{
	int fd = memfd_create("sallyport-args", MFD_CLOEXEC);
	int copy, r;

	snprintf(reterr, cap, "cannot describe the view of the files");
	if (fd < 0)
		return -errno;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	view->out = copy < 0 ? NULL : fdopen(copy, "w");
	r = keep(view, fd);
	if (!view->out || r < 0)
		return -ENOMEM;
	r = put_all(view, reterr, cap);
	if (r < 0)
		return r;
	if (fflush(view->out) != 0 || ferror(view->out))
		return -ENOMEM;
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd;
}
