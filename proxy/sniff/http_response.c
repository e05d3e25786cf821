/* SPDX-License-Identifier: Apache-2.0
 *
 * http_response.c - servers are as hostile as sandboxes: a response whose end
 * could be read in two ways is refused, never guessed at.
 */
#include "proxy/sniff/http_response.h"

#include <string.h>

#include "proxy/sniff/http_head.h"

static const char *parse_line(struct http_text line, struct http_response *r)
{
	unsigned status = 0;

	/* "HTTP/1.1 200", and then nothing, or a space and a phrase */
	if (line.len < 12 || memcmp(line.at, "HTTP/1.", 7) != 0 ||
	    (line.at[7] != '0' && line.at[7] != '1') || line.at[8] != ' ' ||
	    (line.len > 12 && line.at[12] != ' '))
		return "the status line is malformed";
	for (size_t i = 9; i < 12; i++) {
		if (line.at[i] < '0' || line.at[i] > '9')
			return "the status line is malformed";
		status = status * 10 + (unsigned)(line.at[i] - '0');
	}
	if (status < 100 || status > 599)
		return "no valid status";
	r->minor = (unsigned)(line.at[7] - '0');
	r->status = (uint16_t)status;
	if (line.len > 13)
		r->phrase = (struct http_text){ line.at + 13, line.len - 13 };
	return NULL;
}

static const char *parse_framing(struct http_response *r, bool head)
{
	const char *detail;

	r->framing = HTTP_UNTIL_CLOSE;
	detail = http_framing_parse(r->header, r->headers, r->minor,
				    &r->framing, &r->length);
	if (detail)
		return detail;
	if (head || r->status < 200 || r->status == 204 || r->status == 304)
		r->framing = HTTP_NO_BODY;
	return NULL;
}

static bool is_websocket(const struct http_response *r)
{
	const struct http_header *h;
	size_t upgrades, accepts;

	h = http_header_find(r->header, r->headers, "Upgrade", &upgrades);
	http_header_find(r->header, r->headers, "Sec-WebSocket-Accept",
			 &accepts);
	return r->status == 101 && r->minor == 1 && upgrades == 1 &&
	       accepts == 1 && http_text_is(h->value, "websocket") &&
	       http_headers_list(r->header, r->headers, "Connection",
				 "upgrade");
}

enum sniff http_response_parse(const char *data, size_t len, bool head,
			       struct http_response *ret,
			       const char **reterr_detail)
{
	struct http_error error;
	struct http_head h = { .header = ret->header };
	enum sniff got;

	*reterr_detail = NULL;
	*ret = (struct http_response){ .minor = 0 };
	got = http_head_split(data, len, HTTP_RESPONSE_HEAD_MAX, &h, &error);
	if (got == SNIFF_BAD)
		*reterr_detail = error.detail;
	if (got != SNIFF_DONE)
		return got;
	ret->headers = h.headers;
	ret->head_len = h.len;
	*reterr_detail = parse_line(h.line, ret);
	if (!*reterr_detail)
		*reterr_detail = http_head_agrees(data, true, &h);
	if (!*reterr_detail)
		*reterr_detail = parse_framing(ret, head);
	ret->websocket = is_websocket(ret);
	return *reterr_detail ? SNIFF_BAD : SNIFF_DONE;
}
