/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"

static void test_clean(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "", "" },
		{ "plain b\xc3\xbc\xe4\xb8\xad",
		  "plain b\xc3\xbc\xe4\xb8\xad" },
		{ "a\nb\033[1m\x7f", "a?b?[1m?" },
		{ "\xc2\x9bm", "?m" },
		{ "\xe2\x80\x8f\xe2\x80\x8b\xd8\x9c\xef\xbb\xbf.", "????." },
		{ "\xf3\xa0\x81\xa1.", "?." },
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
		{ "\xff\x9bm\xc0\x80", "??m??" },
		{ "\xed\xa0\x80.\xf5\x80\x80\x80", "???.????" },
		{ "a\xe4\xb8.", "a??." },
		/* Cut by somebody's buffer. */
		{ "cut \xc3", "cut " },
		{ "cut \xe4\xb8", "cut " },
		{ "cut \xf0\x9f\x98", "cut " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[64];

		strcpy(text, rows[i].in);
		text_clean(text);
		assert_string_equal(text, rows[i].out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
