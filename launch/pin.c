/* SPDX-License-Identifier: Apache-2.0
 *
 * pin.c - bind mounts of /proc/self/fd/N.
 *
 * The file is opened first, without following a link, and mounted upon as what
 * was opened.
 */
#include "launch/pin.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool is_namespace(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == NSFS_MAGIC;
}

static int make_parents(const char *path)
{
	char part[PATH_MAX];
	size_t len = strlen(path);

	if (*path != '/')
		return -EINVAL;
	if (len >= sizeof(part))
		return -ENAMETOOLONG;
	for (size_t i = 1; i < len; i++) {
		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0755) == 0) {
			/* Whatever the umask is. */
			if (chmod(part, 0755) < 0)
				return -errno;
		} else if (errno != EEXIST) {
			return -errno;
		}
	}
	return 0;
}

/* A file that is there already is what is left of a pin. */
static int open_file(const char *path, bool *ret_made)
{
	int fd =
		open(path, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		     0444);

	*ret_made = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int attach(int file, int ns)
{
	char from[64], to[64];
	struct stat st;

	if (is_namespace(file))
		return -EEXIST;
	if (fstat(file, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EEXIST;
	snprintf(from, sizeof(from), "/proc/self/fd/%d", ns);
	snprintf(to, sizeof(to), "/proc/self/fd/%d", file);
	return mount(from, to, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

int pin_make(const char *path, int ns)
{
	bool made = false;
	int err;

	if (!is_namespace(ns))
		return -EINVAL;
	err = make_parents(path);
	if (err)
		return err;
	AUTO_FD int file = open_file(path, &made);
	if (file < 0)
		return file;
	err = attach(file, ns);
	if (err && made)
		unlink(path);
	return err;
}

int pin_open(const char *path)
{
	AUTO_FD int fd =
		open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return is_namespace(fd) ? steal_fd(&fd) : -ENOENT;
}

int pin_drop(const char *path)
{
	/* EINVAL: it is a file, and no mount. */
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 &&
	    errno != EINVAL && errno != ENOENT)
		return -errno;
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}
