/* SPDX-License-Identifier: Apache-2.0
 *
 * report_html.c - one file, which is XML too, so that any parser can check that
 * no text of others became markup. Its policy forbids all but its own style: no
 * script, no frame, nothing is loaded from anywhere.
 */
#include "cmd/report_html.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/report.h"
#include "cmd/report_text.h"
#include "cmd/report_view.h"
#include "cmd/report_words.h"

#define LEDES 12 /* sentences in front; beyond, the worst come first */

static void put_head(const struct report *report, FILE *out)
{
	char made[CELL_MAX], first[CELL_MAX], last[CELL_MAX];
	const char *s = report->sessions == 1 ? "" : "s";

	fputs("<!DOCTYPE html>\n"
	      "<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n"
	      "<head>\n<meta charset=\"utf-8\"/>\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\""
	      "default-src 'none'; style-src 'unsafe-inline'; "
	      "base-uri 'none'; form-action 'none'\"/>\n"
	      "<meta name=\"viewport\" content=\"width=device-width, "
	      "initial-scale=1\"/>\n"
	      "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
	      "<meta name=\"referrer\" content=\"no-referrer\"/>\n"
	      "<title>sallyport: egress report</title>\n<style>\n",
	      out);
	fputs(report_style, out);
	fputs("</style>\n</head>\n<body>\n<header>\n"
	      "<p class=\"brand\">sallyport " SALLYPORT_VERSION "</p>\n"
	      "<h1>Egress report</h1>\n",
	      out);
	fprintf(out,
		"<p class=\"span\">%zu session%s, %s to %s UTC. Made %s "
		"UTC.</p>\n</header>\n<main>\n",
		report->sessions, s, show_time(report->first_ms, first),
		show_time(report->last_ms, last),
		show_time(report->made_s * 1000, made));
}

/* --- what it comes to ---------------------------------------------------- */

static const char *mark_class(enum report_mark mark)
{
	static const char *const words[] = { [REPORT_HELD] = "held",
					     [REPORT_NOT_PROVED] = "open",
					     [REPORT_BROKEN] = "broken" };

	return words[mark];
}

static const char *mark_sign(enum report_mark mark)
{
	static const char *const signs[] = { [REPORT_HELD] = "&#10003;",
					     [REPORT_NOT_PROVED] = "?",
					     [REPORT_BROKEN] = "&#10007;" };

	return signs[mark];
}

static void put_lede(const struct report_session *session, FILE *out)
{
	enum report_mark mark = report_mark(session);
	char buf[CELL_MAX];

	fprintf(out,
		"<section class=\"lede %s\">\n<h3><span class=\"sign\" "
		"aria-hidden=\"true\">%s</span> %s <span class=\"of\">",
		mark_class(mark), mark_sign(mark), report_mark_word(mark));
	text_html_marked(out, *session->name ? session->name : session->path);
	fputs("</span></h3>\n<p>", out);
	text_html_marked(out, report_sentence(session, buf, sizeof(buf)));
	fputs("</p>\n<p class=\"signer\">", out);
	if (*session->result.key.name) {
		fputs("Key ", out);
		text_html_marked(out, session->result.key.name);
		fprintf(out, "+%08" PRIx32 "%s", session->result.key.id,
			session->result.known_key
				? ", which was known before."
				: ", which came with the log.");
	} else {
		fputs("No signature was verified.", out);
	}
	fputs("</p>\n</section>\n", out);
}

static void put_verdict(const struct report *report, FILE *out)
{
	size_t count[3] = { 0 }, left = LEDES;

	for (size_t i = 0; i < report->sessions; i++)
		count[report_mark(report->session[i])]++;
	fputs("<section aria-labelledby=\"verdict\">\n"
	      "<h2 id=\"verdict\">Did the boundary hold?</h2>\n",
	      out);
	if (report->sessions > 1)
		fprintf(out,
			"<p class=\"sum\">%zu sessions: %zu verifiably held, "
			"%zu not proved, %zu broken.</p>\n",
			report->sessions, count[REPORT_HELD],
			count[REPORT_NOT_PROVED], count[REPORT_BROKEN]);
	for (int mark = REPORT_BROKEN; mark >= REPORT_HELD; mark--) {
		for (size_t i = 0; i < report->sessions && left; i++) {
			if ((int)report_mark(report->session[i]) != mark)
				continue;
			put_lede(report->session[i], out);
			left--;
		}
	}
	if (report->sessions > LEDES)
		fputs("<p class=\"more\">The others are in the table of "
		      "sessions.</p>\n",
		      out);
	fputs("</section>\n", out);
}

static void put_total(const char *term, const char *value, FILE *out)
{
	fprintf(out, "<div><dt>%s</dt><dd>%s</dd></div>\n", term, value);
}

static void put_totals(const struct report *report, FILE *out)
{
	const struct report_counts *c = &report->counts;
	char buf[CELL_MAX];

	fputs("<section aria-labelledby=\"totals\">\n"
	      "<h2 id=\"totals\">Totals</h2>\n<dl class=\"totals\">\n",
	      out);
	put_total("allowed", show_number(c->allowed, buf), out);
	put_total("refused", show_number(c->refused, buf), out);
	if (c->observed)
		put_total("only observed", show_number(c->observed, buf), out);
	if (c->failed)
		put_total("failed", show_number(c->failed, buf), out);
	if (c->cut)
		put_total("cut off", show_number(c->cut, buf), out);
	put_total("bytes up", show_bytes(c->up, buf), out);
	put_total("bytes down", show_bytes(c->down, buf), out);
	put_total("packets dropped", show_number(c->packets, buf), out);
	put_total("findings", show_number(c->findings, buf), out);
	put_total("records", show_number(c->records, buf), out);
	fputs("</dl>\n", out);
	if (c->bad)
		fprintf(out,
			"<p class=\"warn\">%s of the lines that were read are "
			"no records of sallyport, and are not in these "
			"numbers.</p>\n",
			show_number(c->bad, buf));
	fputs("</section>\n", out);
}

/* --- tables -------------------------------------------------------------- */

static const char *form_class(enum cell_form form)
{
	static const char *const classes[] = { [CELL_TEXT] = "txt",
					       [CELL_NUMBER] = "num",
					       [CELL_NAME] = "name",
					       [CELL_WORD] = "name word" };

	return classes[form];
}

/* A column that says nothing in any row is left out. */
static uint64_t used_columns(const struct report *report,
			     const struct report_view *view, size_t rows)
{
	char buf[CELL_MAX];
	uint64_t used = 1;

	for (size_t i = 0; i < rows; i++) {
		for (size_t k = 0; k < view->columns; k++) {
			view->column[k].cell(report, i, buf);
			used |= (uint64_t)(*buf != 0) << k;
		}
	}
	return used;
}

static void put_row(const struct report *report, const struct report_view *view,
		    size_t row, uint64_t used, FILE *out)
{
	char buf[CELL_MAX];

	fputs("<tr>", out);
	for (size_t i = 0; i < view->columns; i++) {
		const struct report_column *column = &view->column[i];
		const char *tag = i ? "td" : "th scope=\"row\"";

		if (!(used >> i & 1))
			continue;
		column->cell(report, row, buf);
		fprintf(out, "<%s class=\"%s%s\" data-l=\"%s\"><span>", tag,
			form_class(column->form), *buf ? "" : " none",
			column->title);
		text_html_marked(out, buf);
		fputs(i ? "</span></td>" : "</span></th>", out);
	}
	fputs("</tr>\n", out);
}

static void put_table(const struct report *report,
		      const struct report_view *view, size_t rows, FILE *out)
{
	uint64_t used = used_columns(report, view, rows);

	fprintf(out,
		"<div class=\"wide\"><table aria-labelledby=\"%s\">\n<thead>"
		"<tr>",
		view->id);
	for (size_t i = 0; i < view->columns; i++)
		if (used >> i & 1)
			fprintf(out, "<th scope=\"col\" class=\"%s\">%s</th>",
				form_class(view->column[i].form),
				view->column[i].title);
	fputs("</tr></thead>\n<tbody>\n", out);
	for (size_t i = 0; i < rows; i++)
		put_row(report, view, i, used, out);
	fputs("</tbody>\n</table></div>\n", out);
}

void html_view(const struct report *report, const struct report_view *view,
	       FILE *out)
{
	size_t rows = view->rows(report), shown = rows;
	uint64_t left = view->left_out ? view->left_out(report) : 0;
	char buf[CELL_MAX];

	fprintf(out,
		"<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n",
		view->id, view->id, view->title);
	if (!rows) {
		fprintf(out, "<p class=\"empty\">%s</p>\n</section>\n",
			view->empty);
		return;
	}
	fprintf(out, "<p class=\"about\">%s</p>\n", view->about);
	if (view->chart)
		view->chart(report, out);
	if (shown > HTML_ROWS)
		shown = HTML_ROWS;
	put_table(report, view, shown, out);
	left += rows - shown;
	if (left)
		fprintf(out,
			"<p class=\"more\">And %s more: <code>--format json"
			"</code> or <code>csv</code> has those that were "
			"kept.</p>\n",
			show_number(left, buf));
	fputs("</section>\n", out);
}

static void put_foot(FILE *out)
{
	fputs("</main>\n<footer>\n<h2>How to read this</h2>\n"
	      "<p>All times are UTC. Names, paths and texts come from the "
	      "sandbox; what is invisible or misleading in them is shown as "
	      "<i class=\"esc\">\\u202e</i> or <i class=\"esc\">\\xff</i>. "
	      "<b>Held</b>: the log verifies against a key that was given, "
	      "it is closed by a signed receipt, and the receipt says that "
	      "the boundary held. <b>Not proved</b>: nothing is wrong, but "
	      "something of that is missing. <b>Broken</b>: the log does not "
	      "verify, or the boundary did not hold. A row "
	      "<code>*.zone</code> stands for further names of a zone that had "
	      "very many. Guesses at an intent are guesses.</p>\n"
	      "</footer>\n</body>\n</html>\n",
	      out);
}

void report_html(const struct report *report, FILE *out)
{
	put_head(report, out);
	put_verdict(report, out);
	put_totals(report, out);
	fputs("<section aria-labelledby=\"timeline\">\n"
	      "<h2 id=\"timeline\">Timeline</h2>\n",
	      out);
	html_timeline(report, out);
	fputs("</section>\n", out);
	for (size_t i = 0; i < report_view_count; i++)
		html_view(report, report_views[i], out);
	fputs("<section aria-labelledby=\"receipts\">\n"
	      "<h2 id=\"receipts\">Receipts, and how to verify them</h2>\n",
	      out);
	html_by_hand(out);
	for (size_t i = 0; i < report->sessions && i < HTML_ROWS; i++)
		html_receipt(report->session[i], out);
	fputs("</section>\n", out);
	put_foot(out);
}
