/* SPDX-License-Identifier: Apache-2.0
 *
 * sockets_walk.c - the sockets in trees of files.
 *
 * What is near the roots comes first: a budget that runs out does so in the
 * depth of somebody's caches. One open and one or two reads a directory; the
 * type of an entry comes with its name. A directory that was read before, and
 * has not changed since, takes one look at it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/sockets.h"
#include "launch/sockets_known.h"

#define READ_SIZE 32768

struct walk {
	const struct sockets_search *search;
	struct sockets *found;
	struct sockets queue; /* directories to look into */
	dev_t judged;	      /* a file system that was looked at */
	bool judged_skip;
	size_t left;
	int probe;
	struct known *known;
	/* Of the one that is being read. */
	uint32_t entries;
	bool has_socket;
	char *name; /* of the directories in it, each terminated */
	size_t names, names_cap;
	_Alignas(struct dirent64) char buf[READ_SIZE];
};

/* Never through a symlink, also if somebody makes one meanwhile. */
static int open_dir(const char *path)
{
	const int flags =
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	struct open_how how = { .flags = (unsigned int)flags,
				.resolve = RESOLVE_NO_SYMLINKS };
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = open(path, flags);
	return fd < 0 ? -errno : fd;
}

/* The kernel's own file systems, without sockets. */
static bool skip_kind(struct walk *walk, int fd, dev_t dev)
{
	struct statfs fs;

	if (dev == walk->judged)
		return walk->judged_skip;
	walk->judged_skip = false;
	walk->judged = dev;
	if (fstatfs(fd, &fs) < 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case DEVPTS_SUPER_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
	case SECURITYFS_MAGIC:
	case BPF_FS_MAGIC:
	case NSFS_MAGIC:
		walk->judged_skip = true;
	}
	return walk->judged_skip;
}

/* Has anything on this host still got it? A file whose socket was closed never
 * leads anywhere again. A stream socket refuses a datagram socket with another
 * error and does not notice; a datagram socket does not notice either. */
static bool is_dead(const struct walk *walk, int dir, const char *name)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int n = snprintf(to.sun_path, sizeof(to.sun_path),
			 "/proc/self/fd/%d/%s", dir, name);

	if (walk->probe < 0 || n < 0 || (size_t)n >= sizeof(to.sun_path))
		return false;
	return connect(walk->probe, (struct sockaddr *)&to, sizeof(to)) < 0 &&
	       errno == ECONNREFUSED;
}

static unsigned char type_of(int dir, const struct dirent64 *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return (unsigned char)IFTODT(st.st_mode);
}

static bool is_root(const struct walk *walk, const char *path)
{
	for (size_t i = 0; i < walk->search->roots; i++)
		if (strcmp(walk->search->root[i], path) == 0)
			return true;
	return false;
}

/* NULL without memory. */
static char *path_in(const char *dir, const char *name)
{
	char *path;

	return asprintf(&path, "%s%s%s", dir, dir[1] ? "/" : "", name) < 0
		       ? NULL
		       : path;
}

static int add_dir(struct walk *walk, const char *path, const char *name)
{
	const struct sockets_search *search = walk->search;
	AUTO_FREE char *at = path_in(path, name);

	if (!at)
		return -ENOMEM;
	/* A root inside another one is in the queue already. */
	if (is_root(walk, at) ||
	    (search->hidden && search->hidden(search->arg, at)))
		return 0;
	return sockets_add(&walk->queue, STEAL(at));
}

static int note_dir(struct walk *walk, const char *name)
{
	const size_t len = strlen(name) + 1;

	if (!walk->known)
		return 0;
	if (len > walk->names_cap - walk->names) {
		size_t cap = 2 * (walk->names_cap + len);
		char *more = realloc(walk->name, cap);

		if (!more)
			return -ENOMEM;
		walk->name = more;
		walk->names_cap = cap;
	}
	memcpy(walk->name + walk->names, name, len);
	walk->names += len;
	return 0;
}

static int look_at(struct walk *walk, const char *path, int dir,
		   const struct dirent64 *entry)
{
	unsigned char type = type_of(dir, entry);
	int r;

	if (type == DT_DIR) {
		r = note_dir(walk, entry->d_name);
		return r < 0 ? r : add_dir(walk, path, entry->d_name);
	}
	if (type != DT_SOCK)
		return 0;
	walk->has_socket = true;
	return is_dead(walk, dir, entry->d_name)
		       ? 0
		       : sockets_add(walk->found, path_in(path, entry->d_name));
}

/* 1 if all of it was seen, 0 if not, or -errno. */
static int look_through(struct walk *walk, const char *path, int dir)
{
	walk->entries = 0;
	walk->names = 0;
	walk->has_socket = false;
	for (;;) {
		ssize_t n = getdents64(dir, walk->buf, sizeof(walk->buf));

		if (n < 0)
			walk->found->partial = true;
		if (n <= 0)
			return n == 0;
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *entry =
				(const void *)(walk->buf + at);
			const char *name = entry->d_name;
			int r;

			at += entry->d_reclen;
			if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
				continue;
			if (walk->left == 0) {
				walk->found->partial = true;
				return 0;
			}
			walk->left--;
			walk->entries++;
			r = look_at(walk, path, dir, entry);
			if (r < 0)
				return r;
		}
	}
}

static bool is_closed(const struct walk *walk, const char *path, int dir,
		      const struct stat *st)
{
	const struct sockets_search *search = walk->search;

	return search->closed && search->closed(search->arg, path, dir, st);
}

/* 1 if that was all there is to do for it. */
static int look_known(struct walk *walk, const char *path,
		      const struct stat *st)
{
	struct known_dir known;
	int r = 1;

	if (!walk->known || !known_find(walk->known, st, &known))
		return 0;
	if (known.entries > walk->left) {
		walk->found->partial = true;
		walk->left = 0;
		return 1;
	}
	walk->left -= known.entries;
	while (r > 0 && known.name < known.end) {
		int err = add_dir(walk, path, known.name);

		if (err < 0)
			r = err;
		known.name += strlen(known.name) + 1;
	}
	return r;
}

static int look_into(struct walk *walk, const char *path, int dir,
		     const struct stat *st)
{
	int r = look_through(walk, path, dir);
	struct known_dir what = { .name = "" };

	if (r <= 0)
		return r;
	if (!walk->known || walk->has_socket)
		return 0;
	if (walk->names)
		what.name = walk->name;
	what.end = what.name + walk->names;
	what.entries = walk->entries;
	known_add(walk->known, dir, st, &what);
	return 0;
}

static int enter(struct walk *walk, const char *path)
{
	AUTO_FD int dir = open_dir(path);
	struct stat st;

	/* What we may not enter, or what is gone, others don't reach by us. */
	if (dir == -EACCES || dir == -EPERM || dir == -ENOENT ||
	    dir == -ENOTDIR || dir == -ELOOP)
		return 0;
	if (dir < 0) {
		walk->found->partial = true;
		return 0;
	}
	if (fstat(dir, &st) < 0 || skip_kind(walk, dir, st.st_dev) ||
	    is_closed(walk, path, dir, &st))
		return 0;
	return look_into(walk, path, dir, &st);
}

/* Without opening it, where its status is enough. */
static int visit(struct walk *walk, const char *path)
{
	struct stat st;
	int r = 0;

	if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		const unsigned through = st.st_mode & (S_IXGRP | S_IXOTH);

		if (is_closed(walk, path, -1, &st))
			return 0;
		/* Group's alone: an ACL may close it. */
		if (through != S_IXGRP)
			r = look_known(walk, path, &st);
	}
	if (r == 0)
		r = enter(walk, path);
	return r < 0 ? r : 0;
}

int sockets_walk(struct sockets *list, const struct sockets_search *search)
{
	AUTO_FREE struct walk *walk = calloc(1, sizeof(*walk));
	int r = 0;

	if (!walk)
		return -ENOMEM;
	walk->search = search;
	walk->found = list;
	walk->left = search->budget;
	walk->probe =
		socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	walk->known = search->known ? known_open(search->known) : NULL;
	for (size_t i = 0; r == 0 && i < search->roots; i++)
		r = sockets_add(&walk->queue, strdup(search->root[i]));
	for (size_t i = 0; r == 0 && i < walk->queue.n && walk->left; i++)
		r = visit(walk, walk->queue.path[i]);
	if (walk->left == 0)
		list->partial = true;
	close_fd(&walk->probe);
	known_close(walk->known);
	free(walk->name);
	sockets_free(&walk->queue);
	return r;
}
