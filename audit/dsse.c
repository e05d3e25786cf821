/* SPDX-License-Identifier: Apache-2.0
 *
 * dsse.c - DSSE 1.0.2: a body and its type, signed together, as JSON.
 *
 * DSSE lets writers use the URL-safe alphabet too; we neither write nor read
 * it: an envelope of ours has one form of its payload.
 */
#include "audit/dsse.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "audit/base64.h"
#include "base/cleanup.h"
#include "base/json.h"

/* Everything in an envelope but the payload. */
#define ENVELOPE_MAX (64 * 1024)
#define TYPE_MAX     1024

int dsse_pae(const char *type, struct text body, char **ret_pae,
	     size_t *ret_len)
{
	size_t cap = strlen(type) + body.len + 64;
	AUTO_FREE char *pae = NULL;
	struct out out = { .cap = cap };

	if (body.len > DSSE_BODY_MAX || strlen(type) > TYPE_MAX)
		return -E2BIG;
	pae = malloc(cap);
	if (!pae)
		return -ENOMEM;
	out.buf = pae;
	out_text(&out, "DSSEv1 ");
	out_decimal(&out, strlen(type));
	out_text(&out, " ");
	out_text(&out, type);
	out_text(&out, " ");
	out_decimal(&out, body.len);
	out_text(&out, " ");
	out_put(&out, body.at, body.len);
	if (out_end(&out, ret_len))
		return -ENOMEM;
	*ret_pae = STEAL(pae);
	return 0;
}

/* What JSON and PAE write alike. */
static bool type_ok(const char *type)
{
	for (const char *at = type; *at; at++) {
		if (*at <= ' ' || *at > '~')
			return false;
	}
	return *type;
}

static void put_base64(struct json *j, const char *key, char *scratch,
		       const void *data, size_t len)
{
	base64_encode(data, len, scratch);
	json_bytes(j, key, scratch, BASE64_LEN(len));
}

/* @scratch has room for the base64 of either. */
static void put_envelope(struct json *j, const char *type, struct text body,
			 const struct vkey *vkey, const uint8_t *signature,
			 char *scratch)
{
	char hint[VKEY_NAME_MAX + 1 + 8 + 1];

	snprintf(hint, sizeof(hint), "%s+%08" PRIx32, vkey->name, vkey->id);
	json_open(j, NULL, '{');
	put_base64(j, "payload", scratch, body.at, body.len);
	json_text(j, "payloadType", type);
	json_open(j, "signatures", '[');
	json_open(j, NULL, '{');
	json_text(j, "keyid", hint);
	put_base64(j, "sig", scratch, signature, VKEY_SIGNATURE);
	json_close(j, '}');
	json_close(j, ']');
	json_close(j, '}');
}

int dsse_sign(const char *type, struct text body, const struct key *key,
	      char **ret_json, size_t *ret_len)
{
	AUTO_FREE char *pae = NULL, *json = NULL, *scratch = NULL;
	uint8_t signature[VKEY_SIGNATURE];
	size_t len, cap;
	struct json j;
	int r;

	if (!type_ok(type))
		return -EINVAL;
	r = dsse_pae(type, body, &pae, &len);
	if (!r)
		r = key_sign(key, pae, len, signature);
	if (r < 0)
		return r;
	cap = BASE64_LEN(body.len) + ENVELOPE_MAX;
	json = malloc(cap);
	scratch = malloc(BASE64_LEN(body.len) + BASE64_LEN(sizeof(signature)));
	if (!json || !scratch)
		return -ENOMEM;
	j = json_of(json, cap - 1);
	put_envelope(&j, type, body, key_public(key), signature, scratch);
	if (j.full)
		return -E2BIG;
	json[j.len] = '\0';
	*ret_len = j.len;
	*ret_json = STEAL(json);
	return 0;
}

/* The string @key of @object; false if there is none. */
static bool get_text(const json_t *object, const char *key,
		     struct text *ret_text)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_string(value))
		return false;
	ret_text->at = json_string_value(value);
	ret_text->len = json_string_length(value);
	return true;
}

static int try_signatures(const json_t *list, struct text pae,
			  const struct vkey *vkey)
{
	uint8_t signature[VKEY_SIGNATURE];
	int r = -EKEYREJECTED;
	struct text sig = { 0 };

	if (!json_array_size(list))
		return -EBADMSG;
	if (json_array_size(list) > DSSE_SIGNATURES_MAX)
		return -E2BIG;
	/* All have the form of one, before any is believed. */
	for (size_t i = 0; i < json_array_size(list); i++) {
		size_t len;

		if (!get_text(json_array_get(list, i), "sig", &sig) ||
		    base64_decode(sig.at, sig.len, NULL, 0, &len) || !len)
			return -EBADMSG;
	}
	for (size_t i = 0; r == -EKEYREJECTED && i < json_array_size(list);
	     i++) {
		get_text(json_array_get(list, i), "sig", &sig);
		if (!base64_decode_exactly(sig.at, sig.len, signature,
					   sizeof(signature)))
			r = vkey_verify(vkey, pae.at, pae.len, signature);
	}
	return r;
}

static int open_envelope(const json_t *envelope, const char *want,
			 const struct vkey *vkey, char **ret_body,
			 size_t *ret_len)
{
	AUTO_FREE char *body = NULL, *pae = NULL;
	struct text payload, type, signed_text;
	size_t len;
	int r;

	if (!get_text(envelope, "payload", &payload) ||
	    !get_text(envelope, "payloadType", &type))
		return -EBADMSG;
	if (!text_is(type, want))
		return -ENOMSG;
	body = malloc(payload.len + 1);
	if (!body)
		return -ENOMEM;
	r = base64_decode(payload.at, payload.len, (uint8_t *)body, payload.len,
			  &len);
	if (r < 0)
		return r;
	body[len] = '\0';
	r = dsse_pae(want, (struct text){ body, len }, &pae, &signed_text.len);
	if (r < 0)
		return r;
	signed_text.at = pae;
	r = try_signatures(json_object_get(envelope, "signatures"), signed_text,
			   vkey);
	if (r < 0)
		return r;
	*ret_len = len;
	*ret_body = STEAL(body);
	return 0;
}

int dsse_open(struct text json, const char *type, const struct vkey *vkey,
	      char **ret_body, size_t *ret_len)
{
	json_t *envelope;
	int r;

	if (json.len > BASE64_LEN(DSSE_BODY_MAX) + ENVELOPE_MAX)
		return -E2BIG;
	envelope = json_loadb(json.at, json.len, JSON_REJECT_DUPLICATES, NULL);
	if (!envelope)
		return -EBADMSG;
	r = open_envelope(envelope, type, vkey, ret_body, ret_len);
	json_decref(envelope);
	return r;
}
