/* SPDX-License-Identifier: Apache-2.0
 *
 * words.c - see words.h. The guess is the nearest word by edit distance, where
 * swapping two neighbours counts as one edit, as typing errors do.
 */
#include "policy/words.h"

#include <stdio.h>
#include <string.h>

#define GUESS_MAX 24 /* longer words are not compared */

char *word_show(const char *text, size_t len, char *buf)
{
	size_t n = 0;

	buf[n++] = '\'';
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		/* Room for "\xNN" and "...'" and NUL. */
		if (n + 4 + 5 > WORD_SHOWN_MAX) {
			memcpy(buf + n, "...", 3);
			n += 3;
			break;
		}
		if (c >= 0x20 && c < 0x7f)
			buf[n++] = (char)c;
		else
			n += (size_t)snprintf(buf + n, 5, "\\x%02x", c);
	}
	buf[n++] = '\'';
	buf[n] = '\0';
	return buf;
}

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
	size_t d[GUESS_MAX + 1][GUESS_MAX + 1];

	for (size_t i = 0; i <= n; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		for (size_t j = 1; j <= m; j++) {
			d[i][j] =
				min3(d[i - 1][j] + 1, d[i][j - 1] + 1,
				     d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && d[i - 2][j - 2] < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	}
	return d[n][m];
}

const char *word_guess(const char *word, const char *const list[], size_t n)
{
	size_t len = strlen(word), best = 3;
	const char *guess = NULL;

	if (len < 2 || len > GUESS_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t other = strlen(list[i]), edits;

		if (other > GUESS_MAX)
			continue;
		edits = distance(word, len, list[i], other);
		/* Of a short word at least half has to be right. */
		if (edits < best && edits * 2 <= len) {
			best = edits;
			guess = list[i];
		}
	}
	return guess;
}

char *word_join(const char *const list[], size_t n, char *buf, size_t cap)
{
	static const char more[] = ", ...";
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		size_t room = i + 1 < n ? sizeof(more) : 1;
		size_t len = strlen(list[i]) + (i ? 2 : 0);

		if (at + len + room > cap) {
			snprintf(buf + at, cap - at, "%s", i ? more : "...");
			break;
		}
		at += (size_t)snprintf(buf + at, cap - at, "%s%s",
				       i ? ", " : "", list[i]);
	}
	return buf;
}
