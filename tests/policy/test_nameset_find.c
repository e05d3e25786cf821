/* SPDX-License-Identifier: Apache-2.0
 *
 * test_nameset_find.c - which names a list has, and where they stand in it.
 */
#include "tests/policy/nameset_case.h"

static struct nameset *loaded(const char *text)
{
	struct nameset *set = NULL;
	struct nameset_report report;

	assert_int_equal(load(text, strlen(text), &set, &report), 0);
	assert_int_equal(report.names, nameset_count(set));
	return set;
}

static void test_find(void **state)
{
	struct nameset *set = loaded("a.test\n"
				     "*.b.test\n"
				     "0.0.0.0 c.test\n"
				     "deep.a.test\n"
				     "*.c.test\n"
				     ".zip\n"
				     "x.y.deep.a.test\n");

	(void)state;
	expect(set, "a.test", "1=a.test");
	expect(set, "x.a.test", "1<a.test");
	expect(set, "x.y.a.test", "1<a.test");
	expect(set, "deep.a.test", "4=deep.a.test");
	expect(set, "y.deep.a.test", "4<deep.a.test");
	expect(set, "x.y.deep.a.test", "7=x.y.deep.a.test");
	expect(set, "b.test", "");
	expect(set, "x.b.test", "2<b.test");
	expect(set, "c.test", "3=c.test");
	expect(set, "x.c.test", "5<c.test");
	expect(set, "zip", "6=zip");
	expect(set, "a.zip", "6<zip");
	expect(set, "test", "");
	expect(set, "xa.test", "");
	expect(set, "a.test.example", "");
	expect(set, "a.tes", "");
	expect(set, "a", "");
	expect(set, "", "");
	nameset_free(set);
	nameset_free(NULL);
	set = loaded("# nothing\n");
	expect(set, "a.test", "");
	nameset_free(set);
}

/* The longest names, the most labels, and what is no name at all. */
static void test_extremes(void **state)
{
	char longest[HOST_MAX + 1], dots[1024];
	struct nameset *set =
		loaded("a\nb.a\n*.a\n" L63 "." L63 "." L63 ".test\n");

	(void)state;
	for (size_t i = 0; i < HOST_MAX; i++)
		longest[i] = i % 2 ? '.' : 'a';
	longest[HOST_MAX] = '\0';
	expect(set, longest, "3<a");
	longest[HOST_MAX - 1] = 'b';
	expect(set, longest, "");
	expect(set, L63 "." L63 "." L63 ".test",
	       "4=" L63 "." L63 "." L63 ".test");
	expect(set, "x." L63 "." L63 "." L63 ".test",
	       "4<" L63 "." L63 "." L63 ".test");
	expect(set, L63 "." L63 ".test", "");
	memset(dots, '.', sizeof(dots));
	dots[sizeof(dots) - 1] = '\0';
	expect(set, dots, "");
	expect(set, dots + sizeof(dots) - 1 - HOST_MAX, "");
	nameset_free(set);
}

static void test_limits(void **state)
{
	size_t len = NAMESET_TEXT_MAX + 1, few = 2 * (NAMESET_NAMES_MAX + 1);
	char *text = calloc(1, len);
	struct nameset *set = NULL;
	struct nameset_report report;

	(void)state;
	assert_non_null(text);
	assert_int_equal(nameset_new(text, len, &set, &report), -EFBIG);
	for (size_t i = 0; i < few; i += 2)
		memcpy(text + i, "-\n", 2);
	assert_int_equal(nameset_new(text, few, &set, &report), -EFBIG);
	assert_int_equal(report.first_skipped_line, 1);
	assert_null(set);
	free(text);
}

/* Lines far apart, and gaps where duplicates were. */
static void test_line_numbers(void **state)
{
	static const size_t gap[] = { 0, 30, 31, 32, 4095, 4096, 600000 };
	AUTO_FREE char *text = malloc(1000000);
	uint32_t want[ARRAY_SIZE(gap) + 1] = { 1, 2 }, line = 3;
	struct nameset_cursor cursor = { 0 };
	struct nameset_item item;
	size_t len, n = 0;

	(void)state;
	assert_non_null(text);
	len = (size_t)sprintf(text, "n0.test\nagain.test\n");
	for (size_t i = 1; i < ARRAY_SIZE(gap); i++) {
		memset(text + len, '\n', gap[i]);
		len += gap[i];
		line += (uint32_t)gap[i];
		want[i + 1] = line;
		len += (size_t)snprintf(text + len, 64,
					"n%zu.test\nagain.test\n", i);
		line += 2;
	}
	struct nameset *set = loaded(text);
	for (; nameset_next(set, &cursor, &item); n++) {
		struct nameset_hit hit;

		assert_int_equal(item.line, want[n]);
		assert_true(nameset_find(set, item.name, &hit));
		assert_int_equal(nameset_line(set, &hit), want[n]);
	}
	assert_int_equal(n, ARRAY_SIZE(want));
	nameset_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_line_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
