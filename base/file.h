/* SPDX-License-Identifier: Apache-2.0
 *
 * file.h - small files as a whole: all of it is there, or nothing.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stddef.h>

/* Writes all of it. 0 or -errno. */
int file_write(int fd, const void *data, size_t len);

/* File @name in directory @dir is these bytes from now on, mode 0600: written
 * aside (as NAME.new), synced, renamed. After a crash it is the old one or the
 * new one; which of them, once fsync(@dir) was called. 0 or -errno. */
int file_put(int dir, const char *name, const void *data, size_t len);

/* All of a regular file of at most @max bytes, allocated (the caller's); a NUL
 * follows. A symbolic link is not followed. 0, -EFBIG for what is longer or no
 * file, or -errno. */
int file_get(int dir, const char *name, size_t max, char **ret,
	     size_t *ret_len);

#endif
