/* SPDX-License-Identifier: Apache-2.0
 *
 * test_http_body.c - where a body ends, in one piece and byte by byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "proxy/sniff/http_body.h"

static struct http_body body;
static char payload[256];
static size_t payload_len, taken;

/* Reads @text in pieces of @piece bytes. */
static enum sniff read_all(const char *text, size_t len, size_t piece)
{
	enum sniff got = SNIFF_MORE;

	payload_len = taken = 0;
	while (got == SNIFF_MORE) {
		size_t used, n = len - taken < piece ? len - taken : piece;
		AUTO_FREE char *copy = malloc(n ? n : 1);
		struct http_text text_out;

		memcpy(copy, text + taken, n);
		got = http_body_read(&body, copy, n, &used, &text_out);
		if (got == SNIFF_BAD)
			break;
		assert_true(used <= n && text_out.len <= used);
		assert_true(payload_len + text_out.len < sizeof(payload));
		memcpy(payload + payload_len, text_out.at, text_out.len);
		payload_len += text_out.len;
		taken += used;
		if (used == 0)
			break;
	}
	payload[payload_len] = '\0';
	return got;
}

static const struct {
	const char *text, *payload, *rest; /* payload NULL: refused */
} chunked[] = {
	{ "0\r\n\r\n", "", "" },
	{ "3\r\nabc\r\n0\r\n\r\n", "abc", "" },
	{ "00003\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\nGET /", "abc0123456789",
	  "GET /" },
	{ "3;x=y\r\nabc\r\n0;z\r\nX: y\r\nZ:\r\n\r\nmore", "abc", "more" },
/* H3 */
#define BAD(text)                \
	{                        \
		text, NULL, NULL \
	}
	BAD("+5\r\nabcde\r\n0\r\n\r\n"),
	BAD("-1\r\n"),
	BAD("0x3\r\nabc\r\n"),
	BAD(" 3\r\nabc\r\n"),
	BAD("3 \r\nabc\r\n"),
	BAD("\r\n"),
	BAD(";x\r\n"),
	BAD("ffffffffffffffff\r\n"),
	BAD("10000000000000000\r\n"),
	BAD("3;x=\"\r\n\"\r\nabc\r\n"),
	BAD("3;x=\"y\"\r\nabc\r\n"),
	BAD("3\nabc\r\n0\r\n\r\n"),
	BAD("3;x\nabc\r\n0\r\n\r\n"),
	BAD("3;\x01\r\nabc\r\n"),
	BAD("3\rabc\r\n"),
	BAD("3\r\nabc\n0\r\n\r\n"),
	BAD("3\r\nabcd\r\n0\r\n\r\n"),
	BAD("3\r\nabc0\r\n\r\n"),
	BAD("3\r\nabc\r0\r\n\r\n"),
	BAD("0\r\n\n"),
	BAD("0\r\nX: y\n\r\n"),
	BAD("0\r\n X: y\r\n\r\n"),
	BAD("0\r\nX : y\r\n\r\n"),
	BAD("0\r\nX\r\n\r\n"),
	BAD("0\r\n: y\r\n\r\n"),
	BAD("0\r\n\rX"),
	BAD("3\r\nabc\r\nz\r\n"),
#undef BAD
};

static void test_chunked(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(chunked); i++) {
		const char *text = chunked[i].text;
		size_t len = strlen(text);

		print_message("%s\n", text);
		for (size_t piece = 1; piece <= len; piece++) {
			http_body_init(&body, HTTP_CHUNKED, 0);
			if (!chunked[i].payload) {
				assert_int_equal(read_all(text, len, piece),
						 SNIFF_BAD);
				assert_non_null(body.error);
				continue;
			}
			assert_int_equal(read_all(text, len, piece),
					 SNIFF_DONE);
			assert_string_equal(payload, chunked[i].payload);
			assert_string_equal(text + taken, chunked[i].rest);
		}
	}
}

/* Every prefix of a good body is incomplete, never bad nor done. */
static void test_prefixes(void **state)
{
	static const char text[] = "3;a\r\nabc\r\n1\r\nd\r\n0\r\nA: b\r\n\r\n";

	(void)state;
	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		http_body_init(&body, HTTP_CHUNKED, 0);
		assert_int_equal(read_all(text, len, 7), SNIFF_MORE);
	}
}

static enum sniff read_long(const char *start, char fill)
{
	char text[8192];
	size_t used, n = strlen(start);
	struct http_text out;

	memset(text, fill, sizeof(text));
	memcpy(text, start, n);
	http_body_init(&body, HTTP_CHUNKED, 0);
	return http_body_read(&body, text, sizeof(text), &used, &out);
}

static void test_limits(void **state)
{
	(void)state;
	assert_int_equal(read_long("1;", 'x'), SNIFF_BAD);
	assert_int_equal(read_long("0\r\nX", 'x'), SNIFF_BAD);
	assert_int_equal(read_long("0\r\nX:", 'x'), SNIFF_BAD);
	assert_int_equal(read_long("0", '0'), SNIFF_BAD);
}

static void test_length(void **state)
{
	(void)state;
	for (size_t piece = 1; piece < 8; piece++) {
		http_body_init(&body, HTTP_LENGTH, 5);
		assert_int_equal(read_all("abc", 3, piece), SNIFF_MORE);
		assert_int_equal(read_all("deGET", 5, piece), SNIFF_DONE);
		assert_string_equal(payload, "de");
		assert_int_equal(taken, 2);
	}
	http_body_init(&body, HTTP_LENGTH, 0);
	assert_int_equal(read_all("x", 1, 1), SNIFF_DONE);
	assert_int_equal(taken, 0);
	http_body_init(&body, HTTP_NO_BODY, 7);
	assert_int_equal(read_all("x", 1, 1), SNIFF_DONE);
	assert_int_equal(taken, 0);
}

static void test_until_close(void **state)
{
	(void)state;
	http_body_init(&body, HTTP_UNTIL_CLOSE, 0);
	assert_int_equal(read_all("abcdef", 6, 4), SNIFF_MORE);
	assert_string_equal(payload, "abcdef");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chunked),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_until_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
