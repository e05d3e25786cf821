/* SPDX-License-Identifier: Apache-2.0
 *
 * report_html.h - what the page consists of; report_html() puts it together.
 */
#ifndef CMD_REPORT_HTML_H
#define CMD_REPORT_HTML_H

#include <stdio.h>

struct report;
struct report_view;
struct report_session;

/* cmd/report.css, made part of the binary. */
extern const char report_style[];

#define HTML_ROWS 100 /* of a table; the other formats have all */

/* Allowed above the line, refused below. */
void html_timeline(const struct report *report, FILE *out);
/* Hosts by bytes up. */
void html_bars(const struct report *report, FILE *out);
void html_view(const struct report *report, const struct report_view *view,
	       FILE *out);
void html_receipt(const struct report_session *session, FILE *out);
void html_by_hand(FILE *out);

/* Commands that verify the last checkpoint with OpenSSL. */
extern const char report_by_hand[];

#endif
