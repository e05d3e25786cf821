/* SPDX-License-Identifier: Apache-2.0
 *
 * log_tail.h - the last rows of what is shown, in bounded memory.
 */
#ifndef CMD_LOG_TAIL_H
#define CMD_LOG_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/queue.h>

#define LOG_TAIL_BYTES (16u << 20)

struct log_tail_row;

struct log_tail {
	STAILQ_HEAD(, log_tail_row) rows;
	uint64_t wanted; /* rows */
	uint64_t count;
	size_t bytes;
	bool short_of; /* LOG_TAIL_BYTES are less than the wanted rows */
};

void log_tail_init(struct log_tail *tail, uint64_t wanted);
/* Keeps a copy of the row, and forgets the oldest. 0 or -ENOMEM. */
int log_tail_add(struct log_tail *tail, const char *row, size_t len);
/* Writes all rows to @out, and forgets them. */
void log_tail_flush(struct log_tail *tail, FILE *out);

#endif
