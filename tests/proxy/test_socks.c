/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "base/cleanup.h"
#include "proxy/sniff/socks.h"

#define B(s) (const uint8_t *)(s), sizeof(s) - 1

static const struct {
	const uint8_t *bytes;
	size_t len;
	enum sniff want;
	size_t want_len;
	uint8_t method;
} greetings[] = {
	{ B(""), SNIFF_MORE, 0, 0 },
	{ B("\x05"), SNIFF_MORE, 0, 0 },
	{ B("\x05\x01"), SNIFF_MORE, 0, 0 },
	{ B("\x05\x01\x00"), SNIFF_DONE, 3, 0 },
	{ B("\x05\x02\x02\x00rest"), SNIFF_DONE, 4, 0 },
	{ B("\x05\x01\x02"), SNIFF_DONE, 3, 0xff },
	{ B("\x05\x00"), SNIFF_BAD, 0, 0 },
	{ B("\x04\x01\x00"), SNIFF_BAD, 0, 0 },
};

static void test_greeting(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(greetings); i++) {
		size_t len = 0;
		uint8_t method = 0;

		assert_int_equal(socks_greeting(greetings[i].bytes,
						greetings[i].len, &len,
						&method),
				 greetings[i].want);
		assert_int_equal(len, greetings[i].want_len);
		assert_int_equal(method, greetings[i].method);
	}
}

static const struct {
	const uint8_t *bytes;
	size_t len;
	const char *host, *address;
	uint16_t port;
} good[] = {
	{ B("\x05\x01\x00\x03\x07ok.test\x01\xbb"), "ok.test", "", 443 },
	{ B("\x05\x01\x00\x03\x07OK.Test\x00\x50"), "ok.test", "", 80 },
	{ B("\x05\x01\x00\x03\x08ok.test.\x00\x50"), "ok.test", "", 80 },
	{ B("\x05\x01\x00\x01\xc6\x33\x64\x07\x20\xfb"), "", "198.51.100.7",
	  8443 },
	{ B("\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x16"),
	  "", "2001:db8::1", 22 },
	{ B("\x05\x01\x00\x03\x0c"
	    "198.51.100.7\x00\x16"),
	  "", "198.51.100.7", 22 },
};

/* Also: every proper prefix wants more, and what follows is left alone. */
static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct socks_request req;
		char address[IP_TEXT_MAX];
		uint8_t longer[64];
		uint8_t reply = 0;
		enum reason reason = REASON_RULE;

		for (size_t n = 0; n < good[i].len; n++)
			assert_int_equal(socks_request_parse(good[i].bytes, n,
							     &req, &reply,
							     &reason),
					 SNIFF_MORE);
		memcpy(longer, good[i].bytes, good[i].len);
		longer[good[i].len] = 0x16;
		assert_int_equal(socks_request_parse(longer, good[i].len + 1,
						     &req, &reply, &reason),
				 SNIFF_DONE);
		assert_string_equal(req.host, good[i].host);
		assert_string_equal(ip_format(&req.address, address),
				    good[i].address);
		assert_int_equal(req.port, good[i].port);
		assert_int_equal(req.len, good[i].len);
	}
}

static const struct {
	const uint8_t *bytes;
	size_t len;
	uint8_t reply;
	enum reason reason;
	const char *shown;
} evil[] = {
	/* NUL in the name: matched and resolved would differ (N2) */
	{ B("\x05\x01\x00\x03\x10"
	    "evil.com\0.ok.com\x01\xbb"),
	  1, REASON_MALFORMED, "evil.com\\x00.ok.com" },
	{ B("\x05\x01\x00\x03\x00\x01\xbb"), 1, REASON_MALFORMED, "" },
	{ B("\x05\x01\x00\x03\x09ok.test..\x01\xbb"), 1, REASON_MALFORMED,
	  "ok.test.." },
	{ B("\x05\x01\x00\x03\x0a"
	    "2130706433\x01\xbb"),
	  2, REASON_LITERAL_ADDRESS, "2130706433" },
	{ B("\x05\x01\x00\x03\x08"
	    "0x7f.0.1\x01\xbb"),
	  2, REASON_LITERAL_ADDRESS, "0x7f.0.1" },
	{ B("\x05\x01\x00\x03\x0a"
	    "012.0.0.01\x01\xbb"),
	  2, REASON_LITERAL_ADDRESS, "012.0.0.01" },
	{ B("\x05\x01\x00\x03\x03[a]\x01\xbb"), 1, REASON_MALFORMED, "[a]" },
	{ B("\x05\x01\x00\x03\x04"
	    "a\r\nb\x01\xbb"),
	  1, REASON_MALFORMED, "a\\x0d\\x0ab" },
	{ B("\x05\x01\x00\x03\x04\xc3\xa4.b\x01\xbb"), 1, REASON_MALFORMED,
	  "\\xc3\\xa4.b" },
	{ B("\x05\x01\x00\x03\x07ok.test\x00\x00"), 1, REASON_MALFORMED,
	  "ok.test" },
	{ B("\x05\x01\x01\x03\x07ok.test\x01\xbb"), 1, REASON_MALFORMED,
	  "ok.test" },
	{ B("\x04\x01\x00\x50\x7f\x00\x00\x01"), 1, REASON_MALFORMED, "" },
	/* BIND, UDP ASSOCIATE (S1) */
	{ B("\x05\x02\x00\x03\x07ok.test\x01\xbb"), 7, REASON_PROTOCOL,
	  "ok.test" },
	{ B("\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00"), 7, REASON_PROTOCOL,
	  "" },
	{ B("\x05\x01\x00\x02"), 8, REASON_MALFORMED, "" },
};

static void test_evil(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(evil); i++) {
		struct socks_request req;
		uint8_t reply = 0;
		enum reason reason = REASON_RULE;

		/* nothing of what was there before may get into a record */
		memset(&req, 'x', sizeof(req));
		if (socks_request_parse(evil[i].bytes, evil[i].len, &req,
					&reply, &reason) != SNIFF_BAD)
			fail_msg("row %zu was not refused", i);
		assert_int_equal(reply, evil[i].reply);
		assert_int_equal(reason, evil[i].reason);
		assert_string_equal(req.shown, evil[i].shown);
	}
}

/* The longest name of the most expensive bytes stays inside the buffer. */
static void test_shown_is_cut(void **state)
{
	uint8_t bytes[5 + 255 + 2] = { 5, 1, 0, 3, 255 };
	struct socks_request req;
	uint8_t reply = 0;
	enum reason reason = REASON_RULE;

	(void)state;
	memset(bytes + 5, 0x1b, 255);
	bytes[sizeof(bytes) - 1] = 1;
	assert_int_equal(socks_request_parse(bytes, sizeof(bytes), &req, &reply,
					     &reason),
			 SNIFF_BAD);
	assert_true(strlen(req.shown) > 200);
	assert_true(strlen(req.shown) < sizeof(req.shown));
	assert_null(strchr(req.shown, 0x1b));
}

static void test_reply(void **state)
{
	static const uint8_t want[] = { 5, 2, 0, 1, 0, 0, 0, 0, 0, 0 };
	uint8_t got[SOCKS_REPLY_LEN];

	(void)state;
	socks_reply(2, got);
	assert_memory_equal(got, want, sizeof(want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_greeting),
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_evil),
		cmocka_unit_test(test_shown_is_cut),
		cmocka_unit_test(test_reply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
