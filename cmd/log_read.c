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
#include "cmd/log_parts.h"

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

/* --- several files ------------------------------------------------------- */

/* What is in the open file, until @stop. */
static int drain(struct log_reader *reader, int fd,
		 const volatile sig_atomic_t *stop)
{
	int r;

	while ((r = take_piece(reader, fd)) > 0 && !*stop)
		continue;
	return r < 0 ? r : 0;
}

static void end_part(struct log_reader *reader, const struct log_parts *parts)
{
	char name[PATH_MAX];

	take_end(reader);
	reader->sink->part(reader->sink->arg, log_parts_name(parts, name));
	reader->number = 0;
}

/* All there is for now. @onward: also in a log that took the place of this one.
 * 0 or -errno. */
static int read_parts(struct log_reader *reader, struct log_parts *parts,
		      const volatile sig_atomic_t *stop, bool onward)
{
	int r = drain(reader, parts->fd, stop);

	while (r == 0 && !*stop) {
		r = log_parts_peek(parts);
		if (r <= 0 || (parts->another_log && !onward))
			break;
		r = drain(reader, parts->fd, stop);
		if (r < 0 || *stop)
			break;
		end_part(reader, parts);
		log_parts_step(parts);
		r = drain(reader, parts->fd, stop);
	}
	return r < 0 ? r : 0;
}

int log_read_parts(const char *path, const struct log_sink *sink)
{
	static const volatile sig_atomic_t never;
	AUTO_FREE struct log_reader *reader = reader_new(sink);
	struct log_parts parts;
	int r;

	if (!reader)
		return -ENOMEM;
	r = log_parts_open(path, false, &parts);
	if (r < 0)
		return r;
	r = read_parts(reader, &parts, &never, false);
	if (r == 0 && parts.missing) {
		end_part(reader, &parts);
		r = -ENOENT;
	} else if (r == 0) {
		take_end(reader);
	}
	sink->rest(sink->arg);
	log_parts_close(&parts);
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

/* Cut to less than what was read of it: it begins anew. 1 if it was so, 0 or
 * -errno. */
static int rewind_short(struct log_reader *reader, int fd)
{
	off_t at = lseek(fd, 0, SEEK_CUR);
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || at <= st.st_size)
		return 0;
	reader->len = 0;
	reader->skipping = false;
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 1;
}

int log_follow(const char *path, bool all, const struct log_sink *sink)
{
	AUTO_FREE struct log_reader *reader = reader_new(sink);
	struct log_parts parts;
	int r;

	if (!reader)
		return -ENOMEM;
	r = log_parts_open(path, !all, &parts);
	if (r < 0)
		return r;
	catch_signals();
	do {
		r = read_parts(reader, &parts, &interrupted, true);
		if (r < 0 || !sink->rest(sink->arg) || sink->done(sink->arg) ||
		    !pause_reading())
			break;
		r = rewind_short(reader, parts.fd);
	} while (r >= 0);
	log_parts_close(&parts);
	return r < 0 ? r : 0;
}
