/* SPDX-License-Identifier: Apache-2.0
 *
 * http_write.h - heads written anew from their parsed form: nothing that was
 * meant for us, or that could be read in two ways, goes on to the other side.
 */
#ifndef PROXY_HTTP_WRITE_H
#define PROXY_HTTP_WRITE_H

#include "base/wire.h"
#include "proxy/sniff/http.h"
#include "proxy/sniff/http_response.h"

#define HTTP_VIA "sallyport" /* our pseudonym (RFC 9110 section 7.6.3) */

/* "host", "host:port", "[v6]:port"; the port is left out if it is 80. */
#define HTTP_AUTHORITY_MAX (HOST_MAX + 16)
char *http_write_authority(const char *host, const struct ip *address,
			   uint16_t port, char buf[HTTP_AUTHORITY_MAX]);

/* The request for the server. @path is canonical. Connection: close, but for a
 * websocket upgrade. */
void http_write_request(struct wirebuf *out, const struct http_request *req,
			const char *authority, const char *path);

enum http_after {
	HTTP_CLOSE,	/* the connection ends after this message */
	HTTP_KEEP,	/* it is kept: HTTP/1.1's default */
	HTTP_KEEP_SAID, /* ... and HTTP/1.0 must be told so */
	HTTP_SWITCH,	/* 101, to websocket */
};

/* The response for the client, its body framed as @framing. */
void http_write_response(struct wirebuf *out, const struct http_response *resp,
			 enum http_framing framing, enum http_after after);

/* Does a field ask the server to take the request for one of another method or
 * path, as some frameworks do? */
bool http_overrides(const struct http_header *header, size_t n);

/* Has the message passed here before? */
bool http_via_us(const struct http_header *header, size_t n);

#endif
