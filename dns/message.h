/* SPDX-License-Identifier: Apache-2.0
 *
 * message.h - what clients send and what they are answered: RFC 1035, EDNS (RFC
 * 6891) and extended errors (RFC 8914). Pure: bytes in, bytes out.
 */
#ifndef DNS_MESSAGE_H
#define DNS_MESSAGE_H

#include "base/addr.h"
#include "dns/name.h"

#define DNS_QUERY_MAX 2048 /* no honest question is longer */
#define DNS_REPLY_MAX 1232 /* nor is an answer of ours by UDP */
/* By TCP: as many records as are ever looked up. */
#define DNS_REPLY_TCP_MAX 14336
#define DNS_ADDRESSES_MAX 8
#define DNS_HEADER_LEN	  12

enum dns_type {
	DNS_A = 1,
	DNS_CNAME = 5,
	DNS_SOA = 6,
	DNS_PTR = 12,
	DNS_HINFO = 13,
	DNS_MX = 15,
	DNS_TXT = 16,
	DNS_AAAA = 28,
	DNS_SRV = 33,
	DNS_OPT = 41,
	DNS_IXFR = 251,
	DNS_AXFR = 252,
	DNS_ANY = 255,
};

enum { DNS_IN = 1 };

enum dns_rcode {
	DNS_NOERROR,
	DNS_FORMERR,
	DNS_SERVFAIL,
	DNS_NXDOMAIN,
	DNS_NOTIMP,
	DNS_REFUSED,
	DNS_BADVERS = 16,
};

enum dns_ede {
	DNS_EDE_NONE, /* "other" on the wire, which we never send */
	DNS_EDE_BLOCKED = 15,
	DNS_EDE_PROHIBITED = 18,
	DNS_EDE_NO_AUTHORITY = 22,
};

enum dns_parse {
	DNS_PARSE_OK,
	DNS_PARSE_IGNORE, /* no header, or an answer: replying could loop */
	DNS_PARSE_FORMERR,
	DNS_PARSE_NOTIMP,
	DNS_PARSE_BADVERS,
};

/* A question. After an error what was not reached is zero; @name.len is 0 if
 * there is no question to echo. */
struct dns_query {
	uint16_t id;
	uint8_t opcode;
	bool rd, cd;
	bool edns;
	uint16_t udp_size; /* what the client takes by UDP, >= 512 */
	struct name name;  /* as sent: case kept (0x20) */
	uint16_t type, class;
};

enum dns_parse dns_query_parse(const void *data, size_t len,
			       struct dns_query *ret_query);

struct rdata; /* policy/services.h */

/* An answer: one record, or several of one kind. */
struct dns_reply {
	uint8_t rcode;
	enum {
		DNS_REPLY_EMPTY, /* with a SOA if the rcode is 0 or 3 */
		DNS_REPLY_ADDRESS,
		DNS_REPLY_HINFO, /* RFC 8482 */
		DNS_REPLY_PTR,
		DNS_REPLY_RECORDS, /* of the type that was asked for */
	} kind;
	struct ip address[DNS_ADDRESSES_MAX];
	size_t addresses;
	const char *target;	    /* of the PTR, canonical */
	const struct rdata *record; /* each uncompressed */
	size_t records;
	uint32_t ttl;	  /* of the records, or of its absence */
	enum dns_ede ede; /* sent only to clients that speak EDNS */
	const char *ede_text;
};

/* Writes the answer to @query, at most @cap bytes (>= 512): what does not fit
 * is left out, first the text of the extended error, then all records, with TC
 * set. Returns its length. */
size_t dns_reply_build(const struct dns_query *query,
		       const struct dns_reply *reply, void *buf, size_t cap);

#endif
