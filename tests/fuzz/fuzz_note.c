/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_note.c - a note from anywhere: what is read is written again to the
 * byte, and nobody signed what the fuzzer made up.
 */
#include "audit/note.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_vkey(struct text text)
{
	char again[VKEY_TEXT_MAX];
	struct vkey vkey;

	if (vkey_parse(text, &vkey))
		return;
	vkey_format(&vkey, again);
	must(text_is(text, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct text text = { (const char *)data, size };
	struct vkey nobody = { .name = "nobody.example" };
	uint8_t public[VKEY_LEN];
	struct note note;
	size_t len;
	char *again;
	int r;

	check_vkey(text);
	if (note_parse(text, &note))
		return 0;
	must(note.count && note.count <= NOTE_SIGNATURES_MAX);
	must(note.text.at == text.at && note.text.len + 1 < size);
	must(text_is_plain(text) && note.text.at[note.text.len - 1] == '\n');
	again = malloc(size + 1);
	must(again);
	must(!note_format(&note, NULL, again, size + 1, &len));
	must(len == size && memcmp(again, data, size) == 0);
	must(note_format(&note, NULL, again, size, &len) == -ENOBUFS);
	free(again);

	/* By whoever is named first, with RFC 8032's B as the key. */
	memset(public, 0x66, sizeof(public));
	public[0] = 0x58;
	if (vkey_make(note.signature[0].name, public, &nobody))
		return 0;
	nobody.id = note.signature[0].id;
	r = note_verify(&note, &nobody);
	must(r == -ENOKEY || r == -EKEYREJECTED || r == -ENOMEM);
	return 0;
}
