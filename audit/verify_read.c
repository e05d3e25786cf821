/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_read.c - the lines of a log, oldest part first.
 *
 * The digest of each part is computed on the way, so that nothing is read
 * twice. A session may go on meanwhile: what counts is the size at the start.
 */
#include "audit/verify_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/record.h"
#include "base/cleanup.h"

#define BUF_LEN ((size_t)256 * 1024)

static bool is_log(const char *name)
{
	unsigned number;
	char again[LOG_DIR_NAME_MAX];

	if (strcmp(name, LOG_DIR_RECORDS) == 0)
		return true;
	if (sscanf(name, LOG_DIR_RECORDS ".%6u", &number) != 1)
		return false;
	snprintf(again, sizeof(again), LOG_DIR_PART, number);
	return strcmp(again, name) == 0;
}

int verify_open_dir(const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	int fd;

	if (strlen(path) >= sizeof(dir))
		return -ENAMETOOLONG;
	snprintf(dir, sizeof(dir), "%s", path);
	if (is_log(slash ? slash + 1 : path))
		snprintf(dir, sizeof(dir), "%.*s",
			 slash ? (int)(slash + 1 - path) : 1,
			 slash ? path : ".");
	fd = open(dir, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	if (fd < 0)
		return errno == ENOTDIR ? -EINVAL : -errno;
	return fd;
}

int verify_open_file(int dirfd, const char *name)
{
	/* A FIFO must not make us wait. */
	int fd = openat(dirfd, name,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
				O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

const char *verify_open_why(int error)
{
	switch (-error) {
	case ENOENT:
		return "it is missing";
	case ELOOP:
		return "it is a symbolic link, and leads elsewhere";
	case EINVAL:
	case EISDIR:
	case ENXIO:
		return "it is no regular file";
	default:
		return strerror(-error);
	}
}

static bool is_earlier(const char *name)
{
	unsigned number;
	char again[LOG_DIR_NAME_MAX];

	if (sscanf(name, LOG_DIR_EARLIER, &number) != 1)
		return false;
	snprintf(again, sizeof(again), LOG_DIR_EARLIER, number);
	return strcmp(again, name) == 0;
}

static bool is_left(const char *name)
{
	static const char *const names[] = { LOG_DIR_CHECKPOINTS, LOG_DIR_VKEY,
					     LOG_DIR_RECEIPT,
					     LOG_DIR_RECEIPT_NEW };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return is_log(name) || is_earlier(name);
}

bool verify_has_log(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool found = false;

	if (!dir) {
		close_fd(&fd);
		return false;
	}
	while (!found && (entry = readdir(dir)))
		found = is_left(entry->d_name);
	closedir(dir);
	return found;
}

static void count_part(struct verify_reader *reader, const char *name)
{
	unsigned number;

	if (strcmp(name, LOG_DIR_RECORDS) == 0 || !is_log(name) ||
	    sscanf(name, LOG_DIR_RECORDS ".%6u", &number) != 1 || !number)
		return;
	if (number > reader->parts)
		reader->parts = number;
}

static void part_name(const struct verify_reader *reader, unsigned part,
		      char ret[LOG_DIR_NAME_MAX])
{
	if (part == reader->parts)
		snprintf(ret, LOG_DIR_NAME_MAX, "%s", LOG_DIR_RECORDS);
	else
		snprintf(ret, LOG_DIR_NAME_MAX, LOG_DIR_PART, part);
}

/* What is there, and how much. */
static int survey(struct verify_reader *reader)
{
	int fd = openat(reader->dirfd, ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char name[LOG_DIR_NAME_MAX];
	struct stat st;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		count_part(reader, entry->d_name);
	closedir(dir);
	reader->parts++;
	for (unsigned part = 1; part < reader->parts; part++) {
		part_name(reader, part, name);
		if (fstatat(reader->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			reader->total += (uint64_t)st.st_size;
		else if (!reader->lost)
			reader->lost = part;
	}
	return 0;
}

int verify_reader_open(struct verify_reader *reader, int dirfd)
{
	struct stat st;
	int r;

	*reader = (struct verify_reader){ .dirfd = dirfd, .fd = -1 };
	snprintf(reader->file, sizeof(reader->file), "%s", LOG_DIR_RECORDS);
	reader->newest = verify_open_file(dirfd, LOG_DIR_RECORDS);
	if (reader->newest < 0)
		return reader->newest;
	if (fstat(reader->newest, &st) < 0)
		return -errno;
	r = survey(reader);
	if (r < 0)
		return r;
	reader->total += (uint64_t)st.st_size;
	reader->left = (uint64_t)st.st_size;
	reader->buf = malloc(BUF_LEN);
	return reader->buf ? 0 : -ENOMEM;
}

void verify_reader_close(struct verify_reader *reader)
{
	close_fd(&reader->fd);
	close_fd(&reader->newest);
	free(reader->buf);
	reader->buf = NULL;
}

static int next_part(struct verify_reader *reader)
{
	struct stat st;

	reader->part++;
	reader->line = 0;
	reader->from = reader->to = 0;
	digest_begin(&reader->sha);
	part_name(reader, reader->part, reader->file);
	if (reader->part == reader->parts) {
		reader->fd = steal_fd(&reader->newest);
		if (fstat(reader->fd, &st) < 0)
			return -errno;
		return 0;
	}
	reader->fd = verify_open_file(reader->dirfd, reader->file);
	return reader->fd < 0 ? reader->fd : 0;
}

/* Returns how many bytes came, 0 at the end. */
static ssize_t fill(struct verify_reader *reader)
{
	size_t room;
	ssize_t n;

	if (reader->from) {
		memmove(reader->buf, reader->buf + reader->from,
			reader->to - reader->from);
		reader->to -= reader->from;
		reader->from = 0;
	}
	room = BUF_LEN - reader->to;
	/* Only the newest part can grow. */
	if (reader->part == reader->parts && room > reader->left)
		room = (size_t)reader->left;
	if (!room)
		return 0;
	do
		n = read(reader->fd, reader->buf + reader->to, room);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (reader->part == reader->parts)
		reader->left -= (uint64_t)n;
	digest_add(&reader->sha, reader->buf + reader->to, (size_t)n);
	reader->to += (size_t)n;
	reader->bytes += (uint64_t)n;
	if (reader->progress &&
	    !reader->progress(reader->arg, reader->bytes, reader->total))
		return -ECANCELED;
	return n;
}

static int end_part(struct verify_reader *reader, struct text *ret_line)
{
	size_t len = reader->to - reader->from;

	if (len) {
		*ret_line = (struct text){ reader->buf + reader->from, len };
		reader->from = reader->to;
		reader->line++;
		return VERIFY_READ_TORN;
	}
	close_fd(&reader->fd);
	reader->skipping = false;
	digest_end(&reader->sha, reader->digest);
	return VERIFY_READ_PART;
}

/* Returns 1 if a line is there, 0 if more is needed. */
static int cut_line(struct verify_reader *reader, struct text *ret_line)
{
	const char *from = reader->buf + reader->from;
	size_t len = reader->to - reader->from;
	const char *lf = len ? memchr(from, '\n', len) : NULL;

	if (lf) {
		*ret_line = (struct text){ from, (size_t)(lf - from) };
		reader->from += ret_line->len + 1;
		return 1;
	}
	if (len > RECORD_LINE_MAX) {
		reader->skipping = true;
		reader->from = reader->to;
	}
	return 0;
}

int verify_read(struct verify_reader *reader, struct text *ret_line)
{
	ssize_t n;

	if (reader->fd < 0) {
		if (reader->part == reader->parts)
			return VERIFY_READ_END;
		n = next_part(reader);
		if (n < 0)
			return (int)n;
	}
	while (!cut_line(reader, ret_line)) {
		n = fill(reader);
		if (n < 0)
			return (int)n;
		if (n)
			continue;
		if (!reader->skipping)
			return end_part(reader, ret_line);
		/* Too long, and without an end. */
		reader->skipping = false;
		reader->line++;
		return VERIFY_READ_LONG;
	}
	reader->line++;
	if (reader->skipping || ret_line->len > RECORD_LINE_MAX) {
		reader->skipping = false;
		return VERIFY_READ_LONG;
	}
	return VERIFY_READ_LINE;
}

bool verify_read_first(const struct verify_reader *reader, unsigned part,
		       char *buf, size_t cap, char ret_file[LOG_DIR_NAME_MAX],
		       struct text *ret_line)
{
	AUTO_FD int fd = -1;
	struct text text = { buf, 0 };
	ssize_t n;

	part_name(reader, part, ret_file);
	fd = verify_open_file(reader->dirfd, ret_file);
	n = fd < 0 ? -1 : pread(fd, buf, cap, 0);
	text.len = n < 0 ? 0 : (size_t)n;
	return text_line(&text, ret_line);
}
