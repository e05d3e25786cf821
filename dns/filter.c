/* SPDX-License-Identifier: Apache-2.0
 *
 * filter.c - one question's way, and what it waits for.
 *
 *	verdict --> (nothing to resolve) --------------------------> reply
 *	verdict --> resolve --> publish --> answer ----------------> reply
 *	                    \-> answer (no address, or none allowed) > reply
 *
 * "verdict" and "answer" wait for the ledger: nothing goes upstream before the
 * record of the question was accepted, and nothing goes to the sandbox before
 * that of the answer. Without the ledger everything is SERVFAIL.
 */
#include "dns/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "dns/clock.h"
#include "dns/judge.h"
#include "dns/lease.h"
#include "dns/tenant.h"

#define QUERIES_MAX	    1024
#define QUERIES_SANDBOX_MAX 256

/* What a query waits for; only what is named may come next. */
enum step {
	STEP_VERDICT, /* the record of it; then RESOLVE, or the reply */
	STEP_RESOLVE, /* addresses; then PUBLISH or ANSWER */
	STEP_PUBLISH, /* the kernel, to let the lease in; then ANSWER */
	STEP_ANSWER,  /* the record of it; then the reply */
};

struct query {
	TAILQ_ENTRY(query) entry;
	struct filter *filter;
	struct quota *quota; /* of the sandbox */
	struct sandbox *sandbox;
	struct policy *policy; /* keeps the rules of its verdict alive */
	struct dns_peer peer;
	struct dns_query question;
	struct judgement judgement;
	enum step step;
	struct wait wait;
	struct lookup lookup;
	uint64_t began_ms;
};

struct filter {
	const struct services *services;
	void (*reply)(void *ctx, const struct dns_peer *peer, const void *data,
		      size_t len);
	void *ctx;
	struct tenants *tenants;
	TAILQ_HEAD(, query) queries;
	unsigned in_flight;
};

static void on_step(struct wait *wait, int status);
static void on_resolved(struct wait *wait, int status);

/* --- the end of a query -------------------------------------------------- */

/* @buf holds DNS_REPLY_MAX bytes. */
static size_t build(const struct dns_peer *peer,
		    const struct dns_query *question,
		    const struct dns_reply *reply, uint8_t *buf)
{
	bool small = !peer->conn && question->udp_size < DNS_REPLY_MAX;

	return dns_reply_build(question, reply, buf,
			       small ? question->udp_size : DNS_REPLY_MAX);
}

static void send_reply(struct filter *filter, const struct dns_peer *peer,
		       const struct dns_query *question,
		       const struct dns_reply *reply)
{
	uint8_t data[DNS_REPLY_MAX];
	size_t len = build(peer, question, reply, data);

	filter->reply(filter->ctx, peer, data, len);
}

static void query_free(struct query *query)
{
	TAILQ_REMOVE(&query->filter->queries, query, entry);
	query->filter->in_flight--;
	query->quota->in_flight--;
	policy_unref(query->policy);
	free(query);
}

/* Whoever gets the reply may forget the connection that it came by. */
static void query_reply(struct query *query)
{
	struct filter *filter = query->filter;
	const struct dns_peer peer = query->peer;
	uint8_t data[DNS_REPLY_MAX];
	size_t len =
		build(&peer, &query->question, &query->judgement.reply, data);

	query_free(query);
	filter->reply(filter->ctx, &peer, data, len);
}

static void query_cancel(struct query *query)
{
	const struct services *services = query->filter->services;

	switch (query->step) {
	case STEP_VERDICT:
	case STEP_ANSWER:
		services->record_cancel(services->ctx, &query->wait);
		break;
	case STEP_RESOLVE:
		services->resolve_cancel(services->ctx, &query->lookup);
		break;
	case STEP_PUBLISH:
		services->publish_cancel(services->ctx, &query->wait);
		break;
	}
	query_free(query);
}

/* --- records ------------------------------------------------------------- */

/* Hands the record over and goes to @step; @query may be gone after that. */
static void query_record(struct query *query, enum step step,
			 struct audit_event *event)
{
	const struct services *services = query->filter->services;
	const struct judgement *judgement = &query->judgement;
	const struct rule *rule = judgement->verdict.rule;
	char text[NAME_TEXT_MAX];

	event->sandbox = query->sandbox->id;
	event->verdict = judgement->verdict;
	event->door = DOOR_DNS;
	event->rule = rule ? rule_origin(rule) : NULL;
	event->rule_text = rule ? rule_text(rule) : NULL;
	if (judgement->host[0])
		event->host = judgement->host;
	else if (query->question.name.len)
		event->host = name_format(&query->question.name, text);
	event->src_ip = query->peer.src;
	event->src_port = query->peer.src_port;
	event->dst_ip = query->peer.dst;
	event->dst_port = query->peer.dst_port;
	event->protocol = query->peer.conn ? "tcp" : "udp";
	event->qtype = query->question.type;
	event->rcode = judgement->reply.rcode;
	if (!event->detail)
		event->detail = judgement->detail;
	query->step = step;
	query->wait = (struct wait){ .done = on_step };
	services->record(services->ctx, event, &query->wait);
}

static void record_answer(struct query *query, const struct ip *ip, size_t n,
			  const char *detail)
{
	struct audit_event event = { .kind = EVENT_DNS_ANSWER,
				     .duration_ms =
					     clock_ms() - query->began_ms,
				     .detail = detail };

	for (size_t i = 0; i < n && i < EVENT_ANSWERS_MAX; i++)
		event.answer[event.answers++] = ip[i];
	query_record(query, STEP_ANSWER, &event);
}

/* --- from the upstream's answer to ours ---------------------------------- */

/* "upstream: 93.184.216.34 2606:2800::1", for the record. */
static const char *describe(const struct lookup *lookup, char *buf, size_t cap)
{
	char ip[IP_TEXT_MAX];
	int len = snprintf(buf, cap, "upstream:");

	for (size_t i = 0; i < lookup->count && (size_t)len < cap; i++)
		len += snprintf(buf + len, cap - (size_t)len, " %s",
				ip_format(&lookup->ip[i], ip));
	return buf;
}

static void refuse_answer(struct query *query, enum reason reason,
			  const struct rule *rule, const char *detail)
{
	judge_refuse(&query->judgement, reason, rule);
	record_answer(query, NULL, 0, detail);
}

static void answer_address(struct query *query)
{
	const struct ip address = query->judgement.reply.address;
	char detail[LOOKUP_MAX * IP_TEXT_MAX + 16];

	query->judgement.reply.kind = DNS_REPLY_ADDRESS;
	record_answer(query, &address, 1,
		      describe(&query->lookup, detail, sizeof(detail)));
}

/* Gives the name an address of the sandbox's own, and waits until the kernel
 * lets it in: also one that had one, because the first publication may still be
 * under way, or was that of a gate that died. */
static void lease_address(struct query *query)
{
	const struct services *services = query->filter->services;
	struct sandbox *sandbox = query->sandbox;
	struct dns_reply *reply = &query->judgement.reply;
	const struct rule *rule = query->judgement.verdict.rule;
	bool is_new;

	if (!sandbox->leases) {
		refuse_answer(query, REASON_RESOLVE_FAILED, rule,
			      "there is no address to answer with");
		return;
	}
	if (lease_get(sandbox->leases, query->judgement.host, &reply->address,
		      &is_new)) {
		refuse_answer(query, REASON_LIMIT_NAMES, rule,
			      "no lease is left");
		return;
	}
	query->step = STEP_PUBLISH;
	query->wait = (struct wait){ .done = on_step };
	services->publish(services->ctx, sandbox, query->judgement.host,
			  &reply->address, &query->wait);
}

/* Under `serve`: our own address; of a wildcard, the one that was asked. */
static struct ip served_address(const struct query *query)
{
	static const struct ip any = { .len = 4 };
	const struct ip answer = query->filter->services->answer;

	return ip_equal(&answer, &any) && query->peer.dst.len == 4
		       ? query->peer.dst
		       : answer;
}

static void take_addresses(struct query *query)
{
	const struct services *services = query->filter->services;
	struct judgement *judgement = &query->judgement;
	const struct rule *rule = judgement->verdict.rule;
	struct verdict verdict =
		judge_addresses(services, query->policy, rule, &query->lookup);

	if (!verdict.allow) {
		judge_refuse(judgement, verdict.reason, verdict.rule);
		record_answer(query, query->lookup.ip, query->lookup.count,
			      "every address of the name is refused");
		return;
	}
	judgement->reply.rcode = DNS_NOERROR;
	judgement->reply.ttl =
		query->lookup.ttl < JUDGE_TTL ? query->lookup.ttl : JUDGE_TTL;
	if (!services->answer.len) {
		lease_address(query);
		return;
	}
	judgement->reply.address = served_address(query);
	answer_address(query);
}

static void on_resolved(struct wait *wait, int status)
{
	struct lookup *lookup = CONTAINER_OF(wait, struct lookup, wait);
	struct query *query = CONTAINER_OF(lookup, struct query, lookup);
	const struct rule *rule = query->judgement.verdict.rule;

	if (!status && lookup->count) {
		take_addresses(query);
	} else if (!status || status == -ENOENT) {
		query->judgement.reply.rcode =
			status ? DNS_NXDOMAIN : DNS_NOERROR;
		record_answer(query, NULL, 0, NULL);
	} else {
		refuse_answer(query, REASON_RESOLVE_FAILED, rule,
			      status == -ETIMEDOUT
				      ? "the name servers did not answer"
				      : "no name server gave a usable answer");
	}
}

static void resolve(struct query *query)
{
	const struct services *services = query->filter->services;

	query->step = STEP_RESOLVE;
	query->lookup = (struct lookup){ .wait.done = on_resolved };
	services->resolve(services->ctx, query->judgement.host, &query->lookup);
}

static void on_step(struct wait *wait, int status)
{
	struct query *query = CONTAINER_OF(wait, struct query, wait);

	if (query->step == STEP_PUBLISH) {
		if (!status)
			answer_address(query);
		else
			refuse_answer(query, REASON_RESOLVE_FAILED,
				      query->judgement.verdict.rule,
				      "the kernel did not take the lease");
		return;
	}
	if (status) {
		judge_refuse(&query->judgement, REASON_LEDGER_UNAVAILABLE,
			     NULL);
		query_reply(query);
	} else if (query->step == STEP_VERDICT && query->judgement.resolve) {
		resolve(query);
	} else {
		query_reply(query);
	}
}

/* --- the beginning ------------------------------------------------------- */

static void refuse_stranger(struct filter *filter, const struct dns_peer *peer,
			    enum dns_parse parsed,
			    const struct dns_query *question)
{
	const struct dns_reply reply = {
		.rcode = DNS_REFUSED,
		.ede = DNS_EDE_PROHIBITED,
		.ede_text = "this client is in no sandbox"
	};

	if (!tenants_stranger(filter->tenants) || parsed == DNS_PARSE_IGNORE)
		filter->reply(filter->ctx, peer, NULL, 0);
	else
		send_reply(filter, peer, question, &reply);
}

static void refuse_rate(struct filter *filter, const struct dns_peer *peer,
			enum dns_parse parsed, const struct dns_query *question,
			struct quota *quota)
{
	struct judgement judgement = { .resolve = false };

	if (quota)
		tenants_refuse(filter->tenants, quota);
	if (parsed == DNS_PARSE_IGNORE) {
		filter->reply(filter->ctx, peer, NULL, 0);
		return;
	}
	judge_refuse(&judgement, REASON_LIMIT_RATE, NULL);
	send_reply(filter, peer, question, &judgement.reply);
}

/* What is no question gets no answer: it may be one itself. */
static void ignore(struct filter *filter, const struct dns_peer *peer,
		   const struct sandbox *sandbox)
{
	const struct services *services = filter->services;
	const struct audit_event event = { .kind = EVENT_DNS_QUERY,
					   .sandbox = sandbox->id,
					   .verdict.reason = REASON_MALFORMED,
					   .door = DOOR_DNS,
					   .src_ip = peer->src,
					   .src_port = peer->src_port,
					   .dst_ip = peer->dst,
					   .dst_port = peer->dst_port,
					   .rcode = DNS_FORMERR,
					   .protocol =
						   peer->conn ? "tcp" : "udp",
					   .detail = "not a question" };

	services->record(services->ctx, &event, NULL);
	filter->reply(filter->ctx, peer, NULL, 0);
}

static struct query *query_new(struct filter *filter, struct quota *quota,
			       struct sandbox *sandbox,
			       const struct dns_peer *peer,
			       const struct dns_query *question)
{
	struct query *query;

	if (filter->in_flight >= QUERIES_MAX ||
	    quota->in_flight >= QUERIES_SANDBOX_MAX)
		return NULL;
	query = calloc(1, sizeof(*query));
	if (!query)
		return NULL;
	query->filter = filter;
	query->quota = quota;
	query->sandbox = sandbox;
	query->policy = policy_ref(sandbox->policy);
	query->peer = *peer;
	query->question = *question;
	query->began_ms = clock_ms();
	TAILQ_INSERT_TAIL(&filter->queries, query, entry);
	filter->in_flight++;
	quota->in_flight++;
	return query;
}

void filter_query(struct filter *filter, const struct dns_peer *peer,
		  const void *data, size_t len)
{
	const struct services *services = filter->services;
	struct audit_event event = { .kind = EVENT_DNS_QUERY };
	struct query *query = NULL;
	struct dns_query question;
	enum dns_parse parsed = dns_query_parse(data, len, &question);
	struct sandbox *sandbox =
		services->sandbox_of(services->ctx, peer->ifindex, &peer->src);
	uint64_t now = clock_ms();

	if (!sandbox) {
		refuse_stranger(filter, peer, parsed, &question);
		return;
	}
	struct quota *quota = tenants_quota(filter->tenants, sandbox, now);
	bool in_time =
		quota && services->rate(services->ctx, sandbox, RATE_DNS);
	if (in_time && parsed == DNS_PARSE_IGNORE) {
		ignore(filter, peer, sandbox);
		return;
	}
	if (in_time)
		query = query_new(filter, quota, sandbox, peer, &question);
	if (!query) {
		refuse_rate(filter, peer, parsed, &question, quota);
		return;
	}
	judge_question(services, sandbox, parsed, &query->question,
		       &query->judgement);
	query_record(query, STEP_VERDICT, &event);
}

static void forget(struct filter *filter, const void *conn,
		   const struct sandbox *sandbox)
{
	struct query *next;

	for (struct query *q = TAILQ_FIRST(&filter->queries); q; q = next) {
		next = TAILQ_NEXT(q, entry);
		if ((conn && q->peer.conn == conn) ||
		    (sandbox && q->sandbox == sandbox))
			query_cancel(q);
	}
}

void filter_forget(struct filter *filter, const void *conn)
{
	forget(filter, conn, NULL);
}

void filter_forget_sandbox(struct filter *filter, const struct sandbox *sandbox)
{
	forget(filter, NULL, sandbox);
}

int filter_new(struct event_base *base, const struct services *services,
	       void (*reply)(void *ctx, const struct dns_peer *peer,
			     const void *data, size_t len),
	       void *ctx, struct filter **ret_filter)
{
	struct filter *filter = calloc(1, sizeof(*filter));

	if (!filter)
		return -ENOMEM;
	filter->tenants = tenants_new(base, services);
	if (!filter->tenants) {
		free(filter);
		return -ENOMEM;
	}
	filter->services = services;
	filter->reply = reply;
	filter->ctx = ctx;
	TAILQ_INIT(&filter->queries);
	*ret_filter = filter;
	return 0;
}

void filter_free(struct filter *filter)
{
	if (!filter)
		return;
	while (!TAILQ_EMPTY(&filter->queries))
		query_cancel(TAILQ_FIRST(&filter->queries));
	tenants_free(filter->tenants);
	free(filter);
}
