/* SPDX-License-Identifier: Apache-2.0
 *
 * report_words.h - what a session comes to in a word and in a sentence, and the
 * four documents about all of them.
 */
#ifndef CMD_REPORT_WORDS_H
#define CMD_REPORT_WORDS_H

#include <stddef.h>
#include <stdio.h>

struct report;
struct report_session;

/* One line on what the boundary was and whether it can be proved that it held.
 * Returns @buf. */
const char *report_sentence(const struct report_session *session, char *buf,
			    size_t cap);
enum report_mark { REPORT_HELD, REPORT_NOT_PROVED, REPORT_BROKEN };
enum report_mark report_mark(const struct report_session *session);
const char *report_mark_word(enum report_mark mark);

void report_html(const struct report *report, FILE *out);
void report_md(const struct report *report, FILE *out);
void report_json(const struct report *report, FILE *out);
void report_csv(const struct report *report, FILE *out);

#endif
