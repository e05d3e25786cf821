/* SPDX-License-Identifier: Apache-2.0
 *
 * hash.h - SipHash-2-4: others choose the names that are hashed (sandboxes,
 * authors of lists), so the key is a secret of this process.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_key {
	uint64_t k0, k1;
};

/* A hash on its way. A copy of it can be ended while the original goes on:
 * that is the hash of everything so far. */
struct hash {
	uint64_t v0, v1, v2, v3;
};

/* A random key. 0 or -errno. */
int hash_key_init(struct hash_key *ret_key);
uint64_t hash_bytes(const struct hash_key *key, const void *data, size_t len);

static inline uint64_t hash_rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void hash_mix(struct hash *s, unsigned rounds)
{
	while (rounds--) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = hash_rotate(s->v1, 13) ^ s->v0;
		s->v3 = hash_rotate(s->v3, 16) ^ s->v2;
		s->v0 = hash_rotate(s->v0, 32) + s->v3;
		s->v2 += s->v1;
		s->v1 = hash_rotate(s->v1, 17) ^ s->v2;
		s->v3 = hash_rotate(s->v3, 21) ^ s->v0;
		s->v2 = hash_rotate(s->v2, 32);
	}
}

static inline struct hash hash_begin(const struct hash_key *key)
{
	return (struct hash){ key->k0 ^ 0x736f6d6570736575u,
			      key->k1 ^ 0x646f72616e646f6du,
			      key->k0 ^ 0x6c7967656e657261u,
			      key->k1 ^ 0x7465646279746573u };
}

static inline void hash_word(struct hash *s, uint64_t word)
{
	s->v3 ^= word;
	hash_mix(s, 2);
	s->v0 ^= word;
}

/* The last word has to tell apart messages of different length. */
static inline uint64_t hash_end(struct hash s)
{
	s.v2 ^= 0xff;
	hash_mix(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

#endif
