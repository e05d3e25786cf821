/* SPDX-License-Identifier: Apache-2.0
 *
 * test_language.c - what each key of the language does to a verdict.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "tests/policy/build_helper.h"

/* A row says what it asks for; the rest is nothing. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define V     "version: 1\n"
#define NOW   1767225600 /* 2026-01-01T00:00:00Z */
#define LATER (NOW + 400 * 86400)

struct ask {
	const char *host, *address;
	uint16_t port;
	enum door door;
	const char *method, *path;
	int64_t now_s;
};

struct row {
	struct ask ask;
	bool allow;
	enum reason reason;
	enum reason observed;
	int line; /* of the rule that decided; 0: none */
};

static struct verdict decide(const struct policy *policy, const struct ask *ask)
{
	struct question q = { .host = ask->host,
			      .port = ask->port,
			      .door = ask->door,
			      .method = ask->method,
			      .path = ask->path,
			      .now_s = ask->now_s ? ask->now_s : NOW };

	if (ask->address)
		q.address = ip_of(ask->address);
	return policy_decide(policy, &q);
}

static int line_of(const struct rule *rule)
{
	const char *colon = rule ? strrchr(rule_origin(rule), ':') : NULL;

	return colon ? (int)strtol(colon + 1, NULL, 10) : 0;
}

static void check_rows(const char *yaml, const struct row *row, size_t n)
{
	struct policy *policy = build_yaml(yaml);

	for (size_t i = 0; i < n; i++) {
		struct verdict v = decide(policy, &row[i].ask);

		if (v.allow != row[i].allow || v.reason != row[i].reason ||
		    v.observed != row[i].observed ||
		    line_of(v.rule) != row[i].line)
			fail_msg("row %zu (%s:%u): %s %s, observed %s, line %d",
				 i, row[i].ask.host ? row[i].ask.host : "-",
				 row[i].ask.port, v.allow ? "allow" : "deny",
				 reason_word(v.reason), reason_word(v.observed),
				 line_of(v.rule));
	}
	policy_unref(policy);
}

#define ROWS(yaml, ...)                                            \
	do {                                                       \
		static const struct row rows_[] = { __VA_ARGS__ }; \
		check_rows(yaml, rows_, ARRAY_SIZE(rows_));        \
	} while (0)

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

static const struct rule *rule_for(const struct policy *policy,
				   const char *host, uint16_t port)
{
	struct ask ask = { host, NULL, port };

	return decide(policy, &ask).rule;
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

/* --- files that extend each other ---------------------------------------- */

struct file {
	enum bundle_kind kind;
	const char *path, *text;
};

static int build_files(const struct file *file, struct policy **ret_policy,
		       struct policy_error *err)
{
	struct bundle bundle = { 0 };
	int ret = 0;

	for (; file->path && ret == 0; file++)
		ret = bundle_add(&bundle, file->kind, file->path, file->text,
				 strlen(file->text));
	if (ret == 0)
		ret = policy_build(bundle.data, bundle.len, ret_policy, err);
	bundle_free(&bundle);
	return ret;
}

static void test_extends(void **state)
{
	static const struct file files[] = {
		{ BUNDLE_FILE, "d/child.yaml",
		  V "extends: [./base.yaml, ../team.yml, github]\n"
		    "limits: {connections: 9}\nallow: [c.example]\n" },
		{ BUNDLE_INCLUDED, "d/base.yaml",
		  V "name: base\nextends: [sub/deep.yaml]\n"
		    "limits: {connections: 3, names: 50, upload: 1 MB}\n"
		    "dns: {answers: real, upstream: [192.0.2.53]}\n"
		    "allow: [b.example]\ndeny: [no.example]\n" },
		{ BUNDLE_INCLUDED, "d/sub/deep.yaml",
		  V "limits: {names: 10, dns_per_second: 5}\n"
		    "allow: [deep.example]\n" },
		{ BUNDLE_INCLUDED, "team.yml",
		  V "extends: [d/base.yaml]\nlimits: {names: 40}\n"
		    "allow: [t.example]\n" },
		{ 0, NULL, NULL },
	};
	static const char *const hosts[] = { "c.example", "b.example",
					     "deep.example", "t.example",
					     "github.com" };
	struct policy *policy = NULL;
	struct policy_error err = { "" };
	struct ip ip;
	uint16_t port;

	(void)state;
	struct file other[ARRAY_SIZE(files)];
	memcpy(other, files, sizeof(files));
	other[3].text = V "dns: {upstream: [system]}\n";
	assert_int_equal(build_files(other, &policy, &err), -EINVAL);
	assert_non_null(strstr(err.text, "d/child.yaml:2:24: another file"));
	/* Two ways to one file are no contradiction. */
	assert_int_equal(build_files(files, &policy, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
		assert_non_null(rule_for(policy, hosts[i], 443));
	assert_string_equal(rule_origin(rule_for(policy, "deep.example", 443)),
			    "d/sub/deep.yaml:3");
	assert_string_equal(policy_name(policy), "base");
	/* The child's word, then the stricter of its parents'. */
	assert_int_equal(policy_limits(policy)->connections, 9);
	assert_int_equal(policy_limits(policy)->names, 40);
	assert_int_equal(policy_limits(policy)->dns_per_second, 5);
	assert_int_equal(policy_limits(policy)->budget[UP], 1000000);
	assert_true(policy_answers_real(policy));
	assert_true(policy_upstream(policy, 0, &ip, &port));
	assert_false(policy_upstream_system(policy));
	struct ask no = { "no.example", NULL, 443 };
	assert_int_equal(decide(policy, &no).reason, REASON_DENY_RULE);
	policy_unref(policy);
}

/* Files on one level: what one of them does not say, nobody says for it. */
static void test_side_by_side(void **state)
{
	static const struct file both[] = {
		{ BUNDLE_FILE, "a.yaml",
		  V "default: public\nmode: observe\nlimits: {names: 5}\n" },
		{ BUNDLE_FILE, "b.yaml",
		  V "default: public\nmode: observe\nlimits: {names: 9}\n" },
		{ 0, NULL, NULL },
	};
	struct file one[ARRAY_SIZE(both)];
	struct policy *policy = NULL;
	struct policy_error err = { "" };

	(void)state;
	assert_int_equal(build_files(both, &policy, &err), 0);
	assert_true(policy_is_public(policy));
	assert_true(policy_observes(policy));
	assert_int_equal(policy_limits(policy)->names, 5);
	policy_unref(policy);
	for (size_t i = 0; i < 2; i++) {
		memcpy(one, both, sizeof(both));
		one[i].text = V "allow: []\n";
		assert_int_equal(build_files(one, &policy, &err), 0);
		assert_false(policy_is_public(policy));
		assert_false(policy_observes(policy));
		policy_unref(policy);
	}
}

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

static void test_lists(void **state)
{
	static const struct file files[] = {
		{ BUNDLE_FILE, "d/p.yaml",
		  V "default: public\nallow: [{host: ok.ads.example, ports: "
		    "[22]}]\ndeny:\n- file: ads.txt\n- file: ../hosts\n"
		    "- file: ./ads.txt\n" },
		{ BUNDLE_LIST, "d/ads.txt", "ads.example\n||trk.example^\n" },
		{ BUNDLE_LIST, "hosts", "0.0.0.0 h.example\n" },
		{ 0, NULL, NULL },
	};
	static const struct row rows[] = {
		{ { "ads.example", 0, 443 }, false, REASON_DENY_RULE, 0, 5 },
		{ { "ads.example", 0, 0 }, false, REASON_DENY_RULE, 0, 5 },
		{ { "x.ads.example", 0, 443 }, false, REASON_DENY_RULE, 0, 5 },
		{ { "ok.ads.example", 0, 22 }, false, REASON_DENY_RULE, 0, 5 },
		{ { "a.trk.example", 0, 443 }, false, REASON_DENY_RULE, 0, 5 },
		{ { "h.example", 0, 443 }, false, REASON_DENY_RULE, 0, 6 },
		{ { "x.h.example", 0, 443 }, true, REASON_PUBLIC, 0, 0 },
		{ { "badsads.example", 0, 443 }, true, REASON_PUBLIC, 0, 0 },
	};
	struct policy *policy = NULL;
	struct policy_error err = { "" };
	struct port_range range[2];

	(void)state;
	assert_int_equal(build_files(files, &policy, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct verdict v = decide(policy, &rows[i].ask);

		assert_int_equal(v.allow, rows[i].allow);
		assert_int_equal(v.reason, rows[i].reason);
		assert_int_equal(line_of(v.rule), rows[i].line);
	}
	assert_string_equal(rule_text(rule_for(policy, "ads.example", 443)),
			    "d/ads.txt");
	assert_int_equal(policy_ports(policy, "ads.example", NOW, range, 2), 0);
	policy_unref(policy);

	struct file without[ARRAY_SIZE(files)];
	memcpy(without, files, sizeof(files));
	without[2] = without[3];
	assert_int_equal(build_files(without, &policy, &err), -EINVAL);
	assert_string_equal(err.text,
			    "d/p.yaml:6:9: bad file '../hosts', it was not "
			    "read");
}

static void add_many(struct bundle *bundle, enum bundle_kind kind,
		     const char *name, const char *head, const char *line,
		     unsigned n)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	fputs(head, f);
	while (n--)
		fputs(line, f);
	fclose(f);
	assert_int_equal(bundle_add(bundle, kind, name, text, len), 0);
}

/* One list, named again and again behind many rules. */
static void test_one_list_often(void **state)
{
	struct bundle bundle = { 0 };
	struct policy *policy = NULL;
	struct policy_error err = { "" };
	clock_t before = clock();

	(void)state;
	add_many(&bundle, BUNDLE_FILE, "p.yaml",
		 V "extends: [./a.yaml]\ndeny:\n", "- {file: l}\n", 30000);
	add_many(&bundle, BUNDLE_INCLUDED, "a.yaml", V "deny:\n", "- a.b\n",
		 80000);
	add_many(&bundle, BUNDLE_LIST, "l", "", "a.b\n", 1);
	assert_int_equal(policy_build(bundle.data, bundle.len, &policy, &err),
			 0);
	assert_true(clock() - before < 3 * CLOCKS_PER_SEC);
	assert_int_equal(policy_rules(policy), 80001);
	policy_unref(policy);
	bundle_free(&bundle);
}

/* Ten files that each extend the next one many times: refused, not waited for.
 */
static void test_fan_out(void **state)
{
	struct bundle bundle = { 0 };
	struct policy *policy = NULL;
	struct policy_error err = { "" };

	(void)state;
	for (int i = 0; i < 7; i++) {
		AUTO_FREE char *text = NULL;
		char name[16];
		size_t len = 0;
		FILE *f = open_memstream(&text, &len);

		snprintf(name, sizeof(name), "f%d.yaml", i);
		fputs(V "extends: [", f);
		for (int j = 0; j < 50; j++)
			fprintf(f, "%s./f%d.yaml", j ? ", " : "", i + 1);
		fputs("]\n", f);
		fclose(f);
		if (i == 6) {
			free(text);
			text = strdup(V);
			len = strlen(V);
		}
		assert_int_equal(bundle_add(&bundle,
					    i ? BUNDLE_INCLUDED : BUNDLE_FILE,
					    name, text, len),
				 0);
	}
	assert_int_equal(policy_build(bundle.data, bundle.len, &policy, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "more than 256 files"));
	bundle_free(&bundle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_doors),
		cmocka_unit_test(test_direct_ports),
		cmocka_unit_test(test_expires),
		cmocka_unit_test(test_http),
		cmocka_unit_test(test_public),
		cmocka_unit_test(test_public_beside_rules),
		cmocka_unit_test(test_denied_connect),
		cmocka_unit_test(test_observe),
		cmocka_unit_test(test_observe_embedded),
		cmocka_unit_test(test_public_beside),
		cmocka_unit_test(test_accessors),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_extends),
		cmocka_unit_test(test_side_by_side),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_observe_option),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_one_list_often),
		cmocka_unit_test(test_fan_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
