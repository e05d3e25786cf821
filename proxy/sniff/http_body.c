/* SPDX-License-Identifier: Apache-2.0
 *
 * http_body.c - the chunked reader is a table of states, one byte a step, but
 * for payload, which is taken in one piece.
 */
#include "proxy/sniff/http_body.h"

/* Sizes up to 2^60 - 1, so that nothing overflows. */
#define DIGITS_MAX 15
#define SKIP_MAX   4096

enum chunk_state {
	CHUNK_SIZE,	 /* hex digits; then ';' or CR */
	CHUNK_EXTENSION, /* skipped up to CR; no quotes, whose meaning varies */
	CHUNK_SIZE_LF,	 /* then payload, or trailers after size 0 */
	CHUNK_PAYLOAD,	 /* left bytes; then CR */
	CHUNK_END_CR,
	CHUNK_END_LF,	/* then the next size */
	CHUNK_TRAILER,	/* at the start of a line: CR ends the body */
	CHUNK_NAME,	/* of a trailer field, up to its colon */
	CHUNK_VALUE,	/* skipped up to CR */
	CHUNK_VALUE_LF, /* then the next trailer */
	CHUNK_LAST_LF,
	CHUNK_DONE,
};

void http_body_init(struct http_body *body, enum http_framing framing,
		    uint64_t length)
{
	*body = (struct http_body){
		.framing = framing,
		.state = CHUNK_SIZE,
		.left = framing == HTTP_LENGTH ? length : 0,
	};
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool bad(struct http_body *b, const char *error)
{
	b->error = error;
	return false;
}

static bool step_size(struct http_body *b, char c)
{
	int digit = hex(c);

	if (digit >= 0) {
		if (b->digits == DIGITS_MAX)
			return bad(b, "a chunk size that is too long");
		b->digits++;
		b->left = b->left << 4 | (unsigned)digit;
		return true;
	}
	if (b->digits == 0 || (c != ';' && c != '\r'))
		return bad(b, "a bad chunk size");
	b->state = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
	return true;
}

/* Bytes that are read past: visible ones, and within limits. */
static bool step_skip(struct http_body *b, char c, unsigned next)
{
	unsigned char u = (unsigned char)c;

	if (c == '\r') {
		b->state = next;
		return true;
	}
	if (++b->line > SKIP_MAX)
		return bad(b, "chunk extensions or trailers are too long");
	if ((u < 0x20 && c != '\t') || u == 0x7f)
		return bad(b, "a control character between chunks");
	if (b->state == CHUNK_EXTENSION && c == '"')
		return bad(b, "a quoted chunk extension");
	return true;
}

static bool step_name(struct http_body *b, char c)
{
	bool token = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		     (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';

	if (++b->line > SKIP_MAX)
		return bad(b, "chunk extensions or trailers are too long");
	if (c == ':' && b->state == CHUNK_NAME)
		b->state = CHUNK_VALUE;
	else if (token)
		b->state = CHUNK_NAME;
	else
		return bad(b, "a bad trailer");
	return true;
}

static bool step_expect(struct http_body *b, char c, char want, unsigned next)
{
	if (c != want)
		return bad(b, "CR and LF are not where a chunk has them");
	b->state = next;
	return true;
}

static bool step(struct http_body *b, char c)
{
	switch (b->state) {
	case CHUNK_SIZE:
		return step_size(b, c);
	case CHUNK_EXTENSION:
		return step_skip(b, c, CHUNK_SIZE_LF);
	case CHUNK_SIZE_LF:
		return step_expect(b, c, '\n',
				   b->left ? CHUNK_PAYLOAD : CHUNK_TRAILER);
	case CHUNK_END_CR:
		return step_expect(b, c, '\r', CHUNK_END_LF);
	case CHUNK_END_LF:
		b->digits = 0;
		b->line = 0;
		return step_expect(b, c, '\n', CHUNK_SIZE);
	case CHUNK_TRAILER:
		if (c != '\r')
			return step_name(b, c);
		b->state = CHUNK_LAST_LF;
		return true;
	case CHUNK_NAME:
		return step_name(b, c);
	case CHUNK_VALUE:
		return step_skip(b, c, CHUNK_VALUE_LF);
	case CHUNK_VALUE_LF:
		return step_expect(b, c, '\n', CHUNK_TRAILER);
	case CHUNK_LAST_LF:
		return step_expect(b, c, '\n', CHUNK_DONE);
	default:
		return bad(b, "bytes after the end of the body");
	}
}

static size_t take(struct http_body *b, const char *data, size_t len,
		   struct http_text *ret)
{
	if (len > b->left)
		len = (size_t)b->left;
	*ret = (struct http_text){ data, len };
	b->left -= len;
	return len;
}

static enum sniff read_chunked(struct http_body *b, const char *data,
			       size_t len, size_t *ret_used,
			       struct http_text *ret)
{
	size_t at = 0;

	while (at < len && b->state != CHUNK_DONE) {
		if (b->state == CHUNK_PAYLOAD) {
			at += take(b, data + at, len - at, ret);
			if (b->left == 0)
				b->state = CHUNK_END_CR;
			break;
		}
		if (!step(b, data[at]))
			return SNIFF_BAD;
		at++;
	}
	*ret_used = at;
	return b->state == CHUNK_DONE ? SNIFF_DONE : SNIFF_MORE;
}

enum sniff http_body_read(struct http_body *body, const char *data, size_t len,
			  size_t *ret_used, struct http_text *ret_payload)
{
	*ret_used = 0;
	*ret_payload = (struct http_text){ data, 0 };
	if (body->error)
		return SNIFF_BAD;
	switch (body->framing) {
	case HTTP_CHUNKED:
		return read_chunked(body, data, len, ret_used, ret_payload);
	case HTTP_LENGTH:
		*ret_used = take(body, data, len, ret_payload);
		return body->left ? SNIFF_MORE : SNIFF_DONE;
	case HTTP_UNTIL_CLOSE:
		*ret_used = len;
		*ret_payload = (struct http_text){ data, len };
		return SNIFF_MORE;
	default:
		return SNIFF_DONE;
	}
}
