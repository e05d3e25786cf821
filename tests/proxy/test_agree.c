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

#define REFUSED                          \
	SNIFF_BAD, SNIFF_BAD, SNIFF_BAD, \
	{                                \
		false                    \
	}

/* What a rule may want, on ports that would want something else. */
static const struct {
	const char *host; /* NULL: ADDRESS */
	uint16_t port;
	enum wanted wanted;
	const char *text; /* NULL: a hello, with */
	const char *name;
	enum sniff want, late, last; /* at once, after a while, at the end */
	bool still[4];		     /* by enum wanted, if it may pass */
} wants[] = {
	{ "ok.test",
	  80,
	  WANTED_TLS,
	  NULL,
	  "ok.test",
	  SNIFF_DONE,
	  SNIFF_DONE,
	  SNIFF_DONE,
	  { false, true, false, true } },
	{ "ok.test", 80, WANTED_TLS, NULL, NULL, REFUSED },
	{ "ok.test", 80, WANTED_TLS, NULL, "evil.test", REFUSED },
	{ "ok.test", 80, WANTED_TLS, "GET / HTTP/1.1\r\n", NULL, REFUSED },
	{ "ok.test", 8443, WANTED_TLS, "SSH-2.0-x\r\n", NULL, REFUSED },
	{ "ok.test",
	  8443,
	  WANTED_TLS,
	  "\x16",
	  NULL,
	  SNIFF_MORE,
	  SNIFF_BAD,
	  SNIFF_BAD,
	  { false } },
	{ "ok.test",
	  443,
	  WANTED_HTTP,
	  "GET / HTTP/1.1\r\n",
	  NULL,
	  SNIFF_DONE,
	  SNIFF_DONE,
	  SNIFF_DONE,
	  { false, false, false, true } },
	{ "ok.test", 443, WANTED_HTTP, NULL, "ok.test", REFUSED },
	{ "ok.test", 443, WANTED_HTTP, "SSH-2.0-x\r\n", NULL, REFUSED },
	{ "ok.test",
	  443,
	  WANTED_HTTP,
	  "G",
	  NULL,
	  SNIFF_MORE,
	  SNIFF_BAD,
	  SNIFF_BAD,
	  { false } },
	{ "ok.test",
	  443,
	  WANTED_ANY,
	  "",
	  NULL,
	  SNIFF_MORE,
	  SNIFF_DONE,
	  SNIFF_DONE,
	  { false, false, false, true } },
	{ "ok.test",
	  443,
	  WANTED_ANY,
	  "G",
	  NULL,
	  SNIFF_MORE,
	  SNIFF_DONE,
	  SNIFF_DONE,
	  { false, false, false, true } },
	{ "ok.test",
	  80,
	  WANTED_ANY,
	  "\x16",
	  NULL,
	  SNIFF_MORE,
	  SNIFF_DONE,
	  SNIFF_DONE,
	  { false, false, false, true } },
	{ "ok.test",
	  80,
	  WANTED_ANY,
	  "\x16\x03",
	  NULL,
	  SNIFF_MORE,
	  SNIFF_MORE,
	  SNIFF_BAD,
	  { false } },
	{ "ok.test",
	  8443,
	  WANTED_ANY,
	  "SSH-2.0-x\r\n",
	  NULL,
	  SNIFF_DONE,
	  SNIFF_DONE,
	  SNIFF_DONE,
	  { true, false, false, true } },
	{ "ok.test",
	  8443,
	  WANTED_ANY,
	  NULL,
	  NULL,
	  SNIFF_DONE,
	  SNIFF_DONE,
	  SNIFF_DONE,
	  { false, false, false, true } },
	{ "ok.test",
	  8443,
	  WANTED_ANY,
	  NULL,
	  "ok.test",
	  SNIFF_DONE,
	  SNIFF_DONE,
	  SNIFF_DONE,
	  { true, true, false, true } },
	{ "ok.test", 443, WANTED_ANY, NULL, "evil.test", REFUSED },
	{ "ok.test", 443, WANTED_ANY, "PRI * HTTP/2.0\r\n", NULL, REFUSED },
	{ "ok.test",
	  443,
	  WANTED_ANY,
	  "\x16\x03\x01\0\x01\x02",
	  NULL,
	  SNIFF_MORE,
	  SNIFF_MORE,
	  SNIFF_BAD,
	  { false } },
	{ NULL,
	  443,
	  WANTED_ANY,
	  NULL,
	  "ok.test",
	  SNIFF_DONE,
	  SNIFF_DONE,
	  SNIFF_DONE,
	  { true, true, false, true } },
	{ NULL, 443, WANTED_ANY, NULL, "evil.test", REFUSED },
};

static void test_wanted(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wants); i++) {
		struct agree a = { .policy = policy,
				   .host = wants[i].host,
				   .port = wants[i].port,
				   .wanted = wants[i].wanted,
				   .door = DOOR_CONNECT };
		const struct hello_spec spec = { .name = wants[i].name };
		uint8_t buf[512];
		size_t len;

		if (!wants[i].host)
			ip_parse(ADDRESS, &a.address);
		len = hello_make(&spec, buf, sizeof(buf));
		if (wants[i].text) {
			len = strlen(wants[i].text);
			memcpy(buf, wants[i].text, len);
		}
		print_message("row %zu\n", i);
		assert_int_equal(agree_check(&a, buf, len), wants[i].want);
		if (wants[i].want == SNIFF_BAD)
			continue;
		assert_int_equal(agree_incomplete(&a, buf, len, false),
				 wants[i].late);
		assert_int_equal(agree_incomplete(&a, buf, len, true),
				 wants[i].last);
		for (int j = 0; j < 4 && wants[i].last == SNIFF_DONE; j++) {
			a.wanted = (enum wanted)j;
			assert_int_equal(agree_still(&a), wants[i].still[j]);
		}
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
		cmocka_unit_test(test_wanted),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
