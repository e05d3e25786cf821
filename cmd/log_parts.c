/* SPDX-License-Identifier: Apache-2.0
 *
 * log_parts.c - which file comes next is asked of the directory each time: a
 * part that is full gets its number by a rename, then there is no newest file
 * for a moment, and it may be undone. Files are told apart by their inodes.
 *
 * The ledger writes to a part that was renamed until it has the new file. So
 * an old one is at its end when there is something in the next one.
 */
#include "cmd/log_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/log_dir.h"
#include "base/cleanup.h"

/* How often the newest file is looked for anew, when it gets its number just
 * then and there is no other yet. */
#define TRIES	20
#define WAIT_NS 5000000

static bool part_name(const char *path, unsigned number, char buf[PATH_MAX])
{
	int len = snprintf(buf, PATH_MAX, "%s.%06u", path, number);

	return number <= LOG_DIR_PARTS_MAX && len > 0 && len < PATH_MAX;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_at(const char *path, const struct stat *file)
{
	struct stat st;

	return stat(path, &st) == 0 && same_file(&st, file);
}

/* Part @number, which may be the newest. Waits a moment for that. */
static int open_part(const char *path, unsigned number, bool *ret_newest)
{
	static const struct timespec moment = { .tv_nsec = WAIT_NS };
	char name[PATH_MAX];
	int fd = -ENOENT;

	if (!part_name(path, number, name))
		return -ENAMETOOLONG;
	for (int i = 0; i < TRIES; i++) {
		*ret_newest = false;
		fd = open(name, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 || errno != ENOENT)
			return fd < 0 ? -errno : fd;
		*ret_newest = true;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
		if (faccessat(AT_FDCWD, name, F_OK, 0) == 0)
			close_fd(&fd); /* it got that number meanwhile */
		else if (fd != -ENOENT)
			return fd;
		else
			nanosleep(&moment, NULL);
	}
	return -ENOENT;
}

/* How many files have a number. */
static unsigned count_parts(const char *path)
{
	char name[PATH_MAX];
	unsigned n = 0;

	while (part_name(path, n + 1, name) &&
	       faccessat(AT_FDCWD, name, F_OK, 0) == 0)
		n++;
	return n;
}

int log_parts_open(const char *path, bool newest, struct log_parts *ret)
{
	struct log_parts parts = { .path = path, .number = 1, .next = -1 };
	bool is_newest = false;

	do {
		if (newest)
			parts.number = count_parts(path) + 1;
		parts.fd = open_part(path, parts.number, &is_newest);
		if (parts.fd < 0)
			return parts.fd;
		if (newest && !is_newest)
			close_fd(&parts.fd); /* it was, a moment ago */
	} while (newest && !is_newest);
	*ret = parts;
	return 0;
}

void log_parts_close(struct log_parts *parts)
{
	close_fd(&parts->fd);
	close_fd(&parts->next);
}

/* What follows a file that is part @parts->number of its log; -ENOENT for what
 * is not there yet. */
static int open_next(struct log_parts *parts, const struct stat *is,
		     bool *ret_newest)
{
	char name[PATH_MAX];
	int fd;

	if (part_name(parts->path, parts->number, name) && is_at(name, is)) {
		fd = open_part(parts->path, parts->number + 1, ret_newest);
		/* Still, after that? Otherwise it belongs to another log. */
		if (fd < 0 || is_at(name, is)) {
			parts->next_number = parts->number + 1;
			return fd;
		}
		close(fd);
	}
	parts->another_log = true;
	parts->next_number = 1;
	return open_part(parts->path, 1, ret_newest);
}

int log_parts_peek(struct log_parts *parts)
{
	struct stat is, next;
	bool newest;

	parts->missing = parts->another_log = false;
	if (fstat(parts->fd, &is) < 0)
		return -errno;
	if (is_at(parts->path, &is))
		return 0;
	parts->next = open_next(parts, &is, &newest);
	parts->missing = parts->next == -ENOENT;
	if (parts->missing)
		return 0;
	if (parts->next < 0)
		return parts->next;
	if (fstat(parts->next, &next) < 0)
		return -errno;
	if (same_file(&next, &is) || (newest && !next.st_size)) {
		close_fd(&parts->next);
		return 0;
	}
	return 1;
}

void log_parts_step(struct log_parts *parts)
{
	close_fd(&parts->fd);
	parts->fd = steal_fd(&parts->next);
	parts->number = parts->next_number;
}

const char *log_parts_name(const struct log_parts *parts, char buf[PATH_MAX])
{
	struct stat is;

	if (fstat(parts->fd, &is) == 0 &&
	    part_name(parts->path, parts->number, buf) && is_at(buf, &is))
		return buf;
	return parts->path;
}
