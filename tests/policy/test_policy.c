/* SPDX-License-Identifier: Apache-2.0
 *
 * test_policy.c - verdicts, from one policy that has everything in it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/policy/build_helper.h"

static const char yaml[] = "version: 1\n"			 /* 1 */
			   "name: lab\n"			 /* 2 */
			   "allow:\n"				 /* 3 */
			   "  - api.example.com\n"		 /* 4 */
			   "  - \"*.wild.example\"\n"		 /* 5 */
			   "  - host: git.example.com\n"	 /* 6 */
			   "    ports: [22, 8000-8010]\n"	 /* 7 */
			   "  - host: git.wild.example\n"	 /* 8 */
			   "    ports: [22]\n"			 /* 9 */
			   "  - host: \"*.deep.wild.example\"\n" /* 10 */
			   "    ports: [9000]\n"		 /* 11 */
			   "  - host: git.example.com\n"	 /* 12 */
			   "    ports: [443]\n"			 /* 13 */
			   "  - address: 198.51.100.0/24\n"	 /* 14 */
			   "    ports: [8443]\n"		 /* 15 */
			   "  - address: 2001:db8::/32\n"	 /* 16 */
			   "  - address: 198.51.100.128/25\n"	 /* 17 */
			   "    ports: [22]\n"			 /* 18 */
			   "  - host: gone.example.com\n"	 /* 19 */
			   "  - host: half.example.com\n"	 /* 20 */
			   "  - host: m\xc3\xbcnchen.example\n"	 /* 21 */
			   "deny:\n"				 /* 22 */
			   "  - evil.wild.example\n"		 /* 23 */
			   "  - \"*.evil.wild.example\"\n"	 /* 24 */
			   "  - gone.example.com\n"		 /* 25 */
			   "  - host: half.example.com\n"	 /* 26 */
			   "    ports: [80]\n"			 /* 27 */
			   "  - address: 198.51.100.66\n"	 /* 28 */
			   "  - \"*.gone.example\"\n";		 /* 29 */

struct expect {
	const char *host, *address;
	uint16_t port;
	enum reason reason;
	const char *origin; /* of the rule; NULL: none */
};

static const struct expect expect[] = {
	{ "api.example.com", NULL, 443, REASON_RULE, "p.yaml:4" },
	{ "api.example.com", NULL, 80, REASON_RULE, "p.yaml:4" },
	{ "api.example.com", NULL, 0, REASON_RULE, "p.yaml:4" },
	{ "api.example.com", NULL, 22, REASON_PORT, "p.yaml:4" },
	{ "example.com", NULL, 443, REASON_NOT_IN_POLICY, NULL },
	{ "x.api.example.com", NULL, 443, REASON_NOT_IN_POLICY, NULL },
	{ "evilapi.example.com", NULL, 443, REASON_NOT_IN_POLICY, NULL },
	{ "apixexample.com", NULL, 443, REASON_NOT_IN_POLICY, NULL },
	{ "api.example.com.evil.org", NULL, 0, REASON_NOT_IN_POLICY, NULL },
	{ "com", NULL, 0, REASON_NOT_IN_POLICY, NULL },
	/* wildcards: any depth, whole labels, not the apex */
	{ "a.wild.example", NULL, 443, REASON_RULE, "p.yaml:5" },
	{ "c.b.a.wild.example", NULL, 443, REASON_RULE, "p.yaml:5" },
	{ "wild.example", NULL, 443, REASON_NOT_IN_POLICY, NULL },
	{ "evilwild.example", NULL, 443, REASON_NOT_IN_POLICY, NULL },
	{ "a.wild.example", NULL, 8443, REASON_PORT, "p.yaml:5" },
	/* several rules for one pattern add up */
	{ "git.example.com", NULL, 22, REASON_RULE, "p.yaml:6" },
	{ "git.example.com", NULL, 8000, REASON_RULE, "p.yaml:6" },
	{ "git.example.com", NULL, 8010, REASON_RULE, "p.yaml:6" },
	{ "git.example.com", NULL, 8011, REASON_PORT, "p.yaml:6" },
	{ "git.example.com", NULL, 7999, REASON_PORT, "p.yaml:6" },
	{ "git.example.com", NULL, 443, REASON_RULE, "p.yaml:12" },
	/* the most specific pattern decides alone */
	{ "git.wild.example", NULL, 22, REASON_RULE, "p.yaml:8" },
	{ "git.wild.example", NULL, 443, REASON_PORT, "p.yaml:8" },
	{ "a.deep.wild.example", NULL, 9000, REASON_RULE, "p.yaml:10" },
	{ "a.deep.wild.example", NULL, 443, REASON_PORT, "p.yaml:10" },
	{ "deep.wild.example", NULL, 443, REASON_RULE, "p.yaml:5" },
	/* deny wins, over exact names too */
	{ "evil.wild.example", NULL, 443, REASON_DENY_RULE, "p.yaml:23" },
	{ "evil.wild.example", NULL, 0, REASON_DENY_RULE, "p.yaml:23" },
	{ "x.evil.wild.example", NULL, 0, REASON_DENY_RULE, "p.yaml:24" },
	{ "gone.example.com", NULL, 443, REASON_DENY_RULE, "p.yaml:25" },
	{ "gone.example.com", NULL, 22, REASON_DENY_RULE, "p.yaml:25" },
	{ "half.example.com", NULL, 80, REASON_DENY_RULE, "p.yaml:26" },
	{ "half.example.com", NULL, 443, REASON_RULE, "p.yaml:20" },
	{ "half.example.com", NULL, 0, REASON_RULE, "p.yaml:20" },
	/* denied but not allowed either: the deny rule is the better reason */
	{ "x.gone.example", NULL, 443, REASON_DENY_RULE, "p.yaml:29" },
	{ "xn--mnchen-3ya.example", NULL, 443, REASON_RULE, "p.yaml:21" },
	/* literal addresses */
	{ NULL, "198.51.100.7", 8443, REASON_RULE, "p.yaml:14" },
	{ NULL, "198.51.100.7", 443, REASON_PORT, "p.yaml:14" },
	{ NULL, "198.51.100.200", 22, REASON_RULE, "p.yaml:17" },
	{ NULL, "198.51.100.200", 8443, REASON_RULE, "p.yaml:14" },
	{ NULL, "198.51.101.7", 8443, REASON_LITERAL_ADDRESS, NULL },
	{ NULL, "198.51.100.66", 8443, REASON_DENY_RULE, "p.yaml:28" },
	{ NULL, "2001:db8::7", 443, REASON_RULE, "p.yaml:16" },
	{ NULL, "2001:db9::7", 443, REASON_LITERAL_ADDRESS, NULL },
	{ NULL, "::ffff:198.51.100.7", 8443, REASON_LITERAL_ADDRESS, NULL },
	{ NULL, "::ffff:198.51.100.66", 8443, REASON_DENY_RULE, "p.yaml:28" },
	{ NULL, "64:ff9b::198.51.100.66", 443, REASON_DENY_RULE, "p.yaml:28" },
	{ NULL, "127.0.0.1", 443, REASON_LITERAL_ADDRESS, NULL },
	{ NULL, NULL, 443, REASON_NO_NAME, NULL },
};

static void check(const struct policy *policy, const struct expect *e)
{
	struct question question = { .host = e->host, .port = e->port };

	if (e->address)
		question.address = ip_of(e->address);
	struct verdict verdict = policy_decide(policy, &question);
	if (verdict.reason != e->reason)
		print_error("%s:%u gave %s\n", e->host ? e->host : e->address,
			    e->port, reason_word(verdict.reason));
	assert_int_equal(verdict.reason, e->reason);
	assert_int_equal(verdict.allow, e->reason == REASON_RULE);
	assert_int_equal(!verdict.rule, !e->origin);
	if (e->origin)
		assert_string_equal(rule_origin(verdict.rule), e->origin);
}

static void test_verdicts(void **state)
{
	struct policy *policy = build_yaml(yaml);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expect); i++)
		check(policy, &expect[i]);
	assert_string_equal(policy_name(policy), "lab");
	policy_unref(policy);
}

#define FILLERS 300

/* The same among so many others that names are looked up another way. */
static void test_verdicts_among_many(void **state)
{
	static char name[2 * FILLERS][40];
	struct piece piece[2 * FILLERS + 2] = { { BUNDLE_FILE, yaml } };
	struct policy *policy = NULL;
	struct policy_error err = { "" };

	(void)state;
	for (unsigned i = 0; i < FILLERS; i++) {
		snprintf(name[2 * i], sizeof(name[0]), "%sa%u.filler%u.example",
			 i % 3 ? "" : "*.", i, i % 7);
		snprintf(name[2 * i + 1], sizeof(name[0]), "%sd%u.filler.test",
			 i % 2 ? "" : "*.", i);
		piece[2 * i + 1] = (struct piece){ BUNDLE_ALLOW, name[2 * i] };
		piece[2 * i + 2] =
			(struct piece){ BUNDLE_DENY, name[2 * i + 1] };
	}
	assert_int_equal(build_pieces(piece, &policy, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(expect); i++)
		check(policy, &expect[i]);
	for (unsigned i = 0; i < FILLERS; i++) {
		const char *allowed = name[2 * i], *denied = name[2 * i + 1];
		char below[48];

		snprintf(below, sizeof(below), "x%s",
			 allowed + (*allowed == '*'));
		check(policy,
		      &(struct expect){ *allowed == '*' ? below : allowed, NULL,
					443, REASON_RULE, "--allow" });
		check(policy,
		      &(struct expect){ allowed + 2 * (*allowed == '*'), NULL,
					443,
					*allowed == '*' ? REASON_NOT_IN_POLICY
							: REASON_RULE,
					*allowed == '*' ? NULL : "--allow" });
		assert_true(policy_has_below(policy, strchr(allowed, '.') + 1));
		snprintf(below, sizeof(below), "x%s",
			 denied + (*denied == '*'));
		check(policy,
		      &(struct expect){ *denied == '*' ? below : denied, NULL,
					443, REASON_DENY_RULE, "--deny" });
	}
	assert_true(policy_has_below(policy, "wild.example"));
	assert_false(policy_has_below(policy, "filler.test"));
	assert_false(policy_has_below(policy, "example.net"));
	policy_unref(policy);
}

/* N1: nothing, an empty list, or only denials allow nothing. */
static void test_nothing(void **state)
{
	static const char *const texts[] = {
		"version: 1\n",
		"version: 1\nallow:\n",
		"version: 1\nallow: []\n",
		"version: 1\nallow: ~\ndeny: [a.b]\n",
	};
	static const struct expect no = { "ok.com", NULL, 443,
					  REASON_NOT_IN_POLICY, NULL };
	struct policy_error err;
	struct policy *policy = NULL;
	struct port_range range;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		policy = build_yaml(texts[i]);
		check(policy, &no);
		assert_int_equal(policy_ports(policy, "ok.com", 1, &range, 1),
				 0);
		policy_unref(policy);
	}
	assert_int_equal(policy_build(NULL, 0, &policy, &err), 0);
	check(policy, &no);
	assert_false(policy_has_below(policy, "com"));
	assert_string_equal(policy_digest(policy),
			    "e3b0c44298fc1c149afbf4c8996fb924"
			    "27ae41e4649b934ca495991b7852b855");
	policy_unref(policy);
}

static void check_ports(const struct policy *policy, const char *host,
			const struct port_range *want, size_t n)
{
	struct port_range range[8];

	assert_int_equal(
		policy_ports(policy, host, 1, range, ARRAY_SIZE(range)), n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(range[i].first, want[i].first);
		assert_int_equal(range[i].last, want[i].last);
	}
}

static void test_ports(void **state)
{
	struct policy *policy = build_yaml(
		"version: 1\n"
		"allow:\n"
		"  - { host: a.test, ports: [443, 1-100, 50-120, 121] }\n"
		"  - { host: a.test, ports: [65535] }\n"
		"  - { host: b.test, ports: [1-65535] }\n"
		"deny:\n"
		"  - { host: a.test, ports: [64, 443] }\n"
		"  - { host: \"*.test\", ports: [10-19] }\n"
		"  - { host: c.test, ports: [1-65535] }\n");
	static const struct port_range a[] = {
		{ 1, 9 }, { 20, 63 }, { 65, 121 }, { 65535, 65535 }
	};
	static const struct port_range b[] = { { 1, 9 }, { 20, 65535 } };
	static const struct expect all_denied = { "c.test", NULL, 0,
						  REASON_DENY_RULE,
						  "p.yaml:9" };
	struct port_range one;

	(void)state;
	check_ports(policy, "a.test", a, ARRAY_SIZE(a));
	check_ports(policy, "b.test", b, ARRAY_SIZE(b));
	check_ports(policy, "x.test", NULL, 0);
	assert_int_equal(policy_ports(policy, "a.test", 1, &one, 1), 1);
	assert_int_equal(one.last, 9);
	check(policy, &all_denied);
	policy_unref(policy);
}

/* What policy_ports() says is what policy_decide() says, for every port. */
static void test_ports_agree(void **state)
{
	static const char *const hosts[] = {
		"git.example.com", "half.example.com", "a.wild.example",
		"gone.example.com", "git.wild.example"
	};
	struct policy *policy = build_yaml(yaml);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		struct port_range range[8];
		size_t n = policy_ports(policy, hosts[i], 1, range, 8), at = 0;

		for (unsigned port = 1; port < 65536; port++) {
			struct question q = { .host = hosts[i],
					      .port = (uint16_t)port };
			while (at < n && range[at].last < port)
				at++;
			bool in = at < n && range[at].first <= port;
			assert_int_equal(policy_decide(policy, &q).allow, in);
		}
	}
	policy_unref(policy);
}

static void test_below(void **state)
{
	struct policy *policy = build_yaml(
		"version: 1\nallow: [a.b.example.com, \"*.wild.test\"]\n");
	static const struct {
		const char *host;
		bool below;
	} cases[] = {
		{ "b.example.com", true },
		{ "example.com", true },
		{ "com", true },
		{ "a.b.example.com", false },
		{ "x.example.com", false },
		{ "wild.test", true },
		{ "test", true },
		{ "a.wild.test", false },
		{ "ample.com", false },
		{ "org", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(policy_has_below(policy, cases[i].host),
				 cases[i].below);
	policy_unref(policy);
}

static void test_literals(void **state)
{
	struct policy *policy = build_yaml(yaml);
	char text[CIDR_TEXT_MAX];
	const struct port_range *ports;
	struct cidr cidr;
	size_t n = 0, count;
	bool seen = false;

	(void)state;
	while (policy_literal(policy, n, &cidr, &ports, &count)) {
		cidr_format(&cidr, text);
		if (strcmp(text, "198.51.100.0/24") == 0) {
			seen = true;
			assert_int_equal(count, 1);
			assert_int_equal(ports[0].first, 8443);
		}
		n++;
	}
	assert_int_equal(n, 3);
	assert_true(seen);
	policy_unref(policy);
}

/* An IPv6 range does not open what is embedded in its addresses. */
static void test_embedded_literals(void **state)
{
	struct policy *policy = build_yaml("version: 1\n"
					   "allow:\n"
					   "  - address: \"::/0\"\n"
					   "  - address: 10.0.0.0/8\n");
	static const struct expect cases[] = {
		{ NULL, "2606:4700::1", 443, REASON_RULE, "p.yaml:3" },
		{ NULL, "::ffff:169.254.169.254", 443, REASON_LITERAL_ADDRESS,
		  NULL },
		{ NULL, "::ffff:8.8.8.8", 443, REASON_LITERAL_ADDRESS, NULL },
		{ NULL, "64:ff9b::a9fe:a9fe", 443, REASON_LITERAL_ADDRESS,
		  NULL },
		{ NULL, "64:ff9b::8.8.8.8", 443, REASON_RULE, "p.yaml:3" },
		{ NULL, "::ffff:10.1.2.3", 443, REASON_RULE, "p.yaml:3" },
		{ NULL, "8.8.8.8", 443, REASON_LITERAL_ADDRESS, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(policy, &cases[i]);
	policy_unref(policy);
}

static void test_upstream(void **state)
{
	struct policy *policy = build_yaml("version: 1\n");
	struct ip ip;
	uint16_t port;

	(void)state;
	assert_true(policy_upstream_system(policy));
	assert_false(policy_upstream(policy, 0, &ip, &port));
	policy_unref(policy);

	policy = build_yaml("version: 1\ndns: { upstream: [system] }\n");
	assert_true(policy_upstream_system(policy));
	assert_false(policy_upstream(policy, 0, &ip, &port));
	policy_unref(policy);

	policy = build_yaml("version: 1\ndns:\n  upstream: [9.9.9.9, "
			    "127.0.0.1:5353, \"2620:fe::fe\", "
			    "\"[2620:fe::9]:54\"]\n");
	assert_false(policy_upstream_system(policy));
	assert_true(policy_upstream(policy, 0, &ip, &port));
	assert_int_equal(port, 53);
	assert_true(policy_upstream(policy, 1, &ip, &port));
	assert_int_equal(port, 5353);
	assert_true(policy_upstream(policy, 2, &ip, &port));
	assert_int_equal(ip.len, 16);
	assert_true(policy_upstream(policy, 3, &ip, &port));
	assert_int_equal(port, 54);
	assert_false(policy_upstream(policy, 4, &ip, &port));
	policy_unref(policy);
}

static void test_rules(void **state)
{
	struct policy *policy = policy_ref(build_yaml(yaml));
	struct question q = { .host = "a.wild.example", .port = 443 };
	const struct rule *wild = policy_decide(policy, &q).rule;
	unsigned index = rule_index(wild);

	(void)state;
	policy_unref(policy);
	assert_string_equal(rule_text(wild), "*.wild.example");
	assert_true(rule_is_wildcard(wild));
	q.host = "api.example.com";
	const struct rule *exact = policy_decide(policy, &q).rule;
	assert_false(rule_is_wildcard(exact));
	assert_int_not_equal(rule_index(exact), index);
	assert_int_equal(policy_limits(policy)->connections, 256);
	assert_int_equal(policy_limits(policy)->names, 4000);
	assert_int_equal(policy_limits(policy)->names_per_wildcard, 64);
	assert_int_equal(policy_limits(policy)->dns_per_second, 200);
	assert_string_equal(door_word(DOOR_TRANSPARENT), "transparent");
	policy_unref(policy);
	policy_unref(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_verdicts_among_many),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_ports_agree),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_literals),
		cmocka_unit_test(test_embedded_literals),
		cmocka_unit_test(test_upstream),
		cmocka_unit_test(test_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
