/* SPDX-License-Identifier: Apache-2.0
 *
 * socks.h - SOCKS5 (RFC 1928): greeting and request. CONNECT only, no
 * authentication; names, and addresses where the policy has them.
 */
#ifndef PROXY_SNIFF_SOCKS_H
#define PROXY_SNIFF_SOCKS_H

#include "base/addr.h"
#include "policy/hostname.h"
#include "policy/reason.h"
#include "proxy/sniff/sniff.h"

struct socks_request {
	char host[HOST_MAX + 1]; /* canonical; "" if it is an address */
	struct ip address;
	uint16_t port;
	size_t len;	 /* bytes consumed */
	char shown[256]; /* host as sent if malformed, for the record */
};

/* The greeting: DONE with its length and the method to answer (0 or 0xff). */
enum sniff socks_greeting(const uint8_t *data, size_t len, size_t *ret_len,
			  uint8_t *ret_method);

/* The request. BAD fills @reterr_reply, an RFC 1928 reply (1 malformed, 7
 * command, 8 address type), and @reterr; @ret->shown where there is a name. */
enum sniff socks_request_parse(const uint8_t *data, size_t len,
			       struct socks_request *ret, uint8_t *reterr_reply,
			       enum reason *reterr);

#define SOCKS_REPLY_LEN 10

/* VER REP RSV ATYP 0.0.0.0:0 */
void socks_reply(uint8_t reply, uint8_t ret[SOCKS_REPLY_LEN]);

#endif
