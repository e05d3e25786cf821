/* SPDX-License-Identifier: Apache-2.0
 *
 * http_response.h - an HTTP/1 response head, as pieces of the buffer it came
 * in.
 */
#ifndef PROXY_SNIFF_HTTP_RESPONSE_H
#define PROXY_SNIFF_HTTP_RESPONSE_H

#include "proxy/sniff/http.h"

#define HTTP_RESPONSE_HEAD_MAX (32 * 1024)

struct http_response {
	unsigned minor;
	uint16_t status;	 /* 100-599 */
	struct http_text phrase; /* may be empty */
	bool websocket;		 /* 101, to exactly websocket */
	enum http_framing framing;
	uint64_t length;
	size_t head_len;
	size_t headers;
	struct http_header header[HTTP_HEADERS_MAX];
};

/* All bytes so far, from the start of the response; @head: the request was
 * HEAD. BAD sets @reterr_detail (static text). */
enum sniff http_response_parse(const char *data, size_t len, bool head,
			       struct http_response *ret,
			       const char **reterr_detail);

#endif
