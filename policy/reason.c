/* SPDX-License-Identifier: Apache-2.0
 *
 * reason.c - the table. One row says how a refusal looks in every protocol, so
 * that the doors cannot disagree.
 *
 * HTTP and Proxy-Status: RFC 9110, RFC 9209 section 2.3. SOCKS: RFC 1928
 * section 6. TLS: RFC 8446 section 6.2. DNS: RFC 1035 section 4.1.1 and RFC
 * 8914 section 5.2 (15 Blocked, 21 Not Supported, 22 No Reachable Authority, 23
 * Network Error).
 */
#include "policy/reason.h"

#include <stdio.h>
#include <string.h>

enum {
	SOCKS_OK,
	SOCKS_GENERAL,
	SOCKS_NOT_ALLOWED,
	SOCKS_HOST_UNREACHABLE = 4,
	SOCKS_REFUSED,
	SOCKS_COMMAND = 7
};
enum {
	ALERT_HANDSHAKE_FAILURE = 40,
	ALERT_ACCESS_DENIED = 49,
	ALERT_DECODE_ERROR = 50,
	ALERT_INTERNAL_ERROR = 80,
	ALERT_MISSING_EXTENSION = 109,
	ALERT_UNRECOGNIZED_NAME = 112
};
enum { NODATA, FORMERR, SERVFAIL, NXDOMAIN, REFUSED = 5 };
enum {
	EDE_NONE,
	EDE_BLOCKED = 15,
	EDE_NOT_SUPPORTED = 21,
	EDE_NO_REACHABLE_AUTHORITY,
	EDE_NETWORK_ERROR
};

/* Most refusals: a verdict of the policy about a host that may well exist. */
#define DENIED(word, text)                                                \
	{                                                                 \
		word, false, 403, "Forbidden", "http_request_denied",     \
			SOCKS_NOT_ALLOWED, ALERT_ACCESS_DENIED, NXDOMAIN, \
			EDE_BLOCKED, text                                 \
	}

#define ALLOWED(word, text)                                                \
	{                                                                  \
		word, true, 0, "", "", SOCKS_OK, 0, NODATA, EDE_NONE, text \
	}

/* clang-format off */
static const struct reason_info table[REASON_COUNT] = {
	[REASON_RULE] = ALLOWED("rule", "a rule allows it"),
	[REASON_PUBLIC] = ALLOWED("public", "it is a public address"),
	[REASON_OBSERVE] = ALLOWED("observe",
		"it would be refused, but the policy only observes"),

	[REASON_NOT_IN_POLICY] = DENIED("not_in_policy",
		"the host is not in the policy"),
	[REASON_DENY_RULE] = DENIED("deny_rule", "a deny rule names it"),
	[REASON_PORT] = DENIED("port", "the host is not allowed on this port"),
	[REASON_METHOD] = DENIED("method",
		"the rule does not allow this method"),
	[REASON_PATH] = DENIED("path", "the rule does not allow this path"),
	[REASON_NAME_MISMATCH] = { "name_mismatch", false,
		400, "Bad Request", "http_request_error", SOCKS_NOT_ALLOWED,
		ALERT_UNRECOGNIZED_NAME, NXDOMAIN, EDE_BLOCKED,
		"the names given for the host do not agree" },
	[REASON_NO_NAME] = { "no_name", false,
		400, "Bad Request", "http_request_error", SOCKS_NOT_ALLOWED,
		ALERT_MISSING_EXTENSION, FORMERR, EDE_NONE,
		"the connection names no host" },
	[REASON_LITERAL_ADDRESS] = DENIED("literal_address",
		"an address was given where the policy needs a name"),
	[REASON_FORBIDDEN_ADDRESS] = { "forbidden_address", false,
		502, "Bad Gateway", "destination_ip_prohibited",
		SOCKS_NOT_ALLOWED, ALERT_ACCESS_DENIED, NXDOMAIN, EDE_BLOCKED,
		"the name resolves to a private or special-purpose address" },
	[REASON_RESOLVE_FAILED] = { "resolve_failed", false,
		502, "Bad Gateway", "dns_error", SOCKS_HOST_UNREACHABLE,
		ALERT_INTERNAL_ERROR, SERVFAIL, EDE_NO_REACHABLE_AUTHORITY,
		"the name could not be resolved" },
	[REASON_RECORD_TYPE] = { "record_type", false,
		0, "", "", SOCKS_NOT_ALLOWED, ALERT_ACCESS_DENIED,
		NODATA, EDE_NONE,
		"records of this type are not answered" },
	[REASON_ECH] = DENIED("ech",
		"an encrypted ClientHello would hide the host's name"),
	[REASON_MALFORMED] = { "malformed", false,
		400, "Bad Request", "http_request_error", SOCKS_GENERAL,
		ALERT_DECODE_ERROR, FORMERR, EDE_NONE,
		"the message is malformed or ambiguous" },
	[REASON_PROTOCOL] = { "protocol", false,
		400, "Bad Request", "http_request_error", SOCKS_COMMAND,
		ALERT_HANDSHAKE_FAILURE, REFUSED, EDE_NOT_SUPPORTED,
		"the protocol is not the one allowed on this port" },
	[REASON_SELF] = DENIED("self",
		"the destination is the gateway itself"),
	[REASON_LIMIT_CONNECTIONS] = { "limit_connections", false,
		503, "Service Unavailable", "connection_limit_reached",
		SOCKS_GENERAL, ALERT_INTERNAL_ERROR, REFUSED, EDE_BLOCKED,
		"the sandbox has too many connections open" },
	[REASON_LIMIT_BYTES] = DENIED("limit_bytes",
		"the byte budget is used up"),
	[REASON_LIMIT_NAMES] = DENIED("limit_names",
		"the sandbox has asked for too many different names"),
	[REASON_LIMIT_RATE] = { "limit_rate", false,
		429, "Too Many Requests", "http_request_denied", SOCKS_GENERAL,
		ALERT_INTERNAL_ERROR, REFUSED, EDE_BLOCKED,
		"too many questions or connections a second" },
	[REASON_TIMEOUT] = { "timeout", false,
		504, "Gateway Timeout", "connection_timeout",
		SOCKS_HOST_UNREACHABLE, ALERT_INTERNAL_ERROR, SERVFAIL,
		EDE_NETWORK_ERROR, "it took too long" },
	[REASON_EXPIRED] = DENIED("expired", "the rule has expired"),
	[REASON_POLICY_REVOKED] = DENIED("policy_revoked",
		"the policy no longer allows it"),
	[REASON_LEDGER_UNAVAILABLE] = { "ledger_unavailable", false,
		503, "Service Unavailable", "proxy_internal_error",
		SOCKS_GENERAL, ALERT_INTERNAL_ERROR, SERVFAIL, EDE_NONE,
		"the audit log cannot be written, so nothing may leave" },
	[REASON_CONNECT_FAILED] = { "connect_failed", false,
		502, "Bad Gateway", "connection_refused", SOCKS_REFUSED,
		ALERT_INTERNAL_ERROR, SERVFAIL, EDE_NETWORK_ERROR,
		"no address of the host accepted a connection" },
	[REASON_BYPASS] = { "bypass", false,
		0, "", "", SOCKS_NOT_ALLOWED, ALERT_ACCESS_DENIED,
		REFUSED, EDE_BLOCKED,
		"a packet tried to leave without passing the gate" },
};
/* clang-format on */

const struct reason_info *reason_info(enum reason reason)
{
	return &table[reason];
}

const char *reason_word(enum reason reason)
{
	return (unsigned)reason < REASON_COUNT ? table[reason].word : "unknown";
}

/* HOST, HOST:PORT or [ADDR]:PORT, as --allow takes it. What is no part of a
 * name or an address becomes '?': hints reach terminals. */
static void format_target(const char *host, uint16_t port, bool with_port,
			  char *buf, size_t cap)
{
	bool v6 = strchr(host, ':');
	char clean[256];
	size_t n = 0;

	for (; host[n] && n < sizeof(clean) - 1; n++)
		clean[n] = host[n] > 0x20 && host[n] < 0x7f ? host[n] : '?';
	clean[n] = '\0';
	if (!with_port || !port)
		snprintf(buf, cap, "%s", clean);
	else
		snprintf(buf, cap, v6 ? "[%s]:%u" : "%s:%u", clean, port);
}

static const char *fixed_hint(enum reason reason)
{
	switch (reason) {
	case REASON_NAME_MISMATCH:
		return "use one and the same name for DNS, the request and TLS";
	case REASON_NO_NAME:
		return "use a client that sends SNI (TLS) or Host (HTTP)";
	case REASON_RECORD_TYPE:
		return "programs need A or AAAA; a rule may list TXT, MX "
		       "or SRV under dns.types";
	case REASON_ECH:
		return "switch off encrypted ClientHello in the client, or put "
		       "\"tls: {ech: allow}\" in the rule, if names that "
		       "nobody sees are meant";
	case REASON_MALFORMED:
		return "nothing to allow: the client's message has to be fixed";
	case REASON_PROTOCOL:
		return "port 443 is for TLS, port 80 for HTTP/1.1; another "
		       "protocol needs 'protocol' in its rule";
	case REASON_SELF:
		return "nothing to allow: the gateway is never a destination";
	case REASON_LIMIT_CONNECTIONS:
		return "close connections, or raise the limit in the policy";
	case REASON_LIMIT_BYTES:
		return "raise the byte budget in the policy";
	case REASON_LIMIT_NAMES:
		return "name the hosts one by one instead of by a wildcard, "
		       "or raise the limit in the policy";
	case REASON_LIMIT_RATE:
		return "slow down, or raise the limit in the policy";
	case REASON_RESOLVE_FAILED:
		return "check the name, and the name servers of this machine";
	case REASON_CONNECT_FAILED:
	case REASON_TIMEOUT:
		return "the policy allows it: check that the host is up";
	case REASON_LEDGER_UNAVAILABLE:
		return "check the disk that holds the audit log";
	case REASON_BYPASS:
		return "use names and TCP; direct addresses, UDP and ICMP "
		       "do not leave the sandbox";
	case REASON_EXPIRED:
	case REASON_POLICY_REVOKED:
		return "renew the rule in the policy";
	default:
		return "nothing to do";
	}
}

const char reason_ceiling_hint[] =
	"a ceiling of this machine's operator refuses it, whatever the policy "
	"says: ask who runs the machine";

char *reason_hint(enum reason reason, const char *host, uint16_t port,
		  char *buf, size_t cap)
{
	bool usual = port == 443 || port == 80;
	char target[280];

	format_target(host ? host : "HOST", port,
		      reason == REASON_PORT ||
			      (!usual && reason != REASON_FORBIDDEN_ADDRESS),
		      target, sizeof(target));
	switch (reason) {
	case REASON_NOT_IN_POLICY:
	case REASON_PORT:
		snprintf(buf, cap,
			 "add --allow %s, or a rule for it to the policy",
			 target);
		break;
	case REASON_LITERAL_ADDRESS:
		snprintf(buf, cap,
			 "use the host's name, or add --allow %s, or an "
			 "'address' rule to the policy",
			 host ? target : "ADDRESS");
		break;
	case REASON_FORBIDDEN_ADDRESS:
		snprintf(buf, cap,
			 "add --permit CIDR, or 'addresses' to the rule for "
			 "%s, if this address is meant",
			 host ? target : "the host");
		break;
	case REASON_DENY_RULE:
	case REASON_METHOD:
	case REASON_PATH:
		snprintf(buf, cap, "change the rule for %s in the policy",
			 host ? target : "it");
		break;
	default:
		snprintf(buf, cap, "%s", fixed_hint(reason));
	}
	return buf;
}
