/* SPDX-License-Identifier: Apache-2.0
 *
 * log_row.h - a record as one row of aligned columns.
 */
#ifndef CMD_LOG_ROW_H
#define CMD_LOG_ROW_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/log_record.h"

#define LOG_ROW_MAX 8192

/* In the order of a row. */
enum log_column {
	LOG_TIME,    /* local; with date, milliseconds and zone if wide */
	LOG_VERDICT, /* allowed, refused, ... */
	LOG_WHAT,    /* query, answer, open, dial, ... */
	LOG_REASON,  /* with observed, why it would be refused */
	LOG_DOOR,
	LOG_WHERE,
	LOG_RULE,
	LOG_UP, /* bytes out of the sandbox */
	LOG_DOWN,
	LOG_DURATION,
	LOG_DETAIL, /* as long as it is */
	LOG_COLUMN_COUNT
};

struct log_layout {
	unsigned width[LOG_COLUMN_COUNT]; /* 0: the column is left out */
	unsigned row;			  /* 0: any, and nothing is cut */
	bool colour;
};

/* For rows of up to @columns characters: what has no room is left out, the
 * least important columns first. 0: as wide as need be; there each column but
 * the last is one word, "-" where there is nothing. */
struct log_layout log_layout_of(unsigned columns, bool colour);

/* The row with its LF; returns its length. */
size_t log_row(const struct log_layout *layout, const struct log_record *record,
	       char buf[LOG_ROW_MAX]);

#endif
