/* SPDX-License-Identifier: Apache-2.0
 *
 * log_text.h - text of a log as printable ASCII in a bounded buffer: whatever
 * it was, a terminal shows it and obeys nothing of it.
 */
#ifndef CMD_LOG_TEXT_H
#define CMD_LOG_TEXT_H

#include <stddef.h>

/* What does not fit is left out, and the end then is "..". */
struct log_text {
	char *buf; /* always terminated */
	size_t cap, len;
};

/* @cap is 8 or more. */
struct log_text log_text_of(char *buf, size_t cap);
/* UTF-8. Controls become \r, \n, \t or \xNN, what is beyond ASCII \u{HEX}, a
 * byte that is no UTF-8 \xNN; blanks stay. */
void log_text_put(struct log_text *text, const char *s);
/* The same without blanks: \x20. One field for awk(1). */
void log_text_word(struct log_text *text, const char *s);
/* Of ours. */
void log_text_add(struct log_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
