/* SPDX-License-Identifier: Apache-2.0
 *
 * tls_hello.c - from records to the handshake message, from there to the name.
 *
 * Clients may cut a ClientHello into records and segments anywhere, and real
 * servers put it together again; so do we, in a buffer of fixed size. The
 * message must end where a record ends: what a server would read as the next
 * handshake message is refused, records after it are not ours to judge.
 */
#include "proxy/sniff/tls_hello.h"

#include "base/wire.h"

#define RECORD_HANDSHAKE 0x16
#define RECORD_MAX	 16384
#define CLIENT_HELLO	 1
#define EXT_SERVER_NAME	 0
#define EXT_ECH		 0xfe0d
#define EXT_ECH_OUTER	 0xfd00 /* ech_outer_extensions */

struct message {
	uint8_t byte[SNIFF_MAX];
	size_t len;
};

static enum sniff bad(enum reason *reterr, enum reason reason)
{
	*reterr = reason;
	return SNIFF_BAD;
}

/* Length of the message with its header, 0 if that is not there yet. */
static size_t message_length(const struct message *m)
{
	struct wire w = wire_of(m->byte, m->len);

	if (m->len < 4)
		return 0;
	wire_u8(&w);
	return 4 + (size_t)wire_u24(&w);
}

/* Takes one record's header: DONE and its length. */
static enum sniff record_header(struct wire *w, bool first, size_t *ret_len,
				enum reason *reterr)
{
	const enum reason other = first ? REASON_PROTOCOL : REASON_MALFORMED;

	if (w->left > 0 && w->at[0] != RECORD_HANDSHAKE)
		return bad(reterr, other);
	if (w->left > 1 && w->at[1] != 3)
		return bad(reterr, other);
	if (w->left < 5)
		return SNIFF_MORE;
	wire_u16(w);
	if (wire_u8(w) > 4)
		return bad(reterr, REASON_MALFORMED);
	*ret_len = wire_u16(w);
	if (*ret_len == 0 || *ret_len > RECORD_MAX)
		return bad(reterr, REASON_MALFORMED);
	return SNIFF_DONE;
}

/* Puts the handshake message together; @ret_len: where its last record ends. */
static enum sniff collect(struct wire w, struct message *m, size_t *ret_len,
			  enum reason *reterr)
{
	const uint8_t *const start = w.at;

	for (bool first = true;; first = false) {
		size_t record = 0, here, want;
		enum sniff s = record_header(&w, first, &record, reterr);

		if (s != SNIFF_DONE)
			return s;
		here = record < w.left ? record : w.left;
		if (here > sizeof(m->byte) - m->len)
			return bad(reterr, REASON_MALFORMED);
		if (here)
			memcpy(m->byte + m->len, wire_take(&w, here), here);
		m->len += here;

		if (m->len && m->byte[0] != CLIENT_HELLO)
			return bad(reterr, REASON_MALFORMED);
		want = message_length(m);
		if (want > sizeof(m->byte))
			return bad(reterr, REASON_MALFORMED);
		if (want && m->len - here + record > want)
			return bad(reterr, REASON_MALFORMED);
		if (want && m->len == want) {
			*ret_len = (size_t)(w.at - start);
			return SNIFF_DONE;
		}
		if (here < record)
			return SNIFF_MORE;
	}
}

/* RFC 6066 section 3. An empty list or name names nobody: as if absent. */
static bool parse_server_name(struct wire ext, struct tls_hello *hello)
{
	struct wire list, name;

	if (!ext.left)
		return true;
	list = wire_sub(&ext, wire_u16(&ext));
	if (!wire_ok(&list) || ext.left)
		return false;
	if (!list.left)
		return true;
	if (wire_u8(&list) != 0)
		return false;
	name = wire_sub(&list, wire_u16(&list));
	if (!wire_ok(&name) || list.left)
		return false;
	if (!name.left)
		return true;
	if (name.at[name.left - 1] == '.')
		return false;
	return host_canonical((const char *)name.at, name.left, hello->host);
}

/* What ECH was in its drafts: in those before 7 encrypted_server_name, then
 * under a number of each draft's own. */
static bool is_early_ech(uint16_t type)
{
	return type == 0xffce || type == 0xff02 ||
	       (type >= 0xfe08 && type <= 0xfe0c);
}

/* RFC 9849 section 5: an outer one. An inner one is only ever inside, and a
 * second outer one after a retry has no key (`enc`). */
static bool is_outer_ech(struct wire ext)
{
	struct wire enc, payload;

	if (wire_u8(&ext) != 0)
		return false;
	wire_take(&ext, 5); /* HPKE's KDF and AEAD, config_id */
	enc = wire_sub(&ext, wire_u16(&ext));
	payload = wire_sub(&ext, wire_u16(&ext));
	return wire_ok(&enc) && wire_ok(&payload) && payload.left && !ext.left;
}

static bool parse_ech(uint16_t type, struct wire ext, struct tls_hello *hello)
{
	if (type == EXT_ECH_OUTER || (type == EXT_ECH && !is_outer_ech(ext)))
		return false;
	if (type == EXT_ECH || is_early_ech(type))
		hello->ech = true;
	return true;
}

static bool parse_extensions(struct wire w, struct tls_hello *hello)
{
	uint8_t seen[65536 / 8] = { 0 };

	while (w.left) {
		uint16_t type = wire_u16(&w);
		struct wire ext = wire_sub(&w, wire_u16(&w));
		uint8_t bit = (uint8_t)(1u << (type & 7));

		if (!wire_ok(&ext) || (seen[type / 8] & bit))
			return false;
		seen[type / 8] |= bit;
		if (!parse_ech(type, ext, hello))
			return false;
		if (type == EXT_SERVER_NAME && !parse_server_name(ext, hello))
			return false;
	}
	return wire_ok(&w);
}

/* @w is the body of the ClientHello (RFC 8446 section 4.1.2). */
static bool parse_hello(struct wire w, struct tls_hello *hello)
{
	struct wire session, ciphers, compression, extensions;

	if (wire_u8(&w) != 3)
		return false;
	wire_u8(&w);
	wire_take(&w, 32); /* random */
	session = wire_sub(&w, wire_u8(&w));
	ciphers = wire_sub(&w, wire_u16(&w));
	compression = wire_sub(&w, wire_u8(&w));
	if (!wire_ok(&w) || session.left > 32 || ciphers.left < 2 ||
	    ciphers.left % 2 || !compression.left)
		return false;
	if (!w.left)
		return true; /* from before there were extensions */
	extensions = wire_sub(&w, wire_u16(&w));
	return wire_ok(&w) && !w.left && parse_extensions(extensions, hello);
}

enum sniff tls_hello_parse(const uint8_t *data, size_t len,
			   struct tls_hello *ret, enum reason *reterr)
{
	struct tls_hello hello = { .host = "" };
	struct message m;
	enum sniff s;

	m.len = 0;
	s = collect(wire_of(data, len), &m, &hello.len, reterr);
	if (s == SNIFF_MORE && len >= SNIFF_MAX)
		return bad(reterr, REASON_MALFORMED);
	if (s != SNIFF_DONE)
		return s;
	if (!parse_hello(wire_of(m.byte + 4, m.len - 4), &hello))
		return bad(reterr, REASON_MALFORMED);
	*ret = hello;
	return SNIFF_DONE;
}
