/* SPDX-License-Identifier: Apache-2.0
 *
 * sha_pair.c - OpenSSL's sha256_multi_block().
 *
 * It takes the states of up to four messages side by side, and of each a
 * pointer to whole blocks and their number, which may differ. On processors
 * without SHA-256 of their own it is made for many short messages, and not
 * faster for two; there it is not used, nor of an OpenSSL that was not read.
 *
 * OpenSSL's old SHA-256, for the reason that policy/digest.c gives.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "audit/sha_pair.h"

#include <openssl/sha.h>
#include <stdint.h>
#include <string.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#define WORDS 8

/* As OpenSSL has them (crypto/evp, SHA256_MB_CTX and HASH_DESC), since 1.0.2:
 * there is room for eight messages, and four of them are asked for. */
struct lanes {
	_Alignas(32) uint32_t word[WORDS][8];
};

struct job {
	const uint8_t *data;
	int blocks;
};

#define FOUR_LANES 1

/* Not there in the shared library. */
__attribute__((weak)) void sha256_multi_block(struct lanes *lanes,
					      const struct job *jobs, int num);

/* Whole blocks that an int can count in bytes, many times over. */
#define BLOCKS_MAX 65536

static void count(SHA256_CTX *sha, size_t blocks)
{
	uint64_t bits = (uint64_t)sha->Nh << 32 | sha->Nl;

	bits += (uint64_t)blocks * SHA_BLOCK * 8;
	sha->Nl = (SHA_LONG)bits;
	sha->Nh = (SHA_LONG)(bits >> 32);
}

/* Adds whole blocks to two that have nothing left over from before. */
static void add_both(SHA256_CTX *const sha[2], const struct job job[4])
{
	struct lanes lanes = { 0 };

	for (size_t i = 0; i < WORDS; i++)
		for (size_t lane = 0; lane < 2; lane++)
			lanes.word[i][lane] = sha[lane]->h[i];
	sha256_multi_block(&lanes, job, FOUR_LANES);
	for (size_t i = 0; i < WORDS; i++)
		for (size_t lane = 0; lane < 2; lane++)
			sha[lane]->h[i] = lanes.word[i][lane];
	for (size_t lane = 0; lane < 2; lane++)
		count(sha[lane], (size_t)job[lane].blocks);
}

static size_t at_most(size_t n, size_t max)
{
	return n < max ? n : max;
}

size_t sha_pair_leaf(const void *line, size_t len, struct merkle_hash *ret_leaf,
		     struct digest *digest, const void *data, size_t data_len)
{
	/* The first block has the byte 0, which stands before a leaf's. */
	size_t head = at_most(len, SHA_BLOCK - 1);
	size_t blocks = at_most((len - head) / SHA_BLOCK, BLOCKS_MAX);
	size_t beside = at_most(data_len / SHA_BLOCK, blocks);
	uint8_t first[SHA_BLOCK] = { 0 };
	const uint8_t *from = line;
	SHA256_CTX leaf;

	if (head)
		memcpy(first + 1, from, head);
	SHA256_Init(&leaf);
	SHA256_Update(&leaf, first, 1 + head);
	if (beside) {
		const struct job job[4] = { { from + head, (int)blocks },
					    { data, (int)beside },
					    { from, 0 },
					    { from, 0 } };

		add_both((SHA256_CTX *const[2]){ &leaf, &digest->sha }, job);
		head += blocks * SHA_BLOCK;
	}
	if (head < len)
		SHA256_Update(&leaf, from + head, len - head);
	SHA256_Final(ret_leaf->byte, &leaf);
	return beside * SHA_BLOCK;
}

static bool is_known(void)
{
	return OPENSSL_VERSION_NUMBER < 0x40000000L && sha256_multi_block;
}

/* Has the processor instructions for SHA-256? */
static bool has_instructions(void)
{
#ifdef __x86_64__
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
#else
	return false;
#endif
}

/* A line and data of @len and @data_len bytes: as one after the other? */
static bool agrees(size_t len, size_t data_len)
{
	uint8_t line[16 * SHA_BLOCK], data[16 * SHA_BLOCK];
	char got_hex[DIGEST_HEX], want_hex[DIGEST_HEX];
	struct merkle_hash got, want;
	struct digest a, b;
	size_t took;

	for (size_t i = 0; i < sizeof(line); i++) {
		line[i] = (uint8_t)(i * 7 + 1);
		data[i] = (uint8_t)(i * 13 + 5);
	}
	digest_begin(&a);
	digest_begin(&b);
	took = sha_pair_leaf(line, len, &got, &a, data, data_len);
	merkle_leaf(line, len, &want);
	digest_add(&a, data + took, data_len - took);
	digest_add(&b, data, data_len);
	digest_end(&a, got_hex);
	digest_end(&b, want_hex);
	return merkle_hash_equal(&got, &want) && strcmp(got_hex, want_hex) == 0;
}

bool sha_pair_works(void)
{
	return is_known() && has_instructions() && agrees(700, 700) &&
	       agrees(1000, 130) && agrees(200, 1000);
}
