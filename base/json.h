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

struct json json_of(char *buf, size_t cap);

/* As those below, for a key of @n bytes. */
void json_open_n(struct json *j, const char *key, size_t n, char bracket);
void json_bytes_n(struct json *j, const char *key, size_t n, const char *s,
		  size_t len);
void json_uint_n(struct json *j, const char *key, size_t n, uint64_t v);

/* The length of a key that is a literal is the compiler's to count. */
#define JSON_KEY_LEN(key) ((key) ? strlen(key) : 0)

/* @key is NULL inside an array and at the top. @bracket is '{' or '['. */
static inline void json_open(struct json *j, const char *key, char bracket)
{
	json_open_n(j, key, JSON_KEY_LEN(key), bracket);
}

void json_close(struct json *j, char bracket);

static inline void json_bytes(struct json *j, const char *key, const char *s,
			      size_t len)
{
	json_bytes_n(j, key, JSON_KEY_LEN(key), s, len);
}

/* NUL-terminated; leaves the key out if @s is NULL or empty. */
static inline void json_text(struct json *j, const char *key, const char *s)
{
	if (s && *s)
		json_bytes(j, key, s, strlen(s));
}

static inline void json_uint(struct json *j, const char *key, uint64_t v)
{
	json_uint_n(j, key, JSON_KEY_LEN(key), v);
}

void json_int(struct json *j, const char *key, int64_t v);
void json_bool(struct json *j, const char *key, bool v);
/* Members or elements as the text that they are in JSON: @s is ours. */
void json_members(struct json *j, const char *s);

#endif
