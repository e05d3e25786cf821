/* SPDX-License-Identifier: Apache-2.0
 *
 * json.c - writes one JSON text into a caller's buffer, without allocation.
 *
 * The ledger writes sixty fields a record, and all of them pass through here:
 * so there is no printf, and text that needs no escape, as nearly all does, is
 * copied eight bytes at a time.
 */
#include "base/json.h"

#include <string.h>

#include "base/decimal.h"

static void put(struct json *j, const char *s, size_t len)
{
	char *to = json_reserve(j, len);

	if (to && len)
		memcpy(to, s, len);
}

static void put_char(struct json *j, char c)
{
	char *to = json_reserve(j, 1);

	if (to)
		*to = c;
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

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Is each of the eight bytes one that stands for itself? May say no of some
 * that are, if one before them is not. */
static inline bool all_plain(uint64_t eight)
{
	uint64_t quote = eight ^ EACH('"'), slash = eight ^ EACH('\\');
	uint64_t odd = eight | (eight + EACH(1)); /* from 0x7f up */

	odd |= (eight - EACH(0x20)) & ~eight;
	odd |= (quote - EACH(1)) & ~quote;
	odd |= (slash - EACH(1)) & ~slash;
	return !(odd & EACH(0x80));
}

/* Bytes at the start of @s that stand for themselves; copied to @to. */
static inline size_t copy_plain(char *to, const char *s, size_t len)
{
	uint64_t eight;
	size_t i = 0;

	for (; len - i >= sizeof(eight); i += sizeof(eight)) {
		memcpy(&eight, s + i, sizeof(eight));
		if (!all_plain(eight))
			break;
		memcpy(to + i, &eight, sizeof(eight));
	}
	/* The last eight, of which some were copied already. */
	if (len >= sizeof(eight) && len - i < sizeof(eight)) {
		memcpy(&eight, s + len - sizeof(eight), sizeof(eight));
		if (all_plain(eight)) {
			memcpy(to + len - sizeof(eight), &eight, sizeof(eight));
			return len;
		}
	}
	for (; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
			break;
		to[i] = s[i];
	}
	return i;
}

/* The first character of @s, which is none that copy_plain() takes. Returns
 * how many bytes it has. */
static size_t put_odd(struct json *j, const char *s, size_t left)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char c = (unsigned char)*s;
	char escape[6] = {
		'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]
	};
	size_t n;

	if (c == '"' || c == '\\') {
		escape[1] = *s;
		put(j, escape, 2);
		return 1;
	}
	n = c >= 0x80 ? utf8_len((const unsigned char *)s, left) : 0;
	if (n) {
		put(j, s, n);
		return n;
	}
	put(j, escape, sizeof(escape));
	return 1;
}

static void put_escaped(struct json *j, const char *s, size_t len)
{
	while (len && !j->full) {
		size_t room = j->cap - j->len;
		size_t n =
			copy_plain(j->buf + j->len, s, len < room ? len : room);

		j->len += n;
		if (n < len)
			n += put_odd(j, s + n, len - n);
		s += n;
		len -= n;
	}
}

void json_put_string(struct json *j, const char *s, size_t len)
{
	put_char(j, '"');
	put_escaped(j, s, len);
	put_char(j, '"');
}

void json_put_uint(struct json *j, uint64_t v)
{
	char buf[DECIMAL_MAX], *text = decimal_format(v, buf);

	put(j, text, (size_t)(buf + sizeof(buf) - 1 - text));
}

void json_int(struct json *j, const char *key, int64_t v)
{
	json_begin(j, key, 0);
	if (v < 0)
		put_char(j, '-');
	json_put_uint(j, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void json_bool(struct json *j, const char *key, bool v)
{
	const char *text = v ? "true" : "false";

	json_begin(j, key, 0);
	put(j, text, strlen(text));
}
