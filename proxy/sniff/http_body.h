/* SPDX-License-Identifier: Apache-2.0
 *
 * http_body.h - where a message body ends, and which of its bytes are payload.
 *
 * Chunked framing is read here and never relayed: no extensions, no trailers,
 * no odd spellings of a size reach the other side.
 */
#ifndef PROXY_SNIFF_HTTP_BODY_H
#define PROXY_SNIFF_HTTP_BODY_H

#include "proxy/sniff/http.h"

struct http_body {
	enum http_framing framing;
	unsigned state;	   /* of the chunked reader */
	uint64_t left;	   /* payload bytes still to come, of this chunk */
	unsigned digits;   /* of the chunk's size */
	size_t line;	   /* bytes of the present extension or trailers */
	const char *error; /* static text, after SNIFF_BAD */
};

void http_body_init(struct http_body *body, enum http_framing framing,
		    uint64_t length);

/* Reads on in @data: takes @ret_used bytes of it, the last ret_payload->len of
 * which are payload. DONE: the body ends there, what follows is not part of it.
 * MORE: call again, with more bytes if nothing was taken. A body until close
 * is never DONE: the end of the connection is its end. */
enum sniff http_body_read(struct http_body *body, const char *data, size_t len,
			  size_t *ret_used, struct http_text *ret_payload);

#endif
