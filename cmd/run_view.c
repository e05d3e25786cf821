/* SPDX-License-Identifier: Apache-2.0
 *
 * run_view.c - what a later session will trust must not be in the reach of this
 * one: its log, its policy with all that it is made of, its configuration.
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
#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/path_walk.h"
#include "cmd/session.h"
#include "launch/isolate.h"
#include "launch/process.h"

/* A uid that nobody uses gets root's home, emptied. */
#define ROOT_HOME "/root"

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

static void hide(struct run_view *view, const char *path)
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

static bool below_cwd(const struct run_view *view, const char *path)
{
	size_t len = strlen(view->cwd);

	return strncmp(path, view->cwd, len) == 0 && path[len] == '/';
}

static int check_step(void *arg, const struct path_step *step)
{
	const struct run_view *view = arg;

	if (!S_ISLNK(step->st.st_mode) || !below_cwd(view, step->at))
		return 0;
	die(EXIT_SALLYPORT,
	    "%s is a link that the command could replace\n"
	    "Name what it leads to, or start from another working directory.",
	    step->at);
}

/* What hides a file hides what its path leads to now. A link on the way that
 * the command can replace would lead the next session elsewhere. */
static void refuse_link(struct run_view *view, const char *path)
{
	path_walk(path, check_step, view);
}

/* The mask is over one name of the file. */
static void refuse_names(const struct run_view *view, const char *path)
{
	AUTO_FREE char *real = realpath(path, NULL);
	struct stat st;

	if (real && below_cwd(view, real) && stat(real, &st) == 0 &&
	    S_ISREG(st.st_mode) && st.st_nlink > 1)
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
	hide(view, path);
}

static void hide_policy(struct run_view *view, const struct bundle *bundle)
{
	char path[PATH_MAX];

	for (size_t i = 0; bundle_file(bundle, i, path, sizeof(path)); i++) {
		refuse_link(view, path);
		refuse_names(view, path);
		hide(view, path);
	}
}

void run_view_choose(struct run_view *view, const struct options *options,
		     const struct session *session, struct process_spec *spec)
{
	if (!getcwd(view->cwd, sizeof(view->cwd)))
		die(EXIT_SALLYPORT, "the working directory: %s",
		    strerror(errno));
	hide(view, session->dir);
	if (*session->home) {
		session_mkdir(session->home);
		hide(view, session->home);
	}
	hide_config(view);
	hide(view, "/etc/sallyport");
	hide_policy(view, &options->bundle);
	if (options->log_dir)
		refuse_link(view, options->log_dir);
	if (below_cwd(view, session->dir) && !options->quiet)
		log_warn(
			"the log lies below the working directory: the command "
			"can't reach this one, but logs of earlier sessions "
			"there");
	spec->cwd = view->cwd;
	spec->hide = (const char *const *)view->hide;
	spec->hides = view->hides;
}

static int find_link(void *arg, const struct path_step *step)
{
	const struct run_view *view = arg;

	return S_ISLNK(step->st.st_mode) && below_cwd(view, step->at) ? -ELOOP
								      : 0;
}

bool run_view_exposes(const struct run_view *view, pid_t init, const char *path)
{
	AUTO_FREE char *real = realpath(path, NULL);
	char root_path[64];
	struct stat ours, theirs;

	/* There was none at the start: the command could have made it. */
	if (path_walk(path, find_link, (void *)(uintptr_t)view))
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
}
