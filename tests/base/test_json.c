/* SPDX-License-Identifier: Apache-2.0
 *
 * test_json.c - hostile text stays inside its string (THREATS R7); jansson, a
 * parser that is not ours, reads what was written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "base/json.h"

static json_t *read_back(const struct json *j)
{
	json_error_t err;
	json_t *root = json_loadb(j->buf, j->len, JSON_REJECT_DUPLICATES, &err);

	if (!root)
		print_error("%.*s: %s\n", (int)j->len, j->buf, err.text);
	assert_non_null(root);
	return root;
}

static void test_shape(void **state)
{
	static const char want[] =
		"{\"a\":\"x\",\"n\":18446744073709551615,"
		"\"i\":-9223372036854775808,\"b\":true,\"c\":false,"
		"\"o\":{},\"l\":[1,\"y\",[],{\"z\":0}],\"e\":\"\"}";
	char buf[256];
	struct json j = json_of(buf, sizeof(buf));

	(void)state;
	json_open(&j, NULL, '{');
	json_text(&j, "a", "x");
	json_text(&j, "left-out", NULL);
	json_text(&j, "left-out", "");
	json_uint(&j, "n", UINT64_MAX);
	json_int(&j, "i", INT64_MIN);
	json_bool(&j, "b", true);
	json_bool(&j, "c", false);
	json_open(&j, "o", '{');
	json_close(&j, '}');
	json_open(&j, "l", '[');
	json_uint(&j, NULL, 1);
	json_text(&j, NULL, "y");
	json_open(&j, NULL, '[');
	json_close(&j, ']');
	json_open(&j, NULL, '{');
	json_uint(&j, "z", 0);
	json_close(&j, '}');
	json_close(&j, ']');
	json_bytes(&j, "e", "", 0);
	json_close(&j, '}');
	assert_false(j.full);
	assert_int_equal(j.len, sizeof(want) - 1);
	assert_memory_equal(buf, want, j.len);
}

/* No byte string of one or two bytes escapes its quotes, or breaks UTF-8. */
static void test_all_pairs(void **state)
{
	(void)state;
	for (unsigned pair = 0; pair < 65536; pair++) {
		char text[2] = { (char)(pair >> 8), (char)pair }, buf[64];
		struct json j = json_of(buf, sizeof(buf));

		json_open(&j, NULL, '{');
		json_bytes(&j, "k", text, sizeof(text));
		json_bool(&j, "after", true);
		json_close(&j, '}');
		for (size_t i = 0; i < j.len; i++)
			assert_true((uint8_t)buf[i] >= 0x20 && buf[i] != 0x7f);
		/* U+0000 is legal JSON, but jansson refuses it by default. */
		json_t *root = json_loadb(buf, j.len, JSON_ALLOW_NUL, NULL);
		assert_non_null(root);
		assert_int_equal(json_object_size(root), 2);
		assert_true(json_is_string(json_object_get(root, "k")));
		json_decref(root);
	}
}

static void expect_text(const char *text, size_t len, const char *want)
{
	char buf[128];
	struct json j = json_of(buf, sizeof(buf));

	json_bytes(&j, NULL, text, len);
	assert_int_equal(j.len, strlen(want));
	assert_memory_equal(buf, want, j.len);
}

#define EXPECT(text, want) expect_text(text, sizeof(text) - 1, want)

static void test_escapes(void **state)
{
	(void)state;
	EXPECT("a\"b\\c", "\"a\\\"b\\\\c\"");
	EXPECT("a\r\n{\"x\":1}", "\"a\\u000d\\u000a{\\\"x\\\":1}\"");
	EXPECT("\x1b[2J\0", "\"\\u001b[2J\\u0000\"");
	EXPECT("\x7f", "\"\\u007f\"");
	EXPECT("m\xc3\xbcnchen", "\"m\xc3\xbcnchen\"");
	EXPECT("\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"");
	EXPECT("\xc2\x9b"
	       "1m",
	       "\"\\u00c2\\u009b1m\"");		  /* C1 CSI */
	EXPECT("\xc0\xaf", "\"\\u00c0\\u00af\""); /* overlong */
	EXPECT("\xe0\x80\xaf", "\"\\u00e0\\u0080\\u00af\"");
	EXPECT("\xed\xa0\x80", "\"\\u00ed\\u00a0\\u0080\""); /* surrogate */
	EXPECT("\xf4\x90\x80\x80", "\"\\u00f4\\u0090\\u0080\\u0080\"");
	EXPECT("\xe2\x80\xae", "\"\\u00e2\\u0080\\u00ae\""); /* RLO */
	EXPECT("\xe2\x80\xa8", "\"\\u00e2\\u0080\\u00a8\""); /* LS */
	EXPECT("\xc3", "\"\\u00c3\"");			     /* cut short */
	EXPECT("\xff", "\"\\u00ff\"");
}

/* What text becomes, byte by byte, if no two others than ASCII stand together:
 * then each is no UTF-8. */
static size_t escape(const char *text, size_t len, char *to)
{
	size_t n = 0;

	to[n++] = '"';
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"' || text[i] == '\\')
			n += (size_t)sprintf(to + n, "\\%c", text[i]);
		else if ((uint8_t)text[i] < 0x20 || (uint8_t)text[i] >= 0x7f)
			n += (size_t)sprintf(to + n, "\\u%04x",
					     (uint8_t)text[i]);
		else
			to[n++] = text[i];
	}
	to[n++] = '"';
	return n;
}

/* Text is judged in words: so each length, and each byte at each place. */
static void test_all_places(void **state)
{
	char text[40], buf[80], want[80];

	(void)state;
	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		for (unsigned byte = 0; byte < 0x100; byte++) {
			for (size_t at = 0; at < len; at++) {
				struct json j = json_of(buf, sizeof(buf));
				size_t n;

				memset(text, 'a', len);
				text[at] = (char)byte;
				n = escape(text, len, want);
				json_bytes(&j, NULL, text, len);
				assert_int_equal(j.len, n);
				assert_memory_equal(buf, want, n);
			}
		}
	}
}

static void test_members(void **state)
{
	char buf[64];
	struct json j = json_of(buf, sizeof(buf));

	(void)state;
	json_open(&j, NULL, '{');
	json_members(&j, "\"a\":1,\"b\":[]");
	json_members(&j, "\"c\":2");
	json_uint(&j, "d", 10);
	json_close(&j, '}');
	assert_false(j.full);
	assert_int_equal(j.len, strlen("{\"a\":1,\"b\":[],\"c\":2,\"d\":10}"));
	assert_memory_equal(buf, "{\"a\":1,\"b\":[],\"c\":2,\"d\":10}", j.len);
}

/* In every size of buffer: whole, or marked as full and never past the end. */
static void test_full(void **state)
{
	char buf[80];
	size_t need = 0;

	(void)state;
	for (size_t cap = sizeof(buf) - 1; cap-- > 0;) {
		struct json j = json_of(buf, cap);

		memset(buf, 'X', sizeof(buf));
		json_open(&j, NULL, '{');
		json_bytes(&j, "k", "a\x01\"\xc3\xbc", 5);
		json_uint(&j, "n", 7);
		json_close(&j, '}');
		assert_true(j.len <= cap);
		for (size_t i = cap; i < sizeof(buf); i++)
			assert_int_equal(buf[i], 'X');
		if (!need)
			need = j.len;
		assert_int_equal(j.full, cap < need);
		if (!j.full)
			json_decref(read_back(&j));
	}
	assert_true(need > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shape),
		cmocka_unit_test(test_all_pairs),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_all_places),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
