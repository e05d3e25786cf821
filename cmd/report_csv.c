/* SPDX-License-Identifier: Apache-2.0
 *
 * report_csv.c - all rows of all tables in one, told apart by the first column.
 * RFC 4180: CRLF, each text quoted; no text is a formula.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "cmd/report.h"
#include "cmd/report_text.h"
#include "cmd/report_view.h"
#include "cmd/report_words.h"

/* A line; what does not apply is empty. */
struct row {
	const char *section, *what, *why, *intent, *rule, *detail;
	uint64_t count, lookups, up, down, first_ms, last_ms;
	uint16_t port;
};

static const char head[] =
	"section,what,port,why,count,lookups,bytes_up,bytes_down,first,last,"
	"intent,rule,detail\r\n";

static void put_number(FILE *out, uint64_t n)
{
	fprintf(out, ",%" PRIu64, n);
}

static void put_time(FILE *out, uint64_t time_ms)
{
	char buf[CELL_MAX];

	fputc(',', out);
	if (time_ms)
		text_csv(out, show_time(time_ms, buf));
}

static void put_text(FILE *out, const char *text)
{
	fputc(',', out);
	text_csv(out, text ? text : "");
}

static void put(FILE *out, const struct row *row)
{
	fputs(row->section, out);
	put_text(out, row->what);
	put_number(out, row->port);
	put_text(out, row->why);
	put_number(out, row->count);
	put_number(out, row->lookups);
	put_number(out, row->up);
	put_number(out, row->down);
	put_time(out, row->first_ms);
	put_time(out, row->last_ms);
	put_text(out, row->intent);
	put_text(out, row->rule);
	put_text(out, row->detail);
	fputs("\r\n", out);
}

static void put_one(FILE *out, const struct report_row *from,
		    enum report_table table)
{
	static const char *const sections[] = { [REPORT_HOSTS] = "allowed",
						[REPORT_REFUSED] = "refused",
						[REPORT_PACKETS] = "packet" };
	const char *why = reason_word(from->reason);
	struct row row = {
		.section = sections[table],
		.what = *from->host ? from->host : "(all others)",
		.port = from->many_ports ? 0 : from->port,
		.count = from->connections + from->requests + from->packets,
		.lookups = from->questions,
		.up = from->up,
		.down = from->down,
		.first_ms = from->first_ms,
		.last_ms = from->last_ms,
		.intent = from->guess.word,
		.rule = from->rule,
	};

	if (table == REPORT_HOSTS)
		why = from->observed ? "observe" : "";
	else if (!*from->host)
		why = "various";
	row.why = why;
	row.detail = *from->detail ? from->detail : from->protocol;
	put(out, &row);
}

static void put_session(FILE *out, const struct report_session *s)
{
	char buf[CELL_MAX];
	struct row row = {
		.section = "session",
		.what = *s->result.session ? s->result.session : s->path,
		.why = report_mark_word(report_mark(s)),
		.count = s->result.records,
		.up = s->counts.up,
		.down = s->counts.down,
		.first_ms = s->first_ms,
		.last_ms = s->last_ms,
		.rule = s->digest,
		.detail = report_sentence(s, buf, sizeof(buf)),
	};

	put(out, &row);
}

static void put_event(FILE *out, const struct report *report,
		      const struct report_event *event)
{
	struct row row = {
		.section = report_event_name(event->kind),
		.what = report->session[event->session]->result.session,
		.why = event->process,
		.count = 1,
		.first_ms = event->time_ms,
		.last_ms = event->time_ms,
		.detail = event->text,
	};

	put(out, &row);
}

void report_csv(const struct report *report, FILE *out)
{
	fputs(head, out);
	for (size_t i = 0; i < report->sessions; i++)
		put_session(out, report->session[i]);
	for (int t = 0; t < REPORT_TABLES; t++) {
		const struct report_rows *rows = &report->table[t];

		for (size_t i = 0; i < rows->count; i++)
			put_one(out, &rows->at[i], (enum report_table)t);
		if (rows->others.first_ms)
			put_one(out, &rows->others, (enum report_table)t);
	}
	for (size_t i = 0; i < report->events; i++)
		put_event(out, report, &report->event[i]);
}
