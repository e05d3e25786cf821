/* SPDX-License-Identifier: Apache-2.0
 *
 * json.c - writes one JSON text into a caller's buffer, without allocation.
 *
 * The ledger writes sixty fields a record, and all of them pass through here:
 * so there is no printf, and text that needs no escape, as nearly all of it, is
 * copied and judged sixteen bytes at a time.
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

/* 0 if each of the eight bytes stands for itself. */
static inline uint64_t odd_of(uint64_t eight)
{
	uint64_t quote = eight ^ EACH('"'), slash = eight ^ EACH('\\');
	uint64_t odd = eight | (eight + EACH(1)); /* from 0x7f up */

	odd |= (eight - EACH(0x20)) & ~eight;
	odd |= (quote - EACH(1)) & ~quote;
	odd |= (slash - EACH(1)) & ~slash;
	return odd & EACH(0x80);
}

/* The same of four bytes, which are copied. */
static inline uint64_t copy_four(char *to, const char *s)
{
	uint32_t four;

	memcpy(&four, s, sizeof(four));
	memcpy(to, &four, sizeof(four));
	return odd_of(EACH('a') << 32 | four);
}

static inline uint64_t copy_eight(char *to, const char *s)
{
	uint64_t eight;

	memcpy(&eight, s, sizeof(eight));
	memcpy(to, &eight, sizeof(eight));
	return odd_of(eight);
}

/* Sixteen bytes, as most processors compare them at once. */
typedef int8_t sixteen __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));

/* The same of sixteen; what is from 0x80 up is below 0. */
static inline halves copy_sixteen(char *to, const char *s)
{
	sixteen v;

	memcpy(&v, s, sizeof(v));
	memcpy(to, &v, sizeof(v));
	return (halves)((v < 0x20) | (v == 0x7f) | (v == '"') | (v == '\\'));
}

/* Copies all of it, for what it is worth: does each byte stand for itself? The
 * last word overlaps the one before, so that there are few branches. */
static inline bool copy_plain(char *to, const char *s, size_t len)
{
	halves odds = { 0 };
	uint64_t odd = 0;
	size_t i = 0;

	if (len >= 16) {
		for (; i + 16 < len; i += 16)
			odds |= copy_sixteen(to + i, s + i);
		odds |= copy_sixteen(to + len - 16, s + len - 16);
		return !(odds[0] | odds[1]);
	}
	if (len >= 8)
		return !(copy_eight(to, s) |
			 copy_eight(to + len - 8, s + len - 8));
	if (len >= 4)
		return !(copy_four(to, s) |
			 copy_four(to + len - 4, s + len - 4));
	for (; i < len; i++) {
		to[i] = s[i];
		odd |= odd_of(EACH('a') << 8 | (unsigned char)s[i]);
	}
	return !odd;
}

/* How many bytes at the start of @s stand for themselves. */
static size_t plain_len(const char *s, size_t len)
{
	size_t i = 0;

	while (i < len && s[i] >= 0x20 && s[i] < 0x7f && s[i] != '"' &&
	       s[i] != '\\')
		i++;
	return i;
}

/* The first character of @s, which does not stand for itself. Returns
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

void json_put_string(struct json *j, const char *s, size_t len)
{
	char *to = json_reserve(j, 1);

	if (!to)
		return;
	*to++ = '"';
	if (len < j->cap - j->len && copy_plain(to, s, len)) {
		to[len] = '"';
		j->len += len + 1;
		return;
	}
	while (len && !j->full) {
		size_t n = plain_len(s, len);

		put(j, s, n);
		if (n < len)
			n += put_odd(j, s + n, len - n);
		s += n;
		len -= n;
	}
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
