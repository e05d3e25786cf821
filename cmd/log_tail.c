/* SPDX-License-Identifier: Apache-2.0
 *
 * log_tail.c - rows, not places in a file: standard input can't be read again.
 */
#include "cmd/log_tail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct log_tail_row {
	STAILQ_ENTRY(log_tail_row) entry;
	size_t len;
	char text[];
};

void log_tail_init(struct log_tail *tail, uint64_t wanted)
{
	*tail = (struct log_tail){ .wanted = wanted };
	STAILQ_INIT(&tail->rows);
}

static void drop_oldest(struct log_tail *tail)
{
	struct log_tail_row *row = STAILQ_FIRST(&tail->rows);

	STAILQ_REMOVE_HEAD(&tail->rows, entry);
	tail->count--;
	tail->bytes -= sizeof(*row) + row->len;
	free(row);
}

int log_tail_add(struct log_tail *tail, const char *text, size_t len)
{
	struct log_tail_row *row;

	if (!tail->wanted)
		return 0;
	row = malloc(sizeof(*row) + len);
	if (!row)
		return -ENOMEM;
	row->len = len;
	memcpy(row->text, text, len);
	STAILQ_INSERT_TAIL(&tail->rows, row, entry);
	tail->count++;
	tail->bytes += sizeof(*row) + len;
	while (tail->count > tail->wanted)
		drop_oldest(tail);
	while (tail->bytes > LOG_TAIL_BYTES && tail->count > 1) {
		tail->short_of = true;
		drop_oldest(tail);
	}
	return 0;
}

void log_tail_flush(struct log_tail *tail, FILE *out)
{
	const struct log_tail_row *row;

	STAILQ_FOREACH(row, &tail->rows, entry)
	fwrite(row->text, 1, row->len, out);
	while (!STAILQ_EMPTY(&tail->rows))
		drop_oldest(tail);
}
