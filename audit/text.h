/* SPDX-License-Identifier: Apache-2.0
 *
 * text.h - the lines that signed texts are made of: reading, and writing into
 * a caller's buffer.
 *
 * Lines end with LF, nothing else. A buffer that was too small once stays
 * full, so that only the end needs a check.
 */
#ifndef AUDIT_TEXT_H
#define AUDIT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes of somebody else's, not terminated. */
struct text {
	const char *at;
	size_t len;
};

/* Takes the next line off @text, without its LF. False if there is none with
 * an LF. */
bool text_line(struct text *text, struct text *ret_line);

/* Takes @prefix off; false, and @text as it was, if it begins otherwise. */
bool text_skip(struct text *text, const char *prefix);

bool text_is(struct text text, const char *s);

/* All of @text is a decimal number up to @max, without leading zeroes. */
bool text_decimal(struct text text, uint64_t max, uint64_t *ret_value);

/* Valid UTF-8 (RFC 3629) without control characters below U+0020 other than
 * LF: what C2SP signed-note lets a note consist of. */
bool text_is_plain(struct text text);

struct out {
	char *buf;
	size_t len, cap;
	bool full;
};

void out_put(struct out *out, const void *data, size_t len);
static inline void out_text(struct out *out, const char *s)
{
	out_put(out, s, strlen(s)); /* of a literal: the compiler's */
}
void out_decimal(struct out *out, uint64_t value);
void out_base64(struct out *out, const void *data, size_t len);
/* Adds a NUL, which *@ret_len does not count. Returns 0 or -ENOBUFS. */
int out_end(struct out *out, size_t *ret_len);

#endif
