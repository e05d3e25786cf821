/* SPDX-License-Identifier: Apache-2.0
 *
 * report_view.c - tables of sessions, what the kernel counted and what happened
 * to them; and the list of all tables.
 */
#include "cmd/report_view.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/report.h"
#include "cmd/report_receipt.h"
#include "cmd/report_view_impl.h"
#include "cmd/report_words.h"

void cell_put(char buf[CELL_MAX], const char *text)
{
	snprintf(buf, CELL_MAX, "%s", text);
}

/* --- sessions ------------------------------------------------------------ */

#define SESSION report->session[i]

static size_t session_rows(const struct report *report)
{
	return report->sessions;
}

CELL(session_id)
{
	const struct report_session *s = SESSION;

	cell_put(buf, *s->result.session ? s->result.session : s->path);
}
CELL(session_name)
{
	cell_put(buf, SESSION->name);
}
CELL(session_began)
{
	show_time(SESSION->first_ms, buf);
}
CELL(session_lasted)
{
	show_duration(SESSION->last_ms - SESSION->first_ms, buf);
}
CELL(session_exit)
{
	const char *by = receipt_text(SESSION, "exit", "by");

	if (!*by)
		cell_put(buf, "not known");
	else
		snprintf(buf, CELL_MAX, "%" PRIu64 "%s%.32s",
			 receipt_number(SESSION, "exit", "status"),
			 strcmp(by, "exit") == 0 ? "" : ", by ",
			 strcmp(by, "exit") == 0 ? "" : by);
}
CELL(session_policy)
{
	const struct report_session *s = SESSION;

	snprintf(buf, CELL_MAX, "%s%s%.19s", s->policy, *s->policy ? ", " : "",
		 s->digest);
}
CELL(session_records)
{
	show_number(SESSION->result.records, buf);
}
CELL(session_refused)
{
	show_number(SESSION->counts.refused, buf);
}
CELL(session_up)
{
	show_bytes(SESSION->counts.up, buf);
}
CELL(session_verdict)
{
	cell_put(buf, report_mark_word(report_mark(SESSION)));
}

/* --- the kernel's counters ----------------------------------------------- */

/* A row for each session, once one of them has a receipt. */
static size_t receipt_rows(const struct report *report)
{
	for (size_t i = 0; i < report->sessions; i++)
		if (report->session[i]->result.receipt)
			return report->sessions;
	return 0;
}

static void put_packets(const struct report_session *session, const char *a,
			const char *b, char buf[CELL_MAX])
{
	const json_t *packets = receipt_get(session, "packets", NULL);
	const json_t *value = json_object_get(packets, a);

	if (b)
		value = json_object_get(value, b);
	if (json_is_integer(value))
		show_number((uint64_t)json_integer_value(value), buf);
	else
		cell_put(buf, "-");
}

CELL(counter_spoofed)
{
	put_packets(SESSION, "counted", "spoofed", buf);
}
CELL(counter_refused)
{
	put_packets(SESSION, "counted", "refused", buf);
}
CELL(counter_ipv6)
{
	put_packets(SESSION, "counted", "ipv6", buf);
}
CELL(counter_forwarded)
{
	put_packets(SESSION, "counted", "forwarded", buf);
}
CELL(counter_recorded)
{
	put_packets(SESSION, "recorded", NULL, buf);
}
CELL(counter_unreported)
{
	put_packets(SESSION, "unreported", NULL, buf);
}

/* --- events -------------------------------------------------------------- */

#define EVENT report->event[i]

static size_t event_rows(const struct report *report)
{
	return report->events;
}

static uint64_t events_left_out(const struct report *report)
{
	return report->events_left_out;
}

CELL(event_time)
{
	show_time(EVENT.time_ms, buf);
}
CELL(event_what)
{
	cell_put(buf, EVENT.kind == EVENT_RULESET
			      ? "rules put back"
			      : report_event_name(EVENT.kind));
}
CELL(event_text)
{
	cell_put(buf, EVENT.text);
}
CELL(event_by)
{
	if (!*EVENT.process && !EVENT.pid)
		cell_put(buf, "");
	else
		snprintf(buf, CELL_MAX, "%s (pid %u)", EVENT.process,
			 EVENT.pid);
}
CELL(event_where)
{
	const struct report_session *s = report->session[EVENT.session];

	snprintf(buf, CELL_MAX, "%s/%" PRIu64,
		 *s->result.session ? s->result.session : s->path,
		 EVENT.sequence);
}

/* --- tables -------------------------------------------------------------- */

static const struct report_column events[] = {
	{ "Time", CELL_NUMBER, event_time },  { "What", CELL_TEXT, event_what },
	{ "Text", CELL_TEXT, event_text },    { "By", CELL_NAME, event_by },
	{ "Record", CELL_NAME, event_where },
};

const struct report_view view_events = {
	"events",
	"Findings and changes",
	"What should not be, and when another policy came "
	"into force.",
	"No finding, and no change of policy or rules.",
	COLUMNS(events),
	.rows = event_rows,
	.left_out = events_left_out
};

static const struct report_column counters[] = {
	{ "Session", CELL_NAME, session_id },
	{ "Spoofed", CELL_NUMBER, counter_spoofed },
	{ "Refused", CELL_NUMBER, counter_refused },
	{ "IPv6", CELL_NUMBER, counter_ipv6 },
	{ "Forwarded", CELL_NUMBER, counter_forwarded },
	{ "On record", CELL_NUMBER, counter_recorded },
	{ "By number only", CELL_NUMBER, counter_unreported },
};

const struct report_view view_counters = {
	"counters",
	"The kernel\xe2\x80\x99s own counters",
	"As read at the end of each session that has a "
	"good receipt, against what is on record.",
	"No session has a good receipt, so nothing is "
	"known of the kernel\xe2\x80\x99s counters.",
	COLUMNS(counters),
	.rows = receipt_rows
};

static const struct report_column sessions[] = {
	{ "Session", CELL_NAME, session_id },
	{ "Name", CELL_NAME, session_name },
	{ "Began", CELL_NUMBER, session_began },
	{ "Lasted", CELL_NUMBER, session_lasted },
	{ "Exit", CELL_TEXT, session_exit },
	{ "Policy", CELL_NAME, session_policy },
	{ "Records", CELL_NUMBER, session_records },
	{ "Refused", CELL_NUMBER, session_refused },
	{ "Up", CELL_NUMBER, session_up },
	{ "Boundary", CELL_TEXT, session_verdict },
};

const struct report_view view_sessions = { "sessions",
					   "Sessions",
					   "In the order given.",
					   "There is no session.",
					   COLUMNS(sessions),
					   .rows = session_rows };

/* In the order of a report. */
const struct report_view *const report_views[] = {
	&view_events,  &view_hosts,    &view_refused,  &view_tunnels,
	&view_packets, &view_counters, &view_observed, &view_sessions,
};
const size_t report_view_count = ARRAY_SIZE(report_views);
