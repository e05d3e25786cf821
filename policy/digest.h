/* SPDX-License-Identifier: Apache-2.0
 *
 * digest.h - SHA-256, as the 64 hexadecimal digits that a log shows.
 */
#ifndef POLICY_DIGEST_H
#define POLICY_DIGEST_H

#include <openssl/sha.h>
#include <stddef.h>

#define DIGEST_HEX 65 /* with the NUL */

struct digest {
	SHA256_CTX sha;
};

void digest_begin(struct digest *digest);
void digest_add(struct digest *digest, const void *data, size_t len);
/* Fills DIGEST_HEX bytes. */
void digest_end(struct digest *digest, char *ret_hex);

#endif
