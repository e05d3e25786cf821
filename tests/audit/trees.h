/* SPDX-License-Identifier: Apache-2.0
 *
 * trees.h - what the tests of Merkle trees share: RFC 6962's definition as it
 * stands there, and the leaves and roots of certificate-transparency's tests.
 */
#ifndef TESTS_AUDIT_TREES_H
#define TESTS_AUDIT_TREES_H

#include <string.h>

#include "audit/merkle.h"

static const struct {
	const char *data;
	size_t len;
	const char *root; /* of the leaves up to this one */
} known[8] = {
	{ "", 0,
	  "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d" },
	{ "\x00", 1,
	  "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125" },
	{ "\x10", 1,
	  "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77" },
	{ "\x20\x21", 2,
	  "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7" },
	{ "\x30\x31", 2,
	  "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4" },
	{ "\x40\x41\x42\x43", 4,
	  "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef" },
	{ "\x50\x51\x52\x53\x54\x55\x56\x57", 8,
	  "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c" },
	{ "\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
	  16,
	  "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328" },
};

static inline struct merkle_hash hash_of_hex(const char *hex)
{
	static const char digits[] = "0123456789abcdef";
	struct merkle_hash hash;

	for (size_t i = 0; i < MERKLE_HASH; i++)
		hash.byte[i] =
			(uint8_t)((strchr(digits, hex[2 * i]) - digits) << 4 |
				  (strchr(digits, hex[2 * i + 1]) - digits));
	return hash;
}

/* MTH(D[0:n]) of the leaf hashes @leaf, word by word. */
static inline struct merkle_hash naive_root(const struct merkle_hash *leaf,
					    size_t n)
{
	struct merkle_hash left, right;
	size_t k = 1;

	if (n == 0)
		return hash_of_hex("e3b0c44298fc1c149afbf4c8996fb924"
				   "27ae41e4649b934ca495991b7852b855");
	if (n == 1)
		return leaf[0];
	while (k * 2 < n)
		k *= 2;
	left = naive_root(leaf, k);
	right = naive_root(leaf + k, n - k);
	merkle_node(&left, &right, &left);
	return left;
}

/* Leaf hashes of n different leaves. */
static inline void fill_leaves(struct merkle_hash *leaf, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t data = (uint32_t)i * 2654435761u;

		merkle_leaf(&data, sizeof(data), &leaf[i]);
	}
}

#endif
