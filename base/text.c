/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c - see text.h.
 */
#include "base/text.h"

#include <stdint.h>
#include <string.h>

/* The length of the character at @at, and which one it is; 0: it is none, or
 * written longer than it needs to be. */
static size_t character(const unsigned char *at, uint32_t *ret_code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = at[0] < 0x80	  ? 1
		   : at[0] < 0xc0 ? 0
		   : at[0] < 0xe0 ? 2
		   : at[0] < 0xf0 ? 3
		   : at[0] < 0xf8 ? 4
				  : 0;
	uint32_t code = n < 2 ? at[0] : at[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3fu);
	}
	if (!n || code < least[n] || code > 0x10ffff ||
	    (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return n;
}

size_t text_next(const char *text, bool *ret_bad)
{
	/* First and last: controls, soft hyphen, Arabic letter mark, what has
	 * no width or a direction, separators of lines, byte order mark, tags.
	 */
	static const uint32_t bad[][2] = {
		{ 0x1, 0x1f },	     { 0x7f, 0x9f },	 { 0xad, 0xad },
		{ 0x61c, 0x61c },    { 0x200b, 0x200f }, { 0x2028, 0x202e },
		{ 0x2060, 0x206f },  { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb },
		{ 0xe0000, 0xe007f }
	};
	uint32_t code;
	size_t n = character((const unsigned char *)text, &code);

	*ret_bad = !n;
	if (!n)
		return 1;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		*ret_bad |= code >= bad[i][0] && code <= bad[i][1];
	return n;
}

/* How many bytes at the end of @text are the start of a character. */
static size_t cut_off(const unsigned char *text, size_t len)
{
	size_t n = 0, wants;

	while (n < len && n < 3 && (text[len - 1 - n] & 0xc0) == 0x80)
		n++;
	if (n == len)
		return 0;
	wants = text[len - 1 - n] >= 0xf0   ? 3
		: text[len - 1 - n] >= 0xe0 ? 2
		: text[len - 1 - n] >= 0xc0 ? 1
					    : 0;
	return n < wants ? n + 1 : 0;
}

void text_clean(char *text)
{
	size_t len = strlen(text);
	char *to = text;

	text[len - cut_off((const unsigned char *)text, len)] = '\0';
	for (const char *at = text; *at;) {
		bool bad;
		size_t n = text_next(at, &bad);

		if (bad)
			*to++ = '?';
		else
			to = (char *)memmove(to, at, n) + n;
		at += n;
	}
	*to = '\0';
}
