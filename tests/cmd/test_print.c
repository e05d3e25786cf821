/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/print.h"

static void test_text(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "plain", "plain" },
		{ "b\xc3\xbc"
		  "cher",
		  "b\xc3\xbc"
		  "cher" },
		{ "a\033[31mb", "a?[31mb" },
		{ "two\nlines\r", "two?lines?" },
		{ "\x7f\x01", "??" },
		{ "\xc2\x9b"
		  "31m",
		  "?31m" },
		{ "\xe2\x80\xae"
		  "moc\xe2\x80\xa8",
		  "?moc?" },
		{ "\xe2\x81\xa6x", "?x" },
		{ "\xe2\x80\x93", "\xe2\x80\x93" },
		{ "cut \xe2", "cut ?" },
		{ "cut \xc2", "cut ?" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *buf = NULL;
		size_t len;
		FILE *out = open_memstream(&buf, &len);

		assert_non_null(out);
		print_text(out, TONE_BAD, "<%s>\n", cases[i].in);
		fclose(out);
		assert_int_equal(len, strlen(cases[i].out) + 3);
		assert_memory_equal(buf + 1, cases[i].out, len - 3);
		assert_int_equal(buf[len - 1], '\n');
		free(buf);
	}
}

static void test_place(void **state)
{
	static const struct {
		const char *in;
		bool rest;
		const char *out, *left;
	} cases[] = {
		{ "p.yaml:12", false, "\"file\":\"p.yaml\",\"line\":12", NULL },
		{ "preset github:4", false,
		  "\"file\":\"preset github\",\"line\":4", NULL },
		{ "--allow", false, "\"file\":\"--allow\"", NULL },
		{ "a:1:b:7", false, "\"file\":\"a:1:b\",\"line\":7", NULL },
		{ "p.yaml:3:5: bad 'x:1'", true,
		  "\"file\":\"p.yaml\",\"line\":3,\"column\":5", "bad 'x:1'" },
		{ "/no: No such file", true, "", "/no: No such file" },
		{ "--allow x: unknown", true, "", "--allow x: unknown" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char buf[200];
		struct json j = json_of(buf, sizeof(buf));
		const char *left = NULL;

		json_place(&j, cases[i].in, cases[i].rest ? &left : NULL);
		assert_int_equal(j.len, strlen(cases[i].out));
		assert_memory_equal(buf, cases[i].out, j.len);
		if (cases[i].left)
			assert_string_equal(left, cases[i].left);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
