/* SPDX-License-Identifier: Apache-2.0
 *
 * test_language_observe.c - `observe`, the option and the key: what would be
 * refused is allowed, and said; and `log`.
 */
#include "tests/policy/language_case.h"

static void test_observe(void **state)
{
	static const char yaml[] =
		V "mode: observe\n"
		  "allow:\n"
		  "- {host: a.example, ports: [80], methods: [GET], paths: "
		  "[/x]}\n"
		  "- {address: 192.0.2.1, ports: [22]}\n"
		  "- {host: old.example, expires: 2025-01-01}\n"
		  "deny:\n"
		  "- bad.example\n"
		  "- address: 10.0.0.0/8\n"
		  "- address: 9.9.9.9\n"
		  "- address: 192.0.2.1\n";
	struct policy *policy = build_yaml(yaml);
	struct ip inside = ip_of("10.0.0.1"), quad = ip_of("9.9.9.9");
	struct port_range range[4];

	(void)state;
	ROWS(yaml,
	     { { "any.test", 0, 25 },
	       true,
	       REASON_OBSERVE,
	       REASON_NOT_IN_POLICY,
	       0 },
	     { { "any.test", 0, 0 },
	       true,
	       REASON_OBSERVE,
	       REASON_NOT_IN_POLICY,
	       0 },
	     { { "bad.example", 0, 443 },
	       true,
	       REASON_OBSERVE,
	       REASON_DENY_RULE,
	       8 },
	     { { "a.example", 0, 80, 0, "GET", "/x" },
	       true,
	       REASON_RULE,
	       0,
	       4 },
	     { { "a.example", 0, 443 }, true, REASON_OBSERVE, REASON_PORT, 4 },
	     { { "a.example", 0, 80, 0, "PUT", "/x" },
	       true,
	       REASON_OBSERVE,
	       REASON_METHOD,
	       4 },
	     { { "a.example", 0, 80, 0, "GET", "/y" },
	       true,
	       REASON_OBSERVE,
	       REASON_PATH,
	       4 },
	     { { "a.example", 0, 80, 0, "GET", "/x%2f" },
	       false,
	       REASON_MALFORMED,
	       0,
	       4 },
	     { { "old.example", 0, 443 }, false, REASON_EXPIRED, 0, 6 },
	     { { NULL, "9.9.9.9", 443 }, false, REASON_LITERAL_ADDRESS, 0, 0 },
	     { { NULL, "10.0.0.1", 443 }, false, REASON_LITERAL_ADDRESS, 0, 0 },
	     { { NULL, "192.0.2.1", 22 },
	       true,
	       REASON_OBSERVE,
	       REASON_DENY_RULE,
	       11 },
	     { { NULL, NULL, 443 }, false, REASON_NO_NAME, 0, 0 });
	assert_true(policy_observes(policy));
	struct ask bad = { "bad.example", 0, 443 };
	struct verdict v = decide(policy, &bad);
	/* What is denied permits nothing, and protects what it protects. */
	assert_false(
		policy_check_address(policy, v.rule, &inside, NULL, 0).allow);
	v = policy_check_address(policy, NULL, &quad, NULL, 0);
	assert_true(v.allow);
	assert_int_equal(v.observed, REASON_DENY_RULE);
	assert_int_equal(policy_ports(policy, "x.test", NOW, range, 4), 1);
	assert_int_equal(range[0].first, 1);
	assert_int_equal(range[0].last, 65535);
	policy_unref(policy);
}

/* What is only observed must not reach the IPv4 that an IPv6 range hides. */
static void test_observe_embedded(void **state)
{
	static const char yaml[] =
		V "mode: observe\n"
		  "allow:\n"
		  "- {address: '64:ff9b::/96', ports: [443]}\n"
		  "- {address: '2002::/16', ports: [443], doors: [proxy]}\n"
		  "- {address: '::ffff:0:0/96', ports: [443]}\n"
		  "- {address: 10.1.2.3, ports: [443]}\n"
		  "- {address: 10.1.2.4, ports: [80], expires: 2025-01-01}\n";

	(void)state;
	ROWS(yaml,
	     { { NULL, "64:ff9b::169.254.169.254", 443 },
	       false,
	       REASON_LITERAL_ADDRESS,
	       0,
	       0 },
	     { { NULL, "64:ff9b::169.254.169.254", 80 },
	       false,
	       REASON_LITERAL_ADDRESS,
	       0,
	       0 },
	     { { NULL, "64:ff9b::127.0.0.1", 22 },
	       false,
	       REASON_LITERAL_ADDRESS,
	       0,
	       0 },
	     { { NULL, "2002:7f00:1::1", 443, DOOR_TRANSPARENT },
	       false,
	       REASON_LITERAL_ADDRESS,
	       0,
	       0 },
	     { { NULL, "::ffff:9.9.9.9", 80 },
	       false,
	       REASON_LITERAL_ADDRESS,
	       0,
	       0 },
	     { { NULL, "64:ff9b::10.1.2.4", 80 },
	       false,
	       REASON_LITERAL_ADDRESS,
	       0,
	       0 },
	     { { NULL, "64:ff9b::10.1.2.3", 80 },
	       true,
	       REASON_OBSERVE,
	       REASON_PORT,
	       4 },
	     { { NULL, "64:ff9b::9.9.9.9", 80 },
	       true,
	       REASON_OBSERVE,
	       REASON_PORT,
	       4 });
}

/* --- files that extend each other ---------------------------------------- */

static const struct log_settings *log_of(const char *a, const char *b,
					 struct policy **ret_policy)
{
	const struct file both[] = {
		{ BUNDLE_FILE, "a.yaml", a },
		{ BUNDLE_FILE, "b.yaml", b },
		{ BUNDLE_INCLUDED, "base.yaml",
		  V "log: {sign: every, rotate: 2 MB, rotate_after: 2m}\n" },
		{ 0, NULL, NULL },
	};
	struct policy_error err = { "" };

	policy_unref(*ret_policy);
	*ret_policy = NULL;
	assert_int_equal(build_files(both, ret_policy, &err), 0);
	return policy_log(*ret_policy);
}

static void test_log(void **state)
{
	static const char none[] = V "allow: []\n";
	struct policy *policy = NULL;
	const struct log_settings *log = log_of(none, none, &policy);

	(void)state;
	assert_false(log->sign_every || log->durable);
	assert_int_equal(log->rotate_bytes, 1000000000);
	assert_int_equal(log->rotate_s, 0);
	/* Side by side the stricter of each, whichever comes first. */
	for (int i = 0; i < 2; i++) {
		const char *a = V "log: {sign: every, durability: batch, "
				  "rotate: 64 KiB, rotate_after: 7d}\n";
		const char *b = V "log: {sign: batch, durability: record, "
				  "rotate: 5 GB, rotate_after: 24h}\n";

		log = log_of(i ? b : a, i ? a : b, &policy);
		assert_true(log->sign_every && log->durable);
		assert_int_equal(log->rotate_bytes, 65536);
		assert_int_equal(log->rotate_s, 86400);
	}
	/* A child's word wins, also for less. */
	log = log_of(V "extends: [./base.yaml]\n"
		       "log: {sign: batch, rotate: 1 TB}\n",
		     none, &policy);
	assert_false(log->sign_every || log->durable);
	assert_true(log->rotate_bytes == 1000000000000);
	assert_int_equal(log->rotate_s, 120);
	log = log_of(V "extends: [./base.yaml]\n", none, &policy);
	assert_true(log->sign_every);
	assert_int_equal(log->rotate_bytes, 2000000);
	policy_unref(policy);
}

static void test_observe_option(void **state)
{
	static const struct file files[] = {
		{ BUNDLE_FILE, "a.yaml", V "allow: []\n" },
		{ BUNDLE_OBSERVE, "--observe", "" },
		{ 0, NULL, NULL },
	};
	struct policy *policy = NULL;
	struct policy_error err = { "" };

	(void)state;
	assert_int_equal(build_files(files, &policy, &err), 0);
	assert_true(policy_observes(policy));
	policy_unref(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_observe),
		cmocka_unit_test(test_observe_embedded),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_observe_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
