/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cache.c - the cache, the hash under it, quotas and special names.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "dns/cache.h"
#include "dns/message.h"
#include "dns/quota.h"
#include "dns/special.h"

/* The vectors of SipHash's reference implementation: key 00..0f, message 00..
 */
static void test_siphash(void **state)
{
	static const struct {
		size_t len;
		uint64_t hash;
	} vectors[] = { { 0, 0x726fdb47dd0e0e31u },
			{ 1, 0x74f839c593dc67fdu },
			{ 8, 0x93f5f5799a932462u },
			{ 15, 0xa129ca6149be45e5u } };
	const struct hash_key key = { 0x0706050403020100u,
				      0x0f0e0d0c0b0a0908u };
	uint8_t data[16];

	(void)state;
	for (uint8_t i = 0; i < 16; i++)
		data[i] = i;
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++)
		assert_true(hash_bytes(&key, data, vectors[i].len) ==
			    vectors[i].hash);
}

static void test_expiry(void **state)
{
	struct cache *cache = cache_new(10);
	struct result result = { .count = 1, .ttl = 7 }, got;

	(void)state;
	assert_false(cache_get(cache, "a.com", 1000, &got));
	result.ip[0] = ip_v4(1);
	cache_put(cache, "a.com", 1000, &result);
	assert_true(cache_get(cache, "a.com", 1000, &got));
	assert_int_equal(got.ttl, 7);
	assert_true(ip_equal(&got.ip[0], &result.ip[0]));
	assert_true(cache_get(cache, "a.com", 6500, &got));
	assert_int_equal(got.ttl, 2);
	assert_false(cache_get(cache, "a.com.x", 6500, &got));
	assert_false(cache_get(cache, "a.com", 8000, &got));
	/* Put again, it is replaced. */
	result.status = -ENOENT;
	cache_put(cache, "a.com", 9000, &result);
	result.status = 0;
	cache_put(cache, "a.com", 9000, &result);
	assert_true(cache_get(cache, "a.com", 9000, &got));
	assert_int_equal(got.status, 0);
	cache_flush(cache);
	assert_false(cache_get(cache, "a.com", 9000, &got));
	cache_free(cache);
	cache_free(NULL);
}

static void test_eviction(void **state)
{
	struct cache *cache = cache_new(100);
	const struct result result = { .ttl = 60 };
	struct result got;
	unsigned kept = 0;
	char host[32];

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(host, sizeof(host), "n%u.com", i);
		cache_put(cache, host, 0, &result);
		/* The first is used all the time, so it stays. */
		assert_true(cache_get(cache, "n0.com", 0, &got));
	}
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(host, sizeof(host), "n%u.com", i);
		kept += cache_get(cache, host, 0, &got);
	}
	assert_int_equal(kept, 100);
	assert_true(cache_get(cache, "n999.com", 0, &got));
	assert_false(cache_get(cache, "n1.com", 0, &got));
	cache_free(cache);
}

static unsigned taken(struct bucket *bucket, unsigned rate, uint64_t now)
{
	unsigned n = 0;

	while (n < 10000 && bucket_take(bucket, rate, now))
		n++;
	return n;
}

static void test_bucket(void **state)
{
	struct bucket bucket;

	(void)state;
	bucket_init(&bucket, 50, 1000);
	assert_int_equal(taken(&bucket, 50, 1000), 50);
	assert_int_equal(taken(&bucket, 50, 1010), 0);
	assert_int_equal(taken(&bucket, 50, 1020), 1); /* 20 ms each */
	assert_int_equal(taken(&bucket, 50, 1520), 25);
	assert_int_equal(taken(&bucket, 50, 99999), 50); /* no more than that */
	assert_int_equal(taken(&bucket, 0, 199999), 0);
	/* Asked every millisecond it is the same rate. */
	bucket_init(&bucket, 7, 0);
	unsigned n = taken(&bucket, 7, 0);
	for (uint64_t ms = 1; ms <= 10000; ms++)
		n += taken(&bucket, 7, ms);
	assert_int_equal(n, 7 + 70);
	/* A rate beyond reason does not overflow. */
	bucket_init(&bucket, UINT32_MAX, 0);
	assert_int_equal(taken(&bucket, UINT32_MAX, 1), 10000);
}

static void test_fold(void **state)
{
	struct quota quota = { .sandbox = 1 };

	(void)state;
	assert_int_equal(quota_refuse(&quota, 5000), 1);
	assert_int_equal(quota_refuse(&quota, 5001), 0);
	assert_int_equal(quota_refuse(&quota, 5999), 0);
	assert_int_equal(quota_refuse(&quota, 6000), 3);
	assert_int_equal(quota_refuse(&quota, 6001), 0);
	assert_int_equal(quota_flush(&quota, 6002), 1);
	assert_int_equal(quota_flush(&quota, 6003), 0);
}

static void test_special(void **state)
{
	static const struct {
		const char *host;
		uint16_t type;
		enum special expect;
		const char *ip;
	} rows[] = {
		{ "localhost", DNS_A, SPECIAL_LOOPBACK, NULL },
		{ "a.b.localhost", DNS_ANY, SPECIAL_LOOPBACK, NULL },
		{ "notlocalhost", DNS_A, SPECIAL_NONE, NULL },
		{ "localhost.com", DNS_A, SPECIAL_NONE, NULL },
		{ "use-application-dns.net", DNS_AAAA, SPECIAL_NXDOMAIN, NULL },
		{ "a.use-application-dns.net", DNS_A, SPECIAL_NONE, NULL },
		{ "_dns.resolver.arpa", 64, SPECIAL_NODATA, NULL },
		{ "ipv4only.arpa", DNS_AAAA, SPECIAL_NODATA, NULL },
		{ "4.3.2.1.in-addr.arpa", DNS_PTR, SPECIAL_REVERSE, "1.2.3.4" },
		{ "4.3.2.1.in-addr.arpa", DNS_A, SPECIAL_NONE, NULL },
		{ "256.3.2.1.in-addr.arpa", DNS_PTR, SPECIAL_REVERSE, "" },
		{ "04.3.2.1.in-addr.arpa", DNS_PTR, SPECIAL_REVERSE, "" },
		{ "3.2.1.in-addr.arpa", DNS_PTR, SPECIAL_REVERSE, "" },
		{ "5.4.3.2.1.in-addr.arpa", DNS_PTR, SPECIAL_REVERSE, "" },
		{ "1.0.ip6.arpa", DNS_PTR, SPECIAL_REVERSE, "" },
		{ "in-addr.arpa", DNS_PTR, SPECIAL_NONE, NULL },
		{ "4.3.2.1.in-addr.arpa.com", DNS_PTR, SPECIAL_NONE, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[IP_TEXT_MAX];
		struct ip ip;

		if (special_name(rows[i].host, rows[i].type, &ip) !=
		    rows[i].expect)
			fail_msg("%s", rows[i].host);
		if (rows[i].ip)
			assert_string_equal(ip_format(&ip, text), rows[i].ip);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_siphash),	 cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_eviction), cmocka_unit_test(test_bucket),
		cmocka_unit_test(test_fold),	 cmocka_unit_test(test_special),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
