/* SPDX-License-Identifier: Apache-2.0
 *
 * sockets_walk.c - the sockets in trees of files.
 *
 * What is near the roots comes first: a budget that runs out does so in the
 * depth of somebody's caches. One open and one or two reads a directory; the
 * type of an entry comes with its name.
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

#define READ_SIZE 32768

struct walk {
	const struct sockets_search *search;
	struct sockets *found;
	struct sockets queue; /* directories to look into */
	dev_t known;	      /* a file system that has been judged */
	bool known_skip;
	size_t left;
	int probe;
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
static bool skip_kind(struct walk *walk, int fd)
{
	struct stat st;
	struct statfs fs;

	if (fstat(fd, &st) < 0)
		return true;
	if (st.st_dev == walk->known)
		return walk->known_skip;
	walk->known_skip = false;
	walk->known = st.st_dev;
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
		walk->known_skip = true;
	}
	return walk->known_skip;
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

static int look_at(struct walk *walk, const char *path, int dir,
		   const struct dirent64 *entry)
{
	const struct sockets_search *search = walk->search;
	unsigned char type = type_of(dir, entry);
	const char *slash = path[1] ? "/" : "";
	AUTO_FREE char *at = NULL;

	if (type != DT_DIR && type != DT_SOCK)
		return 0;
	if (type == DT_SOCK && is_dead(walk, dir, entry->d_name))
		return 0;
	if (asprintf(&at, "%s%s%s", path, slash, entry->d_name) < 0) {
		at = NULL;
		return -ENOMEM;
	}
	if (type == DT_SOCK)
		return sockets_add(walk->found, STEAL(at));
	/* A root inside another one is in the queue already. */
	if (is_root(walk, at) ||
	    (search->hidden && search->hidden(search->arg, at)))
		return 0;
	return sockets_add(&walk->queue, STEAL(at));
}

static int look_through(struct walk *walk, const char *path, int dir)
{
	for (;;) {
		ssize_t n = getdents64(dir, walk->buf, sizeof(walk->buf));

		if (n < 0)
			walk->found->partial = true;
		if (n <= 0)
			return 0;
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
			r = look_at(walk, path, dir, entry);
			if (r < 0)
				return r;
		}
	}
}

static int enter(struct walk *walk, const char *path)
{
	const struct sockets_search *search = walk->search;
	AUTO_FD int dir = open_dir(path);

	/* What we may not enter, or what is gone, others don't reach by us. */
	if (dir == -EACCES || dir == -EPERM || dir == -ENOENT ||
	    dir == -ENOTDIR || dir == -ELOOP)
		return 0;
	if (dir < 0) {
		walk->found->partial = true;
		return 0;
	}
	if (skip_kind(walk, dir) ||
	    (search->closed && search->closed(search->arg, path, dir)))
		return 0;
	return look_through(walk, path, dir);
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
	for (size_t i = 0; r == 0 && i < search->roots; i++)
		r = sockets_add(&walk->queue, strdup(search->root[i]));
	for (size_t i = 0; r == 0 && i < walk->queue.n && walk->left; i++)
		r = enter(walk, walk->queue.path[i]);
	if (walk->left == 0)
		list->partial = true;
	close_fd(&walk->probe);
	sockets_free(&walk->queue);
	return r;
}
