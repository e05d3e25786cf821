/* SPDX-License-Identifier: Apache-2.0
 *
 * note.h - C2SP signed-note: a text, an empty line, signatures.
 *
 *	text, any number of lines
 *
 *	(em dash) NAME BASE64(key id, 4 bytes, then the signature)
 *
 * Signatures of keys that nobody here knows are kept: witnesses add theirs.
 */
#ifndef AUDIT_NOTE_H
#define AUDIT_NOTE_H

#include "audit/key.h"
#include "audit/text.h"

#define NOTE_MAX	    (256 * 1024)
#define NOTE_SIGNATURES_MAX 32

struct note_signature {
	struct text name, base64;
	uint32_t id;
};

/* Everything points into what it was read from. */
struct note {
	struct text text; /* with its last LF */
	size_t count;
	struct note_signature signature[NOTE_SIGNATURES_MAX];
};

/* Reads a note of whatever bytes; its signatures are not verified. Returns 0;
 * -EBADMSG if it is not one, -E2BIG beyond NOTE_MAX or NOTE_SIGNATURES_MAX. */
int note_parse(struct text data, struct note *ret_note);

/* A text to be signed, which must end with LF. Returns 0 or -EBADMSG. */
int note_of_text(struct text text, struct note *ret_note);

/* Whether @vkey signed the text. Returns 0; -ENOKEY if there is no signature
 * by its name and id; -EKEYREJECTED if one of those is wrong; -ENOMEM. */
int note_verify(const struct note *note, const struct vkey *vkey);

/* Writes the note with all its signatures, followed by a new one of @key under
 * its name (NULL: none is added); an earlier one of that name and id is left
 * out. At most @cap bytes, a NUL within them. Returns 0; -ENOBUFS; -E2BIG if
 * that were more than NOTE_SIGNATURES_MAX; -EBADMSG without any; -ENOMEM. */
int note_format(const struct note *note, const struct key *key, char *ret_note,
		size_t cap, size_t *ret_len);

#endif
