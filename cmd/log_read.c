/* SPDX-License-Identifier: Apache-2.0
 *
 * log_read.c - a line that does not fit the buffer is none of ours: it is
 * passed over to its end. Without its LF a line is half a line for as long as
 * somebody may write on.
 */
#include "cmd/log_read.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BUFFER	(4 * OBSERVED_LINE_MAX)
#define WAIT_MS 100

struct log_reader {
	const struct log_sink *sink;
	uint64_t number; /* of lines so far */
	bool skipping;	 /* to the end of a line that is too long */
	size_t len;
	char buf[BUFFER];
};

static struct log_reader *reader_new(const struct log_sink *sink)
{
	struct log_reader *reader = malloc(sizeof(*reader));

	if (reader)
		memset(reader, 0, offsetof(struct log_reader, buf));
	if (reader)
		reader->sink = sink;
	return reader;
}

static void give(struct log_reader *reader, const char *line, size_t len,
		 enum log_fault fault)
{
	const struct log_sink *sink = reader->sink;

	if (fault == LOG_FINE && len > OBSERVED_LINE_MAX)
		fault = LOG_TOO_LONG;
	if (len || fault != LOG_FINE)
		sink->line(sink->arg, fault ? NULL : line, len, reader->number,
			   fault);
}

static void take_line(struct log_reader *reader, const char *line, size_t len)
{
	if (!reader->skipping) {
		reader->number++;
		give(reader, line, len, LOG_FINE);
	}
	reader->skipping = false;
}

/* All whole lines in the buffer; the rest moves to its start. */
static void take_lines(struct log_reader *reader)
{
	const char *start = reader->buf, *end;
	size_t left = reader->len;

	while ((end = memchr(start, '\n', left))) {
		take_line(reader, start, (size_t)(end - start));
		left -= (size_t)(end - start) + 1;
		start = end + 1;
	}
	if (left > OBSERVED_LINE_MAX) {
		if (!reader->skipping) {
			reader->number++;
			give(reader, NULL, left, LOG_TOO_LONG);
		}
		reader->skipping = true;
		left = 0;
	}
	memmove(reader->buf, start, left);
	reader->len = left;
}

/* Half a line that stays so: of a session that was killed, or whole but for its
 * LF. */
static void take_end(struct log_reader *reader)
{
	struct log_record record;

	if (reader->len && !reader->skipping) {
		reader->number++;
		give(reader, reader->buf, reader->len,
		     log_record_parse(reader->buf, reader->len, &record) ==
				     LOG_FINE
			     ? LOG_FINE
			     : LOG_CUT_OFF);
	}
	reader->len = 0;
	reader->skipping = false;
}

/* One piece. 1; 0: there is no more for now, or a signal came; -errno. */
static int take_piece(struct log_reader *reader, int fd)
{
	ssize_t n = read(fd, reader->buf + reader->len, BUFFER - reader->len);

	if (n < 0)
		return errno == EINTR ? 1 : -errno;
	if (n == 0)
		return 0;
	reader->len += (size_t)n;
	take_lines(reader);
	return 1;
}

int log_read(int fd, const struct log_sink *sink)
{
	AUTO_FREE struct log_reader *reader = reader_new(sink);
	int r;

	if (!reader)
		return -ENOMEM;
	while ((r = take_piece(reader, fd)) > 0)
		if (!sink->rest(sink->arg))
			return 0;
	if (r == 0) {
		take_end(reader);
		sink->rest(sink->arg);
	}
	return r;
}

/* --- one that grows ------------------------------------------------------ */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

/* What our parent has us ignore stays ignored. */
static void catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal }, old;

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (sigaction(numbers[i], NULL, &old) == 0 &&
		    old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
}

/* False if nobody reads standard output any more, or we are to end. */
static bool pause_reading(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	return !interrupted && poll(&out, 1, WAIT_MS) <= 0 && !interrupted;
}

/* Another file at @path: the rest of the one at *@fd is read, then it. 1 if it
 * was so, 0 or -errno. */
static int replace(struct log_reader *reader, const char *path, int *fd)
{
	struct stat is, was;
	off_t at = lseek(*fd, 0, SEEK_CUR);
	int r, next;

	if (fstat(*fd, &was) < 0)
		return -errno;
	if (stat(path, &is) < 0)
		return 0; /* between two */
	if (is.st_dev == was.st_dev && is.st_ino == was.st_ino) {
		if (at <= was.st_size || !S_ISREG(was.st_mode))
			return 0;
		/* Cut to less than what was read of it. */
		reader->len = 0;
		reader->skipping = false;
		return lseek(*fd, 0, SEEK_SET) < 0 ? -errno : 1;
	}
	while ((r = take_piece(reader, *fd)) > 0 && !interrupted)
		continue;
	if (r < 0)
		return r;
	next = open(path, O_RDONLY | O_CLOEXEC);
	if (next < 0)
		return errno == ENOENT ? 0 : -errno;
	take_end(reader);
	close(*fd);
	*fd = next;
	reader->number = 0;
	return 1;
}

int log_follow(const char *path, const struct log_sink *sink)
{
	AUTO_FREE struct log_reader *reader = reader_new(sink);
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = 1;

	if (!reader)
		return -ENOMEM;
	if (fd < 0)
		return -errno;
	catch_signals();
	while (r >= 0) {
		while ((r = take_piece(reader, fd)) > 0 && !interrupted)
			continue;
		if (r < 0 || !sink->rest(sink->arg) || sink->done(sink->arg) ||
		    !pause_reading())
			break;
		r = replace(reader, path, &fd);
	}
	return r < 0 ? r : 0;
}
