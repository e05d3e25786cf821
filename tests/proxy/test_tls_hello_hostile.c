/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tls_hello_hostile.c - hellos that no client sends.
 */
#include "tests/proxy/tls_hello_case.h"

static void test_ech(void **state)
{
	static const uint16_t types[] = { 0xfe0d, 0xffce, 0x0a0a };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const struct hello_spec spec = { .name = NAME,
						 .extra = types[i] };
		uint8_t buf[256];
		size_t len = hello_make(&spec, buf, sizeof(buf));
		struct tls_hello hello;
		enum reason reason;

		assert_int_equal(parse(buf, len, &hello, &reason), SNIFF_DONE);
		assert_string_equal(hello.host, NAME);
		assert_int_equal(hello.ech, i < 2);
	}
}

#define B(s) (const uint8_t *)(s), sizeof(s) - 1

static void test_records(void **state)
{
	static const struct {
		const uint8_t *bytes;
		size_t len;
		enum reason reason;
	} rows[] = {
		{ B("G"), REASON_PROTOCOL },
		{ B("SSH-2.0-x\r\n"), REASON_PROTOCOL },
		{ B("\x05\x01\x00"), REASON_PROTOCOL },
		{ B("\x80\x2e\x01\x03\x01"), REASON_PROTOCOL },
		{ B("\x15\x03\x01"), REASON_PROTOCOL },
		{ B("\x16\x02"), REASON_PROTOCOL },
		{ B("\x16\x03\x07\x00\x05"), REASON_MALFORMED },
		{ B("\x16\x03\x01\x00\x00"), REASON_MALFORMED },
		{ B("\x16\x03\x01\x40\x01"), REASON_MALFORMED },
		/* ServerHello, HelloRequest, too long a hello */
		{ B("\x16\x03\x01\x00\x04\x02"), REASON_MALFORMED },
		{ B("\x16\x03\x01\x00\x04\x00"), REASON_MALFORMED },
		{ B("\x16\x03\x01\x00\x04\x01\x00\x80\x00"), REASON_MALFORMED },
		{ B("\x16\x03\x01\x00\x04\x01\x00\x7f\xfd"), REASON_MALFORMED },
		{ B("\x16\x03\x01\x00\x04\x01\x00\x00\x00"), REASON_MALFORMED },
		/* the hello goes on in something else */
		{ B("\x16\x03\x01\x00\x01\x01\x17"), REASON_MALFORMED },
		{ B("\x16\x03\x01\x00\x01\x01\x16\x03\x01\x00\x00"),
		  REASON_MALFORMED },
		/* more handshake in the record where it ends */
		{ B("\x16\x03\x01\x00\x05\x01\x00\x00\x00\x01"),
		  REASON_MALFORMED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		print_message("row %zu\n", i);
		assert_bad(rows[i].bytes, rows[i].len, rows[i].reason);
	}
}

/* Two hellos in one record: a server would read the second as well. */
static void test_two_hellos(void **state)
{
	const struct hello_spec good = { .name = NAME };
	const struct hello_spec evil = { .name = "evil.test" };
	uint8_t m[512], buf[512];
	size_t n = hello_message(&good, m, sizeof(m));

	(void)state;
	n += hello_message(&evil, m + n, sizeof(m) - n);
	assert_bad(buf, hello_records(m, n, 16384, buf, sizeof(buf)),
		   REASON_MALFORMED);
}

/* Never more than SNIFF_MAX: at the end there is a verdict. */
static void test_cap(void **state)
{
	AUTO_FREE uint8_t *buf = malloc(SNIFF_MAX);
	const struct hello_spec spec = { .name = NAME, .padding = 16000 };
	uint8_t m[SNIFF_MAX];
	size_t n = hello_message(&spec, m, sizeof(m)), i = 0;
	enum reason reason;

	(void)state;
	assert_non_null(buf);
	/* one byte a record: six times as long, so it never completes */
	for (size_t at = 0; i + 6 <= SNIFF_MAX && at < n; at++, i += 6) {
		memcpy(buf + i, "\x16\x03\x01\x00\x01", 5);
		buf[i + 5] = m[at];
	}
	memcpy(buf + i, "\x16\x03\x01\x00\x01", SNIFF_MAX - i);
	assert_int_equal(parse(buf, SNIFF_MAX - 1, NULL, &reason), SNIFF_MORE);
	assert_bad(buf, SNIFF_MAX, REASON_MALFORMED);
}

/* Every byte changed, every length cut: no crash, and DONE only with a name
 * that is canonical. */
static void test_mutations(void **state)
{
	const struct hello_spec spec = { .name = NAME, .padding = 20 };
	uint8_t buf[256];
	size_t len = hello_make(&spec, buf, sizeof(buf));

	(void)state;
	for (size_t i = 0; i < len; i++) {
		const uint8_t was = buf[i];

		for (int v = 0; v < 256; v++) {
			struct tls_hello hello;
			char again[HOST_MAX + 1];
			enum reason reason;

			buf[i] = (uint8_t)v;
			if (parse(buf, len, &hello, &reason) != SNIFF_DONE)
				continue;
			if (!*hello.host)
				continue;
			assert_true(host_canonical(hello.host,
						   strlen(hello.host), again));
			assert_string_equal(hello.host, again);
		}
		buf[i] = was;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ech),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_two_hellos),
		cmocka_unit_test(test_cap),
		cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
