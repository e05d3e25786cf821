/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_proof.c - a proof from anywhere: what is read can be written again, and
 * it shows nothing about a tree whose root nobody can have hit.
 */
#include "audit/proof.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_shows_nothing(const struct proof *proof, uint64_t index)
{
	static const struct merkle_hash zero;

	for (int bits = 0; bits < 63; bits += 7) {
		uint64_t n = index + ((uint64_t)1 << bits);

		/* Of one leaf that is the root, no hash is needed. */
		must(!proof_shows_inclusion(proof, index, n, &zero, &zero) ||
		     n == 1);
		must(!proof_shows_consistency(proof, index + 1, n, &zero,
					      &zero) ||
		     n == index + 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct text text = { (const char *)data, size };
	struct proof proof, proof2;
	struct text rest, rest2;
	uint64_t index, index2;
	size_t len;
	char *again;

	if (proof_parse(text, &index, &proof, &rest))
		return 0;
	must(proof.count <= PROOF_MAX && rest.len && index < MERKLE_SIZE_MAX);
	must(rest.at + rest.len == text.at + size);
	again = malloc(size + 1);
	must(again);
	/* All but the "extra" line. */
	must(!proof_format(index, &proof, rest, again, size + 1, &len));
	must(!proof_parse((struct text){ again, len }, &index2, &proof2,
			  &rest2));
	must(index2 == index && proof2.count == proof.count);
	must(memcmp(proof.hash, proof2.hash,
		    proof.count * sizeof(proof.hash[0])) == 0);
	free(again);
	check_shows_nothing(&proof, index);
	return 0;
}
