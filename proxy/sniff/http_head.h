/* SPDX-License-Identifier: Apache-2.0
 *
 * http_head.h - what request and response heads have in common: lines, header
 * fields, lists, framing. Used by http.c and http_response.c only.
 */
#ifndef PROXY_SNIFF_HTTP_HEAD_H
#define PROXY_SNIFF_HTTP_HEAD_H

#include "proxy/sniff/http.h"

#define HTTP_LINE_MAX 8000 /* RFC 9112 section 3 recommends as much */

struct http_head {
	struct http_text line; /* the first one, without CRLF */
	size_t len;	       /* of the head, with its empty line */
	size_t headers;
	struct http_header *header; /* room for HTTP_HEADERS_MAX */
};

/* Splits all bytes so far into lines and fields, and refuses what RFC 9112 lets
 * nobody send: bare CR or LF, folded lines, control characters, names that are
 * no tokens. Judges also an incomplete head, so that garbage is not waited
 * for. */
enum sniff http_head_split(const char *data, size_t len, size_t max,
			   struct http_head *head, struct http_error *reterr);

/* Does llhttp read the same as we did? @data is the whole head. NULL, or why
 * not (static text). */
const char *http_head_agrees(const char *data, bool response,
			     const struct http_head *head);

/* Is @text @word, case ignored? */
bool http_text_is(struct http_text text, const char *word);
bool http_text_starts(struct http_text text, const char *prefix);

/* The first field called @name, or NULL; @ret_count (may be NULL) of them. */
const struct http_header *http_header_find(const struct http_header *header,
					   size_t n, const char *name,
					   size_t *ret_count);

/* Is @word an element of the comma-separated @list? */
bool http_list_has(struct http_text list, struct http_text word);
/* ... or of any field called @name? */
bool http_headers_list(const struct http_header *header, size_t n,
		       const char *name, const char *word);

/* Content-Length and Transfer-Encoding; @ret_framing is untouched if there is
 * neither. NULL, or what is wrong with them. */
const char *http_framing_parse(const struct http_header *header, size_t n,
			       unsigned minor, enum http_framing *ret_framing,
			       uint64_t *ret_length);

/* 1 * tchar (RFC 9110 section 5.6.2). */
bool http_token(struct http_text text);

#endif
