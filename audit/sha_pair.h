/* SPDX-License-Identifier: Apache-2.0
 *
 * sha_pair.h - two SHA-256 (FIPS 180-4) at once: of a line, as a leaf of the
 * tree, and of the file that it is written to.
 *
 * Where a processor has instructions for SHA-256, each waits for the one
 * before, and a second message goes into the gaps: both take a third to half
 * less than one after the other. OpenSSL has that in assembler, and uses it for
 * TLS, but has no function for it that one may call from outside; it is in the
 * archive all the same. So it is taken where it is, and where it has shown, in
 * this process, that it computes what OpenSSL's public function does.
 */
#ifndef AUDIT_SHA_PAIR_H
#define AUDIT_SHA_PAIR_H

#include <stdbool.h>
#include <stddef.h>

#include "audit/merkle.h"
#include "policy/digest.h"

#define SHA_BLOCK 64

/* Can it be done here? Looks, and tries: to be asked once. */
bool sha_pair_works(void);

/* merkle_leaf() of @line, while @digest takes whole blocks of @data: up to as
 * many as the leaf has. What it took before was whole blocks, too. Returns how
 * many bytes it took. Only if sha_pair_works(). */
size_t sha_pair_leaf(const void *line, size_t len, struct merkle_hash *ret_leaf,
		     struct digest *digest, const void *data, size_t data_len);

#endif
