/* SPDX-License-Identifier: Apache-2.0
 *
 * What `log` makes of each kind of record, and of what is none.
 */
#include "tests/cmd/log_world.h"

#include "cmd/log_row.h"
#include "cmd/log_text.h"

static struct log_record parse(const struct audit_event *event)
{
	static char line[RECORD_LINE_MAX + 1];
	struct log_record record;
	size_t len = format(event, "run", line) - 1;
	AUTO_FREE char *copy = malloc(len); /* not one byte more */

	assert_non_null(copy);
	memcpy(copy, line, len);
	assert_int_equal(log_record_parse(copy, len, &record), LOG_FINE);
	return record;
}

/* The row without its time, columns and blanks squeezed. */
static const char *row_of(const struct audit_event *event, char *buf)
{
	const struct log_layout layout = log_layout_of(0, false);
	const struct log_record record = parse(event);
	char row[LOG_ROW_MAX];
	size_t len = log_row(&layout, &record, row), out = 0;

	assert_true(len > 30 && row[len - 1] == '\n');
	for (size_t i = 30; i + 1 < len; i++)
		if (row[i] != ' ' || row[i - 1] != ' ')
			buf[out++] = row[i];
	buf[out] = '\0';
	return buf;
}

static struct audit_event dns(enum event_kind kind, enum reason reason)
{
	struct audit_event event = event_of(kind, reason);

	event.flow = 0;
	event.door = DOOR_DNS;
	event.dst_port = 0;
	event.dst_ip.len = 0;
	event.protocol = NULL;
	event.qtype = 28;
	return event;
}

static void expect(struct audit_event event, const char *want)
{
	char buf[LOG_ROW_MAX];

	assert_string_equal(row_of(&event, buf), want);
}

static void test_dns(void **state)
{
	struct audit_event event = dns(EVENT_DNS_QUERY, REASON_RULE);

	(void)state;
	expect(event, "allowed query rule dns api.example policy.yaml:12 - - - "
		      "AAAA");
	event = dns(EVENT_DNS_QUERY, REASON_NOT_IN_POLICY);
	event.rule = NULL;
	event.rcode = 3;
	event.sandbox = 4;
	expect(event, "refused query not_in_policy dns api.example - - - - "
		      "AAAA NXDomain; sandbox 4");
	event = dns(EVENT_DNS_ANSWER, REASON_RULE);
	event.answers = 2;
	event.answer[0] = ip_v4(0xc6120001);
	event.answer[1] = ip_v4(0xc6120002);
	expect(event, "allowed answer rule dns api.example policy.yaml:12 - - "
		      "- AAAA -> 198.18.0.1 198.18.0.2");
	event = dns(EVENT_DNS_ANSWER, REASON_RESOLVE_FAILED);
	event.rcode = 2;
	event.detail = "timed out";
	expect(event, "failed answer resolve_failed dns api.example "
		      "policy.yaml:12 - - - AAAA ServError; timed out");
	/* No name at all. */
	event = dns(EVENT_DNS_QUERY, REASON_MALFORMED);
	event.host = NULL;
	event.rcode = 1;
	expect(event, "refused query malformed dns . policy.yaml:12 - - - AAAA "
		      "FormError");
}

static void test_flow(void **state)
{
	struct audit_event event = event_of(EVENT_FLOW_OPEN, REASON_RULE);

	(void)state;
	event.sni = "api.example";
	expect(event, "allowed open rule connect api.example:443 "
		      "policy.yaml:12 - - - tls at 203.0.113.5; flow 7");
	event = event_of(EVENT_FLOW_OPEN, REASON_OBSERVE);
	event.sni = "other.example";
	expect(event, "observed open not_in_policy connect api.example:443 "
		      "policy.yaml:12 - - - tls at 203.0.113.5 sni "
		      "other.example; flow 7");
	event = event_of(EVENT_FLOW_OPEN, REASON_LITERAL_ADDRESS);
	event.host = event.rule = event.protocol = NULL;
	assert_true(ip_parse("2001:db8::1", &event.dst_ip));
	event.door = DOOR_SOCKS;
	event.count = 12;
	expect(event, "refused open literal_address socks [2001:db8::1]:443 - "
		      "- - - 12 times; flow 7");
	event = event_of(EVENT_FLOW_DIAL, REASON_CONNECT_FAILED);
	expect(event, "failed dial connect_failed connect api.example:443 "
		      "policy.yaml:12 - - - tls at 203.0.113.5; flow 7");
	event = event_of(EVENT_FLOW_DIAL, REASON_FORBIDDEN_ADDRESS);
	expect(event, "refused dial forbidden_address connect api.example:443 "
		      "policy.yaml:12 - - - tls at 203.0.113.5; flow 7");
	event = event_of(EVENT_FLOW_PROGRESS, REASON_RULE);
	event.bytes_up = 12;
	event.bytes_down = 123456789;
	event.duration_ms = 61234;
	expect(event, "allowed progress rule connect api.example:443 "
		      "policy.yaml:12 12 123456789 1m01s tls at 203.0.113.5; "
		      "flow 7");
}

static void test_close(void **state)
{
	static const struct {
		enum reason reason;
		const char *want;
	} cases[] = {
		{ REASON_RULE, "allowed close rule " },
		{ REASON_PUBLIC, "allowed close public " },
		{ REASON_OBSERVE, "observed close not_in_policy " },
		{ REASON_LIMIT_BYTES, "cut close limit_bytes " },
		{ REASON_EXPIRED, "cut close expired " },
		{ REASON_POLICY_REVOKED, "cut close policy_revoked " },
		{ REASON_TIMEOUT, "failed close timeout " },
		{ REASON_NAME_MISMATCH, "allowed close name_mismatch " },
	};
	char want[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct audit_event event =
			event_of(EVENT_FLOW_CLOSE, cases[i].reason);

		event.duration_ms = 999;
		event.status = 204;
		event.detail = "ended";
		snprintf(want, sizeof(want),
			 "%sconnect api.example:443 policy.yaml:12 0 0 999ms "
			 "tls at 203.0.113.5 status 204; ended; flow 7",
			 cases[i].want);
		expect(event, want);
	}
}

static void test_others(void **state)
{
	struct audit_event event = event_of(EVENT_HTTP_REQUEST, REASON_PATH);

	(void)state;
	event.dst_port = 80;
	event.door = DOOR_HTTP;
	event.method = "GET";
	event.target = "/v1/x y?q=1";
	expect(event, "refused http path http api.example:80 policy.yaml:12 - "
		      "- - GET /v1/x y?q=1; flow 7");
	event.verdict = verdict_of(REASON_RULE);
	event.status = 200;
	event.target = "/";
	expect(event, "allowed http rule http api.example:80 policy.yaml:12 - "
		      "- - GET / -> 200; flow 7");
	event = event_of(EVENT_PACKET, REASON_BYPASS);
	event.host = event.rule = NULL;
	event.flow = 0;
	event.protocol = "udp";
	event.count = 3;
	expect(event, "refused packet bypass - 203.0.113.5:443 - - - - udp 3 "
		      "times");
	event.host = "api.example";
	expect(event, "refused packet bypass - api.example:443 - - - - udp at "
		      "203.0.113.5 3 times");
	event = (struct audit_event){ .kind = EVENT_SESSION_OPEN,
				      .detail = "command sh" };
	expect(event, "event session - - - - - - - command sh");
	event.kind = EVENT_POLICY;
	event.detail = "policy sha256:00 -> sha256:11";
	expect(event, "event policy - - - - - - - policy sha256:00 -> "
		      "sha256:11");
	event.kind = EVENT_SESSION_CLOSE;
	event.detail = NULL;
	expect(event, "event end - - - - - - -");
	event = (struct audit_event){ .kind = EVENT_FINDING,
				      .verdict = verdict_of(
					      REASON_LEDGER_UNAVAILABLE),
				      .detail = "records were lost" };
	expect(event, "event finding ledger_unavailable - - - - - - records "
		      "were lost");
	event.verdict = verdict_of(REASON_RULE);
	expect(event, "event finding - - - - - - - records were lost");
	event.kind = EVENT_RULESET;
	event.detail = "the kernel's rules";
	expect(event, "event ruleset - - - - - - - the kernel's rules");
}

/* Whole rows: time, alignment, what is cut, colours. */
static void test_layout(void **state)
{
	static const struct {
		unsigned columns;
		bool colour;
		const char *want;
	} cases[] = {
		{ 0, false,
		  "2026-04-01T04:58:58.811+01:30 cut      close    expired     "
		  "   connect     a-rather-long-name.of-a-server.api.example:443 "
		  "policy.yaml:12       1234567   99999    2h03m tls at "
		  "203.0.113.5; flow 7\n" },
		{ 80, false,
		  "04-01 04:58:58 cut      close    expired        ..me.of-a-"
		  "server.api.example:443\n" },
		{ 160, false,
		  "04-01 04:58:58 cut      close    expired        connect     "
		  "..-name.of-a-server.api.example:443 policy.yaml:12       "
		  "1.2M  99999  2h03m tls at 203.0.113.5; fl..\n" },
		{ 40, true,
		  "\033[31mcut     \033[0m ..e.of-a-server.api.example:443\n" },
		{ 8, false, "cut\n" },
		{ 1, false, "cut\n" },
	};
	struct audit_event event = event_of(EVENT_FLOW_CLOSE, REASON_EXPIRED);
	struct log_record record;
	char row[LOG_ROW_MAX + 1];

	(void)state;
	event.host = "a-rather-long-name.of-a-server.api.example";
	event.bytes_up = 1234567;
	event.bytes_down = 99999;
	event.duration_ms = 7380000;
	record = parse(&event);
	tzset();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct log_layout layout =
			log_layout_of(cases[i].columns, cases[i].colour);
		size_t len = log_row(&layout, &record, row);

		row[len] = '\0';
		assert_string_equal(row, cases[i].want);
	}
	/* Never more than the terminal has, whatever that is. */
	for (unsigned columns = 8; columns < 300; columns++) {
		const struct log_layout layout = log_layout_of(columns, false);

		assert_in_range(log_row(&layout, &record, row), 1, columns + 1);
	}
}

static void test_text(void **state)
{
	static const struct {
		const char *in, *put, *word;
	} cases[] = {
		{ "a b", "a b", "a\\x20b" },
		{ "a\r\n\t\033[2J\x7f", "a\\r\\n\\t\\x1b[2J\\x7f",
		  "a\\r\\n\\t\\x1b[2J\\x7f" },
		{ "\xe2\x80\xae"
		  "moc",
		  "\\u{202e}moc", "\\u{202e}moc" },
		{ "\xc2\x9b"
		  "31m b\xc3\xbc",
		  "\\u{9b}31m b\\u{fc}", "\\u{9b}31m\\x20b\\u{fc}" },
		{ "\xff\xc0\xaf \xe2\x80", "\\xff\\xc0\\xaf \\xe2\\x80",
		  "\\xff\\xc0\\xaf\\x20\\xe2\\x80" },
		{ "\xf0\x9f\x98\x80", "\\u{1f600}", "\\u{1f600}" },
	};
	char buf[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct log_text text = log_text_of(buf, sizeof(buf));

		log_text_put(&text, cases[i].in);
		assert_string_equal(buf, cases[i].put);
		text = log_text_of(buf, sizeof(buf));
		log_text_word(&text, cases[i].in);
		assert_string_equal(buf, cases[i].word);
	}
	for (size_t cap = 8; cap < 16; cap++) {
		struct log_text text = log_text_of(buf, cap);

		log_text_put(&text, "0123456789");
		log_text_add(&text, "%s", "more");
		log_text_add(&text, "%s", cap == 15 ? "" : "yet more");
		assert_int_equal(strlen(buf), cap == 15	 ? 14
					      : cap < 13 ? cap - 1
							 : 12);
		assert_string_equal(buf + strlen(buf) - 2,
				    cap == 15 ? "re" : "..");
	}
}

/* What a sandbox can bring into a record, in every text of it. */
static void test_hostile(void **state)
{
	static char huge[9000];
	struct world *w = *state;
	const char *evil = "e\r\n\033]0;x\a\xe2\x80\xae\xff\xc2\x9bm";

	memset(huge, 0xff, sizeof(huge) - 1);
	for (int kind = 1; kind < EVENT_KIND_COUNT; kind++) {
		for (int i = 0; i < 2; i++) {
			struct audit_event event = event_of(
				(enum event_kind)kind, REASON_MALFORMED);

			event.host = event.rule = event.rule_text = event.sni =
				event.method = event.target = event.detail =
					event.protocol = i ? huge : evil;
			put(w->file, event);
		}
	}
	fflush(w->file);
	AUTO_SHOWN struct shown shown = LOG(w->dir, w->path);
	assert_int_equal(shown.status, 0);
	assert_string_equal(shown.err, "");
	for (const char *s = shown.out; *s; s++)
		assert_true((*s >= 0x20 && *s < 0x7f) || *s == '\n');
	assert_non_null(strstr(shown.out, "e\\r\\n\\x1b]0;x\\x07"));
	/* One row a record, and no row without an end. */
	size_t rows = 0;
	for (const char *s = shown.out; (s = strchr(s, '\n')); s++)
		rows++;
	assert_int_equal(rows, 2 * (EVENT_KIND_COUNT - 1));
}

/* Lines that somebody made of ours: whatever is shown of them is harmless. */
static void test_mutated(void **state)
{
	static char line[RECORD_LINE_MAX + 1], other[RECORD_LINE_MAX + 1];
	struct log_record record;
	char row[LOG_ROW_MAX];
	uint64_t random = 1, shown = 0;

	(void)state;
	for (unsigned i = 0; i < 60000; i++) {
		const struct log_layout layout =
			log_layout_of(i % 3 ? i % 220 : 0, false);
		struct audit_event event = event_of(
			(enum event_kind)(i % (EVENT_KIND_COUNT - 1) + 1),
			i % 4 ? REASON_PATH : REASON_RULE);
		size_t len = format(&event, "run", line) - 1;
		size_t cut, n = i % 5 ? 1 : 3;

		while (n--) {
			random = random * 6364136223846793005u + 1;
			line[(random >> 33) % len] = (char)(random >> 25);
		}
		if (i % 7 == 0) {
			cut = (random >> 40) % len;
			memcpy(other, line, len);
			memmove(line + len - cut, other, cut);
		}
		if (log_record_parse(line, len, &record) != LOG_FINE)
			continue;
		len = log_row(&layout, &record, row);
		shown++;
		for (size_t at = 0; at < len; at++)
			assert_true((row[at] >= 0x20 && row[at] < 0x7f) ||
				    (row[at] == '\n' && at + 1 == len));
	}
	assert_in_range(shown, 1000, 59000);
}

static void test_faults(void **state)
{
	static char large[OBSERVED_LINE_MAX * 5];
	struct world *w = *state;
	struct audit_event event = event_of(EVENT_FLOW_OPEN, REASON_RULE);
	char want[800];

	put(w->file, event);
	fputs("hello\n\n{\"a\":1}\n[1]\n", w->file);
	memset(large, 'x', sizeof(large) - 1);
	fprintf(w->file, "%s\n%.*s\n%.*s\n", large, OBSERVED_LINE_MAX + 1,
		large, OBSERVED_LINE_MAX, large);
	fwrite("{\0}\n", 1, 4, w->file);
	put(w->file, event);
	fputs("{\"time\":17", w->file);
	fflush(w->file);
	AUTO_SHOWN struct shown shown = LOG(w->dir, w->path, w->path);
	assert_int_equal(shown.status, 1);
	snprintf(want, sizeof(want),
		 "sallyport: %s: line 6: not a record: too long; so are 2 "
		 "lines\n"
		 "sallyport: %s: line 2: not a record: not JSON; so are 4 "
		 "lines\n"
		 "sallyport: %s: line 4: not a record: not as sallyport writes "
		 "it\n"
		 "sallyport: %s: line 11: not a record: cut off\n",
		 w->path, w->path, w->path, w->path);
	assert_int_equal(strncmp(shown.err, want, strlen(want)), 0);
	assert_string_equal(shown.err + strlen(want), want);
	assert_int_equal(strncmp(shown.out, "2026-", 5), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dns),
		cmocka_unit_test(test_flow),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_others),
		cmocka_unit_test_setup_teardown(test_layout, setup, teardown),
		cmocka_unit_test(test_text),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test(test_mutated),
		cmocka_unit_test_setup_teardown(test_faults, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
