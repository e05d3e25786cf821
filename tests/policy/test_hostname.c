/* SPDX-License-Identifier: Apache-2.0
 *
 * test_hostname.c - one meaning for each name, in every door (THREATS N2-N13).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/hostname.h"

#define L63	 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg"
#define BYTES(s) s, sizeof(s) - 1

static const struct {
	const char *in;
	size_t len;
	const char *out; /* NULL: refused */
} wire_cases[] = {
	{ BYTES("example.com"), "example.com" },
	{ BYTES("eXaMPLE.CoM"), "example.com" },
	{ BYTES("example.com."), "example.com" },
	{ BYTES("localhost"), "localhost" },
	{ BYTES("a"), "a" },
	{ BYTES("_dns.resolver.arpa"), "_dns.resolver.arpa" },
	{ BYTES("r3---sn-abc.example.com"), "r3---sn-abc.example.com" },
	{ BYTES("xn--mnchen-3ya.example"), "xn--mnchen-3ya.example" },
	{ BYTES("1.2.3.4.example"), "1.2.3.4.example" },
	{ BYTES("3com.com"), "3com.com" },
	{ BYTES("a.0xg"), "a.0xg" },
	{ BYTES("a.1e"), "a.1e" },
	{ BYTES("x.0y"), "x.0y" },
	{ BYTES(L63 ".com"), L63 ".com" },
	/* N2: NUL and what a suffix match would let pass */
	{ BYTES("evil.com\0.ok.com"), NULL },
	{ BYTES("ok.com\0"), NULL },
	{ BYTES("\0"), NULL },
	/* N5: dots */
	{ BYTES(""), NULL },
	{ BYTES("."), NULL },
	{ BYTES(".."), NULL },
	{ BYTES("ok.com.."), NULL },
	{ BYTES(".ok.com"), NULL },
	{ BYTES("ok..com"), NULL },
	/* N6, N8, H8 */
	{ BYTES("[ok.com]"), NULL },
	{ BYTES("ok.com]"), NULL },
	{ BYTES("[::1]"), NULL },
	{ BYTES("::1"), NULL },
	{ BYTES("fe80::1%eth0"), NULL },
	{ BYTES("ok.com%00.evil.com"), NULL },
	{ BYTES("ok.com%2eevil.com"), NULL },
	{ BYTES("ok.com@evil.com"), NULL },
	{ BYTES("evil#@ok.com"), NULL },
	{ BYTES("ok.com\\evil.com"), NULL },
	{ BYTES("ok.com/evil"), NULL },
	{ BYTES("ok.com:443"), NULL },
	{ BYTES("ok.com,evil.com"), NULL },
	{ BYTES(" ok.com"), NULL },
	{ BYTES("ok.com\r\n"), NULL },
	{ BYTES("ok.com\t"), NULL },
	{ BYTES("\x1b[31mok.com"), NULL },
	{ BYTES("ok.com\x7f"), NULL },
	{ BYTES("*.ok.com"), NULL },
	{ BYTES("m\xc3\xbcnchen.example"), NULL },
	{ BYTES("\xef\xbd\x8fk.com"), NULL }, /* full-width o */
	{ BYTES("ok\xe3\x80\x82"
		"com"),
	  NULL },			   /* ideographic full stop */
	{ BYTES("o\xc2\xadk.com"), NULL }, /* soft hyphen */
	{ BYTES("ok.com\xff"), NULL },
	/* N9: every spelling of an address */
	{ BYTES("127.0.0.1"), NULL },
	{ BYTES("127.0.0.1."), NULL },
	{ BYTES("2130706433"), NULL },
	{ BYTES("0x7f.1"), NULL },
	{ BYTES("0X7F.0.0.1"), NULL },
	{ BYTES("0x7f000001"), NULL },
	{ BYTES("0177.0.0.1"), NULL },
	{ BYTES("012.0.0.1"), NULL },
	{ BYTES("127.1"), NULL },
	{ BYTES("0"), NULL },
	{ BYTES("1.2.3.4.5"), NULL },
	{ BYTES("999.999.999.999"), NULL },
	{ BYTES("foo.0x"), NULL },
	{ BYTES("foo.0x4"), NULL },
	{ BYTES("foo.09"), NULL },
	{ BYTES("foo.123"), NULL },
	/* N13 */
	{ BYTES(L63 "a.com"), NULL },
	{ BYTES("-a.com"), NULL },
	{ BYTES("a-.com"), NULL },
	{ BYTES("a.-b"), NULL },
};

static void test_wire(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wire_cases); i++) {
		char host[HOST_MAX + 1] = "untouched";
		bool ok = host_canonical(wire_cases[i].in, wire_cases[i].len,
					 host);
		const char *want = wire_cases[i].out;

		if (ok != !!want)
			print_error("case %zu: '%s'\n", i, wire_cases[i].in);
		assert_int_equal(ok, !!want);
		assert_string_equal(host, want ? want : "untouched");
	}
}

static void test_length(void **state)
{
	char name[300], host[HOST_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 50 == 49 ? '.' : 'a';
	assert_true(host_canonical(name, 253, host));
	assert_int_equal(strlen(host), 253);
	assert_false(host_canonical(name, 254, host));
	name[253] = '.'; /* the trailing dot does not count */
	assert_true(host_canonical(name, 254, host));
	assert_int_equal(strlen(host), 253);
	assert_false(host_canonical(name, 299, host));
}

/* Bytes past the counted ones are never looked at. */
static void test_counted(void **state)
{
	char host[HOST_MAX + 1];
	char text[] = { 'o', 'k', '.', 'c', 'o', 'm', (char)0xff };

	(void)state;
	assert_true(host_canonical(text, 6, host));
	assert_string_equal(host, "ok.com");
}

static void test_every_byte(void **state)
{
	char host[HOST_MAX + 1];

	(void)state;
	for (int c = 0; c < 256; c++) {
		char text[] = { 'a', (char)c, 'b', '.', 'c', 'o', 'm' };
		bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			  (c >= '0' && c <= '9') || c == '-' || c == '_' ||
			  c == '.';

		assert_int_equal(host_canonical(text, sizeof(text), host), ok);
	}
}

static void test_policy_text(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "Example.COM.", "example.com" },
		{ "m\xc3\xbcnchen.example", "xn--mnchen-3ya.example" },
		{ "stra\xc3\x9f"
		  "e.example",
		  "xn--strae-oqa.example" },
		/* decomposed u + diaeresis, as a Mac types it */
		{ "mu\xcc\x88nchen.EXAMPLE", "xn--mnchen-3ya.example" },
		{ "\xe4\xbe\x8b\xe3\x81\x88.jp", "xn--r8jz45g.jp" },
		{ "\xef\xbd\x8fk.com", NULL },
		{ "ok\xe3\x80\x82"
		  "com",
		  NULL },
		{ "m\xc3\xbc\xc2\xadnchen.example", NULL },
		{ "m\xc3\x9cnchen.example", NULL }, /* capital U umlaut */
		{ "bad\xff.example", NULL },
		{ "10.0.0.1", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char host[HOST_MAX + 1] = "untouched";
		bool ok = host_from_policy(cases[i].in, host);

		if (ok != !!cases[i].out)
			print_error("case %zu: '%s' gave %s\n", i, cases[i].in,
				    host);
		assert_int_equal(ok, !!cases[i].out);
		assert_string_equal(host, ok ? cases[i].out : "untouched");
	}
}

static void test_below(void **state)
{
	(void)state;
	assert_true(host_below("a.ok.com", "ok.com"));
	assert_true(host_below("b.a.ok.com", "ok.com"));
	assert_false(host_below("ok.com", "ok.com"));
	assert_false(host_below("evilok.com", "ok.com"));
	assert_false(host_below(".ok.com", "ok.com"));
	assert_false(host_below("com", "ok.com"));
	assert_false(host_below("ok.com.evil", "ok.com"));
	assert_false(host_below("a.ok.com", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wire),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_counted),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_policy_text),
		cmocka_unit_test(test_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
