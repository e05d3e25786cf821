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

int learn_read(int fd, struct learn_table *table)
{
	AUTO_FREE struct reader *reader = calloc(1, sizeof(*reader));
	ssize_t n;
	int r = 0;

	if (!reader)
		return -ENOMEM;
	reader->table = table;
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
	/* The last line of a session that was killed may be cut. */
	if (r == 0 && reader->len)
		r = take_line(reader, reader->buf, reader->len);
	return r;
}
