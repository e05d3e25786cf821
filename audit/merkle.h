/* SPDX-License-Identifier: Apache-2.0
 *
 * merkle.h - the head of a Merkle tree that only grows (RFC 6962 section 2.1,
 * SHA-256).
 *
 *	leaf = SHA-256(0x00 || data)	node = SHA-256(0x01 || left || right)
 *
 * Of n leaves only the roots of the full subtrees are kept, one for each bit
 * that is set in n: 2 kB however long the log gets. Nothing is allocated.
 */
#ifndef AUDIT_MERKLE_H
#define AUDIT_MERKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MERKLE_HASH 32
/* Other people's verifiers have signed sizes. */
#define MERKLE_SIZE_MAX	 ((uint64_t)INT64_MAX)
#define MERKLE_LEVELS	 63
#define MERKLE_SAVED_MAX (8 + MERKLE_LEVELS * MERKLE_HASH)

struct merkle_hash {
	uint8_t byte[MERKLE_HASH];
};

/* All zero is the empty tree. peak[k] counts if bit k of size is set: it is
 * the root of 2^k leaves. */
struct merkle {
	uint64_t size;
	struct merkle_hash peak[MERKLE_LEVELS];
};

void merkle_leaf(const void *data, size_t len, struct merkle_hash *ret_hash);
void merkle_node(const struct merkle_hash *left,
		 const struct merkle_hash *right, struct merkle_hash *ret_hash);
bool merkle_hash_equal(const struct merkle_hash *a,
		       const struct merkle_hash *b);

/* Adds a leaf, or one hashed before. Returns 0, or -EOVERFLOW of a tree of
 * MERKLE_SIZE_MAX. */
int merkle_append(struct merkle *tree, const void *data, size_t len);
int merkle_append_hash(struct merkle *tree, const struct merkle_hash *leaf);

/* The root over all leaves so far; of no leaves it is SHA-256 of nothing. */
void merkle_root(const struct merkle *tree, struct merkle_hash *ret_root);

/* The state as bytes, to go on from later: the size, 8 bytes big-endian, then
 * the peaks from the largest down. Writes at most MERKLE_SAVED_MAX bytes to
 * @ret_data and returns how many. */
size_t merkle_save(const struct merkle *tree, uint8_t *ret_data);
/* Returns 0, or -EBADMSG if no merkle_save() wrote that. That the peaks are
 * those of the log is for the caller to check: compare roots. */
int merkle_load(const uint8_t *data, size_t len, struct merkle *ret_tree);

#endif
