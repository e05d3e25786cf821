/* SPDX-License-Identifier: Apache-2.0
 *
 * hash.c - SipHash-2-4, after Aumasson and Bernstein's paper.
 */
#include "dns/hash.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

struct sip {
	uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void mix(struct sip *s, unsigned rounds)
{
	while (rounds--) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = rotate(s->v1, 13) ^ s->v0;
		s->v3 = rotate(s->v3, 16) ^ s->v2;
		s->v0 = rotate(s->v0, 32) + s->v3;
		s->v2 += s->v1;
		s->v1 = rotate(s->v1, 17) ^ s->v2;
		s->v3 = rotate(s->v3, 21) ^ s->v0;
		s->v2 = rotate(s->v2, 32);
	}
}

static void absorb(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	mix(s, 2);
	s->v0 ^= word;
}

int hash_key_init(struct hash_key *ret_key)
{
	struct hash_key key;

	if (getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key))
		return -EIO;
	*ret_key = key;
	return 0;
}

uint64_t hash_bytes(const struct hash_key *key, const void *data, size_t len)
{
	struct sip s = { key->k0 ^ 0x736f6d6570736575u,
			 key->k1 ^ 0x646f72616e646f6du,
			 key->k0 ^ 0x6c7967656e657261u,
			 key->k1 ^ 0x7465646279746573u };
	const uint8_t *at = data;
	size_t left = len;
	uint64_t word;

	for (; left >= sizeof(word); at += sizeof(word), left -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		absorb(&s, le64toh(word));
	}
	word = (uint64_t)len << 56;
	for (size_t i = 0; i < left; i++)
		word |= (uint64_t)at[i] << (8 * i);
	absorb(&s, word);
	s.v2 ^= 0xff;
	mix(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
