/* SPDX-License-Identifier: Apache-2.0
 *
 * vkey.c - the public half of a signing key, under a name.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "audit/vkey.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "audit/base64.h"

#define TYPE_ED25519 1

bool vkey_name_ok(struct text name)
{
	for (size_t i = 0; i < name.len; i++) {
		if (name.at[i] <= ' ' || name.at[i] > '~' || name.at[i] == '+')
			return false;
	}
	return name.len && name.len <= VKEY_NAME_MAX;
}

static uint32_t id_of(const char *name, const uint8_t *public)
{
	static const uint8_t between[] = { '\n', TYPE_ED25519 };
	uint8_t md[SHA256_DIGEST_LENGTH];
	SHA256_CTX sha;

	SHA256_Init(&sha);
	SHA256_Update(&sha, name, strlen(name));
	SHA256_Update(&sha, between, sizeof(between));
	SHA256_Update(&sha, public, VKEY_LEN);
	SHA256_Final(md, &sha);
	return (uint32_t)md[0] << 24 | (uint32_t)md[1] << 16 |
	       (uint32_t)md[2] << 8 | md[3];
}

/* The y of each point whose order divides 8. A signature by one of those, with
 * its sign bit or without, can be made up without any secret. */
static const uint8_t weak[][VKEY_LEN] = {
	{ 0 },
	{ 1 },
	{ 0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f },
	{ 0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4,
	  0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6,
	  0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05 },
	{ 0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b,
	  0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39,
	  0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a },
};

/* @y is 2^255 - 19 or more: a second way to write a small number. */
static bool is_not_reduced(const uint8_t *y)
{
	for (size_t i = 1; i < VKEY_LEN - 1; i++) {
		if (y[i] != 0xff)
			return false;
	}
	return y[VKEY_LEN - 1] == 0x7f && y[0] >= 0xed;
}

static bool public_ok(const uint8_t *public)
{
	uint8_t y[VKEY_LEN];

	memcpy(y, public, sizeof(y));
	y[VKEY_LEN - 1] &= 0x7f;
	for (size_t i = 0; i < sizeof(weak) / sizeof(weak[0]); i++) {
		if (memcmp(y, weak[i], sizeof(y)) == 0)
			return false;
	}
	return !is_not_reduced(y);
}

int vkey_make(struct text name, const uint8_t *public, struct vkey *ret_vkey)
{
	if (!vkey_name_ok(name) || !public_ok(public))
		return -EINVAL;
	memset(ret_vkey, 0, sizeof(*ret_vkey));
	memcpy(ret_vkey->name, name.at, name.len);
	memcpy(ret_vkey->public, public, VKEY_LEN);
	ret_vkey->id = id_of(ret_vkey->name, public);
	return 0;
}

/* Takes what is before the next '+' off @text. */
static bool take_part(struct text *text, struct text *ret_part)
{
	const char *plus = text->len ? memchr(text->at, '+', text->len) : NULL;

	if (!plus)
		return false;
	ret_part->at = text->at;
	ret_part->len = (size_t)(plus - text->at);
	text->at = plus + 1;
	text->len -= ret_part->len + 1;
	return true;
}

int vkey_parse(struct text text, struct vkey *ret_vkey)
{
	uint8_t raw[1 + VKEY_LEN];
	struct text name, id;
	struct vkey vkey;
	char want[9];

	if (!take_part(&text, &name) || !take_part(&text, &id) ||
	    base64_decode_exactly(text.at, text.len, raw, sizeof(raw)) ||
	    raw[0] != TYPE_ED25519 || vkey_make(name, raw + 1, &vkey))
		return -EBADMSG;
	snprintf(want, sizeof(want), "%08" PRIx32, vkey.id);
	if (!text_is(id, want))
		return -EBADMSG;
	*ret_vkey = vkey;
	return 0;
}

void vkey_format(const struct vkey *vkey, char *ret_text)
{
	uint8_t raw[1 + VKEY_LEN] = { TYPE_ED25519 };
	char base64[BASE64_LEN(sizeof(raw)) + 1];

	memcpy(raw + 1, vkey->public, VKEY_LEN);
	base64_encode(raw, sizeof(raw), base64);
	base64[sizeof(base64) - 1] = '\0';
	snprintf(ret_text, VKEY_TEXT_MAX, "%s+%08" PRIx32 "+%s", vkey->name,
		 vkey->id, base64);
}

int vkey_verify(const struct vkey *vkey, const void *data, size_t len,
		const uint8_t *signature)
{
	EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL,
						    vkey->public, VKEY_LEN);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	int r = -ENOMEM;

	if (key && ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1)
		r = EVP_DigestVerify(ctx, signature, VKEY_SIGNATURE, data,
				     len) == 1
			    ? 0
			    : -EKEYREJECTED;
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(key);
	return r;
}
