/* SPDX-License-Identifier: Apache-2.0
 *
 * hash.c - SipHash-2-4, after Aumasson and Bernstein's paper.
 */
#include "base/hash.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

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
	struct hash s = hash_begin(key);
	const uint8_t *at = data;
	size_t left = len;
	uint64_t word;

	for (; left >= sizeof(word); at += sizeof(word), left -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash_word(&s, le64toh(word));
	}
	word = (uint64_t)len << 56;
	for (size_t i = 0; i < left; i++)
		word |= (uint64_t)at[i] << (8 * i);
	hash_word(&s, word);
	return hash_end(s);
}
