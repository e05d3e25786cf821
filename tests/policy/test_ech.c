/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ech.c - `tls.ech`: what a rule says of encrypted ClientHellos, alone,
 * below a ceiling, and where nothing is said; and who tells people about it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/diff.h"
#include "policy/ech.h"
#include "policy/explain.h"
#include "policy/explain_rule.h"
#include "policy/lint.h"
#include "tests/policy/build_helper.h"

#define V     "version: 1\n"
#define FRONT "cloudflare-ech.com"

static struct verdict ask(const struct policy *policy, const char *host)
{
	const struct question q = { .host = host,
				    .port = 443,
				    .door = DOOR_CONNECT };

	return policy_decide(policy, &q);
}

/* May a hello with ECH and the outer name @sni pass to @host? */
static bool passes(const struct policy *policy, const char *sni,
		   const char *host)
{
	struct verdict verdict = ask(policy, host);

	assert_true(verdict.allow);
	return !policy_ech_fault(&verdict, sni, host);
}

static void test_fronts(void **state)
{
	static const struct {
		const char *host;
		bool front, below;
	} rows[] = {
		{ FRONT, true, true },	     { "x." FRONT, true, true },
		{ "x" FRONT, false, false }, { "ech.com", false, false },
		{ "com", false, true },	     { "cover.defo.ie", true, true },
		{ "defo.ie", false, true },  { "efo.ie", false, false },
		{ "a.test", false, false },  { "", false, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct ech_front *front = ech_front(rows[i].host);

		assert_int_equal(front != NULL, rows[i].front);
		assert_int_equal(ech_front_below(rows[i].host), rows[i].below);
		if (front)
			assert_true(strlen(front->source) > 10);
	}
}

static void test_rule(void **state)
{
	struct policy *p = build_yaml(V "allow:\n"
					"  - a.test\n"
					"  - " FRONT "\n"
					"  - {host: '*.may.test', tls: {ech: "
					"allow}}\n"
					"  - {host: cover.defo.ie, tls: {ech: "
					"allow}}\n"
					"  - {host: no.test, tls: {ech: deny}}"
					"\n"
					"  - {host: empty.test, tls: {}}\n");

	(void)state;
	/* Nothing said: GREASE passes, another outer name or a front do not. */
	assert_true(passes(p, "a.test", "a.test"));
	assert_false(passes(p, "b.test", "a.test"));
	assert_false(passes(p, FRONT, "a.test"));
	assert_false(passes(p, "", "a.test"));
	assert_false(passes(p, FRONT, FRONT));
	assert_true(passes(p, "empty.test", "empty.test"));
	assert_false(passes(p, "a.test", "empty.test"));
	assert_true(passes(p, "x.may.test", "x.may.test"));
	assert_true(passes(p, "cover.defo.ie", "cover.defo.ie"));
	assert_false(passes(p, "no.test", "no.test"));
	policy_unref(p);
}

/* No rule is the default: also where a rule would refuse and is observed. */
static void test_without_rule(void **state)
{
	struct policy *p = build_yaml(V "default: public\n");

	(void)state;
	assert_true(passes(p, "a.test", "a.test"));
	assert_false(passes(p, FRONT, FRONT));
	policy_unref(p);

	p = build_yaml(V "mode: observe\nallow:\n"
			 "  - {host: a.test, ports: [8443], tls: {ech: allow}}"
			 "\n  - {host: no.test, tls: {ech: deny}}\n");
	assert_true(passes(p, "b.test", "b.test"));
	assert_false(passes(p, FRONT, FRONT));
	assert_false(passes(p, FRONT, "a.test"));
	assert_false(passes(p, "no.test", "no.test"));
	policy_unref(p);
}

/* At an address there is no name to differ from. */
static void test_address(void **state)
{
	struct policy *p =
		build_yaml(V "allow:\n"
			     "  - {address: 192.0.2.1}\n"
			     "  - {address: 192.0.2.2, tls: {ech: deny}}\n"
			     "  - {address: 192.0.2.3, tls: {ech: allow}}\n");
	static const struct {
		const char *ip, *sni;
		bool pass;
	} rows[] = {
		{ "192.0.2.1", "", true },     { "192.0.2.1", "a.test", true },
		{ "192.0.2.1", FRONT, false }, { "192.0.2.2", "", false },
		{ "192.0.2.3", FRONT, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct question q = { .port = 443, .door = DOOR_TRANSPARENT };
		struct verdict v;

		assert_true(ip_parse(rows[i].ip, &q.address));
		v = policy_decide(p, &q);
		assert_true(v.allow);
		assert_int_equal(!policy_ech_fault(&v, rows[i].sni, NULL),
				 rows[i].pass);
	}
	policy_unref(p);
}

/* Every pair of words: the stricter one, whoever says it. */
static void test_ceiling(void **state)
{
	static const char *const said[] = { "", ", tls: {ech: allow}",
					    ", tls: {ech: deny}" };

	(void)state;
	for (size_t user = 0; user < 3; user++)
		for (size_t over = 0; over < 3; over++) {
			char mine[200], above[200];
			struct policy *p;
			const bool deny = user == ECH_DENY || over == ECH_DENY;

			snprintf(mine, sizeof(mine),
				 V "allow:\n  - {host: " FRONT "%s}\n",
				 said[user]);
			snprintf(above, sizeof(above),
				 V "allow:\n  - {host: '*.com'%s}\n",
				 said[over]);
			p = below(mine, above);
			assert_int_equal(passes(p, FRONT, FRONT),
					 user == ECH_ALLOW &&
						 over == ECH_ALLOW);
			/* What no front takes in is only denied by a word. */
			assert_int_equal(
				!policy_ech_fault(
					&(struct verdict){ true, REASON_RULE,
							   ask(p, FRONT).rule,
							   REASON_RULE },
					"a.test", "a.test"),
				!deny);
			policy_unref(p);
		}
}

/* Who is allowed by no rule of his own has not allowed ECH either. */
static void test_ceiling_public(void **state)
{
	struct policy *p =
		below(V "default: public\n",
		      V "allow:\n  - {host: '*.com', tls: {ech: allow}}\n");

	(void)state;
	assert_false(passes(p, FRONT, FRONT));
	policy_unref(p);
	p = below(V "allow:\n  - {host: " FRONT ", tls: {ech: allow}}\n",
		  V "default: public\n");
	assert_false(passes(p, FRONT, FRONT));
	policy_unref(p);
	p = below(V "default: public\n",
		  V "allow:\n  - {host: '*.com', tls: {ech: deny}}\n");
	assert_false(passes(p, "a.com", "a.com"));
	policy_unref(p);
}

static size_t lint_of(const char *yaml, const char *code)
{
	struct policy *p = build_yaml(yaml);
	struct findings found;
	size_t n = 0;

	assert_int_equal(policy_lint(p, 1800000000, &found), 0);
	for (size_t i = 0; i < found.count; i++)
		n += strcmp(found.at[i].info->word, code) == 0;
	findings_free(&found);
	policy_unref(p);
	return n;
}

static void test_lint(void **state)
{
	(void)state;
	assert_int_equal(lint_of(V "allow:\n - {host: " FRONT ", tls: {ech: "
				   "allow}}\n",
				 "ech"),
			 1);
	assert_int_equal(lint_of(V "allow:\n - {host: '*.defo.ie', tls: {ech: "
				   "allow}}\n",
				 "ech"),
			 1);
	assert_int_equal(lint_of(V "allow:\n - {host: a.test, tls: {ech: "
				   "allow}}\n - {host: " FRONT "}\n"
				   " - {host: '*.defo.ie', tls: {ech: deny}}\n",
				 "ech"),
			 0);
	assert_int_equal(lint_of(V "allow:\n - {host: " FRONT ", tls: {ech: "
				   "allow}, note: 'lint-ok: ech'}\n",
				 "ech"),
			 0);
}

static void test_described(void **state)
{
	struct policy *p = build_yaml(
		V "allow:\n - {host: a.test, tls: {ech: deny}}\n"
		  " - {host: b.test, protocol: tls, tls: {ech: allow}}\n");
	char text[200];

	(void)state;
	rule_describe(policy_rule(p, 0), text, sizeof(text));
	assert_non_null(strstr(text, "encrypted ClientHello refused"));
	rule_describe(policy_rule(p, 1), text, sizeof(text));
	assert_string_equal(text, "TLS; encrypted ClientHello allowed");
	policy_unref(p);
}

/* What `explain` says of TLS to @target, by CONNECT. */
static const char *remark_of(const struct policy *policy, const char *target)
{
	static struct explanation e;
	struct inquiry inquiry = { .now_s = 1800000000 };

	assert_null(inquiry_parse(target, &inquiry));
	explain(policy, &inquiry, &e);
	for (size_t i = 0; i < e.count; i++)
		if (e.row[i].door == DOOR_CONNECT && e.row[i].port == 443) {
			assert_true(e.row[i].verdict.allow);
			return e.row[i].remark ? e.row[i].remark : "";
		}
	fail();
	return NULL;
}

static void test_explained(void **state)
{
	struct policy *p = build_yaml(
		V "allow:\n - {host: a.test, tls: {ech: deny}}\n - b.test\n"
		  " - " FRONT "\n - {address: 192.0.2.1}\n"
		  " - {address: 192.0.2.2, tls: {ech: deny}}\n");

	(void)state;
	assert_string_equal(remark_of(p, "a.test"),
			    "TLS, with this name and without ECH");
	assert_string_equal(remark_of(p, "https://a.test/"), "without ECH");
	assert_string_equal(remark_of(p, "b.test"), "TLS, with this name");
	assert_string_equal(remark_of(p, "https://b.test/"), "");
	assert_string_equal(remark_of(p, "https://" FRONT "/"), "without ECH");
	assert_string_equal(remark_of(p, "https://192.0.2.1/"), "");
	assert_string_equal(remark_of(p, "https://192.0.2.2/"), "without ECH");
	policy_unref(p);
}

static void check_diff(const char *was, const char *is, enum diff_way way)
{
	char yaml[2][200];
	struct policy *p[2];
	struct differences d;
	bool found = false;

	for (int i = 0; i < 2; i++) {
		snprintf(yaml[i], sizeof(yaml[i]),
			 V "allow:\n - {host: a.test%s}\n", i ? is : was);
		p[i] = build_yaml(yaml[i]);
	}
	assert_int_equal(policy_diff(p[0], p[1], 1800000000, &d), 0);
	for (size_t i = 0; i < d.count; i++)
		found |= d.at[i].way == way && d.at[i].detail &&
			 strstr(d.at[i].detail, "encrypted ClientHello");
	assert_true(found);
	differences_free(&d);
	policy_unref(p[0]);
	policy_unref(p[1]);
}

static void test_diff(void **state)
{
	(void)state;
	check_diff("", ", tls: {ech: deny}", DIFF_NARROWER);
	check_diff("", ", tls: {ech: allow}", DIFF_WIDER);
	check_diff(", tls: {ech: deny}", ", tls: {ech: allow}", DIFF_WIDER);
	check_diff(", tls: {ech: allow}", "", DIFF_NARROWER);
}

static void test_words(void **state)
{
	static const char *const bad[] = {
		"allow: [{host: a.test, tls: deny}]\n",
		"allow: [{host: a.test, tls: {ech: maybe}}]\n",
		"allow: [{host: a.test, tls: {ech: [deny]}}]\n",
		"allow: [{host: a.test, tls: {ehc: deny}}]\n",
		"allow: [{host: a.test, tls: {ech: deny, ech: deny}}]\n",
		"allow: [{host: a.test, ports: [8080], protocol: http, tls: "
		"{ech: deny}}]\n",
		"allow: [{host: a.test, ports: [8080], paths: [/a], tls: "
		"{ech: deny}}]\n",
		"deny: [{host: a.test, tls: {ech: deny}}]\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct policy *policy = NULL;
		struct policy_error err = { "" };
		char yaml[200];
		struct piece piece[] = { { BUNDLE_FILE, yaml }, { 0, NULL } };

		snprintf(yaml, sizeof(yaml), V "%s", bad[i]);
		assert_int_equal(build_pieces(piece, &policy, &err), -EINVAL);
		assert_non_null(strstr(err.text, "p.yaml:2:"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fronts),
		cmocka_unit_test(test_rule),
		cmocka_unit_test(test_without_rule),
		cmocka_unit_test(test_address),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_ceiling_public),
		cmocka_unit_test(test_lint),
		cmocka_unit_test(test_described),
		cmocka_unit_test(test_explained),
		cmocka_unit_test(test_diff),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
