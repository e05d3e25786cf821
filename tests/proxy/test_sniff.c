/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proxy/sniff/sniff.h"

#define B(s) s, sizeof(s) - 1

static const struct {
	const char *bytes;
	size_t len;
	enum protocol want;
} table[] = {
	{ B(""), PROTOCOL_UNKNOWN },
	/* TLS, and all that a TLS server would still read as such */
	{ B("\x16"), PROTOCOL_UNKNOWN },
	{ B("\x16\x03"), PROTOCOL_TLS },
	{ B("\x16\x03\x01\x02\x00\x01"), PROTOCOL_TLS },
	{ B("\x16\x03\x01\x00\x00\x16\x03"), PROTOCOL_TLS },
	{ B("\x16\x03\x09\xff\xff"), PROTOCOL_TLS },
	{ B("\x15\x03\x01\x00\x02\x01\x5a"), PROTOCOL_TLS },
	{ B("\x14\x03\x03\x00\x01\x01"), PROTOCOL_TLS },
	{ B("\x17\x03\x03\x00\x01\x01"), PROTOCOL_TLS },
	{ B("\x80\x2e\x01\x03\x01\x00"), PROTOCOL_TLS },
	{ B("\x80\x2e\x01"), PROTOCOL_UNKNOWN },
	{ B("\x80"), PROTOCOL_UNKNOWN },
	{ B("\x80\x2e\x00"), PROTOCOL_OTHER },
	{ B("\x16\x02\x01"), PROTOCOL_OTHER },
	{ B("\x13\x03\x01"), PROTOCOL_OTHER },
	/* HTTP */
	{ B("G"), PROTOCOL_UNKNOWN },
	{ B("GET "), PROTOCOL_UNKNOWN },
	{ B("GET /"), PROTOCOL_HTTP },
	{ B("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), PROTOCOL_HTTP },
	{ B("GET /old\r\n"), PROTOCOL_HTTP },
	{ B("\r\n\r\nGET / HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B("\r\n"), PROTOCOL_UNKNOWN },
	{ B(" \tGET / HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B("get / HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B("BREW / HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B("BREW\t/\thttp/1.1\r\n"), PROTOCOL_HTTP },
	{ B("GET\xa0/\xa0HTTP/1.1\n"), PROTOCOL_HTTP },
	{ B("GET / HTTP/1.1 trailing\r\n"), PROTOCOL_HTTP },
	{ B("GET http://a/ HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B("CONNECT a:443 HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B("OPTIONS * HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B("GET /\xc3\xa4 HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B("GET / HTTP/2.0\r\n"), PROTOCOL_HTTP },
	{ B("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), PROTOCOL_HTTP2 },
	{ B("PRI * HTTP/2"), PROTOCOL_HTTP2 },
	{ B("PRI * HT"), PROTOCOL_UNKNOWN },
	/* SOCKS */
	{ B("\x05"), PROTOCOL_SOCKS5 },
	{ B("\x05\x01\x00"), PROTOCOL_SOCKS5 },
	{ B("\x04\x01"), PROTOCOL_OTHER },
	/* What must get through at once, without a wait */
	{ B("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"), PROTOCOL_OTHER },
	{ B("SSH-2.0-Go\r\n"), PROTOCOL_OTHER },
	{ B("EHLO me.example\r\n"), PROTOCOL_OTHER },
	{ B("GET http://evil.test/\r\n"), PROTOCOL_HTTP },
	{ B("GET   http://evil.test/\r\n"), PROTOCOL_HTTP },
	{ B("GET \t /\r\n"), PROTOCOL_HTTP },
	{ B("OPTIONS * HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B(" \r\n \r\nGET / HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B("GET http://x/\x01 HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B("GET x\x01"), PROTOCOL_UNKNOWN },
	{ B("FOO /\x7f HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B("M-SEARCH /\x01 HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B("X1 /\x01 HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B("\xa0GET /host HTTP/1.1\r\n"), PROTOCOL_HTTP },
	{ B("GET key\r\n"), PROTOCOL_OTHER },
	{ B("get key\r\n"), PROTOCOL_OTHER },
	{ B("*1\r\n$4\r\nPING\r\n"), PROTOCOL_OTHER },
	{ B("NICK HTTP\r\n"), PROTOCOL_OTHER },
	{ B("AMQP\0\0\x09\x01"), PROTOCOL_OTHER },
	{ B("\0\0\0\x08\x04\xd2\x16\x2f"), PROTOCOL_OTHER },
	{ B("\x30\x0c\x02\x01\x01\x60\x07"), PROTOCOL_OTHER },
	{ B("\x10\x0c\0\x04MQTT"), PROTOCOL_OTHER },
	{ B("0032git-upload-pack /a\0host=b\0"), PROTOCOL_OTHER },
	{ B("@RSYNCD: 31.0\n"), PROTOCOL_OTHER },
	{ B("RFB 003.008\n"), PROTOCOL_OTHER },
	{ B("<34>1 a \"GET / HTTP/1.1\" 200\n"), PROTOCOL_OTHER },
	{ B("\xff\xfd\x03\xff"), PROTOCOL_OTHER },
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		enum protocol got = sniff_protocol(
			(const uint8_t *)table[i].bytes, table[i].len);

		if (got != table[i].want)
			fail_msg("row %zu '%s': %d, not %d", i, table[i].bytes,
				 (int)got, (int)table[i].want);
	}
}

/* What is TLS or HTTP once must never have been called something else when
 * fewer bytes were there: the tunnel would be open by then. */
static void test_prefixes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (table[i].want == PROTOCOL_OTHER)
			continue;
		for (size_t n = 0; n < table[i].len; n++) {
			enum protocol got = sniff_protocol(
				(const uint8_t *)table[i].bytes, n);

			if (got == PROTOCOL_OTHER)
				fail_msg("row %zu: other at %zu bytes", i, n);
		}
	}
}

static void test_long_lines(void **state)
{
	enum { SIZE = SNIFF_MAX };
	AUTO_FREE uint8_t *line = malloc(SIZE);

	(void)state;
	assert_non_null(line);
	memset(line, 'A', SIZE);
	/* A method has no limit but that of the line. */
	assert_int_equal(sniff_protocol(line, 64), PROTOCOL_UNKNOWN);
	assert_int_equal(sniff_protocol(line, 16384), PROTOCOL_UNKNOWN);
	assert_int_equal(sniff_protocol(line, 16385), PROTOCOL_OTHER);
	line[4] = ' ';
	assert_int_equal(sniff_protocol(line, 16384), PROTOCOL_UNKNOWN);
	assert_int_equal(sniff_protocol(line, 16385), PROTOCOL_HTTP);
	memset(line, '\n', SIZE);
	assert_int_equal(sniff_protocol(line, SIZE), PROTOCOL_UNKNOWN);
}

static void test_words(void **state)
{
	(void)state;
	assert_string_equal(protocol_word(PROTOCOL_TLS), "tls");
	assert_string_equal(protocol_word(PROTOCOL_HTTP), "http");
	assert_string_equal(protocol_word(PROTOCOL_OTHER), "tcp");
	assert_string_equal(protocol_word(PROTOCOL_UNKNOWN), "tcp");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
