/* SPDX-License-Identifier: Apache-2.0
 *
 * note.c - C2SP signed-note.
 *
 * The last empty line is the border, as the text may have some of its own. One
 * line that is no signature makes the whole not a note: whoever reads the same
 * bytes with other tools must see the same text and the same signers.
 */
#include "audit/note.h"

#include <errno.h>
#include <string.h>

#include "audit/base64.h"

#define EM_DASH "\xe2\x80\x94"
#define ID_LEN	4

static const char *const spaces[] = {
	" ",
	"+",
	"\n",
	"\xc2\x85",
	"\xc2\xa0",
	"\xe1\x9a\x80",
	"\xe2\x80\x80",
	"\xe2\x80\x81",
	"\xe2\x80\x82",
	"\xe2\x80\x83",
	"\xe2\x80\x84",
	"\xe2\x80\x85",
	"\xe2\x80\x86",
	"\xe2\x80\x87",
	"\xe2\x80\x88",
	"\xe2\x80\x89",
	"\xe2\x80\x8a",
	"\xe2\x80\xa8",
	"\xe2\x80\xa9",
	"\xe2\x80\xaf",
	"\xe2\x81\x9f",
	"\xe3\x80\x80",
};

/* Anybody's: non-empty, no Unicode space, no plus. The whole note was found to
 * be UTF-8 before. */
static bool name_ok(struct text name)
{
	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		if (memmem(name.at, name.len, spaces[i], strlen(spaces[i])))
			return false;
	}
	return name.len;
}

static int parse_signature(struct text line, struct note_signature *ret)
{
	const char *space;
	uint8_t head[6];
	size_t len;

	if (!text_skip(&line, EM_DASH " "))
		return -EBADMSG;
	space = memchr(line.at, ' ', line.len);
	if (!space)
		return -EBADMSG;
	ret->name = (struct text){ line.at, (size_t)(space - line.at) };
	ret->base64 = (struct text){ space + 1, line.len - ret->name.len - 1 };
	if (!name_ok(ret->name) || ret->base64.len < BASE64_LEN(ID_LEN + 1) ||
	    base64_decode(ret->base64.at, ret->base64.len, NULL, 0, &len) ||
	    len <= ID_LEN || base64_decode(ret->base64.at, 8, head, 6, &len))
		return -EBADMSG;
	ret->id = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 |
		  (uint32_t)head[2] << 8 | head[3];
	return 0;
}

int note_of_text(struct text text, struct note *ret_note)
{
	if (text.len > NOTE_MAX)
		return -E2BIG;
	if (!text.len || text.at[text.len - 1] != '\n' || !text_is_plain(text))
		return -EBADMSG;
	ret_note->text = text;
	ret_note->count = 0;
	return 0;
}

/* The last "\n\n" of @data; NULL if there is none. */
static const char *find_border(struct text data)
{
	for (size_t i = data.len; i > 1; i--) {
		if (data.at[i - 1] == '\n' && data.at[i - 2] == '\n')
			return data.at + i - 2;
	}
	return NULL;
}

int note_parse(struct text data, struct note *ret_note)
{
	const char *border;
	struct note note;
	struct text line;
	int r = note_of_text(data, &note);

	if (r < 0)
		return r;
	border = find_border(data);
	if (!border)
		return -EBADMSG;
	note.text.len = (size_t)(border - data.at) + 1;
	data.at += note.text.len + 1;
	data.len -= note.text.len + 1;
	while (text_line(&data, &line)) {
		if (note.count == NOTE_SIGNATURES_MAX)
			return -E2BIG;
		r = parse_signature(line, &note.signature[note.count++]);
		if (r < 0)
			return r;
	}
	if (!note.count)
		return -EBADMSG;
	*ret_note = note;
	return 0;
}

static bool is_by(const struct note_signature *signature,
		  const struct vkey *vkey)
{
	return signature->id == vkey->id &&
	       text_is(signature->name, vkey->name);
}

static int verify_one(const struct note *note,
		      const struct note_signature *signature,
		      const struct vkey *vkey)
{
	uint8_t raw[ID_LEN + VKEY_SIGNATURE];

	if (base64_decode_exactly(signature->base64.at, signature->base64.len,
				  raw, sizeof(raw)))
		return -EKEYREJECTED;
	return vkey_verify(vkey, note->text.at, note->text.len, raw + ID_LEN);
}

int note_verify(const struct note *note, const struct vkey *vkey)
{
	int r = -ENOKEY;

	for (size_t i = 0; i < note->count; i++) {
		if (!is_by(&note->signature[i], vkey))
			continue;
		r = verify_one(note, &note->signature[i], vkey);
		if (r < 0)
			return r;
	}
	return r;
}

static int put_own(struct out *out, struct text text, const struct key *key)
{
	const struct vkey *vkey = key_public(key);
	uint8_t raw[ID_LEN + VKEY_SIGNATURE];
	int r = key_sign(key, text.at, text.len, raw + ID_LEN);

	if (r < 0)
		return r;
	for (int i = 0; i < ID_LEN; i++)
		raw[i] = (uint8_t)(vkey->id >> (24 - 8 * i));
	out_text(out, EM_DASH " ");
	out_text(out, vkey->name);
	out_text(out, " ");
	out_base64(out, raw, sizeof(raw));
	out_text(out, "\n");
	return 0;
}

int note_format(const struct note *note, const struct key *key, char *ret_note,
		size_t cap, size_t *ret_len)
{
	struct out out = { .buf = ret_note, .cap = cap };
	size_t count = key ? 1 : 0;

	out_put(&out, note->text.at, note->text.len);
	out_text(&out, "\n");
	for (size_t i = 0; i < note->count; i++) {
		const struct note_signature *signature = &note->signature[i];

		if (key && is_by(signature, key_public(key)))
			continue;
		out_text(&out, EM_DASH " ");
		out_put(&out, signature->name.at, signature->name.len);
		out_text(&out, " ");
		out_put(&out, signature->base64.at, signature->base64.len);
		out_text(&out, "\n");
		count++;
	}
	if (!count)
		return -EBADMSG;
	if (count > NOTE_SIGNATURES_MAX)
		return -E2BIG;
	if (key) {
		int r = put_own(&out, note->text, key);

		if (r < 0)
			return r;
	}
	return out_end(&out, ret_len);
}
