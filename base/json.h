/* SPDX-License-Identifier: Apache-2.0
 *
 * json.h - writes one JSON text into a caller's buffer, without allocation.
 *
 * Output is always valid UTF-8 and free of control characters: what is not
 * plain is written as \u00XX, byte by byte, so that hostile text can forge
 * neither a line nor a terminal escape. A full buffer sticks.
 *
 *	struct json j = json_of(buf, sizeof(buf));
 *	json_open(&j, NULL, '{');
 *	json_bytes(&j, "host", name, len);
 *	json_close(&j, '}');
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct json {
	char *buf;
	size_t len, cap;
	bool full, comma;
};

static inline struct json json_of(char *buf, size_t cap)
{
	return (struct json){ .buf = buf, .cap = cap };
}

/* Room for @len bytes, or NULL. */
static inline char *json_reserve(struct json *j, size_t len)
{
	char *at;

	/* Without room there may be no buffer either. */
	if (j->full || !j->cap || len > j->cap - j->len) {
		j->full = true;
		return NULL;
	}
	at = j->buf + j->len;
	j->len += len;
	return at;
}

/* A comma where one belongs, @key (NULL inside an array and at the top), and
 * room for a value of @len bytes, which is returned. Inline, as is all that has
 * a key: so a literal is counted, and copied, by the compiler. */
static inline char *json_begin(struct json *j, const char *key, size_t len)
{
	size_t n = key ? strlen(key) : 0;
	char *to = json_reserve(j, j->comma + (key ? n + 3 : 0) + len);

	if (!to)
		return NULL;
	if (j->comma)
		*to++ = ',';
	j->comma = true;
	if (key) {
		*to++ = '"';
		memcpy(to, key, n);
		to += n;
		*to++ = '"';
		*to++ = ':';
	}
	return to;
}

/* @bracket is '{' or '['. */
static inline void json_open(struct json *j, const char *key, char bracket)
{
	char *to = json_begin(j, key, 1);

	if (to)
		*to = bracket;
	j->comma = false;
}

static inline void json_close(struct json *j, char bracket)
{
	char *to = json_reserve(j, 1);

	if (to)
		*to = bracket;
	j->comma = true;
}

/* Values, behind what json_begin() wrote. */
void json_put_string(struct json *j, const char *s, size_t len);
void json_put_uint(struct json *j, uint64_t v);

static inline void json_bytes(struct json *j, const char *key, const char *s,
			      size_t len)
{
	json_begin(j, key, 0);
	json_put_string(j, s, len);
}

/* NUL-terminated; leaves the key out if @s is NULL or empty. */
static inline void json_text(struct json *j, const char *key, const char *s)
{
	if (s && *s)
		json_bytes(j, key, s, strlen(s));
}

/* The same, but at most @max bytes of @s. */
__attribute__((always_inline)) static inline void
json_some(struct json *j, const char *key, const char *s, size_t max)
{
	if (s && *s)
		json_bytes(j, key, s, strnlen(s, max));
}

/* Of what is ours, and needs no escape: words, digits, addresses. */
__attribute__((always_inline)) static inline void
json_word(struct json *j, const char *key, const char *s)
{
	size_t len = strlen(s);
	char *to = json_begin(j, key, len + 2);

	if (!to)
		return;
	to[0] = '"';
	memcpy(to + 1, s, len);
	to[1 + len] = '"';
}

static inline void json_uint(struct json *j, const char *key, uint64_t v)
{
	char *to;

	if (v > 9) {
		json_begin(j, key, 0);
		json_put_uint(j, v);
		return;
	}
	to = json_begin(j, key, 1);
	if (to)
		*to = (char)('0' + v);
}

void json_int(struct json *j, const char *key, int64_t v);
void json_bool(struct json *j, const char *key, bool v);

/* Members or elements as the text that they are in JSON: @s is ours. */
static inline void json_members(struct json *j, const char *s)
{
	char *to = json_begin(j, NULL, strlen(s));

	if (to)
		memcpy(to, s, strlen(s));
}

#endif
