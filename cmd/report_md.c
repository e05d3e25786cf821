/* SPDX-License-Identifier: Apache-2.0
 *
 * report_md.c - the same tables in GitHub's Markdown, for an issue or a wiki.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "cmd/report.h"
#include "cmd/report_html.h"
#include "cmd/report_text.h"
#include "cmd/report_view.h"
#include "cmd/report_words.h"

#define MD_ROWS 50

static void put_row(const struct report *report, const struct report_view *view,
		    size_t row, FILE *out)
{
	char buf[CELL_MAX];

	fputc('|', out);
	for (size_t i = 0; i < view->columns; i++) {
		view->column[i].cell(report, row, buf);
		fputc(' ', out);
		text_md(out, buf);
		fputs(" |", out);
	}
	fputc('\n', out);
}

static void put_view(const struct report *report,
		     const struct report_view *view, FILE *out)
{
	size_t rows = view->rows(report);
	uint64_t left = view->left_out ? view->left_out(report) : 0;

	fprintf(out, "\n## %s\n\n", view->title);
	if (!rows) {
		fprintf(out, "%s\n", view->empty);
		return;
	}
	fprintf(out, "%s\n\n|", view->about);
	for (size_t i = 0; i < view->columns; i++)
		fprintf(out, " %s |", view->column[i].title);
	fputs("\n|", out);
	for (size_t i = 0; i < view->columns; i++)
		fputs(view->column[i].form == CELL_NUMBER ? " ---: |"
							  : " --- |",
		      out);
	fputc('\n', out);
	for (size_t i = 0; i < rows && i < MD_ROWS; i++)
		put_row(report, view, i, out);
	left += rows > MD_ROWS ? rows - MD_ROWS : 0;
	if (left)
		fprintf(out, "\nAnd %" PRIu64 " more.\n", left);
}

static void put_sessions(const struct report *report, FILE *out)
{
	char buf[CELL_MAX];

	fputs("\n## Did the boundary hold?\n\n", out);
	for (size_t i = 0; i < report->sessions; i++) {
		const struct report_session *s = report->session[i];

		fprintf(out, "- **%s** ", report_mark_word(report_mark(s)));
		text_md(out, *s->name ? s->name : s->path);
		fputs(": ", out);
		text_md(out, report_sentence(s, buf, sizeof(buf)));
		if (*s->result.key.name) {
			fputs(s->result.known_key
				      ? " Signed by a key that was given: "
				      : " Signed by a key that lies beside "
					"the log: ",
			      out);
			text_md(out, s->result.key.name);
		}
		fputc('\n', out);
	}
}

static void put_totals(const struct report *report, FILE *out)
{
	const struct report_counts *c = &report->counts;
	char up[CELL_MAX], down[CELL_MAX];

	fprintf(out,
		"\n## Totals\n\n%" PRIu64 " allowed, %" PRIu64
		" refused, %" PRIu64 " only observed, %" PRIu64
		" failed, %" PRIu64 " cut off; %s up, %s down; %" PRIu64
		" packets dropped; %" PRIu64 " findings; %" PRIu64
		" records, %" PRIu64 " lines that are none.\n",
		c->allowed, c->refused, c->observed, c->failed, c->cut,
		show_bytes(c->up, up), show_bytes(c->down, down), c->packets,
		c->findings, c->records, c->bad);
}

static void put_keys(const struct report *report, FILE *out)
{
	char vkey[VKEY_TEXT_MAX];

	fputs("\n## Receipts, and how to verify them\n\n", out);
	for (size_t i = 0; i < report->sessions; i++) {
		const struct verify_result *r = &report->session[i]->result;

		fputs("- ", out);
		text_md(out,
			*r->session ? r->session : report->session[i]->path);
		fprintf(out,
			": %s, %" PRIu64 " checkpoints over %" PRIu64
			" records",
			r->receipt ? "a good receipt" : "no good receipt",
			r->checkpoints, r->covered);
		if (*r->key.name) {
			vkey_format(&r->key, vkey);
			fputs(", key ", out);
			text_md(out, vkey);
		}
		fputc('\n', out);
	}
	fprintf(out,
		"\n    sallyport verify --key VKEY DIR\n\n"
		"Or without sallyport, the last signed tree head:\n\n"
		"```sh\n%s```\n",
		report_by_hand);
}

void report_md(const struct report *report, FILE *out)
{
	char first[CELL_MAX], last[CELL_MAX], made[CELL_MAX];

	fprintf(out,
		"# sallyport: egress report\n\n%zu session%s, %s to %s UTC. "
		"Made %s UTC.\n",
		report->sessions, report->sessions == 1 ? "" : "s",
		show_time(report->first_ms, first),
		show_time(report->last_ms, last),
		show_time(report->made_s * 1000, made));
	put_sessions(report, out);
	put_totals(report, out);
	for (size_t i = 0; i < report_view_count; i++)
		put_view(report, report_views[i], out);
	put_keys(report, out);
}
