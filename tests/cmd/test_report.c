/* SPDX-License-Identifier: Apache-2.0
 *
 * test_report.c - `sallyport report`: the numbers are those of the log, and
 * memory has a bound whatever a sandbox asks for.
 */
#include "tests/cmd/report_case.h"

static void add_text(struct made *m, const char *line)
{
	report_line(m->report, m->session, line, strlen(line), m->lines++);
}

static const struct report_row *find(const struct made *m,
				     enum report_table table, const char *host)
{
	const struct report_rows *rows = &m->report->table[table];

	for (size_t i = 0; i < rows->count; i++)
		if (strcmp(rows->at[i].host, host) == 0)
			return &rows->at[i];
	return NULL;
}

/* --- numbers ------------------------------------------------------------- */

static void put_session(struct made *m)
{
	struct audit_event event;

	add(m, event_of(EVENT_SESSION_OPEN, REASON_RULE));
	add(m, flow(EVENT_DNS_QUERY, "a.test", REASON_RULE, 0, 0));
	add(m, flow(EVENT_FLOW_OPEN, "a.test", REASON_RULE, 0, 0));
	add(m, flow(EVENT_FLOW_CLOSE, "a.test", REASON_RULE, 1000, 20));
	add(m, flow(EVENT_FLOW_OPEN, "b.test", REASON_OBSERVE, 0, 0));
	add(m, flow(EVENT_FLOW_CLOSE, "b.test", REASON_OBSERVE, 5000, 7));
	add(m, flow(EVENT_FLOW_OPEN, "c.test", REASON_NOT_IN_POLICY, 0, 0));
	add(m, flow(EVENT_DNS_QUERY, "c.test", REASON_NOT_IN_POLICY, 0, 0));
	add(m, flow(EVENT_FLOW_OPEN, "c.test", REASON_PORT, 0, 0));
	add(m, flow(EVENT_FLOW_OPEN, "d.test", REASON_RULE, 0, 0));
	add(m, flow(EVENT_FLOW_DIAL, "d.test", REASON_CONNECT_FAILED, 0, 0));
	add(m, flow(EVENT_FLOW_OPEN, "e.test", REASON_RULE, 0, 0));
	add(m, flow(EVENT_FLOW_CLOSE, "e.test", REASON_LIMIT_BYTES, 300, 0));
	event = event_of(EVENT_PACKET, REASON_BYPASS);
	event.host = NULL;
	event.flow = 0;
	event.protocol = "udp";
	event.dst_port = 53;
	event.detail = "DNS";
	add(m, event);
	event.count = 41;
	add(m, event);
	event = event_of(EVENT_FINDING, REASON_RULE);
	event.detail = "rules changed";
	event.process = "nft";
	event.pid = 4711;
	add(m, event);
	add_text(m, "{\"no\":\"record\"}");
	add_text(m, "nonsense");
}

static void test_numbers(void **state)
{
	struct made m;
	const struct report_counts *c;

	(void)state;
	begin(&m);
	put_session(&m);
	c = &m.report->counts;
	assert_int_equal(c->records, 16);
	assert_int_equal(c->bad, 2);
	assert_int_equal(c->allowed, 4);
	assert_int_equal(c->observed, 1);
	assert_int_equal(c->refused, 4); /* one of them a cut */
	assert_int_equal(c->failed, 1);
	assert_int_equal(c->cut, 1);
	assert_int_equal(c->packets, 42);
	assert_int_equal(c->up, 6300);
	assert_int_equal(c->down, 27);
	assert_int_equal(c->findings, 1);
	assert_memory_equal(c, &m.session->counts, sizeof(*c));
	assert_int_equal(report_finish(m.report), 0);
	assert_string_equal(m.report->table[REPORT_HOSTS].at[0].host, "b.test");
	assert_int_equal(find(&m, REPORT_HOSTS, "b.test")->observed, 1);
	assert_int_equal(find(&m, REPORT_HOSTS, "a.test")->up, 1000);
	assert_int_equal(find(&m, REPORT_HOSTS, "a.test")->questions, 1);
	assert_int_equal(find(&m, REPORT_HOSTS, "d.test")->failed, 1);
	assert_int_equal(find(&m, REPORT_HOSTS, "e.test")->cut, 1);
	assert_null(find(&m, REPORT_HOSTS, "c.test"));
	assert_int_equal(m.report->table[REPORT_REFUSED].count, 3);
	assert_int_equal(find(&m, REPORT_PACKETS, "203.0.113.5")->packets, 42);
	report_free(m.report);
}

/* What a program reads is what was counted, under stable keys. */
static void test_json(void **state)
{
	AUTO_FREE char *text = NULL;
	const json_t *totals, *row;
	struct made m;
	json_t *o;

	(void)state;
	begin(&m);
	put_session(&m);
	assert_int_equal(report_finish(m.report), 0);
	text = written(&m, report_json);
	o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	totals = json_object_get(o, "totals");
	assert_int_equal(json_integer_value(json_object_get(totals, "up")), 0);
	assert_int_equal(
		json_integer_value(json_object_get(totals, "bytes_up")), 6300);
	assert_int_equal(
		json_integer_value(json_object_get(totals, "not_records")), 2);
	row = json_array_get(json_object_get(o, "hosts"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "host")),
			    "b.test");
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(row, "observed_for"), 0)),
			    "not_in_policy");
	row = json_array_get(json_object_get(o, "packets"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "intent")),
			    "dns");
	row = json_array_get(json_object_get(o, "events"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "process")),
			    "nft");
	assert_int_equal(json_array_size(json_object_get(o, "refused")), 3);
	json_decref(o);
	report_free(m.report);
}

/* A connection's bytes count once, and also if its close never came. */
static void test_progress(void **state)
{
	struct audit_event event =
		flow(EVENT_FLOW_PROGRESS, "a.test", REASON_RULE, 10, 1);
	struct made m;

	(void)state;
	begin(&m);
	add(&m, event);
	event.bytes_up = 25;
	add(&m, event);
	event.kind = EVENT_FLOW_CLOSE;
	event.bytes_up = 40;
	event.bytes_down = 3;
	add(&m, event);
	assert_int_equal(m.report->counts.up, 40);
	assert_int_equal(m.report->counts.down, 3);
	event.kind = EVENT_FLOW_PROGRESS;
	event.flow = 8;
	event.host = "b.test";
	event.bytes_up = 99;
	add(&m, event);
	assert_int_equal(m.report->counts.up, 139);
	assert_int_equal(report_finish(m.report), 0);
	assert_int_equal(find(&m, REPORT_HOSTS, "a.test")->up, 40);
	assert_int_equal(find(&m, REPORT_HOSTS, "b.test")->up, 99);
	report_free(m.report);
}

/* Nothing of a timeline is lost, in whatever order and however far apart. */
static void test_timeline(void **state)
{
	static const uint64_t times[] = { 1775014138811, 1775014138911,
					  1775014198811, 1775010000000,
					  1875014138811, 0,
					  1775014138811, INT64_MAX };
	const struct report_bar one = { 1, 2, 3 };

	(void)state;
	for (size_t n = 1; n <= ARRAY_SIZE(times); n++) {
		struct report_timeline t = { .count = 0 };
		uint64_t allowed = 0, refused = 0;

		for (size_t i = 0; i < n; i++)
			report_bar_add(&t, times[i], &one);
		assert_in_range(t.count, 1, REPORT_BARS);
		for (size_t i = 0; i < t.count; i++) {
			allowed += t.bar[i].allowed;
			refused += t.bar[i].refused;
		}
		assert_int_equal(allowed, n);
		assert_int_equal(refused, 3 * n);
		for (size_t i = 0; i < n; i++) {
			uint64_t at = times[i] / t.width_ms;

			assert_in_range(at, t.start, t.start + t.count - 1);
		}
	}
}

/* --- bounds -------------------------------------------------------------- */

/* More hosts than there is room for: they are counted as others. */
static void test_flood_of_hosts(void **state)
{
	const struct report_rows *rows;
	uint64_t sum = 0;
	char host[64];
	struct made m;

	(void)state;
	begin(&m);
	rows = &m.report->table[REPORT_REFUSED];
	for (unsigned i = 0; i < REPORT_ROWS_MAX + 500; i++) {
		snprintf(host, sizeof(host), "h%u.test", i);
		add(&m,
		    flow(EVENT_FLOW_OPEN, host, REASON_NOT_IN_POLICY, 0, 0));
	}
	assert_int_equal(rows->count, REPORT_ROWS_MAX);
	assert_int_equal(rows->others.connections, 500);
	assert_int_equal(report_finish(m.report), 0);
	for (size_t i = 0; i < rows->count; i++)
		sum += rows->at[i].connections;
	assert_int_equal(sum, REPORT_ROWS_MAX);
	assert_true(m.report->zones.count <= ZONES_MAX);
	report_free(m.report);
}

/* Names of one zone can't push others out; they look like what they are. */
static void test_tunnel(void **state)
{
	const struct report_row *row;
	char host[128];
	struct made m;

	(void)state;
	begin(&m);
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(host, sizeof(host), "%08x%08x%08x%08x.evil.test",
			 i * 2654435761u, ~i, i * 40503u, i);
		add(&m,
		    flow(EVENT_DNS_QUERY, host, REASON_NOT_IN_POLICY, 0, 0));
	}
	add(&m, flow(EVENT_FLOW_OPEN, "late.test", REASON_PORT, 0, 0));
	add(&m, flow(EVENT_FLOW_OPEN, "evil.test", REASON_PORT, 0, 0));
	assert_in_range(m.report->table[REPORT_REFUSED].count, 3,
			ZONE_NAMES + 3);
	assert_int_equal(report_finish(m.report), 0);
	row = &m.report->table[REPORT_REFUSED].at[0];
	assert_string_equal(row->host, "*.evil.test");
	assert_int_equal(row->questions, 20000);
	assert_string_equal(row->guess.word, "dns_tunnel");
	assert_non_null(find(&m, REPORT_REFUSED, "late.test"));
	assert_null(find(&m, REPORT_REFUSED, "evil.test")->guess.word);
	assert_in_range(m.report->zones.at[0]->names, 2000, 20000);
	report_free(m.report);
}

/* Questions that were answered again have one record, which says how many. */
static void test_repeated_questions(void **state)
{
	struct audit_event again =
		flow(EVENT_DNS_ANSWER, "a.test", REASON_RULE, 0, 0);
	struct audit_event denied =
		flow(EVENT_DNS_QUERY, "b.test", REASON_NOT_IN_POLICY, 0, 0);
	struct made m;

	(void)state;
	begin(&m);
	add(&m, flow(EVENT_DNS_QUERY, "a.test", REASON_RULE, 0, 0));
	add(&m, again);
	again.count = 1;
	add(&m, again);
	again.count = 7;
	add(&m, again);
	add(&m, denied);
	denied.count = 5;
	add(&m, denied);
	assert_int_equal(find(&m, REPORT_HOSTS, "a.test")->questions, 9);
	assert_int_equal(find(&m, REPORT_REFUSED, "b.test")->questions, 6);
	assert_int_equal(m.report->counts.allowed, 1);
	assert_int_equal(m.report->counts.refused, 2);
	report_free(m.report);
}

static void test_ordinary_names_are_no_tunnel(void **state)
{
	char host[128];
	struct made m;

	(void)state;
	begin(&m);
	for (unsigned i = 0; i < 40; i++) {
		snprintf(host, sizeof(host), "mirror-%u.packages.test", i);
		add(&m,
		    flow(EVENT_DNS_QUERY, host, REASON_NOT_IN_POLICY, 0, 0));
	}
	assert_int_equal(report_finish(m.report), 0);
	assert_int_equal(m.report->table[REPORT_REFUSED].count, 40);
	for (size_t i = 0; i < 40; i++)
		assert_null(m.report->table[REPORT_REFUSED].at[i].guess.word);
	report_free(m.report);
}

static void test_events_have_a_bound(void **state)
{
	struct audit_event event = event_of(EVENT_FINDING, REASON_RULE);
	struct made m;

	(void)state;
	begin(&m);
	event.detail = "again";
	for (unsigned i = 0; i < REPORT_EVENTS_MAX + 5; i++)
		add(&m, event);
	assert_int_equal(m.report->events, REPORT_EVENTS_MAX);
	assert_int_equal(m.report->events_left_out, 5);
	assert_int_equal(m.report->counts.findings, REPORT_EVENTS_MAX + 5);
	report_free(m.report);
}

/* A user's commands leave room for what speaks against him. */
static void test_commands_leave_room(void **state)
{
	struct audit_event event = event_of(EVENT_EXEC, REASON_RULE);
	struct made m;

	(void)state;
	begin(&m);
	event.detail = "uid 1000: true";
	for (unsigned i = 0; i < REPORT_EVENTS_MAX; i++)
		add(&m, event);
	assert_int_equal(m.report->events, REPORT_EVENTS_MAX / 2);
	assert_string_equal(m.report->event[0].text, "uid 1000: true");
	event = event_of(EVENT_FINDING, REASON_RULE);
	event.detail = "found";
	add(&m, event);
	assert_int_equal(m.report->events, REPORT_EVENTS_MAX / 2 + 1);
	report_free(m.report);
}

/* --- guesses ------------------------------------------------------------- */

static void test_guesses(void **state)
{
	static const struct {
		const char *host, *word;
		enum reason reason;
	} rows[] = {
		{ "8.8.8.8", "direct_ip", REASON_LITERAL_ADDRESS },
		{ "2001:4860:4860::8888", "direct_ip", REASON_LITERAL_ADDRESS },
		{ "169.254.169.254", "metadata", REASON_FORBIDDEN_ADDRESS },
		{ "metadata.google.internal", "metadata",
		  REASON_NOT_IN_POLICY },
		{ "10.0.0.1", "internal", REASON_LITERAL_ADDRESS },
		{ "100.64.0.1", "internal", REASON_LITERAL_ADDRESS },
		{ "dns.google", "doh", REASON_NOT_IN_POLICY },
		{ "webhook.site", "drop_site", REASON_NOT_IN_POLICY },
		{ "pastebin.com", "drop_site", REASON_NOT_IN_POLICY },
		{ "a.test", "fronting", REASON_NAME_MISMATCH },
		{ "a.test", "rebinding", REASON_FORBIDDEN_ADDRESS },
		{ "a.test", NULL, REASON_NOT_IN_POLICY },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct report_guess guess = report_guess_host(
			rows[i].host, rows[i].reason, false, false);

		if (rows[i].word)
			assert_string_equal(guess.word, rows[i].word);
		else
			assert_null(guess.word);
	}
	assert_string_equal(report_guess_packet("QUIC", "8.8.8.8").word,
			    "quic");
	assert_string_equal(report_guess_packet("ICMP", "8.8.8.8").word,
			    "icmp");
	assert_string_equal(report_guess_packet("SMTP", "8.8.8.8").word,
			    "smtp");
	assert_string_equal(report_guess_packet("direct IP", "8.8.8.8").word,
			    "direct_ip");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_timeline),
		cmocka_unit_test(test_flood_of_hosts),
		cmocka_unit_test(test_tunnel),
		cmocka_unit_test(test_repeated_questions),
		cmocka_unit_test(test_ordinary_names_are_no_tunnel),
		cmocka_unit_test(test_events_have_a_bound),
		cmocka_unit_test(test_commands_leave_room),
		cmocka_unit_test(test_guesses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
