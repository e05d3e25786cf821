/* SPDX-License-Identifier: Apache-2.0
 *
 * query.h - one question under way: for filter.c, query.c and query_answer.c
 * only.
 *
 *	verdict --> (nothing to do) -------------------------------> reply
 *	verdict --> lease ----------> publish --> answer ----------> reply
 *	verdict --> resolve --------> publish --> answer ----------> reply
 *	                        \---------------> answer ----------> reply
 *
 * "verdict" and "answer" wait for the ledger: nothing goes upstream before the
 * record of the question was accepted, and nothing goes to the sandbox before
 * that of the answer. Without the ledger everything is SERVFAIL. (The same one
 * again within a second is not under way at all: repeat.h.)
 *
 * After every wait the verdict has to stand still: if the policy is another one
 * or the rule has expired, the question is judged anew, from the start.
 */
#ifndef DNS_QUERY_H
#define DNS_QUERY_H

#include "dns/filter.h"
#include "dns/judge.h"
#include "dns/tenant.h"

/* What a query waits for; only what is named may come next. */
enum step {
	STEP_VERDICT, /* the record of it; then RESOLVE, RECORDS, PUBLISH, or
			 the reply */
	STEP_RESOLVE, /* addresses; then PUBLISH or ANSWER */
	STEP_RECORDS, /* from upstream; then ANSWER */
	STEP_PUBLISH, /* the kernel, to let an address in; then PUBLISH for the
			 next one, or ANSWER */
	STEP_ANSWER,  /* the record of it; then the reply */
};

/* Large, and seldom needed. */
struct query_records {
	struct query *query;
	struct record_lookup lookup;
};

struct query {
	TAILQ_ENTRY(query) entry;
	struct filter *filter;
	struct quota *quota; /* of the sandbox */
	struct sandbox *sandbox;
	struct policy *policy; /* of the verdict: keeps its rules alive */
	struct dns_peer peer;
	struct dns_query question;
	struct judgement judgement;
	enum step step;
	struct wait wait;
	struct lookup lookup;
	struct query_records *records; /* NULL, unless on that errand */
	size_t published;	       /* of the addresses in the reply */
	uint64_t began_ms;
	unsigned rechecked; /* the last recheck that saw it */
};

/* What a record has to say of a question. */
struct query_note {
	const struct sandbox *sandbox;
	struct verdict verdict;
	const struct dns_peer *peer;
	const char *host; /* NULL: there is none */
	uint16_t type;
	uint8_t rcode;
};

struct repeats;

struct filter {
	const struct services *services;
	void (*reply)(void *ctx, const struct dns_peer *peer, const void *data,
		      size_t len);
	void *ctx;
	struct tenants *tenants;
	struct repeats *repeats;
	TAILQ_HEAD(, query) queries;
	unsigned in_flight;
	unsigned rechecks; /* so far */
};

/* Any of these may end with @query replied to and gone. */

/* Judges and records a new query. */
void query_begin(struct query *query, enum dns_parse parsed);
/* Goes on after the verdict, which has an errand. */
void query_resolve(struct query *query);
/* Records the answer in the judgement's reply, and then sends it. */
void query_answer(struct query *query, const struct ip *ip, size_t n,
		  const char *detail);
void query_refuse(struct query *query, enum reason reason, const char *detail);
/* Judges it by the policy that is in force now; it waits for nothing. */
void query_rejudge(struct query *query);
/* The same for one that waits. */
void query_again(struct query *query);
/* Ends it without an answer. */
void query_cancel(struct query *query);

/* Does its verdict not stand any more? Then query_rejudge() is
 * next. */
bool query_stale(const struct query *query);

/* Fills @event in; its kind, answers and detail are the caller's. */
void query_note(const struct query_note *note, struct audit_event *event);

/* Writes an answer that fits @peer. @buf holds DNS_REPLY_TCP_MAX bytes. */
size_t query_build(const struct dns_peer *peer,
		   const struct dns_query *question,
		   const struct dns_reply *reply, uint8_t *buf);

#endif
