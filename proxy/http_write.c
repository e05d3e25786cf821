/* SPDX-License-Identifier: Apache-2.0
 *
 * http_write.c - hop-by-hop fields end here (RFC 9110 section 7.6.1): those
 * that Connection lists, those that always are, and those that say who the
 * client is, which only its interface can tell. Framing and Host are written by
 * us.
 */
#include "proxy/http_write.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/decimal.h"
#include "proxy/sniff/http_head.h"

#define UPGRADE "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

/* A name that ends in '-' stands for all that start so. The last two are ours:
 * no server may pretend to be us. */
static const char *const hop_by_hop[] = {
	"Connection",	     "Keep-Alive", "Proxy-",	     "TE",
	"Trailer",	     "Upgrade",	   "Host",	     "Content-Length",
	"Transfer-Encoding", "Expect",	   "HTTP2-Settings", "X-Proxy-Error",
	"X-Sallyport-",
};

static const char *const forwarded[] = { "X-Forwarded-", "Forwarded",
					 "X-Real-IP" };

static bool named(struct http_text name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool prefix = list[i][strlen(list[i]) - 1] == '-';

		if (prefix ? http_text_starts(name, list[i])
			   : http_text_is(name, list[i]))
			return true;
	}
	return false;
}

static bool listed(const struct http_header *header, size_t n,
		   struct http_text name)
{
	for (size_t i = 0; i < n; i++)
		if (http_text_is(header[i].name, "Connection") &&
		    http_list_has(header[i].value, name))
			return true;
	return false;
}

static void put(struct wirebuf *out, const char *text)
{
	wirebuf_put(out, text, strlen(text));
}

static void put_text(struct wirebuf *out, struct http_text text)
{
	wirebuf_put(out, text.at, text.len);
}

static void put_field(struct wirebuf *out, struct http_text name,
		      struct http_text value)
{
	put_text(out, name);
	put(out, ": ");
	put_text(out, value);
	put(out, "\r\n");
}

static void put_fields(struct wirebuf *out, const struct http_header *header,
		       size_t n, bool request)
{
	for (size_t i = 0; i < n; i++) {
		struct http_text name = header[i].name;

		if (named(name, hop_by_hop, ARRAY_SIZE(hop_by_hop)) ||
		    (request &&
		     named(name, forwarded, ARRAY_SIZE(forwarded))) ||
		    listed(header, n, name))
			continue;
		put_field(out, name, header[i].value);
	}
}

static void put_framing(struct wirebuf *out, enum http_framing framing,
			uint64_t length)
{
	char number[DECIMAL_MAX];

	if (framing == HTTP_CHUNKED)
		put(out, "Transfer-Encoding: chunked\r\n");
	if (framing != HTTP_LENGTH)
		return;
	put(out, "Content-Length: ");
	put(out, decimal_format(length, number));
	put(out, "\r\n");
}

char *http_write_authority(const char *host, const struct ip *address,
			   uint16_t port, char buf[HTTP_AUTHORITY_MAX])
{
	char text[IP_TEXT_MAX] = "";
	int n;

	if (!host || !*host)
		host = ip_format(address, text);
	n = snprintf(buf, HTTP_AUTHORITY_MAX,
		     address->len == 16 ? "[%s]" : "%s", host);
	if (port != 80 && n > 0 && n < HTTP_AUTHORITY_MAX)
		snprintf(buf + n, HTTP_AUTHORITY_MAX - (size_t)n, ":%u", port);
	return buf;
}

void http_write_request(struct wirebuf *out, const struct http_request *req,
			const char *authority, const char *path)
{
	put_text(out, req->method);
	put(out, " ");
	put(out, path);
	put(out, " HTTP/1.1\r\nHost: ");
	put(out, authority);
	put(out, "\r\n");
	put_fields(out, req->header, req->headers, true);
	put_framing(out, req->framing, req->length);
	put(out, "Via: 1.1 " HTTP_VIA "\r\n");
	put(out, req->websocket ? UPGRADE : "Connection: close\r\n\r\n");
}

/* What a HEAD would have sent, or a 304 stands for, is said without a body. */
static void put_length_said(struct wirebuf *out,
			    const struct http_response *resp)
{
	const struct http_header *h;

	if (resp->status < 200 || resp->status == 204)
		return;
	h = http_header_find(resp->header, resp->headers, "Content-Length",
			     NULL);
	if (h)
		put_field(out, h->name, h->value);
}

void http_write_response(struct wirebuf *out, const struct http_response *resp,
			 enum http_framing framing, enum http_after after)
{
	static const char *const connection[] = {
		[HTTP_CLOSE] = "Connection: close\r\n\r\n",
		[HTTP_KEEP] = "\r\n",
		[HTTP_KEEP_SAID] = "Connection: keep-alive\r\n\r\n",
		[HTTP_SWITCH] = UPGRADE,
	};
	char number[DECIMAL_MAX];

	put(out, "HTTP/1.1 ");
	put(out, decimal_format(resp->status, number)); /* three digits */
	put(out, " ");
	put_text(out, resp->phrase);
	put(out, "\r\n");
	put_fields(out, resp->header, resp->headers, false);
	if (framing == HTTP_NO_BODY)
		put_length_said(out, resp);
	else
		put_framing(out, framing, resp->length);
	put(out, "Via: 1.1 " HTTP_VIA "\r\n");
	put(out, connection[after]);
}

static bool has_word(struct http_text text, const char *word)
{
	size_t start = 0;

	for (size_t i = 0; i <= text.len; i++) {
		if (i < text.len && !memchr(" \t,", text.at[i], 3))
			continue;
		if (http_text_is(
			    (struct http_text){ text.at + start, i - start },
			    word))
			return true;
		start = i + 1;
	}
	return false;
}

bool http_via_us(const struct http_header *header, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (http_text_is(header[i].name, "Via") &&
		    has_word(header[i].value, HTTP_VIA))
			return true;
	return false;
}

bool http_overrides(const struct http_header *header, size_t n)
{
	static const char *const fields[] = {
		"X-HTTP-Method-Override", "X-HTTP-Method",  "X-Method-Override",
		"X-Original-Method",	  "X-Original-URL", "X-Original-URI",
		"X-Rewrite-URL",	  "X-Override-URL",
	};

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < ARRAY_SIZE(fields); j++)
			if (http_text_is(header[i].name, fields[j]))
				return true;
	return false;
}
