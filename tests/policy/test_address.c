/* SPDX-License-Identifier: Apache-2.0
 *
 * test_address.c - which answers may be dialled (P4; THREATS D6-D9).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/policy/build_helper.h"

struct answer {
	const char *ip;
	enum reason reason;
};

/* The machine itself: a public and a private network. */
static struct cidr uplink[2];

static int set_up(void **state)
{
	(void)state;
	return cidr_parse("93.184.216.0/24", &uplink[0]) &&
			       cidr_parse("2600:1f18::/32", &uplink[1])
		       ? 0
		       : -1;
}

static const struct rule *rule_for(const struct policy *policy,
				   const char *host, uint16_t port)
{
	struct question q = { .host = host, .port = port };
	struct verdict verdict = policy_decide(policy, &q);

	assert_true(verdict.allow);
	return verdict.rule;
}

static void check_all(const struct policy *policy, const struct rule *rule,
		      const struct answer *answer, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ip ip = ip_of(answer[i].ip);
		struct verdict v = policy_check_address(
			policy, rule, &ip, uplink, ARRAY_SIZE(uplink));

		if (v.reason != answer[i].reason)
			print_error("%s: %s\n", answer[i].ip,
				    reason_word(v.reason));
		assert_int_equal(v.reason, answer[i].reason);
		assert_int_equal(v.allow, answer[i].reason == REASON_RULE);
	}
}

#define OK  REASON_RULE
#define BAD REASON_FORBIDDEN_ADDRESS

static void test_ordinary(void **state)
{
	static const struct answer answers[] = {
		{ "1.1.1.1", OK },
		{ "2606:4700::1111", OK },
		{ "93.184.215.1", OK },
		{ "127.0.0.1", BAD },
		{ "0.0.0.0", BAD },
		{ "10.0.0.1", BAD },
		{ "100.64.0.1", BAD },
		{ "169.254.169.254", BAD },
		{ "172.16.0.1", BAD },
		{ "192.168.0.1", BAD },
		{ "198.18.0.1", BAD },
		{ "224.0.0.1", BAD },
		{ "240.0.0.1", BAD },
		{ "255.255.255.255", BAD },
		{ "168.63.129.16", BAD },
		{ "::", BAD },
		{ "::1", BAD },
		{ "fe80::1", BAD },
		{ "fec0::1", BAD },
		{ "fc00::1", BAD },
		{ "fd00:ec2::254", BAD },
		{ "ff02::1", BAD },
		{ "2001:db8::1", BAD },
		/* what is embedded is judged */
		{ "::ffff:10.0.0.1", BAD },
		{ "::ffff:169.254.169.254", BAD },
		{ "::127.0.0.1", BAD },
		{ "64:ff9b::10.0.0.1", BAD },
		{ "64:ff9b:1::a9fe:a9fe", BAD },
		{ "2002:7f00:1::", BAD },
		{ "2002:a00:1::1", BAD },
		{ "2001:0:0:0:0:0:f5ff:fffe", BAD }, /* Teredo, 10.0.0.1 */
		/* never useful, or only where a translator is known of */
		{ "64:ff9b::1.1.1.1", BAD },
		{ "2002:101:101::1", BAD },
		{ "::ffff:1.1.1.1", BAD },
		{ "::1.1.1.1", BAD },
		/* the machine's own networks, embedded too */
		{ "93.184.216.34", BAD },
		{ "64:ff9b::93.184.216.34", BAD },
		{ "2600:1f18::5", BAD },
	};
	struct policy *policy = build_yaml("version: 1\nallow: [ok.com]\n");

	(void)state;
	check_all(policy, rule_for(policy, "ok.com", 443), answers,
		  ARRAY_SIZE(answers));
	check_all(policy, NULL, answers, ARRAY_SIZE(answers));
	policy_unref(policy);
}

static void test_rule_addresses(void **state)
{
	static const struct answer answers[] = {
		{ "10.1.2.3", OK },
		{ "::ffff:10.1.2.3", OK },
		{ "64:ff9b::10.1.2.3", OK },
		{ "93.184.216.34", OK },
		{ "93.184.216.35", BAD },
		{ "192.168.0.1", BAD },
		{ "127.0.0.1", BAD },
		{ "1.1.1.1", OK },
		/* a translator's prefix permits nothing behind it */
		{ "64:ff9b:1::7f00:1", BAD },
	};
	static const struct answer other[] = { { "10.1.2.3", BAD } };
	struct policy *policy = build_yaml(
		"version: 1\n"
		"allow:\n"
		"  - host: db.corp.example\n"
		"    addresses: [10.0.0.0/8, 93.184.216.34, \"64:ff9b:1::/48\"]\n"
		"  - other.corp.example\n");

	(void)state;
	check_all(policy, rule_for(policy, "db.corp.example", 443), answers,
		  ARRAY_SIZE(answers));
	check_all(policy, rule_for(policy, "other.corp.example", 443), other,
		  1);
	policy_unref(policy);
}

static void test_permit(void **state)
{
	static const struct piece pieces[] = {
		{ BUNDLE_ALLOW, "ok.com" },
		{ BUNDLE_PERMIT, "192.168.0.0/16" },
		{ BUNDLE_PERMIT, "fd00::/8" },
		{ BUNDLE_PERMIT, "64:ff9b::/96" },
		{ BUNDLE_DENY, "192.168.7.0/24" },
		{ 0, NULL },
	};
	static const struct answer answers[] = {
		{ "192.168.1.1", OK },
		{ "::ffff:192.168.1.1", OK },
		{ "fd12::1", OK },
		{ "64:ff9b::1.1.1.1", OK },
		{ "64:ff9b::192.168.1.1", OK },
		{ "64:ff9b::10.0.0.1", BAD },
		{ "64:ff9b::93.184.216.34", BAD },
		{ "192.168.7.1", REASON_DENY_RULE },
		{ "::ffff:192.168.7.1", REASON_DENY_RULE },
		{ "10.0.0.1", BAD },
		{ "1.1.1.1", OK },
	};
	struct policy *policy = NULL;
	struct policy_error err;

	(void)state;
	assert_int_equal(build_pieces(pieces, &policy, &err), 0);
	check_all(policy, rule_for(policy, "ok.com", 443), answers,
		  ARRAY_SIZE(answers));
	policy_unref(policy);
}

/* A question without a port is answered by what the rules of one name permit
 * together; a connection only by the rule for its port. */
static void test_union(void **state)
{
	static const struct answer dns[] = { { "10.0.0.1", OK },
					     { "192.168.0.1", OK },
					     { "127.0.0.1", BAD } };
	static const struct answer at_22[] = { { "10.0.0.1", OK },
					       { "192.168.0.1", BAD } };
	static const struct answer at_443[] = { { "10.0.0.1", BAD },
						{ "192.168.0.1", BAD } };
	struct policy *policy = build_yaml(
		"version: 1\n"
		"allow:\n"
		"  - db.test\n"
		"  - { host: db.test, ports: [22], addresses: [10.0.0.0/8] }\n"
		"  - { host: db.test, ports: [23], addresses: "
		"[192.168.0.0/16] }\n"
		"  - one.test\n"
		"  - { host: one.test, ports: [22], addresses: [10.0.0.0/8] }\n");
	const struct rule *any = rule_for(policy, "db.test", 0);

	(void)state;
	check_all(policy, any, dns, ARRAY_SIZE(dns));
	assert_string_equal(rule_text(any), "db.test");
	assert_string_equal(rule_origin(any), "p.yaml:3");
	check_all(policy, rule_for(policy, "db.test", 22), at_22, 2);
	check_all(policy, rule_for(policy, "db.test", 443), at_443, 2);
	check_all(policy, rule_for(policy, "one.test", 0), at_22, 2);
	check_all(policy, rule_for(policy, "one.test", 443), at_443, 2);
	policy_unref(policy);
}

/* The rule of a literal address permits that address. */
static void test_literal_rule(void **state)
{
	struct policy *policy =
		build_yaml("version: 1\nallow: [{ address: 10.0.0.0/8 }]\n");
	struct question q = { .address = ip_of("10.0.0.1"), .port = 443 };
	static const struct answer answers[] = { { "10.0.0.1", OK },
						 { "192.168.0.1", BAD } };
	struct verdict verdict = policy_decide(policy, &q);

	(void)state;
	assert_true(verdict.allow);
	check_all(policy, verdict.rule, answers, 2);
	policy_unref(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ordinary),
		cmocka_unit_test(test_rule_addresses),
		cmocka_unit_test(test_permit),
		cmocka_unit_test(test_union),
		cmocka_unit_test(test_literal_rule),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
