/* SPDX-License-Identifier: Apache-2.0
 *
 * query.c - a question's verdict, its records, and its end.
 */
#include "dns/query.h"

#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "dns/repeat.h"

/* --- the end ------------------------------------------------------------- */

size_t query_build(const struct dns_peer *peer,
		   const struct dns_query *question,
		   const struct dns_reply *reply, uint8_t *buf)
{
	size_t cap = DNS_REPLY_TCP_MAX;

	if (!peer->conn)
		cap = question->udp_size < DNS_REPLY_MAX ? question->udp_size
							 : DNS_REPLY_MAX;
	return dns_reply_build(question, reply, buf, cap);
}

static void query_free(struct query *query)
{
	TAILQ_REMOVE(&query->filter->queries, query, entry);
	query->filter->in_flight--;
	query->quota->in_flight--;
	policy_unref(query->policy);
	free(query->records);
	free(query);
}

/* Whoever gets the reply may forget the connection that it came by. */
static void query_reply(struct query *query)
{
	struct filter *filter = query->filter;
	const struct dns_peer peer = query->peer;
	uint8_t data[DNS_REPLY_TCP_MAX];
	size_t len = query_build(&peer, &query->question,
				 &query->judgement.reply, data);

	query_free(query);
	filter->reply(filter->ctx, &peer, data, len);
}

static void stop_waiting(struct query *query)
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
	case STEP_RECORDS:
		services->resolve_records_cancel(services->ctx,
						 &query->records->lookup);
		break;
	case STEP_PUBLISH:
		services->publish_cancel(services->ctx, &query->wait);
		break;
	}
}

void query_cancel(struct query *query)
{
	stop_waiting(query);
	query_free(query);
}

/* --- records ------------------------------------------------------------- */

static void on_recorded(struct wait *wait, int status);

void query_note(const struct query_note *note, struct audit_event *event)
{
	const struct rule *rule = note->verdict.rule;

	event->sandbox = note->sandbox->id;
	event->verdict = note->verdict;
	event->door = DOOR_DNS;
	event->rule = rule ? rule_origin(rule) : NULL;
	event->rule_text = rule ? rule_text(rule) : NULL;
	event->host = note->host;
	event->src_ip = note->peer->src;
	event->src_port = note->peer->src_port;
	event->dst_ip = note->peer->dst;
	event->dst_port = note->peer->dst_port;
	event->protocol = note->peer->conn ? "tcp" : "udp";
	event->qtype = note->type;
	event->rcode = note->rcode;
}

/* Hands the record over and goes to @step. */
static void record(struct query *query, enum step step,
		   struct audit_event *event)
{
	const struct services *services = query->filter->services;
	const struct judgement *judgement = &query->judgement;
	struct query_note note = {
		.sandbox = query->sandbox,
		.verdict = judgement->verdict,
		.peer = &query->peer,
		.type = query->question.type,
		.rcode = judgement->reply.rcode,
	};
	char text[NAME_TEXT_MAX];

	if (judgement->host[0])
		note.host = judgement->host;
	else if (query->question.name.len)
		note.host = name_format(&query->question.name, text);
	query_note(&note, event);
	if (!event->detail)
		event->detail = judgement->detail;
	query->step = step;
	query->wait = (struct wait){ .done = on_recorded };
	services->record(services->ctx, event, &query->wait);
}

void query_answer(struct query *query, const struct ip *ip, size_t n,
		  const char *detail)
{
	struct audit_event event = { .kind = EVENT_DNS_ANSWER,
				     .duration_ms = clock_ms(CLOCK_MONOTONIC) -
						    query->began_ms,
				     .detail = detail };

	for (size_t i = 0; i < n && i < EVENT_ANSWERS_MAX; i++)
		event.answer[event.answers++] = ip[i];
	record(query, STEP_ANSWER, &event);
}

void query_refuse(struct query *query, enum reason reason, const char *detail)
{
	judge_refuse(&query->judgement, reason, query->judgement.verdict.rule);
	query_answer(query, NULL, 0, detail);
}

/* --- the verdict --------------------------------------------------------- */

static void judge(struct query *query, enum dns_parse parsed)
{
	struct policy *old = query->policy;

	query->policy = policy_ref(query->sandbox->policy);
	judge_question(query->filter->services, query->sandbox, parsed,
		       &query->question, time(NULL), &query->judgement);
	policy_unref(old);
}

static void record_verdict(struct query *query)
{
	struct audit_event event = { .kind = EVENT_DNS_QUERY };

	record(query, STEP_VERDICT, &event);
}

void query_begin(struct query *query, enum dns_parse parsed)
{
	judge(query, parsed);
	record_verdict(query);
}

bool query_stale(const struct query *query)
{
	return query->judgement.by_policy &&
	       (query->policy != query->sandbox->policy ||
		!judge_stands(query->policy, &query->judgement, time(NULL)));
}

/* What may have been asked under the old verdict is forgotten. An answer that
 * was recorded and never sent is followed by the record of what was. */
void query_rejudge(struct query *query)
{
	bool replaced = query->policy != query->sandbox->policy;
	struct judgement *judgement = &query->judgement;

	free(STEAL(query->records));
	judge(query, DNS_PARSE_OK);
	if (judgement->verdict.allow) {
		record_verdict(query);
		return;
	}
	uint8_t rcode = judgement->reply.rcode;
	if (replaced)
		judge_refuse(judgement, REASON_POLICY_REVOKED,
			     judgement->verdict.rule);
	judgement->reply.rcode = rcode;
	query_answer(query, NULL, 0, "it was allowed when it was asked");
}

void query_again(struct query *query)
{
	stop_waiting(query);
	query_rejudge(query);
}

static void on_recorded(struct wait *wait, int status)
{
	struct query *query = CONTAINER_OF(wait, struct query, wait);

	if (status) {
		repeats_end(query->filter->repeats, NULL);
		judge_refuse(&query->judgement, REASON_LEDGER_UNAVAILABLE,
			     NULL);
		query_reply(query);
	} else if (query_stale(query)) {
		query_rejudge(query);
	} else if (query->step == STEP_VERDICT &&
		   query->judgement.errand != ERRAND_NONE) {
		query_resolve(query);
	} else {
		repeats_put(query->filter->repeats, query);
		query_reply(query);
	}
}
