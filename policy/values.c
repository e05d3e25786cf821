/* SPDX-License-Identifier: Apache-2.0
 *
 * values.c - see values.h.
 */
#include "policy/values.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"

#define DURATION_MAX_S (365u * 86400)
#define SIZE_TEXT                                                    \
	"it is a number of bytes, or one with kB, MB, GB, KiB, MiB " \
	"or GiB: 10 MB"
#define TIME_TEXT                                              \
	"it is a date like 2027-01-01, or a time in UTC like " \
	"2027-01-01T00:00:00Z"

static const struct {
	const char *word;
	uint64_t bytes;
} units[] = {
	{ "", 1 },
	{ "B", 1 },
	{ "kB", 1000 },
	{ "MB", 1000000 },
	{ "GB", 1000000000 },
	{ "TB", 1000000000000 },
	{ "KiB", 1ull << 10 },
	{ "MiB", 1ull << 20 },
	{ "GiB", 1ull << 30 },
	{ "TiB", 1ull << 40 },
};

/* At most 15 digits, so nothing overflows. */
static const char *digits(const char *at, uint64_t *ret)
{
	uint64_t value = 0;
	unsigned n = 0;

	for (; *at >= '0' && *at <= '9'; at++, n++) {
		if (n == 15)
			return NULL;
		value = value * 10 + (uint64_t)(*at - '0');
	}
	*ret = value;
	return n ? at : NULL;
}

const char *value_size_from(const char *text, uint64_t least, const char *small,
			    uint64_t *ret_bytes)
{
	const uint64_t max = 1000000000000000;
	uint64_t value;
	const char *at = digits(text, &value);

	if (!at)
		return SIZE_TEXT;
	if (at[0] == ' ' && at[1])
		at++;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(at, units[i].word) != 0)
			continue;
		if (value > max / units[i].bytes)
			return "it is more than 1000 TB";
		if (value * units[i].bytes < least)
			return small;
		*ret_bytes = value * units[i].bytes;
		return NULL;
	}
	return SIZE_TEXT;
}

const char *value_size(const char *text, uint64_t *ret_bytes)
{
	return value_size_from(text, 1,
			       "nothing at all is no budget: leave it out, or "
			       "deny the host",
			       ret_bytes);
}

const char *value_duration(const char *text, uint32_t *ret_s)
{
	static const struct {
		const char *word;
		uint32_t s;
	} spans[] = { { "", 1 },
		      { "s", 1 },
		      { "m", 60 },
		      { "h", 3600 },
		      { "d", 86400 } };
	uint64_t value;
	const char *at = digits(text, &value);

	for (size_t i = 0; at && i < ARRAY_SIZE(spans); i++) {
		if (strcmp(at, spans[i].word) != 0)
			continue;
		if (value < 1 || value > DURATION_MAX_S / spans[i].s)
			break;
		*ret_s = (uint32_t)value * spans[i].s;
		return NULL;
	}
	return "it is a whole number of s, m, h or d, from 1s to 365d: 24h";
}

bool value_count(const char *text, unsigned max, unsigned *ret)
{
	uint64_t value;
	const char *end = digits(text, &value);

	if (!end || *end || value < 1 || value > max)
		return false;
	*ret = (unsigned)value;
	return true;
}

const char *value_amount(const char *text, uint64_t least, uint64_t *ret_bytes)
{
	static const char small[] = "it is too little for anything to run";
	char spelled[32];
	size_t n = strlen(text);
	char last = n ? text[n - 1] : '\0';

	if (last >= 'a' && last <= 'z')
		last = (char)(last - 'a' + 'A');
	/* "2 G", "2G"; not "2kB". */
	if (!last || !strchr("KMGT", last) || n > 20)
		return value_size_from(text, least, small, ret_bytes);
	snprintf(spelled, sizeof(spelled), "%.*s%ciB", (int)n - 1, text, last);
	return value_size_from(spelled, least, small, ret_bytes);
}

bool value_cpus(const char *text, unsigned *ret_milli)
{
	unsigned unit = 1000, part = 0;
	uint64_t whole;
	const char *at = digits(text, &whole);

	if (!at)
		return false;
	if (*at == '.' && at[1])
		for (at++; *at >= '0' && *at <= '9' && unit > 1; at++) {
			unit /= 10;
			part += (unsigned)(*at - '0') * unit;
		}
	if (*at || whole > 4096 || whole * 1000 + part > 4096000 ||
	    whole * 1000 + part < 10)
		return false;
	*ret_milli = (unsigned)whole * 1000 + part;
	return true;
}

/* Exactly @format, where '0' stands for a digit. */
static bool has_form(const char *text, const char *format)
{
	for (; *format; format++, text++) {
		if (*format == '0' ? *text < '0' || *text > '9'
				   : *text != *format)
			return false;
	}
	return !*text;
}

static int number(const char *at, int n)
{
	int value = 0;

	while (n--)
		value = value * 10 + (*at++ - '0');
	return value;
}

const char *value_time(const char *text, int64_t *ret_s)
{
	struct tm tm = { .tm_isdst = 0 }, given;
	bool has_time = has_form(text, "0000-00-00T00:00:00Z");

	if (!has_time && !has_form(text, "0000-00-00"))
		return TIME_TEXT;
	tm.tm_year = number(text, 4) - 1900;
	tm.tm_mon = number(text + 5, 2) - 1;
	tm.tm_mday = number(text + 8, 2);
	if (has_time) {
		tm.tm_hour = number(text + 11, 2);
		tm.tm_min = number(text + 14, 2);
		tm.tm_sec = number(text + 17, 2);
	}
	given = tm;
	time_t at = timegm(&tm);
	/* What does not exist (the 30th of February) comes back as another. */
	if (tm.tm_year != given.tm_year || tm.tm_mon != given.tm_mon ||
	    tm.tm_mday != given.tm_mday || tm.tm_hour != given.tm_hour ||
	    tm.tm_min != given.tm_min || tm.tm_sec != given.tm_sec)
		return "there is no such day or time";
	if (at <= 0)
		return "it is before 1970";
	*ret_s = at;
	return NULL;
}
