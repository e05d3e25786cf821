/* SPDX-License-Identifier: Apache-2.0
 *
 * filter.c - who asks, how much, and whose questions are under way.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "dns/query.h"
#include "dns/repeat.h"
#include "dns/server.h"

#define QUERIES_MAX	    DNS_SERVER_QUERIES_MAX
#define QUERIES_SANDBOX_MAX 256

static void send_reply(struct filter *filter, const struct dns_peer *peer,
		       const struct dns_query *question,
		       const struct dns_reply *reply)
{
	uint8_t data[DNS_REPLY_TCP_MAX];
	size_t len = query_build(peer, question, reply, data);

	filter->reply(filter->ctx, peer, data, len);
}

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
	struct judgement judgement = { .errand = ERRAND_NONE };

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
	query->peer = *peer;
	query->question = *question;
	query->began_ms = clock_ms(CLOCK_MONOTONIC);
	query->rechecked = filter->rechecks;
	TAILQ_INSERT_TAIL(&filter->queries, query, entry);
	filter->in_flight++;
	quota->in_flight++;
	return query;
}

void filter_query(struct filter *filter, const struct dns_peer *peer,
		  const void *data, size_t len)
{
	const struct services *services = filter->services;
	const struct dns_reply *again = NULL;
	struct query *query = NULL;
	struct dns_query question;
	enum dns_parse parsed = dns_query_parse(data, len, &question);
	struct sandbox *sandbox =
		services->sandbox_of(services->ctx, peer->ifindex, &peer->src);
	uint64_t now = clock_ms(CLOCK_MONOTONIC);

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
	if (in_time && parsed == DNS_PARSE_OK)
		again = repeats_find(filter->repeats, sandbox, peer, &question);
	if (again) {
		send_reply(filter, peer, &question, again);
		return;
	}
	if (in_time)
		query = query_new(filter, quota, sandbox, peer, &question);
	if (!query) {
		refuse_rate(filter, peer, parsed, &question, quota);
		return;
	}
	query_begin(query, parsed);
}

bool filter_room(struct filter *filter, struct wait *wait)
{
	return services_room(filter->services, wait);
}

void filter_room_cancel(struct filter *filter, struct wait *wait)
{
	services_room_cancel(filter->services, wait);
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
	repeats_end(filter->repeats, sandbox);
}

void filter_forget_repeats(struct filter *filter)
{
	repeats_end(filter->repeats, NULL);
}

/* The next one that this recheck has not seen. Whoever gets a reply may forget
 * questions, so the list is read anew each time. */
static struct query *next_unseen(struct filter *filter,
				 const struct sandbox *sandbox)
{
	struct query *query;

	TAILQ_FOREACH (query, &filter->queries, entry)
		if (query->sandbox == sandbox &&
		    query->rechecked != filter->rechecks)
			break;
	return query;
}

void filter_recheck(struct filter *filter, const struct sandbox *sandbox)
{
	struct query *query;

	repeats_end(filter->repeats, sandbox);
	filter->rechecks++;
	while ((query = next_unseen(filter, sandbox))) {
		query->rechecked = filter->rechecks;
		if (query_stale(query))
			query_again(query);
	}
}

int filter_new(struct event_base *base, const struct services *services,
	       void (*reply)(void *ctx, const struct dns_peer *peer,
			     const void *data, size_t len),
	       void *ctx, struct filter **ret_filter)
{
	struct filter *filter = calloc(1, sizeof(*filter));

	if (!filter)
		return -ENOMEM;
	TAILQ_INIT(&filter->queries);
	filter->tenants = tenants_new(base, services);
	filter->repeats = repeats_new(base, services);
	if (!filter->tenants || !filter->repeats) {
		filter_free(filter);
		return -ENOMEM;
	}
	filter->services = services;
	filter->reply = reply;
	filter->ctx = ctx;
	*ret_filter = filter;
	return 0;
}

void filter_free(struct filter *filter)
{
	if (!filter)
		return;
	while (!TAILQ_EMPTY(&filter->queries))
		query_cancel(TAILQ_FIRST(&filter->queries));
	repeats_free(filter->repeats);
	tenants_free(filter->tenants);
	free(filter);
}
