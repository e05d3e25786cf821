/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ceiling.c - an operator's policy above a user's: by examples.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/counters.h"
#include "policy/explain.h"
#include "tests/policy/build_helper.h"

#define NOW 1800000000

static struct verdict ask(const struct policy *policy, const char *host,
			  uint16_t port)
{
	const struct question q = { .host = host,
				    .port = port,
				    .door = port ? DOOR_CONNECT : DOOR_DNS,
				    .now_s = NOW };

	return policy_decide(policy, &q);
}

/* --- examples ------------------------------------------------------------ */

static void test_both_must_allow(void **state)
{
	struct policy *p = below("version: 1\nallow: [a.test, c.test]\n",
				 "version: 1\nallow:\n  - '*.test'\n"
				 "  - b.test\ndeny:\n  - c.test\n");
	struct verdict v = ask(p, "a.test", 443);

	(void)state;
	assert_true(v.allow);
	assert_int_equal(v.reason, REASON_RULE);
	assert_string_equal(rule_origin(v.rule), "p.yaml:2");
	assert_string_equal(rule_wildcard(v.rule), "*.test");
	assert_ptr_equal(v.rule, ask(p, "a.test", 443).rule);

	v = ask(p, "b.test", 443);
	assert_false(v.allow);
	assert_null(v.rule);

	v = ask(p, "c.test", 443);
	assert_false(v.allow);
	assert_int_equal(v.reason, REASON_DENY_RULE);
	assert_string_equal(rule_origin(v.rule), "ceiling /etc/c.yaml:6");
	assert_true(rule_of_ceiling(v.rule));
	policy_unref(p);
}

static void test_what_no_rule_mentions(void **state)
{
	struct policy *p = below("version: 1\ndefault: public\n",
				 "version: 1\nallow: [a.test]\n");
	struct verdict v = ask(p, "x.test", 443);

	(void)state;
	assert_false(v.allow);
	assert_int_equal(v.reason, REASON_NOT_IN_POLICY);
	assert_string_equal(rule_origin(v.rule), "ceiling /etc/c.yaml");
	assert_string_equal(rule_text(v.rule), "default: deny");

	v = ask(p, "a.test", 443);
	assert_true(v.allow);
	assert_int_equal(v.reason, REASON_RULE);
	assert_string_equal(rule_origin(v.rule), "ceiling /etc/c.yaml:2");
	/* 80 is the ceiling's alone. */
	assert_false(ask(p, "a.test", 80).allow);
	assert_false(policy_is_public(p));
	policy_unref(p);
}

static void test_observing_is_the_users(void **state)
{
	struct policy *p = below("version: 1\nmode: observe\nallow: [a.test]\n",
				 "version: 1\nallow: [b.test, "
				 "{host: m.test, ports: [80], methods: [GET]}]"
				 "\n");
	struct verdict v = ask(p, "c.test", 443);
	struct policy_error err = { "" };
	struct policy *none = NULL;

	(void)state;
	assert_false(v.allow);
	assert_int_equal(v.reason, REASON_NOT_IN_POLICY);
	v = ask(p, "b.test", 443);
	assert_true(v.allow);
	assert_int_equal(v.reason, REASON_OBSERVE);
	assert_int_equal(v.observed, REASON_NOT_IN_POLICY);
	assert_false(ask(p, "a.test", 443).allow);
	assert_true(policy_observes(p));
	/* The ceiling's rule has its say although the user's has none. */
	v = ask(p, "m.test", 80);
	assert_int_equal(v.reason, REASON_OBSERVE);
	assert_true(verdict_has_rule(&v));
	assert_true(verdict_judges_requests(&v));
	policy_unref(p);

	assert_int_equal(build_below("version: 1\n",
				     "version: 1\nmode: observe\n", &none,
				     &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "a ceiling enforces"));
}

static void test_settings(void **state)
{
	struct policy *p = below(
		"version: 1\ndns: {answers: real, upstream: [192.0.2.1]}\n"
		"limits: {names: 10, connections: 1000, upload: 1 MB}\n"
		"log: {rotate: 10 MB, rotate_after: 2d}\n",
		"version: 1\ndns: {upstream: ['192.0.2.9:5353']}\n"
		"limits: {names: 20, connections: 500, download: 2 MB, "
		"upload: 3 MB}\n"
		"log: {sign: every, durability: record, rotate_after: 1d}\n");
	const struct limits *l = policy_limits(p);
	const struct log_settings *log = policy_log(p);
	uint16_t port;
	struct ip ip;

	(void)state;
	assert_int_equal(l->names, 10);
	assert_int_equal(l->connections, 500);
	assert_int_equal(l->budget[UP], 1000000);
	assert_int_equal(l->budget[DOWN], 2000000);
	assert_true(log->sign_every && log->durable);
	assert_int_equal(log->rotate_bytes, 10000000);
	assert_int_equal(log->rotate_s, 86400);
	assert_false(policy_answers_real(p));
	assert_true(policy_upstream(p, 0, &ip, &port));
	assert_int_equal(port, 5353);
	assert_false(policy_upstream(p, 1, &ip, &port));
	assert_false(policy_upstream_system(p));
	policy_unref(p);

	p = below("version: 1\ndns: {upstream: [192.0.2.1]}\n", "version: 1\n");
	assert_true(policy_upstream(p, 0, &ip, &port));
	policy_unref(p);
}

static void test_connect(void **state)
{
	static const char to_lo[] =
		"version: 1\nallow: [{host: s.test, ports: [80], "
		"connect: '127.0.0.1:8080'}]\n";
	static const struct {
		const char *user, *ceiling;
		enum reason reason;
	} row[] = {
		{ to_lo, to_lo, REASON_RULE },
		{ "version: 1\nallow: [s.test]\n", to_lo, REASON_RULE },
		{ "version: 1\nallow: [s.test]\ndeny: [{address: 127.0.0.0/8}]\n",
		  to_lo, REASON_DENY_RULE },
		{ to_lo, "version: 1\nallow: [s.test]\n",
		  REASON_FORBIDDEN_ADDRESS },
		{ to_lo,
		  "version: 1\nallow: [s.test, {address: 127.0.0.1/32, "
		  "ports: [8080]}]\n",
		  REASON_RULE },
		{ to_lo,
		  "version: 1\nallow: [s.test, {address: 127.0.0.1/32, "
		  "ports: [8081]}]\n",
		  REASON_FORBIDDEN_ADDRESS },
		{ to_lo,
		  "version: 1\nallow: [{host: s.test, ports: [80], "
		  "connect: '127.0.0.1:8081'}]\n",
		  REASON_FORBIDDEN_ADDRESS },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct policy *p = below(row[i].user, row[i].ceiling);
		struct verdict v = ask(p, "s.test", 80);

		if (v.reason != row[i].reason)
			print_error("row %zu: %s\n", i, reason_word(v.reason));
		assert_int_equal(v.reason, row[i].reason);
		assert_int_equal(v.allow, row[i].reason == REASON_RULE);
		if (v.allow)
			assert_int_equal(rule_connect(v.rule)->port, 8080);
		policy_unref(p);
	}
}

/* A rule of the user's for each name is no way around a ceiling's budget. */
static void test_budgets(void **state)
{
	struct policy *p =
		below("version: 1\nallow:\n"
		      "  - {host: a.x.test, ports: [443], upload: 5 MB}\n"
		      "  - {host: b.x.test, ports: [443]}\n"
		      "  - {host: s.test, ports: [443], upload: 1 MB}\n",
		      "version: 1\nallow:\n"
		      "  - {host: '*.x.test', ports: [443], upload: 2 MB}\n"
		      "  - {host: s.test, ports: [443], upload: 3 MB}\n");
	FILE *file = tmpfile();
	struct counters *counters;
	struct meters a, b, s;

	(void)state;
	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), (off_t)counters_size()), 0);
	assert_int_equal(counters_attach(fileno(file), 0, &counters), 0);
	assert_int_equal(counters_meters(counters, policy_limits(p),
					 ask(p, "a.x.test", 443).rule, &a),
			 0);
	assert_int_equal(counters_meters(counters, policy_limits(p),
					 ask(p, "b.x.test", 443).rule, &b),
			 0);
	assert_int_equal(counters_meters(counters, policy_limits(p),
					 ask(p, "s.test", 443).rule, &s),
			 0);
	assert_int_equal(meters_room(&a, UP), 2000000);
	meters_spend(&a, UP, 500000);
	assert_int_equal(meters_room(&a, UP), 1500000);
	assert_int_equal(meters_room(&b, UP), 1500000);
	/* Rules of the same words in both count for themselves. */
	meters_spend(&s, UP, 100000);
	assert_int_equal(meters_room(&s, UP), 900000);
	assert_int_equal(rule_budget(ask(p, "s.test", 443).rule, UP), 1000000);
	counters_free(counters);
	fclose(file);
	policy_unref(p);
}

static void test_answers(void **state)
{
	static const char open[] = "version: 1\nallow: [{host: a.test, ports: "
				   "[443], addresses: [10.0.0.0/8]}]\n";
	static const char narrow[] =
		"version: 1\nallow: [a.test]\ndeny: [{address: 93.184.216.0/24}]\n";
	struct ip private = ip_of("10.1.2.3"), bad = ip_of("93.184.216.34"),
		  fine = ip_of("93.184.217.1");
	struct policy *p = below(open, narrow);
	struct verdict v = ask(p, "a.test", 443);
	struct verdict c = policy_check_address(p, v.rule, &private, NULL, 0);

	(void)state;
	assert_int_equal(c.reason, REASON_FORBIDDEN_ADDRESS);
	assert_true(rule_of_ceiling(c.rule));
	c = policy_check_address(p, v.rule, &bad, NULL, 0);
	assert_int_equal(c.reason, REASON_DENY_RULE);
	assert_true(rule_of_ceiling(c.rule));
	c = policy_check_address(p, v.rule, &fine, NULL, 0);
	assert_true(c.allow);
	assert_ptr_equal(c.rule, v.rule);
	policy_unref(p);

	p = below(open, open);
	v = ask(p, "a.test", 443);
	assert_true(policy_check_address(p, v.rule, &private, NULL, 0).allow);
	policy_unref(p);
}

/* --- bundles ------------------------------------------------------------- */

static void add(struct bundle *bundle, int kind, const char *origin)
{
	assert_int_equal(bundle_add(bundle, (enum bundle_kind)kind, origin,
				    "version: 1\n", 11),
			 0);
}

static void test_sent(void **state)
{
	static const struct {
		int kind;
		const char *origin, *has;
	} row[] = {
		{ BUNDLE_FILE, "agent.yaml", NULL },
		{ BUNDLE_LIST, "/home/\xc3\xa4/list", NULL },
		{ BUNDLE_CEILING, "x", "sets a ceiling" },
		{ 0, "x", "unknown here" },
		{ BUNDLE_CEILING + 1, "x", "unknown here" },
		{ BUNDLE_FILE, "", "can't be shown" },
		{ BUNDLE_FILE, "a\nb", "can't be shown" },
		{ BUNDLE_FILE, "a\x1b[31m", "can't be shown" },
		{ BUNDLE_FILE, "a\xff", "can't be shown" },
		{ BUNDLE_FILE, "ceiling /etc/c.yaml", "can't be shown" },
	};
	struct bundle many = { 0 };
	struct policy_error err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct bundle bundle = { 0 };

		err.text[0] = '\0';
		add(&bundle, BUNDLE_FILE, "ok.yaml");
		add(&bundle, row[i].kind, row[i].origin);
		assert_int_equal(bundle_check_sent(&bundle, &err),
				 row[i].has ? -EINVAL : 0);
		if (row[i].has && !strstr(err.text, row[i].has))
			fail_msg("row %zu: %s", i, err.text);
		bundle.len--;
		assert_int_equal(bundle_check_sent(&bundle, &err), -EINVAL);
		bundle_free(&bundle);
	}
	assert_int_equal(bundle_check_sent(&many, &err), 0);
	for (int i = 0; i < 4096; i++)
		add(&many, BUNDLE_ALLOW, "--allow");
	assert_int_equal(bundle_check_sent(&many, &err), 0);
	add(&many, BUNDLE_ALLOW, "--allow");
	assert_int_equal(bundle_check_sent(&many, &err), -EINVAL);
	bundle_free(&many);
}

static void test_one_ceiling_only(void **state)
{
	struct bundle user = { 0 }, over = { 0 }, both = { 0 };
	struct policy_error err = { "" };
	struct policy *policy = NULL;

	(void)state;
	add(&user, BUNDLE_FILE, "p.yaml");
	add(&over, BUNDLE_FILE, "c.yaml");
	assert_int_equal(bundle_add_ceiling(&user, &over, "c.yaml"), 0);
	assert_int_equal(bundle_add_ceiling(&user, &over, "c.yaml"), -EINVAL);
	assert_int_equal(bundle_add_ceiling(&over, &user, "c.yaml"), -EINVAL);
	/* Nor by hand. */
	add(&both, BUNDLE_FILE, "p.yaml");
	assert_int_equal(bundle_add(&both, BUNDLE_CEILING, "c.yaml",
				    (const char *)user.data, user.len),
			 0);
	assert_int_equal(policy_build(both.data, both.len, &policy, &err),
			 -EINVAL);
	assert_null(policy);
	over.len--;
	assert_int_equal(bundle_add_ceiling(&both, &over, "c.yaml"), -EINVAL);
	bundle_free(&user);
	bundle_free(&over);
	bundle_free(&both);
}

static void test_faults_of_the_ceiling(void **state)
{
	struct policy_error err = { "" };
	struct policy *policy = NULL;

	(void)state;
	assert_int_equal(build_below("version: 1\n", "version: 1\nalow: []\n",
				     &policy, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "/etc/c.yaml:2:1"));
	assert_null(policy);
}

/* The gate builds from the same bytes, and so does the digest. */
static void test_digest(void **state)
{
	static const char user[] = "version: 1\nallow: [a.test]\n";
	struct policy *alone = build_yaml(user);
	struct policy *p = below(user, "version: 1\nallow: [a.test]\n");
	struct policy *q = below(user, "version: 1\nallow: [b.test]\n");

	(void)state;
	assert_string_not_equal(policy_digest(p), policy_digest(q));
	assert_string_not_equal(policy_digest(p), policy_digest(alone));
	policy_unref(alone);
	policy_unref(p);
	policy_unref(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_must_allow),
		cmocka_unit_test(test_what_no_rule_mentions),
		cmocka_unit_test(test_observing_is_the_users),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_budgets),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_sent),
		cmocka_unit_test(test_one_ceiling_only),
		cmocka_unit_test(test_faults_of_the_ceiling),
		cmocka_unit_test(test_digest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
