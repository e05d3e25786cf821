/* SPDX-License-Identifier: Apache-2.0
 *
 * view.c - deciding what a sandboxed command sees.
 *
 * Everything here is about canonical paths: bubblewrap mounts below its new
 * root, where an absolute symlink would lead back to the old one.
 */
#include "launch/view.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/credentials.h"

static const char *const private_trees[] = { "/dev", "/proc", "/tmp",
					     "/var/tmp", "/run" };

/* Not writable, nor anything below, unless it is our user's own. */
static const char *const system_trees[] = {
	"/etc",	    "/usr",	     "/bin",	   "/sbin", "/lib",
	"/lib32",   "/lib64",	     "/libx32",	   "/boot", "/sys",
	"/var/run", "/var/lib/dpkg", "/root/.ssh",
};

/* Themselves not writable; what is below them may be. */
static const char *const system_dirs[] = {
	"/",	  "/var",     "/home",	  "/opt",	"/srv",	      "/mnt",
	"/media", "/var/lib", "/var/log", "/var/cache", "/var/spool",
};

bool view_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return true;
	return strncmp(path, dir, n) == 0 &&
	       (path[n] == '\0' || path[n] == '/');
}

const struct view_bind *view_bind_of(const struct view *view, const char *path)
{
	const struct view_bind *found = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < view->trees; i++) {
		size_t n = strlen(view->tree[i]);

		if (n > longest && view_below(path, view->tree[i]))
			longest = n;
	}
	for (size_t i = 0; i < view->binds; i++) {
		size_t n = strlen(view->bind[i].path);

		if (n < longest || !view_below(path, view->bind[i].path))
			continue;
		longest = n;
		found = &view->bind[i];
	}
	return found;
}

bool view_covers(const struct view *view, const char *dir, const char *path)
{
	if (!view_below(path, dir))
		return false;
	for (size_t i = 0; i < view->binds; i++)
		if (view_below(path, view->bind[i].path) &&
		    view_below(view->bind[i].path, dir))
			return false;
	return true;
}

static const char *tree_of(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->trees; i++)
		if (view_below(path, view->tree[i]))
			return view->tree[i];
	return NULL;
}

bool view_in_tree(const struct view *view, const char *path)
{
	return tree_of(view, path) && !view_bind_of(view, path);
}

static bool in_list(const char *path, const char *const *list, size_t n,
		    bool below)
{
	for (size_t i = 0; i < n; i++)
		if (below ? view_below(path, list[i])
			  : strcmp(path, list[i]) == 0)
			return true;
	return false;
}

bool view_is_system(const char *path)
{
	return in_list(path, system_trees, ARRAY_SIZE(system_trees), true);
}

static int add_tree(struct view *view, const char *path)
{
	AUTO_FREE char *real = realpath(path, NULL);

	if (!real || tree_of(view, real))
		return 0;
	if (view->trees == VIEW_TREES)
		return -E2BIG;
	view->tree[view->trees++] = STEAL(real);
	return 0;
}

static int plan_home(struct view *view)
{
	const struct process_spec *spec = view->spec;

	for (char *const *e = spec->env; *e; e++)
		if (strncmp(*e, "HOME=/", 6) == 0 && !view->home)
			view->home = realpath(*e + 5, NULL);
	if (view->home && strcmp(view->home, "/") == 0) {
		free(view->home);
		view->home = NULL;
	}
	return spec->synthetic && view->home ? add_tree(view, view->home) : 0;
}

static uid_t owner_inside(const struct process_spec *spec)
{
	return spec->as_root ? spec->uid : geteuid();
}

static bool is_ours(const struct view *view, uid_t owner)
{
	return !view->spec->synthetic && owner == owner_inside(view->spec);
}

static enum view_cwd cwd_kind(const struct view *view, uid_t owner)
{
	const char *cwd = view->cwd;
	const char *tree = tree_of(view, cwd);

	if (in_list(cwd, system_dirs, ARRAY_SIZE(system_dirs), false))
		return VIEW_CWD_READONLY;
	if (tree && strcmp(tree, cwd) == 0 && strcmp(tree, "/dev") != 0 &&
	    strcmp(tree, "/proc") != 0)
		return VIEW_CWD_PRIVATE;
	if (view_below(cwd, "/dev") || view_below(cwd, "/proc") ||
	    view_below(cwd, "/run"))
		return VIEW_CWD_NONE;
	if (in_list(cwd, system_trees, ARRAY_SIZE(system_trees), true) &&
	    !is_ours(view, owner))
		return VIEW_CWD_READONLY;
	return VIEW_CWD_WRITABLE;
}

static void note_cwd(struct view *view)
{
	const char *what = NULL;

	if (view->kind == VIEW_CWD_READONLY && !view->spec->host_files)
		what = "is a system directory: read-only for the command";
	else if (view->kind == VIEW_CWD_PRIVATE)
		what = "is private to the command: it starts empty and is lost "
		       "at the end";
	else if (view->kind == VIEW_CWD_NONE)
		what = "is not visible to the command, which starts in /";
	else if (view->home && strcmp(view->cwd, view->home) == 0)
		what = "is the home directory: the command can change files "
		       "that your next login runs";
	if (what)
		snprintf(view->note, sizeof(view->note), "%.120s %s", view->cwd,
			 what);
}

static int plan_cwd(struct view *view, char *reterr, size_t cap)
{
	const char *cwd = view->spec->cwd ? view->spec->cwd : "/";
	struct stat st;

	view->cwd = realpath(cwd, NULL);
	if (!view->cwd || stat(view->cwd, &st) < 0) {
		int r = -errno;

		snprintf(reterr, cap, "working directory %s: %s", cwd,
			 strerror(-r));
		return r;
	}
	if (!S_ISDIR(st.st_mode)) {
		snprintf(reterr, cap, "working directory %s: not a directory",
			 cwd);
		return -ENOTDIR;
	}
	view->kind = cwd_kind(view, st.st_uid);
	note_cwd(view);
	if (view->kind != VIEW_CWD_WRITABLE)
		return 0;
	return view_add_bind(view, view->cwd, true, reterr, cap);
}

int view_add_mask(struct view *view, char *path, bool dir)
{
	struct view_mask *more;

	if (!path)
		return -ENOMEM;
	more = reallocarray(view->mask, view->masks + 1, sizeof(*more));
	if (!more) {
		free(path);
		return -ENOMEM;
	}
	view->mask = more;
	more[view->masks++] = (struct view_mask){ .path = path, .dir = dir };
	return 0;
}

int view_hide(struct view *view, const char *path, char *reterr, size_t cap)
{
	AUTO_FREE char *real = realpath(path, NULL);
	struct stat st;
	int r;

	if (!real || stat(real, &st) < 0) {
		r = -errno;
		snprintf(reterr, cap, "cannot hide %s: %s", path, strerror(-r));
		return r;
	}
	if (view_below(view->cwd, real) && S_ISDIR(st.st_mode)) {
		snprintf(reterr, cap,
			 "the working directory %s is below %s, which must "
			 "stay hidden from the command: change to another "
			 "directory",
			 view->cwd, real);
		return -EINVAL;
	}
	return view_add_mask(view, STEAL(real), S_ISDIR(st.st_mode));
}

static int plan_hides(struct view *view, char *reterr, size_t cap)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < view->spec->hides; i++) {
		r = view_hide(view, view->spec->hide[i], reterr, cap);
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

/* Where @path leads, even if nothing is there (yet): a link into /run may
 * dangle. NULL if it does not exist at all. */
static char *follow(const char *path)
{
	char *real = realpath(path, NULL);
	char target[PATH_MAX];
	ssize_t n;

	if (real)
		return real;
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return NULL;
	target[n] = '\0';
	if (target[0] == '/')
		return strdup(target);
	if (asprintf(&real, "/etc/%s", target) < 0)
		return NULL;
	return real;
}

/* Nobody's own: where all of this host's programs may write. */
static bool is_shared(const char *tree)
{
	return strcmp(tree, "/tmp") == 0 || strcmp(tree, "/var/tmp") == 0;
}

int view_plan(struct view *view, const struct process_spec *spec, char *reterr,
	      size_t cap)
{
	int r = 0;

	*view = (struct view){ .spec = spec, .userns = -1 };
	snprintf(reterr, cap, "out of memory");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(private_trees); i++)
		if (!spec->host_files || !is_shared(private_trees[i]))
			r = add_tree(view, private_trees[i]);
	if (r == 0)
		r = plan_home(view);
	if (r == 0)
		r = plan_cwd(view, reterr, cap);
	if (r == 0)
		r = plan_hides(view, reterr, cap);
	if (r == 0)
		r = view_paths(view, reterr, cap);
	if (r == 0 && !spec->host_files)
		r = credentials_hide(view, reterr, cap);
	if (r == 0)
		r = view_aliases(view, reterr, cap);
	if (r == 0)
		r = view_sockets(view, reterr, cap);
	if (r == 0)
		r = view_plan_home(view, owner_inside(spec), reterr, cap);
	if (r < 0)
		return r;
	view->resolv = follow("/etc/resolv.conf");
	view->passwd = realpath("/etc/passwd", NULL);
	view->groups = realpath("/etc/group", NULL);
	return 0;
}

void view_free(struct view *view)
{
	for (size_t i = 0; i < view->trees; i++)
		free(view->tree[i]);
	for (size_t i = 0; i < view->masks; i++)
		free(view->mask[i].path);
	free(view->mask);
	for (size_t i = 0; i < view->binds; i++) {
		free(view->bind[i].path);
		free(view->bind[i].source);
		close_fd(&view->bind[i].fd);
	}
	free(view->cwd);
	free(view->dev);
	free(view->home);
	free(view->resolv);
	free(view->passwd);
	free(view->groups);
	for (size_t i = 0; i < view->fds; i++)
		close(view->fd[i]);
	if (view->out)
		fclose(view->out);
	close_fd(&view->userns);
	*view = (struct view){ .userns = -1 };
}
