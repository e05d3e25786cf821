/* SPDX-License-Identifier: Apache-2.0
 *
 * path.c - see path.h.
 *
 * A rule for a path is only as good as our idea of what the server makes of it.
 * What some servers decode twice, take for a separator or cut off is not
 * matched at all: it is refused.
 */
#include "policy/path.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool segment_is(const char *at, size_t len, const char *text)
{
	return len == strlen(text) && memcmp(at, text, len) == 0;
}

static const char *segment_fault(const char *at, size_t len, bool last)
{
	if (!len)
		return last ? NULL : "a segment is empty";
	if (segment_is(at, len, "**"))
		return last ? NULL : "'**' is the last segment or none";
	if (segment_is(at, len, "*"))
		return NULL;
	if (memchr(at, '*', len))
		return "'*' stands for a whole segment";
	if (segment_is(at, len, ".") || segment_is(at, len, ".."))
		return "'.' and '..' never reach a server";
	for (size_t i = 0; i < len; i++)
		if (at[i] <= ' ' || at[i] >= 0x7f ||
		    strchr("?#%;\\\"<>", at[i]))
			return "it is a plain path: no query, no '%', ';', "
			       "'\\', blanks or other than ASCII";
	return NULL;
}

const char *path_pattern_fault(const char *pattern)
{
	const char *at = pattern;

	if (*at != '/')
		return "a path starts with '/'";
	if (strlen(pattern) > 2048)
		return "it is longer than 2,048 bytes";
	for (;;) {
		const char *end = strchrnul(++at, '/');
		const char *fault =
			segment_fault(at, (size_t)(end - at), !*end);

		if (fault || !*end)
			return fault;
		at = end;
	}
}

/* A character in more bytes of UTF-8 than it needs: "%c0%af" is a '/' to
 * those who decode it all the same. */
static bool overlong(const char *at, size_t len)
{
	static const char *const lead[] = { "%c0", "%c1" };
	static const char *const more[] = { "%e0%8", "%e0%9", "%f0%8" };

	for (size_t i = 0; i < sizeof(lead) / sizeof(lead[0]); i++)
		if (strncasecmp(at, lead[i], 3) == 0)
			return true;
	for (size_t i = 0; len >= 5 && i < sizeof(more) / sizeof(more[0]); i++)
		if (strncasecmp(at, more[i], 5) == 0)
			return true;
	return false;
}

static bool bad_escape(const char *at, size_t len)
{
	static const char *const bad[] = { "%2f", "%5c", "%25", "%3b", "%00" };

	if (len < 3 || !isxdigit((unsigned char)at[1]) ||
	    !isxdigit((unsigned char)at[2]))
		return true;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (strncasecmp(at, bad[i], 3) == 0)
			return true;
	return overlong(at, len);
}

bool path_ambiguous(const char *path, size_t len)
{
	if (!len || path[0] != '/')
		return true;
	for (size_t i = 0; i < len; i++) {
		if (path[i] == ';' || path[i] == '\\' ||
		    (path[i] == '%' && bad_escape(path + i, len - i)) ||
		    (path[i] == '/' && i + 1 < len && path[i + 1] == '/'))
			return true;
	}
	return false;
}

bool path_matches(const char *pattern, const char *path, size_t len)
{
	const char *end = path + len;

	/* Both stand at a '/'. */
	while (*pattern == '/' && path < end && *path == '/') {
		const char *want = pattern + 1, *have = ++path;

		pattern = strchrnul(want, '/');
		while (path < end && *path != '/')
			path++;
		size_t wants = (size_t)(pattern - want);
		size_t has = (size_t)(path - have);

		if (wants == 2 && want[0] == '*')
			return true;
		if (wants == 1 && want[0] == '*') {
			if (!has)
				return false;
		} else if (wants != has || memcmp(want, have, has) != 0) {
			return false;
		}
	}
	return !*pattern && path == end;
}
