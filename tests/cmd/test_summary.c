/* SPDX-License-Identifier: Apache-2.0
 *
 * What people and programs are told at the end.
 */
#include "cmd/summary.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit/tally.h"
#include "base/cleanup.h"

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

static struct summary facts = {
	.policy = "p.yaml, evil\x1b\n.yaml",
	.log = "/var/log/sallyport/x/audit.jsonl",
	.dir = "/var/log/sallyport/x",
	.boundary = true,
	.held = BOUNDARY_HELD,
	.receipt = true,
};

/* Inlined, gcc 12 takes what open_memstream() allocated for a local. */
static __attribute__((noinline)) char *print(const struct tally *tally,
					     bool json)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	summary_print(out, tally, &facts, json);
	fclose(out);
	return text;
}

static void add(struct tally *tally, enum event_kind kind, const char *host,
		bool allow, enum reason reason, const char *rule, uint16_t port)
{
	struct audit_event event = { .kind = kind,
				     .host = host,
				     .verdict = { .allow = allow,
						  .reason = reason },
				     .rule = rule,
				     .dst_port = port,
				     .protocol = "tls",
				     .bytes_up = 1234567,
				     .bytes_down = 999 };

	tally_add(tally, &event);
}

static void fill(struct tally *tally)
{
	struct audit_event packet = { .kind = EVENT_PACKET,
				      .verdict = { .reason = REASON_BYPASS },
				      .dst_ip = ip_v4(0xcb007105),
				      .dst_port = 443,
				      .protocol = "udp",
				      .count = 7 };
	struct audit_event finding = { .kind = EVENT_FINDING,
				       .verdict = { .reason =
							    REASON_MALFORMED },
				       .detail = "a gate went \x1b[31mmad" };

	add(tally, EVENT_DNS_QUERY, "ok.test", true, REASON_RULE, "p:1", 0);
	add(tally, EVENT_FLOW_OPEN, "ok.test", true, REASON_RULE, "p:1", 443);
	add(tally, EVENT_FLOW_OPEN, "ok.test", true, REASON_RULE, "p:2", 80);
	add(tally, EVENT_FLOW_CLOSE, "ok.test", true, REASON_RULE, "p:1", 443);
	add(tally, EVENT_DNS_QUERY, "seen.test", true, REASON_RULE, "p:1", 0);
	add(tally, EVENT_DNS_QUERY, "no.test", false, REASON_NOT_IN_POLICY,
	    NULL, 0);
	add(tally, EVENT_DNS_QUERY, "no.test", false, REASON_NOT_IN_POLICY,
	    NULL, 0);
	add(tally, EVENT_FLOW_OPEN, "no.test", false, REASON_NOT_IN_POLICY,
	    NULL, 8443);
	add(tally, EVENT_FLOW_OPEN, "evil\x1b]0;x\x07\n.test", false,
	    REASON_DENY_RULE, "p:9", 443);
	/* Let through, then forbidden: not among those reached. */
	add(tally, EVENT_FLOW_OPEN, "gone.test", true, REASON_RULE, "p:1", 443);
	add(tally, EVENT_FLOW_DIAL, "gone.test", false,
	    REASON_FORBIDDEN_ADDRESS, "p:1", 443);
	tally_add(tally, &packet);
	tally_add(tally, &finding);
}

static void assert_has(const char *text, const char *want)
{
	if (!strstr(text, want))
		fail_msg("no \"%s\" in:\n%s", want, text);
}

static void test_table(void **state)
{
	struct tally *tally = *state;

	fill(tally);
	AUTO_FREE char *text = print(tally, false);
	assert_has(text, "reached\n    ok.test");
	assert_has(text, "2 connections");
	assert_has(text, "1.2 MB up");
	assert_has(text, "999 B down");
	assert_has(text, "seen.test                        only looked up");
	assert_has(text, "not_in_policy: the host is not in the policy\n");
	assert_has(text, "no.test:8443");
	assert_has(text, "1 connection, 2 DNS questions");
	assert_has(text, "-> add --allow no.test:8443");
	assert_has(text, "203.0.113.5:443 udp");
	assert_has(text, "7 packets");
	assert_has(text, "evil?]0;x??.test");
	assert_has(text, "findings\n    a gate went ?[31mmad\n");
	assert_has(text, "forbidden_address");
	assert_has(text, "policy: p.yaml, evil??.yaml\n");
	assert_has(text, "log: /var/log/sallyport/x/audit.jsonl (13 records)");
	for (const char *c = text; *c; c++)
		assert_true((*c >= 0x20 && *c < 0x7f) || *c == '\n');
	const char *gone = strstr(text, "gone.test");
	assert_true(gone > strstr(text, "refused\n"));
}

static void fill_observed(struct tally *tally)
{
	struct audit_event event = {
		.kind = EVENT_FLOW_OPEN,
		.host = "new.test",
		.verdict = { .allow = true,
			     .reason = REASON_OBSERVE,
			     .observed = REASON_NOT_IN_POLICY },
		.dst_port = 8443,
		.protocol = "tls",
	};
	struct audit_event change = { .kind = EVENT_POLICY,
				      .detail = "policy sha256:a -> sha256:b" };

	tally_add(tally, &event);
	event.host = "denied.test";
	event.verdict.observed = REASON_DENY_RULE;
	tally_add(tally, &event);
	add(tally, EVENT_FLOW_OPEN, "live.test", true, REASON_RULE, "p:1", 443);
	add(tally, EVENT_FLOW_CLOSE, "live.test", false, REASON_POLICY_REVOKED,
	    "p:1", 443);
	tally_add(tally, &change);
}

static void test_observed_and_cut(void **state)
{
	struct tally *tally = *state;

	fill_observed(tally);
	char *text = print(tally, false);
	const char *would = strstr(text, "\nwould be refused\n");
	const char *refused = strstr(text, "\nrefused\n");
	assert_non_null(would);
	assert_non_null(refused);
	const char *host = strstr(text, "new.test:8443");
	assert_true(host > would && host < refused);
	assert_has(would, "not_in_policy: the host is not in the policy\n");
	assert_has(would, "-> add --allow new.test:8443");
	assert_has(would, "deny_rule: a deny rule names it\n    denied.test");
	assert_has(refused, "policy_revoked: the policy no longer allows it\n"
			    "    live.test:443");
	assert_has(refused, "1 connection, 1 cut while going on");
	assert_has(text, "reached\n    live.test");
	assert_has(text, "policy changes\n    policy sha256:a -> sha256:b\n");
	free(text);
}

static void test_observed_and_cut_json(void **state)
{
	struct tally *tally = *state;

	fill_observed(tally);
	AUTO_FREE char *text = print(tally, true);
	json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(json);
	json_t *would = json_object_get(json, "would_be_refused");
	assert_int_equal(json_array_size(would), 2);
	json_t *row = json_array_get(would, 0);
	assert_string_equal(json_string_value(json_object_get(row, "observed")),
			    "not_in_policy");
	assert_string_equal(json_string_value(json_object_get(row, "reason")),
			    "observe");
	assert_non_null(json_object_get(row, "hint"));
	row = json_array_get(json_object_get(json, "refused"), 0);
	assert_int_equal(json_integer_value(json_object_get(row, "cut")), 1);
	row = json_array_get(json_object_get(json, "policy_changes"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "change")),
			    "policy sha256:a -> sha256:b");
	assert_int_equal(json_array_size(json_object_get(json, "reached")), 1);
	json_decref(json);
}

static void test_empty(void **state)
{
	AUTO_FREE char *text = print(*state, false);

	assert_has(text, "nothing was reached, nothing was refused\n");
	assert_has(text, "log: ");
}

/* The ledger died: an empty table would be a claim. */
static void test_unknown(void **state)
{
	static const char *const all[] = {
		"records", "reached",  "would_be_refused",
		"refused", "findings", "policy_changes",
	};
	AUTO_FREE char *text = print(NULL, false);
	AUTO_FREE char *line = print(NULL, true);
	json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

	(void)state;
	assert_has(text,
		   "sallyport: what was reached and refused is not known");
	assert_null(strstr(text, "nothing"));
	assert_null(strstr(text, " records)"));
	assert_has(text, "log: /var/log/sallyport/x/audit.jsonl (what");
	assert_non_null(json);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		assert_true(json_is_null(json_object_get(json, all[i])));
	json_decref(json);
}

static void test_evidence(void **state)
{
	static const struct {
		enum boundary_held held;
		const char *text, *word;
	} rows[] = {
		{ BOUNDARY_UNKNOWN, "boundary: nobody can say", "unknown" },
		{ BOUNDARY_HELD, "boundary: held", "held" },
		{ BOUNDARY_RESTORED, "boundary: was touched", "restored" },
		{ BOUNDARY_BROKEN, "boundary: did not hold", "broken" },
	};
	const struct summary was = facts;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		facts.held = rows[i].held;
		AUTO_FREE char *text = print(*state, false);
		AUTO_FREE char *line = print(*state, true);
		json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

		assert_has(text, rows[i].text);
		assert_string_equal(
			json_string_value(json_object_get(json, "boundary")),
			rows[i].word);
		assert_string_equal(
			json_string_value(json_object_get(json, "receipt")),
			"/var/log/sallyport/x/receipt.dsse.json");
		json_decref(json);
	}
	/* A path that a shell would take apart. */
	facts.dir = "/a b/it's";
	AUTO_FREE char *odd = print(*state, false);
	assert_has(odd, "receipt: /a b/it's/receipt.dsse.json; ");
	assert_has(odd, ": sallyport verify '/a b/it'\\''s'\n");
	/* Under `serve` the boundary is somebody else's. */
	facts.boundary = facts.receipt = false;
	AUTO_FREE char *none = print(*state, false);
	assert_null(strstr(none, "boundary"));
	assert_null(strstr(none, "verify"));
	assert_has(none, "receipt: none");
	AUTO_FREE char *line = print(*state, true);
	assert_null(strstr(line, "receipt"));
	facts = was;
}

static void test_many_are_folded(void **state)
{
	struct tally *tally = *state;
	char host[32];
	int lines = 0;

	for (int i = 0; i < 400; i++) {
		snprintf(host, sizeof(host), "h%d.test", i);
		add(tally, EVENT_DNS_QUERY, host, false, REASON_LIMIT_NAMES,
		    NULL, 0);
	}
	AUTO_FREE char *text = print(tally, false);
	assert_has(text, "and 390 more, see the log");
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	assert_true(lines < 20); /* one hint for all of them, too */
}

static void test_json(void **state)
{
	struct tally *tally = *state;
	json_error_t error;

	fill(tally);
	AUTO_FREE char *text = print(tally, true);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	assert_non_null(json);
	assert_int_equal(json_integer_value(json_object_get(json, "records")),
			 13);
	json_t *reached = json_object_get(json, "reached");
	assert_int_equal(json_array_size(reached), 2);
	json_t *row = json_array_get(reached, 0);
	assert_string_equal(json_string_value(json_object_get(row, "host")),
			    "ok.test");
	assert_int_equal(json_integer_value(json_object_get(row, "bytes_up")),
			 1234567);
	json_t *refused = json_object_get(json, "refused");
	assert_int_equal(json_array_size(refused), 4);
	row = json_array_get(refused, 0);
	assert_string_equal(json_string_value(json_object_get(row, "reason")),
			    "not_in_policy");
	assert_non_null(json_object_get(row, "hint"));
	assert_int_equal(json_array_size(json_object_get(json, "findings")), 1);
	json_decref(json);
}

/* A full tally of the worst names is still one JSON text. */
static void test_json_worst_case(void **state)
{
	struct tally *tally = *state;
	char host[200];
	json_error_t error;

	memset(host, 1, sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	for (int i = 0; i < 600; i++) {
		snprintf(host + 190, 9, "%08d", i);
		add(tally, EVENT_FLOW_OPEN, host, false, REASON_NOT_IN_POLICY,
		    host, 8443);
	}
	AUTO_FREE char *text = print(tally, true);
	json_t *json = json_loads(text, 0, &error);
	assert_non_null(json);
	assert_int_equal(json_array_size(json_object_get(json, "refused")),
			 TALLY_MAX - 1);
	json_decref(json);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_table),
		TEST(test_empty),
		TEST(test_unknown),
		TEST(test_evidence),
		TEST(test_many_are_folded),
		TEST(test_json),
		TEST(test_json_worst_case),
		TEST(test_observed_and_cut),
		TEST(test_observed_and_cut_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
