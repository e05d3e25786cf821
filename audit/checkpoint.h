/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.h - C2SP tlog-checkpoint: a tree head, signed as a note.
 *
 *	ORIGIN
 *	SIZE
 *	BASE64 OF THE ROOT
 *
 * Extension lines are refused: nothing audits what they say.
 */
#ifndef AUDIT_CHECKPOINT_H
#define AUDIT_CHECKPOINT_H

#include "audit/merkle.h"
#include "audit/note.h"

#define CHECKPOINT_ORIGIN_MAX VKEY_NAME_MAX
/* The longest text, with a NUL; and signed by one of our keys. */
#define CHECKPOINT_TEXT_MAX (CHECKPOINT_ORIGIN_MAX + 1 + 20 + 1 + 44 + 1 + 1)
#define CHECKPOINT_NOTE_MAX \
	(CHECKPOINT_TEXT_MAX + 1 + 4 + VKEY_NAME_MAX + 1 + 92 + 1)

struct checkpoint {
	char origin[CHECKPOINT_ORIGIN_MAX + 1];
	uint64_t size;
	struct merkle_hash root;
};

/* The text that is signed; CHECKPOINT_TEXT_MAX bytes are enough. Returns 0;
 * -EINVAL of an origin that is empty or not one line of UTF-8, or of a size
 * beyond MERKLE_SIZE_MAX; -ENOBUFS. */
int checkpoint_format(const struct checkpoint *checkpoint, char *ret_text,
		      size_t cap, size_t *ret_len);
/* Returns 0 or -EBADMSG, also of an empty tree with the root of another. */
int checkpoint_parse(struct text text, struct checkpoint *ret_checkpoint);

/* The note; CHECKPOINT_NOTE_MAX bytes are enough. C2SP: the name of the key
 * should be the origin. Returns as checkpoint_format(), or -ENOMEM. */
int checkpoint_sign(const struct checkpoint *checkpoint, const struct key *key,
		    char *ret_note, size_t cap, size_t *ret_len);
/* Reads a note that @vkey signed for the origin that is its name; further
 * signatures do not matter. Returns 0; -EBADMSG; -E2BIG; -ENOKEY if another
 * signed, or for another origin; -EKEYREJECTED if the signature is wrong;
 * -ENOMEM. */
int checkpoint_open(struct text note, const struct vkey *vkey,
		    struct checkpoint *ret_checkpoint);

#endif
