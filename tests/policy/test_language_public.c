/* SPDX-License-Identifier: Apache-2.0
 *
 * test_language_public.c - `public`, and what stays refused beside it.
 */
#include "tests/policy/language_case.h"

static void test_public(void **state)
{
	static const char yaml[] =
		V "default: public\n"
		  "allow:\n"
		  "- {host: git.example, ports: [22]}\n"
		  "- {host: web.example, ports: [443], doors: [proxy]}\n"
		  "- {host: old.example, expires: 2025-01-01}\n"
		  "deny:\n"
		  "- '*.evil.example'\n"
		  "- {host: half.example, ports: [443]}\n";
	struct policy *policy = build_yaml(yaml);
	struct port_range range[4];
	struct ip private_ip = ip_of("10.0.0.1"), ip = ip_of("9.9.9.9");

	(void)state;
	ROWS(yaml, { { "any.test", 0, 443 }, true, REASON_PUBLIC, 0, 0 },
	     { { "any.test", 0, 0 }, true, REASON_PUBLIC, 0, 0 },
	     { { "any.test", 0, 80 }, false, REASON_NOT_IN_POLICY, 0, 0 },
	     { { "intranet", 0, 443 }, false, REASON_NOT_IN_POLICY, 0, 0 },
	     { { "nas.local", 0, 443 }, false, REASON_NOT_IN_POLICY, 0, 0 },
	     { { "x.home.arpa", 0, 0 }, false, REASON_NOT_IN_POLICY, 0, 0 },
	     { { "x.onion", 0, 0 }, false, REASON_NOT_IN_POLICY, 0, 0 },
	     { { "any.test", 0, 22 }, false, REASON_NOT_IN_POLICY, 0, 0 },
	     { { "git.example", 0, 22 }, true, REASON_RULE, 0, 4 },
	     { { "git.example", 0, 443 }, true, REASON_PUBLIC, 0, 0 },
	     { { "git.example", 0, 80 }, false, REASON_PORT, 0, 4 },
	     { { "web.example", 0, 443, DOOR_TRANSPARENT },
	       false,
	       REASON_NOT_IN_POLICY,
	       0,
	       5 },
	     { { "old.example", 0, 443 }, false, REASON_EXPIRED, 0, 6 },
	     { { "x.evil.example", 0, 443 }, false, REASON_DENY_RULE, 0, 8 },
	     { { "x.evil.example", 0, 0 }, false, REASON_DENY_RULE, 0, 8 },
	     { { "half.example", 0, 443 }, false, REASON_DENY_RULE, 0, 9 },
	     { { NULL, "9.9.9.9", 443 }, false, REASON_LITERAL_ADDRESS, 0, 0 });
	assert_true(policy_is_public(policy));
	assert_false(
		policy_check_address(policy, NULL, &private_ip, NULL, 0).allow);
	assert_true(policy_check_address(policy, NULL, &ip, NULL, 0).allow);
	assert_int_equal(policy_ports(policy, "any.test", NOW, range, 4), 1);
	assert_int_equal(range[0].first, 443);
	assert_int_equal(policy_ports(policy, "git.example", NOW, range, 4), 2);
	assert_int_equal(policy_ports(policy, "half.example", NOW, range, 4),
			 0);
	assert_int_equal(policy_ports(policy, "web.example", NOW, range, 4), 0);
	policy_unref(policy);
}

/* What rules say of 443 holds, also beside one that says nothing of it. */
static void test_public_beside_rules(void **state)
{
	(void)state;
	ROWS(V "default: public\n"
	       "allow:\n"
	       "- {host: web.example, ports: [443], doors: [proxy]}\n"
	       "- {host: web.example, ports: [22]}\n"
	       "- {host: old.example, ports: [443], expires: 2025-01-01}\n"
	       "- {host: old.example, ports: [22]}\n",
	     { { "web.example", 0, 443, DOOR_CONNECT },
	       true,
	       REASON_RULE,
	       0,
	       4 },
	     { { "web.example", 0, 443, DOOR_TRANSPARENT },
	       false,
	       REASON_PORT,
	       0,
	       5 },
	     { { "old.example", 0, 443 }, false, REASON_PORT, 0, 7 },
	     { { "old.example", 0, 22 }, true, REASON_RULE, 0, 7 });
}

/* No way around a denied range. */
static void test_denied_connect(void **state)
{
	static const char yaml[] =
		V "allow:\n"
		  "- {host: a.internal, ports: [80], connect: 127.0.0.1:8000}\n"
		  "- {host: b.internal, ports: [80], connect: 10.0.0.1:8000}\n"
		  "- {host: c.example, ports: [80], connect: 127.0.0.1:8000}\n"
		  "- {host: c.example, ports: [22]}\n"
		  "- {host: d.internal, ports: [80], "
		  "connect: '[::ffff:127.0.0.1]:8000'}\n"
		  "deny:\n"
		  "- {address: 127.0.0.0/8}\n";
	struct policy *policy = build_yaml(yaml);
	struct port_range range[4];

	(void)state;
	ROWS(yaml, { { "a.internal", 0, 80 }, false, REASON_DENY_RULE, 0, 9 },
	     { { "a.internal", 0, 0 }, false, REASON_DENY_RULE, 0, 9 },
	     { { "a.internal", 0, 22 }, false, REASON_PORT, 0, 3 },
	     { { "b.internal", 0, 80 }, true, REASON_RULE, 0, 4 },
	     { { "c.example", 0, 80 }, false, REASON_DENY_RULE, 0, 9 },
	     { { "c.example", 0, 22 }, true, REASON_RULE, 0, 6 },
	     { { "c.example", 0, 0 }, true, REASON_RULE, 0, 6 },
	     { { "d.internal", 0, 80 }, false, REASON_DENY_RULE, 0, 9 });
	assert_int_equal(policy_ports(policy, "a.internal", NOW, range, 4), 0);
	assert_int_equal(policy_ports(policy, "c.example", NOW, range, 4), 1);
	policy_unref(policy);
	/* Where it is only observed, it leads where the rule says. */
	ROWS(V "mode: observe\n"
	       "allow:\n"
	       "- {host: a.internal, ports: [80], connect: 127.0.0.1:8000}\n"
	       "deny:\n"
	       "- {address: 127.0.0.0/8}\n",
	     { { "a.internal", 0, 80 }, true, REASON_RULE, 0, 4 });
}

/* A rule for another port must not make public what one for 443 refuses. */
static void test_public_beside(void **state)
{
	static const char yaml[] =
		V "default: public\n"
		  "allow:\n"
		  "- {host: web.example, ports: [443], doors: [proxy]}\n"
		  "- {host: web.example, ports: [22]}\n"
		  "- {host: old.example, ports: [443], expires: 2025-01-01}\n"
		  "- {host: old.example, ports: [22]}\n";
	struct policy *policy = build_yaml(yaml);
	struct port_range range[4];

	(void)state;
	ROWS(yaml,
	     { { "web.example", 0, 443, DOOR_TRANSPARENT },
	       false,
	       REASON_PORT,
	       0,
	       5 },
	     { { "web.example", 0, 443, DOOR_CONNECT },
	       true,
	       REASON_RULE,
	       0,
	       4 },
	     { { "old.example", 0, 443 }, false, REASON_PORT, 0, 7 });
	assert_int_equal(policy_ports(policy, "web.example", NOW, range, 4), 1);
	assert_int_equal(range[0].last, 22);
	policy_unref(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_public),
		cmocka_unit_test(test_public_beside_rules),
		cmocka_unit_test(test_denied_connect),
		cmocka_unit_test(test_public_beside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
