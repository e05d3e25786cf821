/* SPDX-License-Identifier: Apache-2.0
 *
 * report_line.c - what one line adds.
 *
 * The bytes of a connection are those of its close; of one that goes on, or
 * whose session was killed, those of its last progress.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "audit/observed.h"
#include "audit/record.h"
#include "base/cleanup.h"
#include "cmd/report.h"

#define FLOWS	     16384
#define FLOWS_WINDOW 32 /* where one may be */

/* What was counted of a connection that goes on. */
struct report_flows {
	struct report_flow {
		uint64_t flow, up, down;
	} at[FLOWS];
};

struct line {
	struct report *report;
	struct report_session *session;
	const json_t *json;
	struct observation o;
	uint64_t sequence, flow;
};

static const json_t *get(const json_t *object, const char *a, const char *b)
{
	const json_t *value = json_object_get(object, a);

	return b ? json_object_get(value, b) : value;
}

static const char *get_text(const json_t *object, const char *a, const char *b)
{
	const char *text = json_string_value(get(object, a, b));

	return text ? text : "";
}

static uint64_t get_number(const json_t *object, const char *a, const char *b)
{
	json_int_t value = json_integer_value(get(object, a, b));

	return value > 0 ? (uint64_t)value : 0;
}

/* --- counting ------------------------------------------------------------ */

static void set_times(uint64_t *first, uint64_t *last, uint64_t time_ms)
{
	if (!*first || time_ms < *first)
		*first = time_ms;
	if (time_ms > *last)
		*last = time_ms;
}

#define COUNT(line, what, n)                         \
	do {                                         \
		(line)->report->counts.what += (n);  \
		(line)->session->counts.what += (n); \
	} while (0)

/* Adds to what is at the time of the line. */
static void draw(const struct line *l, uint64_t allowed, uint64_t observed,
		 uint64_t refused)
{
	const struct report_bar bar = { allowed, observed, refused };

	report_bar_add(&l->report->timeline, l->o.time_ms, &bar);
}

/* The host as it is in the line, where it is no name: that is what matters. */
static const char *host_of(const struct line *l, char buf[IP_TEXT_MAX])
{
	bool dns =
		l->o.kind == EVENT_DNS_QUERY || l->o.kind == EVENT_DNS_ANSWER;
	const char *host;

	if (*l->o.host)
		return l->o.host;
	host = get_text(l->json, dns ? "query" : "dst_endpoint", "hostname");
	if (!*host && !dns)
		host = get_text(l->json, "dst_endpoint", "ip");
	if (!*host && l->o.address.len)
		host = ip_format(&l->o.address, buf);
	return *host ? host : "(no name)";
}

static void set_rule(struct report *report, struct report_row *row,
		     const char *rule)
{
	if (!*rule || !*row->host || strcmp(row->rule, rule) == 0)
		return;
	if (*row->rule) {
		row->many_rules = true;
		return;
	}
	free(row->rule);
	row->rule = strndup(rule, REPORT_HOST_MAX);
	if (!row->rule)
		row->rule = strdup("");
	if (!row->rule)
		report->no_memory = true;
}

static struct report_row *row_of(const struct line *l, enum report_table table)
{
	struct report *report = l->report;
	char ip[IP_TEXT_MAX];
	struct report_row key = {
		.host = (char *)host_of(l, ip),
		.reason = l->o.verdict.reason,
		.strange = l->o.strange || !*l->o.host,
	};
	struct report_row *row;

	if (table == REPORT_PACKETS) {
		key.port = l->o.port;
		key.detail = (char *)get_text(l->json, "unmapped", "detail");
		snprintf(key.protocol, sizeof(key.protocol), "%s",
			 l->o.protocol);
	}
	row = report_row(report, table, &key);
	set_times(&row->first_ms, &row->last_ms, l->o.time_ms);
	if (row->last_session != report->sessions) {
		row->last_session = (uint32_t)report->sessions;
		row->sessions++;
	}
	if (l->o.port && row->port && row->port != l->o.port)
		row->many_ports = true;
	if (l->o.port)
		row->port = l->o.port;
	set_rule(report, row, get_text(l->json, "firewall_rule", "uid"));
	return row;
}

/* What a line stands for: itself, or what it says. */
static uint64_t times(const struct line *l)
{
	uint64_t count = get_number(l->json, "count", NULL);

	return count ? count : 1;
}

/* Of questions that were answered again, there is no other record. */
static bool is_repeat(const struct line *l)
{
	return l->o.kind == EVENT_DNS_ANSWER &&
	       get_number(l->json, "count", NULL);
}

static void count_row(const struct line *l, struct report_row *row)
{
	switch (l->o.kind) {
	case EVENT_DNS_QUERY:
	case EVENT_DNS_ANSWER:
		row->questions += times(l);
		break;
	case EVENT_HTTP_REQUEST:
		row->requests++;
		break;
	default:
		row->connections++;
	}
}

/* --- kinds of records ---------------------------------------------------- */

static void refuse(const struct line *l)
{
	COUNT(l, refused, 1);
	draw(l, 0, 0, 1);
	count_row(l, row_of(l, REPORT_REFUSED));
}

/* What was allowed before, and did not come to be. */
static void take_failure(const struct line *l)
{
	COUNT(l, failed, 1);
	row_of(l, REPORT_HOSTS)->failed++;
}

/* Who asked for what: a question, a connection, a request. */
static void take_verdict(const struct line *l)
{
	const struct verdict *verdict = &l->o.verdict;
	struct report_row *row;

	if (!verdict->allow) {
		refuse(l);
		return;
	}
	row = row_of(l, REPORT_HOSTS);
	count_row(l, row);
	if (verdict->reason != REASON_OBSERVE) {
		COUNT(l, allowed, 1);
		draw(l, 1, 0, 0);
		return;
	}
	row->observed++;
	row->observed_for |= UINT64_C(1) << verdict->observed;
	COUNT(l, observed, 1);
	draw(l, 0, 1, 0);
}

/* An answer or an address that was refused after the name was not. */
static void take_second(const struct line *l)
{
	if (l->o.verdict.allow) {
		if (is_repeat(l))
			count_row(l, row_of(l, REPORT_HOSTS));
		return;
	}
	if (record_failed(l->o.kind, l->o.verdict.reason))
		take_failure(l);
	else
		refuse(l);
}

static struct report_flow *flow_of(const struct line *l, bool make)
{
	struct report_flows *flows = l->report->flows;
	struct report_flow *room = NULL;

	if (!flows)
		flows = l->report->flows = calloc(1, sizeof(*flows));
	if (!flows) {
		l->report->no_memory = true;
		return NULL;
	}
	for (size_t i = 0; i < FLOWS_WINDOW; i++) {
		struct report_flow *at = &flows->at[(l->flow + i) % FLOWS];

		if (at->flow == l->flow)
			return at;
		if (!at->flow && !room)
			room = at;
	}
	if (!make || !room)
		return NULL;
	*room = (struct report_flow){ .flow = l->flow };
	return room;
}

/* What came since the last line about this connection. One whose progress found
 * no room waits for its close. */
static void take_bytes(const struct line *l, bool closes)
{
	uint64_t up = get_number(l->json, "traffic", "bytes_out");
	uint64_t down = get_number(l->json, "traffic", "bytes_in");
	struct report_flow *flow = l->flow ? flow_of(l, !closes) : NULL;
	struct report_flow before = { .flow = 0 };
	struct report_row *row;

	if (!flow && !closes)
		return;
	if (flow)
		before = *flow;
	if (flow)
		*flow = closes ? (struct report_flow){ .flow = 0 }
			       : (struct report_flow){ l->flow, up, down };
	up -= before.up < up ? before.up : up;
	down -= before.down < down ? before.down : down;
	if (!up && !down)
		return;
	row = row_of(l, REPORT_HOSTS);
	row->up += up;
	row->down += down;
	COUNT(l, up, up);
	COUNT(l, down, down);
}

static void take_close(const struct line *l)
{
	take_bytes(l, true);
	if (l->o.verdict.allow && json_is_true(get(l->json, "unmapped", "ech")))
		row_of(l, REPORT_HOSTS)->ech++;
	if (l->o.verdict.allow || !record_cuts(l->o.verdict.reason))
		return;
	COUNT(l, cut, 1);
	row_of(l, REPORT_HOSTS)->cut++;
	refuse(l);
}

/* Only the first packet of a burst has a record of its own: a record is one
 * thing that happened, whatever its count. */
static void take_packet(const struct line *l)
{
	row_of(l, REPORT_PACKETS)->packets += times(l);
	COUNT(l, packets, times(l));
	draw(l, 0, 0, 1);
}

static void take_event(const struct line *l)
{
	const json_t *by =
		json_array_get(json_object_get(l->json, "evidences"), 0);
	const char *text = get_text(l->json, "unmapped", "detail");

	COUNT(l, findings, l->o.kind == EVENT_FINDING);
	COUNT(l, changes, l->o.kind == EVENT_POLICY);
	COUNT(l, restored, l->o.kind == EVENT_RULESET);
	report_event_add(
		l->report,
		&(struct report_event){
			.kind = l->o.kind,
			.time_ms = l->o.time_ms,
			.sequence = l->sequence,
			.session = (uint32_t)l->report->sessions - 1,
			.pid = (uint32_t)get_number(by, "process", "pid"),
		},
		*text ? text : get_text(l->json, "message", NULL),
		get_text(by, "process", "name"));
}

static void keep(struct report *report, char **to, const char *text)
{
	if (!*text)
		return;
	free(*to);
	*to = strndup(text, REPORT_HOST_MAX);
	if (!*to)
		report->no_memory = true;
}

static void take_opening(const struct line *l)
{
	struct report_session *session = l->session;

	keep(l->report, &session->name,
	     get_text(l->json, "unmapped", "sandbox"));
	keep(l->report, &session->boundary,
	     get_text(l->json, "unmapped", "boundary"));
	keep(l->report, &session->policy, get_text(l->json, "policy", "name"));
	keep(l->report, &session->digest, get_text(l->json, "policy", "uid"));
}

/* Names that were connected to count too: a tunnel may use them. */
static void count_name(const struct line *l)
{
	struct report_zone *zone;
	bool dns = l->o.kind == EVENT_DNS_QUERY || is_repeat(l);

	if (!*l->o.host || !(dns || l->o.kind == EVENT_FLOW_OPEN ||
			     l->o.kind == EVENT_HTTP_REQUEST))
		return;
	zone = report_zone_add(&l->report->zones, l->o.host, l->o.time_ms);
	if (!zone || !dns)
		return;
	zone->questions += times(l);
	zone->refused += l->o.verdict.allow ? 0 : times(l);
}

static void take(struct line *l)
{
	count_name(l);
	switch (l->o.kind) {
	case EVENT_SESSION_OPEN:
		take_opening(l);
		break;
	case EVENT_DNS_QUERY:
	case EVENT_FLOW_OPEN:
	case EVENT_HTTP_REQUEST:
		take_verdict(l);
		break;
	case EVENT_DNS_ANSWER:
	case EVENT_FLOW_DIAL:
		take_second(l);
		break;
	case EVENT_FLOW_PROGRESS:
		take_bytes(l, false);
		break;
	case EVENT_FLOW_CLOSE:
		take_close(l);
		break;
	case EVENT_PACKET:
		take_packet(l);
		break;
	case EVENT_FINDING:
	case EVENT_POLICY:
	case EVENT_RULESET:
	case EVENT_EXEC:
		take_event(l);
		break;
	default:
		break;
	}
}

/* observed_parse() has no more of these than what all records have. */
static void take_rest(struct line *l)
{
	const char *host = get_text(l->json, "dst_endpoint", "hostname");
	uint64_t port = get_number(l->json, "dst_endpoint", "port");
	const char *flow = get_text(l->json, "connection_info", "uid");

	l->flow = strtoull(flow, NULL, 10);
	if (l->o.port || *l->o.host)
		return;
	if (*host && !host_canonical(host, strlen(host), l->o.host))
		l->o.strange = true;
	l->o.port = port > UINT16_MAX ? 0 : (uint16_t)port;
	snprintf(l->o.protocol, sizeof(l->o.protocol), "%s",
		 get_text(l->json, "unmapped", "protocol"));
}

void report_line(struct report *report, struct report_session *session,
		 const char *line, size_t len, uint64_t sequence)
{
	struct line l = { .report = report,
			  .session = session,
			  .sequence = sequence };
	json_t *json;
	enum observed seen = observed_parse_json(line, len, &l.o, &json);

	l.json = json;
	if (seen == OBSERVED_BAD) {
		COUNT(&l, bad, 1);
		json_decref(json);
		return;
	}
	COUNT(&l, records, 1);
	set_times(&session->first_ms, &session->last_ms, l.o.time_ms);
	set_times(&report->first_ms, &report->last_ms, l.o.time_ms);
	take_rest(&l);
	if (seen == OBSERVED_OTHER && l.o.kind == EVENT_PACKET)
		l.o.verdict.reason = REASON_BYPASS;
	take(&l);
	json_decref(json);
}
