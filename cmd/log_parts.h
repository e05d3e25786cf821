/* SPDX-License-Identifier: Apache-2.0
 *
 * log_parts.h - the files of a log, oldest first: PATH.000001, ..., PATH. It
 *may be rotated while it is read, and another log may take its place.
 *
 *	read .fd to its end
 *	log_parts_peek(): is there another file? Then nothing is written to this
 *	one any more.
 *	read .fd to its end again, for what came in between
 *	log_parts_step(), and so on
 */
#ifndef CMD_LOG_PARTS_H
#define CMD_LOG_PARTS_H

#include <limits.h>
#include <stdbool.h>

struct log_parts {
	int fd;		  /* the file to read */
	bool missing;	  /* peek: there is no newest one, for now */
	bool another_log; /* peek: the next file begins another log */

	const char *path; /* the newest, whatever its number is */
	unsigned number;  /* of .fd, from 1 */
	int next;
	unsigned next_number;
};

/* The first file: the oldest, or (@newest) that which @path is now. @path must
 * outlive @ret. Returns 0 and files for log_parts_close(), or -errno. */
int log_parts_open(const char *path, bool newest, struct log_parts *ret);
void log_parts_close(struct log_parts *parts);

/* Returns 1 if there is another file; 0: .fd is the newest that has something
 * in it; -errno. */
int log_parts_peek(struct log_parts *parts);
/* Only after a peek that returned 1. */
void log_parts_step(struct log_parts *parts);

/* What .fd is called by now. */
const char *log_parts_name(const struct log_parts *parts, char buf[PATH_MAX]);

#endif
