/* SPDX-License-Identifier: Apache-2.0
 *
 * repeat.c - rows by name, type and who asks whom; the oldest is over first.
 *
 * The verdict is asked for each time: a row is only what comes after it. A row
 * lasts a second from the answer that it repeats, however often that is, so
 * that nothing is answered that is older.
 */
#include "dns/repeat.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "dns/server.h"

#define BUCKETS	 4096 /* a power of two */
#define LASTS_MS 1000

struct row {
	LIST_ENTRY(row) chain;
	TAILQ_ENTRY(row) age;
	int64_t until_ms;
	unsigned count;
	const struct sandbox *sandbox;
	struct policy *policy; /* keeps the rule alive */
	uint16_t type;
	struct dns_peer peer; /* who asked last */
	struct judgement judgement;
};

struct repeats {
	const struct services *services;
	struct event *timer;
	struct hash_key key;
	size_t count;
	TAILQ_HEAD(, row) by_age;
	LIST_HEAD(, row) bucket[BUCKETS];
};

static void tell(struct repeats *r, const struct row *row)
{
	const struct judgement *judgement = &row->judgement;
	const struct dns_reply *reply = &judgement->reply;
	const struct query_note note = {
		.sandbox = row->sandbox,
		.verdict = judgement->verdict,
		.peer = &row->peer,
		.host = judgement->host,
		.type = row->type,
		.rcode = reply->rcode,
	};
	struct audit_event event = { .kind = reply->addresses ? EVENT_DNS_ANSWER
							      : EVENT_DNS_QUERY,
				     .count = row->count,
				     .detail = "more like the one before" };

	if (reply->addresses)
		event.answer[event.answers++] = reply->address[0];
	query_note(&note, &event);
	r->services->record(r->services->ctx, &event, NULL);
}

static void drop(struct repeats *r, struct row *row)
{
	LIST_REMOVE(row, chain);
	TAILQ_REMOVE(&r->by_age, row, age);
	r->count--;
	if (row->count)
		tell(r, row);
	policy_unref(row->policy);
	free(row);
}

static void wait_for_oldest(struct repeats *r)
{
	const struct row *row = TAILQ_FIRST(&r->by_age);
	int64_t ms = row ? row->until_ms - now_ms() : 0;
	struct timeval tv;

	if (!row)
		return;
	if (ms < 1)
		ms = 1;
	tv = (struct timeval){ .tv_sec = ms / 1000,
			       .tv_usec = (ms % 1000) * 1000 };
	event_add(r->timer, &tv);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct repeats *r = arg;
	const int64_t now = now_ms();
	struct row *row;

	(void)fd;
	(void)what;
	while ((row = TAILQ_FIRST(&r->by_age)) && row->until_ms <= now)
		drop(r, row);
	wait_for_oldest(r);
}

/* Under `serve` there are several clients, and the answer may be the address
 * that was asked. */
static size_t bucket_of(const struct repeats *r, const char *host,
			uint16_t type, const struct dns_peer *peer)
{
	return (hash_bytes(&r->key, host, strlen(host)) +
		hash_bytes(&r->key, peer->src.byte, sizeof(peer->src.byte)) +
		type) %
	       BUCKETS;
}

static struct row *find(const struct repeats *r, const struct sandbox *sandbox,
			const char *host, uint16_t type,
			const struct dns_peer *peer)
{
	struct row *row;

	LIST_FOREACH (row, &r->bucket[bucket_of(r, host, type, peer)], chain)
		if (row->sandbox == sandbox && row->type == type &&
		    ip_equal(&row->peer.src, &peer->src) &&
		    ip_equal(&row->peer.dst, &peer->dst) &&
		    strcmp(row->judgement.host, host) == 0)
			return row;
	return NULL;
}

const struct dns_reply *repeats_find(struct repeats *r,
				     const struct sandbox *sandbox,
				     const struct dns_peer *peer,
				     const struct dns_query *question)
{
	char host[HOST_MAX + 1];
	struct row *row = NULL;

	if (peer->conn || !r->count || question->class != DNS_IN ||
	    !name_to_host(&question->name, host))
		return NULL;
	row = find(r, sandbox, host, question->type, peer);
	if (!row || row->until_ms <= now_ms())
		return NULL;
	if (row->policy != sandbox->policy ||
	    !judge_stands(row->policy, &row->judgement, time(NULL))) {
		drop(r, row);
		return NULL;
	}
	row->peer = *peer;
	row->count++;
	return &row->judgement.reply;
}

/* What the policy says of the name: that it is refused, or one address of ours,
 * which means the name for as long as the sandbox lives. */
static bool may_repeat(const struct services *services,
		       const struct query *query)
{
	const struct judgement *judgement = &query->judgement;
	const struct dns_reply *reply = &judgement->reply;

	if (query->peer.conn || !judgement->host[0] ||
	    query->question.class != DNS_IN ||
	    !judge_stands(query->policy, judgement, time(NULL)))
		return false;
	if (judgement->errand == ERRAND_NONE)
		return reply->kind == DNS_REPLY_EMPTY;
	return reply->kind == DNS_REPLY_ADDRESS && reply->addresses == 1 &&
	       reply->ttl > 1 && !judge_real(services, query->policy);
}

void repeats_put(struct repeats *r, const struct query *query)
{
	struct row *row;

	if (r->count == DNS_SERVER_REPEATS_MAX ||
	    !may_repeat(r->services, query))
		return;
	row = find(r, query->sandbox, query->judgement.host,
		   query->question.type, &query->peer);
	if (row)
		drop(r, row);
	row = calloc(1, sizeof(*row));
	if (!row)
		return;
	row->until_ms = now_ms() + LASTS_MS;
	row->sandbox = query->sandbox;
	row->policy = policy_ref(query->policy);
	row->type = query->question.type;
	row->peer = query->peer;
	row->judgement = query->judgement;
	if (row->judgement.reply.ede_text)
		row->judgement.reply.ede_text = row->judgement.ede_text;
	LIST_INSERT_HEAD(&r->bucket[bucket_of(r, row->judgement.host, row->type,
					      &row->peer)],
			 row, chain);
	TAILQ_INSERT_TAIL(&r->by_age, row, age);
	if (r->count++ == 0)
		wait_for_oldest(r);
}

void repeats_end(struct repeats *r, const struct sandbox *sandbox)
{
	struct row *next;

	for (struct row *row = TAILQ_FIRST(&r->by_age); row; row = next) {
		next = TAILQ_NEXT(row, age);
		if (!sandbox || row->sandbox == sandbox)
			drop(r, row);
	}
}

struct repeats *repeats_new(struct event_base *base,
			    const struct services *services)
{
	struct repeats *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->services = services;
	TAILQ_INIT(&r->by_age);
	r->timer = evtimer_new(base, on_timer, r);
	if (!r->timer || hash_key_init(&r->key)) {
		repeats_free(r);
		return NULL;
	}
	return r;
}

void repeats_free(struct repeats *r)
{
	if (!r)
		return;
	repeats_end(r, NULL);
	if (r->timer)
		event_free(r->timer);
	free(r);
}
