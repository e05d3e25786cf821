/* SPDX-License-Identifier: Apache-2.0
 *
 * test_diff.c - what is said of the difference between two policies.
 */
#include "tests/policy/diff_case.h"

static const struct {
	const char *was, *is, *differences;
} cases[] = {
	{ "", "", "" },
	{ "allow: [a.test]\n", "allow:\n - a.test\n - a.test\n", "" },
	{ "", "allow: [a.test]\n", "+a.test:80-80/7\n+a.test:443-443/7" },
	{ "allow: [a.test]\n", "", "-a.test:80-80/7\n-a.test:443-443/7" },
	{ "allow:\n - {host: a.test, ports: [1-100]}\n",
	  "allow:\n - {host: a.test, ports: [50-200]}\n",
	  "-a.test:1-49/3\n+a.test:101-200/3" },
	/* By what is decided, not by what is written. */
	{ "allow: ['*.a.test']\n", "allow: ['*.a.test', x.a.test]\n", "" },
	{ "allow: ['*.a.test']\n",
	  "allow:\n - '*.a.test'\n - {host: x.a.test, ports: [443]}\n",
	  "-x.a.test:80-80/3" },
	{ "allow: ['*.a.test']\n", "allow: ['*.test']\n",
	  "+*.test:80-80/7\n+*.test:443-443/7" },
	{ "allow: ['*.test']\n", "allow: ['*.test']\ndeny: [x.test]\n",
	  "-x.test:80-80/7\n-x.test:443-443/7" },
	{ "allow: ['*.test']\ndeny: ['*.a.test']\n",
	  "allow: ['*.test']\ndeny: ['*.b.a.test']\n",
	  "+*.a.test:80-80/7\n+*.a.test:443-443/7" },
	{ "allow: ['*.a.test', 0.a.test]\ndeny: [0.a.test, '*.1.a.test']\n",
	  "allow: [0.a.test]\ndeny: [0.a.test, '*.1.a.test']\n",
	  "-*.a.test:80-80/7\n-*.a.test:443-443/7" },
	{ "allow: [a.test]\n",
	  "allow: [a.test]\ndeny:\n - {host: a.test, ports: [80]}\n",
	  "-a.test:80-80/3" },
	/* Doors. */
	{ "allow: [a.test]\n", "allow:\n - {host: a.test, doors: [proxy]}\n",
	  "-a.test:80-80/6\n-a.test:443-443/6" },
	{ "allow:\n - {host: a.test, doors: [transparent]}\n",
	  "allow: [a.test]\n", "+a.test:80-80/1\n+a.test:443-443/1" },
	{ "allow: [a.test]\ndeny:\n - {host: a.test, ports: [1-443]}\n",
	  "allow: [a.test]\ndeny: [a.test]\n", "-a.test/4" },
	/* Requests. */
	{ "allow:\n - {host: a.test, ports: [80]}\n",
	  "allow:\n - {host: a.test, ports: [80], methods: [GET]}\n",
	  "~a.test:80-80/3 narrower any request -> GET" },
	{ "allow:\n - {host: a.test, ports: [80], methods: [GET]}\n",
	  "allow:\n - {host: a.test, ports: [80], methods: [PUT, GET]}\n",
	  "~a.test:80-80/3 wider GET -> PUT,GET" },
	{ "allow:\n - {host: a.test, ports: [80], methods: [PUT, GET]}\n",
	  "allow:\n - {host: a.test, ports: [80], methods: [GET, PUT]}\n", "" },
	{ "allow:\n - {host: a.test, ports: [80], paths: [/a/**]}\n",
	  "allow:\n - {host: a.test, ports: [80], paths: [/a/*]}\n",
	  "~a.test:80-80/3 narrower any /a/** -> any /a/*" },
	{ "allow:\n - {host: a.test, ports: [80], paths: [/*]}\n",
	  "allow:\n - {host: a.test, ports: [80], paths: [/**]}\n",
	  "~a.test:80-80/3 wider any /* -> any /**" },
	{ "allow:\n - {host: a.test, ports: [80], paths: [/a]}\n",
	  "allow:\n - {host: a.test, ports: [80], paths: [/b]}\n",
	  "~a.test:80-80/3 different any /a -> any /b" },
	{ "allow:\n - {host: a.test, ports: [80], paths: [/a, /b]}\n",
	  "allow:\n - {host: a.test, ports: [80], paths: [/b]}\n"
	  " - {host: a.test, ports: [80], paths: [/a]}\n",
	  "~a.test:80-80/3 narrower any /a,/b -> any /b or any /a" },
	/* What a rule says beside. */
	{ "allow:\n - {host: a.test, ports: [22]}\n",
	  "allow:\n - {host: a.test, ports: [22], protocol: tls}\n",
	  "~a.test:22-22/3 narrower protocol any -> TLS" },
	{ "allow:\n - {host: a.test, ports: [443]}\n",
	  "allow:\n - {host: a.test, ports: [443], protocol: tls}\n", "" },
	{ "allow:\n - {host: a.test, ports: [443]}\n",
	  "allow:\n - {host: a.test, ports: [443], protocol: any}\n",
	  "~a.test:443-443/3 wider protocol TLS -> any (also servers first)" },
	{ "allow:\n - {host: a.test, ports: [7]}\n",
	  "allow:\n - {host: a.test, ports: [7], connect: 127.0.0.1:9}\n",
	  "~a.test:7-7/3 different connects to the name's address -> 127.0.0.1 "
	  "port 9" },
	{ "allow:\n - {host: a.test, ports: [7], addresses: [10.0.0.0/8]}\n",
	  "allow:\n - {host: a.test, ports: [7], addresses: [10.1.0.0/16]}\n",
	  "~a.test:7-7/3 narrower may no longer resolve to 10.0.0.0/8" },
	{ "allow:\n - {host: a.test, ports: [7], upload: 1 MB}\n",
	  "allow:\n - {host: a.test, ports: [7], upload: 2 MB, download: 1 "
	  "kB}\n",
	  "~a.test:7-7/3 different upload 1 MB -> 2 MB; download unlimited -> "
	  "1 kB" },
	{ "allow:\n - {host: a.test, ports: [7], expires: 2028-01-01}\n",
	  "allow:\n - {host: a.test, ports: [7]}\n",
	  "~a.test:7-7/3 wider expires 2028-01-01T00:00:00Z -> never" },
	{ "allow:\n - {host: a.test, ports: [7], expires: 2027-01-01}\n",
	  "allow:\n - {host: a.test, ports: [7]}\n", "+a.test:7-7/7" },
	{ "allow: [a.test]\n",
	  "allow:\n - {host: a.test, dns: {types: [TXT]}}\n",
	  "~a.test/4 wider TXT records too" },
	{ "allow:\n - {host: a.test, ports: [7], connect: 10.0.0.1:9}\n"
	  "deny:\n - {address: 10.0.0.0/8}\n",
	  "allow:\n - {host: a.test, ports: [7], connect: 10.0.0.1:9}\n",
	  "+10.0.0.0/8/0\n+a.test:7-7/7" },
	/* Each of the rules that may decide. */
	{ "allow:\n - {host: a.test, ports: [80], methods: [GET], upload: 1 MB}\n"
	  " - {host: a.test, ports: [80], methods: [POST], upload: 1 MB}\n",
	  "allow:\n - {host: a.test, ports: [80], methods: [GET], upload: 1 MB}\n"
	  " - {host: a.test, ports: [80], methods: [POST]}\n",
	  "~a.test:80-80/3 wider POST: upload 1 MB -> unlimited" },
	{ "allow:\n - {host: a.test, ports: [80], methods: [GET], upload: 1 MB}\n"
	  " - {host: a.test, ports: [80]}\n",
	  "allow:\n - {host: a.test, ports: [80], methods: [GET]}\n"
	  " - {host: a.test, ports: [80]}\n",
	  "~a.test:80-80/3 wider GET: upload 1 MB -> unlimited" },
	{ "allow:\n - {host: a.test, ports: [80], methods: [GET]}\n"
	  " - {host: a.test, ports: [80], paths: [/a], upload: 1 MB}\n",
	  "allow:\n - {host: a.test, ports: [80], paths: [/a], upload: 1 MB}\n"
	  " - {host: a.test, ports: [80], methods: [GET]}\n",
	  "~a.test:80-80/3 different upload unlimited -> 1 MB; for some "
	  "requests other rules decide, which differ in more than requests" },
	{ "allow:\n - {host: a.test, ports: [80], methods: [GET]}\n"
	  " - {host: a.test, ports: [80], paths: [/a]}\n",
	  "allow:\n - {host: a.test, ports: [80], paths: [/a]}\n"
	  " - {host: a.test, ports: [80], methods: [GET]}\n",
	  "" },
	/* Addresses. */
	{ "", "allow:\n - {address: 9.9.0.0/16, ports: [22]}\n",
	  "+9.9.0.0/16:22-22/3" },
	{ "allow:\n - {address: 9.9.0.0/16, ports: [22]}\n",
	  "allow:\n - {address: 9.9.0.0/17, ports: [22]}\n",
	  "-9.9.0.0/16:22-22/3" },
	{ "allow:\n - {address: 9.9.0.0/16, ports: [22]}\n",
	  "allow:\n - {address: 9.9.0.0/17, ports: [22]}\n"
	  " - {address: 9.9.128.0/17, ports: [22]}\n",
	  "" },
	{ "allow:\n - {address: 9.9.0.0/16, ports: [22]}\n",
	  "allow:\n - {address: 9.9.0.0/16, ports: [22]}\ndeny:\n - {address: "
	  "9.9.9.9}\n",
	  "-9.9.9.9/32/0\n-9.9.9.9/32:22-22/3" },
	{ "", "allow:\n - {address: '2600::/16', ports: [22]}\n",
	  "+2600::/16:22-22/3" },
	/* Behind the first address of each of these is one that is special. */
	{ "", "allow:\n - {address: '64:ff9b::/96', ports: [22]}\n",
	  "+64:ff9b::/96:22-22/3" },
	{ "", "allow:\n - {address: '64:ff9b::a00:0/103', ports: [22]}\n",
	  "+64:ff9b::a00:0/103:22-22/3" },
	{ "", "allow:\n - {address: '2002::/16', ports: [22]}\n",
	  "+2002::/16:22-22/3" },
	{ "", "allow:\n - {address: '2001::/32', ports: [22]}\n",
	  "+2001::/32:22-22/3" },
	{ "deny: [{address: 128.0.0.0/2}]\n",
	  "allow:\n - {address: '64:ff9b::/96', ports: [22]}\n"
	  "deny: [{address: 128.0.0.0/2}]\n",
	  "+64:ff9b::/96:22-22/3" },
	{ "", "allow:\n - {address: '64:ff9b::a00:0/104', ports: [22]}\n", "" },
	/* What is said once. */
	{ "", "default: public\n",
	  "~default/0 wider deny -> public\n+any other name:443-443/7" },
	{ "default: public\nallow: [a.test]\n",
	  "default: public\nallow: [a.test]\ndeny: ['*.b.test']\n",
	  "-*.b.test:443-443/7" },
	{ "allow: [a.test]\n", "mode: observe\nallow: [a.test]\n",
	  "~mode/0 wider enforce -> observe" },
	{ "mode: observe\n", "mode: observe\nallow: [a.test]\n",
	  "+a.test:80-80/7\n+a.test:443-443/7" },
	{ "mode: observe\nallow:\n - {host: a.test, ports: [7], expires: "
	  "2027-01-01}\n",
	  "mode: observe\n",
	  "~a.test:1-65535/3 wider expired -> let pass\n"
	  "~a.test/4 wider expired -> let pass" },
	{ "", "log: {sign: every, rotate: 64 MB, rotate_after: 24h}\n",
	  "~log.sign/0 different batch -> every\n"
	  "~log.rotate/0 different 1 GB -> 64 MB\n"
	  "~log.rotate_after/0 different any age -> 86400s" },
	{ "log: {durability: record}\n", "",
	  "~log.durability/0 different record -> batch" },
	{ "", "limits: {names: 10, upload: 1 GB}\n",
	  "~limits.names/0 narrower 4000 -> 10\n"
	  "~limits.upload/0 narrower unlimited -> 1 GB" },
	{ "", "dns: {answers: real, upstream: [9.9.9.9]}\n",
	  "~dns.answers/0 different synthetic -> real\n"
	  "~dns.upstream/0 different system -> 9.9.9.9:53" },
	{ "", "deny:\n - {address: 9.9.9.0/24}\n", "-9.9.9.0/24/0" },
	{ "deny:\n - {address: 9.9.9.0/24}\n",
	  "deny:\n - {address: 9.9.0.0/16}\n", "-9.9.0.0/16/0" },
	{ "name: a\nnote: x\n", "name: b\n", "" },
};

static void test_cases(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct policy *was = build(cases[i].was);
		struct policy *is = build(cases[i].is);
		struct differences all;
		char text[2000];

		assert_int_equal(policy_diff(was, is, NOW, &all), 0);
		show(&all, text, sizeof(text));
		if (strcmp(text, cases[i].differences) != 0) {
			print_error("%s---\n%swanted %s\nhave %s\n",
				    cases[i].was, cases[i].is,
				    cases[i].differences, text);
			wrong++;
		}
		differences_free(&all);
		policy_unref(was);
		policy_unref(is);
	}
	assert_int_equal(wrong, 0);
}

static void test_permit(void **state)
{
	struct piece pieces[] = { { BUNDLE_ALLOW, "a.test" },
				  { BUNDLE_PERMIT, "10.0.0.0/8" },
				  { 0, NULL } };
	struct policy *was = build("allow: [a.test]\n"), *is = NULL;
	struct differences all;
	struct policy_error err;
	char text[200];

	(void)state;
	assert_int_equal(build_pieces(pieces, &is, &err), 0);
	assert_int_equal(policy_diff(was, is, NOW, &all), 0);
	show(&all, text, sizeof(text));
	assert_string_equal(text, "+10.0.0.0/8/0");
	differences_free(&all);
	policy_unref(was);
	policy_unref(is);
}

static const struct {
	const char *yaml, *was, *is, *differences;
} lists[] = {
	{ "allow: ['*.test']\n", "a.test\n", "a.test\n# more\n", "" },
	/* Nobody may reach it anyway. */
	{ "allow: ['*.test']\n", "a.test\n", "a.test\nb.example\n", "" },
	{ "allow: ['*.test']\n", "a.test\n", "0.0.0.0 a.test\n",
	  "+list.txt/0 1 name: a.test" },
	{ "allow: ['*.test']\n", "a.test\nb.test\n", "a.test\nc.test\n",
	  "+list.txt/0 1 name: b.test\n-list.txt/0 1 name: c.test" },
	{ "allow: ['*.test']\n", "z.test\n",
	  "z.test\na.test\nb.test\n*.c.test\nd.test\n",
	  "-list.txt/0 4 names: a.test; b.test; *.c.test; ..." },
	{ "default: public\n", "a.test\n", "a.test\nb.example\n",
	  "-list.txt/0 1 name: b.example" },
	/* Also where it is a name of the policy. */
	{ "allow:\n - {host: a.test, ports: [7]}\n", "b.test\n", "a.test\n",
	  "-list.txt/0 1 name: a.test\n-a.test:7-7/7" },
};

static void test_lists(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		struct differences all;
		struct policy *was, *is;
		char text[500], yaml[200];

		snprintf(yaml, sizeof(yaml), V "%sdeny:\n - {file: list.txt}\n",
			 lists[i].yaml);
		was = build_with_list(yaml, lists[i].was);
		is = build_with_list(yaml, lists[i].is);
		assert_int_equal(policy_diff(was, is, NOW, &all), 0);
		show(&all, text, sizeof(text));
		assert_string_equal(text, lists[i].differences);
		differences_free(&all);
		policy_unref(was);
		policy_unref(is);
	}
}

/* What would stand for all other names below a pattern is named, to hide
 * them. */
static void test_hidden_names(void **state)
{
	static const struct {
		const char *was, *is, *list, *differences;
	} rows[] = {
		{ "deny: [{file: list.txt}]\n",
		  "allow: ['*.evil.test']\ndeny: [{file: list.txt}]\n",
		  "0.0.0.0 0.evil.test 1.evil.test 2.evil.test\n",
		  "+*.evil.test:80-80/7\n+*.evil.test:443-443/7" },
		{ "allow: ['*.test']\ndeny: [{file: list.txt}]\n",
		  "allow: ['*.test']\ndeny: [a.test, 0.a.test, 0diff.a.test]\n",
		  "||a.test^\n", "+list.txt/0 1 name: a.test" },
		{ "default: public\ndeny: [{file: list.txt}]\n",
		  "deny: [{file: list.txt}]\n", "||others0^\n0.others1.\n",
		  "~default/0 narrower public -> deny\n"
		  "-any other name:443-443/7" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char was[300], is[300], text[2000];
		struct policy *a, *b;
		struct differences all;

		snprintf(was, sizeof(was), V "%s", rows[i].was);
		snprintf(is, sizeof(is), V "%s", rows[i].is);
		a = build_with_list(was, rows[i].list);
		b = build_with_list(is, rows[i].list);
		assert_int_equal(policy_diff(a, b, NOW, &all), 0);
		show(&all, text, sizeof(text));
		if (!strstr(text, rows[i].differences))
			fail_msg("%zu:\n%s\nis not\n%s", i, text,
				 rows[i].differences);
		differences_free(&all);
		policy_unref(a);
		policy_unref(b);
	}
}

static void test_rules_are_named(void **state)
{
	struct policy *was = build("allow:\n - {host: a.test, ports: [7]}\n");
	struct policy *is = build("allow:\n\n - {host: a.test, ports: [7], "
				  "upload: 1 MB}\n");
	struct differences all;

	(void)state;
	assert_int_equal(policy_diff(was, is, NOW, &all), 0);
	assert_int_equal(all.count, 1);
	assert_string_equal(rule_origin(all.at[0].was), "p.yaml:3");
	assert_string_equal(rule_origin(all.at[0].is), "p.yaml:4");
	differences_free(&all);
	policy_unref(was);
	policy_unref(is);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_permit),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_hidden_names),
		cmocka_unit_test(test_rules_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
