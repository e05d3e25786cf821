/* SPDX-License-Identifier: Apache-2.0
 *
 * test_load.c - every mistake has a place and a hint, and loads nothing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/policy/build_helper.h"

#define V "version: 1\n"

static const struct {
	const char *yaml;
	const char *at;	 /* how the error starts */
	const char *has; /* what it also says */
} bad[] = {
	/* the frame */
	{ "", "p.yaml:1:1: ", "version: 1" },
	{ "# only a comment\n", "p.yaml:1:1: ", "version: 1" },
	{ "- a\n", "p.yaml:1:1: ", "a mapping" },
	{ "hello\n", "p.yaml:1:1: ", "a mapping" },
	{ "name: x\n", "p.yaml:1:1: ", "'version' is missing" },
	{ "version: 2\n", "p.yaml:1:10: ", "the number 1" },
	{ "version: \"1\"\n", "p.yaml:1:10: ", "the number 1" },
	{ "version: [1]\n", "p.yaml:1:10: ", "the number 1" },
	{ V "name: [x]\n", "p.yaml:2:7: ", "'name' is a text, not a list" },
	{ V "name: \"\"\n", "p.yaml:2:7: ", "one line" },
	{ V "name: 7\n", "p.yaml:2:7: ", "a number" },
	{ V "default: open\n",
	  "p.yaml:2:10: ", "'default' is one of deny, public, not 'open'" },
	{ V "mode: audit\n", "p.yaml:2:7: ", "one of enforce, observe" },
	{ V "default: [deny]\n", "p.yaml:2:10: ", "'default'" },
	/* keys */
	{ V "alow: [a.b]\n",
	  "p.yaml:2:1: ", "unknown key 'alow', did you mean 'allow'?" },
	{ V "zebra: {}\n", "p.yaml:2:1: ", "the keys here are version, name" },
	{ V "ceiling: {}\n", "p.yaml:2:1: ", "not in this version" },
	{ V "Allow: []\n", "p.yaml:2:1: ", "did you mean 'allow'?" },
	{ V "allow: [a.b]\nallow: [c.d]\n",
	  "p.yaml:3:1: ", "'allow' is here twice (first in line 2)" },
	{ "version: 1\nversion: 1\n", "p.yaml:2:1: ", "twice" },
	{ V "? [a]\n: b\n", "p.yaml:2:3: ", "a key is a word" },
	{ V "<<: {a: b}\n", "p.yaml:2:1: ", "unknown key '<<'" },
	{ V "allow:\n  - host: a.b\n    port: [1]\n",
	  "p.yaml:4:5: ", "unknown key 'port', did you mean 'ports'?" },
	{ V "allow:\n  - host: a.b\n    inspect: true\n",
	  "p.yaml:4:5: ", "'inspect' is not in this version" },
	{ V "allow:\n  - host: a.b\n    methods: [GET]\n",
	  "p.yaml:4:14: ", "port 443 is TLS" },
	{ V "allow:\n  - host: a.b\n    host: c.d\n",
	  "p.yaml:4:5: ", "'host' is here twice" },
	/* types */
	{ V "allow: a.b\n", "p.yaml:2:8: ", "'allow' is a list, not a text" },
	{ V "allow: {a.b: 1}\n", "p.yaml:2:8: ", "not a mapping" },
	{ V "deny: 7\n", "p.yaml:2:7: ", "'deny' is a list, not a number" },
	{ V "allow:\n  - [a.b]\n", "p.yaml:3:5: ", "not a list" },
	{ V "allow:\n  - ~\n", "p.yaml:3:5: ", "not nothing" },
	{ V "allow:\n  - no\n", "p.yaml:3:5: ", "a boolean" },
	{ V "allow:\n  - {}\n", "p.yaml:3:5: ", "either 'host' or 'address'" },
	{ V "allow:\n  - ports: [1]\n", "p.yaml:3:5: ", "either" },
	{ V "allow:\n  - {host: a.b, address: 1.1.1.1}\n",
	  "p.yaml:3:5: ", "either" },
	{ V "allow:\n  - host: [a.b]\n", "p.yaml:3:11: ", "'host' is a text" },
	{ V "allow:\n  - {host: a.b, note: [x]}\n", "p.yaml:3:23: ", "note" },
	/* hosts */
	{ V "allow: [\"a*.com\"]\n",
	  "p.yaml:2:9: ", "bad host 'a*.com', '*' is only valid as a leading" },
	{ V "allow: [\"*\"]\n", "p.yaml:2:9: ", "leading" },
	{ V "allow: [\"*.\"]\n", "p.yaml:2:9: ", "empty" },
	{ V "allow: [\"*.*.com\"]\n", "p.yaml:2:9: ", "leading" },
	{ V "allow: [\"a.*.com\"]\n", "p.yaml:2:9: ", "leading" },
	{ V "allow: [\"*com\"]\n", "p.yaml:2:9: ", "leading" },
	{ V "allow: [\"\"]\n", "p.yaml:2:9: ", "empty" },
	{ V "allow: [\"a\\0b.com\"]\n", "p.yaml:2:9: ", "control character" },
	{ V "allow: [\"a\\x1b.com\"]\n", "p.yaml:2:9: ", "control character" },
	{ V "allow: [\"https://a.b/\"]\n", "p.yaml:2:9: ", "name alone" },
	{ V "allow: [\"a.b:443\"]\n", "p.yaml:2:9: ", "port goes elsewhere" },
	{ V "allow: [10.0.0.1]\n", "p.yaml:2:9: ", "an IP address" },
	{ V "allow: [0x7f.1]\n", "p.yaml:2:9: ", "an IP address" },
	{ V "allow: [a..b]\n", "p.yaml:2:9: ", "empty label" },
	{ V "allow: [-a.b]\n", "p.yaml:2:9: ", "starts or ends with '-'" },
	{ V "allow: [github]\n", "p.yaml:2:9: ", "under 'extends'" },
	/* ports */
	{ V "allow:\n  - {host: a.b, ports: [0]}\n",
	  "p.yaml:3:25: ", "there is no port 0" },
	{ V "allow:\n  - {host: a.b, ports: [443, 70000]}\n",
	  "p.yaml:3:30: ", "bad port '70000', ports are 1 to 65535" },
	{ V "allow:\n  - {host: a.b, ports: [99999999999999999999]}\n",
	  "p.yaml:3:25: ", "1 to 65535" },
	{ V "allow:\n  - {host: a.b, ports: [-1]}\n", "p.yaml:3:25: ", "port" },
	{ V "allow:\n  - {host: a.b, ports: [0443]}\n",
	  "p.yaml:3:25: ", "leading zeros" },
	{ V "allow:\n  - {host: a.b, ports: [0x1bb]}\n",
	  "p.yaml:3:25: ", "port" },
	{ V "allow:\n  - {host: a.b, ports: [4.5]}\n",
	  "p.yaml:3:25: ", "port" },
	{ V "allow:\n  - {host: a.b, ports: [9-5]}\n",
	  "p.yaml:3:25: ", "ends before it starts" },
	{ V "allow:\n  - {host: a.b, ports: [5-]}\n", "p.yaml:3:25: ", "port" },
	{ V "allow:\n  - {host: a.b, ports: [5-0]}\n",
	  "p.yaml:3:25: ", "no port 0" },
	{ V "allow:\n  - {host: a.b, ports: [https]}\n",
	  "p.yaml:3:25: ", "port" },
	{ V "allow:\n  - {host: a.b, ports: 443}\n",
	  "p.yaml:3:24: ", "'ports' is a list, not a number" },
	{ V "allow:\n  - {host: a.b, ports: []}\n", "p.yaml:3:24: ", "empty" },
	{ V "allow:\n  - {host: a.b, ports: [~]}\n",
	  "p.yaml:3:25: ", "nothing" },
	{ V "allow:\n  - {host: a.b, ports: [[1]]}\n",
	  "p.yaml:3:25: ", "a list" },
	/* addresses */
	{ V "allow:\n  - {host: a.b, addresses: [10.0.0.1/8]}\n",
	  "p.yaml:3:29: ", "not zero" },
	{ V "allow:\n  - {host: a.b, addresses: [10.0.0.0/33]}\n",
	  "p.yaml:3:29: ", "prefix length" },
	{ V "allow:\n  - {host: a.b, addresses: [ten]}\n",
	  "p.yaml:3:29: ", "not an address range" },
	{ V "allow:\n  - {host: a.b, addresses: 10.0.0.0/8}\n",
	  "p.yaml:3:28: ", "a list" },
	{ V "allow:\n  - {address: 1.1.1.1, addresses: [1.1.1.1]}\n",
	  "p.yaml:3:35: ", "goes with 'host'" },
	{ V "allow:\n  - address: 010.0.0.1\n",
	  "p.yaml:3:14: ", "not an address range" },
	{ V "deny:\n  - {host: a.b, addresses: [10.0.0.0/8]}\n",
	  "p.yaml:3:28: ", "'address'" },
	{ V "deny:\n  - {address: 10.0.0.0/8, ports: [22]}\n",
	  "p.yaml:3:34: ", "every port" },
	/* dns, extends */
	{ V "dns: []\n", "p.yaml:2:6: ", "'dns' is a mapping" },
	{ V "dns: {answers: fake}\n", "p.yaml:2:16: ", "synthetic, real" },
	{ V "dns: {upstream: []}\n", "p.yaml:2:17: ", "empty" },
	{ V "dns: {upstream: 9.9.9.9}\n", "p.yaml:2:17: ", "a list" },
	{ V "dns: {upstream: [dns.quad9.net]}\n",
	  "p.yaml:2:18: ", "'system', ADDR" },
	{ V "dns: {upstream: [\"9.9.9.9:0\"]}\n", "p.yaml:2:18: ", "server" },
	{ V "extends: github\n", "p.yaml:2:10: ", "a list" },
	{ V "extends: [githb]\n", "p.yaml:2:11: ", "did you mean 'github'?" },
	{ V "extends: [nosuchthing]\n",
	  "p.yaml:2:11: ", "`sallyport presets` lists them" },
	/* YAML itself */
	{ V "allow: &a [a.b]\n", "p.yaml:2:8: ", "anchors" },
	{ V "allow: *a\n", "p.yaml:2:8: ", "quote a wildcard" },
	{ V "allow:\n  - *.example.com\n",
	  "p.yaml:3:6: ", "quote a wildcard: \"*.example.com\"" },
	{ V "allow: !!seq [a.b]\n", "p.yaml:2:8: ", "tags" },
	{ V "allow: [!x a.b]\n", "p.yaml:2:9: ", "tags" },
	{ V "---\n" V, "p.yaml:2:1: ", "second document" },
	{ V "allow: [a.b\n", "p.yaml:3:1: ", "not YAML" },
	{ V "allow:\n\t- a.b\n", "p.yaml:3:1: ", "not with tabs" },
	{ V "allow: [[[[[[[[[[a]]]]]]]]]]\n", "p.yaml:2:15: ", "too deeply" },
	{ V "allow: [\"m\xff.com\"]\n", "p.yaml:2:11: ", "UTF-8" },
	{ "\xff\xfe"
	  "v\0",
	  "p.yaml:1:1: ", "UTF-8" },
	{ V "name: a\x01 b\n", "p.yaml:2:8: ", "control characters" },
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct piece piece[] = { { BUNDLE_FILE, bad[i].yaml },
					 { 0, NULL } };
		struct policy *policy = NULL;
		struct policy_error err = { "" };
		int ret = build_pieces(piece, &policy, &err);
		bool as_wanted =
			ret == -EINVAL &&
			strncmp(err.text, bad[i].at, strlen(bad[i].at)) == 0 &&
			strstr(err.text, bad[i].has);

		if (!as_wanted)
			print_error("%s\n gave %d: %s\n", bad[i].yaml, ret,
				    err.text);
		assert_true(as_wanted);
		assert_null(policy);
	}
}

static int build_bytes(const char *text, size_t len, struct policy **ret_policy,
		       struct policy_error *reterr)
{
	struct bundle bundle = { 0 };
	int ret = bundle_add(&bundle, BUNDLE_FILE, "p.yaml", text, len);

	if (ret == 0)
		ret = policy_build(bundle.data, bundle.len, ret_policy, reterr);
	bundle_free(&bundle);
	return ret;
}

static void test_raw_nul(void **state)
{
	static const char text[] = V "name: a\0b\n";
	struct policy *policy = NULL;
	struct policy_error err;

	(void)state;
	assert_int_equal(build_bytes(text, sizeof(text) - 1, &policy, &err),
			 -EINVAL);
	assert_memory_equal(err.text, "p.yaml:2:8: ", 12);
	assert_null(policy);
}

/* Whatever is cut off, the rest is an error or a policy, never a crash. */
static void test_every_prefix(void **state)
{
	static const char text[] =
		V "extends: [github]\nallow:\n  - a.b\n  - host: \"*.c.d\"\n"
		  "    ports: [1, 2-3]\n    addresses: [10.0.0.0/8]\n"
		  "deny: [{address: \"fc00::/7\"}]\n";

	(void)state;
	for (size_t len = 0; len < sizeof(text); len++) {
		struct policy *policy = NULL;
		struct policy_error err = { "" };
		int ret = build_bytes(text, len, &policy, &err);

		assert_true(ret == 0 || (ret == -EINVAL && *err.text));
		policy_unref(policy);
	}
}

static void test_deep(void **state)
{
	size_t len = 1 << 20;
	AUTO_FREE char *text = malloc(len);
	struct policy *policy = NULL;
	struct policy_error err;

	(void)state;
	assert_non_null(text);
	for (const char *c = "[{-\"'"; *c; c++) {
		memset(text, *c, len);
		assert_int_equal(build_bytes(text, len, &policy, &err),
				 -EINVAL);
	}
	assert_null(policy);
}

static void test_good(void **state)
{
	struct policy *policy =
		build_yaml("\xef\xbb\xbf# with a byte order mark\n"
			   "version: 1\n"
			   "name: 'a: b'\n"
			   "default: deny\n"
			   "extends: [npm, npm, debian]\n"
			   "dns: {}\n"
			   "allow:\n"
			   "  - host: \"*.C.test.\"\n"
			   "    ports: [1, \"2-3\", 5 ]\n"
			   "    note: |\n"
			   "      two\n"
			   "      lines\n"
			   "  - db\n"
			   "deny:\n");
	struct question q = { .host = "any.npmjs.org", .port = 443 };
	struct verdict v = policy_decide(policy, &q);

	(void)state;
	assert_true(v.allow);
	assert_memory_equal(rule_origin(v.rule), "preset npm:", 11);
	assert_string_equal(policy_name(policy), "a: b");
	q = (struct question){ .host = "a.c.test", .port = 3 };
	assert_true(policy_decide(policy, &q).allow);
	q = (struct question){ .host = "db", .port = 80 };
	assert_true(policy_decide(policy, &q).allow);
	q = (struct question){ .host = "any.debian.org", .port = 80 };
	assert_true(policy_decide(policy, &q).allow);
	policy_unref(policy);
}

/* Many rules: built and asked in reasonable time. */
static void test_many(void **state)
{
	AUTO_FREE char *text = NULL;
	struct policy *policy = NULL;
	struct policy_error err;
	size_t len = 0;
	AUTO_FILE FILE *f = open_memstream(&text, &len);

	(void)state;
	fputs(V "allow:\n", f);
	for (int i = 0; i < 9000; i++)
		fprintf(f, "- h%d.example.com\n- address: 10.%d.%d.0/24\n", i,
			i / 256, i % 256);
	assert_int_equal(fflush(f), 0);
	assert_int_equal(build_bytes(text, len, &policy, &err), 0);
	for (int i = 0; i < 9000; i++) {
		char host[64];
		struct question q = { .host = host, .port = 443 };

		snprintf(host, sizeof(host), "h%d.example.com", i);
		assert_true(policy_decide(policy, &q).allow);
		q.host = NULL;
		q.address = ip_v4(0x0a000000u | (uint32_t)i << 8 | 9);
		assert_true(policy_decide(policy, &q).allow);
	}
	policy_unref(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_raw_nul),
		cmocka_unit_test(test_every_prefix),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
