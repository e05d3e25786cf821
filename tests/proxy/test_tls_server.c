/* SPDX-License-Identifier: Apache-2.0
 *
 * A server's first answer and a client's second hello, as OpenSSL writes them,
 * and as nobody should.
 */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>

#include "base/cleanup.h"
#include "proxy/sniff/tls_server.h"
#include "tests/proxy/hello.h"
#include "tests/proxy/tls_peer.h"

#define NAME "good.test"

/* All at once, byte by byte, and in every two pieces. */
static void assert_answer(const uint8_t *data, size_t len, enum tls_answer want)
{
	for (size_t cut = 0; cut <= len; cut++) {
		struct tls_answer_reader r = { .seen = 0 };
		enum tls_answer got = tls_answer_read(&r, data, cut);

		if (got == TLS_ANSWER_MORE)
			got = tls_answer_read(&r, data + cut, len - cut);
		assert_int_equal(got, want);
	}
	for (size_t i = 0, step = 1; step < 4; step++) {
		struct tls_answer_reader r = { .seen = 0 };
		enum tls_answer got = TLS_ANSWER_MORE;

		for (i = 0; i < len && got == TLS_ANSWER_MORE; i += step)
			got = tls_answer_read(&r, data + i,
					      step < len - i ? step : len - i);
		assert_int_equal(got, want);
	}
}

/* The server's first flight after the client's. */
static size_t answer_of(const char *groups, int max, struct tls_peer *client,
			struct tls_peer *server, uint8_t *buf, size_t cap)
{
	size_t len;

	tls_client(client, NAME, groups, max);
	/* its certificate needs the other one, before 1.3 */
	tls_server(server, max < TLS1_3_VERSION ? "X25519:P-256" : "X25519");
	assert_false(tls_step(client));
	len = tls_said(client, buf, cap);
	tls_hear(server, buf, len);
	assert_false(tls_step(server));
	return tls_said(server, buf, cap);
}

static void test_real_answers(void **state)
{
	static const struct {
		const char *groups;
		int max;
		enum tls_answer want;
	} rows[] = {
		{ "X25519", TLS1_3_VERSION, TLS_ANSWER_FINAL },
		{ "X25519:P-256", TLS1_2_VERSION, TLS_ANSWER_FINAL },
		{ "P-521:X25519:P-256", TLS1_2_VERSION, TLS_ANSWER_FINAL },
		{ "P-521:X25519", TLS1_3_VERSION, TLS_ANSWER_RETRY },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct tls_peer client, server;
		uint8_t buf[16384], cut[16384];
		size_t len = answer_of(rows[i].groups, rows[i].max, &client,
				       &server, buf, sizeof(buf));
		size_t message = (size_t)(buf[3] << 8 | buf[4]);

		assert_answer(buf, len, rows[i].want);
		for (size_t n = 1; n < 9; n++) {
			/* the same message in records of n bytes */
			size_t all = hello_records(buf + 5, message, n, cut,
						   sizeof(cut));

			assert_answer(cut, all < 600 ? all : 600, rows[i].want);
		}
		tls_end(&client);
		tls_end(&server);
	}
}

/* An alert is all that this server has to say. */
static void test_real_alert(void **state)
{
	struct tls_peer client, server;
	uint8_t buf[16384];
	size_t len;

	(void)state;
	tls_client(&client, NAME, "P-521", TLS1_3_VERSION);
	tls_server(&server, "X25519");
	SSL_do_handshake(client.ssl);
	len = tls_said(&client, buf, sizeof(buf));
	tls_hear(&server, buf, len);
	assert_int_equal(SSL_do_handshake(server.ssl), -1);
	len = tls_said(&server, buf, sizeof(buf));
	assert_int_equal(buf[0], 0x15);
	assert_answer(buf, len, TLS_ANSWER_FINAL);
	tls_end(&client);
	tls_end(&server);
}

#define R(s) s, sizeof(s) - 1
#define RETRY_RANDOM                                                       \
	"\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91" \
	"\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c"
#define RETRY "\x16\x03\x03\0\x2c\x02\0\0\x28\x03\x03" RETRY_RANDOM "\0"

static void test_answers(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		enum tls_answer want;
	} rows[] = {
		{ R(""), TLS_ANSWER_MORE },
		{ R("\x16\x03\x03\0\x2c\x02\0\0\x28\x03\x03"),
		  TLS_ANSWER_MORE },
		{ R(RETRY), TLS_ANSWER_RETRY },
		/* in front of it: warnings, requests for a hello */
		{ R("\x15\x03\x03\0\x02\x01\x70" RETRY), TLS_ANSWER_RETRY },
		{ R("\x15\x03\x01\0\x02\x01\x70\x15\x03\x01\0\x02\x01\0" RETRY),
		  TLS_ANSWER_RETRY },
		{ R("\x16\x03\x03\0\x04\0\0\0\0" RETRY), TLS_ANSWER_RETRY },
		{ R("\x16\x03\x03\0\x05\0\0\0\0\x02\x16\x03\x03\0\x2b"
		    "\0\0\x28\x03\x03" RETRY_RANDOM),
		  TLS_ANSWER_RETRY },
		/* no handshake follows */
		{ R("\x15\x03\x03\0\x02\x02\x28" RETRY), TLS_ANSWER_FINAL },
		{ R("HTTP/1.1 400 Bad Request\r\n"), TLS_ANSWER_FINAL },
		{ R("\x17\x03\x03\0\x20"), TLS_ANSWER_FINAL },
		{ R("\x16\x03\x03\0\x20\x0b"), TLS_ANSWER_FINAL },
		{ R("\x16\x02"), TLS_ANSWER_FINAL },
		/* one bit of the random */
		{ R("\x16\x03\x03\0\x2c\x02\0\0\x28\x03\x03"
		    "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65"
		    "\xb8\x91\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2"
		    "\xc8\xa8\x33\x9d\0"),
		  TLS_ANSWER_FINAL },
		/* a message that something else interrupts; empty records */
		{ R("\x16\x03\x03\0\x01\x02\x15\x03\x03\0\x02\x01\x70"),
		  TLS_ANSWER_BAD },
		{ R("\x16\x03\x03\0\x01\x02\x14\x03\x03\0\x01\x01"),
		  TLS_ANSWER_BAD },
		{ R("\x16\x03\x03\0\0"), TLS_ANSWER_BAD },
		{ R("\x16\x03\x03\xff\xff"), TLS_ANSWER_BAD },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		print_message("row %zu\n", i);
		assert_answer((const uint8_t *)rows[i].bytes, rows[i].len,
			      rows[i].want);
	}
}

/* A server that never comes to the point. */
static void test_answer_is_bounded(void **state)
{
	struct tls_answer_reader r = { .seen = 0 };
	enum tls_answer got = TLS_ANSWER_MORE;
	size_t n = 0;

	(void)state;
	for (; got == TLS_ANSWER_MORE && n < 1000; n += 7)
		got = tls_answer_read(
			&r, (const uint8_t *)"\x15\x03\x03\0\x02\x01\x70", 7);
	assert_int_equal(got, TLS_ANSWER_BAD);
	assert_in_range(n, TLS_ANSWER_MAX, TLS_ANSWER_MAX + 7);
}

static enum sniff second(const uint8_t *data, size_t len, size_t *ret_skip,
			 char host[HOST_MAX + 1])
{
	/* An exact copy, so that ASan sees a read past the end. */
	AUTO_FREE uint8_t *copy = malloc(len ? len : 1);
	struct tls_hello hello;
	enum reason reason = REASON_RULE;
	enum sniff s;

	assert_non_null(copy);
	if (len)
		memcpy(copy, data, len);
	s = tls_second_hello(copy, len, ret_skip, &hello, &reason);
	if (s == SNIFF_DONE)
		memcpy(host, hello.host, HOST_MAX + 1);
	if (s == SNIFF_BAD)
		assert_int_equal(reason, REASON_MALFORMED);
	return s;
}

/* The second flight of an OpenSSL client, whole and cut anywhere. */
static void test_real_second_hello(void **state)
{
	struct tls_peer client, server;
	uint8_t buf[16384];
	char host[HOST_MAX + 1];
	size_t skip, len = answer_of("P-521:X25519", TLS1_3_VERSION, &client,
				     &server, buf, sizeof(buf));

	(void)state;
	tls_hear(&client, buf, len);
	assert_false(tls_step(&client));
	len = tls_said(&client, buf, sizeof(buf));
	assert_int_equal(buf[0], 0x14); /* for middleboxes */
	assert_int_equal(second(buf, len, &skip, host), SNIFF_DONE);
	assert_int_equal(skip, 6);
	assert_string_equal(host, NAME);
	for (size_t n = 0; n < len; n++) {
		assert_int_equal(second(buf, n, &skip, host), SNIFF_MORE);
		assert_int_equal(skip, n < 6 ? 0 : 6);
	}
	assert_int_equal(tls_forge(buf, len, NAME, "evil.test"), 1);
	assert_int_equal(second(buf, len, &skip, host), SNIFF_DONE);
	assert_string_equal(host, "evil.test");
	tls_end(&client);
	tls_end(&server);
}

static void test_second_hellos(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		enum sniff want;
		size_t skip;
	} rows[] = {
		{ R(""), SNIFF_MORE, 0 },
		{ R("\x14\x03\x03\0\x01\x01"), SNIFF_MORE, 6 },
		{ R("\x14\x03\x03\0\x01\x01\x14\x03\x03\0\x01"), SNIFF_MORE,
		  6 },
		{ R("\x17\x03\x03\0\x03zzz"), SNIFF_MORE, 8 },
		{ R("\x17\x03\x03\0\x03zz"), SNIFF_MORE, 0 },
		{ R("\x17\x03\x03\x41\0z"), SNIFF_MORE, 0 },
		{ R("\x15\x03\x03\0\x02\x02\x2f"), SNIFF_MORE, 7 },
		{ R("\x14\x03\x03\0\x01\x01\x16"), SNIFF_MORE, 6 },
		/* not records, or not these */
		{ R("\x17\x03\x03\x41\x01z"), SNIFF_BAD, 0 },
		{ R("\x14\x03\x03\0\x02\x01\x01"), SNIFF_BAD, 0 },
		{ R("\x15\x03\x03\0\x03\x01\x01\x01"), SNIFF_BAD, 0 },
		{ R("\x17\x03\x03\0\0"), SNIFF_BAD, 0 },
		{ R("\x18\x03\x03\0\x03"), SNIFF_BAD, 0 },
		{ R("\x17\x02"), SNIFF_BAD, 0 },
		{ R("\x14\x03\x03\0\x01\x01GET"), SNIFF_BAD, 6 },
		/* a handshake message, but no hello */
		{ R("\x14\x03\x03\0\x01\x01\x16\x03\x03\0\x04\x0b\0\0\0"),
		  SNIFF_BAD, 6 },
		/* half a hello, then something else */
		{ R("\x16\x03\x03\0\x01\x01\x14\x03\x03\0\x01\x01"), SNIFF_BAD,
		  0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char host[HOST_MAX + 1];
		size_t skip;

		print_message("row %zu\n", i);
		assert_int_equal(second((const uint8_t *)rows[i].bytes,
					rows[i].len, &skip, host),
				 rows[i].want);
		assert_int_equal(skip, rows[i].skip);
	}
}

/* In records of one byte each, behind early data. */
static void test_second_in_pieces(void **state)
{
	const struct hello_spec spec = { .name = NAME };
	uint8_t message[512], buf[4096] = "\x17\x03\x03\0\x03zzz";
	size_t len = hello_message(&spec, message, sizeof(message)), skip;
	char host[HOST_MAX + 1];

	(void)state;
	len = 8 + hello_records(message, len, 1, buf + 8, sizeof(buf) - 8);
	assert_int_equal(second(buf, len, &skip, host), SNIFF_DONE);
	assert_int_equal(skip, 8);
	assert_string_equal(host, NAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_answers),
		cmocka_unit_test(test_real_alert),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_answer_is_bounded),
		cmocka_unit_test(test_real_second_hello),
		cmocka_unit_test(test_second_hellos),
		cmocka_unit_test(test_second_in_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
