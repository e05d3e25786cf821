/* SPDX-License-Identifier: Apache-2.0
 *
 * client_reply.c - the head is parsed as often as something comes until it is
 * whole, and bounded; a body is kept as far as it is payload.
 */
#include "cmd/client_reply.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proxy/sniff/http_response.h"

#define GROW_MIN 4096

static enum sniff bad(struct client_reply *reply, const char *error)
{
	reply->error = error;
	return SNIFF_BAD;
}

/* What is allocated for @len bytes and a NUL: a power of two, so that a long
 * answer in many pieces is not copied for each of them. */
static size_t cap_of(size_t len)
{
	size_t cap = GROW_MIN;

	while (cap < len + 1)
		cap *= 2;
	return cap;
}

/* Room for @more bytes and a NUL behind *@at, which has @len: at least
 * cap_of(@len), as what is taken from its front makes it no smaller. */
static bool grow(char **at, size_t len, size_t more)
{
	const size_t cap = cap_of(len + more);
	char *grown = *at;

	if (!grown || cap != cap_of(len))
		grown = realloc(*at, cap);
	if (grown)
		*at = grown;
	return grown != NULL;
}

static enum sniff read_head(struct client_reply *reply)
{
	static const char start[] = "HTTP/1.";
	struct http_response head;
	enum sniff got;
	const char *error;

	/* Who speaks something else may not go on to the end of a head. */
	if (memcmp(reply->data, start, reply->held < 7 ? reply->held : 7) != 0)
		return bad(reply, "what answers there does not speak HTTP/1");
	got = http_response_parse(reply->data, reply->held, false, &head,
				  &error);
	if (got == SNIFF_BAD)
		return bad(reply, error);
	if (got == SNIFF_MORE)
		return got;
	/* We asked for no other protocol and do not wait to be let on. */
	if (head.status < 200)
		return bad(reply, "an answer before the answer");
	if (head.framing == HTTP_UNTIL_CLOSE)
		return bad(reply, "an answer that does not say where it ends");
	if (head.framing == HTTP_LENGTH && head.length > CLIENT_BODY_MAX)
		return bad(reply, "an answer that is too long");
	reply->status = head.status;
	reply->has_head = true;
	http_body_init(&reply->reading, head.framing, head.length);
	reply->held -= head.head_len;
	memmove(reply->data, reply->data + head.head_len, reply->held);
	return SNIFF_DONE;
}

static enum sniff keep(struct client_reply *reply, struct http_text payload)
{
	if (payload.len > CLIENT_BODY_MAX - reply->len)
		return bad(reply, "an answer that is too long");
	if (!grow(&reply->body, reply->len, payload.len))
		return bad(reply, "there is no memory for the answer");
	memcpy(reply->body + reply->len, payload.at, payload.len);
	reply->len += payload.len;
	reply->body[reply->len] = '\0';
	return SNIFF_MORE;
}

static enum sniff read_body(struct client_reply *reply)
{
	size_t at = 0, used = 1;
	struct http_text payload;
	enum sniff got = SNIFF_MORE;

	while (got == SNIFF_MORE && used) {
		got = http_body_read(&reply->reading, reply->data + at,
				     reply->held - at, &used, &payload);
		if (got == SNIFF_BAD)
			return bad(reply, reply->reading.error);
		at += used;
		if (keep(reply, payload) == SNIFF_BAD)
			return SNIFF_BAD;
	}
	reply->held -= at;
	memmove(reply->data, reply->data + at, reply->held);
	if (got == SNIFF_DONE && reply->held)
		return bad(reply, "bytes behind the answer");
	return got;
}

enum sniff client_reply_read(struct client_reply *reply, const void *data,
			     size_t len)
{
	if (reply->error)
		return SNIFF_BAD;
	if (!grow(&reply->data, reply->held, len))
		return bad(reply, "there is no memory for the answer");
	if (len)
		memcpy(reply->data + reply->held, data, len);
	reply->held += len;
	if (!reply->has_head) {
		enum sniff got = read_head(reply);

		if (got != SNIFF_DONE)
			return got;
	}
	return read_body(reply);
}

void client_reply_free(struct client_reply *reply)
{
	free(reply->data);
	free(reply->body);
	*reply = (struct client_reply){ 0 };
}
