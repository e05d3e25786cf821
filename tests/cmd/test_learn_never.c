/* SPDX-License-Identifier: Apache-2.0
 *
 * test_learn_never.c - what must not become a rule.
 */
#include "tests/cmd/learn_never_case.h"

/* Refused for one of these: no rule, though it was reached by observe mode
 * before and after. */
static void test_refusals(void **state)
{
	static const enum reason reasons[] = {
		REASON_NAME_MISMATCH,
		REASON_NO_NAME,
		REASON_LITERAL_ADDRESS,
		REASON_FORBIDDEN_ADDRESS,
		REASON_ECH,
		REASON_MALFORMED,
		REASON_PROTOCOL,
		REASON_SELF,
		REASON_DENY_RULE,
		REASON_LIMIT_NAMES,
		REASON_POLICY_REVOKED,
		REASON_BYPASS,
	};
	struct world *w = *state;
	char host[64], line[128];

	reach(w, "good.example", 443, REASON_RULE);
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		snprintf(host, sizeof(host), "only%zu.example", i);
		refuse(w, host, 443, reasons[i]);
		snprintf(host, sizeof(host), "both%zu.example", i);
		reach(w, host, 443, REASON_OBSERVE);
		if (reasons[i] != REASON_POLICY_REVOKED)
			refuse(w, host, 443, reasons[i]);
		reach(w, host, 443, REASON_OBSERVE);
		if (reasons[i] == REASON_POLICY_REVOKED)
			refuse(w, host, 443, reasons[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		snprintf(host, sizeof(host), "only%zu.example", i);
		snprintf(line, sizeof(line), "#   %s port 443: ", host);
		assert_never(w, host, 443, line);
		snprintf(host, sizeof(host), "both%zu.example", i);
		snprintf(line, sizeof(line), "#   %s port 443: ", host);
		assert_never(w, host, 443, line);
	}
}

/* The network's failures and our limits are no reason to distrust. */
static void test_harmless(void **state)
{
	static const enum reason reasons[] = {
		REASON_CONNECT_FAILED,	   REASON_TIMEOUT,
		REASON_RESOLVE_FAILED,	   REASON_LIMIT_CONNECTIONS,
		REASON_LIMIT_RATE,	   REASON_LIMIT_BYTES,
		REASON_LEDGER_UNAVAILABLE,
	};
	struct world *w = *state;

	reach(w, "good.example", 443, REASON_OBSERVE);
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		refuse(w, "good.example", 443, reasons[i]);
	record(w, event_of(w, EVENT_FLOW_CLOSE, "good.example", 443,
			   REASON_LIMIT_BYTES));
	look_up(w, "good.example", REASON_RECORD_TYPE, 65);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_int_equal(l.status, 0);
	assert_true(allows(&l, "good.example", 443));
}

/* Domain fronting: CONNECT names one host, the ClientHello another. The tunnel
 * was dialled by then, and even a rule had allowed it. */
static void test_fronting(void **state)
{
	struct world *w = *state;

	reach(w, "good.example", 443, REASON_RULE);
	for (int i = 0; i < 3; i++) {
		w->flow++;
		record(w, event_of(w, EVENT_FLOW_OPEN, "front.example", 443,
				   REASON_RULE));
		record(w, event_of(w, EVENT_FLOW_DIAL, "front.example", 443,
				   REASON_RULE));
		record(w, event_of(w, EVENT_FLOW_OPEN, "front.example", 443,
				   REASON_NAME_MISMATCH));
		record(w, event_of(w, EVENT_FLOW_CLOSE, "front.example", 443,
				   REASON_NAME_MISMATCH));
	}
	assert_never(w, "front.example", 443,
		     "front.example port 443: the names given for the host do "
		     "not agree");
	/* Somebody whom a rule allowed may be wrong once. */
	reach(w, "front.example", 443, REASON_RULE);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_true(allows(&l, "front.example", 443));
}

/* The same number of another session is another flow. */
static void test_flows_are_a_sessions_own(void **state)
{
	struct world *w = *state;

	reach(w, "good.example", 443, REASON_RULE);
	w->session = "one";
	w->flow = 7;
	record(w, event_of(w, EVENT_FLOW_DIAL, "a.example", 443, REASON_RULE));
	w->session = "two";
	record(w, event_of(w, EVENT_FLOW_DIAL, "b.example", 443, REASON_RULE));
	record(w, event_of(w, EVENT_FLOW_OPEN, "b.example", 443,
			   REASON_NAME_MISMATCH));
	assert_never(w, "b.example", 443, "b.example port 443: ");
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_true(allows(&l, "a.example", 443));
}

/* What somebody denied: observe mode let it pass all the same. */
static void test_denied_by_a_person(void **state)
{
	struct world *w = *state;
	struct audit_event event;

	reach(w, "good.example", 443, REASON_RULE);
	w->flow++;
	for (int i = 0; i < 2; i++) {
		event = event_of(w, i ? EVENT_FLOW_DIAL : EVENT_FLOW_OPEN,
				 "bad.example", 443, REASON_OBSERVE);
		event.verdict.observed = REASON_DENY_RULE;
		record(w, event);
	}
	/* Nor on another port, nor by another session's rule. */
	reach(w, "bad.example", 8443, REASON_RULE);
	assert_never(w, "bad.example", 443, "a deny rule names it");
	assert_never(w, "bad.example", 8443, "a deny rule names it");
	event = event_of(w, EVENT_DNS_QUERY, "worse.example", 53,
			 REASON_OBSERVE);
	event.verdict.observed = REASON_DENY_RULE;
	event.qtype = 1;
	record(w, event);
	reach(w, "worse.example", 443, REASON_OBSERVE);
	assert_never(w, "worse.example", 443, "a deny rule names it");
}

static void data_name(char *host, size_t cap, unsigned i, const char *zone)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	char label[21];

	for (size_t k = 0; k < 20; k++) {
		x ^= x >> 29;
		x *= UINT64_C(0xbf58476d1ce4e5b9);
		label[k] = digits[x >> 60];
	}
	label[20] = '\0';
	snprintf(host, cap, "%s.%s", label, zone);
}

/* Names full of data, each even connected to, below a domain that is also
 * visited by a plain name. */
static void test_tunnel(void **state)
{
	struct world *w = *state;
	char host[128];

	reach(w, "good.example", 443, REASON_RULE);
	for (unsigned i = 0; i < 40; i++) {
		data_name(host, sizeof(host), i, "t.tunnel.example");
		reach(w, host, 443, REASON_OBSERVE);
	}
	reach(w, "www.tunnel.example", 443, REASON_OBSERVE);
	assert_never(w, host, 443, "looks like data in a DNS tunnel");
	assert_never(w, "www.tunnel.example", 443, "names like those of a DNS");
	assert_never(w, "x.t.tunnel.example", 443, "tunnel");
}

/* Refused questions only; and a rule had allowed the wildcard. */
static void test_tunnel_by_questions(void **state)
{
	struct world *w = *state;
	char host[128];

	reach(w, "good.example", 443, REASON_RULE);
	for (unsigned i = 0; i < 12; i++) {
		data_name(host, sizeof(host), i, "one.example");
		look_up(w, host, REASON_NOT_IN_POLICY, 1);
		data_name(host, sizeof(host), i, "two.example");
		look_up(w, host, REASON_RULE, 1);
	}
	reach(w, host, 443, REASON_RULE);
	reach(w, "www.two.example", 443, REASON_RULE);
	assert_never(w, host, 443, "looks like data in a DNS tunnel");
	data_name(host, sizeof(host), 3, "one.example");
	assert_never(w, host, 443, "looks like data in a DNS tunnel");
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_true(allows(&l, "www.two.example", 443));
	assert_has_not(l.yaml, "*.");
}

/* Short labels, but ever so many of them; and long ones of plain words. */
static void test_tunnel_shapes(void **state)
{
	struct world *w = *state;
	char host[256];

	reach(w, "good.example", 443, REASON_RULE);
	for (int i = 0; i < 70; i++) {
		snprintf(host, sizeof(host), "a%d.short.example", i);
		look_up(w, host, REASON_OBSERVE, 1);
	}
	reach(w, "a.short.example", 443, REASON_OBSERVE);
	for (int i = 0; i < 8; i++) {
		snprintf(host, sizeof(host),
			 "%c.these-are-words.and-these-too.and-there-is.more-"
			 "of-them.it-goes-on.long.example",
			 'a' + i);
		reach(w, host, 443, REASON_OBSERVE);
	}
	assert_never(w, "a.short.example", 443, "DNS tunnel");
	assert_never(w, host, 443, "DNS tunnel");
}

static void test_probes(void **state)
{
	struct world *w = *state;

	reach(w, "good.example", 443, REASON_RULE);
	look_up(w, "txt.example", REASON_RECORD_TYPE, 16);
	reach(w, "txt.example", 443, REASON_OBSERVE);
	look_up(w, "null.example", REASON_NOT_IN_POLICY, 10);
	look_up(w, "limit.example", REASON_LIMIT_NAMES, 1);
	assert_never(w, "txt.example", 443, "TXT, NULL or ANY records");
	assert_never(w, "null.example", 443, "TXT, NULL or ANY records");
	assert_never(w, "limit.example", 443, "too many different names");
}

/* (A name of the real list.) Even if a rule allowed it. */
static void test_listed(void **state)
{
	struct world *w = *state;

	reach(w, "good.example", 443, REASON_RULE);
	reach(w, "webhook.site", 443, REASON_RULE);
	for (int i = 0; i < 6; i++) {
		char host[64];

		snprintf(host, sizeof(host), "w%c.webhook.site", 'a' + i);
		reach(w, host, 443, REASON_OBSERVE);
	}
	refuse(w, "x.ngrok.io", 443, REASON_NOT_IN_POLICY);
	assert_never(w, "webhook.site", 443, "anybody can take in data there");
	assert_never(w, "wa.webhook.site", 443, "anybody can take in data");
	assert_never(w, "x.ngrok.io", 443, "x.ngrok.io port 443: anybody");
}

/* A name that was resolved is no host that was reached. */
static void test_questions_alone(void **state)
{
	struct world *w = *state;

	reach(w, "good.example", 443, REASON_OBSERVE);
	look_up(w, "asked.example", REASON_OBSERVE, 1);
	look_up(w, "ruled.example", REASON_RULE, 1);
	refuse(w, "opened.example", 443, REASON_OBSERVE);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG", "--include-denied");
	assert_int_equal(l.status, 0);
	assert_false(allows(&l, "asked.example", 443));
	assert_false(allows(&l, "ruled.example", 443));
	assert_false(allows(&l, "opened.example", 443));
	assert_has(l.yaml, "# Only looked up, so no rule:\n");
	assert_has(l.yaml, "#   asked.example\n");
	assert_has(l.yaml, "#   opened.example port 443");
}

static void test_revoked(void **state)
{
	struct world *w = *state;

	reach(w, "good.example", 443, REASON_RULE);
	w->flow++;
	record(w,
	       event_of(w, EVENT_FLOW_DIAL, "cut.example", 443, REASON_RULE));
	record(w, event_of(w, EVENT_FLOW_CLOSE, "cut.example", 443,
			   REASON_POLICY_REVOKED));
	assert_never(w, "cut.example", 443, "the policy no longer allows it");
	/* Allowed again since. */
	reach(w, "cut.example", 443, REASON_RULE);
	AUTO_LEARNED struct learned l = LEARN(w, "LOG");
	assert_true(allows(&l, "cut.example", 443));
}

/* A scan of ports in observe mode. */
static void test_many_ports(void **state)
{
	struct world *w = *state;

	reach(w, "good.example", 443, REASON_RULE);
	for (uint16_t port = 1000; port < 1100; port++)
		reach(w, "scan.example", port, REASON_OBSERVE);
	assert_never(w, "scan.example", 1000, "too many ports were tried");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_refusals),
		TEST(test_harmless),
		TEST(test_fronting),
		TEST(test_flows_are_a_sessions_own),
		TEST(test_denied_by_a_person),
		TEST(test_tunnel),
		TEST(test_tunnel_by_questions),
		TEST(test_tunnel_shapes),
		TEST(test_probes),
		TEST(test_listed),
		TEST(test_questions_alone),
		TEST(test_revoked),
		TEST(test_many_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
