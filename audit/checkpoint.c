/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.c - C2SP tlog-checkpoint: a tree head, signed as a note.
 */
#include "audit/checkpoint.h"

#include <errno.h>
#include <string.h>

#include "audit/base64.h"

static bool origin_ok(struct text origin)
{
	return origin.len && origin.len <= CHECKPOINT_ORIGIN_MAX &&
	       !memchr(origin.at, '\n', origin.len) && text_is_plain(origin);
}

int checkpoint_format(const struct checkpoint *checkpoint, char *ret_text,
		      size_t cap, size_t *ret_len)
{
	struct out out = { .buf = ret_text, .cap = cap };
	struct text origin = { checkpoint->origin, strlen(checkpoint->origin) };

	if (!origin_ok(origin) || checkpoint->size > MERKLE_SIZE_MAX)
		return -EINVAL;
	out_put(&out, origin.at, origin.len);
	out_text(&out, "\n");
	out_decimal(&out, checkpoint->size);
	out_text(&out, "\n");
	out_base64(&out, checkpoint->root.byte, MERKLE_HASH);
	out_text(&out, "\n");
	return out_end(&out, ret_len);
}

int checkpoint_parse(struct text text, struct checkpoint *ret_checkpoint)
{
	struct checkpoint checkpoint = { 0 };
	struct text origin, size, root;
	static const struct merkle empty;
	struct merkle_hash nothing;

	if (!text_line(&text, &origin) || !text_line(&text, &size) ||
	    !text_line(&text, &root) || text.len || !origin_ok(origin) ||
	    !text_decimal(size, MERKLE_SIZE_MAX, &checkpoint.size) ||
	    base64_decode_exactly(root.at, root.len, checkpoint.root.byte,
				  MERKLE_HASH))
		return -EBADMSG;
	merkle_root(&empty, &nothing);
	if (!checkpoint.size && !merkle_hash_equal(&checkpoint.root, &nothing))
		return -EBADMSG;
	memcpy(checkpoint.origin, origin.at, origin.len);
	*ret_checkpoint = checkpoint;
	return 0;
}

int checkpoint_sign(const struct checkpoint *checkpoint, const struct key *key,
		    char *ret_note, size_t cap, size_t *ret_len)
{
	char buf[CHECKPOINT_TEXT_MAX];
	struct text text = { buf, 0 };
	struct note note;
	int r = checkpoint_format(checkpoint, buf, sizeof(buf), &text.len);

	if (r < 0)
		return r;
	r = note_of_text(text, &note);
	if (r < 0)
		return r;
	return note_format(&note, key, ret_note, cap, ret_len);
}

int checkpoint_open(struct text data, const struct vkey *vkey,
		    struct checkpoint *ret_checkpoint)
{
	struct checkpoint checkpoint;
	struct note note;
	int r = note_parse(data, &note);

	if (r < 0)
		return r;
	r = note_verify(&note, vkey);
	if (r < 0)
		return r;
	r = checkpoint_parse(note.text, &checkpoint);
	if (r < 0)
		return r;
	if (strcmp(checkpoint.origin, vkey->name) != 0)
		return -ENOKEY;
	*ret_checkpoint = checkpoint;
	return 0;
}
