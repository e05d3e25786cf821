/* SPDX-License-Identifier: Apache-2.0
 *
 * agree.c - the comparison of names, in one place for all doors.
 */
#include "proxy/agree.h"

#include <string.h>

#include "policy/ech.h"
#include "proxy/wanted.h"

static enum sniff bad(struct agree *a, enum reason reason, const char *detail)
{
	a->reason = reason;
	a->detail = detail;
	return SNIFF_BAD;
}

static enum wanted wanted(const struct agree *a)
{
	return wanted_on(a->wanted, a->port);
}

/* A name on a connection to a literal address: the range was allowed, the name
 * needs a rule of its own, or to be public. A name that is only observed does
 * not: what it would be refused for is that it disagrees. */
static bool name_has_rule(const struct agree *a, const char *name)
{
	const struct question question = {
		.host = name,
		.port = a->port,
		.door = a->door,
		.now_s = a->now_s,
	};
	const struct verdict verdict = policy_decide(a->policy, &question);

	return verdict.allow && verdict.reason != REASON_OBSERVE;
}

/* What the policy has against ECH at @host, or at the address. What it does not
 * allow at all is refused by others, for that reason. */
static const char *ech_fault_at(const struct agree *a, const char *host)
{
	const struct question question = {
		.host = host,
		.address = host ? (struct ip){ .len = 0 } : a->address,
		.port = a->port,
		.door = a->door,
		.now_s = a->now_s,
	};
	const struct verdict verdict = policy_decide(a->policy, &question);

	return verdict.allow ? policy_ech_fault(&verdict, a->sni, host) : NULL;
}

/* Of a hello with ECH. At an address both have a say, the address's rule and
 * the name's. */
static const char *ech_fault(const struct agree *a)
{
	const char *fault = a->address.len ? ech_fault_at(a, NULL) : NULL;
	const char *host = a->host ? a->host : *a->sni ? a->sni : NULL;

	return fault || !host ? fault : ech_fault_at(a, host);
}

static enum sniff check_tls(struct agree *a, const uint8_t *data, size_t len)
{
	struct tls_hello hello;
	enum reason reason = REASON_MALFORMED;
	enum sniff s = tls_hello_parse(data, len, &hello, &reason);
	const char *fault;

	if (s == SNIFF_MORE)
		return s;
	if (s == SNIFF_BAD)
		return bad(a, reason,
			   reason == REASON_PROTOCOL ? "not TLS"
						     : "bad ClientHello");
	memcpy(a->sni, hello.host, sizeof(a->sni));
	a->ech = hello.ech;
	a->hello_len = hello.len;
	fault = a->ech ? ech_fault(a) : NULL;
	if (fault)
		return bad(a, REASON_ECH, fault);
	if (a->address.len) {
		if (!*a->sni || name_has_rule(a, a->sni))
			return SNIFF_DONE;
		return bad(a, REASON_NAME_MISMATCH,
			   "TLS names a host, the connection an address");
	}
	if (!*a->sni && a->host && wanted(a) == WANTED_ANY)
		return SNIFF_DONE;
	if (!*a->sni)
		return bad(a, REASON_NO_NAME, "no server name in TLS");
	if (a->host && strcmp(a->host, a->sni))
		return bad(a, REASON_NAME_MISMATCH,
			   "TLS names another host than the connection");
	return SNIFF_DONE;
}

static enum sniff check(struct agree *a, const uint8_t *data, size_t len)
{
	const bool http = wanted(a) == WANTED_HTTP;

	a->protocol = sniff_protocol(data, len);
	if (wanted(a) == WANTED_TLS) {
		a->protocol = PROTOCOL_TLS;
		return len ? check_tls(a, data, len) : SNIFF_MORE;
	}
	switch (a->protocol) {
	case PROTOCOL_UNKNOWN:
		return SNIFF_MORE;
	case PROTOCOL_TLS:
		if (http)
			break;
		return check_tls(a, data, len);
	case PROTOCOL_HTTP:
		return SNIFF_DONE;
	case PROTOCOL_HTTP2: /* names hosts, and nobody here hears them */
		break;
	case PROTOCOL_SOCKS5:
	case PROTOCOL_OTHER:
		if (http)
			break;
		return SNIFF_DONE;
	}
	return bad(a, REASON_PROTOCOL,
		   http ? "not HTTP/1" : "HTTP/2 without TLS");
}

enum sniff agree_check(struct agree *a, const uint8_t *data, size_t len)
{
	enum sniff s = check(a, data, len);

	if (s == SNIFF_MORE && len >= SNIFF_MAX)
		return bad(a, REASON_MALFORMED, "first message too long");
	return s;
}

enum sniff agree_late(struct agree *a, const char *detail)
{
	return bad(a, REASON_TIMEOUT, detail);
}

/* What may still become TLS or HTTP does not pass: the rest would come behind
 * it unseen. If there will be no rest, half a word is just that; but a first
 * byte that only TLS has is half a hello. Where the rule wants nothing, only
 * what is TLS for certain has to be whole. */
enum sniff agree_incomplete(struct agree *a, const uint8_t *data, size_t len,
			    bool ended)
{
	enum sniff s = agree_check(a, data, len);
	const enum wanted want = wanted(a);

	if (s != SNIFF_MORE)
		return s;
	if (!len)
		return SNIFF_DONE;
	if (want == WANTED_ANY && a->protocol != PROTOCOL_TLS)
		return SNIFF_DONE;
	if (want == WANTED_ANY && !ended)
		return SNIFF_MORE;
	if (!ended || want != WANTED_DEFAULT || a->protocol == PROTOCOL_TLS ||
	    (data[0] >= 0x14 && data[0] <= 0x18))
		return agree_late(a, "first message never completed");
	return SNIFF_DONE;
}

/* Nothing but the requests of an exchange satisfies a rule that wants HTTP. */
bool agree_still(const struct agree *a)
{
	const bool tls = a->protocol == PROTOCOL_TLS;

	switch (wanted(a)) {
	case WANTED_HTTP:
		return false;
	case WANTED_TLS:
		if (!tls)
			return false;
		break;
	case WANTED_ANY:
	case WANTED_DEFAULT:
		break;
	}
	if (tls && a->ech && ech_fault(a))
		return false;
	if (a->address.len)
		return !*a->sni || name_has_rule(a, a->sni);
	return !tls || *a->sni || wanted(a) == WANTED_ANY;
}

enum tls_answer agree_answer(struct agree *a, const uint8_t *data, size_t len)
{
	enum tls_answer answer = tls_answer_read(&a->answer, data, len);

	if (answer == TLS_ANSWER_BAD)
		bad(a, REASON_PROTOCOL, "the server's answer is no TLS");
	return answer;
}

enum sniff agree_second(struct agree *a, const uint8_t *data, size_t len,
			size_t *ret_pass)
{
	struct tls_hello hello;
	enum reason reason = REASON_MALFORMED;
	enum sniff s = tls_second_hello(data, len, ret_pass, &hello, &reason);

	if (s == SNIFF_MORE && len - *ret_pass >= SNIFF_MAX)
		s = SNIFF_BAD;
	if (s == SNIFF_MORE)
		return s;
	if (s == SNIFF_BAD)
		return bad(a, reason, "bad second ClientHello");
	/* RFC 8446 section 4.1.2: it is the first one again. */
	if (hello.ech && !a->ech)
		return bad(a, REASON_MALFORMED,
			   "ECH begins in the second ClientHello");
	if (!strcmp(hello.host, a->sni))
		return SNIFF_DONE;
	if (!*hello.host)
		return bad(a, REASON_NO_NAME,
			   "no server name in the second ClientHello");
	memcpy(a->sni, hello.host, sizeof(a->sni));
	return bad(a, REASON_NAME_MISMATCH,
		   "the second ClientHello names another host");
}
