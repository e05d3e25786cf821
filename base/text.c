/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c - see text.h.
 */
#include "base/text.h"

size_t text_bad(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	if ((at[0] && at[0] < 0x20) || at[0] == 0x7f)
		return 1;
	if (at[0] == 0xc2 &&
	    ((at[1] >= 0x80 && at[1] <= 0x9f) || at[1] == 0xad))
		return 2;
	if (at[0] == 0xd8 && at[1] == 0x9c)
		return 2;
	if (at[0] == 0xe2 && at[1] == 0x80 &&
	    ((at[2] >= 0x8b && at[2] <= 0x8f) ||
	     (at[2] >= 0xa8 && at[2] <= 0xae)))
		return 3;
	if (at[0] == 0xe2 && at[1] == 0x81 && at[2] >= 0xa0 && at[2] <= 0xaf)
		return 3;
	if (at[0] == 0xef && at[1] == 0xbb && at[2] == 0xbf)
		return 3;
	/* Tags, U+E0000 to U+E007F. */
	if (at[0] == 0xf3 && at[1] == 0xa0 &&
	    (at[2] == 0x80 || at[2] == 0x81) && at[3])
		return 4;
	return 0;
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
	char *to = text;

	for (const char *at = text; *at;) {
		size_t bad = text_bad(at);

		*to++ = bad ? '?' : *at;
		at += bad ? bad : 1;
	}
	to -= cut_off((const unsigned char *)text, (size_t)(to - text));
	*to = '\0';
}
