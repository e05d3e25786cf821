/* SPDX-License-Identifier: Apache-2.0
 *
 * report_show.c - numbers as people read them. Times are UTC: who reads a
 * report need not be where the machine was.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/report_view.h"

const char *show_number(uint64_t n, char buf[CELL_MAX])
{
	char digits[24];
	size_t len, at = 0;

	snprintf(digits, sizeof(digits), "%" PRIu64, n);
	len = strlen(digits);
	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = '\0';
	return buf;
}

const char *show_bytes(uint64_t n, char buf[CELL_MAX])
{
	static const char *const units[] = { "kB", "MB", "GB", "TB", "PB" };
	double value = (double)n / 1000;
	size_t unit = 0;

	if (n < 1000) {
		snprintf(buf, CELL_MAX, "%" PRIu64 " B", n);
		return buf;
	}
	for (; value >= 999.95 && unit < 4; unit++)
		value /= 1000;
	snprintf(buf, CELL_MAX, "%.1f %s", value, units[unit]);
	return buf;
}

const char *show_time(uint64_t time_ms, char buf[CELL_MAX])
{
	time_t at = (time_t)(time_ms / 1000);
	struct tm tm;

	if (!time_ms || !gmtime_r(&at, &tm) ||
	    !strftime(buf, CELL_MAX, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(buf, CELL_MAX, "-");
	return buf;
}

const char *show_span(uint64_t first_ms, uint64_t last_ms, char buf[CELL_MAX])
{
	char first[CELL_MAX], last[CELL_MAX];
	bool same_day = strlen(show_time(first_ms, first)) > 11 &&
			strncmp(first, show_time(last_ms, last), 10) == 0;

	if (strcmp(first, last) == 0)
		snprintf(buf, CELL_MAX, "%.40s", first);
	else
		snprintf(buf, CELL_MAX, "%.40s to %.40s", first,
			 last + (same_day ? 11 : 0));
	return buf;
}

const char *show_duration(uint64_t ms, char buf[CELL_MAX])
{
	uint64_t s = ms / 1000;

	if (ms < 1000)
		snprintf(buf, CELL_MAX, "%" PRIu64 " ms", ms);
	else if (s < 60 && ms % 1000 >= 100)
		snprintf(buf, CELL_MAX, "%" PRIu64 ".%" PRIu64 " s", s,
			 ms % 1000 / 100);
	else if (s < 60)
		snprintf(buf, CELL_MAX, "%" PRIu64 " s", s);
	else if (s < 3600 && s % 60 == 0)
		snprintf(buf, CELL_MAX, "%" PRIu64 " min", s / 60);
	else if (s < 3600)
		snprintf(buf, CELL_MAX, "%" PRIu64 " min %" PRIu64 " s", s / 60,
			 s % 60);
	else if (s < 48 * 3600)
		snprintf(buf, CELL_MAX, "%" PRIu64 " h %" PRIu64 " min",
			 s / 3600, s % 3600 / 60);
	else
		snprintf(buf, CELL_MAX, "%" PRIu64 " days %" PRIu64 " h",
			 s / 86400, s % 86400 / 3600);
	return buf;
}
