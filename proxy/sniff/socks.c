/* SPDX-License-Identifier: Apache-2.0
 *
 * socks.c - the two messages of a SOCKS5 client.
 *
 * A request is judged when all of it is there, so that the record of a refusal
 * can say which name was asked for.
 */
#include "proxy/sniff/socks.h"

#include "base/wire.h"
#include "proxy/sniff/http_authority.h"

#define SOCKS_VERSION 5
#define CMD_CONNECT   1

enum { ATYP_IPV4 = 1, ATYP_NAME = 3, ATYP_IPV6 = 4 };
enum {
	REPLY_FAILURE = 1,
	REPLY_NOT_ALLOWED = 2,
	REPLY_COMMAND = 7,
	REPLY_ADDRESS_TYPE = 8,
};

static enum sniff bad(uint8_t reply, enum reason reason, uint8_t *reterr_reply,
		      enum reason *reterr)
{
	*reterr_reply = reply;
	*reterr = reason;
	return SNIFF_BAD;
}

enum sniff socks_greeting(const uint8_t *data, size_t len, size_t *ret_len,
			  uint8_t *ret_method)
{
	struct wire w = wire_of(data, len), methods;

	if (len && data[0] != SOCKS_VERSION)
		return SNIFF_BAD;
	if (len > 1 && data[1] == 0)
		return SNIFF_BAD;
	wire_u8(&w);
	methods = wire_sub(&w, wire_u8(&w));
	if (!wire_ok(&w))
		return SNIFF_MORE;
	*ret_len = len - w.left;
	*ret_method = memchr(methods.at, 0, methods.left) ? 0 : 0xff;
	return SNIFF_DONE;
}

/* "\xNN" for what is not printable; cut where it gets too long. */
static void show(const struct wire *name, char *shown, size_t cap)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	for (size_t i = 0; i < name->left && n + 5 < cap; i++) {
		uint8_t c = name->at[i];

		if (c > 0x20 && c < 0x7f && c != '\\') {
			shown[n++] = (char)c;
			continue;
		}
		shown[n++] = '\\';
		shown[n++] = 'x';
		shown[n++] = hex[c >> 4];
		shown[n++] = hex[c & 15];
	}
	shown[n] = '\0';
}

static struct ip ip_of(const struct wire *bytes)
{
	struct ip ip = { .len = (uint8_t)bytes->left };

	memcpy(ip.byte, bytes->at, bytes->left);
	return ip;
}

/* A name, or a strictly spelled address in its place: some clients do that. */
static bool parse_name(const struct wire *name, struct socks_request *req)
{
	char text[256];

	show(name, req->shown, sizeof(req->shown));
	if (host_canonical((const char *)name->at, name->left, req->host))
		return true;
	if (memchr(name->at, '\0', name->left))
		return false;
	memcpy(text, name->at, name->left);
	text[name->left] = '\0';
	return ip_parse(text, &req->address);
}

/* An address in a spelling that no resolver may see is told from a bad name, in
 * the same way as in HTTP. */
static enum sniff bad_name(const struct wire *name, uint8_t *reterr_reply,
			   enum reason *reterr)
{
	const struct http_text text = { (const char *)name->at, name->left };
	enum reason reason = REASON_MALFORMED;
	struct http_authority authority;

	http_authority_parse(text, &authority, &reason);
	return bad(reason == REASON_LITERAL_ADDRESS ? REPLY_NOT_ALLOWED
						    : REPLY_FAILURE,
		   reason, reterr_reply, reterr);
}

enum sniff socks_request_parse(const uint8_t *data, size_t len,
			       struct socks_request *ret, uint8_t *reterr_reply,
			       enum reason *reterr)
{
	struct socks_request req = { .host = "" };
	struct wire w = wire_of(data, len), to;
	uint8_t version = wire_u8(&w), command = wire_u8(&w);
	uint8_t reserved = wire_u8(&w), type = wire_u8(&w);

	if (len && version != SOCKS_VERSION)
		goto malformed;
	if (!wire_ok(&w))
		return SNIFF_MORE;
	*ret = req;
	if (type != ATYP_IPV4 && type != ATYP_IPV6 && type != ATYP_NAME)
		return bad(REPLY_ADDRESS_TYPE, REASON_MALFORMED, reterr_reply,
			   reterr);
	to = wire_sub(&w, type == ATYP_IPV4   ? 4
			  : type == ATYP_IPV6 ? 16
					      : wire_u8(&w));
	req.port = wire_u16(&w);
	if (!wire_ok(&w))
		return SNIFF_MORE;
	req.len = len - w.left;

	if (type != ATYP_NAME) {
		req.address = ip_of(&to);
	} else if (!parse_name(&to, &req)) {
		*ret = req;
		return bad_name(&to, reterr_reply, reterr);
	}
	if (command != CMD_CONNECT) {
		*ret = req;
		return bad(REPLY_COMMAND, REASON_PROTOCOL, reterr_reply,
			   reterr);
	}
	if (reserved || !req.port)
		goto malformed;
	*ret = req;
	return SNIFF_DONE;

malformed:
	*ret = req;
	return bad(REPLY_FAILURE, REASON_MALFORMED, reterr_reply, reterr);
}

void socks_reply(uint8_t reply, uint8_t ret[SOCKS_REPLY_LEN])
{
	memset(ret, 0, SOCKS_REPLY_LEN);
	ret[0] = SOCKS_VERSION;
	ret[1] = reply;
	ret[3] = ATYP_IPV4;
}
