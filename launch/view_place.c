/* SPDX-License-Identifier: Apache-2.0
 *
 * view_place.c - what we can mount ourselves, before bubblewrap.
 *
 * Bubblewrap reads the whole mount table after each of its bind mounts, most of
 * what a short session would cost. It shows the command all that is mounted
 * here, read-only like the rest: so files and masks are put over what they hide
 * in our own mount namespace, and /dev is made there, with one mount(2) each.
 *
 * Only the idmapped working directory has to be done here. Whatever else does
 * not work is left for view_args.c, which asks bubblewrap for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/idmap.h"
#include "launch/userns.h"
#include "launch/view.h"

/* Inside, /run is private: what we put there is not seen. */
#define PLACE	   "/run"
#define PLACE_DEV  PLACE "/dev"
#define PLACE_MASK PLACE "/mask"
#define PLACE_HOME PLACE "/home"
#define MASK_FLAGS (MS_NOSUID | MS_NODEV | MS_RDONLY)

static int make_place(void)
{
	if (mount("none", PLACE, "tmpfs", MS_NOSUID | MS_NODEV,
		  "mode=0755,size=16m") < 0)
		return -errno;
	return 0;
}

/* --- files and masks ----------------------------------------------------- */

/* Nothing is put over what bubblewrap will mount later. */
static bool holds_mount_of_view(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->binds; i++)
		if (view_below(view->bind[i].path, path))
			return true;
	for (size_t i = 0; i < view->trees; i++)
		if (view_below(view->tree[i], path))
			return true;
	return false;
}

/* Will what is mounted at @path be seen at @path? */
static bool shows(const struct view *view, const char *path)
{
	const struct view_bind *bind = view_bind_of(view, path);

	if (holds_mount_of_view(view, path))
		return false;
	return (!bind || strcmp(bind->path, "/") == 0) &&
	       !view_in_tree(view, path);
}

static int write_file(const char *path, const char *text, size_t len)
{
	AUTO_FD int fd =
		open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

	if (fd < 0 || fchmod(fd, 0444) < 0)
		return -errno;
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Puts @text over the file at *@target, which then is done: NULL. */
static void place_file(const struct view *view, char **target, const char *from,
		       const char *text, size_t len)
{
	if (!*target || !text || !shows(view, *target))
		return;
	if (write_file(from, text, len) < 0 ||
	    mount(from, *target, NULL, MS_BIND, NULL) < 0)
		return;
	free(*target);
	*target = NULL;
}

/* We may be root: what others may not read stays bubblewrap's affair, which
 * reads as the sandbox's uid. */
static bool is_public(const char *path)
{
	struct stat st;

	return path && stat(path, &st) == 0 && st.st_mode & S_IROTH;
}

static void place_files(struct view *view)
{
	const char *resolv = view->spec->resolv_conf;
	struct view_names names = { 0 };

	if (resolv)
		place_file(view, &view->resolv, PLACE "/resolv", resolv,
			   strlen(resolv));
	if (is_public(view->passwd) && is_public(view->groups) &&
	    view_names(view, &names) == 0) {
		place_file(view, &view->passwd, PLACE "/passwd", names.passwd,
			   names.passwd_len);
		place_file(view, &view->groups, PLACE "/group", names.groups,
			   names.groups_len);
	}
	view_names_free(&names);
}

/* What is empty stays so, also for its owner: a bind of it is read-only too. */
static int make_mask(void)
{
	AUTO_FD int fd =
		open(PLACE_MASK, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0000);

	if (fd < 0 || mount(PLACE_MASK, PLACE_MASK, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, PLACE_MASK, NULL, MS_REMOUNT | MS_BIND | MASK_FLAGS,
		  NULL) < 0)
		return -errno;
	return 0;
}

/* What is gone by now, as sockets come and go, is no error: bubblewrap would
 * fail to make it. */
static bool place_mask(const struct view_mask *mask, const char *at)
{
	int r = mask->dir ? mount("none", at, "tmpfs", MASK_FLAGS, "mode=0555")
			  : mount(PLACE_MASK, at, NULL, MS_BIND, NULL);

	return r == 0 || errno == ENOENT;
}

/* In a home that is an overlay they are put there: it is nobody else's, and so
 * needs no pins. */
static bool mask_home(const struct view *view, const struct view_mask *mask)
{
	const struct view_bind *bind = view_bind_of(view, mask->path);
	AUTO_FREE char *at = NULL;

	if (!bind || !bind->overlay || holds_mount_of_view(view, mask->path))
		return false;
	if (asprintf(&at, "%s%s", bind->source,
		     mask->path + strlen(bind->path)) < 0) {
		at = NULL;
		return false;
	}
	return place_mask(mask, at);
}

static void place_masks(struct view *view)
{
	int file = make_mask();

	for (size_t i = 0; i < view->masks; i++) {
		struct view_mask *mask = &view->mask[i];

		if (file < 0 && !mask->dir)
			continue;
		mask->staged = shows(view, mask->path)
				       ? place_mask(mask, mask->path)
				       : mask_home(view, mask);
	}
}

/* --- /dev ---------------------------------------------------------------- */

/* A node of its own, unlike a bind, is no mount, each of which is looked at
 * many times. Only root may make one, and not in every container. */
static bool make_node(const char *from, const char *at)
{
	struct stat st;

	return stat(from, &st) == 0 && S_ISCHR(st.st_mode) &&
	       mknod(at, st.st_mode, st.st_rdev) == 0 &&
	       chmod(at, st.st_mode & 0777) == 0;
}

static int place_device(const char *name, bool as_root)
{
	char from[64], at[64];
	AUTO_FD int fd = -1;

	snprintf(from, sizeof(from), "/dev/%s", name);
	snprintf(at, sizeof(at), PLACE_DEV "/%s", name);
	if (as_root && make_node(from, at))
		return 0;
	fd = open(at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0 || mount(from, at, NULL, MS_BIND, NULL) < 0)
		return -errno;
	return 0;
}

/* Everybody's. With nodes beside it, it is a file system of its own, in which
 * there are none. */
static int make_shm(bool as_root)
{
	static const char shm[] = PLACE_DEV "/shm";

	if (mkdir(shm, 0755) < 0 ||
	    (as_root &&
	     mount("none", shm, "tmpfs", MS_NOSUID | MS_NODEV, NULL) < 0) ||
	    /* The command's uid may not be ours. */
	    chmod(shm, 01777) < 0)
		return -errno;
	return 0;
}

/* The same as bubblewrap's, without /dev/console. */
static int make_dev(bool as_root)
{
	static const char *const devices[] = { "null",	 "zero",    "full",
					       "random", "urandom", "tty" };
	static const char *const links[][2] = {
		{ "/proc/self/fd", PLACE_DEV "/fd" },
		{ "/proc/self/fd/0", PLACE_DEV "/stdin" },
		{ "/proc/self/fd/1", PLACE_DEV "/stdout" },
		{ "/proc/self/fd/2", PLACE_DEV "/stderr" },
		{ "/proc/kcore", PLACE_DEV "/core" },
		{ "pts/ptmx", PLACE_DEV "/ptmx" },
	};
	const unsigned long nodes = as_root ? 0 : MS_NODEV;

	if (mkdir(PLACE_DEV, 0755) < 0 ||
	    mount("none", PLACE_DEV, "tmpfs", MS_NOSUID | nodes, "mode=0755") <
		    0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		int r = place_device(devices[i], as_root);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlink(links[i][0], links[i][1]) < 0)
			return -errno;
	if (make_shm(as_root) < 0 || mkdir(PLACE_DEV "/pts", 0755) < 0 ||
	    mount("devpts", PLACE_DEV "/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		  "newinstance,ptmxmode=0666,mode=620") < 0)
		return -errno;
	return 0;
}

static void place_dev(struct view *view)
{
	/* Where there is a terminal, /dev/console is it. */
	if (isatty(STDOUT_FILENO) || make_dev(view->spec->as_root) < 0)
		return;
	view->dev = strdup(PLACE_DEV);
}

/* --- what is shown as it is outside -------------------------------------- */

static int attach(struct view_bind *bind, size_t number, int tree)
{
	AUTO_FREE char *place = NULL;
	int r;

	if (asprintf(&place, PLACE "/bind%zu", number) < 0) {
		place = NULL;
		return -ENOMEM;
	}
	if (bind->dir) {
		if (mkdir(place, 0755) < 0)
			return -errno;
	} else {
		AUTO_FD int fd = open(
			place, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
		if (fd < 0)
			return -errno;
	}
	r = idmap_attach(tree, place);
	if (r < 0)
		return r;
	free(bind->source);
	bind->source = STEAL(place);
	return 0;
}

/* What was judged, if it still has its name. */
static int reopen(const struct view_bind *bind)
{
	AUTO_FD int fd = open(bind->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat was, now;

	if (fd < 0 || fstat(fd, &now) < 0 || fstat(bind->fd, &was) < 0)
		return -errno;
	if (was.st_dev != now.st_dev || was.st_ino != now.st_ino ||
	    !view_leads_to(fd, bind->path))
		return -ESTALE;
	return steal_fd(&fd);
}

static int place_home(struct view_bind *home, int fd)
{
	int r = view_place_home(home, fd, PLACE_HOME);

	if (r < 0)
		return r;
	free(home->source);
	home->source = strdup(PLACE_HOME);
	return home->source ? 0 : -ENOMEM;
}

/* Its owner's files shown as the sandbox's, if @mapped. */
static int place_bind(struct view *view, size_t number, bool mapped)
{
	const struct process_spec *spec = view->spec;
	struct view_bind *bind = &view->bind[number];
	AUTO_FD int tree = -1;
	AUTO_FD int userns = -1;
	AUTO_FD int fd = reopen(bind);

	if (fd < 0)
		return fd;
	if (bind->overlay)
		return place_home(bind, fd);
	if (mapped) {
		userns = userns_make(bind->owner, spec->uid, bind->group,
				     spec->gid);
		if (userns < 0)
			return userns;
	}
	tree = idmap_clone_fd(fd, userns);
	if (tree < 0)
		return tree;
	/* The one that the child itself will enter. */
	if (mapped && view->userns < 0 && bind->owner == 0 && bind->group == 0)
		view->userns = steal_fd(&userns);
	return attach(bind, number, tree);
}

static void drop_bind(struct view *view, size_t number)
{
	struct view_bind *bind = &view->bind[number];

	free(bind->path);
	free(bind->source);
	close_fd(&bind->fd);
	view->binds--;
	memmove(bind, bind + 1, (view->binds - number) * sizeof(*bind));
}

/* Some file systems have no idmapped mounts: what is there is then no more than
 * the sandbox's uid may see. */
static void give_up(struct view *view, size_t number)
{
	struct view_bind *bind = &view->bind[number];
	bool cwd = strcmp(bind->path, view->cwd) == 0;
	size_t n = strlen(view->note);

	if (cwd && !bind->named && view->kind == VIEW_CWD_WRITABLE)
		n = 0;
	snprintf(view->note + n, sizeof(view->note) - n,
		 "%s%.100s is read-only for the command: its file system has "
		 "no idmapped mounts (use --user)",
		 n ? "; " : "", bind->path);
	if (cwd)
		view->kind = VIEW_CWD_READONLY;
	drop_bind(view, number);
}

static int place_binds(struct view *view)
{
	const struct process_spec *spec = view->spec;

	for (size_t i = 0; i < view->binds;) {
		const struct view_bind *bind = &view->bind[i];
		bool mapped = spec->as_root && spec->synthetic &&
			      !view_is_system(bind->path);
		int r;

		if (strcmp(bind->path, "/") == 0) {
			i++;
			continue;
		}
		r = place_bind(view, i, mapped);
		if (r < 0 && mapped && r != -ESTALE)
			give_up(view, i);
		else if (r < 0 && bind->overlay && r != -ESTALE)
			drop_bind(view, i);
		else if (r < 0)
			return r;
		else
			i++;
	}
	return 0;
}

int view_place(struct view *view, char *reterr, size_t cap)
{
	int r = make_place();

	if (r == 0)
		r = place_binds(view);
	if (r < 0) {
		snprintf(reterr, cap,
			 "cannot make the command's view of the files: %s",
			 strerror(-r));
		return r;
	}
	place_dev(view);
	place_files(view);
	place_masks(view);
	return 0;
}
