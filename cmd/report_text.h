/* SPDX-License-Identifier: Apache-2.0
 *
 * report_text.h - text of others in a document: it is read, never obeyed.
 *
 * What has no shape of its own, turns the direction of writing or is no UTF-8
 * is shown as \u202e or \xff, in each format, and then what the format gives a
 * meaning is escaped its way.
 */
#ifndef CMD_REPORT_TEXT_H
#define CMD_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define VISIBLE_MAX 16

/* One character of @text, which is not empty, as it is shown. Returns its
 * bytes in @text; *@ret_bad: it is shown as an escape. */
size_t text_visible(const char *text, char ret_shown[VISIBLE_MAX],
		    bool *ret_bad);

/* Between tags or in a quoted attribute of XHTML. */
void text_html(FILE *out, const char *text);
/* The same, and escapes are marked up, for between tags. */
void text_html_marked(FILE *out, const char *text);
/* In a paragraph or a cell of GitHub's Markdown: no markup, no link. */
void text_md(FILE *out, const char *text);
/* A quoted cell of RFC 4180 that no spreadsheet takes for a formula. */
void text_csv(FILE *out, const char *text);

#endif
