/* SPDX-License-Identifier: Apache-2.0
 *
 * test_addr.c - addresses in every spelling and encoding (THREATS N9, D6-D9).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/addr.h"
#include "base/cleanup.h"

static struct ip ip_of(const char *text)
{
	struct ip ip = { 0 };

	if (!ip_parse(text, &ip))
		print_error("%s\n", text);
	assert_int_not_equal(ip.len, 0);
	return ip;
}

static void test_parse(void **state)
{
	static const char *const bad[] = {
		"",	      "1",	  "127.1",    "0x7f.0.0.1",
		"0177.0.0.1", "1.2.3.4.", "1.2.3",    "1.2.3.4.5",
		"256.0.0.1",  " 1.2.3.4", "1.2.3.4 ", "2130706433",
		"::1%lo",     "[::1]",	  ":::",      "1::2::3",
		"12345::",    "::1/128",  "+1.2.3.4", "1.2.3.-4",
	};
	struct ip ip = { .len = 99 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_false(ip_parse(bad[i], &ip));
		assert_int_equal(ip.len, 99);
	}
	ip = ip_of("192.0.2.1");
	assert_int_equal(ip.len, 4);
	assert_int_equal(ip_v4_value(&ip), 0xc0000201);
	struct ip same = ip_v4(0xc0000201);
	assert_memory_equal(&ip, &same, sizeof(ip));
	ip = ip_of("2001:db8::1");
	assert_int_equal(ip.len, 16);
	assert_int_equal(ip_v4_value(&ip), 0);
}

static void test_format(void **state)
{
	static const char *const same[] = { "0.0.0.0", "255.255.255.255",
					    "::", "2001:db8::1",
					    "::ffff:10.0.0.1" };
	char buf[IP_TEXT_MAX];
	struct ip none = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		struct ip ip = ip_of(same[i]);

		assert_string_equal(ip_format(&ip, buf), same[i]);
	}
	assert_string_equal(ip_format(&none, buf), "");
	struct ip a = ip_of("10.0.0.1"), b = ip_of("::ffff:10.0.0.1");
	assert_false(ip_equal(&a, &b));
	assert_true(ip_equal(&a, &a));
}

static void test_cidr(void **state)
{
	static const char *const bad[] = {
		"",
		"10.0.0.1/8",
		"10.0.0.0/33",
		"10.0.0.0/",
		"10.0.0.0/-1",
		"10.0.0.0/8x",
		"10.0.0.0/ 8",
		"10.0/8",
		"/8",
		"::/129",
		"::1/127",
		"10.0.0.0//8",
		"10.0.0.0/99999999999999999999",
	};
	static const struct {
		const char *cidr, *ip;
		bool in;
	} cases[] = {
		{ "10.0.0.0/8", "10.255.255.255", true },
		{ "10.0.0.0/8", "11.0.0.0", false },
		{ "10.0.0.0/8", "::ffff:10.0.0.1", false },
		{ "0.0.0.0/0", "255.1.2.3", true },
		{ "0.0.0.0/0", "::1", false },
		{ "::/0", "ff02::1", true },
		{ "::/0", "1.2.3.4", false },
		{ "10.1.2.3", "10.1.2.3", true },
		{ "10.1.2.3", "10.1.2.2", false },
		{ "172.16.0.0/12", "172.31.255.255", true },
		{ "172.16.0.0/12", "172.32.0.0", false },
		{ "192.0.2.128/25", "192.0.2.128", true },
		{ "192.0.2.128/25", "192.0.2.127", false },
		{ "fc00::/7", "fdff::1", true },
		{ "fc00::/7", "fe00::1", false },
		{ "2001:db8::/33", "2001:db8:7fff::", true },
		{ "2001:db8::/33", "2001:db8:8000::", false },
	};
	char buf[CIDR_TEXT_MAX];
	struct cidr cidr;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(cidr_parse(bad[i], &cidr));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ip ip = ip_of(cases[i].ip);

		assert_true(cidr_parse(cases[i].cidr, &cidr));
		assert_int_equal(cidr_contains(&cidr, &ip), cases[i].in);
	}
	assert_true(cidr_parse("10.1.2.3", &cidr));
	assert_string_equal(cidr_format(&cidr, buf), "10.1.2.3/32");
	assert_true(cidr_parse("2001:db8::/32", &cidr));
	assert_string_equal(cidr_format(&cidr, buf), "2001:db8::/32");
	/* The longest text fits. */
	struct cidr full = { .ip = { .len = 16 }, .bits = 128 };
	memset(full.ip.byte, 0xff, 16);
	cidr_format(&full, buf);
	assert_non_null(strstr(buf, "/128"));
}

static void test_endpoint(void **state)
{
	static const char *const bad[] = {
		"",
		"1.2.3.4",
		"1.2.3.4:",
		"1.2.3.4:0",
		"1.2.3.4:65536",
		":80",
		"::1:80",
		"[::1]",
		"[::1]:",
		"[1.2.3.4]:80",
		"[::1:80",
		"::1]:80",
		"1.2.3.4:80x",
		"1.2.3.4: 80",
		"a.b:80",
		"[]:80",
		"1.2.3.4:-1",
		"[::1]]:80",
		"1.2.3.4:8:80",
		"]:1",
	};
	struct ip ip;
	uint16_t port;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(endpoint_parse(bad[i], &ip, &port));
	assert_true(endpoint_parse("1.2.3.4:65535", &ip, &port));
	assert_int_equal(port, 65535);
	assert_int_equal(ip.len, 4);
	assert_true(endpoint_parse("[2001:db8::1]:1", &ip, &port));
	assert_int_equal(port, 1);
	assert_int_equal(ip.len, 16);
}

static void test_sockaddr(void **state)
{
	static const char *const texts[] = { "192.0.2.9", "2001:db8::9" };
	struct ip none = { 0 };
	union sockaddr_any sa;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct ip ip = ip_of(texts[i]), back;

		assert_int_equal(ip_to_sockaddr(&ip, 4711, &sa),
				 i ? sizeof(sa.in6) : sizeof(sa.in4));
		back = ip_from_sockaddr(&sa);
		assert_memory_equal(&ip, &back, sizeof(ip));
		assert_int_equal(port_from_sockaddr(&sa), 4711);
	}
	assert_int_equal(ip_to_sockaddr(&none, 1, &sa), 0);
	memset(&sa, 0, sizeof(sa));
	sa.sa.sa_family = AF_UNIX;
	assert_int_equal(ip_from_sockaddr(&sa).len, 0);
	assert_int_equal(port_from_sockaddr(&sa), 0);
}

/* The first and last address of every range, and their neighbours. */
static void test_special_v4(void **state)
{
	static const struct {
		const char *ip;
		bool special;
	} cases[] = {
		{ "0.0.0.0", true },	    { "0.255.255.255", true },
		{ "1.0.0.0", false },	    { "9.255.255.255", false },
		{ "10.0.0.0", true },	    { "10.255.255.255", true },
		{ "11.0.0.0", false },	    { "100.63.255.255", false },
		{ "100.64.0.0", true },	    { "100.127.255.255", true },
		{ "100.128.0.0", false },   { "126.255.255.255", false },
		{ "127.0.0.0", true },	    { "127.255.255.255", true },
		{ "128.0.0.0", false },	    { "169.253.255.255", false },
		{ "169.254.0.0", true },    { "169.254.255.255", true },
		{ "169.255.0.0", false },   { "172.15.255.255", false },
		{ "172.16.0.0", true },	    { "172.31.255.255", true },
		{ "172.32.0.0", false },    { "191.255.255.255", false },
		{ "192.0.0.0", true },	    { "192.0.0.255", true },
		{ "192.0.1.0", false },	    { "192.0.2.0", true },
		{ "192.0.2.255", true },    { "192.0.3.0", false },
		{ "192.88.99.1", true },    { "192.167.255.255", false },
		{ "192.168.0.0", true },    { "192.168.255.255", true },
		{ "192.169.0.0", false },   { "198.17.255.255", false },
		{ "198.18.0.0", true },	    { "198.19.255.255", true },
		{ "198.20.0.0", false },    { "198.51.99.255", false },
		{ "198.51.100.0", true },   { "198.51.100.255", true },
		{ "198.51.101.0", false },  { "203.0.112.255", false },
		{ "203.0.113.0", true },    { "203.0.113.255", true },
		{ "203.0.114.0", false },   { "223.255.255.255", false },
		{ "224.0.0.0", true },	    { "239.255.255.255", true },
		{ "240.0.0.0", true },	    { "255.255.255.255", true },
		{ "168.63.129.16", true },  { "168.63.129.15", false },
		{ "168.63.129.17", false }, { "100.100.100.200", true },
		{ "8.8.8.8", false },	    { "1.1.1.1", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ip ip = ip_of(cases[i].ip);

		if (!!ip_special(&ip) != cases[i].special)
			print_error("%s\n", cases[i].ip);
		assert_int_equal(!!ip_special(&ip), cases[i].special);
	}
}

static void test_special_v6(void **state)
{
	static const struct {
		const char *ip;
		bool special;
	} cases[] = {
		{ "::", true },
		{ "::1", true },
		{ "::2", true },
		{ "1::", true },
		{ "100::1", true },
		{ "1fff:ffff::", true },
		{ "2000::", false },
		{ "2001:1::1", true },
		{ "2001:2::1", true },
		{ "2001:10::1", true },
		{ "2001:20::1", true },
		{ "2001:1ff:ffff::", true },
		{ "2001:200::1", false },
		{ "2001:db7:ffff::", false },
		{ "2001:db8::", true },
		{ "2001:db8:ffff:ffff::", true },
		{ "2001:db9::", false },
		{ "2001:4860:4860::8888", false },
		{ "2606:4700:4700::1111", false },
		{ "2620:4f:8000::1", true },
		{ "3fff::1", true },
		{ "3fff:1000::", false },
		{ "4000::1", true },
		{ "5f00::1", true },
		{ "fbff::1", true },
		{ "fc00::", true },
		{ "fd00:ec2::254", true },
		{ "fdff:ffff::1", true },
		{ "fe80::1", true },
		{ "febf::1", true },
		{ "fec0::1", true },
		{ "ff02::1", true },
		{ "ffff::", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ip ip = ip_of(cases[i].ip);

		if (!!ip_special(&ip) != cases[i].special)
			print_error("%s\n", cases[i].ip);
		assert_int_equal(!!ip_special(&ip), cases[i].special);
	}
	struct ip none = { 0 };
	assert_non_null(ip_special(&none));
}

/* D8: each encoding of each special IPv4 address is as special as it is. */
static void put(struct ip *ip, size_t at, uint32_t v4)
{
	for (size_t i = 0; i < 4; i++)
		ip->byte[at + i] = (uint8_t)(v4 >> (24 - 8 * i));
}

static void check_encodings(const char *text)
{
	static const struct {
		const char *prefix;
		size_t at;
		bool inverted;
	} forms[] = {
		{ "::", 12, false },	       { "::ffff:0:0", 12, false },
		{ "::ffff:0:0:0", 12, false }, { "64:ff9b::", 12, false },
		{ "64:ff9b:1::", 12, false },  { "2002::", 2, false },
		{ "2001::", 12, true },
	};
	struct ip v4 = ip_of(text);

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct ip ip = ip_of(forms[i].prefix), inner;
		uint32_t value = ip_v4_value(&v4);
		char buf[IP_TEXT_MAX];

		put(&ip, forms[i].at, forms[i].inverted ? ~value : value);
		if (!ip_special(&ip))
			print_error("%s in %s\n", text, ip_format(&ip, buf));
		assert_non_null(ip_special(&ip));
		/* "::" and "::1" are themselves, not 0.0.0.0 and 0.0.0.1. */
		if (i == 0 && value <= 1)
			continue;
		assert_string_equal(ip_special(&ip), ip_special(&v4));
		inner = ip_embedded(&ip);
		assert_true(ip_equal(&inner, &v4));
	}
}

static void test_encodings(void **state)
{
	static const char *const specials[] = {
		"0.0.0.0",	   "10.0.0.1",	      "100.64.0.1",
		"127.0.0.1",	   "169.254.169.254", "172.16.0.1",
		"192.0.2.1",	   "192.168.1.1",     "198.18.0.7",
		"203.0.113.1",	   "224.0.0.1",	      "240.0.0.1",
		"255.255.255.255", "168.63.129.16",   "100.100.100.200",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(specials); i++)
		check_encodings(specials[i]);
}

static void test_embedded(void **state)
{
	static const char *const plain[] = {
		"10.0.0.1", "2001:db8::1",	"::",
		"::1",	    "2606:4700::a00:1", "2001:1::a00:1"
	};
	static const struct {
		const char *ip, *inner;
	} cases[] = {
		{ "::ffff:8.8.8.8", "8.8.8.8" },
		{ "64:ff9b::808:808", "8.8.8.8" },
		{ "2002:808:808::1", "8.8.8.8" },
		{ "2001:0:4136:e378:8000:63bf:f7f7:f7f7", "8.8.8.8" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
		struct ip ip = ip_of(plain[i]), inner = ip_embedded(&ip);

		assert_true(ip_equal(&ip, &inner));
	}
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ip ip = ip_of(cases[i].ip), inner = ip_embedded(&ip);
		struct ip want = ip_of(cases[i].inner);

		assert_memory_equal(&inner, &want, sizeof(want));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_cidr),
		cmocka_unit_test(test_endpoint),
		cmocka_unit_test(test_sockaddr),
		cmocka_unit_test(test_special_v4),
		cmocka_unit_test(test_special_v6),
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_embedded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
