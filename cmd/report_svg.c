/* SPDX-License-Identifier: Apache-2.0
 *
 * report_svg.c - charts. The SVG holds shapes only and is stretched to whatever
 * room there is; the words around it are HTML, which stays readable on a
 * telephone. What is refused is below the line, not only of another colour.
 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/report.h"
#include "cmd/report_html.h"
#include "cmd/report_text.h"
#include "cmd/report_view.h"

#define HALF	   1000 /* units of a half of the timeline */
#define BARS_SHOWN 10
#define BARS_LEAST 24 /* few bars keep a width that is one of a bar */

struct peaks {
	uint64_t up, down;
};

static struct peaks peaks_of(const struct report_timeline *t)
{
	struct peaks peaks = { 0, 0 };

	for (size_t i = 0; i < t->count; i++) {
		const struct report_bar *bar = &t->bar[i];

		if (bar->allowed + bar->observed > peaks.up)
			peaks.up = bar->allowed + bar->observed;
		if (bar->refused > peaks.down)
			peaks.down = bar->refused;
	}
	return peaks;
}

/* At least a sliver of what there is at all. */
static uint64_t height(uint64_t n, uint64_t peak)
{
	uint64_t h = peak ? (uint64_t)((double)n / (double)peak * HALF) : 0;

	return n && h < 12 ? 12 : h;
}

static void rect(FILE *out, const char *class, size_t x, uint64_t y, uint64_t h)
{
	if (h)
		fprintf(out,
			"<rect class=\"%s\" x=\"%zu\" y=\"%" PRIu64
			"\" width=\"8\" height=\"%" PRIu64 "\"/>",
			class, 10 * x + 1, y, h);
}

/* Both halves have one scale: lengths can be compared. */
static void put_bars(const struct report_timeline *t, uint64_t peak, FILE *out)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct report_bar *bar = &t->bar[i];
		uint64_t allowed = height(bar->allowed, peak);
		uint64_t observed = height(bar->observed, peak);

		if (allowed + observed > HALF)
			observed = HALF - allowed;
		rect(out, "allowed", i, HALF - allowed, allowed);
		rect(out, "observed", i, HALF - allowed - observed, observed);
		rect(out, "refused", i, HALF, height(bar->refused, peak));
	}
}

static size_t room(const struct report_timeline *t)
{
	return t->count < BARS_LEAST ? BARS_LEAST : t->count;
}

static void put_axis(const struct report_timeline *t, FILE *out)
{
	char buf[CELL_MAX];

	fputs("<div class=\"axis\">", out);
	for (size_t i = 0; i < 3; i++) {
		uint64_t at = t->start + room(t) * i / 2;

		fprintf(out, "<time>%s</time>",
			show_time(at * t->width_ms, buf));
	}
	fputs("</div>\n", out);
}

static void put_legend(const struct report *report, FILE *out)
{
	char buf[CELL_MAX];

	fprintf(out,
		"<ul class=\"legend\"><li><b class=\"key allowed\"></b>"
		"allowed, above the line: %s</li>",
		show_number(report->counts.allowed, buf));
	if (report->counts.observed)
		fprintf(out,
			"<li><b class=\"key observed\"></b>let through in "
			"observe mode, above: %s</li>",
			show_number(report->counts.observed, buf));
	fprintf(out,
		"<li><b class=\"key refused\"></b>refused, below the line: %s",
		show_number(report->counts.refused, buf));
	fprintf(out, ", and records of dropped packets</li></ul>\n");
}

static void put_title(const struct report_timeline *t, struct peaks peaks,
		      FILE *out)
{
	char width[CELL_MAX], first[CELL_MAX];

	fprintf(out,
		"<title id=\"tl-title\">Verdicts over time</title>"
		"<desc id=\"tl-desc\">%zu bars of %s each, from %s UTC on. At "
		"most %" PRIu64 " verdicts in one bar allowed something, at "
		"most %" PRIu64 " refused it.</desc>",
		t->count, show_duration(t->width_ms, width),
		show_time(t->start * t->width_ms, first), peaks.up, peaks.down);
}

static void put_plot(const struct report_timeline *t, struct peaks peaks,
		     FILE *out)
{
	uint64_t peak = peaks.up > peaks.down ? peaks.up : peaks.down;
	uint64_t below = peak ? peaks.down * HALF / peak : 0;
	uint64_t above = peak ? peaks.up * HALF / peak : 0;

	below = below < 60 ? 60 : below;
	above = above < 60 ? 60 : above;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
		"aria-labelledby=\"tl-title tl-desc\" viewBox=\"0 %" PRIu64
		" %zu %" PRIu64 "\" preserveAspectRatio=\"none\">",
		HALF - above, 10 * room(t), above + below);
	put_title(t, peaks, out);
	put_bars(t, peak, out);
	fprintf(out,
		"<path class=\"line\" d=\"M0 %d H%zu\" "
		"vector-effect=\"non-scaling-stroke\"/></svg>",
		HALF, 10 * room(t));
}

void html_timeline(const struct report *report, FILE *out)
{
	const struct report_timeline *t = &report->timeline;
	struct peaks peaks = peaks_of(t);
	char buf[CELL_MAX];

	if (!t->count) {
		fputs("<p class=\"empty\">Nobody asked for anything.</p>\n",
		      out);
		return;
	}
	fprintf(out,
		"<figure class=\"timeline\">\n<div class=\"plot\">"
		"<span class=\"most\">%s</span>",
		show_number(peaks.up, buf));
	put_plot(t, peaks, out);
	fprintf(out, "<span class=\"least\">%s</span></div>\n",
		show_number(peaks.down, buf));
	put_axis(t, out);
	put_legend(report, out);
	fprintf(out,
		"<figcaption>Verdicts in bars of %s, UTC. The numbers at the "
		"left are the longest bars.</figcaption>\n</figure>\n",
		show_duration(t->width_ms, buf));
}

static void put_bar(const struct report_row *row, uint64_t most, FILE *out)
{
	char buf[CELL_MAX];
	double width = (double)row->up / (double)most * 1000;

	fputs("<li><span class=\"name\">", out);
	text_html_marked(out, *row->host ? row->host : "(all others)");
	fprintf(out,
		"</span><svg xmlns=\"http://www.w3.org/2000/svg\" "
		"aria-hidden=\"true\" viewBox=\"0 0 1000 10\" "
		"preserveAspectRatio=\"none\"><rect class=\"%s\" x=\"0\" "
		"y=\"0\" width=\"%.0f\" height=\"10\"/></svg>"
		"<span class=\"value\">%s%s</span></li>\n",
		row->observed ? "observed" : "up", width < 2 ? 2 : width,
		show_bytes(row->up, buf), row->observed ? " (observed)" : "");
}

void html_bars(const struct report *report, FILE *out)
{
	const struct report_rows *rows = &report->table[REPORT_HOSTS];
	uint64_t most = rows->others.up;

	if (rows->count && rows->at[0].up > most)
		most = rows->at[0].up;
	if (!most)
		return;
	fputs("<figure><ol class=\"bars\">\n", out);
	for (size_t i = 0; i < rows->count && i < BARS_SHOWN; i++)
		if (rows->at[i].up)
			put_bar(&rows->at[i], most, out);
	if (rows->others.up)
		put_bar(&rows->others, most, out);
	fputs("</ol>\n<figcaption>Bytes sent, the most first.</figcaption>"
	      "</figure>\n",
	      out);
}
