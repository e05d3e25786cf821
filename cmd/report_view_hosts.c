/* SPDX-License-Identifier: Apache-2.0
 *
 * report_view_hosts.c - tables of who was asked for: one function for each kind
 * of cell, then columns.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/report.h"
#include "cmd/report_html.h"
#include "cmd/report_view_impl.h"

/* --- rows of the three tables -------------------------------------------- */

/* The row after the last stands for all others. */
static const struct report_row *row_at(const struct report *report,
				       enum report_table table, size_t i)
{
	const struct report_rows *rows = &report->table[table];

	return i < rows->count ? &rows->at[i] : &rows->others;
}

static bool has_others(const struct report_rows *rows)
{
	return rows->others.first_ms != 0;
}

static size_t count_rows(const struct report_rows *rows)
{
	return rows->count + has_others(rows);
}

/* An observed row is found again by walking: few see many of them. */
static const struct report_row *observed_at(const struct report *report,
					    size_t i)
{
	const struct report_rows *rows = &report->table[REPORT_HOSTS];

	for (size_t k = 0; k < rows->count; k++)
		if (rows->at[k].observed && i-- == 0)
			return &rows->at[k];
	return &rows->others;
}

static void put_host(const struct report_row *row, char buf[CELL_MAX])
{
	if (!*row->host)
		cell_put(buf, "(all others)");
	else if (!row->port || row->many_ports)
		cell_put(buf, row->host);
	else
		snprintf(buf, CELL_MAX,
			 strchr(row->host, ':') && !row->strange ? "[%s]:%u"
								 : "%s:%u",
			 row->host, row->port);
}

static void put_rule(const struct report_row *row, char buf[CELL_MAX])
{
	snprintf(buf, CELL_MAX, "%s%s", row->rule,
		 row->many_rules ? ", and others" : "");
}

static void put_guess(const struct report_row *row, char buf[CELL_MAX])
{
	cell_put(buf, row->guess.text ? row->guess.text : "");
}

static uint64_t attempts(const struct report_row *row)
{
	return row->connections + row->requests + row->questions;
}

/* "not_in_policy, port" */
static void put_reasons(uint64_t bits, char buf[CELL_MAX])
{
	size_t len = 0;

	*buf = '\0';
	for (int i = 0; i < REASON_COUNT; i++)
		if (bits >> i & 1)
			len += (size_t)snprintf(buf + len, CELL_MAX - len,
						"%s%s", len ? ", " : "",
						reason_word((enum reason)i));
}

#define NAME_CELLS(prefix, at)      \
	CELL(prefix##_host)         \
	{                           \
		put_host(at, buf);  \
	}                           \
	CELL(prefix##_guess)        \
	{                           \
		put_guess(at, buf); \
	}
#define TIME_CELLS(prefix, at)                                 \
	CELL(prefix##_when)                                    \
	{                                                      \
		show_span((at)->first_ms, (at)->last_ms, buf); \
	}

#define HOST	 row_at(report, REPORT_HOSTS, i)
#define REFUSED	 row_at(report, REPORT_REFUSED, i)
#define PACKET	 row_at(report, REPORT_PACKETS, i)
#define OBSERVED observed_at(report, i)

NAME_CELLS(host, HOST)
NAME_CELLS(refused, REFUSED)
NAME_CELLS(packet, PACKET)
NAME_CELLS(observed, OBSERVED)
TIME_CELLS(refused, REFUSED)
TIME_CELLS(packet, PACKET)
TIME_CELLS(observed, OBSERVED)

CELL(host_up)
{
	show_bytes(HOST->up, buf);
}
CELL(host_down)
{
	show_bytes(HOST->down, buf);
}
CELL(host_connections)
{
	show_number(HOST->connections + HOST->requests, buf);
}
CELL(host_questions)
{
	show_number(HOST->questions, buf);
}
CELL(host_trouble)
{
	const struct report_row *row = HOST;
	const struct {
		uint64_t n;
		const char *what;
	} all[] = { { row->failed, "failed" },
		    { row->cut, "cut" },
		    { row->ech, "with ECH" } };
	int len = 0;

	*buf = '\0';
	for (size_t k = 0; k < ARRAY_SIZE(all); k++)
		if (all[k].n)
			len += snprintf(buf + len, CELL_MAX - (size_t)len,
					"%s%" PRIu64 " %s", len ? ", " : "",
					all[k].n, all[k].what);
}
CELL(host_rule)
{
	const struct report_row *row = HOST;

	if (*row->rule)
		put_rule(row, buf);
	else
		cell_put(buf, row->observed ? "(observe mode)" : "");
}
CELL(refused_reason)
{
	cell_put(buf,
		 *REFUSED->host ? reason_word(REFUSED->reason) : "various");
}
CELL(refused_count)
{
	show_number(attempts(REFUSED), buf);
}
CELL(refused_rule)
{
	put_rule(REFUSED, buf);
}
CELL(packet_kind)
{
	const struct report_row *row = PACKET;
	bool both = *row->protocol && *row->detail;

	snprintf(buf, CELL_MAX, "%s%s%s", row->protocol, both ? ", " : "",
		 row->detail);
}
CELL(packet_count)
{
	show_number(PACKET->packets, buf);
}
CELL(observed_count)
{
	show_number(OBSERVED->observed, buf);
}
CELL(observed_up)
{
	show_bytes(OBSERVED->up, buf);
}
CELL(observed_reason)
{
	put_reasons(OBSERVED->observed_for, buf);
}

static size_t host_rows(const struct report *report)
{
	return count_rows(&report->table[REPORT_HOSTS]);
}

static size_t refused_rows(const struct report *report)
{
	return count_rows(&report->table[REPORT_REFUSED]);
}

static size_t packet_rows(const struct report *report)
{
	return count_rows(&report->table[REPORT_PACKETS]);
}

static size_t observed_rows(const struct report *report)
{
	const struct report_rows *rows = &report->table[REPORT_HOSTS];
	size_t n = 0;

	for (size_t i = 0; i < rows->count; i++)
		n += rows->at[i].observed > 0;
	return n + (rows->others.observed > 0);
}

/* --- zones --------------------------------------------------------------- */

/* Sorted: those that look like tunnels come first. */
static size_t tunnel_rows(const struct report *report)
{
	size_t n = 0;

	while (n < report->zones.count &&
	       report_zone_is_tunnel(report->zones.at[n]))
		n++;
	return n;
}

#define ZONE report->zones.at[i]

CELL(zone_name)
{
	cell_put(buf, ZONE->name);
}
/* Beyond ZONE_NAMES they are not told apart for certain. */
static void put_names(uint64_t n, bool more, char buf[CELL_MAX])
{
	char number[CELL_MAX];

	snprintf(buf, CELL_MAX, "%s%.40s", more ? "at least " : "",
		 show_number(n, number));
}
CELL(zone_names)
{
	put_names(ZONE->names, ZONE->names > ZONE_NAMES, buf);
}
CELL(zone_data)
{
	put_names(ZONE->data, ZONE->names > ZONE_NAMES, buf);
}
CELL(zone_questions)
{
	char all[CELL_MAX], refused[CELL_MAX];

	snprintf(buf, CELL_MAX, "%.30s, %.30s refused",
		 show_number(ZONE->questions, all),
		 show_number(ZONE->refused, refused));
}
CELL(zone_when)
{
	show_span(ZONE->first_ms, ZONE->last_ms, buf);
}
CELL(zone_example)
{
	cell_put(buf, ZONE->example);
}

/* --- tables -------------------------------------------------------------- */

static const struct report_column hosts[] = {
	{ "Host", CELL_NAME, host_host },
	{ "Up", CELL_NUMBER, host_up },
	{ "Down", CELL_NUMBER, host_down },
	{ "Connections", CELL_NUMBER, host_connections },
	{ "Lookups", CELL_NUMBER, host_questions },
	{ "Trouble", CELL_TEXT, host_trouble },
	{ "Rule", CELL_NAME, host_rule },
	{ "Worth a thought", CELL_TEXT, host_guess },
};

const struct report_view view_hosts = {
	"hosts",
	"Where data went",
	"Every host that was allowed, those that were sent "
	"most first: what is sent is what can leak.",
	"No host was allowed.",
	COLUMNS(hosts),
	.rows = host_rows,
	.chart = html_bars
};

static const struct report_column refused[] = {
	{ "Host", CELL_NAME, refused_host },
	{ "Reason", CELL_WORD, refused_reason },
	{ "Times", CELL_NUMBER, refused_count },
	{ "Likely intent", CELL_TEXT, refused_guess },
	{ "First to last", CELL_TEXT, refused_when },
	{ "Rule", CELL_NAME, refused_rule },
};

const struct report_view view_refused = {
	"refused",
	"What was refused",
	"Attempts by name or address that the gate "
	"refused; nothing of them left. The intent is a "
	"guess by the name, the reason and the number.",
	"Nothing was refused.",
	COLUMNS(refused),
	.rows = refused_rows
};

static const struct report_column packets[] = {
	{ "To", CELL_NAME, packet_host },
	{ "Packet", CELL_TEXT, packet_kind },
	{ "Times", CELL_NUMBER, packet_count },
	{ "Likely intent", CELL_TEXT, packet_guess },
	{ "First to last", CELL_TEXT, packet_when },
};

const struct report_view view_packets = {
	"packets",
	"Packets that the kernel dropped",
	"What tried to leave without the gate.",
	"The kernel dropped nothing.",
	COLUMNS(packets),
	.rows = packet_rows
};

static const struct report_column observed[] = {
	{ "Host", CELL_NAME, observed_host },
	{ "Would be refused", CELL_NAME, observed_reason },
	{ "Times", CELL_NUMBER, observed_count },
	{ "Up", CELL_NUMBER, observed_up },
	{ "Worth a thought", CELL_TEXT, observed_guess },
	{ "First to last", CELL_TEXT, observed_when },
};

const struct report_view view_observed = {
	"observed",
	"Let through in observe mode",
	"The policy would have refused these.",
	"Nothing: no policy only observed, or it would "
	"have refused nothing.",
	COLUMNS(observed),
	.rows = observed_rows
};

static const struct report_column tunnels[] = {
	{ "Zone", CELL_NAME, zone_name },
	{ "Names", CELL_NUMBER, zone_names },
	{ "Like data", CELL_NUMBER, zone_data },
	{ "Questions", CELL_NUMBER, zone_questions },
	{ "First to last", CELL_TEXT, zone_when },
	{ "For example", CELL_NAME, zone_example },
};

const struct report_view view_tunnels = {
	"tunnels",
	"Names that look like data",
	"Registrable domains below which many different "
	"names look like encoded data. Names that are not "
	"allowed are never looked up; what follows is what "
	"was tried.",
	"No domain has the shape of a DNS tunnel.",
	COLUMNS(tunnels),
	.rows = tunnel_rows
};
