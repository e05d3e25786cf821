/* SPDX-License-Identifier: Apache-2.0
 *
 * learn_read.c - a log of any size through one buffer. A line that does not fit
 * is none of ours: it is passed over to its end, and counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/observed.h"
#include "base/cleanup.h"
#include "cmd/learn_table.h"
#include "cmd/log_parts.h"

#define BUFFER (16 * OBSERVED_LINE_MAX)

struct reader {
	struct learn_table *table;
	bool skipping; /* to the end of a line that is too long */
	size_t len;
	char buf[BUFFER];
};

static int take_line(struct reader *reader, const char *line, size_t len)
{
	struct observation o;

	if (reader->skipping) {
		reader->skipping = false;
		return 0;
	}
	switch (observed_parse(line, len, &o)) {
	case OBSERVED_BAD:
		reader->table->bad += len != 0;
		return 0;
	case OBSERVED_OTHER:
		reader->table->records++;
		return 0;
	case OBSERVED_OK:
		break;
	}
	reader->table->records++;
	/* What comes in needs no rule to leave. */
	if (o.door == DOOR_PUBLISHED)
		return 0;
	return learn_table_add(reader->table, &o);
}

/* All whole lines in the buffer; the rest moves to its start. */
static int take_lines(struct reader *reader)
{
	const char *start = reader->buf, *end;
	size_t left = reader->len;
	int r = 0;

	while (r == 0 && (end = memchr(start, '\n', left))) {
		r = take_line(reader, start, (size_t)(end - start));
		left -= (size_t)(end - start) + 1;
		start = end + 1;
	}
	if (left > OBSERVED_LINE_MAX) {
		reader->table->bad += !reader->skipping;
		reader->skipping = true;
		left = 0;
	}
	memmove(reader->buf, start, left);
	reader->len = left;
	return r;
}

static int drain(struct reader *reader, int fd)
{
	ssize_t n;
	int r = 0;

	while (r == 0) {
		n = read(fd, reader->buf + reader->len, BUFFER - reader->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		reader->len += (size_t)n;
		r = take_lines(reader);
	}
	return r;
}

/* The last line of a session that was killed may be cut. */
static int take_end(struct reader *reader)
{
	size_t len = reader->len;

	reader->len = 0;
	return len || reader->skipping ? take_line(reader, reader->buf, len)
				       : 0;
}

int learn_read(int fd, struct learn_table *table)
{
	AUTO_FREE struct reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader)
		return -ENOMEM;
	reader->table = table;
	r = drain(reader, fd);
	return r < 0 ? r : take_end(reader);
}

int learn_read_parts(const char *path, struct learn_table *table)
{
	AUTO_FREE struct reader *reader = calloc(1, sizeof(*reader));
	struct log_parts parts;
	int r;

	if (!reader)
		return -ENOMEM;
	reader->table = table;
	r = log_parts_open(path, false, &parts);
	if (r < 0)
		return r;
	while ((r = drain(reader, parts.fd)) == 0) {
		r = log_parts_peek(&parts);
		if (r <= 0 || parts.another_log)
			break;
		r = drain(reader, parts.fd);
		if (r == 0)
			r = take_end(reader);
		if (r < 0)
			break;
		log_parts_step(&parts);
	}
	if (r >= 0)
		r = take_end(reader);
	if (r >= 0 && parts.missing)
		r = -ENOENT;
	log_parts_close(&parts);
	return r;
}
