/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows that the tests with sockets do not have: literal addresses, no name
 * to compare with, and what may pass when the client says no more.
 */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "base/cleanup.h"
#include "policy/bundle.h"
#include "proxy/agree.h"
#include "tests/proxy/hello.h"

static struct policy *policy;

static int setup(void **state)
{
	static const char *const allow[] = { "ok.test:443", "ok.test:8443" };
	struct bundle bundle = { .data = NULL };
	struct policy_error error;
	int err = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(allow); i++)
		err |= bundle_add(&bundle, BUNDLE_ALLOW, "--allow", allow[i],
				  strlen(allow[i]));
	err |= policy_build(bundle.data, bundle.len, &policy, &error);
	bundle_free(&bundle);
	return err;
}

static int teardown(void **state)
{
	(void)state;
	policy_unref(policy);
	return 0;
}

#define ADDRESS "198.51.100.7"
#define NONE	REASON_RULE /* may pass */

static const struct {
	const char *host; /* NULL: ADDRESS; "": none, the SNI decides */
	uint16_t port;
	const char *text; /* NULL: a hello, with */
	const char *name;
	enum sniff want;
	enum reason reason;
	enum sniff last; /* if there will be no more */
} rows[] = {
	/* a literal address: no name, or one with a rule for this port */
	{ NULL, 443, NULL, NULL, SNIFF_DONE, NONE, SNIFF_DONE },
	{ NULL, 443, NULL, "ok.test", SNIFF_DONE, NONE, SNIFF_DONE },
	{ NULL, 443, NULL, "evil.test", SNIFF_BAD, REASON_NAME_MISMATCH,
	  SNIFF_BAD },
	{ NULL, 22, NULL, "ok.test", SNIFF_BAD, REASON_NAME_MISMATCH,
	  SNIFF_BAD },
	{ NULL, 22, "SSH-2.0-x\r\n", NULL, SNIFF_DONE, NONE, SNIFF_DONE },
	/* HTTP is only recognised here */
	{ "ok.test", 8443, "GET / HTTP/1.1\r\nHost: evil.test\r\n", NULL,
	  SNIFF_DONE, NONE, SNIFF_DONE },
	/* `serve` */
	{ "", 443, NULL, "any.test", SNIFF_DONE, NONE, SNIFF_DONE },
	{ "", 443, NULL, NULL, SNIFF_BAD, REASON_NO_NAME, SNIFF_BAD },
	/* ports with one protocol */
	{ "ok.test", 80, NULL, "ok.test", SNIFF_BAD, REASON_PROTOCOL,
	  SNIFF_BAD },
	{ "ok.test", 80, "SSH-2.0-x\r\n", NULL, SNIFF_BAD, REASON_PROTOCOL,
	  SNIFF_BAD },
	{ "ok.test", 80, "G", NULL, SNIFF_MORE, NONE, SNIFF_BAD },
	{ "ok.test", 443, "", NULL, SNIFF_MORE, NONE, SNIFF_DONE },
	{ "ok.test", 443, "\x16", NULL, SNIFF_MORE, NONE, SNIFF_BAD },
	{ "ok.test", 443, "G", NULL, SNIFF_BAD, REASON_PROTOCOL, SNIFF_BAD },
	/* any other */
	{ "ok.test", 22, "", NULL, SNIFF_MORE, NONE, SNIFF_DONE },
	{ "ok.test", 22, "G", NULL, SNIFF_MORE, NONE, SNIFF_DONE },
	{ "ok.test", 22, "\x80\x2e", NULL, SNIFF_MORE, NONE, SNIFF_DONE },
	{ "ok.test", 22, "\x15", NULL, SNIFF_MORE, NONE, SNIFF_BAD },
	{ "ok.test", 22, "\x16\x03", NULL, SNIFF_MORE, NONE, SNIFF_BAD },
	{ "ok.test", 22, "\x80\x2e\x01\x03", NULL, SNIFF_BAD, REASON_PROTOCOL,
	  SNIFF_BAD },
	{ "ok.test", 22, "GET http://evil.test", NULL, SNIFF_DONE, NONE,
	  SNIFF_DONE }, /* HTTP, and judged as that */
	{ "ok.test", 22, "\r\n\r\n", NULL, SNIFF_MORE, NONE, SNIFF_DONE },
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct agree a = { .policy = policy,
				   .port = rows[i].port,
				   .door = DOOR_TRANSPARENT };
		const struct hello_spec spec = { .name = rows[i].name };
		uint8_t buf[512];
		size_t len;

		if (!rows[i].host)
			ip_parse(ADDRESS, &a.address);
		else if (*rows[i].host)
			a.host = rows[i].host;
		if (rows[i].text) {
			len = strlen(rows[i].text);
			memcpy(buf, rows[i].text, len);
		} else {
			len = hello_make(&spec, buf, sizeof(buf));
		}
		print_message("row %zu\n", i);
		assert_int_equal(agree_check(&a, buf, len), rows[i].want);
		if (rows[i].want == SNIFF_BAD)
			assert_int_equal(a.reason, rows[i].reason);
		if (rows[i].want == SNIFF_DONE && rows[i].name)
			assert_string_equal(a.sni, rows[i].name);
		assert_int_equal(agree_incomplete(&a, buf, len, true),
				 rows[i].last);
		if (rows[i].want == SNIFF_MORE && rows[i].last == SNIFF_BAD)
			assert_int_equal(a.reason, REASON_TIMEOUT);
		if (rows[i].want != SNIFF_MORE || !len)
			continue;
		/* whatever it is: it could go on as TLS or HTTP */
		assert_int_equal(agree_incomplete(&a, buf, len, false),
				 SNIFF_BAD);
		assert_int_equal(a.reason, REASON_TIMEOUT);
	}
}

/* A buffer that is full has a verdict. */
static void test_full(void **state)
{
	static uint8_t buf[SNIFF_MAX];
	struct agree a = { .policy = policy, .host = "ok.test", .port = 443 };

	(void)state;
	for (size_t i = 0; i + 6 <= sizeof(buf); i += 6)
		memcpy(buf + i, "\x16\x03\x01\x00\x01\x01", 6);
	memcpy(buf + sizeof(buf) - sizeof(buf) % 6, "\x16\x03", 2);
	buf[11] = 0;
	buf[17] = 0x70;
	assert_int_equal(agree_check(&a, buf, sizeof(buf) - 1), SNIFF_MORE);
	assert_int_equal(agree_check(&a, buf, sizeof(buf)), SNIFF_BAD);
	assert_int_equal(a.reason, REASON_MALFORMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
