/* SPDX-License-Identifier: Apache-2.0
 *
 * tls_server.h - whether a TLS server wants a second ClientHello (RFC 8446
 * section 4.1.4), and that second hello.
 *
 * Servers take the name from the hello they answer with a handshake, which is
 * the second one after a HelloRetryRequest. So it has to be looked at as well.
 */
#ifndef PROXY_SNIFF_TLS_SERVER_H
#define PROXY_SNIFF_TLS_SERVER_H

#include "proxy/sniff/tls_hello.h"

enum tls_answer {
	TLS_ANSWER_MORE,  /* show what comes next */
	TLS_ANSWER_FINAL, /* no hello will be asked for any more */
	TLS_ANSWER_RETRY, /* a HelloRetryRequest */
	TLS_ANSWER_BAD,	  /* a server does not start like this */
};

/* An answer is decided within so many bytes. */
#define TLS_ANSWER_MAX 512

/* Starts as zeros. Bytes are shown once, in pieces of any size. */
struct tls_answer_reader {
	uint8_t header[5];   /* of the record */
	uint8_t message[38]; /* of the handshake, until its random */
	uint8_t header_len, message_len;
	uint16_t left; /* of the record's content */
	uint16_t seen; /* bytes in all */
};

/* The server's next bytes after the first ClientHello. */
enum tls_answer tls_answer_read(struct tls_answer_reader *reader,
				const uint8_t *data, size_t len);

/* All of the client's bytes after a HelloRetryRequest. Whole records in front
 * of the hello that carry no handshake (change_cipher_spec, early data that the
 * server skips, alerts) are counted in @ret_skip, whatever is returned: they
 * need not be shown again. DONE, MORE, BAD as tls_hello_parse(). */
enum sniff tls_second_hello(const uint8_t *data, size_t len, size_t *ret_skip,
			    struct tls_hello *ret, enum reason *reterr);

#endif
