/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sha_pair.c - two hashes at once are those that one after the other are.
 * Where OpenSSL's archive and the processor have what it takes, it is used.
 */
#include "audit/sha_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"

#define DATA 4096

static uint8_t line[DATA], data[DATA];

static void fill(unsigned seed)
{
	for (size_t i = 0; i < DATA; i++) {
		seed = seed * 1103515245u + 12345u;
		line[i] = (uint8_t)(seed >> 16);
		data[i] = (uint8_t)(seed >> 24);
	}
}

/* Says the kernel, not we. */
static bool has_all(void)
{
	char word[64];
	bool has = false;
	FILE *f = fopen("/proc/cpuinfo", "re");

	assert_non_null(f);
	while (!has && fscanf(f, "%63s", word) == 1)
		has = strcmp(word, "sha_ni") == 0;
	fclose(f);
	has &= CARRIES_CRYPTO;
	assert_int_equal(sha_pair_works(), has);
	return has;
}

/* A line of @len bytes, beside which @data_len are there, behind @before blocks
 * that are in the digest already. Returns how many were taken. */
static size_t check(size_t len, size_t data_len, size_t before)
{
	char got_hex[DIGEST_HEX], want_hex[DIGEST_HEX];
	struct merkle_hash got, want;
	struct digest a, b;
	size_t took;

	digest_begin(&a);
	for (size_t i = 0; i < before; i++)
		digest_add(&a, line, SHA_BLOCK);
	b = a;
	took = sha_pair_leaf(line, len, &got, &a, data, data_len);
	assert_int_equal(took % SHA_BLOCK, 0);
	assert_true(took <= data_len);
	merkle_leaf(line, len, &want);
	assert_memory_equal(got.byte, want.byte, MERKLE_HASH);
	digest_add(&a, data + took, data_len - took);
	digest_add(&b, data, data_len);
	digest_end(&a, got_hex);
	digest_end(&b, want_hex);
	assert_string_equal(got_hex, want_hex);
	return took;
}

/* Around the ends of blocks, and where one of both has more. */
static void test_lengths(void **state)
{
	static const size_t len[] = {
		0,   1,	  54,  55,  62,	 63,  64,  118, 119,  126,  127,  128,
		190, 191, 192, 700, 767, 768, 769, 999, 1134, 2000, 4095, DATA
	};
	(void)state;
	if (!has_all())
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(len); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(len); j++) {
			size_t blocks =
				len[i] < 63 ? 0 : (len[i] - 63) / SHA_BLOCK;
			size_t most = len[j] / SHA_BLOCK;

			fill((unsigned)(i * ARRAY_SIZE(len) + j));
			assert_int_equal(
				check(len[i], len[j], j % 3),
				SHA_BLOCK * (most < blocks ? most : blocks));
		}
	}
}

/* The number of its bits goes beyond 32 bits. */
static void test_long(void **state)
{
	static const uint8_t much[1 << 20];
	char got[DIGEST_HEX], want[DIGEST_HEX];
	struct merkle_hash leaf;
	struct digest a, b;

	(void)state;
	if (!has_all())
		skip();
	digest_begin(&a);
	for (size_t i = 0; i < 511; i++)
		digest_add(&a, much, sizeof(much));
	digest_add(&a, much, sizeof(much) - 4 * SHA_BLOCK);
	b = a;
	assert_int_equal(sha_pair_leaf(line, 1000, &leaf, &a, data, 640), 640);
	digest_add(&b, data, 640);
	digest_end(&a, got);
	digest_end(&b, want);
	assert_string_equal(got, want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
