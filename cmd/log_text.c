/* SPDX-License-Identifier: Apache-2.0
 *
 * log_text.c - nothing but ASCII: only then a column is as wide as its bytes,
 * and no letter looks like another.
 */
#include "cmd/log_text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct log_text log_text_of(char *buf, size_t cap)
{
	*buf = '\0';
	return (struct log_text){ .buf = buf, .cap = cap };
}

/* All of @s or nothing; false if it did not fit, now or before. */
static bool append(struct log_text *text, const char *s, size_t len)
{
	if (text->len == text->cap)
		return false;
	if (len >= text->cap - text->len) {
		/* Full from here on. */
		if (text->len > text->cap - 3)
			text->len = text->cap - 3;
		memcpy(text->buf + text->len, "..", 3);
		text->len = text->cap;
		return false;
	}
	memcpy(text->buf + text->len, s, len);
	text->len += len;
	text->buf[text->len] = '\0';
	return true;
}

/* Bytes of the character at @s, 0 if it is none; a text that ends within it has
 * its NUL there. */
static size_t decode(const unsigned char *s, uint32_t *ret_code)
{
	size_t n = s[0] < 0xc2	 ? 0
		   : s[0] < 0xe0 ? 2
		   : s[0] < 0xf0 ? 3
		   : s[0] < 0xf5 ? 4
				 : 0;
	uint32_t code = n ? s[0] & (0xffu >> (n + 1)) : 0;

	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3fu);
	}
	*ret_code = code;
	return n;
}

/* One character into @buf as it is shown; returns its bytes in @s. */
static size_t escape(const unsigned char *s, bool blanks, char buf[16])
{
	uint32_t code;
	size_t n;

	if (*s > 0x20 && *s < 0x7f) {
		snprintf(buf, 16, "%c", *s);
		return 1;
	}
	if (*s == ' ' && blanks)
		snprintf(buf, 16, " ");
	else if (*s == '\n')
		snprintf(buf, 16, "\\n");
	else if (*s == '\r')
		snprintf(buf, 16, "\\r");
	else if (*s == '\t')
		snprintf(buf, 16, "\\t");
	else if (*s >= 0x80 && (n = decode(s, &code)) > 0) {
		snprintf(buf, 16, "\\u{%x}", (unsigned)code);
		return n;
	} else {
		snprintf(buf, 16, "\\x%02x", *s);
	}
	return 1;
}

static void put(struct log_text *text, const char *s, bool blanks)
{
	char shown[16];

	while (*s) {
		s += escape((const unsigned char *)s, blanks, shown);
		if (!append(text, shown, strlen(shown)))
			return;
	}
}

void log_text_put(struct log_text *text, const char *s)
{
	put(text, s, true);
}

void log_text_word(struct log_text *text, const char *s)
{
	put(text, s, false);
}

void log_text_add(struct log_text *text, const char *format, ...)
{
	char buf[256];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(buf, sizeof(buf), format, ap);
	va_end(ap);
	if (n > 0)
		append(text, buf, strlen(buf));
}
