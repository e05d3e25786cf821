/* SPDX-License-Identifier: Apache-2.0
 *
 * run_view.c - what a later session will trust must not be in the reach of this
 * one: its log, the key that signs it, its policy with all that it is made of,
 * its configuration.
 *
 * Each is masked, and below the working directory, which the command may write
 * to, launch/view_args.c pins the way to it, so that nothing can be put in its
 * place. A link or a second name is another way, which no mask closes: those
 * are refused.
 */
#include "cmd/run_view.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/bounds.h"
#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/path_walk.h"
#include "cmd/session.h"
#include "launch/isolate.h"
#include "launch/process.h"

/* A uid that nobody uses gets root's home, emptied. */
#define ROOT_HOME "/root"

#define KNOWN_NAME "/sallyport.directories"

void run_view_user(struct run_view *view, const struct options *options,
		   struct process_spec *spec)
{
	const char *name = options->user;
	const struct passwd *pw;

	if (!session_root()) {
		if (name)
			die(EXIT_SALLYPORT, "--user needs root");
		spec->uid = getuid();
		spec->gid = getgid();
		return;
	}
	spec->as_root = true;
	if (!name) {
		spec->synthetic = true;
		spec->uid = ISOLATE_UID_SANDBOX + (uid_t)getpid() % 50000;
		spec->gid = spec->uid;
		snprintf(view->home, sizeof(view->home), "%s", ROOT_HOME);
		return;
	}
	pw = getpwnam(name);
	if (!pw)
		die(EXIT_SALLYPORT, "there is no user '%s'", name);
	if (pw->pw_uid == 0)
		die(EXIT_SALLYPORT, "--user root: a sandbox is never root");
	spec->uid = pw->pw_uid;
	spec->gid = pw->pw_gid;
	snprintf(view->home, sizeof(view->home), "%s", pw->pw_dir);
}

static bool is_file(const struct bundle *bundle, const struct stat *st)
{
	char path[PATH_MAX];
	struct stat file;

	for (size_t i = 0; bundle_file(bundle, i, path, sizeof(path)); i++) {
		if (stat(path, &file) == 0 && file.st_dev == st->st_dev &&
		    file.st_ino == st->st_ino)
			return true;
	}
	return false;
}

/* An open directory is a way around the command's view of the files; and a
 * policy that comes by a redirection could be opened again for writing. */
void run_view_descriptors(const struct options *options)
{
	struct stat st;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fstat(fd, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			die(EXIT_SALLYPORT,
			    "file descriptor %d is a directory, and would lead "
			    "the command around its sandbox",
			    fd);
		if (!is_file(&options->bundle, &st))
			continue;
		AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null < 0 || dup2(null, fd) < 0)
			die(EXIT_SALLYPORT, "/dev/null: %s", strerror(errno));
	}
}

/* --- what is hidden ------------------------------------------------------ */

void run_view_hide(struct run_view *view, const char *path)
{
	AUTO_FREE char *real = realpath(path, NULL);
	char **grown;

	if (!real)
		return; /* what is not there can't be seen */
	grown = reallocarray(view->hide, view->hides + 1, sizeof(*grown));
	if (!grown)
		die(EXIT_SALLYPORT, "out of memory");
	view->hide = grown;
	grown[view->hides++] = STEAL(real);
}

static bool is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 && path[len] == '/';
}

/* With all files as they are: may the command's uid make things in the
 * directory of @path? */
static bool is_open_to(const struct run_view *view, const char *path)
{
	AUTO_FREE char *dir = strdup(path);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	struct stat st;

	if (!slash)
		return true;
	slash[slash == dir] = '\0';
	if (stat(dir, &st) < 0)
		return false;
	return st.st_uid == view->uid || st.st_mode & S_IWGRP ||
	       (st.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH;
}

/* Is @path where the command may write? */
static bool below_cwd(const struct run_view *view, const char *path)
{
	const struct bounds *bounds = view->bounds;

	if (is_below(path, view->cwd))
		return true;
	for (size_t i = 0; bounds && i < bounds->paths; i++)
		if (bounds->path[i].access == PROCESS_RW &&
		    is_below(path, bounds->path[i].path))
			return true;
	return bounds && bounds->host_files && is_open_to(view, path);
}

/* A link that the command could replace. */
static bool is_loose(const struct run_view *view, const struct path_step *step)
{
	return S_ISLNK(step->st.st_mode) && below_cwd(view, step->at);
}

static bool is_at(const struct path_step *step, const char *dir)
{
	struct stat st;

	return strcmp(step->at, dir) != 0 && stat(dir, &st) == 0 &&
	       step->st.st_dev == st.st_dev && step->st.st_ino == st.st_ino;
}

/* A directory that is writable, mounted in another place too: no mask is there.
 * Its name, or NULL. */
static const char *second_cwd(const struct run_view *view,
			      const struct path_step *step)
{
	const struct bounds *bounds = view->bounds;

	if (!S_ISDIR(step->st.st_mode))
		return NULL;
	if (step->st.st_dev == view->cwd_dev &&
	    step->st.st_ino == view->cwd_ino &&
	    strcmp(step->at, view->cwd) != 0)
		return view->cwd;
	for (size_t i = 0; bounds && i < bounds->paths; i++)
		if (bounds->path[i].access == PROCESS_RW &&
		    is_at(step, bounds->path[i].path))
			return bounds->path[i].path;
	return NULL;
}

static int check_step(void *arg, const struct path_step *step)
{
	const struct run_view *view = arg;
	const char *second = second_cwd(view, step);

	if (is_loose(view, step))
		die(EXIT_SALLYPORT,
		    "%s is a link that the command could replace\nName what it "
		    "leads to, or start from another working directory.",
		    step->at);
	if (second)
		die(EXIT_SALLYPORT,
		    "%s is %s too, in which the command may write\nName the "
		    "files in it as %s/...",
		    step->at,
		    second == view->cwd ? "the working directory" : second,
		    second);
	return 0;
}

/* What hides a file hides what its path leads to now. A link on the way that
 * the command can replace would lead the next session elsewhere. */
static void refuse_link(struct run_view *view, const char *path)
{
	path_walk(path, check_step, view);
}

/* The mask is over one name of a file, and another one may be in the working
 * directory, wherever this one is. Whose file it is and its mode say whether
 * the command could write to it; as root we don't look, since it may get the
 * rights of any owner. */
static bool has_names(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink > 1 &&
	       (session_root() || st.st_uid == geteuid() ||
		st.st_mode & (S_IWGRP | S_IWOTH));
}

static void refuse_names(const char *path)
{
	if (has_names(path))
		die(EXIT_SALLYPORT,
		    "%s has another name (a hard link), by which the command "
		    "could write to it\nReplace it by a copy.",
		    path);
}

/* A directory that later runs will trust must not be left for the sandbox to
 * create. */
static void hide_config(struct run_view *view)
{
	const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
	char path[PATH_MAX];
	struct stat st;

	if (!policy_config_dir(path, sizeof(path)))
		return;
	/* Made only where the command could make it, and in no home but ours: a
	 * root that was called by sudo keeps out of its caller's. */
	if (below_cwd(view, path) &&
	    lstat(config && *config == '/' ? config : home, &st) == 0 &&
	    S_ISDIR(st.st_mode) && st.st_uid == geteuid())
		session_mkdir(path);
	refuse_link(view, path);
	run_view_hide(view, path);
}

/* Who can read it signs as we do; who can write to its public half changes whom
 * others trust. */
static void hide_key(struct run_view *view, const struct options *options,
		     const struct session *session)
{
	if (session->signing.ephemeral)
		return;
	if (options->key)
		refuse_link(view, options->key);
	refuse_link(view, session->signing.path);
	refuse_names(session->signing.path);
	run_view_hide(view, session->signing.path);
	run_view_hide(view, session->signing.vkey);
}

static void hide_policy(struct run_view *view, const struct bundle *bundle)
{
	char path[PATH_MAX];

	for (size_t i = 0; bundle_file(bundle, i, path, sizeof(path)); i++) {
		refuse_link(view, path);
		refuse_names(path);
		run_view_hide(view, path);
	}
}

/* In /run, of which no sandbox has the host's. */
static void choose_known(struct run_view *view, struct process_spec *spec)
{
	const char *own = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (session_root())
		own = "/run";
	else if (!own || strncmp(own, "/run/", 5) != 0 || strstr(own, "/..") ||
		 lstat(own, &st) < 0 || !S_ISDIR(st.st_mode) ||
		 st.st_uid != geteuid() || st.st_mode & 077 ||
		 strlen(own) > sizeof(view->known) - sizeof(KNOWN_NAME))
		return;
	snprintf(view->known, sizeof(view->known), "%s" KNOWN_NAME, own);
	run_view_hide(view, view->known);
	spec->known = view->known;
}

/* A mask holds against those who see it as a mount. In a mount namespace of
 * one's own all of ours can be detached at once: they still hide what they hid,
 * but what is below them can then be renamed, and its name is free. */
static void refuse_replaceable(const struct run_view *view)
{
	if (!view->bounds || !view->bounds->nest)
		return;
	for (size_t i = 0; i < view->hides; i++)
		if (below_cwd(view, view->hide[i]))
			die(EXIT_SALLYPORT,
			    "%s lies where the command may write, and with "
			    "--nest it could put another one in its place\n"
			    "Keep it elsewhere (--log DIR for the log), start "
			    "from another directory, or leave --nest out.",
			    view->hide[i]);
}

void run_view_choose(struct run_view *view, const struct options *options,
		     const struct session *session, struct process_spec *spec)
{
	struct stat st;

	if (!getcwd(view->cwd, sizeof(view->cwd)) || stat(view->cwd, &st) < 0)
		die(EXIT_SALLYPORT, "the working directory: %s",
		    strerror(errno));
	view->cwd_dev = st.st_dev;
	view->cwd_ino = st.st_ino;
	run_view_hide(view, session->dir);
	if (*session->home) {
		session_mkdir(session->home);
		run_view_hide(view, session->home);
	}
	view->uid = spec->uid;
	choose_known(view, spec);
	/* Of a daemon; and our user may read his there. */
	run_view_hide(view, SESSION_HOME_ROOT);
	hide_config(view);
	run_view_hide(view, "/etc/sallyport");
	hide_key(view, options, session);
	hide_policy(view, &options->bundle);
	if (options->log_dir)
		refuse_link(view, options->log_dir);
	refuse_replaceable(view);
	if (below_cwd(view, session->dir) && !options->quiet)
		log_warn(
			"the log lies below the working directory: the command "
			"can't reach this one, but logs of earlier sessions "
			"there");
	spec->cwd = view->cwd;
	spec->hide = (const char *const *)view->hide;
	spec->hides = view->hides;
	if (view->bounds) {
		spec->path = view->bounds->path;
		spec->paths = view->bounds->paths;
		spec->host_files = view->bounds->host_files;
		spec->nest = view->bounds->nest;
	}
}

void run_view_mark(struct run_view *view, const struct options *options,
		   const struct session *session)
{
	char path[PATH_MAX];

	for (size_t i = 0; bundle_file(&options->bundle, i, path, sizeof(path));
	     i++) {
		AUTO_FREE char *real = realpath(path, NULL);
		int err = 0;

		if (!real || !below_cwd(view, real))
			continue;
		if (*session->home)
			err = policy_marks_add(&view->marks, session->home,
					       session->id, real);
		if (err || !*session->home)
			log_warn("%s lies below the working directory, and %s: "
				 "do not replace it while the command runs",
				 path,
				 err ? strerror(-err) : "there is no HOME");
	}
}

const char *run_view_settle(struct run_view *view)
{
	return policy_marks_settle(&view->marks);
}

static int find_other_way(void *arg, const struct path_step *step)
{
	const struct run_view *view = arg;

	return is_loose(view, step) || second_cwd(view, step) ? -ELOOP : 0;
}

bool run_view_exposes(const struct run_view *view, pid_t init, const char *path)
{
	AUTO_FREE char *real = realpath(path, NULL);
	char root_path[64];
	struct stat ours, theirs;

	/* There was none at the start: the command could have made it. */
	if (path_walk(path, find_other_way, (void *)(uintptr_t)view) ||
	    has_names(path))
		return true;
	/* What is elsewhere it can't write to. */
	if (!real || !below_cwd(view, real))
		return false;
	snprintf(root_path, sizeof(root_path), "/proc/%d/root", (int)init);
	AUTO_FD int root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (init <= 0 || root < 0 || stat(real, &ours) < 0)
		return true; /* who can't look must not trust */
	return fstatat(root, real + 1, &theirs, 0) == 0 &&
	       theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

void run_view_free(struct run_view *view)
{
	for (size_t i = 0; i < view->hides; i++)
		free(view->hide[i]);
	free(view->hide);
	view->hide = NULL;
	view->hides = 0;
	policy_marks_free(&view->marks);
}
