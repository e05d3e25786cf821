/* SPDX-License-Identifier: Apache-2.0
 *
 * dsse.h - DSSE 1.0.2: a body and its type, signed together, as JSON.
 *
 * Signed is not the JSON but PAE, from which type and body can be told apart:
 *
 *	"DSSEv1 " LEN(type) " " type " " LEN(body) " " body
 *
 * The body is kept to the byte; nothing depends on how JSON is written.
 */
#ifndef AUDIT_DSSE_H
#define AUDIT_DSSE_H

#include "audit/key.h"
#include "audit/text.h"

#define DSSE_BODY_MAX	    (4 * 1024 * 1024)
#define DSSE_SIGNATURES_MAX 16

/* Returns 0 and what is to be signed, which the caller frees; -E2BIG; -ENOMEM.
 */
int dsse_pae(const char *type, struct text body, char **ret_pae,
	     size_t *ret_len);

/* Returns 0 and an envelope of one line without an LF, NUL-terminated, which
 * the caller frees. The hint "keyid" is the key's name and id, "NAME+ID".
 * Errors: -E2BIG beyond DSSE_BODY_MAX, -EINVAL of a @type that is not
 * printable ASCII without spaces, -ENOMEM. */
int dsse_sign(const char *type, struct text body, const struct key *key,
	      char **ret_json, size_t *ret_len);

/* Reads an envelope of whatever bytes. Returns 0 and the body, which the
 * caller frees, if @vkey is one of those who signed it as @type (the hint is
 * not believed, each signature is tried). A NUL follows the body, which
 * *@ret_len does not count.
 *
 * Errors: -EBADMSG if it is no envelope; -E2BIG; -ENOMSG if it is of another
 * type; -EKEYREJECTED if no signature is @vkey's; -ENOMEM. */
int dsse_open(struct text json, const char *type, const struct vkey *vkey,
	      char **ret_body, size_t *ret_len);

#endif
