/* SPDX-License-Identifier: Apache-2.0
 *
 * hash.h - SipHash-2-4: sandboxes choose the names that are hashed, so the key
 * is a secret of this process.
 */
#ifndef DNS_HASH_H
#define DNS_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_key {
	uint64_t k0, k1;
};

/* A random key. 0 or -errno. */
int hash_key_init(struct hash_key *ret_key);
uint64_t hash_bytes(const struct hash_key *key, const void *data, size_t len);

#endif
