/* SPDX-License-Identifier: Apache-2.0
 *
 * json.c - writes one JSON text into a caller's buffer, without allocation.
 */
#include "base/json.h"

#include <stdio.h>
#include <string.h>

struct json json_of(char *buf, size_t cap)
{
	return (struct json){ .buf = buf, .cap = cap };
}

static void put(struct json *j, const char *s, size_t len)
{
	if (j->full || len > j->cap - j->len) {
		j->full = true;
		return;
	}
	memcpy(j->buf + j->len, s, len);
	j->len += len;
}

/* Bytes at @s that are one valid UTF-8 character beyond ASCII and not a C1
 * control (which terminals obey); 0 if they are not. */
static size_t utf8_len(const unsigned char *s, size_t left)
{
	uint32_t code;
	size_t n;

	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2, code = s[0] & 0x1fu;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3, code = s[0] & 0x0fu;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4, code = s[0] & 0x07u;
	else
		return 0;
	if (n > left)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3fu);
	}
	if ((n == 3 && code < 0x800) || (n == 4 && code < 0x10000) ||
	    code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ||
	    code < 0xa0)
		return 0;
	/* Line separators and text-direction overrides forge what people see.
	 */
	if ((code >= 0x2028 && code <= 0x202e) ||
	    (code >= 0x2066 && code <= 0x2069))
		return 0;
	return n;
}

static void put_escaped(struct json *j, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	char hex[8];

	for (size_t i = 0; i < len && !j->full;) {
		size_t n = 1;

		if (s[i] == '"' || s[i] == '\\') {
			put(j, "\\", 1);
		} else if (s[i] >= 0x80) {
			n = utf8_len(s + i, len - i);
		} else if (s[i] < 0x20 || s[i] == 0x7f) {
			n = 0;
		}
		if (n) {
			put(j, text + i, n);
			i += n;
		} else {
			snprintf(hex, sizeof(hex), "\\u%04x", s[i++]);
			put(j, hex, 6);
		}
	}
}

static void begin(struct json *j, const char *key)
{
	if (j->comma)
		put(j, ",", 1);
	j->comma = true;
	if (key) {
		put(j, "\"", 1);
		put(j, key, strlen(key));
		put(j, "\":", 2);
	}
}

void json_open(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	put(j, &bracket, 1);
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	put(j, &bracket, 1);
	j->comma = true;
}

void json_bytes(struct json *j, const char *key, const char *s, size_t len)
{
	begin(j, key);
	put(j, "\"", 1);
	put_escaped(j, s, len);
	put(j, "\"", 1);
}

void json_text(struct json *j, const char *key, const char *s)
{
	if (s && *s)
		json_bytes(j, key, s, strlen(s));
}

void json_uint(struct json *j, const char *key, uint64_t v)
{
	char text[24];
	int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)v);

	begin(j, key);
	put(j, text, (size_t)len);
}

void json_int(struct json *j, const char *key, int64_t v)
{
	char text[24];
	int len = snprintf(text, sizeof(text), "%lld", (long long)v);

	begin(j, key);
	put(j, text, (size_t)len);
}

void json_bool(struct json *j, const char *key, bool v)
{
	begin(j, key);
	put(j, v ? "true" : "false", v ? 4 : 5);
}
