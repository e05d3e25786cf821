/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/diff.h"
#include "tests/policy/build_helper.h"

#define NOW 1800000000 /* 2027-01-15T08:00:00Z */
#define V   "version: 1\n"

/* "+api.test:443/7" for each: sign, what, ports, doors; of what is changed, way
 * and detail instead. */
static void show(const struct differences *all, char *buf, size_t cap)
{
	static const char signs[] = "+-~";
	size_t len = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < all->count; i++) {
		const struct difference *at = &all->at[i];
		char ports[40] = "", rest[400] = "";

		if (at->ports.first)
			snprintf(ports, sizeof(ports), ":%u-%u",
				 at->ports.first, at->ports.last);
		if (at->kind == DIFF_DENY_LIST)
			snprintf(rest, sizeof(rest), " %s", at->detail);
		if (at->sign == DIFF_CHANGED)
			snprintf(rest, sizeof(rest), " %s %s",
				 diff_way_word(at->way), at->detail);
		len += (size_t)snprintf(buf + len, cap - len, "%s%c%s%s/%u%s",
					len ? "\n" : "", signs[at->sign],
					at->what, ports, at->doors, rest);
		assert_true(len < cap);
	}
}

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

static struct policy *build(const char *body)
{
	char text[4096];

	snprintf(text, sizeof(text), V "%s", body);
	return build_yaml(text);
}

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

/* --- whatever is decided differently is reported ------------------------- */

static uint64_t seed = 88172645463325252;

static unsigned dice(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)((seed >> 11) % n);
}

static const char *const hosts[] = { "a.test",	     "b.a.test", "c.b.a.test",
				     "d.test",	     "test",	 "b.d.test",
				     "x.c.b.a.test", "0.a.test" };
static const char *const ranges[] = { "9.0.0.0/8",  "9.9.0.0/16",  "9.9.9.0/24",
				      "9.9.9.9/32", "9.128.0.0/9", "2600::/16",
				      "2600:1::/32" };
static const char *const ports[] = {
	"22", "80", "443", "1-1000", "79-81", "400-500, 22", "8080", "1-65535"
};
/* Those with methods or paths need ports without 443. */
static const char *const plain_ports[] = { "80", "22, 80", "1-100", "8080" };
static const char *const extras[] = {
	"",
	"",
	"",
	", doors: [proxy]",
	", doors: [transparent]",
	", protocol: any",
	", protocol: tls",
	", expires: 2027-01-01",
	", expires: 2028-01-01",
	", upload: 1 MB",
	", connect: 127.0.0.1:9",
};
static const char *const judged[] = {
	", methods: [GET]",
	", methods: [GET, PUT]",
	", paths: [/a/**]",
	", paths: [/a/*, /b]",
	", methods: [PUT], paths: [/a/b]",
	", paths: [/**]",
	", paths: [/*/b]",
};

struct sample {
	char text[4096];
	size_t len;
};

#define PICK(list) ((list)[dice(ARRAY_SIZE(list))])

static void put(struct sample *s, const char *a, const char *b, const char *c,
		const char *d, const char *e)
{
	s->len += (size_t)snprintf(s->text + s->len, sizeof(s->text) - s->len,
				   "%s%s%s%s%s", a, b, c, d, e);
	assert_true(s->len < sizeof(s->text));
}

static void put_allowed(struct sample *s)
{
	bool judges = dice(3) == 0, wildcard = dice(2);
	const char *more = judges ? PICK(judged) : PICK(extras);

	/* `connect` is for one name. */
	if (strstr(more, "connect"))
		wildcard = false;
	if (dice(4) == 0 && !strstr(more, "connect"))
		put(s, " - {address: '", PICK(ranges), "'", "", "");
	else
		put(s, " - {host: '", wildcard ? "*." : "", PICK(hosts), "'",
		    "");
	put(s, ", ports: [", judges ? PICK(plain_ports) : PICK(ports), "]",
	    more, "}\n");
}

static void put_denied(struct sample *s)
{
	switch (dice(3)) {
	case 0:
		put(s, " - {address: '", PICK(ranges), "'}\n", "", "");
		break;
	case 1:
		put(s, " - '", dice(2) ? "*." : "", PICK(hosts), "'\n", "");
		break;
	default:
		put(s, " - {host: '", dice(2) ? "*." : "", PICK(hosts),
		    "', ports: [", PICK(ports));
		put(s, "]}\n", "", "", "", "");
	}
}

static struct policy *random_policy(void)
{
	struct sample s = { .len = 0 };
	unsigned allowed = 1 + dice(5), denied = dice(3);

	put(&s, dice(6) ? "" : "default: public\n",
	    dice(6) ? "" : "mode: observe\n", "allow:\n", "", "");
	while (allowed--)
		put_allowed(&s);
	if (denied)
		put(&s, "deny:\n", "", "", "", "");
	while (denied--)
		put_denied(&s);
	return build(s.text);
}

static struct question random_question(void)
{
	static const char *const names[] = {
		"a.test",     "b.a.test",  "c.b.a.test",   "d.test",
		"test",	      "b.d.test",  "x.c.b.a.test", "z.x.c.b.a.test",
		"q.b.a.test", "q.a.test",  "q.w.a.test",   "q.test",
		"0.a.test",   "e.example", "q.b.d.test",   "z.z.z.d.test",
	};
	static const char *const addresses[] = {
		"9.0.0.1",   "9.9.0.0", "9.9.9.9", "9.9.9.0",	"9.9.9.200",
		"9.200.0.1", "8.8.8.8", "2600::1", "2600:1::1", "10.0.0.1"
	};
	static const uint16_t numbers[] = { 1,	 22,  79,  80,	 81,
					    100, 443, 444, 1000, 8080,
					    400, 500, 501, 65535 };
	static const char *const methods[] = { "GET", "PUT", "POST" };
	static const char *const paths[] = { "/",    "/a",   "/a/",
					     "/a/b", "/b",   "/a/b/c",
					     "/b/b", "/c?x", "/a//b" };
	struct question q = { .door = (enum door)dice(DOOR_COUNT),
			      .port = PICK(numbers),
			      .now_s = NOW };

	if (dice(4) == 0 && q.door != DOOR_DNS)
		q.address = ip_of(PICK(addresses));
	else
		q.host = PICK(names);
	if (q.door == DOOR_DNS) {
		q.port = 0;
	} else if (dice(2)) {
		q.method = PICK(methods);
		q.path = PICK(paths);
	}
	return q;
}

/* How specific an entry is about what @q asks; 0: not at all. */
static unsigned about(const struct difference *at, const struct question *q)
{
	size_t len = strlen(at->what);
	struct cidr cidr;

	if (at->kind == DIFF_ADDRESS)
		return q->address.len && cidr_parse(at->what, &cidr) &&
				       cidr_contains(&cidr, &q->address)
			       ? 1u + cidr.bits
			       : 0;
	if (at->kind != DIFF_NAME || !q->host)
		return 0;
	if (strcmp(at->what, DIFF_OTHERS) == 0)
		return 1;
	if (strcmp(at->what, q->host) == 0)
		return 1000;
	return strncmp(at->what, "*.", 2) == 0 &&
			       host_below(q->host, at->what + 2)
		       ? (unsigned)len
		       : 0;
}

/* @opens: it says that something became reachable. */
static bool says(const struct difference *at, const struct question *q,
		 bool opens)
{
	unsigned bit = q->door == DOOR_DNS	     ? DIFF_IN_DNS
		       : q->door == DOOR_TRANSPARENT ? DIFF_DIRECTLY
						     : DIFF_BY_PROXY;

	if (!about(at, q) || !(at->doors & bit))
		return false;
	if (q->port && (q->port < at->ports.first || q->port > at->ports.last))
		return false;
	if (at->sign == DIFF_CHANGED)
		return (q->method || strstr(at->detail, "let pass")) &&
		       at->way != (opens ? DIFF_NARROWER : DIFF_WIDER);
	return at->sign == (opens ? DIFF_ADDED : DIFF_REMOVED);
}

static bool mode_differs(const struct differences *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->at[i].kind == DIFF_SETTING &&
		    strcmp(all->at[i].what, "mode") == 0)
			return true;
	return false;
}

static void check_question(const struct policy *was, const struct policy *is,
			   const struct differences *all,
			   const struct question *q)
{
	struct verdict a = policy_decide(was, q), b = policy_decide(is, q);
	bool found = false;

	if (a.allow == b.allow)
		return;
	if (a.reason == REASON_OBSERVE || b.reason == REASON_OBSERVE)
		found = mode_differs(all) || a.reason == REASON_MALFORMED ||
			b.reason == REASON_MALFORMED;
	for (size_t i = 0; i < all->count; i++)
		found |= says(&all->at[i], q, b.allow);
	if (!found) {
		char text[4000], ip[IP_TEXT_MAX];

		show(all, text, sizeof(text));
		print_error("%s%s:%u %s %s %s: %s, then %s\n%s\n",
			    q->host ? q->host : "", ip_format(&q->address, ip),
			    q->port, door_word(q->door),
			    q->method ? q->method : "", q->path ? q->path : "",
			    reason_word(a.reason), reason_word(b.reason), text);
	}
	assert_true(found);
}

/* Nothing is reported that is not so. */
static void check_entry(const struct policy *was, const struct policy *is,
			const struct difference *at)
{
	char name[300];
	struct question q = { .host = at->what,
			      .port = at->ports.last,
			      .now_s = NOW };

	if (at->kind != DIFF_NAME || at->sign == DIFF_CHANGED ||
	    policy_observes(was) || policy_observes(is))
		return;
	q.door = at->doors & DIFF_BY_PROXY   ? DOOR_SOCKS
		 : at->doors & DIFF_DIRECTLY ? DOOR_TRANSPARENT
					     : DOOR_DNS;
	if (strncmp(at->what, "*.", 2) == 0)
		snprintf(name, sizeof(name), "unheard-of%s", at->what + 1);
	else
		snprintf(name, sizeof(name), "%s",
			 strcmp(at->what, DIFF_OTHERS) ? at->what
						       : "e.example");
	q.host = name;
	assert_int_equal(policy_decide(was, &q).allow,
			 at->sign == DIFF_REMOVED);
	assert_int_equal(policy_decide(is, &q).allow, at->sign == DIFF_ADDED);
}

static void count_signs(const struct differences *all, size_t n[3])
{
	memset(n, 0, 3 * sizeof(*n));
	for (size_t i = 0; i < all->count; i++)
		n[all->at[i].sign]++;
}

static void test_every_difference_is_reported(void **state)
{
	size_t there[3], back[3];

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		struct policy *was = random_policy(), *is = random_policy();
		struct differences all, reverse, none;

		assert_int_equal(policy_diff(was, is, NOW, &all), 0);
		assert_int_equal(policy_diff(is, was, NOW, &reverse), 0);
		assert_int_equal(policy_diff(is, is, NOW, &none), 0);
		assert_int_equal(none.count, 0);
		count_signs(&all, there);
		count_signs(&reverse, back);
		assert_int_equal(there[DIFF_ADDED], back[DIFF_REMOVED]);
		assert_int_equal(there[DIFF_REMOVED], back[DIFF_ADDED]);
		assert_int_equal(there[DIFF_CHANGED], back[DIFF_CHANGED]);
		for (unsigned j = 0; j < 100; j++) {
			const struct question q = random_question();

			check_question(was, is, &all, &q);
		}
		for (size_t j = 0; j < all.count; j++)
			check_entry(was, is, &all.at[j]);
		differences_free(&all);
		differences_free(&reverse);
		policy_unref(was);
		policy_unref(is);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_permit),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_hidden_names),
		cmocka_unit_test(test_rules_are_named),
		cmocka_unit_test(test_every_difference_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
