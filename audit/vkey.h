/* SPDX-License-Identifier: Apache-2.0
 *
 * vkey.h - the public half of a signing key, under a name: C2SP signed-note's
 * Ed25519 (signature type 0x01, RFC 8032).
 *
 * Text form: "NAME+ID+BASE64", where BASE64 is 0x01 and the 32 bytes of the
 * key, ID the first four bytes of SHA-256(NAME || 0x0a || 0x01 || key).
 */
#ifndef AUDIT_VKEY_H
#define AUDIT_VKEY_H

#include "audit/text.h"

#define VKEY_NAME_MAX  255
#define VKEY_LEN       32
#define VKEY_SIGNATURE 64
/* The longest text form, with a NUL. */
#define VKEY_TEXT_MAX (VKEY_NAME_MAX + 1 + 8 + 1 + 44 + 1)

struct vkey {
	char name[VKEY_NAME_MAX + 1];
	uint32_t id;
	uint8_t public[VKEY_LEN];
};

/* Names of our keys: 1 to VKEY_NAME_MAX printable ASCII characters without
 * space and '+'. (Those of unknown signers in a note may be wider.) */
bool vkey_name_ok(struct text name);

/* Returns 0; -EINVAL of a bad @name, or of a @public of small order or not
 * reduced: OpenSSL verifies with those, and anybody can sign for them. */
int vkey_make(struct text name, const uint8_t *public, struct vkey *ret_vkey);

/* Reads one text form, without a line end. Returns 0, or -EBADMSG; also if the
 * ID is not the key's, and of other types of key. */
int vkey_parse(struct text text, struct vkey *ret_vkey);
/* Writes at most VKEY_TEXT_MAX bytes and a NUL within them. */
void vkey_format(const struct vkey *vkey, char *ret_text);

/* Whether @signature, VKEY_SIGNATURE bytes, is this key's over @data. Returns
 * 0, -EKEYREJECTED if not, -ENOMEM. */
int vkey_verify(const struct vkey *vkey, const void *data, size_t len,
		const uint8_t *signature);

#endif
