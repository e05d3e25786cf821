/* SPDX-License-Identifier: Apache-2.0
 *
 * tls_server.c - the start of what a TLS server says, up to the random by which
 * a HelloRetryRequest differs from a ServerHello.
 *
 * A server may cut its records and segments anywhere, so this eats byte by
 * byte and keeps no more than 43 of them. In front of a hello it may warn, or
 * ask for a hello (TLS 1.2) that it is about to get. Anything else that is no
 * ServerHello, a fatal alert above all, is not followed by a handshake.
 */
#include "proxy/sniff/tls_server.h"

#include "base/wire.h"

#define RECORD_CCS	 0x14
#define RECORD_ALERT	 0x15
#define RECORD_HANDSHAKE 0x16
#define RECORD_DATA	 0x17

#define PLAIN_MAX  16384
#define CIPHER_MAX (16384 + 256)

#define ALERT_WARNING 1

#define HELLO_REQUEST 0
#define SERVER_HELLO  2
#define RANDOM_AT     6 /* behind type, length and version */

/* SHA-256 of "HelloRetryRequest" */
static const uint8_t retry_random[32] = {
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
	0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
	0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
};

static enum tls_answer eat_header(struct tls_answer_reader *r, uint8_t byte)
{
	r->header[r->header_len++] = byte;
	if (r->header_len == 1 && byte != RECORD_HANDSHAKE &&
	    byte != RECORD_ALERT)
		return r->message_len ? TLS_ANSWER_BAD : TLS_ANSWER_FINAL;
	if (r->header_len == 2 && byte != 3)
		return r->message_len ? TLS_ANSWER_BAD : TLS_ANSWER_FINAL;
	if (r->header_len < sizeof(r->header))
		return TLS_ANSWER_MORE;
	r->left = (uint16_t)(r->header[3] << 8 | byte);
	/* A message is not interrupted by other records. */
	if (!r->left || r->left > PLAIN_MAX ||
	    (r->header[0] == RECORD_ALERT && r->message_len))
		return TLS_ANSWER_BAD;
	if (r->header[0] == RECORD_ALERT && r->left != 2)
		return TLS_ANSWER_FINAL;
	return TLS_ANSWER_MORE;
}

static enum tls_answer eat_handshake(struct tls_answer_reader *r, uint8_t byte)
{
	r->message[r->message_len++] = byte;
	if (r->message_len == 1 && byte != SERVER_HELLO &&
	    byte != HELLO_REQUEST)
		return TLS_ANSWER_FINAL;
	if (r->message[0] == HELLO_REQUEST) {
		if (r->message_len > 1 && byte)
			return TLS_ANSWER_FINAL;
		if (r->message_len == 4)
			r->message_len = 0;
		return TLS_ANSWER_MORE;
	}
	if (r->message_len < sizeof(r->message))
		return TLS_ANSWER_MORE;
	return memcmp(r->message + RANDOM_AT, retry_random,
		      sizeof(retry_random))
		       ? TLS_ANSWER_FINAL
		       : TLS_ANSWER_RETRY;
}

static enum tls_answer eat(struct tls_answer_reader *r, uint8_t byte)
{
	if (r->header_len < sizeof(r->header))
		return eat_header(r, byte);
	r->left--;
	if (!r->left)
		r->header_len = 0;
	if (r->header[0] == RECORD_HANDSHAKE)
		return eat_handshake(r, byte);
	/* An alert: its level, then what it is about. */
	return !r->left || byte == ALERT_WARNING ? TLS_ANSWER_MORE
						 : TLS_ANSWER_FINAL;
}

enum tls_answer tls_answer_read(struct tls_answer_reader *r,
				const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		enum tls_answer answer;

		if (r->seen >= TLS_ANSWER_MAX)
			return TLS_ANSWER_BAD;
		r->seen++;
		answer = eat(r, data[i]);
		if (answer != TLS_ANSWER_MORE)
			return answer;
	}
	return TLS_ANSWER_MORE;
}

/* May a record of this type and length stand in front of a hello? */
static bool may_skip(uint8_t type, uint16_t len)
{
	switch (type) {
	case RECORD_CCS:
		return len == 1;
	case RECORD_ALERT:
		return len == 2;
	case RECORD_DATA:
		return len > 0 && len <= CIPHER_MAX;
	default:
		return false;
	}
}

enum sniff tls_second_hello(const uint8_t *data, size_t len, size_t *ret_skip,
			    struct tls_hello *ret, enum reason *reterr)
{
	struct wire w = wire_of(data, len);

	*ret_skip = 0;
	while (w.left && w.at[0] != RECORD_HANDSHAKE) {
		const uint8_t type = w.at[0];
		struct wire record = w;
		uint16_t body;

		if (w.left > 1 && w.at[1] != 3)
			break;
		if (type < RECORD_CCS || type > RECORD_DATA)
			break;
		if (w.left < 5)
			return SNIFF_MORE;
		wire_take(&record, 3);
		body = wire_u16(&record);
		if (!may_skip(type, body))
			break;
		if (!wire_take(&record, body))
			return SNIFF_MORE;
		w = record;
		*ret_skip = len - w.left;
	}
	if (w.left && w.at[0] != RECORD_HANDSHAKE) {
		*reterr = REASON_MALFORMED;
		return SNIFF_BAD;
	}
	if (!w.left)
		return SNIFF_MORE;
	return tls_hello_parse(w.at, w.left, ret, reterr);
}
