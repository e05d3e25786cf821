/* SPDX-License-Identifier: Apache-2.0
 *
 * agree.h - every name agrees (P3): what a client says first must name the host
 * that the connection was allowed for.
 *
 * What must be TLS or HTTP/1 by rule or port is refused if it is not; elsewhere
 * whatever is neither may pass, once it is certain that it is neither; and
 *where the rule wants nothing (`any`) also what stays unclear, and TLS without
 *a name. HTTP names a host in every request: it is recognised here, and judged
 *by an exchange. TLS may start twice, and then names its host twice. Pure: no
 * sockets.
 *
 *	agree_check() DONE, TLS: ->hello_len bytes may pass, then
 *	agree_answer() RETRY: then
 *	agree_second() DONE: all may pass
 */
#ifndef PROXY_AGREE_H
#define PROXY_AGREE_H

#include "policy/policy.h"
#include "proxy/sniff/tls_server.h"

struct agree {
	/* What the connection is for. */
	const struct policy *policy;
	const char *host;  /* canonical; NULL and .len 0: the SNI decides */
	struct ip address; /* a literal address instead of a host */
	uint16_t port;
	enum door door;
	enum wanted wanted; /* by rule or, if it is the default, by port */
	int64_t now_s;	    /* since the epoch: for rules that expire */

	/* What agree_check() found; valid after DONE and BAD. */
	enum protocol protocol;
	char sni[HOST_MAX + 1]; /* "" if none was seen */
	bool ech;		/* it may name another host inside */
	size_t hello_len;	/* TLS: how long the first hello is */
	enum reason reason;	/* BAD only */
	const char *detail;	/* BAD only: static, or NULL */

	struct tls_answer_reader answer;
};

/* All client bytes so far. */
enum sniff agree_check(struct agree *agree, const uint8_t *data, size_t len);

/* The client said no more than this, in time; @ended: nor will it ever. DONE if
 * it may pass as it is. MORE, only where the rule wants nothing: it is half of
 * something that has a name, and should get more time. */
enum sniff agree_incomplete(struct agree *agree, const uint8_t *data,
			    size_t len, bool ended);

/* The server's next bytes after the first hello. */
enum tls_answer agree_answer(struct agree *agree, const uint8_t *data,
			     size_t len);

/* All client bytes after the retry was asked for, but for those passed. The
 * first @ret_pass may pass even if this is MORE. */
enum sniff agree_second(struct agree *agree, const uint8_t *data, size_t len,
			size_t *ret_pass);

/* Second hello or answer never came. BAD. */
enum sniff agree_late(struct agree *agree, const char *detail);

/* A connection whose first message agreed: does it still, now that ->policy and
 * ->wanted are others? */
bool agree_still(const struct agree *agree);

#endif
