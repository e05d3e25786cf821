/* SPDX-License-Identifier: Apache-2.0
 *
 * test_bundle.c - options and files to one policy; damaged bundles; presets.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/policy/build_helper.h"

static const struct {
	enum bundle_kind kind;
	const char *text, *has;
} bad[] = {
	{ BUNDLE_ALLOW, "", "--allow '': it is empty" },
	{ BUNDLE_ALLOW, ",", "host name with a dot" },
	{ BUNDLE_ALLOW, "githb", "did you mean 'github'?" },
	{ BUNDLE_ALLOW, "github:22", "a preset" },
	{ BUNDLE_ALLOW, "localhost", "unknown preset" },
	{ BUNDLE_ALLOW, "https://a.b/c", "without scheme" },
	{ BUNDLE_ALLOW, "a.b/c", "without scheme" },
	{ BUNDLE_ALLOW, "a.b:0", "no port 0" },
	{ BUNDLE_ALLOW, "a.b:70000", "1 to 65535" },
	{ BUNDLE_ALLOW, "a.b:", "a port is a number" },
	{ BUNDLE_ALLOW, "a.b:x", "a port is a number" },
	{ BUNDLE_ALLOW, ":443", "empty" },
	{ BUNDLE_ALLOW, "*", "leading" },
	{ BUNDLE_ALLOW, "a*.b", "leading" },
	{ BUNDLE_ALLOW, "10.0.0.1/8", "not zero" },
	{ BUNDLE_ALLOW, "10.0.0.256", "not an address range" },
	{ BUNDLE_ALLOW, "127.1", "not an address range" },
	{ BUNDLE_ALLOW, "0x7f.1", "an IP address" },
	{ BUNDLE_ALLOW, "[::1", "']' is missing" },
	{ BUNDLE_ALLOW, "[a.b]:1", "brackets" },
	{ BUNDLE_ALLOW, "[10.0.0.1]:1", "brackets" },
	{ BUNDLE_ALLOW, "[::1]x", "may follow" },
	{ BUNDLE_ALLOW, "2001:db8::1:x", "[ADDR]:PORT" },
	{ BUNDLE_ALLOW, "fe80::1%eth0", "[ADDR]:PORT" },
	{ BUNDLE_ALLOW, "a.b\x1b[31m", "'a.b\\x1b[31m'" },
	{ BUNDLE_DENY, "github.com/x", "without scheme" },
	{ BUNDLE_DENY, "10.0.0.1:22", "every port" },
	{ BUNDLE_PERMIT, "10.0.0.1/8", "--permit '10.0.0.1/8': " },
	{ BUNDLE_PERMIT, "a.b", "not an address range" },
	{ BUNDLE_PERMIT, "", "not an address range" },
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct piece piece[] = { { BUNDLE_ALLOW, "ok.com" },
					 { bad[i].kind, bad[i].text },
					 { 0, NULL } };
		struct policy *policy = NULL;
		struct policy_error err = { "" };
		int ret = build_pieces(piece, &policy, &err);

		if (ret != -EINVAL || !strstr(err.text, bad[i].has))
			print_error("%s gave %d: %s\n", bad[i].text, ret,
				    err.text);
		assert_int_equal(ret, -EINVAL);
		assert_non_null(strstr(err.text, bad[i].has));
		assert_null(policy);
	}
}

static void expect(const struct policy *policy, const char *host,
		   const char *address, uint16_t port, enum reason reason)
{
	struct question q = { .host = host, .port = port };

	if (address)
		q.address = ip_of(address);
	struct verdict v = policy_decide(policy, &q);
	if (v.reason != reason)
		print_error("%s:%u: %s\n", host ? host : address, port,
			    reason_word(v.reason));
	assert_int_equal(v.reason, reason);
}

static void test_options(void **state)
{
	static const struct piece piece[] = {
		{ BUNDLE_FILE, "version: 1\nallow: [both.test]\n" },
		{ BUNDLE_ALLOW, "Ok.COM." },
		{ BUNDLE_ALLOW, "port.com:8443" },
		{ BUNDLE_ALLOW, "*.wild.com" },
		{ BUNDLE_ALLOW, "*.wild.com:22" },
		{ BUNDLE_ALLOW, "range.com:8000-8001" },
		{ BUNDLE_ALLOW, "both.test:22" },
		{ BUNDLE_ALLOW, "10.0.0.1" },
		{ BUNDLE_ALLOW, "10.0.0.2:22" },
		{ BUNDLE_ALLOW, "10.1.0.0/16:23" },
		{ BUNDLE_ALLOW, "2001:db8::1" },
		{ BUNDLE_ALLOW, "[2001:db8:1::/48]:22" },
		{ BUNDLE_ALLOW, "localhost:3000" },
		{ BUNDLE_ALLOW, "pypi" },
		{ BUNDLE_DENY, "evil.wild.com" },
		{ BUNDLE_DENY, "ok.com:80" },
		{ BUNDLE_DENY, "10.1.7.0/24" },
		{ 0, NULL },
	};
	struct policy *policy = NULL;
	struct policy_error err = { "" };

	(void)state;
	assert_int_equal(build_pieces(piece, &policy, &err), 0);
	expect(policy, "ok.com", NULL, 443, REASON_RULE);
	expect(policy, "ok.com", NULL, 80, REASON_DENY_RULE);
	expect(policy, "ok.com", NULL, 0, REASON_RULE);
	expect(policy, "port.com", NULL, 8443, REASON_RULE);
	expect(policy, "port.com", NULL, 443, REASON_PORT);
	expect(policy, "a.wild.com", NULL, 443, REASON_RULE);
	expect(policy, "a.wild.com", NULL, 22, REASON_RULE);
	expect(policy, "evil.wild.com", NULL, 22, REASON_DENY_RULE);
	expect(policy, "range.com", NULL, 8001, REASON_RULE);
	expect(policy, "both.test", NULL, 443, REASON_RULE);
	expect(policy, "both.test", NULL, 22, REASON_RULE);
	expect(policy, NULL, "10.0.0.1", 443, REASON_RULE);
	expect(policy, NULL, "10.0.0.1", 22, REASON_PORT);
	expect(policy, NULL, "10.0.0.2", 22, REASON_RULE);
	expect(policy, NULL, "10.1.2.3", 23, REASON_RULE);
	expect(policy, NULL, "10.1.7.3", 23, REASON_DENY_RULE);
	expect(policy, NULL, "2001:db8::1", 443, REASON_RULE);
	expect(policy, NULL, "2001:db8:1::9", 22, REASON_RULE);
	expect(policy, "localhost", NULL, 3000, REASON_RULE);
	expect(policy, "files.pythonhosted.org", NULL, 443, REASON_RULE);
	expect(policy, "nope.com", NULL, 443, REASON_NOT_IN_POLICY);
	struct question q = { .host = "port.com", .port = 8443 };
	const struct rule *rule = policy_decide(policy, &q).rule;
	assert_string_equal(rule_origin(rule), "--allow");
	assert_string_equal(rule_text(rule), "port.com:8443");
	policy_unref(policy);
}

static void test_presets(void **state)
{
	static const char *const must[] = { "anthropic", "debian", "github",
					    "npm", "pypi" };
	size_t len, n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(must); i++) {
		const char *text = preset_yaml(must[i], &len);

		assert_non_null(text);
		assert_int_equal(strlen(text), len);
		assert_non_null(strstr(text, "Provenance:"));
		assert_non_null(strstr(text, "Date: 2026-"));
	}
	for (; preset_name(n); n++) {
		struct piece piece[] = { { BUNDLE_ALLOW, preset_name(n) },
					 { 0, NULL } };
		struct policy *policy = NULL;
		struct policy_error err = { "" };

		assert_int_equal(build_pieces(piece, &policy, &err), 0);
		assert_string_equal(policy_name(policy), preset_name(n));
		policy_unref(policy);
	}
	assert_true(n >= ARRAY_SIZE(must));
	assert_null(preset_yaml("nope", &len));
}

/* The same origin and line as in the file, for records. */
static void test_preset_origin(void **state)
{
	static const struct piece piece[] = { { BUNDLE_ALLOW, "npm" },
					      { 0, NULL } };
	struct question q = { .host = "npmjs.org", .port = 443 };
	struct policy *policy = NULL;
	struct policy_error err;
	size_t len, line = 1;
	const char *text = preset_yaml("npm", &len);
	char want[64];

	(void)state;
	for (const char *p = text; p < strstr(text, "host: npmjs.org"); p++)
		line += *p == '\n';
	snprintf(want, sizeof(want), "preset npm:%zu", line);
	assert_int_equal(build_pieces(piece, &policy, &err), 0);
	assert_string_equal(rule_origin(policy_decide(policy, &q).rule), want);
	policy_unref(policy);
}

static void test_digest(void **state)
{
	static const struct piece one[] = { { BUNDLE_ALLOW, "a.b" },
					    { 0, NULL } };
	static const struct piece two[] = { { BUNDLE_ALLOW, "a.c" },
					    { 0, NULL } };
	struct policy *a = NULL, *b = NULL, *c = NULL;
	struct policy_error err;

	(void)state;
	assert_int_equal(build_pieces(one, &a, &err), 0);
	assert_int_equal(build_pieces(one, &b, &err), 0);
	assert_int_equal(build_pieces(two, &c, &err), 0);
	assert_int_equal(strlen(policy_digest(a)), 64);
	assert_int_equal(strspn(policy_digest(a), "0123456789abcdef"), 64);
	assert_string_equal(policy_digest(a), policy_digest(b));
	assert_string_not_equal(policy_digest(a), policy_digest(c));
	policy_unref(a);
	policy_unref(b);
	policy_unref(c);
}

/* A bundle cut anywhere is refused, except between two parts. */
static void test_damaged(void **state)
{
	struct bundle bundle = { 0 };
	struct policy_error err;
	struct policy *policy = NULL;
	size_t first;

	(void)state;
	assert_int_equal(
		bundle_add(&bundle, BUNDLE_ALLOW, "--allow", "ok.com", 6), 0);
	first = bundle.len;
	assert_int_equal(bundle_add(&bundle, BUNDLE_PERMIT, "--permit",
				    "10.0.0.0/8", 10),
			 0);
	for (size_t len = 1; len < bundle.len; len++) {
		/* A copy of exact size, so that ASan sees every overread. */
		AUTO_FREE uint8_t *copy = malloc(len);

		memcpy(copy, bundle.data, len);
		int ret = policy_build(copy, len, &policy, &err);
		assert_int_equal(ret, len == first ? 0 : -EINVAL);
		if (ret == 0)
			policy_unref(policy);
		policy = NULL;
	}
	bundle.data[0] = 77;
	assert_int_equal(policy_build(bundle.data, bundle.len, &policy, &err),
			 -EINVAL);
	bundle_free(&bundle);
	assert_null(bundle.data);

	assert_int_equal(
		bundle_add(&bundle, BUNDLE_ALLOW, "--allow", "ok.com\0x", 8),
		0);
	assert_int_equal(policy_build(bundle.data, bundle.len, &policy, &err),
			 -EINVAL);
	bundle_free(&bundle);
}

static void test_files(void **state)
{
	char path[] = "/tmp/sallyport-test-XXXXXX";
	AUTO_FD int fd = mkstemp(path);
	struct bundle bundle = { 0 };
	struct policy *policy = NULL;
	struct policy_error err = { "" };

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "version: 1\nalow: []\n", 20), 20);
	assert_int_equal(bundle_add_policy(&bundle, path, &err), 0);
	assert_int_equal(policy_build(bundle.data, bundle.len, &policy, &err),
			 -EINVAL);
	assert_memory_equal(err.text, path, strlen(path));
	assert_string_equal(err.text + strlen(path),
			    ":2:1: unknown key 'alow', did you mean 'allow'?");
	bundle_free(&bundle);

	assert_int_equal(ftruncate(fd, (512 << 10) + 1), 0);
	assert_int_equal(bundle_add_policy(&bundle, path, &err), -EINVAL);
	assert_non_null(strstr(err.text, ": it is larger than 512 KiB"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(bundle_add_policy(&bundle, path, &err), -EINVAL);
	assert_non_null(strstr(err.text, ": No such file or directory"));
	assert_int_equal(bundle_add_policy(&bundle, "/tmp", &err), -EINVAL);
	assert_string_equal(err.text, "/tmp: Is a directory");
	assert_int_equal(bundle.len, 0);
	bundle_free(&bundle);
}

/* What others' policies name is a file, and is never waited for; and its name
 * is no line of its own. */
static void test_named_pipe(void **state)
{
	char dir[] = "/tmp/sallyport-test-XXXXXX", pipe[64];
	static const char *const yaml[] = {
		"version: 1\nextends: [./pipe]\n",
		"version: 1\ndeny: [{file: pipe}]\n",
	};
	struct bundle bundle = { 0 };
	struct policy_error err = { "" };
	char origin[64];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(pipe, sizeof(pipe), "%s/pipe", dir);
	snprintf(origin, sizeof(origin), "%s/p.yaml", dir);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	for (size_t i = 0; i < ARRAY_SIZE(yaml); i++) {
		assert_int_equal(bundle_add_policy_text(&bundle, origin,
							yaml[i],
							strlen(yaml[i]), &err),
				 -EINVAL);
		assert_non_null(strstr(err.text, "it is no regular file"));
	}
	static const char forged[] = "version: 1\nextends: "
				     "[\"./a\\n\\u202ep.yaml\"]\n";
	assert_int_equal(bundle_add_policy_text(&bundle, origin, forged,
						strlen(forged), &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "/a??p.yaml: No such file"));
	unlink(pipe);
	rmdir(dir);
	bundle_free(&bundle);
}

static void test_too_big(void **state)
{
	struct bundle bundle = { 0 };
	size_t len = 129 << 20;
	AUTO_FREE char *text = calloc(1, len);

	(void)state;
	assert_non_null(text);
	assert_int_equal(bundle_add(&bundle, BUNDLE_FILE, "a", text, len), 0);
	assert_int_equal(bundle_add(&bundle, BUNDLE_FILE, "b", text, len),
			 -EFBIG);
	assert_int_equal(bundle_add(&bundle, BUNDLE_FILE, "b", text, SIZE_MAX),
			 -EFBIG);
	bundle_free(&bundle);
}

/* Two files add up; only one may name the servers. */
static void test_two_files(void **state)
{
	static const struct piece good[] = {
		{ BUNDLE_FILE, "version: 1\nname: one\nallow: [a.test]\n" },
		{ BUNDLE_FILE, "version: 1\nname: two\ndeny: [a.test]\n" },
		{ 0, NULL },
	};
	static const struct piece twice[] = {
		{ BUNDLE_FILE, "version: 1\ndns: {upstream: [9.9.9.9]}\n" },
		{ BUNDLE_FILE, "version: 1\ndns: {upstream: [system]}\n" },
		{ 0, NULL },
	};
	struct policy *policy = NULL;
	struct policy_error err = { "" };

	(void)state;
	assert_int_equal(build_pieces(good, &policy, &err), 0);
	expect(policy, "a.test", NULL, 443, REASON_DENY_RULE);
	assert_string_equal(policy_name(policy), "one");
	policy_unref(policy);
	policy = NULL;
	assert_int_equal(build_pieces(twice, &policy, &err), -EINVAL);
	assert_memory_equal(err.text, "p.yaml:2:17: ", 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_preset_origin),
		cmocka_unit_test(test_digest),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_named_pipe),
		cmocka_unit_test(test_too_big),
		cmocka_unit_test(test_two_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
