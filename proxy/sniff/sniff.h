/* SPDX-License-Identifier: Apache-2.0
 *
 * sniff.h - what the first bytes of a connection are. No sockets, no
 * allocation here: parsers see all bytes so far, from the start, each time.
 */
#ifndef PROXY_SNIFF_SNIFF_H
#define PROXY_SNIFF_SNIFF_H

#include <stddef.h>
#include <stdint.h>

enum sniff {
	SNIFF_DONE,
	SNIFF_MORE, /* give more bytes, up to SNIFF_MAX */
	SNIFF_BAD,
};

/* No first message may be longer. */
#define SNIFF_MAX (32 * 1024)

enum protocol {
	PROTOCOL_UNKNOWN, /* too few bytes to tell */
	PROTOCOL_TLS,	  /* 0x16, then a plausible record header */
	PROTOCOL_HTTP,	  /* an HTTP/1 request line, or the start of one */
	PROTOCOL_HTTP2,	  /* the h2c preface (RFC 9113 section 3.4): refused */
	PROTOCOL_SOCKS5,  /* 0x05 */
	PROTOCOL_OTHER,
};

/* Tells protocols apart by their first bytes: pure. */
enum protocol sniff_protocol(const uint8_t *data, size_t len);
const char *protocol_word(enum protocol protocol);

#endif
