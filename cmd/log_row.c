/* SPDX-License-Identifier: Apache-2.0
 *
 * log_row.c - the width of each column is fixed, as a log is shown while it is
 * read. A cell that is too long for a terminal is cut, and has ".." there: a
 * host and a rule in front, where they tell least.
 */
#include "cmd/log_row.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"

#define CELL_MAX  700
#define WHERE_MAX 44 /* where there is room for more, details have it */

struct row {
	const struct log_layout *layout;
	char *buf;
	size_t len;	/* bytes */
	size_t columns; /* of them shown */
};

static const unsigned wide_columns[LOG_COLUMN_COUNT] = {
	[LOG_TIME] = 29,    [LOG_VERDICT] = 8, [LOG_WHAT] = 8,
	[LOG_REASON] = 14,  [LOG_DOOR] = 11,   [LOG_WHERE] = 30,
	[LOG_RULE] = 20,    [LOG_UP] = 7,      [LOG_DOWN] = 7,
	[LOG_DURATION] = 8, [LOG_DETAIL] = 1,
};

/* The most important first. Bytes out are nothing without those in. */
static const struct {
	enum log_column column;
	unsigned width, room;
} narrow_columns[] = {
	{ LOG_VERDICT, 8, 8 },	{ LOG_WHERE, 30, 30 }, { LOG_REASON, 14, 14 },
	{ LOG_TIME, 14, 14 },	{ LOG_WHAT, 8, 8 },    { LOG_RULE, 18, 18 },
	{ LOG_DETAIL, 12, 12 }, { LOG_UP, 6, 13 },     { LOG_DOWN, 6, 6 },
	{ LOG_DURATION, 6, 6 }, { LOG_DOOR, 11, 11 },
};

/* What is left is for the host and the detail. */
static void widen(struct log_layout *layout, unsigned left)
{
	unsigned *where = &layout->width[LOG_WHERE];

	if (layout->width[LOG_DETAIL])
		left /= 3;
	if (*where)
		*where += left < WHERE_MAX - *where ? left : WHERE_MAX - *where;
}

struct log_layout log_layout_of(unsigned columns, bool colour)
{
	struct log_layout layout = { .row = columns, .colour = colour };
	unsigned used = 0;

	if (!columns) {
		memcpy(layout.width, wide_columns, sizeof(wide_columns));
		return layout;
	}
	for (size_t i = 0; i < ARRAY_SIZE(narrow_columns); i++) {
		unsigned blank = used ? 1 : 0;

		if (used && used + blank + narrow_columns[i].room > columns)
			break;
		layout.width[narrow_columns[i].column] =
			narrow_columns[i].width;
		used += blank + narrow_columns[i].width;
	}
	if (columns > used)
		widen(&layout, columns - used);
	return layout;
}

/* --- cells --------------------------------------------------------------- */

static const char *time_cell(const struct log_record *record, bool wide,
			     char buf[CELL_MAX])
{
	time_t at = (time_t)(record->seen.time_ms / 1000);
	unsigned ms = (unsigned)(record->seen.time_ms % 1000);
	char zone[8] = "";
	struct tm tm;
	size_t len;

	if (!localtime_r(&at, &tm))
		return "-";
	if (!wide) {
		strftime(buf, CELL_MAX, "%m-%d %H:%M:%S", &tm);
		return buf;
	}
	len = strftime(buf, CELL_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	/* +0100 is +01:00 in RFC 3339. */
	snprintf(buf + len, CELL_MAX - len, ".%03u%.3s:%.2s", ms, zone,
		 strlen(zone) == 5 ? zone + 3 : "00");
	return buf;
}

static const char *what_cell(const struct log_record *record)
{
	static const char *const words[EVENT_KIND_COUNT] = {
		[EVENT_SESSION_OPEN] = "session",
		[EVENT_SESSION_CLOSE] = "end",
		[EVENT_DNS_QUERY] = "query",
		[EVENT_DNS_ANSWER] = "answer",
		[EVENT_FLOW_OPEN] = "open",
		[EVENT_FLOW_DIAL] = "dial",
		[EVENT_FLOW_PROGRESS] = "progress",
		[EVENT_FLOW_CLOSE] = "close",
		[EVENT_HTTP_REQUEST] = "http",
		[EVENT_PACKET] = "packet",
		[EVENT_FINDING] = "finding",
		[EVENT_POLICY] = "policy",
		[EVENT_RULESET] = "ruleset",
		[EVENT_EXEC] = "exec",
		[EVENT_ATTACKS] = "attacks",
	};

	static const char *const host_words[HOSTLOG_EVENT_COUNT] = {
		[HOSTLOG_OPENED] = "opened",
		[HOSTLOG_RECEIPT] = "receipt",
		[HOSTLOG_ENDED] = "ended",
	};

	return record->host ? host_words[record->host]
			    : words[record->seen.kind];
}

/* A finding without a reason of its own has the first of the table. */
static const char *reason_cell(const struct log_record *record)
{
	const struct verdict *verdict = &record->seen.verdict;

	if (!record->judged ||
	    (record->kind == LOG_KIND_FINDING && verdict->allow))
		return "";
	if (verdict->reason == REASON_OBSERVE)
		return reason_word(verdict->observed);
	return reason_word(verdict->reason);
}

static const char *bytes_cell(uint64_t bytes, bool exact, char buf[CELL_MAX])
{
	static const char units[] = "kMGTPE";
	double value = (double)bytes;
	size_t unit = 0;

	if (exact || bytes < 100000) {
		snprintf(buf, CELL_MAX, "%llu", (unsigned long long)bytes);
		return buf;
	}
	for (value /= 1000; value >= 999.95 && units[unit + 1]; unit++)
		value /= 1000;
	snprintf(buf, CELL_MAX, "%.1f%c", value, units[unit]);
	return buf;
}

static const char *duration_cell(uint64_t ms, char buf[CELL_MAX])
{
	unsigned long long s = ms / 1000;

	if (ms < 1000)
		snprintf(buf, CELL_MAX, "%llums", (unsigned long long)ms);
	else if (s < 60)
		snprintf(buf, CELL_MAX, "%llu.%llus", s,
			 (unsigned long long)ms % 1000 / 100);
	else if (s < 3600)
		snprintf(buf, CELL_MAX, "%llum%02llus", s / 60, s % 60);
	else
		snprintf(buf, CELL_MAX, "%lluh%02llum", s / 3600,
			 s % 3600 / 60);
	return buf;
}

static const char *cell(const struct log_record *record, enum log_column column,
			bool wide, char buf[CELL_MAX])
{
	bool traffic = record->has_traffic;

	switch (column) {
	case LOG_TIME:
		return time_cell(record, wide, buf);
	case LOG_VERDICT:
		return log_verdict_word(record->verdict);
	case LOG_WHAT:
		return what_cell(record);
	case LOG_REASON:
		return reason_cell(record);
	case LOG_DOOR:
		return record->through ? door_word(record->seen.door) : "";
	case LOG_WHERE:
		return record->where;
	case LOG_RULE:
		return record->rule;
	case LOG_UP:
		return traffic ? bytes_cell(record->up, wide, buf) : "";
	case LOG_DOWN:
		return traffic ? bytes_cell(record->down, wide, buf) : "";
	case LOG_DURATION:
		return traffic ? duration_cell(record->duration_ms, buf) : "";
	default:
		return record->detail;
	}
}

/* --- the row ------------------------------------------------------------- */

static void put(struct row *row, const char *s, size_t len)
{
	if (len > LOG_ROW_MAX - 16 - row->len)
		len = LOG_ROW_MAX - 16 - row->len;
	memcpy(row->buf + row->len, s, len);
	row->len += len;
	row->columns += len;
}

static void put_colour(struct row *row, const char *code)
{
	size_t columns = row->columns;

	if (row->layout->colour)
		put(row, code, strlen(code));
	row->columns = columns;
}

static const char *colour_of(const struct log_record *record)
{
	static const char *const codes[LOG_VERDICT_COUNT] = {
		[LOG_ALLOWED] = "\033[32m", [LOG_REFUSED] = "\033[31m",
		[LOG_FAILED] = "\033[33m",  [LOG_OBSERVED] = "\033[33m",
		[LOG_CUT] = "\033[31m",	    [LOG_EVENT] = "\033[36m",
	};

	return record->kind == LOG_KIND_FINDING ? "\033[1;31m"
						: codes[record->verdict];
}

/* At most @width characters of @s, with ".." for what is missing. */
static void put_cut(struct row *row, const char *s, size_t width, bool in_front)
{
	size_t len = strlen(s);

	if (len <= width) {
		put(row, s, len);
	} else if (width < 4) {
		put(row, s, width);
	} else if (in_front) {
		put(row, "..", 2);
		put(row, s + len - (width - 2), width - 2);
	} else {
		put(row, s, width - 2);
		put(row, "..", 2);
	}
}

static void put_cell(struct row *row, const char *s, enum log_column column)
{
	size_t width = row->layout->width[column], len = strlen(s);
	bool right = column == LOG_UP || column == LOG_DOWN ||
		     column == LOG_DURATION;

	for (size_t i = len; right && i < width; i++)
		put(row, " ", 1);
	if (row->layout->row)
		put_cut(row, s, width,
			column == LOG_WHERE || column == LOG_RULE);
	else
		put(row, s, len);
	for (size_t i = len; !right && i < width; i++)
		put(row, " ", 1);
}

/* What is left of the row. */
static void put_rest(struct row *row, const char *s)
{
	if (!row->layout->row)
		put(row, s, strlen(s));
	else if (row->columns < row->layout->row)
		put_cut(row, s, row->layout->row - row->columns, false);
}

size_t log_row(const struct log_layout *layout, const struct log_record *record,
	       char buf[LOG_ROW_MAX])
{
	struct row row = { .layout = layout, .buf = buf };
	bool wide = !layout->row;
	char text[CELL_MAX];

	for (int i = 0; i < LOG_COLUMN_COUNT; i++) {
		enum log_column column = (enum log_column)i;
		const char *s = cell(record, column, wide, text);

		if (!layout->width[i])
			continue;
		if (row.len)
			put(&row, " ", 1);
		/* An event goes nowhere by no rule: its text has that room. */
		if (column == LOG_DETAIL ||
		    (!wide && column == LOG_WHERE && !*record->where &&
		     record->verdict == LOG_EVENT)) {
			put_rest(&row,
				 column == LOG_DETAIL ? s : record->detail);
			break;
		}
		if (column == LOG_VERDICT)
			put_colour(&row, colour_of(record));
		put_cell(&row, *s ? s : "-", column);
		if (column == LOG_VERDICT)
			put_colour(&row, "\033[0m");
	}
	while (row.len && buf[row.len - 1] == ' ')
		row.len--;
	buf[row.len++] = '\n';
	return row.len;
}
