/* SPDX-License-Identifier: Apache-2.0
 *
 * The line by which a command is in the log: one line, whatever its words are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/placed.h"

static void test_words(void **state)
{
	static const struct {
		char *argv[4];
		const char *line;
	} rows[] = {
		{ { "ls", "-l", "/a_b" }, "ls -l /a_b" },
		{ { "sh", "-c", "echo hi" }, "sh -c 'echo hi'" },
		{ { "x", "" }, "x ''" },
		{ { "" }, "''" },
		{ { "a\nb", "\x1b[2J" }, "'a?b' '?[2J'" },
		{ { "caf\xc3\xa9", "\xff" },
		  "'caf?"
		  "?' '?'" },
		{ { "a", "b'c" }, "a 'b'c'" },
	};
	char line[PLACED_LINE_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		placed_line(rows[i].argv, line);
		assert_string_equal(line, rows[i].line);
	}
}

/* Of each length about the one at which it is cut. */
static void test_cut(void **state)
{
	char word[2 * PLACED_LINE_MAX], line[PLACED_LINE_MAX];
	char *argv[] = { "cmd", word, NULL };

	(void)state;
	for (size_t n = PLACED_LINE_MAX - 20; n < PLACED_LINE_MAX + 20; n++) {
		memset(word, 'x', n);
		word[n] = '\0';
		memset(line, '!', sizeof(line));
		placed_line(argv, line);
		assert_true(memchr(line, '\0', sizeof(line)) != NULL);
		assert_memory_equal(line, "cmd x", 5);
		if (n + 4 > PLACED_LINE_MAX - 4)
			assert_string_equal(line + strlen(line) - 4, "x...");
		else
			assert_string_equal(line + 4, word);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
