/* SPDX-License-Identifier: Apache-2.0
 *
 * digest.c - OpenSSL's SHA-256 without the rest of OpenSSL.
 *
 * The functions of 3.0 look for providers, read a configuration file and build
 * tables first: a millisecond in each of our processes, for digests of a few
 * kilobytes. The old ones run the same code without that; they need no memory
 * and do not fail.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "policy/digest.h"

#include <stdint.h>

void digest_begin(struct digest *digest)
{
	SHA256_Init(&digest->sha);
}

void digest_add(struct digest *digest, const void *data, size_t len)
{
	if (len)
		SHA256_Update(&digest->sha, data, len);
}

void digest_end(struct digest *digest, char *ret_hex)
{
	static const char hex[] = "0123456789abcdef";
	uint8_t md[SHA256_DIGEST_LENGTH];

	SHA256_Final(md, &digest->sha);
	for (size_t i = 0; i < sizeof(md); i++) {
		*ret_hex++ = hex[md[i] >> 4];
		*ret_hex++ = hex[md[i] & 15];
	}
	*ret_hex = '\0';
}
