/* SPDX-License-Identifier: Apache-2.0
 *
 * reason.h - the one table of reasons: every verdict has one, and every
 * refusal, in whatever protocol, is a row of this table.
 */
#ifndef POLICY_REASON_H
#define POLICY_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum reason {
	REASON_RULE, /* allowed by a rule */
	REASON_PUBLIC,
	REASON_OBSERVE,
	REASON_NOT_IN_POLICY, /* from here on: denied */
	REASON_DENY_RULE,
	REASON_PORT,
	REASON_METHOD,
	REASON_PATH,
	REASON_NAME_MISMATCH,
	REASON_NO_NAME,
	REASON_LITERAL_ADDRESS,
	REASON_FORBIDDEN_ADDRESS,
	REASON_RESOLVE_FAILED,
	REASON_RECORD_TYPE,
	REASON_ECH,
	REASON_MALFORMED,
	REASON_PROTOCOL,
	REASON_SELF,
	REASON_LIMIT_CONNECTIONS,
	REASON_LIMIT_BYTES,
	REASON_LIMIT_NAMES,
	REASON_LIMIT_RATE,
	REASON_TIMEOUT,
	REASON_EXPIRED,
	REASON_POLICY_REVOKED,
	REASON_LEDGER_UNAVAILABLE,
	REASON_CONNECT_FAILED,
	REASON_BYPASS,
	REASON_COUNT
};

struct reason_info {
	const char *word; /* in logs, replies, docs, tests */
	bool allow;
	uint16_t http_status;	 /* RFC 9110; 0 where none is ever sent */
	const char *http_phrase; /* "Forbidden" */
	const char *proxy_error; /* RFC 9209 error type */
	uint8_t socks;		 /* RFC 1928 reply */
	uint8_t tls_alert;	 /* RFC 8446 section 6 description */
	uint8_t dns_rcode; /* 2 SERVFAIL, 3 NXDOMAIN, 1 FORMERR, 5, 0 NODATA */
	uint16_t ede;	   /* RFC 8914; 0 where none */
	const char *text;  /* "the host is not in the policy" */
};

/* The row of @reason, which must be < REASON_COUNT. */
const struct reason_info *reason_info(enum reason reason);
const char *reason_word(enum reason reason);

/* The hint where not the policy refused, but its ceiling. */
extern const char reason_ceiling_hint[];

/* One line that says how to allow what was refused, for people: e.g. "add
 * --allow api.example.com, or a rule for it to the policy". @host may be NULL.
 * Returns @buf, always terminated. */
char *reason_hint(enum reason reason, const char *host, uint16_t port,
		  char *buf, size_t cap);

#endif
