/* SPDX-License-Identifier: Apache-2.0
 *
 * test_explain.c - what is said of a verdict.
 */
#include "tests/policy/explain_case.h"

static const char yaml[] = "version: 1\n"
			   "allow:\n"
			   "  - api.test\n"
			   "  - '*.sub.test'\n"
			   "  - host: git.test\n"
			   "    ports: [22]\n"
			   "  - host: web.test\n"
			   "    ports: [80]\n"
			   "    methods: [GET]\n"
			   "    paths: [/v1/**]\n"
			   "  - host: proxy.test\n"
			   "    doors: [proxy]\n"
			   "  - host: any.test\n"
			   "    protocol: any\n"
			   "  - host: tls.test\n"
			   "    ports: [8443]\n"
			   "    protocol: tls\n"
			   "  - host: old.test\n"
			   "    expires: 2027-01-01\n"
			   "  - address: 9.9.9.0/24\n"
			   "    ports: [443]\n"
			   "  - address: 127.0.0.0/24\n"
			   "    ports: [443]\n"
			   "deny:\n"
			   "  - secret.sub.test\n"
			   "  - address: 9.9.9.128/25\n";

/* A letter for each row: '+' allowed, '-' refused, '.' not asked. */
static void letters(const struct explanation *e, char *buf)
{
	for (size_t i = 0; i < e->count; i++)
		*buf++ = !e->row[i].asked	   ? '.'
			 : e->row[i].verdict.allow ? '+'
						   : '-';
	*buf = '\0';
}

static const struct {
	const char *target, *method, *rows;
	bool reachable;
	enum reason last; /* of the last row */
} cases[] = {
	/* dns, then connect, http, socks, transparent of each port */
	{ "api.test", NULL, "++.++++++", true, REASON_RULE },
	{ "API.test.", NULL, "++.++++++", true, REASON_RULE },
	{ "api.test:443", NULL, "++.++", true, REASON_RULE },
	{ "api.test:80", NULL, "+++++", true, REASON_RULE },
	{ "api.test:22", NULL, "+----", false, REASON_PORT },
	{ "https://api.test/x?y#z", NULL, "++.++", true, REASON_RULE },
	{ "HTTPS://api.test", NULL, "++.++", true, REASON_RULE },
	{ "http://api.test/", NULL, "+++++", true, REASON_RULE },
	{ "http://api.test:443/", NULL, "+----", false, REASON_PROTOCOL },
	{ "https://api.test:80/", NULL, "+-.--", false, REASON_PROTOCOL },
	{ "wss://api.test/", NULL, "++.++", true, REASON_RULE },
	{ "ssh://git@git.test/o/r", NULL, "++.++", true, REASON_RULE },
	{ "ssh://git.test:443", NULL, "+-.--", false, REASON_PORT },
	{ "git.test", NULL, "+-.------", false, REASON_PORT },
	{ "a.b.sub.test:80", NULL, "+++++", true, REASON_RULE },
	{ "sub.test", NULL, "--.------", false, REASON_NOT_IN_POLICY },
	{ "secret.sub.test:80", NULL, "-----", false, REASON_DENY_RULE },
	{ "web.test:80", NULL, "+++++", true, REASON_RULE },
	{ "http://web.test/v1/x", "GET", "+++++", true, REASON_RULE },
	{ "http://web.test/v1/x", "PUT", "+----", false, REASON_METHOD },
	{ "https://web.test:80/v1/x", "PUT", "+-.--", false, REASON_PROTOCOL },
	{ "https://api.test/", "PUT", "++.++", true, REASON_RULE },
	{ "ws://web.test/v1/x", NULL, "+----", false, REASON_PROTOCOL },
	{ "ws://api.test/v1/x", NULL, "+++++", true, REASON_RULE },
	{ "http://web.test/v2", "GET", "+----", false, REASON_PATH },
	{ "http://web.test/v1/a%2fb", "GET", "+----", false, REASON_MALFORMED },
	{ "proxy.test:80", NULL, "-+++-", true, REASON_NOT_IN_POLICY },
	{ "ssh://any.test:443", NULL, "++.++", true, REASON_RULE },
	{ "tls.test:8443", NULL, "++-++", true, REASON_RULE },
	{ "old.test:80", NULL, "-----", false, REASON_EXPIRED },
	{ "b\xc3\xbc"
	  "cher.sub.test:80",
	  NULL, "+++++", true, REASON_RULE },

	/* Addresses. */
	{ "9.9.9.9:443", NULL, ".+.++", true, REASON_RULE },
	{ "9.9.9.9", NULL, ".+.++----", true, REASON_PORT },
	{ "9.9.9.129:443", NULL, ".-.--", false, REASON_DENY_RULE },
	{ "127.0.0.1:443", NULL, ".+.++", true, REASON_RULE },
	{ "10.0.0.1:443", NULL, ".-.--", false, REASON_LITERAL_ADDRESS },
	{ "[::1]", NULL, ".-.------", false, REASON_LITERAL_ADDRESS },
	{ "::1", NULL, ".-.------", false, REASON_LITERAL_ADDRESS },
	{ "http://[::ffff:9.9.9.9]/", NULL, ".----", false,
	  REASON_LITERAL_ADDRESS },

	/* Addresses in disguise, and names that are none. */
	{ "0x7f.1", NULL, "---------", false, REASON_LITERAL_ADDRESS },
	{ "2130706433", NULL, "---------", false, REASON_LITERAL_ADDRESS },
	{ "0177.0.0.1:443", NULL, "-----", false, REASON_LITERAL_ADDRESS },
	{ "http://127.1/", NULL, "-----", false, REASON_LITERAL_ADDRESS },
	{ "http://0x7f000001:80/", NULL, "-----", false,
	  REASON_LITERAL_ADDRESS },
	{ "https://api.test@evil.test/", NULL, "-----", false,
	  REASON_MALFORMED },
	{ "https://evil.test\\@api.test/", NULL, "-----", false,
	  REASON_MALFORMED },
	{ "https://u:p@api.test/", NULL, "-----", false, REASON_MALFORMED },
	{ "git@api.test", NULL, "---------", false, REASON_MALFORMED },
	{ "a..test", NULL, "---------", false, REASON_MALFORMED },
	{ "a b.test", NULL, "---------", false, REASON_MALFORMED },
	{ "api%2etest", NULL, "---------", false, REASON_MALFORMED },
	{ "api.test:0", NULL, "---------", false, REASON_MALFORMED },
	{ "api.test:65536", NULL, "---------", false, REASON_MALFORMED },
	{ "api.test:", NULL, "---------", false, REASON_MALFORMED },
	{ "api.test:0443", NULL, "---------", false, REASON_MALFORMED },
	{ "[::1", NULL, "---------", false, REASON_MALFORMED },
	{ "[::1]:", NULL, "---------", false, REASON_MALFORMED },
	{ "[::1]x", NULL, "---------", false, REASON_MALFORMED },
	{ "[127.0.0.1]:80", NULL, "---------", false, REASON_MALFORMED },
	{ "1:2:3", NULL, "---------", false, REASON_MALFORMED },
};

static void ask(const struct policy *policy, const char *target,
		const char *method, struct explanation *ret)
{
	struct inquiry inquiry = { .method = method, .now_s = NOW };

	assert_null(inquiry_parse(target, &inquiry));
	assert_ptr_equal(inquiry.method, method);
	/* One meaning: a name, an address or malformed. */
	assert_int_equal(
		!!*inquiry.host + !!inquiry.address.len + !!inquiry.fault, 1);
	explain(policy, &inquiry, ret);
}

static void test_cases(void **state)
{
	struct policy *policy = build_yaml(yaml);
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct explanation e;
		char rows[2 * DOOR_COUNT + 1];
		const struct explain_row *last;

		ask(policy, cases[i].target, cases[i].method, &e);
		letters(&e, rows);
		last = &e.row[e.count - 1];
		if (strcmp(rows, cases[i].rows) == 0 &&
		    e.reachable == cases[i].reachable &&
		    last->verdict.reason == cases[i].last)
			continue;
		print_error("%s: %s %d %s\n", cases[i].target, rows,
			    e.reachable, reason_word(last->verdict.reason));
		wrong++;
	}
	assert_int_equal(wrong, 0);
	policy_unref(policy);
}

static void test_no_targets(void **state)
{
	static const char *const none[] = {
		"",	      "api.test/x",	"10.0.0.0/8",
		"*.api.test", "foo://api.test", "//api.test/",
	};
	struct inquiry inquiry = { .now_s = NOW };
	char *longer = calloc(1, 10001);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_non_null(inquiry_parse(none[i], &inquiry));
	memset(longer, 'a', 10000);
	assert_non_null(inquiry_parse(longer, &inquiry));
	memcpy(longer, "http://a.test/", 14);
	longer[5000] = '\0';
	assert_non_null(inquiry_parse(longer, &inquiry));
	longer[2000] = '\0';
	assert_null(inquiry_parse(longer, &inquiry));
	free(longer);
	assert_null(inquiry_parse("foo://api.test:7", &inquiry));
	assert_int_equal(inquiry.port[0], 7);
	assert_int_equal(inquiry.ports, 1);
}

/* Doors say what policy_decide() says. */
static void test_rules_are_named(void **state)
{
	struct policy *policy = build_yaml(yaml);
	struct explanation e;

	(void)state;
	ask(policy, "git.test:22", NULL, &e);
	assert_string_equal(rule_origin(e.row[1].verdict.rule), "p.yaml:5");
	ask(policy, "secret.sub.test", NULL, &e);
	assert_string_equal(rule_origin(e.row[0].verdict.rule), "p.yaml:25");
	ask(policy, "nope.test", NULL, &e);
	assert_null(e.row[1].verdict.rule);
	policy_unref(policy);
}

static void test_lines_of_lists(void **state)
{
	struct policy *policy = build_with_list(
		"version: 1\nallow: ['*.test']\ndeny: [{file: list.txt}]\n",
		"# no\nb.test\n\n0.0.0.0 c.test\n");
	const struct rule *rule;
	struct explanation e;
	const char *name;
	unsigned line;

	(void)state;
	ask(policy, "x.b.test:443", NULL, &e);
	rule = e.row[1].verdict.rule;
	assert_int_equal(e.row[1].verdict.reason, REASON_DENY_RULE);
	assert_true(rule_list_line(rule, "x.b.test", &name, &line));
	assert_string_equal(name, "b.test");
	assert_int_equal(line, 2);
	assert_true(rule_list_line(rule, "c.test", &name, &line));
	assert_int_equal(line, 4);
	assert_false(rule_list_line(rule, "x.c.test", &name, &line));
	ask(policy, "x.c.test:443", NULL, &e);
	assert_true(e.reachable);
	assert_false(
		rule_list_line(e.row[1].verdict.rule, "b.test", &name, &line));
	policy_unref(policy);
}

static void test_observe_and_public(void **state)
{
	struct policy *policy =
		build_yaml("version: 1\nmode: observe\nallow:\n - {host: "
			   "a.test, protocol: any}\n");
	struct explanation e;

	(void)state;
	ask(policy, "nope.test:80", NULL, &e);
	assert_true(e.reachable);
	assert_int_equal(e.row[1].verdict.reason, REASON_OBSERVE);
	assert_int_equal(e.row[1].verdict.observed, REASON_NOT_IN_POLICY);
	ask(policy, "ssh://nope.test:80", NULL, &e);
	assert_int_equal(e.row[1].verdict.reason, REASON_PROTOCOL);
	policy_unref(policy);

	policy = build_yaml("version: 1\ndefault: public\n");
	ask(policy, "https://nope.test", NULL, &e);
	assert_int_equal(e.row[1].verdict.reason, REASON_PUBLIC);
	ask(policy, "http://nope.test", NULL, &e);
	assert_false(e.reachable);
	policy_unref(policy);
}

static void test_counts(void **state)
{
	struct policy *policy = build_yaml(yaml);
	struct policy_counts n;
	size_t i = 0;

	(void)state;
	policy_count(policy, &n);
	assert_int_equal(n.names, 7);
	assert_int_equal(n.wildcards, 1);
	assert_int_equal(n.ranges, 2);
	assert_int_equal(n.denied_names, 1);
	assert_int_equal(n.denied_ranges, 1);
	assert_int_equal(n.rules, 12);
	assert_int_equal(n.judged, 1);
	assert_int_equal(n.expiring, 1);
	assert_int_equal(n.connected + n.budgeted + n.denied_lists, 0);
	while (policy_rule(policy, i))
		i++;
	assert_int_equal(i, n.rules);
	assert_false(policy_has_preset(policy, "github"));
	policy_unref(policy);

	/* Rules of one pattern are made into one for DNS: not a rule. */
	policy = build_yaml(
		"version: 1\nallow:\n"
		" - {host: a.test, ports: [1], addresses: [10.0.0.0/8]}\n"
		" - {host: a.test, ports: [2], addresses: [192.168.0.0/16]}\n");
	policy_count(policy, &n);
	assert_int_equal(n.rules, 2);
	assert_non_null(policy_rule(policy, 1));
	assert_null(policy_rule(policy, 2));
	policy_unref(policy);
}

static void test_presets(void **state)
{
	struct policy *policy = build_yaml("version: 1\nextends: [github]\n");

	(void)state;
	assert_true(policy_has_preset(policy, "github"));
	assert_false(policy_has_preset(policy, "git"));
	assert_false(policy_has_preset(policy, "pypi"));
	policy_unref(policy);
}

static void test_words(void **state)
{
	static const struct {
		const char *entry, *words;
	} rules[] = {
		{ "a.test", "" },
		{ "{host: a.test, protocol: tls}", "TLS" },
		{ "{host: a.test, ports: [80], methods: [GET, PUT], paths: "
		  "[/a, /b/**]}",
		  "plain HTTP; GET, PUT; /a, /b/**" },
		{ "{host: a.test, doors: [proxy]}", "by the proxy only" },
		{ "{host: a.test, doors: [transparent]}", "directly only" },
		{ "{host: a.test, addresses: [10.0.0.0/8, 'fd00::/8']}",
		  "10.0.0.0/8, fd00::/8 permitted" },
		{ "{host: a.test, connect: '[::1]:80'}",
		  "connects to [::1]:80" },
		{ "{host: a.test, dns: {types: [TXT, SRV]}}",
		  "TXT, SRV records too" },
		{ "{host: a.test, upload: 10 MB, download: 3 KiB, expires: "
		  "2028-02-03}",
		  "at most 10 MB of upload; at most 3 KiB of download; until "
		  "2028-02-03T00:00:00Z" },
	};
	char text[300];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		struct policy *policy;
		char all[300];

		snprintf(all, sizeof(all), "version: 1\nallow:\n - %s\n",
			 rules[i].entry);
		policy = build_yaml(all);
		rule_describe(policy_rule(policy, 0), text, sizeof(text));
		assert_string_equal(text, rules[i].words);
		/* Cut, not overrun. */
		rule_describe(policy_rule(policy, 0), text, 5);
		assert_true(strlen(text) < 5);
		policy_unref(policy);
	}
	assert_string_equal(size_format(1536, text, sizeof(text)), "1536 B");
	assert_string_equal(size_format(1000, text, sizeof(text)), "1 kB");
	assert_string_equal(
		ports_format((struct port_range[]){ { 1, 2 }, { 9, 9 } }, 2,
			     text, sizeof(text)),
		"1-2, 9");
	assert_string_equal(ports_format(NULL, 0, text, sizeof(text)),
			    "any port");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_no_targets),
		cmocka_unit_test(test_rules_are_named),
		cmocka_unit_test(test_lines_of_lists),
		cmocka_unit_test(test_observe_and_public),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
