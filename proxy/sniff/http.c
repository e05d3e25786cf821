/* SPDX-License-Identifier: Apache-2.0
 *
 * http.c - one request head. Each step below looks at one part, and the first
 * that finds something wrong ends it: there is no repairing.
 *
 *	split	lines and fields, and llhttp agrees (http_head.c)
 *	line	method, target, version
 *	target	one of the four forms; its authority, if it has one
 *	Host	exactly one, and the same as the target's
 *	framing	Content-Length, Transfer-Encoding
 *	options	Connection, Upgrade, Expect
 */
#include "proxy/sniff/http.h"

#include <string.h>

#include "proxy/sniff/http_authority.h"
#include "proxy/sniff/http_head.h"

struct parse {
	struct http_request *r;
	struct http_error *error;
	struct http_head head;
	struct http_text target;
	struct http_authority authority; /* of the target */
};

static bool bad(struct parse *p, uint16_t status, const char *detail)
{
	*p->error = (struct http_error){ REASON_MALFORMED, detail, status };
	return false;
}

/* What people will see of a target that may be anything. */
static void show(struct http_request *r, struct http_text target)
{
	size_t n = target.len;

	if (n > sizeof(r->shown) - 1)
		n = sizeof(r->shown) - 1;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)target.at[i];

		r->shown[i] = c < 0x20 || c == 0x7f ? '?' : target.at[i];
	}
	r->shown[n] = '\0';
}

/* Method and target as far as they can be told, also of a line that is bad. */
static void peek_line(struct http_request *r, const char *data, size_t len)
{
	const char *end = memchr(data, '\n', len);
	size_t n = end ? (size_t)(end - data) : len;
	const char *space = memchr(data, ' ', n);
	size_t m = space ? (size_t)(space - data) : n;

	r->method = (struct http_text){ data, m };
	if (m > 32 || !http_token(r->method))
		r->method.len = 0;
	if (space) {
		data = space + 1;
		n -= m + 1;
		space = memchr(data, ' ', n);
		if (space)
			n = (size_t)(space - data);
	}
	if (n && data[n - 1] == '\r')
		n--;
	show(r, (struct http_text){ data, n });
}

static bool parse_version(struct parse *p, struct http_text text)
{
	if (text.len != 8 || memcmp(text.at, "HTTP/", 5) != 0 ||
	    text.at[6] != '.')
		return bad(p, 400, "the request line is malformed");
	if (text.at[5] != '1' || (text.at[7] != '0' && text.at[7] != '1'))
		return bad(p, 505,
			   "only HTTP/1.0 and HTTP/1.1 are spoken here");
	p->r->minor = (unsigned)(text.at[7] - '0');
	return true;
}

static bool parse_line(struct parse *p)
{
	struct http_text line = p->head.line, *method = &p->r->method;
	const char *first = memchr(line.at, ' ', line.len);
	const char *last = memrchr(line.at, ' ', line.len);

	if (!first || first == last)
		return bad(p, 400, "the request line is malformed");
	*method = (struct http_text){ line.at, (size_t)(first - line.at) };
	p->target = (struct http_text){ first + 1, (size_t)(last - first) - 1 };
	if (!http_token(*method)) {
		method->len = 0;
		return bad(p, 400, "the method is no token");
	}
	if (method->len > 32)
		return bad(p, 501, "the method is not known");
	if (p->target.len == 0)
		return bad(p, 400, "the target is empty");
	for (size_t i = 0; i < p->target.len; i++) {
		unsigned char c = (unsigned char)p->target.at[i];

		if (c <= 0x20 || c >= 0x7f)
			return bad(p, 400, "the target is no URL");
	}
	if (memchr(p->target.at, '#', p->target.len))
		return bad(p, 400, "a fragment in the target");
	return parse_version(
		p, (struct http_text){
			   last + 1, line.len - (size_t)(last + 1 - line.at) });
}

static bool parse_target_authority(struct parse *p, struct http_text text)
{
	enum reason reason;
	const char *detail;

	detail = http_authority_parse(text, &p->authority, &reason);
	if (!detail)
		return true;
	bad(p, reason == REASON_LITERAL_ADDRESS ? 403 : 400, detail);
	p->error->reason = reason;
	return false;
}

static bool parse_absolute(struct parse *p)
{
	struct http_request *r = p->r;
	struct http_text rest = p->target;
	size_t n;

	if (!http_text_starts(rest, "http://"))
		return bad(p, 400,
			   "only http: URLs are taken here; "
			   "for https: use CONNECT");
	rest.at += 7;
	rest.len -= 7;
	for (n = 0; n < rest.len && rest.at[n] != '/' && rest.at[n] != '?';)
		n++;
	r->form = HTTP_ABSOLUTE;
	r->path = (struct http_text){ rest.at + n, rest.len - n };
	if (r->path.len == 0) /* RFC 9112 section 3.2.4 */
		r->path = (struct http_text){
			http_text_is(r->method, "OPTIONS") ? "*" : "/", 1
		};
	rest.len = n;
	return parse_target_authority(p, rest);
}

static bool parse_target(struct parse *p)
{
	struct http_request *r = p->r;
	struct http_text *t = &p->target;

	r->connect = t->len && r->method.len == 7 &&
		     memcmp(r->method.at, "CONNECT", 7) == 0;
	if (r->connect) {
		r->form = HTTP_AUTHORITY;
		if (!parse_target_authority(p, *t))
			return false;
		return p->authority.port
			       ? true
			       : bad(p, 400, "CONNECT without a port");
	}
	r->path = *t;
	if (t->len == 1 && t->at[0] == '*') {
		r->form = HTTP_ASTERISK;
		return http_text_is(r->method, "OPTIONS")
			       ? true
			       : bad(p, 400,
				     "'*' is a target for OPTIONS only");
	}
	if (t->at[0] == '/') {
		r->form = HTTP_ORIGIN;
		return true;
	}
	return parse_absolute(p);
}

static bool host_differs(struct parse *p, const struct http_authority *host)
{
	const struct http_authority *target = &p->authority;
	uint16_t port = host->port;

	/* Some clients leave the port out of the Host of a CONNECT. */
	if (port == 0)
		port = p->r->connect ? target->port : 80;
	return strcmp(host->host, target->host) != 0 ||
	       !ip_equal(&host->address, &target->address) ||
	       port != (target->port ? target->port : 80);
}

static bool parse_host_field(struct parse *p, struct http_authority *ret)
{
	struct http_request *r = p->r;
	const struct http_header *h;
	const char *detail;
	enum reason reason;
	size_t count;

	h = http_header_find(r->header, r->headers, "Host", &count);
	if (count > 1)
		return bad(p, 400, "more than one Host");
	if (!h) /* HTTP/1.0 has none; the target must say it then */
		return r->minor == 0 && (r->connect || r->form == HTTP_ABSOLUTE)
			       ? true
			       : bad(p, 400, "Host is missing");
	detail = http_authority_parse(h->value, ret, &reason);
	if (detail) {
		bad(p, reason == REASON_LITERAL_ADDRESS ? 403 : 400, detail);
		p->error->reason = reason;
		return false;
	}
	if (!r->connect && r->form != HTTP_ABSOLUTE)
		return true;
	if (host_differs(p, ret)) {
		bad(p, 400, "Host differs from the target");
		p->error->reason = REASON_NAME_MISMATCH;
		return false;
	}
	return true;
}

static bool parse_host(struct parse *p)
{
	struct http_request *r = p->r;
	struct http_authority host = { .port = 0 };

	if (!parse_host_field(p, &host))
		return false;
	if (r->connect || r->form == HTTP_ABSOLUTE)
		host = p->authority;
	memcpy(r->host, host.host, sizeof(r->host));
	r->address = host.address;
	r->port = host.port ? host.port : 80;
	return true;
}

static bool parse_framing(struct parse *p)
{
	struct http_request *r = p->r;
	const char *detail;

	r->framing = HTTP_NO_BODY;
	detail = http_framing_parse(r->header, r->headers, r->minor,
				    &r->framing, &r->length);
	if (detail)
		return bad(p, 400, detail);
	if (r->connect && (r->framing == HTTP_CHUNKED || r->length > 0))
		return bad(p, 400, "CONNECT with a body");
	return true;
}

static void parse_upgrade(struct http_request *r)
{
	const struct http_header *h, *key;
	size_t count, keys;

	h = http_header_find(r->header, r->headers, "Upgrade", &count);
	r->upgrade = h && r->minor == 1 &&
		     http_headers_list(r->header, r->headers, "Connection",
				       "upgrade");
	key = http_header_find(r->header, r->headers, "Sec-WebSocket-Key",
			       &keys);
	r->websocket =
		r->upgrade && count == 1 && keys == 1 && key->value.len == 24 &&
		http_text_is(h->value, "websocket") &&
		http_text_is(r->method, "GET") && r->framing == HTTP_NO_BODY;
}

static bool parse_options(struct parse *p)
{
	struct http_request *r = p->r;
	const struct http_header *h;
	size_t count;

	if (r->minor == 1)
		r->keep_alive = !http_headers_list(r->header, r->headers,
						   "Connection", "close");
	else
		r->keep_alive = http_headers_list(r->header, r->headers,
						  "Connection", "keep-alive");
	parse_upgrade(r);
	h = http_header_find(r->header, r->headers, "Expect", &count);
	if (!h || r->minor == 0)
		return true;
	r->expect_continue =
		count == 1 && http_text_is(h->value, "100-continue");
	return r->expect_continue
		       ? true
		       : bad(p, 417, "an expectation other than 100-continue");
}

static bool parse_all(struct parse *p, const char *data)
{
	const char *detail;

	if (!parse_line(p))
		return false;
	detail = http_head_agrees(data, false, &p->head);
	if (detail && strcmp(detail, "the method is not known") == 0)
		return bad(p, 501, detail);
	if (detail)
		return bad(p, 400, detail);
	return parse_target(p) && parse_host(p) && parse_framing(p) &&
	       parse_options(p);
}

enum sniff http_request_parse(const char *data, size_t len,
			      struct http_request *ret,
			      struct http_error *reterr)
{
	struct parse p = { .r = ret, .error = reterr };
	size_t skip = 0;
	enum sniff got;

	*ret = (struct http_request){ .port = 0 };
	p.head.header = ret->header;
	if (len == 0)
		return SNIFF_MORE;
	/* RFC 9112 section 2.2: one empty line may come before a request. */
	if (len >= 2 && data[0] == '\r' && data[1] == '\n')
		skip = 2;
	data += skip;
	len -= skip;
	peek_line(ret, data, len);
	if (len >= 4 && memcmp(data, "PRI ", 4) == 0) {
		*reterr = (struct http_error){ REASON_PROTOCOL,
					       "HTTP/2 without TLS", 505 };
		return SNIFF_BAD;
	}
	got = http_head_split(data, len, HTTP_HEAD_MAX, &p.head, reterr);
	if (got != SNIFF_DONE)
		return got;
	ret->headers = p.head.headers;
	ret->head_len = p.head.len + skip;
	return parse_all(&p, data) ? SNIFF_DONE : SNIFF_BAD;
}
