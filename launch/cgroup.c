/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup.c - see cgroup.h.
 *
 * We may make groups below our own one, or, where that holds processes and so
 * can't have controllers for its children (v2), beside it: the nearest place
 * upwards that works. With systemd that is a user's own app.slice.
 */
#include "launch/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NAME_BEGIN "sallyport-run-"
#define REMOVE_MS  500
#define BELOW_MAX  "200" /* groups that a command may make in its own */

int cgroup_write(const char *dir, const char *file, const char *text)
{
	char path[PATH_MAX];
	AUTO_FD int fd = -1;
	size_t len = strlen(text);

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, text, len) == (ssize_t)len ? 0 : -errno;
}

uint64_t cgroup_read(const char *dir, const char *file, const char *key)
{
	char path[PATH_MAX], line[128];
	AUTO_FILE FILE *f = NULL;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >=
	    (int)sizeof(path))
		return 0;
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		size_t n = key ? strlen(key) : 0;

		if (!key)
			return strtoull(line, NULL, 10);
		if (strncmp(line, key, n) == 0 && line[n] == ' ')
			return strtoull(line + n, NULL, 10);
	}
	return 0;
}

/* --- where --------------------------------------------------------------- */

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, word, n) == 0 &&
		    (at[n] == ',' || at[n] == '\0' || at[n] == '\n'))
			return true;
	}
	return false;
}

struct place {
	char mount[PATH_MAX]; /* of the hierarchy */
	char own[PATH_MAX];   /* our group's directory, in it */
};

/* "ID:CONTROLLERS:PATH"; v2 has no controllers there. */
static bool find_own(const char *controller, char *ret, size_t cap)
{
	AUTO_FILE FILE *f = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX + 256];

	while (f && fgets(line, sizeof(line), f)) {
		char *rest = line, *list;

		line[strcspn(line, "\n")] = '\0';
		strsep(&rest, ":");
		list = strsep(&rest, ":");
		if (!list || !rest || *rest != '/')
			continue;
		if (controller ? has_word(list, controller) : !*list) {
			snprintf(ret, cap, "%s", rest);
			return true;
		}
	}
	return false;
}

/* In /proc/self/mountinfo; options behind the " - " name v1's controllers. */
static bool find_mount(const char *controller, char *root, char *mount)
{
	AUTO_FILE FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[2 * PATH_MAX], type[16], options[256];

	while (f && fgets(line, sizeof(line), f)) {
		const char *dash = strstr(line, " - ");

		if (!dash ||
		    sscanf(line, "%*s %*s %*s %1023s %1023s", root, mount) !=
			    2 ||
		    sscanf(dash + 3, "%15s %*s %255s", type, options) != 2)
			continue;
		if (controller ? strcmp(type, "cgroup") == 0 &&
					 has_word(options, controller)
			       : strcmp(type, "cgroup2") == 0)
			return true;
	}
	return false;
}

static bool find_place(const char *controller, struct place *ret)
{
	char own[PATH_MAX], root[1024], mount[1024];
	const char *rest = own;
	size_t n;

	if (!find_own(controller, own, sizeof(own)) ||
	    !find_mount(controller, root, mount))
		return false;
	/* A container may see a part of the hierarchy only. */
	n = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (strncmp(own, root, n) == 0 && (own[n] == '/' || !own[n]))
		rest += n;
	else if (n)
		rest = "";
	if (strstr(rest, ".."))
		return false;
	snprintf(ret->mount, sizeof(ret->mount), "%s", mount);
	n = (size_t)snprintf(ret->own, sizeof(ret->own), "%s%s", mount, rest);
	if (n >= sizeof(ret->own))
		return false;
	while (n > 1 && ret->own[n - 1] == '/')
		ret->own[--n] = '\0';
	return true;
}

/* --- making -------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *at)
{
	(void)st;
	(void)at;
	if (type == FTW_DP)
		rmdir(path);
	return 0;
}

/* Files of groups need not, and can't, be removed. */
static void remove_all(const char *dir)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* What a killed sallyport left. */
static void sweep(const char *parent)
{
	DIR *d = opendir(parent);
	const struct dirent *entry;
	char path[PATH_MAX];

	while (d && (entry = readdir(d))) {
		size_t n = strlen(NAME_BEGIN);
		long pid;

		if (strncmp(entry->d_name, NAME_BEGIN, n) != 0)
			continue;
		pid = strtol(entry->d_name + n, NULL, 10);
		if (pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH &&
		    snprintf(path, sizeof(path), "%s/%s", parent,
			     entry->d_name) < (int)sizeof(path))
			remove_all(path);
	}
	if (d)
		closedir(d);
}

/* A group in @parent, with @file in it. */
static int make_in(const char *parent, const char *file, char **ret_dir)
{
	AUTO_FREE char *dir = NULL;
	AUTO_FREE char *path = NULL;
	bool is_new;

	if (asprintf(&dir, "%s/" NAME_BEGIN "%d", parent, (int)getpid()) < 0) {
		dir = NULL;
		return -ENOMEM;
	}
	sweep(parent);
	/* With v2 it may be there, for another controller. */
	is_new = mkdir(dir, 0755) == 0;
	if (!is_new && errno != EEXIST)
		return -errno;
	if (asprintf(&path, "%s/%s", dir, file) < 0)
		path = NULL;
	if (!path || access(path, W_OK) < 0) {
		if (is_new)
			rmdir(dir);
		return -ENOTSUP;
	}
	*ret_dir = STEAL(dir);
	return 0;
}

/* v2: a group with processes can't have groups that hold some too. It can
 * enable pids and cpu for them all the same, and only joining one fails. The
 * root of all, which has no type, is another matter. */
static bool may_have_children(const char *dir)
{
	char type_of[PATH_MAX + 16], procs_of[PATH_MAX + 16], type[32] = "";
	AUTO_FILE FILE *f = NULL;
	AUTO_FILE FILE *procs = NULL;

	snprintf(type_of, sizeof(type_of), "%s/cgroup.type", dir);
	snprintf(procs_of, sizeof(procs_of), "%s/cgroup.procs", dir);
	f = fopen(type_of, "re");
	if (!f)
		return errno == ENOENT;
	if (!fgets(type, sizeof(type), f) || strcmp(type, "domain\n") != 0)
		return false;
	procs = fopen(procs_of, "re");
	return procs && fgetc(procs) == EOF && !ferror(procs);
}

/* v2: a group has a controller's files if its parent enabled it. */
static int make_v2(const char *controller, const char *file, char **ret_dir)
{
	struct place place;
	char enable[32];
	int r = -ENOENT;

	if (!find_place(NULL, &place))
		return r;
	snprintf(enable, sizeof(enable), "+%s", controller ? controller : "");
	for (;;) {
		char *slash;

		if (may_have_children(place.own)) {
			if (controller)
				cgroup_write(place.own,
					     "cgroup.subtree_control", enable);
			r = make_in(place.own, file, ret_dir);
		}
		slash = strrchr(place.own, '/');
		if (r == 0 || !slash ||
		    strlen(place.own) <= strlen(place.mount))
			return r;
		*slash = '\0';
	}
}

int cgroup_make(const char *controller, const char *file_v2,
		const char *file_v1, char **ret_dir, unsigned *ret_version)
{
	struct place place;
	int r = make_v2(controller, file_v2, ret_dir);

	*ret_version = 2;
	if (r == 0 || !controller)
		return r;
	*ret_version = 1;
	if (!find_place(controller, &place))
		return -ENOENT;
	return make_in(place.own, file_v1, ret_dir);
}

int cgroup_make_leaf(const char *dir)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/" CGROUP_LEAF, dir) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	/* v2 only. */
	cgroup_write(dir, "cgroup.max.descendants", BELOW_MAX);
	return 0;
}

void cgroup_remove(const char *dir)
{
	const struct timespec pause = { .tv_nsec = 5000000 };

	remove_all(dir);
	for (int ms = 0; access(dir, F_OK) == 0 && ms < REMOVE_MS; ms += 5) {
		nanosleep(&pause, NULL);
		remove_all(dir);
	}
}
