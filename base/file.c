/* SPDX-License-Identifier: Apache-2.0
 *
 * file.c - written aside, and read as a whole.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

int file_write(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int file_put(int dir, const char *name, const void *data, size_t len)
{
	char fresh[NAME_MAX + 1];

	if (snprintf(fresh, sizeof(fresh), "%s.new", name) >=
	    (int)sizeof(fresh))
		return -ENAMETOOLONG;
	AUTO_FD int fd = openat(
		dir, fresh,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	int err = file_write(fd, data, len);
	if (err)
		return err;
	if (fsync(fd) < 0 || renameat(dir, fresh, dir, name) < 0)
		return -errno;
	return 0;
}

static int read_all(int fd, char *data, size_t len)
{
	while (len) {
		ssize_t n = read(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

int file_get(int dir, const char *name, size_t max, char **ret, size_t *ret_len)
{
	AUTO_FD int fd = openat(dir, name,
				O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	AUTO_FREE char *data = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || (size_t)st.st_size > max)
		return -EFBIG;
	const size_t len = (size_t)st.st_size;
	data = malloc(len + 1);
	if (!data)
		return -ENOMEM;
	int err = read_all(fd, data, len);
	if (err)
		return err;
	data[len] = '\0';
	*ret = STEAL(data);
	*ret_len = len;
	return 0;
}
