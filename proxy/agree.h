/* SPDX-License-Identifier: Apache-2.0
 *
 * agree.h - every name agrees (P3): what a client says first, in TLS or HTTP,
 * must name the host that the connection was allowed for.
 *
 * 443 must be TLS and 80 must be HTTP/1; on other ports whatever is neither
 * may pass, once it is certain that it is neither. Pure: no sockets.
 */
#ifndef PROXY_AGREE_H
#define PROXY_AGREE_H

#include "policy/policy.h"
#include "proxy/sniff/sniff.h"

struct agree {
	/* What the connection is for. */
	const struct policy *policy;
	const char *host;  /* canonical; NULL and .len 0: the SNI decides */
	struct ip address; /* a literal address instead of a host */
	uint16_t port;
	enum door door;

	/* What agree_check() found; valid after DONE and BAD. */
	enum protocol protocol;
	char sni[HOST_MAX + 1]; /* "" if none was seen */
	bool ech;
	enum reason reason; /* BAD only */
	const char *detail; /* BAD only: static, or NULL */
};

/* All client bytes so far. */
enum sniff agree_check(struct agree *agree, const uint8_t *data, size_t len);

/* The client said no more than this: DONE if it may pass as it is. */
enum sniff agree_incomplete(struct agree *agree, const uint8_t *data,
			    size_t len);

#endif
