/* SPDX-License-Identifier: Apache-2.0
 *
 * http_authority.h - "host", "host:port", "[v6]:port", as in a target, a Host
 * field, or a CONNECT; and the canonical form of a path.
 */
#ifndef PROXY_SNIFF_HTTP_AUTHORITY_H
#define PROXY_SNIFF_HTTP_AUTHORITY_H

#include "proxy/sniff/http.h"

struct http_authority {
	char host[HOST_MAX + 1]; /* canonical; "" if it is an address */
	struct ip address;
	uint16_t port; /* 0 where none was given */
};

/* NULL fills @ret; else what is wrong, and @reterr: REASON_LITERAL_ADDRESS for
 * an address in a spelling that is none of ours (0x7f.1), which no resolver
 * may see. */
const char *http_authority_parse(struct http_text text,
				 struct http_authority *ret,
				 enum reason *reterr);

/* The one form in which the path is matched, recorded and served (RFC 3986
 * sections 6.2.2 and 5.2.4): escapes of unreserved characters are decoded,
 * others in upper case, then "." and ".." segments removed. "?x" becomes "/?x",
 * and stays as it is. NULL fills @buf; else what is wrong: a '%' that escapes
 * nothing, climbing above the root, dots with parameters ("..;x"), no room. */
const char *http_path_canonical(struct http_text path, char *buf, size_t cap);

#endif
