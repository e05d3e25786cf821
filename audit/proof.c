/* SPDX-License-Identifier: Apache-2.0
 *
 * proof.c - inclusion and consistency proofs of RFC 6962.
 *
 * A proof is the roots of some runs of leaves, and no two runs overlap. So the
 * runs are listed first, from the top of the tree down (the RFC's recursion,
 * whose first step gives the last hash), and one pass over the leaves fills
 * them in, one small tree at a time.
 */
#include "audit/proof.h"

#include <errno.h>

#include "audit/base64.h"

static const char magic[] = "c2sp.org/tlog-proof@v1";

struct runs {
	size_t count;
	struct run {
		uint64_t from, to;
	} at[PROOF_MAX];
};

static void add_run(struct runs *runs, uint64_t from, uint64_t to)
{
	runs->at[runs->count].from = from;
	runs->at[runs->count++].to = to;
}

/* The largest power of two below @n, which is at least 2. */
static uint64_t split_of(uint64_t n)
{
	return (uint64_t)1 << (63 - __builtin_clzll(n - 1));
}

/* Which run leaf @i is in; runs->count if no hash is about it. */
static size_t find_run(const struct runs *runs, uint64_t i)
{
	size_t r = 0;

	while (r < runs->count && (i < runs->at[r].from || i >= runs->at[r].to))
		r++;
	return r;
}

static int fill(const struct runs *runs, uint64_t size,
		const struct proof_leaves *leaves, struct proof *ret_proof)
{
	struct proof proof = { .count = runs->count };
	struct merkle_hash leaf;
	struct merkle part;
	size_t run;
	int r;

	for (uint64_t i = 0; runs->count && i < size; i++) {
		r = leaves->next(leaves->ctx, &leaf);
		if (r < 0)
			return r;
		run = find_run(runs, i);
		if (run == runs->count)
			continue;
		if (i == runs->at[run].from)
			part.size = 0;
		merkle_append_hash(&part, &leaf);
		/* The first run is the last hash. */
		if (i + 1 == runs->at[run].to)
			merkle_root(&part, &proof.hash[runs->count - 1 - run]);
	}
	*ret_proof = proof;
	return 0;
}

int proof_make_inclusion(uint64_t index, uint64_t size,
			 const struct proof_leaves *leaves,
			 struct proof *ret_proof)
{
	uint64_t from = 0, to = size;
	struct runs runs = { 0 };

	if (index >= size || size > MERKLE_SIZE_MAX)
		return -EINVAL;
	while (to - from > 1) {
		uint64_t middle = from + split_of(to - from);

		if (index < middle) {
			add_run(&runs, middle, to);
			to = middle;
		} else {
			add_run(&runs, from, middle);
			from = middle;
		}
	}
	return fill(&runs, size, leaves, ret_proof);
}

int proof_make_consistency(uint64_t old, uint64_t size,
			   const struct proof_leaves *leaves,
			   struct proof *ret_proof)
{
	uint64_t from = 0, to = size;
	struct runs runs = { 0 };

	if (old > size || size > MERKLE_SIZE_MAX)
		return -EINVAL;
	while (old && to > old) {
		uint64_t middle = from + split_of(to - from);

		if (old <= middle) {
			add_run(&runs, middle, to);
			to = middle;
		} else {
			add_run(&runs, from, middle);
			from = middle;
		}
	}
	/* Who asks knows the root of the old tree, but not of a part. */
	if (from)
		add_run(&runs, from, to);
	return fill(&runs, size, leaves, ret_proof);
}

/* Where a hash is in its tree, from the bottom up: its index on this level,
 * and that of the last one there. */
struct walk {
	uint64_t at, last;
};

static void up(struct walk *walk)
{
	walk->at >>= 1;
	walk->last >>= 1;
}

/* Whether what comes next in a proof stands to the left. If so, steps over the
 * levels on which the hash so far has nobody beside it. */
static bool is_from_left(struct walk *walk)
{
	if (!(walk->at & 1) && walk->at != walk->last)
		return false;
	while (walk->at && !(walk->at & 1))
		up(walk);
	return true;
}

bool proof_shows_inclusion(const struct proof *proof, uint64_t index,
			   uint64_t size, const struct merkle_hash *leaf,
			   const struct merkle_hash *root)
{
	struct walk walk = { index, size - 1 };
	struct merkle_hash hash = *leaf;

	if (index >= size || size > MERKLE_SIZE_MAX || proof->count > PROOF_MAX)
		return false;
	for (size_t i = 0; i < proof->count; i++, up(&walk)) {
		if (!walk.last)
			return false;
		if (is_from_left(&walk))
			merkle_node(&proof->hash[i], &hash, &hash);
		else
			merkle_node(&hash, &proof->hash[i], &hash);
	}
	return !walk.last && merkle_hash_equal(&hash, root);
}

/* Both trees have leaves, and the new one has more. */
static bool shows_growth(const struct proof *proof, uint64_t old, uint64_t size,
			 const struct merkle_hash *old_root,
			 const struct merkle_hash *root)
{
	struct walk walk = { old - 1, size - 1 };
	bool is_whole = (old & (old - 1)) == 0;
	struct merkle_hash before, after;

	if (!proof->count)
		return false;
	while (walk.at & 1)
		up(&walk);
	before = is_whole ? *old_root : proof->hash[0];
	after = before;
	for (size_t i = is_whole ? 0 : 1; i < proof->count; i++, up(&walk)) {
		const struct merkle_hash *next = &proof->hash[i];

		if (!walk.last)
			return false;
		if (is_from_left(&walk)) {
			merkle_node(next, &before, &before);
			merkle_node(next, &after, &after);
		} else {
			merkle_node(&after, next, &after);
		}
	}
	return !walk.last && merkle_hash_equal(&before, old_root) &&
	       merkle_hash_equal(&after, root);
}

bool proof_shows_consistency(const struct proof *proof, uint64_t old,
			     uint64_t size, const struct merkle_hash *old_root,
			     const struct merkle_hash *root)
{
	static const struct merkle empty;
	struct merkle_hash nothing;

	if (old > size || size > MERKLE_SIZE_MAX || proof->count > PROOF_MAX)
		return false;
	merkle_root(&empty, &nothing);
	if ((!old && !merkle_hash_equal(old_root, &nothing)) ||
	    (!size && !merkle_hash_equal(root, &nothing)))
		return false;
	if (!old)
		return !proof->count;
	if (old == size)
		return !proof->count && merkle_hash_equal(old_root, root);
	return shows_growth(proof, old, size, old_root, root);
}

int proof_format(uint64_t index, const struct proof *proof,
		 struct text checkpoint, char *ret_file, size_t cap,
		 size_t *ret_len)
{
	struct out out = { .buf = ret_file, .cap = cap };

	out_text(&out, magic);
	out_text(&out, "\nindex ");
	out_decimal(&out, index);
	out_text(&out, "\n");
	for (size_t i = 0; i < proof->count; i++) {
		out_base64(&out, proof->hash[i].byte, MERKLE_HASH);
		out_text(&out, "\n");
	}
	out_text(&out, "\n");
	out_put(&out, checkpoint.at, checkpoint.len);
	return out_end(&out, ret_len);
}

/* The lines up to the first empty one. */
static int parse_hashes(struct text *file, struct proof *proof)
{
	struct text line;

	while (text_line(file, &line)) {
		if (!line.len)
			return 0;
		if (proof->count == PROOF_MAX ||
		    base64_decode_exactly(line.at, line.len,
					  proof->hash[proof->count++].byte,
					  MERKLE_HASH))
			return -EBADMSG;
	}
	return -EBADMSG;
}

int proof_parse(struct text file, uint64_t *ret_index, struct proof *ret_proof,
		struct text *ret_checkpoint)
{
	struct proof proof = { 0 };
	struct text line;
	uint64_t index;
	size_t extra;

	if (!text_line(&file, &line) || !text_is(line, magic) ||
	    !text_line(&file, &line))
		return -EBADMSG;
	if (text_skip(&line, "extra ") &&
	    (base64_decode(line.at, line.len, NULL, 0, &extra) || !extra ||
	     !text_line(&file, &line)))
		return -EBADMSG;
	if (!text_skip(&line, "index ") ||
	    !text_decimal(line, MERKLE_SIZE_MAX - 1, &index) ||
	    parse_hashes(&file, &proof) || !file.len)
		return -EBADMSG;
	*ret_index = index;
	*ret_proof = proof;
	*ret_checkpoint = file;
	return 0;
}
