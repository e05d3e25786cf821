/* SPDX-License-Identifier: Apache-2.0
 *
 * http.h - an HTTP/1 request head (RFC 9112), as pieces of the buffer it came
 * in.
 *
 * llhttp parses; we refuse what it lets pass: space before a colon, missing or
 * several Host, Host that differs from an absolute target, obs-fold, bare LF,
 * userinfo, fragments, any Transfer-Encoding but "chunked", TE on HTTP/1.0,
 * TE with Content-Length, control characters.
 */
#ifndef PROXY_SNIFF_HTTP_H
#define PROXY_SNIFF_HTTP_H

#include <stdbool.h>

#include "base/addr.h"
#include "policy/hostname.h"
#include "policy/reason.h"
#include "proxy/sniff/sniff.h"

#define HTTP_HEAD_MAX	 (16 * 1024)
#define HTTP_HEADERS_MAX 100

struct http_text {
	const char *at;
	size_t len;
};

struct http_header {
	struct http_text name, value;
};

enum http_form { /* RFC 9112 section 3.2 */
		 HTTP_ORIGIN,
		 HTTP_ABSOLUTE,
		 HTTP_AUTHORITY, /* CONNECT only */
		 HTTP_ASTERISK,
};

enum http_framing { HTTP_NO_BODY, HTTP_LENGTH, HTTP_CHUNKED, HTTP_UNTIL_CLOSE };

struct http_request {
	struct http_text method;
	bool connect; /* method is CONNECT */
	enum http_form form;
	struct http_text path;	 /* with query; "/" if empty; origin/absolute */
	char host[HOST_MAX + 1]; /* canonical, from target and Host, which
				    agree; "" if it is an address */
	struct ip address;	 /* a literal address instead of a host */
	uint16_t port;		 /* 80 where none was given */
	unsigned minor;		 /* HTTP/1.minor */
	bool keep_alive;
	bool upgrade;	/* Upgrade: is there and listed in Connection: */
	bool websocket; /* ... and it is exactly websocket */
	bool expect_continue;
	enum http_framing framing;
	uint64_t length;
	size_t head_len; /* bytes of the head */
	size_t headers;
	struct http_header header[HTTP_HEADERS_MAX];
	char shown[256]; /* target as sent, shortened, for the record */
};

struct http_error {
	enum reason reason; /* REASON_MALFORMED, ... */
	const char *detail; /* static: "Host differs from the target" */
	uint16_t status;    /* 400, 405, 414, 431, 501, 505 */
};

/* All bytes so far, from the start of the request. DONE fills @ret, which
 * points into @data. BAD fills @reterr, and of @ret only method (may be empty),
 * shown. */
enum sniff http_request_parse(const char *data, size_t len,
			      struct http_request *ret,
			      struct http_error *reterr);

#endif
