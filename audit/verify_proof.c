/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_proof.c - one record, shown without the rest of its log.
 */
#include <errno.h>
#include <string.h>

#include "audit/proof.h"
#include "audit/verify_state.h"
#include "base/cleanup.h"

#define FILE_MAX ((size_t)64 + PROOF_MAX * 45 + CHECKPOINT_NOTE_MAX)

struct leaves {
	struct verify_reader reader;
	uint64_t given, index;
	struct merkle_hash leaf; /* of record .index */
};

static int next_leaf(void *ctx, struct merkle_hash *ret_leaf)
{
	struct leaves *leaves = ctx;
	struct text line;
	int r;

	do
		r = verify_read(&leaves->reader, &line);
	while (r == VERIFY_READ_PART);
	if (r != VERIFY_READ_LINE)
		return r < 0 ? r : -EBADMSG;
	merkle_leaf(line.at, line.len, ret_leaf);
	if (leaves->given++ == leaves->index)
		leaves->leaf = *ret_leaf;
	return 0;
}

static int read_leaves(int dirfd, uint64_t index, uint64_t size,
		       struct leaves *leaves, struct proof *ret_proof)
{
	const struct proof_leaves source = { next_leaf, leaves };
	int r = verify_reader_open(&leaves->reader, dirfd);

	leaves->index = index;
	if (!r)
		r = proof_make_inclusion(index, size, &source, ret_proof);
	/* Of a tree with one leaf none was needed. */
	if (!r && !leaves->given) {
		struct merkle_hash leaf;

		r = next_leaf(leaves, &leaf);
	}
	verify_reader_close(&leaves->reader);
	return r;
}

int verify_prove(const char *path, const struct verify_result *result,
		 uint64_t number, char **ret_file, size_t *ret_len)
{
	AUTO_FD int dirfd = verify_open_dir(path);
	struct text note = { result->last_checkpoint,
			     strlen(result->last_checkpoint) };
	struct leaves leaves = { .reader = { .fd = -1, .newest = -1 } };
	AUTO_FREE char *file = malloc(FILE_MAX);
	struct checkpoint checkpoint;
	struct proof proof;
	int r;

	if (number >= result->covered)
		return -EINVAL;
	if (dirfd < 0 || !file)
		return dirfd < 0 ? dirfd : -ENOMEM;
	r = checkpoint_open(note, &result->key, &checkpoint);
	if (!r)
		r = read_leaves(dirfd, number, checkpoint.size, &leaves,
				&proof);
	if (r < 0)
		return r;
	if (!proof_shows_inclusion(&proof, number, checkpoint.size,
				   &leaves.leaf, &checkpoint.root))
		return -EBADMSG;
	r = proof_format(number, &proof, note, file, FILE_MAX, ret_len);
	if (!r)
		*ret_file = STEAL(file);
	return r;
}

/* @key, or the same under the name that it has for @session. */
static int open_note(struct text note, const struct vkey *key,
		     struct text session, struct checkpoint *ret,
		     bool *ret_exact)
{
	char name[2 * VKEY_NAME_MAX];
	struct vkey derived;
	int len, r = checkpoint_open(note, key, ret);

	*ret_exact = r != -ENOKEY;
	if (*ret_exact)
		return r;
	len = snprintf(name, sizeof(name), "%s/%.*s", key->name,
		       (int)session.len, session.at);
	if (session.len > 63 || vkey_make((struct text){ name, (size_t)len },
					  key->public, &derived))
		return -ENOKEY;
	return checkpoint_open(note, &derived, ret);
}

int verify_shows(struct text record, struct text file, const struct vkey *key,
		 struct verify_shown *ret)
{
	struct checkpoint checkpoint;
	struct verify_line line;
	struct merkle_hash leaf;
	struct proof proof;
	struct text note, session;
	uint64_t index, number;
	int r = proof_parse(file, &index, &proof, &note);

	if (r < 0)
		return r;
	if (record.len > RECORD_LINE_MAX || verify_line_parse(record, &line) ||
	    !verify_line_uid(line.uid, &session, &number) || number != index ||
	    line.sequence != index || session.len > 63)
		return -ENOMSG;
	r = open_note(note, key, session, &checkpoint, &ret->known_session);
	if (r < 0)
		return r;
	merkle_leaf(record.at, record.len, &leaf);
	if (!proof_shows_inclusion(&proof, index, checkpoint.size, &leaf,
				   &checkpoint.root))
		return -EDOM;
	snprintf(ret->session, sizeof(ret->session), "%.*s", (int)session.len,
		 session.at);
	ret->index = index;
	ret->size = checkpoint.size;
	return 0;
}
