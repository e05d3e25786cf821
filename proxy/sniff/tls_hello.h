/* SPDX-License-Identifier: Apache-2.0
 *
 * tls_hello.h - the server name in a TLS ClientHello (RFC 8446, RFC 6066).
 *
 * Strict where servers are lenient: handshake bytes are put together from any
 * number of records, each of which must be a handshake record of 1-16,384
 * bytes; one ClientHello; no duplicate extensions; exactly one name of type
 * host_name, which must be canonical but for case. An encrypted ClientHello is
 * well-formed and an outer one.
 */
#ifndef PROXY_SNIFF_TLS_HELLO_H
#define PROXY_SNIFF_TLS_HELLO_H

#include <stdbool.h>

#include "policy/hostname.h"
#include "policy/reason.h"
#include "proxy/sniff/sniff.h"

struct tls_hello {
	char host[HOST_MAX + 1]; /* canonical; "" if there is no SNI */
	bool ech;   /* encrypted_client_hello is there, or GREASE */
	size_t len; /* bytes it takes: a record ends there */
};

/* SNIFF_DONE fills @ret; a missing SNI is DONE with an empty host (the caller
 * refuses with REASON_NO_NAME). SNIFF_BAD fills @reterr (REASON_MALFORMED, or
 * REASON_PROTOCOL if this is no TLS). */
enum sniff tls_hello_parse(const uint8_t *data, size_t len,
			   struct tls_hello *ret, enum reason *reterr);

#endif
