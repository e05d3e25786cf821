/* SPDX-License-Identifier: Apache-2.0
 *
 * judge.h - the verdict about one question, and about the addresses that were
 * found for it. No waiting: that is filter.c's.
 */
#ifndef DNS_JUDGE_H
#define DNS_JUDGE_H

#include "dns/message.h"
#include "policy/services.h"

#define JUDGE_TTL	   60 /* of what we answer; leases live longer */
#define JUDGE_TTL_NEGATIVE 10 /* a changed policy must soon be seen */

/* What is left to do for an answer. */
enum errand {
	ERRAND_NONE,
	ERRAND_ADDRESSES, /* to be asked upstream */
	ERRAND_RECORDS,	  /* of the type in question: the same */
	ERRAND_LEASE,	  /* an address of ours, and nobody is asked */
};

/* A verdict and the answer that goes with it. */
struct judgement {
	struct verdict verdict;
	enum errand errand;
	bool by_policy; /* it allows the name; else it is none of its business
			 */
	struct dns_reply reply;
	const char *detail;	 /* for the record, or NULL */
	char ede_text[400];	 /* reply.ede_text, if any */
	char host[HOST_MAX + 1]; /* canonical, "" if there is none */
};

/* Judges @query, parsed with @parsed (not DNS_PARSE_IGNORE), by the sandbox's
 * policy at @now_s. Counts the name, if it is allowed. */
void judge_question(const struct services *services, struct sandbox *sandbox,
		    enum dns_parse parsed, const struct dns_query *query,
		    int64_t now_s, struct judgement *ret_judgement);

/* Would @policy, by which it was made, still say so at @now_s? */
bool judge_stands(const struct policy *policy,
		  const struct judgement *judgement, int64_t now_s);

/* Makes @judgement a refusal for @reason, by @rule or NULL. */
void judge_refuse(struct judgement *judgement, enum reason reason,
		  const struct rule *rule);

/* Are names answered with their own addresses? */
bool judge_real(const struct services *services, const struct policy *policy);

/* Keeps of @lookup what may be dialled, in order. Returns an allowing verdict
 * if anything is left. */
struct verdict judge_addresses(const struct services *services,
			       const struct policy *policy,
			       const struct rule *rule, struct lookup *lookup);

#endif
