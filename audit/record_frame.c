/* SPDX-License-Identifier: Apache-2.0
 *
 * record_frame.c - the context of a log as pieces of JSON.
 */
#include "audit/record_frame.h"

#include <string.h>

#include "base/decimal.h"
#include "base/json.h"

#define NAME_MAX_SAID 128

/* The value that was put last goes on: without its last byte. */
static size_t cut_one(struct json *j)
{
	return --j->len;
}

static void put_uid(struct json *j, const struct record_context *context)
{
	char uid[RECORD_SESSION_MAX + 1];
	size_t len = context->session
			     ? strnlen(context->session, RECORD_SESSION_MAX)
			     : 0;

	if (len)
		memcpy(uid, context->session, len);
	uid[len++] = '/';
	json_bytes(j, "uid", uid, len);
}

void record_put_digest(struct json *j, const char *key, const char *digest)
{
	char text[sizeof("sha256:") + 2 * RECORD_HASH] = "sha256:";

	if (!digest || !*digest)
		return;
	strncat(text, digest, 2 * RECORD_HASH);
	json_text(j, key, text);
}

void record_frame_make(const struct record_context *context,
		       struct record_frame *ret_frame)
{
	struct record_frame *frame = ret_frame;
	struct json j = json_of(frame->text, sizeof(frame->text));

	json_open(&j, "metadata", '{');
	json_members(&j, "\"version\":\"1.8.0\",\"product\":" RECORD_PRODUCT);
	json_uint(&j, "sequence", 0);
	frame->sequence = cut_one(&j);
	put_uid(&j, context);
	frame->uid = cut_one(&j);
	j.len++; /* the quote, which is there */
	json_some(&j, "correlation_uid", context->session, RECORD_SESSION_MAX);
	json_members(&j, "\"profiles\":[\"security_control\"]");
	json_close(&j, '}');
	frame->session = j.len;
	j.comma = false;
	json_open(&j, "policy", '{');
	record_put_digest(&j, "uid", context->policy_digest);
	json_some(&j, "name", context->policy_name, NAME_MAX_SAID);
	json_close(&j, '}');
	frame->policy = j.len;
	j.comma = false;
	json_some(&j, "boundary", context->boundary, 32);
	json_some(&j, "sandbox", context->sandbox_name, NAME_MAX_SAID);
	frame->place = j.len;
}

/* Copies text[from, to) of the frame. Returns where it ends. */
static char *copy(char *at, const struct record_frame *frame, size_t from,
		  size_t to)
{
	return mempcpy(at, frame->text + from, to - from);
}

/* As digits at the end of @buf; returns where they begin. */
static char *format(uint64_t sequence, char buf[DECIMAL_MAX], size_t *ret_len)
{
	char *digits = decimal_format(sequence, buf);

	*ret_len = (size_t)(buf + DECIMAL_MAX - 1 - digits);
	return digits;
}

void record_frame_put_metadata(const struct record_frame *frame,
			       uint64_t sequence, struct json *j)
{
	char buf[DECIMAL_MAX], *to;
	size_t n;
	const char *digits = format(sequence, buf, &n);

	to = json_begin(j, NULL, frame->session + 2 * n);
	if (!to)
		return;
	to = copy(to, frame, 0, frame->sequence);
	to = mempcpy(to, digits, n);
	to = copy(to, frame, frame->sequence, frame->uid);
	to = mempcpy(to, digits, n);
	copy(to, frame, frame->uid, frame->session);
}

void record_frame_put_uid(const struct record_frame *frame, uint64_t sequence,
			  struct json *j)
{
	const size_t from = frame->sequence + 1; /* behind the comma */
	char buf[DECIMAL_MAX], *to;
	size_t n;
	const char *digits = format(sequence, buf, &n);

	to = json_begin(j, NULL, frame->uid - from + n + 1);
	if (!to)
		return;
	to = copy(to, frame, from, frame->uid);
	to = mempcpy(to, digits, n);
	*to = '"';
}

/* One member or several, or nothing. */
static void put_part(const struct record_frame *frame, size_t from, size_t to,
		     struct json *j)
{
	char *at = from < to ? json_begin(j, NULL, to - from) : NULL;

	if (at)
		copy(at, frame, from, to);
}

void record_frame_put_policy(const struct record_frame *frame, struct json *j)
{
	put_part(frame, frame->session, frame->policy, j);
}

void record_frame_put_place(const struct record_frame *frame, struct json *j)
{
	put_part(frame, frame->policy, frame->place, j);
}
