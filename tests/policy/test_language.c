/* SPDX-License-Identifier: Apache-2.0
 *
 * test_language.c - what each key of the language does to a verdict.
 */
#include "tests/policy/language_case.h"

#define LATER (NOW + 400 * 86400)

static void test_doors(void **state)
{
	(void)state;
	ROWS(V "allow:\n"
	       "- host: p.example\n  doors: [proxy]\n"
	       "- host: t.example\n  doors: [transparent]\n"
	       "- {host: two.example, ports: [443], doors: [proxy]}\n"
	       "- {host: two.example, ports: [80], doors: [transparent]}\n",
	     { { "p.example", 0, 443, DOOR_CONNECT }, true, REASON_RULE, 0, 3 },
	     { { "p.example", 0, 80, DOOR_HTTP }, true, REASON_RULE, 0, 3 },
	     { { "p.example", 0, 443, DOOR_SOCKS }, true, REASON_RULE, 0, 3 },
	     { { "p.example", 0, 443, DOOR_TRANSPARENT },
	       false,
	       REASON_NOT_IN_POLICY,
	       0,
	       3 },
	     { { "p.example", 0, 0, DOOR_DNS },
	       false,
	       REASON_NOT_IN_POLICY,
	       0,
	       3 },
	     { { "t.example", 0, 0, DOOR_DNS }, true, REASON_RULE, 0, 5 },
	     { { "t.example", 0, 443, DOOR_TRANSPARENT },
	       true,
	       REASON_RULE,
	       0,
	       5 },
	     { { "t.example", 0, 443, DOOR_CONNECT },
	       false,
	       REASON_NOT_IN_POLICY,
	       0,
	       5 },
	     { { "two.example", 0, 0, DOOR_DNS }, true, REASON_RULE, 0, 8 },
	     { { "two.example", 0, 443, DOOR_TRANSPARENT },
	       false,
	       REASON_PORT,
	       0,
	       8 },
	     { { "two.example", 0, 80, DOOR_TRANSPARENT },
	       true,
	       REASON_RULE,
	       0,
	       8 },
	     { { "two.example", 0, 80, DOOR_CONNECT },
	       false,
	       REASON_PORT,
	       0,
	       7 });
}

static void test_direct_ports(void **state)
{
	struct policy *policy =
		build_yaml(V "allow:\n"
			     "- {host: a.example, ports: [443], doors: "
			     "[proxy]}\n"
			     "- {host: a.example, ports: [22]}\n"
			     "- {host: a.example, ports: [25], expires: "
			     "2026-06-01}\n");
	struct port_range range[4];

	(void)state;
	assert_int_equal(policy_ports(policy, "a.example", NOW, range, 4), 2);
	assert_int_equal(range[0].first, 22);
	assert_int_equal(range[1].first, 25);
	assert_int_equal(policy_ports(policy, "a.example", LATER, range, 4), 1);
	assert_int_equal(policy_ports(policy, "a.example", 0, range, 4), 1);
	policy_unref(policy);
}

static void test_expires(void **state)
{
	static const char yaml[] =
		V "allow:\n"
		  "- {host: a.example, expires: 2026-01-01T00:00:01Z}\n"
		  "- {host: b.example, ports: [22], expires: 2026-02-01}\n"
		  "- {host: b.example, ports: [443]}\n"
		  "- {address: 192.0.2.0/24, ports: [22], expires: "
		  "2026-02-01}\n";
	struct policy *policy = build_yaml(yaml);

	(void)state;
	ROWS(yaml, { { "a.example", 0, 443 }, true, REASON_RULE, 0, 3 },
	     { { "a.example", 0, 443, .now_s = NOW + 1 },
	       false,
	       REASON_EXPIRED,
	       0,
	       3 },
	     { { "a.example", 0, 0, .now_s = NOW + 1 },
	       false,
	       REASON_EXPIRED,
	       0,
	       3 },
	     { { "b.example", 0, 22 }, true, REASON_RULE, 0, 4 },
	     { { "b.example", 0, 22, .now_s = LATER },
	       false,
	       REASON_PORT,
	       0,
	       5 },
	     { { "b.example", 0, 0, .now_s = LATER }, true, REASON_RULE, 0, 5 },
	     { { NULL, "192.0.2.7", 22 }, true, REASON_RULE, 0, 6 },
	     { { NULL, "192.0.2.7", 22, .now_s = LATER },
	       false,
	       REASON_EXPIRED,
	       0,
	       6 });
	assert_int_equal(policy_next_expiry(policy, NOW), NOW + 1);
	assert_int_equal(policy_next_expiry(policy, NOW + 1), NOW + 31 * 86400);
	assert_int_equal(policy_next_expiry(policy, LATER), 0);
	/* Nobody knows what time it is: then it is over. */
	struct question q = { .host = "a.example", .port = 443 };
	assert_int_equal(policy_decide(policy, &q).reason, REASON_EXPIRED);
	policy_unref(policy);
}

static void test_http(void **state)
{
	(void)state;
	ROWS(V "allow:\n"
	       "- host: a.example\n  ports: [80]\n  methods: [GET, HEAD]\n"
	       "  paths: [/repos/acme/**, /v1/*/tags, /exact]\n"
	       "- {host: b.example, ports: [80], methods: [POST]}\n"
	       "- {host: b.example, ports: [80, 8080]}\n",
	     { { "a.example", 0, 80 }, true, REASON_RULE, 0, 3 },
	     { { "a.example", 0, 80, 0, "GET", "/exact" },
	       true,
	       REASON_RULE,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "/exact?q=/../x" },
	       true,
	       REASON_RULE,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "POST", "/exact" },
	       false,
	       REASON_METHOD,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "get", "/exact" },
	       false,
	       REASON_METHOD,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "/exact/" },
	       false,
	       REASON_PATH,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "/" },
	       false,
	       REASON_PATH,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "/repos/acme/" },
	       true,
	       REASON_RULE,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "/repos/acme/x/y/z" },
	       true,
	       REASON_RULE,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "/repos/acme" },
	       false,
	       REASON_PATH,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "/repos/acmeevil/x" },
	       false,
	       REASON_PATH,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "/v1/x/tags" },
	       true,
	       REASON_RULE,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "/v1/x/y/tags" },
	       false,
	       REASON_PATH,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "/repos/acme/%2e%2E%2fx" },
	       false,
	       REASON_MALFORMED,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "/repos/acme/%252e" },
	       false,
	       REASON_MALFORMED,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "/repos/acme/..;/x" },
	       false,
	       REASON_MALFORMED,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "/repos/acme/\\..\\x" },
	       false,
	       REASON_MALFORMED,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "/repos/acme//x" },
	       false,
	       REASON_MALFORMED,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", "*" },
	       false,
	       REASON_MALFORMED,
	       0,
	       3 },
	     { { "a.example", 0, 80, 0, "GET", NULL },
	       false,
	       REASON_MALFORMED,
	       0,
	       3 },
	     { { "b.example", 0, 80, 0, "POST", "/" },
	       true,
	       REASON_RULE,
	       0,
	       7 },
	     { { "b.example", 0, 80, 0, "GET", "/a;b" },
	       true,
	       REASON_RULE,
	       0,
	       8 },
	     /* Not known yet: the rule that takes all decides. */
	     { { "b.example", 0, 80 }, true, REASON_RULE, 0, 8 });
}

static void test_accessors(void **state)
{
	struct policy *policy = build_yaml(
		V "dns: {answers: real}\n"
		  "limits: {connections: 5, connections_per_second: 6, names: "
		  "7,\n  names_per_wildcard: 8, dns_per_second: 9, upload: 1 "
		  "MB, download: 2GiB}\n"
		  "allow:\n"
		  "- host: llm.example\n  connect: 127.0.0.1:11434\n"
		  "- {host: llm.example, ports: [22]}\n"
		  "- {host: t.example, protocol: tls, dns: {types: [TXT, "
		  "SRV]}}\n"
		  "- {host: t.example, ports: [25], protocol: any, upload: "
		  "10}\n"
		  "- {host: h.example, ports: [80], methods: [GET]}\n");
	const struct rule *rule = rule_for(policy, "llm.example", 443);
	const struct limits *limits = policy_limits(policy);

	(void)state;
	assert_true(policy_answers_real(policy));
	assert_int_equal(limits->connections, 5);
	assert_int_equal(limits->connections_per_second, 6);
	assert_int_equal(limits->names, 7);
	assert_int_equal(limits->names_per_wildcard, 8);
	assert_int_equal(limits->dns_per_second, 9);
	assert_int_equal(limits->budget[UP], 1000000);
	assert_true(limits->budget[DOWN] == 2ull << 30);
	assert_int_equal(rule_connect(rule)->port, 11434);
	assert_null(rule_connect(rule_for(policy, "llm.example", 22)));
	/* In DNS the one that needs no resolution answers. */
	assert_non_null(rule_connect(rule_for(policy, "llm.example", 0)));
	assert_int_equal(rule_wanted(rule_for(policy, "t.example", 80)),
			 WANTED_TLS);
	rule = rule_for(policy, "t.example", 25);
	assert_int_equal(rule_wanted(rule), WANTED_ANY);
	assert_true(rule_budget(rule, UP) == 10);
	assert_true(rule_budget(rule, DOWN) == 0);
	assert_int_equal(rule_dns_types(rule_for(policy, "t.example", 0)),
			 RULE_DNS_TXT | RULE_DNS_SRV);
	assert_int_equal(rule_dns_types(rule), RULE_DNS_TXT | RULE_DNS_SRV);
	rule = rule_for(policy, "h.example", 80);
	assert_int_equal(rule_wanted(rule), WANTED_HTTP);
	assert_true(rule_judges_requests(rule));
	assert_true(rule_key(rule) !=
		    rule_key(rule_for(policy, "t.example", 25)));
	policy_unref(policy);
}

/* A rule is the same to its counters wherever it stands. */
static void test_keys(void **state)
{
	struct policy *one = build_yaml(V "allow: [{host: a.example, ports: "
					  "[443], upload: 1}]\n");
	struct policy *two = build_yaml(
		V "allow:\n- b.example\n- {host: a.example, ports: [443], "
		  "upload: 2}\n- {host: a.example, ports: [22], upload: 2}\n");

	(void)state;
	assert_true(rule_key(rule_for(one, "a.example", 443)) ==
		    rule_key(rule_for(two, "a.example", 443)));
	assert_true(rule_key(rule_for(one, "a.example", 443)) !=
		    rule_key(rule_for(two, "a.example", 22)));
	struct policy *three = build_yaml(
		V "allow:\n- {host: A.example., ports: [443], upload: 1}\n"
		  "- {host: a.example, ports: [80], methods: [GET]}\n"
		  "- {host: b.example, ports: [80]}\n"
		  "- {host: b.example, ports: [80], methods: [GET]}\n");
	assert_true(rule_key(rule_for(one, "a.example", 443)) ==
		    rule_key(rule_for(three, "a.example", 443)));
	assert_true(rule_key(rule_for(three, "a.example", 80)) !=
		    rule_key(rule_for(three, "b.example", 80)));
	policy_unref(three);
	policy_unref(one);
	policy_unref(two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_doors),
		cmocka_unit_test(test_direct_ports),
		cmocka_unit_test(test_expires),
		cmocka_unit_test(test_http),
		cmocka_unit_test(test_accessors),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
