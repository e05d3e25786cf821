/* SPDX-License-Identifier: Apache-2.0
 *
 * What the summary will say: each thing counted once, and in bounded space.
 */
#include "audit/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit/record.h"
#include "base/cleanup.h"

static struct audit_event of(enum event_kind kind, const char *host, bool allow,
			     enum reason reason)
{
	return (struct audit_event){
		.kind = kind,
		.host = host,
		.verdict = { .allow = allow, .reason = reason },
		.rule = allow ? "policy.yaml:3" : NULL,
		.dst_port = kind == EVENT_DNS_QUERY ? 0 : 443,
		.protocol = kind == EVENT_DNS_QUERY ? "udp" : "tls",
	};
}

static void add(struct tally *tally, struct audit_event event)
{
	tally_add(tally, &event);
}

static struct tally_row *row(struct tally *tally, const char *host, bool allow)
{
	for (size_t i = 0; i < tally->rows; i++)
		if (tally->row[i].allow == allow &&
		    strcmp(tally->row[i].host, host) == 0)
			return &tally->row[i];
	fail_msg("no row for %s", host);
	return NULL;
}

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct tally));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void test_one_flow_is_one_connection(void **state)
{
	struct tally *tally = *state;
	struct audit_event close =
		of(EVENT_FLOW_CLOSE, "a.example", true, REASON_RULE);

	add(tally, of(EVENT_SESSION_OPEN, NULL, false, REASON_RULE));
	add(tally, of(EVENT_DNS_QUERY, "a.example", true, REASON_RULE));
	add(tally, of(EVENT_DNS_ANSWER, "a.example", true, REASON_RULE));
	add(tally, of(EVENT_DNS_QUERY, "a.example", true, REASON_RULE));
	add(tally, of(EVENT_FLOW_OPEN, "a.example", true, REASON_RULE));
	add(tally, of(EVENT_FLOW_DIAL, "a.example", true, REASON_RULE));
	add(tally, of(EVENT_FLOW_PROGRESS, "a.example", true, REASON_RULE));
	close.bytes_up = 10;
	close.bytes_down = 2000;
	close.rule = NULL; /* not all tell it at the end */
	add(tally, close);
	assert_int_equal(tally->records, 8);
	assert_int_equal(tally->rows, 1);
	assert_int_equal(tally->row[0].count, 1);
	assert_int_equal(tally->row[0].dns, 2);
	assert_int_equal(tally->row[0].up, 10);
	assert_int_equal(tally->row[0].down, 2000);
	assert_int_equal(tally->row[0].port, 443);
	assert_string_equal(tally->row[0].rule, "policy.yaml:3");
}

static void test_an_answer_that_will_not_do(void **state)
{
	struct tally *tally = *state;

	add(tally, of(EVENT_DNS_QUERY, "b.example", true, REASON_RULE));
	add(tally,
	    of(EVENT_DNS_ANSWER, "b.example", false, REASON_FORBIDDEN_ADDRESS));
	assert_int_equal(row(tally, "b.example", true)->dns, 0);
	assert_int_equal(row(tally, "b.example", false)->dns, 1);
	assert_int_equal(row(tally, "b.example", false)->reason,
			 REASON_FORBIDDEN_ADDRESS);
}

/* A record that stands for several questions, allowed ones and others. */
static void test_repeated_questions(void **state)
{
	struct tally *tally = *state;
	struct audit_event again =
		of(EVENT_DNS_ANSWER, "a.example", true, REASON_RULE);
	struct audit_event denied =
		of(EVENT_DNS_QUERY, "b.example", false, REASON_NOT_IN_POLICY);

	add(tally, of(EVENT_DNS_QUERY, "a.example", true, REASON_RULE));
	add(tally, again);
	again.count = 1;
	add(tally, again);
	again.count = 7;
	add(tally, again);
	add(tally, denied);
	denied.count = 5;
	add(tally, denied);
	assert_int_equal(row(tally, "a.example", true)->dns, 9);
	assert_int_equal(row(tally, "b.example", false)->dns, 6);
	assert_int_equal(tally->sums.allowed, 1);
	assert_int_equal(tally->sums.refused, 2);
}

static void test_refusals(void **state)
{
	struct tally *tally = *state;
	struct audit_event packet =
		of(EVENT_PACKET, NULL, false, REASON_BYPASS);

	add(tally,
	    of(EVENT_DNS_QUERY, "b.example", false, REASON_NOT_IN_POLICY));
	add(tally,
	    of(EVENT_FLOW_OPEN, "b.example", false, REASON_NOT_IN_POLICY));
	add(tally,
	    of(EVENT_HTTP_REQUEST, "b.example", false, REASON_NOT_IN_POLICY));
	add(tally, of(EVENT_FLOW_OPEN, "b.example", false, REASON_PORT));
	assert_int_equal(tally->rows, 2); /* another reason, another row */
	assert_int_equal(row(tally, "b.example", false)->count, 2);
	assert_int_equal(row(tally, "b.example", false)->dns, 1);

	packet.dst_ip = ip_v4(0xcb007105);
	packet.count = 500;
	add(tally, packet);
	packet.count = 0;
	add(tally, packet);
	assert_int_equal(row(tally, "203.0.113.5", false)->count, 501);

	struct audit_event finding =
		of(EVENT_FINDING, NULL, false, REASON_MALFORMED);
	finding.detail = "something odd";
	add(tally, finding);
	assert_string_equal(row(tally, "something odd", false)->protocol,
			    TALLY_FINDING);
	packet.count = UINT32_MAX;
	add(tally, packet);
	assert_int_equal(row(tally, "203.0.113.5", false)->count, UINT32_MAX);
}

/* Let through, but then no address would do: nothing was reached. */
static void test_failed_dial_is_no_connection(void **state)
{
	struct tally *tally = *state;

	add(tally, of(EVENT_FLOW_OPEN, "c.example", true, REASON_RULE));
	add(tally, of(EVENT_FLOW_OPEN, "c.example", true, REASON_RULE));
	add(tally,
	    of(EVENT_FLOW_DIAL, "c.example", false, REASON_FORBIDDEN_ADDRESS));
	assert_int_equal(row(tally, "c.example", true)->count, 1);
	assert_int_equal(row(tally, "c.example", false)->count, 1);
	assert_int_equal(row(tally, "c.example", false)->reason,
			 REASON_FORBIDDEN_ADDRESS);
	/* More failures than connections do not wrap around. */
	add(tally,
	    of(EVENT_FLOW_DIAL, "c.example", false, REASON_FORBIDDEN_ADDRESS));
	add(tally,
	    of(EVENT_FLOW_DIAL, "c.example", false, REASON_FORBIDDEN_ADDRESS));
	assert_int_equal(row(tally, "c.example", true)->count, 0);
}

/* A tunnel that went on until the policy changed: it was reached, and cut. */
static void test_cut_is_a_refusal_too(void **state)
{
	struct tally *tally = *state;
	struct audit_event close =
		of(EVENT_FLOW_CLOSE, "c.example", false, REASON_POLICY_REVOKED);

	add(tally, of(EVENT_FLOW_OPEN, "c.example", true, REASON_RULE));
	close.bytes_up = 7;
	add(tally, close);
	assert_int_equal(tally->rows, 2);
	assert_int_equal(row(tally, "c.example", true)->count, 1);
	assert_int_equal(row(tally, "c.example", true)->up, 7);
	assert_int_equal(row(tally, "c.example", false)->count, 1);
	assert_int_equal(row(tally, "c.example", false)->cut, 1);
	assert_int_equal(row(tally, "c.example", false)->reason,
			 REASON_POLICY_REVOKED);
	/* What disagreed was recorded before its flow was closed. */
	add(tally, of(EVENT_FLOW_OPEN, "d.example", true, REASON_RULE));
	add(tally,
	    of(EVENT_FLOW_OPEN, "d.example", false, REASON_NAME_MISMATCH));
	add(tally,
	    of(EVENT_FLOW_CLOSE, "d.example", false, REASON_NAME_MISMATCH));
	assert_int_equal(row(tally, "d.example", false)->count, 1);
	assert_int_equal(row(tally, "d.example", false)->cut, 0);
}

static void test_observed_apart(void **state)
{
	struct tally *tally = *state;
	struct audit_event event =
		of(EVENT_FLOW_OPEN, "c.example", true, REASON_OBSERVE);

	event.verdict.observed = REASON_NOT_IN_POLICY;
	add(tally, event);
	add(tally, event);
	event.verdict.observed = REASON_PORT;
	add(tally, event);
	assert_int_equal(tally->rows, 2);
	assert_int_equal(tally->row[0].count, 2);
	assert_int_equal(tally->row[0].observed, REASON_NOT_IN_POLICY);
	assert_int_equal(tally->row[1].observed, REASON_PORT);
}

/* Requests of one host and port: what each moved is its own. */
static void test_bytes_of_what_let_it_through(void **state)
{
	static const enum reason why[] = { REASON_RULE, REASON_METHOD,
					   REASON_PATH };
	struct tally *tally = *state;

	for (size_t i = 0; i < 3; i++) {
		struct audit_event open =
			of(EVENT_HTTP_REQUEST, "a.example", true,
			   i ? REASON_OBSERVE : REASON_RULE);

		open.verdict.observed = why[i];
		add(tally, open);
	}
	for (size_t i = 0; i < 3; i++) {
		struct audit_event close =
			of(EVENT_FLOW_CLOSE, "a.example", true,
			   i ? REASON_OBSERVE : REASON_RULE);

		close.verdict.observed = why[i];
		close.bytes_up = 10 + i;
		add(tally, close);
	}
	assert_int_equal(tally->rows, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(tally->row[i].observed, why[i]);
		assert_int_equal(tally->row[i].up, 10 + i);
	}
}

static void test_policy_change(void **state)
{
	struct tally *tally = *state;
	struct audit_event event = { .kind = EVENT_POLICY, .detail = "a -> b" };

	add(tally, event);
	add(tally, event);
	assert_int_equal(tally->rows, 1);
	assert_string_equal(tally->row[0].host, "a -> b");
	assert_string_equal(tally->row[0].protocol, TALLY_POLICY);
	assert_int_equal(tally->row[0].count, 2);
}

static void test_others(void **state)
{
	struct tally *tally = *state;
	char host[64];
	uint64_t total = 0;

	for (int i = 0; i < 5000; i++) {
		snprintf(host, sizeof(host), "h%d.example", i % 2500);
		add(tally, of(EVENT_FLOW_OPEN, host, i % 2, REASON_RULE));
		add(tally, of(EVENT_FLOW_CLOSE, host, true, REASON_RULE));
	}
	assert_in_range(tally->rows, TALLY_MAX - 2, TALLY_MAX);
	for (size_t i = 0; i < tally->rows; i++)
		total += tally->row[i].count;
	assert_int_equal(total, 5000);
	assert_true(row(tally, TALLY_OTHERS, true)->count > 1000);
	assert_true(row(tally, TALLY_OTHERS, false)->count > 1000);
	assert_int_equal(row(tally, "h7.example", true)->count, 2);
}

static void test_long_host(void **state)
{
	struct tally *tally = *state;
	char host[600];

	memset(host, 'x', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	add(tally, of(EVENT_DNS_QUERY, host, false, REASON_MALFORMED));
	add(tally, of(EVENT_DNS_QUERY, host, false, REASON_MALFORMED));
	assert_int_equal(tally->rows, 1);
	assert_int_equal(tally->row[0].dns, 2);
	assert_int_equal(strlen(tally->row[0].host), HOST_MAX);
}

/* What the receipt says: every verdict once, and packets for themselves. */
static void test_sums(void **state)
{
	struct tally *tally = *state;
	const struct tally_sums *sums = &tally->sums;
	struct audit_event close =
		of(EVENT_FLOW_CLOSE, "a.test", true, REASON_RULE);
	struct audit_event packets =
		of(EVENT_PACKET, NULL, false, REASON_BYPASS);

	close.bytes_up = 10;
	close.bytes_down = 200;
	packets.count = 40;
	add(tally, of(EVENT_DNS_QUERY, "a.test", true, REASON_RULE));
	add(tally, of(EVENT_DNS_ANSWER, "a.test", true, REASON_RULE));
	add(tally, of(EVENT_FLOW_OPEN, "a.test", true, REASON_RULE));
	add(tally, of(EVENT_FLOW_DIAL, "a.test", true, REASON_RULE));
	add(tally, close);
	add(tally, of(EVENT_FLOW_OPEN, "b.test", true, REASON_RULE));
	close.verdict = (struct verdict){ .reason = REASON_LIMIT_BYTES };
	add(tally, close); /* we cut it */
	close.verdict = (struct verdict){ .reason = REASON_NOT_IN_POLICY };
	add(tally, close); /* refused when it opened, and counted there */
	assert_int_equal(sums->allowed, 3);
	assert_int_equal(sums->refused, 1);
	add(tally, of(EVENT_DNS_QUERY, "c.test", false, REASON_NOT_IN_POLICY));
	add(tally, of(EVENT_FLOW_DIAL, "b.test", false, REASON_CONNECT_FAILED));
	add(tally,
	    of(EVENT_DNS_ANSWER, "a.test", false, REASON_FORBIDDEN_ADDRESS));
	add(tally, of(EVENT_HTTP_REQUEST, "d.test", false, REASON_PATH));
	add(tally, packets);
	packets.count = 0;
	add(tally, packets);
	assert_int_equal(sums->allowed, 3);
	assert_int_equal(sums->refused, 5);
	assert_int_equal(sums->by_reason[REASON_LIMIT_BYTES], 1);
	assert_int_equal(sums->by_reason[REASON_NOT_IN_POLICY], 1);
	assert_int_equal(sums->by_reason[REASON_PATH], 1);
	assert_int_equal(sums->by_reason[REASON_BYPASS], 0);
	assert_int_equal(sums->packets, 41);
	assert_int_equal(sums->up, 30);
	assert_int_equal(sums->down, 600);
}

static void test_notes(void **state)
{
	struct tally *tally = *state;
	const struct tally_sums *sums = &tally->sums;
	struct audit_event event = { .kind = EVENT_FINDING, .time_ms = 77 };
	char text[300], detail[RECORD_POLICY_DETAIL_MAX], new[65];

	for (unsigned i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "finding %u", i);
		event.detail = text;
		add(tally, event);
	}
	assert_int_equal(sums->finding.total, 100);
	assert_int_equal(sums->finding.note[63].sequence, 63);
	assert_int_equal(sums->finding.note[63].time_ms, 77);
	assert_string_equal(sums->finding.note[63].text, "finding 63");
	assert_int_equal(sums->ruleset.total, 0);
	/* Of which somebody did something to the rules. */
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	event.process = "a process whose name is far too long for one";
	event.pid = 12;
	add(tally, event);
	event = (struct audit_event){ .kind = EVENT_RULESET,
				      .detail = "put\x1b back" };
	add(tally, event);
	assert_int_equal(sums->finding.total, 101);
	assert_int_equal(sums->ruleset.total, 2);
	assert_int_equal(sums->ruleset.note[0].sequence, 100);
	assert_int_equal(sums->ruleset.note[0].pid, 12);
	assert_int_equal(strlen(sums->ruleset.note[0].text), 255);
	assert_int_equal(strlen(sums->ruleset.note[0].process), 31);
	assert_int_equal(sums->ruleset.note[1].sequence, 101);
	assert_string_equal(sums->ruleset.note[1].text, "put? back");
	memset(new, '7', 64);
	new[64] = '\0';
	event = (struct audit_event){ .kind = EVENT_POLICY };
	event.detail = record_policy_detail(new, new, detail);
	add(tally, event);
	assert_int_equal(sums->policy.total, 1);
	assert_string_equal(sums->policy.note[0].text, new);
	assert_int_equal(sums->policy.note[0].sequence, 102);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_one_flow_is_one_connection),
		TEST(test_an_answer_that_will_not_do),
		TEST(test_repeated_questions),
		TEST(test_refusals),
		TEST(test_failed_dial_is_no_connection),
		TEST(test_cut_is_a_refusal_too),
		TEST(test_observed_apart),
		TEST(test_bytes_of_what_let_it_through),
		TEST(test_policy_change),
		TEST(test_others),
		TEST(test_long_host),
		TEST(test_sums),
		TEST(test_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
