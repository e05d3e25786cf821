/* SPDX-License-Identifier: Apache-2.0
 *
 * nameset_words.h - names eight characters at a time: in a look-up each
 * character that is looked at alone would cost more than the table does.
 */
#ifndef POLICY_NAMESET_WORDS_H
#define POLICY_NAMESET_WORDS_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"

/* Words of eight characters, then the rest with the length: no two names have
 * the same words, as characters have no high bit. Reads 8 bytes past the end.
 */
static inline void hash_label(struct hash *hash, const char *label, size_t len)
{
	size_t left = len;
	uint64_t word;

	for (; left >= sizeof(word); label += 8, left -= 8) {
		memcpy(&word, label, sizeof(word));
		hash_word(hash, le64toh(word));
	}
	memcpy(&word, label, sizeof(word));
	word = le64toh(word) & ((1ull << 8 * left) - 1);
	hash_word(hash, word | (uint64_t)(0x80 | len) << 56);
}

/* A bit for each dot among eight characters. */
static inline uint64_t dots_of(const char *text)
{
	const uint64_t low = 0x7f7f7f7f7f7f7f7f;
	uint64_t word;

	memcpy(&word, text, sizeof(word));
	word = le64toh(word) ^ 0x2e2e2e2e2e2e2e2e;
	word = ~(((word & low) + low) | word | low);
	return (word >> 7) * 0x0102040810204080 >> 56;
}

#endif
