/* SPDX-License-Identifier: Apache-2.0
 *
 * proof.h - that one record is in a log, and that one log continues another
 * (RFC 6962 sections 2.1.1 and 2.1.2; checked as RFC 9162 sections 2.1.3.2 and
 * 2.1.4.2 say), and the file in which the former travels (C2SP tlog-proof).
 *
 * Making a proof reads every leaf hash once at most, in order, and keeps none.
 */
#ifndef AUDIT_PROOF_H
#define AUDIT_PROOF_H

#include "audit/merkle.h"
#include "audit/text.h"

#define PROOF_MAX (MERKLE_LEVELS + 1)

struct proof {
	size_t count;
	struct merkle_hash hash[PROOF_MAX];
};

/* Where leaves come from: next() gives the hash of the next one, from leaf 0
 * on. It returns 0, or -errno, which ends the proof. */
struct proof_leaves {
	int (*next)(void *ctx, struct merkle_hash *ret_leaf);
	void *ctx;
};

/* That leaf @index is in the tree of @size leaves. Returns 0; -EINVAL if it
 * is not (@index >= @size); what next() returned. */
int proof_make_inclusion(uint64_t index, uint64_t size,
			 const struct proof_leaves *leaves,
			 struct proof *ret_proof);

/* That the tree of @size leaves begins with the tree of @old leaves. Returns
 * 0; -EINVAL if @old > @size; what next() returned. */
int proof_make_consistency(uint64_t old, uint64_t size,
			   const struct proof_leaves *leaves,
			   struct proof *ret_proof);

bool proof_shows_inclusion(const struct proof *proof, uint64_t index,
			   uint64_t size, const struct merkle_hash *leaf,
			   const struct merkle_hash *root);

/* The tree of no leaves begins every tree: no hashes, and its own root. */
bool proof_shows_consistency(const struct proof *proof, uint64_t old,
			     uint64_t size, const struct merkle_hash *old_root,
			     const struct merkle_hash *root);

/* The file: index, @proof, and the signed @checkpoint as it is. Writes at most
 * @cap bytes and a NUL within them. Returns 0 or -ENOBUFS. */
int proof_format(uint64_t index, const struct proof *proof,
		 struct text checkpoint, char *ret_file, size_t cap,
		 size_t *ret_len);

/* Reads @file. *@ret_checkpoint points into it and is not looked at; nobody
 * signs the "extra" line, it is skipped. Returns 0 or -EBADMSG. */
int proof_parse(struct text file, uint64_t *ret_index, struct proof *ret_proof,
		struct text *ret_checkpoint);

#endif
