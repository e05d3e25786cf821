/* SPDX-License-Identifier: Apache-2.0
 *
 * file_path.c - names of files that files name. By the text alone: the gate
 * builds the same policy as the launcher, and has no file system.
 */
#include <string.h>

#include "policy/build.h"

bool path_is_file(const char *text)
{
	size_t len = strlen(text);

	return strchr(text, '/') ||
	       (len > 5 && strcmp(text + len - 5, ".yaml") == 0) ||
	       (len > 4 && strcmp(text + len - 4, ".yml") == 0);
}

/* Takes the last segment off; false if there is none, or it climbs itself. */
static bool climb(char *buf, size_t *len)
{
	size_t n = *len;

	if (!n || (n == 1 && buf[0] == '/'))
		return false;
	while (n && buf[n - 1] != '/')
		n--;
	if (strcmp(buf + n, "..") == 0)
		return false;
	/* "a" and "/a" become "" and "/". */
	*len = n > 1 ? n - 1 : n;
	buf[*len] = '\0';
	return true;
}

static bool append(char *buf, size_t *len, size_t cap, const char *at, size_t n)
{
	bool slash = *len && buf[*len - 1] != '/';

	if (*len + slash + n >= cap)
		return false;
	if (slash)
		buf[(*len)++] = '/';
	memcpy(buf + *len, at, n);
	*len += n;
	buf[*len] = '\0';
	return true;
}

static bool add_segments(char *buf, size_t *len, size_t cap, const char *text,
			 size_t n)
{
	const char *end = text + n;

	while (text < end) {
		const char *slash = memchr(text, '/', (size_t)(end - text));
		const char *stop = slash ? slash : end;
		size_t size = (size_t)(stop - text);

		if (size == 2 && memcmp(text, "..", 2) == 0) {
			if (buf[0] == '/' && *len == 1)
				return false;
			if (!climb(buf, len) && !append(buf, len, cap, "..", 2))
				return false;
		} else if (size && !(size == 1 && *text == '.') &&
			   !append(buf, len, cap, text, size)) {
			return false;
		}
		text = slash ? slash + 1 : end;
	}
	return true;
}

bool path_join(const char *origin, const char *name, char *buf, size_t cap)
{
	const char *slash = strrchr(origin, '/');
	size_t len = 0;

	if (cap < 2)
		return false;
	buf[0] = '\0';
	if (*name == '/' || (slash && *origin == '/')) {
		buf[len++] = '/';
		buf[len] = '\0';
	}
	if (*name != '/' && slash &&
	    !add_segments(buf, &len, cap, origin, (size_t)(slash - origin)))
		return false;
	return add_segments(buf, &len, cap, name, strlen(name)) && *buf;
}
