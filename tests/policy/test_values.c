/* SPDX-License-Identifier: Apache-2.0
 *
 * test_values.c - sizes, times, counts, path patterns and names of files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "policy/build.h"
#include "policy/meter.h"
#include "policy/path.h"
#include "policy/values.h"

static void test_sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes; /* 0: no size */
	} rows[] = {
		{ "1", 1 },
		{ "10 MB", 10000000 },
		{ "10MB", 10000000 },
		{ "1 KiB", 1024 },
		{ "5GiB", 5ull << 30 },
		{ "3 TiB", 3ull << 40 },
		{ "7 kB", 7000 },
		{ "7 B", 7 },
		{ "1000 TB", 1000000000000000 },
		{ "1001 TB", 0 },
		{ "999999999999999", 999999999999999 },
		{ "9999999999999999", 0 },
		{ "0", 0 },
		{ "0 MB", 0 },
		{ "", 0 },
		{ " 1", 0 },
		{ "1 ", 0 },
		{ "1  MB", 0 },
		{ "-1", 0 },
		{ "+1", 0 },
		{ "1.5 MB", 0 },
		{ "1e6", 0 },
		{ "1 mb", 0 },
		{ "1 Mb", 0 },
		{ "1 MBs", 0 },
		{ "MB", 0 },
		{ "0x10", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t bytes = 0;
		const char *why = value_size(rows[i].text, &bytes);

		if (!why != !!rows[i].bytes || bytes != rows[i].bytes)
			fail_msg("'%s' is %llu (%s)", rows[i].text,
				 (unsigned long long)bytes, why ? why : "ok");
	}
}

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		uint32_t s; /* 0: none */
	} rows[] = {
		{ "1", 1 },
		{ "90", 90 },
		{ "90s", 90 },
		{ "15m", 900 },
		{ "24h", 86400 },
		{ "7d", 604800 },
		{ "007d", 604800 },
		{ "365d", 31536000 },
		{ "31536000", 31536000 },
		{ "366d", 0 },
		{ "31536001", 0 },
		{ "8761h", 0 },
		{ "0", 0 },
		{ "0d", 0 },
		{ "", 0 },
		{ "s", 0 },
		{ "1 h", 0 },
		{ "1.5h", 0 },
		{ "-1", 0 },
		{ "1w", 0 },
		{ "1H", 0 },
		{ "1hh", 0 },
		{ "9999999999999999d", 0 },
		{ "4294967297", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t s = 0;
		const char *why = value_duration(rows[i].text, &s);

		if (!why != !!rows[i].s || s != rows[i].s)
			fail_msg("'%s' is %u (%s)", rows[i].text, s,
				 why ? why : "ok");
	}
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		int64_t s; /* 0: no time */
	} rows[] = {
		{ "2026-01-01", 1767225600 },
		{ "2026-01-01T00:00:00Z", 1767225600 },
		{ "2024-02-29", 1709164800 },
		{ "2027-12-31T23:59:59Z", 1830297599 },
		{ "2023-02-29", 0 },
		{ "2026-13-01", 0 },
		{ "2026-00-01", 0 },
		{ "2026-01-32", 0 },
		{ "2026-01-01T24:00:00Z", 0 },
		{ "2026-01-01T00:60:00Z", 0 },
		{ "2026-01-01T00:00:61Z", 0 },
		{ "2026-01-01T00:00:00", 0 },
		{ "2026-01-01 00:00:00Z", 0 },
		{ "2026-01-01T00:00:00z", 0 },
		{ "2026-01-01T00:00:00+00:00", 0 },
		{ "2026-1-1", 0 },
		{ "26-01-01", 0 },
		{ "2026-01-01x", 0 },
		{ "1969-12-31", 0 },
		{ "0000-01-01", 0 },
		{ "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int64_t s = 0;
		const char *why = value_time(rows[i].text, &s);

		if (!why != !!rows[i].s || s != rows[i].s)
			fail_msg("'%s' is %lld (%s)", rows[i].text,
				 (long long)s, why ? why : "ok");
	}
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool matches;
	} rows[] = {
		{ "/", "/", true },
		{ "/", "/a", false },
		{ "/a", "/a", true },
		{ "/a", "/a/", false },
		{ "/a/", "/a/", true },
		{ "/a/", "/a", false },
		{ "/a", "/A", false },
		{ "/a", "/ab", false },
		{ "/a/b", "/a", false },
		{ "/*", "/a", true },
		{ "/*", "/", false },
		{ "/*", "/a/b", false },
		{ "/*/", "/a/", true },
		{ "/*/b", "/a/b", true },
		{ "/*/b", "/b", false },
		{ "/a/*/c", "/a/x/c", true },
		{ "/a/*/c", "/a/x/y/c", false },
		{ "/**", "/", true },
		{ "/**", "/a/b/c", true },
		{ "/a/**", "/a/", true },
		{ "/a/**", "/a/b", true },
		{ "/a/**", "/a", false },
		{ "/a/**", "/ab/c", false },
		{ "/*/**", "/a/b", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_null(path_pattern_fault(rows[i].pattern));
		if (path_matches(rows[i].pattern, rows[i].path,
				 strlen(rows[i].path)) != rows[i].matches)
			fail_msg("%s and %s", rows[i].pattern, rows[i].path);
	}
}

static void test_ambiguous(void **state)
{
	static const char *const plain[] = { "/",	   "/a/b/",
					     "/a%20b",	   "/a%C3%A4",
					     "/a:b@c",	   "/a,b=c&d",
					     "/%E0%A4%85", "/%F0%9F%98%80" };
	static const char *const unclear[] = {
		"",
		"a",
		"*",
		"//",
		"/a//b",
		"/a%2fb",
		"/a%2Fb",
		"/a%5cb",
		"/a%25b",
		"/a%00b",
		"/a%3bb",
		"/a;b",
		"/a\\b",
		"/a/..;/b",
		"/a%2",
		/* overlong: '/', '.', and '/' twice more */
		"/a%C0%AFb",
		"/%c0%ae%c0%ae/b",
		"/a%c1%9cb",
		"/a%E0%80%AFb",
		"/a%e0%9F%bfb",
		"/a%f0%80%80%afb",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (path_ambiguous(plain[i], strlen(plain[i])))
			fail_msg("%s", plain[i]);
	for (size_t i = 0; i < ARRAY_SIZE(unclear); i++)
		if (!path_ambiguous(unclear[i], strlen(unclear[i])))
			fail_msg("%s", unclear[i]);
}

static void test_files(void **state)
{
	static const struct {
		const char *origin, *name, *path; /* NULL: none */
	} rows[] = {
		{ "p.yaml", "./b.yaml", "b.yaml" },
		{ "p.yaml", "b.yaml", "b.yaml" },
		{ "d/p.yaml", "b.yaml", "d/b.yaml" },
		{ "d/p.yaml", "../b.yaml", "b.yaml" },
		{ "d/p.yaml", "../../b.yaml", "../b.yaml" },
		{ "d/p.yaml", "../../../b.yaml", "../../b.yaml" },
		{ "../p.yaml", "../b.yaml", "../../b.yaml" },
		{ "./d/./p.yaml", "./e//b.yaml", "d/e/b.yaml" },
		{ "/etc/p.yaml", "b.yaml", "/etc/b.yaml" },
		{ "/etc/p.yaml", "../b.yaml", "/b.yaml" },
		{ "/p.yaml", "b.yaml", "/b.yaml" },
		{ "/p.yaml", "../b.yaml", NULL },
		{ "d/p.yaml", "/etc/b.yaml", "/etc/b.yaml" },
		{ "d/p.yaml", "/etc/../b.yaml", "/b.yaml" },
		{ "d/p.yaml", "/..", NULL },
		{ "p.yaml", "d/../b.yaml", "b.yaml" },
		{ "p.yaml", ".", NULL },
		{ "p.yaml", "", NULL },
	};
	char path[64], small[8];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool ok = path_join(rows[i].origin, rows[i].name, path,
				    sizeof(path));

		if (ok != !!rows[i].path ||
		    (ok && strcmp(path, rows[i].path) != 0))
			fail_msg("%s + %s = %s", rows[i].origin, rows[i].name,
				 ok ? path : "nothing");
	}
	assert_false(
		path_join("p.yaml", "too-long.yaml", small, sizeof(small)));
	assert_true(path_is_file("a/b"));
	assert_true(path_is_file("a.yaml"));
	assert_true(path_is_file("a.yml"));
	assert_false(path_is_file(".yaml"));
	assert_false(path_is_file("github"));
}

static void test_meters(void **state)
{
	uint64_t session = 0, rule = 0;
	struct meters meters = { .at = { [UP] = { { &session, 100 },
						  { &rule, 30 } },
					 [DOWN] = { { &session, 0 } } } };

	(void)state;
	assert_true(meters_room(NULL, UP) == UINT64_MAX);
	assert_true(meters_room(&meters, UP) == 30);
	meters_spend(&meters, UP, 20);
	assert_true(session == 20 && rule == 20);
	assert_true(meters_room(&meters, UP) == 10);
	session = 95;
	assert_true(meters_room(&meters, UP) == 5);
	meters_spend(&meters, UP, 5);
	assert_true(meters_room(&meters, UP) == 0);
	/* A limit that was lowered below what is used. */
	meters.at[UP][METER_RULE].limit = 1;
	assert_true(meters_room(&meters, UP) == 0);
	assert_true(meters_room(&meters, DOWN) == UINT64_MAX);
	session = UINT64_MAX - 1;
	meters_spend(&meters, DOWN, 5);
	assert_true(session == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_ambiguous),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_meters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
