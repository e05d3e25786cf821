/* SPDX-License-Identifier: Apache-2.0
 *
 * http_head.c - two readers of the same bytes. We split a head by the letter of
 * RFC 9112; llhttp, which has seen far more odd traffic, must then find the
 * very same fields at the same places. What the two read differently is
 * refused, so that no third reader behind us has a choice.
 */
#include "proxy/sniff/http_head.h"

#include <string.h>
#include <strings.h>

#include <llhttp.h>

bool http_text_is(struct http_text text, const char *word)
{
	return text.len == strlen(word) &&
	       strncasecmp(text.at, word, text.len) == 0;
}

bool http_text_starts(struct http_text text, const char *prefix)
{
	size_t len = strlen(prefix);

	return text.len >= len && strncasecmp(text.at, prefix, len) == 0;
}

bool http_token(struct http_text text)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.at[i];

		if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
		    (c >= 'A' && c <= 'Z'))
			continue;
		if (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c))
			return false;
	}
	return text.len > 0;
}

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct http_text trim(struct http_text text)
{
	while (text.len && blank(text.at[0])) {
		text.at++;
		text.len--;
	}
	while (text.len && blank(text.at[text.len - 1]))
		text.len--;
	return text;
}

static bool clean(const char *at, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)at[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

/* The line at @at; its CRLF is taken too. */
static enum sniff next_line(const char *data, size_t len, size_t *at,
			    struct http_text *ret)
{
	const char *from = data + *at;
	size_t left = len - *at;
	const char *end = memchr(from, '\n', left);
	size_t n;

	if (!end) {
		if (left && from[left - 1] == '\r')
			left--;
		return clean(from, left) ? SNIFF_MORE : SNIFF_BAD;
	}
	n = (size_t)(end - from);
	if (n == 0 || from[n - 1] != '\r' || !clean(from, n - 1))
		return SNIFF_BAD;
	*ret = (struct http_text){ from, n - 1 };
	*at += n + 1;
	return SNIFF_DONE;
}

static enum sniff flaw(struct http_error *reterr, uint16_t status,
		       const char *detail)
{
	*reterr = (struct http_error){ REASON_MALFORMED, detail, status };
	return SNIFF_BAD;
}

static enum sniff split_field(struct http_text line, struct http_head *head,
			      struct http_error *reterr)
{
	const char *colon = memchr(line.at, ':', line.len);
	struct http_header *h = &head->header[head->headers];

	if (blank(line.at[0]))
		return flaw(reterr, 400, "a folded header line");
	if (!colon)
		return flaw(reterr, 400, "a header line without a colon");
	if (head->headers == HTTP_HEADERS_MAX)
		return flaw(reterr, 431, "too many header fields");
	h->name = (struct http_text){ line.at, (size_t)(colon - line.at) };
	h->value = trim(
		(struct http_text){ colon + 1, line.len - h->name.len - 1 });
	if (!http_token(h->name))
		return flaw(reterr, 400, "a header name that is no token");
	head->headers++;
	return SNIFF_DONE;
}

static enum sniff too_long(size_t len, size_t max, bool first,
			   struct http_error *reterr)
{
	if (first && len > HTTP_LINE_MAX)
		return flaw(reterr, 414, "the request line is too long");
	if (len > max)
		return flaw(reterr, 431, "the head is too long");
	return SNIFF_MORE;
}

enum sniff http_head_split(const char *data, size_t len, size_t max,
			   struct http_head *head, struct http_error *reterr)
{
	struct http_text line;
	enum sniff got;
	size_t at = 0;

	head->headers = 0;
	for (bool first = true;; first = false) {
		got = next_line(data, len, &at, &line);
		if (got == SNIFF_BAD)
			return flaw(reterr, 400,
				    "a control character or a bare CR or LF");
		if (got == SNIFF_MORE)
			return too_long(len, max, first, reterr);
		if (too_long(at, max, first, reterr) == SNIFF_BAD)
			return SNIFF_BAD;
		if (first)
			head->line = line;
		else if (line.len == 0)
			break;
		else if (split_field(line, head, reterr) == SNIFF_BAD)
			return SNIFF_BAD;
	}
	head->len = at;
	return SNIFF_DONE;
}

struct agreement {
	const struct http_head *head;
	size_t seen;
	bool differs;
};

static int on_field(llhttp_t *p, const char *at, size_t len)
{
	struct agreement *a = p->data;
	const struct http_header *h = &a->head->header[a->seen];

	if (a->seen >= a->head->headers || h->name.at != at ||
	    h->name.len != len)
		a->differs = true;
	else
		a->seen++;
	return a->differs ? HPE_USER : 0;
}

static int on_value(llhttp_t *p, const char *at, size_t len)
{
	struct agreement *a = p->data;
	struct http_text value = trim((struct http_text){ at, len });
	const struct http_header *h;

	if (a->seen == 0) {
		a->differs = true;
		return HPE_USER;
	}
	h = &a->head->header[a->seen - 1];
	if (value.len != h->value.len || (value.len && value.at != h->value.at))
		a->differs = true;
	return a->differs ? HPE_USER : 0;
}

static int on_complete(llhttp_t *p)
{
	(void)p;
	return HPE_PAUSED;
}

static const char *why(llhttp_errno_t e)
{
	switch (e) {
	case HPE_PAUSED:
		return NULL;
	case HPE_INVALID_METHOD:
		return "the method is not known";
	case HPE_INVALID_URL:
		return "the target is no URL";
	case HPE_INVALID_VERSION:
	case HPE_INVALID_CONSTANT:
		return "the HTTP version is not known";
	case HPE_UNEXPECTED_CONTENT_LENGTH:
	case HPE_INVALID_CONTENT_LENGTH:
	case HPE_INVALID_TRANSFER_ENCODING:
		return "ambiguous framing";
	case HPE_INVALID_STATUS:
		return "the status line is malformed";
	default:
		return "the head is malformed";
	}
}

const char *http_head_agrees(const char *data, bool response,
			     const struct http_head *head)
{
	static const llhttp_settings_t settings = {
		.on_header_field = on_field,
		.on_header_value = on_value,
		.on_headers_complete = on_complete,
	};
	struct agreement a = { .head = head };
	llhttp_t parser;
	const char *text;

	llhttp_init(&parser, response ? HTTP_RESPONSE : HTTP_REQUEST,
		    &settings);
	parser.data = &a;
	text = why(llhttp_execute(&parser, data, head->len));
	if (!text && a.seen != head->headers)
		text = "the head is malformed";
	return text;
}

const struct http_header *http_header_find(const struct http_header *header,
					   size_t n, const char *name,
					   size_t *ret_count)
{
	const struct http_header *hit = NULL;
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		if (!http_text_is(header[i].name, name))
			continue;
		if (count++ == 0)
			hit = &header[i];
	}
	if (ret_count)
		*ret_count = count;
	return hit;
}

bool http_list_has(struct http_text list, struct http_text word)
{
	while (list.len) {
		const char *comma = memchr(list.at, ',', list.len);
		size_t n = comma ? (size_t)(comma - list.at) : list.len;
		struct http_text item = trim((struct http_text){ list.at, n });

		if (item.len == word.len &&
		    strncasecmp(item.at, word.at, word.len) == 0)
			return true;
		if (!comma)
			break;
		list.at += n + 1;
		list.len -= n + 1;
	}
	return false;
}

bool http_headers_list(const struct http_header *header, size_t n,
		       const char *name, const char *word)
{
	struct http_text text = { word, strlen(word) };

	for (size_t i = 0; i < n; i++)
		if (http_text_is(header[i].name, name) &&
		    http_list_has(header[i].value, text))
			return true;
	return false;
}

static bool parse_length(struct http_text text, uint64_t *ret)
{
	uint64_t v = 0;

	/* 18 digits can't overflow, and are more than anyone sends. */
	if (text.len == 0 || text.len > 18)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(text.at[i] - '0');
	}
	*ret = v;
	return true;
}

const char *http_framing_parse(const struct http_header *header, size_t n,
			       unsigned minor, enum http_framing *ret_framing,
			       uint64_t *ret_length)
{
	size_t lengths, encodings;
	const struct http_header *cl, *te;

	cl = http_header_find(header, n, "Content-Length", &lengths);
	te = http_header_find(header, n, "Transfer-Encoding", &encodings);
	if (cl && te)
		return "both Content-Length and Transfer-Encoding";
	if (lengths > 1 || encodings > 1)
		return "more than one length or encoding";
	if (te && minor == 0)
		return "Transfer-Encoding in HTTP/1.0";
	if (te && !http_text_is(te->value, "chunked"))
		return "a Transfer-Encoding other than chunked";
	if (cl && !parse_length(cl->value, ret_length))
		return "a bad Content-Length";
	if (te)
		*ret_framing = HTTP_CHUNKED;
	else if (cl)
		*ret_framing = HTTP_LENGTH;
	return NULL;
}
