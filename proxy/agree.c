/* SPDX-License-Identifier: Apache-2.0
 *
 * agree.c - the comparison of names, in one place for all doors.
 */
#include "proxy/agree.h"

#include <string.h>

#include "proxy/sniff/http.h"
#include "proxy/sniff/tls_hello.h"

static enum sniff bad(struct agree *a, enum reason reason, const char *detail)
{
	a->reason = reason;
	a->detail = detail;
	return SNIFF_BAD;
}

/* A name on a connection to a literal address: the range was allowed, the name
 * needs a rule of its own. */
static bool name_has_rule(const struct agree *a, const char *name)
{
	const struct question question = {
		.host = name,
		.port = a->port,
		.door = a->door,
	};
	const struct verdict verdict = policy_decide(a->policy, &question);

	return verdict.allow && verdict.reason == REASON_RULE;
}

static enum sniff check_tls(struct agree *a, const uint8_t *data, size_t len)
{
	struct tls_hello hello;
	enum reason reason = REASON_MALFORMED;
	enum sniff s = tls_hello_parse(data, len, &hello, &reason);

	if (s == SNIFF_MORE)
		return s;
	if (s == SNIFF_BAD)
		return bad(a, reason,
			   reason == REASON_PROTOCOL ? "not TLS"
						     : "bad ClientHello");
	memcpy(a->sni, hello.host, sizeof(a->sni));
	a->ech = hello.ech;
	if (a->address.len) {
		if (!*a->sni || name_has_rule(a, a->sni))
			return SNIFF_DONE;
		return bad(a, REASON_NAME_MISMATCH,
			   "TLS names a host, the connection an address");
	}
	if (!*a->sni)
		return bad(a, REASON_NO_NAME, "no server name in TLS");
	if (a->host && strcmp(a->host, a->sni))
		return bad(a, REASON_NAME_MISMATCH,
			   "TLS names another host than the connection");
	return SNIFF_DONE;
}

static enum sniff check_http(struct agree *a, const uint8_t *data, size_t len)
{
	struct http_request req;
	struct http_error error = { .reason = REASON_MALFORMED };
	enum sniff s =
		http_request_parse((const char *)data, len, &req, &error);

	if (s == SNIFF_MORE)
		return s;
	if (s == SNIFF_BAD)
		return bad(a, error.reason, error.detail);
	if (a->address.len && !*req.host && ip_equal(&a->address, &req.address))
		return SNIFF_DONE;
	if (a->host && *req.host && !strcmp(a->host, req.host))
		return SNIFF_DONE;
	return bad(a, REASON_NAME_MISMATCH,
		   "HTTP names another host than the connection");
}

static enum sniff check(struct agree *a, const uint8_t *data, size_t len)
{
	a->protocol = sniff_protocol(data, len);
	if (a->port == 443) {
		a->protocol = PROTOCOL_TLS;
		return len ? check_tls(a, data, len) : SNIFF_MORE;
	}
	switch (a->protocol) {
	case PROTOCOL_UNKNOWN:
		return SNIFF_MORE;
	case PROTOCOL_TLS:
		if (a->port == 80)
			break;
		return check_tls(a, data, len);
	case PROTOCOL_HTTP:
		return check_http(a, data, len);
	case PROTOCOL_HTTP2:
		break;
	case PROTOCOL_SOCKS5:
	case PROTOCOL_OTHER:
		if (a->port == 80)
			break;
		return SNIFF_DONE;
	}
	return bad(a, REASON_PROTOCOL,
		   a->port == 80 ? "not HTTP/1" : "HTTP/2 without TLS");
}

enum sniff agree_check(struct agree *a, const uint8_t *data, size_t len)
{
	enum sniff s = check(a, data, len);

	if (s == SNIFF_MORE && len >= SNIFF_MAX)
		return bad(a, REASON_MALFORMED, "first message too long");
	return s;
}

/* A first byte that only TLS has is half a hello; any other undecided start
 * may be a whole message of a protocol that we do not know. */
enum sniff agree_incomplete(struct agree *a, const uint8_t *data, size_t len)
{
	enum sniff s = agree_check(a, data, len);

	if (s != SNIFF_MORE)
		return s;
	if (!len)
		return SNIFF_DONE;
	if (a->port == 443 || a->port == 80 || a->protocol == PROTOCOL_TLS ||
	    a->protocol == PROTOCOL_HTTP ||
	    (data[0] >= 0x14 && data[0] <= 0x18))
		return bad(a, REASON_TIMEOUT, "first message never completed");
	return SNIFF_DONE;
}
