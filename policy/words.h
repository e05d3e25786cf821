/* SPDX-License-Identifier: Apache-2.0
 *
 * words.h - texts for error messages: what was written, what may be meant.
 */
#ifndef POLICY_WORDS_H
#define POLICY_WORDS_H

#include <stddef.h>

#define WORD_SHOWN_MAX 72

/* @text in quotes, cut when long; what is not printable ASCII becomes \xNN.
 * @buf holds WORD_SHOWN_MAX bytes; returns it. */
char *word_show(const char *text, size_t len, char *buf);

/* The word of @list that @word was probably meant to be, or NULL. */
const char *word_guess(const char *word, const char *const list[], size_t n);

/* "a, b, c", or "a, b, ..." where @cap is too small for all. Returns @buf,
 * always terminated. */
char *word_join(const char *const list[], size_t n, char *buf, size_t cap);

#endif
