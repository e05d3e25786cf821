/* SPDX-License-Identifier: Apache-2.0
 *
 * merkle.c - the head of a Merkle tree that only grows (RFC 6962).
 *
 * A leaf is added as one adds 1 to a binary number: each full subtree that is
 * met on the way is the left half of the next. The root is the peaks, folded
 * from the smallest up; RFC 6962 splits at the largest power of two below n,
 * which is the same.
 *
 * OpenSSL's old SHA-256, for the reason that policy/digest.c gives.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "audit/merkle.h"

#include <errno.h>
#include <openssl/sha.h>
#include <string.h>

void merkle_leaf(const void *data, size_t len, struct merkle_hash *ret_hash)
{
	SHA256_CTX sha;

	SHA256_Init(&sha);
	SHA256_Update(&sha, "\0", 1);
	if (len)
		SHA256_Update(&sha, data, len);
	SHA256_Final(ret_hash->byte, &sha);
}

void merkle_node(const struct merkle_hash *left,
		 const struct merkle_hash *right, struct merkle_hash *ret_hash)
{
	uint8_t both[1 + 2 * MERKLE_HASH] = { 1 };
	SHA256_CTX sha;

	memcpy(both + 1, left->byte, MERKLE_HASH);
	memcpy(both + 1 + MERKLE_HASH, right->byte, MERKLE_HASH);
	SHA256_Init(&sha);
	SHA256_Update(&sha, both, sizeof(both));
	SHA256_Final(ret_hash->byte, &sha);
}

bool merkle_hash_equal(const struct merkle_hash *a, const struct merkle_hash *b)
{
	return memcmp(a->byte, b->byte, MERKLE_HASH) == 0;
}

int merkle_append_hash(struct merkle *tree, const struct merkle_hash *leaf)
{
	struct merkle_hash hash = *leaf;
	size_t level = 0;

	if (tree->size >= MERKLE_SIZE_MAX)
		return -EOVERFLOW;
	for (; tree->size >> level & 1; level++)
		merkle_node(&tree->peak[level], &hash, &hash);
	tree->peak[level] = hash;
	tree->size++;
	return 0;
}

int merkle_append(struct merkle *tree, const void *data, size_t len)
{
	struct merkle_hash leaf;

	merkle_leaf(data, len, &leaf);
	return merkle_append_hash(tree, &leaf);
}

void merkle_root(const struct merkle *tree, struct merkle_hash *ret_root)
{
	bool some = false;
	SHA256_CTX sha;

	for (size_t level = 0; level < MERKLE_LEVELS; level++) {
		if (!(tree->size >> level & 1))
			continue;
		if (some)
			merkle_node(&tree->peak[level], ret_root, ret_root);
		else
			*ret_root = tree->peak[level];
		some = true;
	}
	if (!some) {
		SHA256_Init(&sha);
		SHA256_Final(ret_root->byte, &sha);
	}
}

size_t merkle_save(const struct merkle *tree, uint8_t *ret_data)
{
	uint8_t *to = ret_data;

	for (int shift = 56; shift >= 0; shift -= 8)
		*to++ = (uint8_t)(tree->size >> shift);
	for (size_t level = MERKLE_LEVELS; level--;) {
		if (!(tree->size >> level & 1))
			continue;
		memcpy(to, tree->peak[level].byte, MERKLE_HASH);
		to += MERKLE_HASH;
	}
	return (size_t)(to - ret_data);
}

int merkle_load(const uint8_t *data, size_t len, struct merkle *ret_tree)
{
	struct merkle tree = { 0 };
	size_t peaks;

	if (len < 8)
		return -EBADMSG;
	for (size_t i = 0; i < 8; i++)
		tree.size = tree.size << 8 | data[i];
	peaks = (size_t)__builtin_popcountll(tree.size);
	if (tree.size > MERKLE_SIZE_MAX || len != 8 + peaks * MERKLE_HASH)
		return -EBADMSG;
	data += 8;
	for (size_t level = MERKLE_LEVELS; level--;) {
		if (!(tree.size >> level & 1))
			continue;
		memcpy(tree.peak[level].byte, data, MERKLE_HASH);
		data += MERKLE_HASH;
	}
	*ret_tree = tree;
	return 0;
}
