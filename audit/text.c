/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c - the lines that signed texts are made of.
 */
#include "audit/text.h"

#include <errno.h>
#include <string.h>

#include "audit/base64.h"
#include "base/decimal.h"

bool text_line(struct text *text, struct text *ret_line)
{
	const char *lf = text->len ? memchr(text->at, '\n', text->len) : NULL;

	if (!lf)
		return false;
	ret_line->at = text->at;
	ret_line->len = (size_t)(lf - text->at);
	text->at = lf + 1;
	text->len -= ret_line->len + 1;
	return true;
}

bool text_skip(struct text *text, const char *prefix)
{
	size_t len = strlen(prefix);

	if (text->len < len || memcmp(text->at, prefix, len) != 0)
		return false;
	text->at += len;
	text->len -= len;
	return true;
}

bool text_is(struct text text, const char *s)
{
	return text_skip(&text, s) && !text.len;
}

bool text_decimal(struct text text, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!text.len || (text.at[0] == '0' && text.len > 1))
		return false;
	for (size_t i = 0; i < text.len; i++) {
		unsigned digit = (unsigned)text.at[i] - '0';

		if (digit > 9 || value > max / 10 || value * 10 > max - digit)
			return false;
		value = value * 10 + digit;
	}
	*ret_value = value;
	return true;
}

/* Bytes of the one character at @s; 0 if it is not UTF-8. */
static size_t utf8_len(const uint8_t *s, size_t left)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	uint32_t code = s[0] & (n == 1 ? 0x7fu : 0x7fu >> n);

	if ((s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3fu);
	}
	if (code < least[n] || code > 0x10ffff ||
	    (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return n;
}

bool text_is_plain(struct text text)
{
	const uint8_t *s = (const uint8_t *)text.at;

	for (size_t i = 0, n; i < text.len; i += n) {
		n = utf8_len(s + i, text.len - i);
		if (!n || (s[i] < 0x20 && s[i] != '\n'))
			return false;
	}
	return true;
}

void out_put(struct out *out, const void *data, size_t len)
{
	if (out->full || len > out->cap - out->len) {
		out->full = true;
		return;
	}
	if (len)
		memcpy(out->buf + out->len, data, len);
	out->len += len;
}

void out_decimal(struct out *out, uint64_t value)
{
	char digits[DECIMAL_MAX], *text = decimal_format(value, digits);

	out_put(out, text, (size_t)(digits + DECIMAL_MAX - 1 - text));
}

void out_base64(struct out *out, const void *data, size_t len)
{
	if (out->full || BASE64_LEN(len) > out->cap - out->len) {
		out->full = true;
		return;
	}
	base64_encode(data, len, out->buf + out->len);
	out->len += BASE64_LEN(len);
}

int out_end(struct out *out, size_t *ret_len)
{
	out_put(out, "", 1);
	if (out->full)
		return -ENOBUFS;
	*ret_len = out->len - 1;
	return 0;
}
