/* SPDX-License-Identifier: Apache-2.0
 *
 * test_memory.c - out of memory at every allocation: no policy, no half of
 * one, and (with ASan) nothing leaked. P5 begins here.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/diff.h"
#include "policy/lint.h"
#include "tests/policy/build_helper.h"

/* The linker sends the library's calls here (--wrap, see CMakeLists.txt). */
static long calls_left = -1; /* -1: never fail */

static bool fails(void)
{
	if (calls_left < 0)
		return false;
	if (calls_left == 0)
		return true;
	calls_left--;
	return false;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
char *__wrap_strndup(const char *s, size_t n);

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return fails() ? NULL : __real_reallocarray(p, n, size);
}

char *__wrap_strdup(const char *s)
{
	return fails() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
	return fails() ? NULL : __real_strndup(s, n);
}

static const struct {
	enum bundle_kind kind;
	const char *text;
} parts[] = {
	{ BUNDLE_FILE,
	  "version: 1\nname: x\nextends: [npm]\nallow:\n  - a.test\n"
	  "  - {host: b.test, ports: [1], addresses: [10.0.0.0/8]}\n"
	  "  - {host: b.test, ports: [2], addresses: [10.0.0.0/9]}\n"
	  "  - {address: 10.0.0.0/8, ports: [1-2]}\ndeny: [c.test]\n"
	  "sandbox: {rw: [a, ~/b], hide: [c], env: [A], pids: 3}\n" },
	{ BUNDLE_ALLOW, "d.test:22" },
	{ BUNDLE_PERMIT, "10.0.0.0/8" },
};

static const char ceiling_text[] =
	"version: 1\nallow: ['*.test', {address: 10.1.0.0/16, ports: [1]}]\n"
	"sandbox: {hide: [d], nofile: 5}\n";

static void put_below(struct bundle *bundle)
{
	struct bundle ceiling = { 0 };

	assert_int_equal(bundle_add(&ceiling, BUNDLE_FILE, "c", ceiling_text,
				    sizeof(ceiling_text) - 1),
			 0);
	assert_int_equal(bundle_add_ceiling(bundle, &ceiling, "c"), 0);
	bundle_free(&ceiling);
}

/* A verdict that needs memory and has none is a refusal, not for good. */
static void check_joint(const struct policy *policy)
{
	const struct question q = { .host = "a.test",
				    .port = 443,
				    .door = DOOR_CONNECT };

	for (calls_left = 0; calls_left < 2;) {
		long n = calls_left;

		assert_false(policy_decide(policy, &q).allow);
		calls_left = n + 1;
	}
	calls_left = -1;
	assert_true(policy_decide(policy, &q).allow);
}

static void test_every_allocation(void **state)
{
	struct bundle bundle = { 0 };
	struct policy *policy = NULL;
	struct policy_error err;
	long n = 0;
	int ret;

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		assert_int_equal(bundle_add(&bundle, parts[i].kind, "x",
					    parts[i].text,
					    strlen(parts[i].text)),
				 0);
	put_below(&bundle);
	do {
		calls_left = n++;
		ret = policy_build(bundle.data, bundle.len, &policy, &err);
		calls_left = -1;
		if (ret != 0) {
			assert_int_equal(ret, -ENOMEM);
			assert_null(policy);
		}
	} while (ret != 0 && n < 10000);
	assert_int_equal(ret, 0);
	assert_true(n > 50);
	check_joint(policy);
	policy_unref(policy);

	/* A bundle that cannot grow stays what it was. */
	size_t len = bundle.len;
	calls_left = 0;
	assert_int_equal(bundle_add(&bundle, BUNDLE_ALLOW, "x", "e.test", 6),
			 -ENOMEM);
	calls_left = -1;
	assert_int_equal(bundle.len, len);
	bundle_free(&bundle);
}

/* Nor half of what lint and diff have to say. */
static void test_lint_and_diff(void **state)
{
	struct policy *was = build_yaml("version: 1\nallow: ['*.co.uk', "
					"'*.com']\ndeny: [x.test]\n");
	struct policy *is = build_yaml(
		"version: 1\nlimits: {names: 9}\nallow:\n - {host: a.test, "
		"ports: [1-9, 20]}\n - {address: 9.0.0.0/8, ports: [7]}\n");
	struct findings found;
	struct differences all;
	long n = 0;
	int ret;

	(void)state;
	do {
		calls_left = n++;
		ret = policy_lint(was, 1, &found);
		calls_left = -1;
		assert_true(ret == 0 || ret == -ENOMEM);
	} while (ret < 0);
	assert_true(n > 2 && found.count >= 4);
	findings_free(&found);
	n = 0;
	do {
		calls_left = n++;
		ret = policy_diff(was, is, 1, &all);
		calls_left = -1;
		assert_true(ret == 0 || ret == -ENOMEM);
	} while (ret < 0);
	assert_true(n > 10 && all.count >= 6);
	differences_free(&all);
	policy_unref(was);
	policy_unref(is);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_allocation),
		cmocka_unit_test(test_lint_and_diff),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
