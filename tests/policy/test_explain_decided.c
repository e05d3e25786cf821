/* SPDX-License-Identifier: Apache-2.0
 *
 * test_explain_decided.c - what is explained is what is decided.
 */
#include "tests/policy/explain_case.h"

/* --- what is explained is what is decided -------------------------------- */

#define V "version: 1\n"

static const char *const policies[] = {
	V
	"default: public\n"
	"allow:\n"
	" - {host: a.test, ports: [443], doors: [proxy]}\n"
	" - {host: a.test, ports: [80, 8080], methods: [GET], paths: [/v1/**]}\n"
	" - {host: b.test, expires: 2020-01-01}\n"
	"deny: [c.test, {host: '*.b.test', ports: [80]}]\n",
	V "mode: observe\n"
	  "allow:\n"
	  " - {host: a.test, ports: [80, 8080], paths: [/v1/*, /]}\n"
	  " - {host: '*.b.test', ports: [443], protocol: any}\n"
	  "deny: [{address: 9.0.0.0/8}, b.test]\n",
	V
	"allow:\n"
	" - '*.test'\n"
	" - {host: a.test, ports: [1-65535], protocol: tls}\n"
	" - {host: b.test, ports: [80], protocol: http, connect: 127.0.0.1:9}\n"
	" - {host: x.b.test, ports: [8080], connect: 9.9.9.9:9, doors: [proxy]}\n"
	" - {address: 9.9.0.0/16, ports: [80, 443, 8080]}\n"
	" - {address: '64:ff9b::/96', ports: [443]}\n"
	" - {address: 10.0.0.0/8, ports: [80], methods: [PUT], "
	"doors: [transparent]}\n"
	"deny: [{address: 9.9.9.0/24}, {host: c.test}]\n",
};

static void check_row(const struct policy *policy,
		      const struct inquiry *inquiry,
		      const struct explain_row *row)
{
	struct question q = { .host = *inquiry->host ? inquiry->host : NULL,
			      .address = inquiry->address,
			      .port = row->port,
			      .door = row->door,
			      .now_s = NOW };
	struct verdict v;

	/* A request is seen where plain HTTP is spoken, or may be. */
	if (row->port && inquiry->method &&
	    (row->door == DOOR_HTTP || inquiry->spoken == SPOKEN_HTTP ||
	     (inquiry->spoken == SPOKEN_UNKNOWN && row->port != 443))) {
		q.method = inquiry->method;
		q.path = *inquiry->path ? inquiry->path : "/";
	}
	v = policy_decide(policy, &q);
	if (!row->asked)
		return;
	if (row->verdict.allow)
		assert_true(v.allow);
	/* What a door finds out later. */
	if (row->verdict.reason == REASON_PROTOCOL ||
	    row->verdict.reason == REASON_FORBIDDEN_ADDRESS ||
	    (inquiry->address.len &&
	     row->verdict.observed == REASON_DENY_RULE)) {
		assert_true(v.allow);
		return;
	}
	assert_int_equal(row->verdict.allow, v.allow);
	assert_int_equal(row->verdict.reason, v.reason);
	assert_int_equal(row->verdict.observed, v.observed);
	assert_ptr_equal(row->verdict.rule, v.rule);
}

static void test_it_is_what_is_decided(void **state)
{
	static const char *const schemes[] = { "",	  "https://", "http://",
					       "wss://",  "ws://",    "ssh://",
					       "other://" };
	static const char *const hosts[] = {
		"a.test",	    "b.test",
		"x.b.test",	    "c.test",
		"y.x.b.test",	    "q.example",
		"9.9.9.9",	    "9.9.1.1",
		"10.1.1.1",	    "[64:ff9b::808:808]",
		"[64:ff9b::a00:1]", "[2600::1]",
	};
	static const char *const tails[] = { "",      ":80",	    ":443",
					     ":8080", ":8080/v1/x", ":80/v1",
					     ":80/" };
	static const char *const methods[] = { NULL, "GET", "PUT" };
	unsigned asked = 0;

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
		struct policy *policy = build_yaml(policies[p]);

		for (size_t i = 0;
		     i < ARRAY_SIZE(schemes) * ARRAY_SIZE(hosts) *
				 ARRAY_SIZE(tails) * ARRAY_SIZE(methods);
		     i++) {
			size_t n = i;
			struct inquiry inquiry = { .now_s = NOW };
			struct explanation e;
			char target[100];

			inquiry.method = methods[n % ARRAY_SIZE(methods)];
			n /= ARRAY_SIZE(methods);
			snprintf(target, sizeof(target), "%s%s%s",
				 schemes[n / ARRAY_SIZE(tails) %
					 ARRAY_SIZE(schemes)],
				 hosts[n / ARRAY_SIZE(tails) /
				       ARRAY_SIZE(schemes)],
				 tails[n % ARRAY_SIZE(tails)]);
			if (inquiry_parse(target, &inquiry) || inquiry.fault)
				continue;
			explain(policy, &inquiry, &e);
			for (size_t k = 0; k < e.count; k++, asked++)
				check_row(policy, &inquiry, &e.row[k]);
		}
		policy_unref(policy);
	}
	assert_true(asked > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_what_is_decided),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
