/* SPDX-License-Identifier: Apache-2.0
 *
 * answer.h - what we ask name servers and what they answer. Pure.
 */
#ifndef DNS_ANSWER_H
#define DNS_ANSWER_H

#include "dns/rdata.h"

/* Ours: header, one name, type and class, and a bare OPT at the very end: who
 * asks without it cuts off so many bytes. */
#define DNS_QUESTION_OPT 11
#define DNS_QUESTION_MAX (DNS_HEADER_LEN + NAME_MAX_WIRE + 4 + DNS_QUESTION_OPT)

struct dns_answer {
	uint8_t rcode;
	bool edns; /* it had an OPT */
	struct ip ip[LOOKUP_MAX];
	size_t count;
	uint32_t ttl; /* as sent, the least of all records on the chain */
};

/* Builds the question for @host (canonical). @buf holds DNS_QUESTION_MAX
 * bytes. Returns its length. */
size_t dns_question_build(const char *host, uint16_t type, uint16_t id,
			  void *buf);

/* Reads the answer to that question. Only records on the chain of aliases that
 * starts at @host count. @ret_records, if @type is rdata_known(), gets those
 * that may be passed on, as many as there is room for; else it may be NULL.
 * Returns 0, or -EBADMSG if it is malformed, ambiguous, truncated or answers
 * something else. */
int dns_answer_parse(const void *data, size_t len, const char *host,
		     uint16_t type, struct dns_answer *ret_answer,
		     struct dns_records *ret_records);

#endif
