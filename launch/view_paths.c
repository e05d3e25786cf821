/* SPDX-License-Identifier: Apache-2.0
 *
 * view_paths.c - what our user shows and hides beside the working directory.
 *
 * A path is resolved once, and what was found is held open: view_place() binds
 * that, whatever has the name by then.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/view.h"

bool view_leads_to(int fd, const char *path)
{
	char link[64], at[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, at, sizeof(at) - 1);
	if (n <= 0)
		return false;
	at[n] = '\0';
	return strcmp(at, path) == 0;
}

int view_add_bind(struct view *view, const char *path, bool rw, char *reterr,
		  size_t cap)
{
	AUTO_FD int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct view_bind *bind = &view->bind[view->binds];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !view_leads_to(fd, path)) {
		int r = fd < 0 ? -errno : -ESTALE;

		snprintf(reterr, cap, "cannot show %s: %s", path, strerror(-r));
		return r;
	}
	/* A socket or a device is no file, but somebody at the other end. */
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
		snprintf(reterr, cap,
			 "cannot show %s: neither a file nor a directory",
			 path);
		return -EINVAL;
	}
	if (view->binds == VIEW_BINDS) {
		snprintf(reterr, cap, "too many paths to show");
		return -E2BIG;
	}
	*bind = (struct view_bind){
		.path = strdup(path),
		.source = strdup(path),
		.fd = steal_fd(&fd),
		.rw = rw,
		.dir = S_ISDIR(st.st_mode),
		.owner = st.st_uid,
		.group = st.st_gid,
	};
	view->binds++;
	return bind->path && bind->source ? 0 : -ENOMEM;
}

static struct view_bind *bind_at(struct view *view, const char *path)
{
	for (size_t i = 0; i < view->binds; i++)
		if (strcmp(view->bind[i].path, path) == 0)
			return &view->bind[i];
	return NULL;
}

/* Where sockets and kernel interfaces are; and what would be the whole. */
static const char *refusal(const struct view *view, const char *path, bool rw)
{
	if (strcmp(path, "/") == 0)
		return "that is everything: --fs host";
	/* Where we put together what is shown, /run is already another. */
	if (view_below(path, "/proc") || view_below(path, "/dev") ||
	    view_below(path, "/run"))
		return "it is the sandbox's own";
	/* Its owner's files would be the sandbox's: root's, there. */
	if (rw && view->spec->synthetic && view_is_system(path))
		return "it is part of the system";
	for (size_t i = 0; i < view->masks; i++)
		if (view_below(path, view->mask[i].path))
			return "it is hidden from every command, or by --hide";
	return NULL;
}

static int show(struct view *view, const char *path, const char *spelled,
		bool rw, char *reterr, size_t cap)
{
	struct view_bind *same = bind_at(view, path);
	const char *why = refusal(view, path, rw);
	int r;

	if (why) {
		snprintf(reterr, cap, "cannot show %s to the command: %s", path,
			 why);
		return -EINVAL;
	}
	if (strcmp(path, view->cwd) == 0 && !rw)
		view->kind = VIEW_CWD_READONLY;
	if (same) { /* the stricter */
		same->rw = same->rw && rw;
		same->named = true;
		same->spelled = spelled;
		return 0;
	}
	r = view_add_bind(view, path, rw, reterr, cap);
	if (r == 0) {
		view->bind[view->binds - 1].named = true;
		view->bind[view->binds - 1].spelled = spelled;
	}
	return r;
}

static int add(struct view *view, const struct process_path *path, char *reterr,
	       size_t cap)
{
	AUTO_FREE char *real = realpath(path->path, NULL);
	int r;

	if (!real) {
		r = -errno;
		if (r == -ENOENT && path->optional)
			return 0;
		snprintf(reterr, cap, "%s: %s", path->path, strerror(-r));
		return r;
	}
	/* It was resolved once: a link that is there by now is another's. */
	if (strcmp(real, path->path) != 0) {
		snprintf(reterr, cap, "%s was replaced by a link", path->path);
		return -ESTALE;
	}
	if (path->access != PROCESS_HIDE)
		return show(view, real, path->spelled,
			    path->access == PROCESS_RW, reterr, cap);
	if (view_below("/proc", real) || view_below("/dev", real) ||
	    view_below("/run", real) || view_below("/etc", real)) {
		snprintf(reterr, cap, "cannot hide %s: nothing runs without it",
			 real);
		return -EINVAL;
	}
	return view_hide(view, real, reterr, cap);
}

/* What is hidden comes first, as nothing may be shown below it; then those that
 * are shown, outer ones first, so that none is taken for a part of another. */
int view_paths(struct view *view, char *reterr, size_t cap)
{
	const struct process_spec *spec = view->spec;
	int r = 0;

	if (spec->host_files)
		r = view_add_bind(view, "/", true, reterr, cap);
	/* A control group may be our user's own; not the command's. */
	if (r == 0 && spec->host_files)
		r = view_add_bind(view, "/sys", false, reterr, cap);
	for (size_t i = 0; r == 0 && i < spec->paths; i++)
		if (spec->path[i].access == PROCESS_HIDE)
			r = add(view, &spec->path[i], reterr, cap);
	for (size_t i = 0; r == 0 && i < spec->paths; i++)
		if (spec->path[i].access == PROCESS_RO)
			r = add(view, &spec->path[i], reterr, cap);
	for (size_t i = 0; r == 0 && i < spec->paths; i++)
		if (spec->path[i].access == PROCESS_RW)
			r = add(view, &spec->path[i], reterr, cap);
	return r;
}
