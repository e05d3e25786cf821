/* SPDX-License-Identifier: Apache-2.0
 *
 * report_view.h - the tables of a report, the same in each document: what they
 * are called, their columns and the text of a cell, not yet escaped.
 */
#ifndef CMD_REPORT_VIEW_H
#define CMD_REPORT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct report;

#define CELL_MAX 2048

enum cell_form {
	CELL_TEXT,
	CELL_NUMBER, /* aligned to the right */
	CELL_NAME,   /* of a host, a file, a digest: in a fixed pitch */
	CELL_WORD,   /* the same, and never broken */
};

struct report_column {
	const char *title;
	enum cell_form form;
	void (*cell)(const struct report *report, size_t row,
		     char buf[CELL_MAX]);
};

struct report_view {
	const char *id, *title;
	const char *about; /* what it shows, in a sentence or two */
	const char *empty; /* in place of a table without rows */
	const struct report_column *column;
	size_t columns;
	size_t (*rows)(const struct report *report);
	/* How many things have no row of their own; NULL: all have. */
	uint64_t (*left_out)(const struct report *report);
	/* Charts in front of the table in HTML; NULL: none. */
	void (*chart)(const struct report *report, FILE *out);
};

extern const struct report_view *const report_views[];
extern const size_t report_view_count;

/* "1,234", "1.2 MB", "2026-11-21 05:21:37", "3 min 20 s". Return @buf. */
const char *show_number(uint64_t n, char buf[CELL_MAX]);
const char *show_bytes(uint64_t n, char buf[CELL_MAX]);
const char *show_time(uint64_t time_ms, char buf[CELL_MAX]);
/* From first to last; the day only once. */
const char *show_span(uint64_t first_ms, uint64_t last_ms, char buf[CELL_MAX]);
const char *show_duration(uint64_t ms, char buf[CELL_MAX]);

#endif
