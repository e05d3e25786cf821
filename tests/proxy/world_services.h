/* SPDX-License-Identifier: Apache-2.0
 *
 * world_services.h - the services that the doors call. They are made here: they
 * remember records, and answer as the fields of struct world say.
 */
#ifndef TESTS_PROXY_WORLD_SERVICES_H
#define TESTS_PROXY_WORLD_SERVICES_H

#include <errno.h>
#include <event2/event.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "policy/services.h"
#include "proxy/listener.h"

#define ORIGIN	   "127.0.0.9"	/* where ok.test is */
#define LEASE	   "127.0.0.2"	/* leased to ok.test */
#define UNLEASED   "127.0.0.3"	/* transparent too, but nobody's */
#define LITERAL	   "127.0.0.10" /* in the policy as an address */
#define PROXY	   "127.0.0.1"
#define PROXY_PORT 3128

#define NOTES_MAX 64

/* What is kept of an event. */
struct note {
	enum event_kind kind;
	bool allow, ech;
	enum reason reason, observed;
	enum door door;
	uint32_t count;
	char rule_text[80];
	struct ip ip;
	char host[300], sni[300], detail[300], protocol[16];
	char target[300];
	uint64_t up, down;
	uint16_t port;
};

struct world {
	struct event_base *base;
	struct wheel *wheel; /* of an exchange alone */
	struct services services;
	struct sandbox sandbox;
	struct listener *listener[8];
	size_t listeners;
	struct note note[NOTES_MAX];
	size_t notes;
	uint64_t flows;
	bool stranger, ledger_dead;
	bool ledger_silent; /* neither accepts nor fails */
	unsigned cancelled;
	int resolve_status; /* 0: ORIGIN */
	int origin;	    /* listens, or -1 */
	/* More connections may come this second; -1: any number. */
	int rate;
	/* Budgets of the sandbox, and by rule_index() + 1 of a rule; 0: none.
	 */
	uint64_t used[2][8], limit[2][8];
	enum reason meters_status;
	/* What the resolver said for UNLEASED. */
	const char *at[4];
	char resolved[300]; /* the last name that was looked up */
	bool resolver_silent;
	struct lookup *lookup; /* the last one it left without an answer */
	const char *answer[4]; /* addresses; none: ORIGIN */
};

static inline void copy_text(char *to, size_t cap, const char *from)
{
	snprintf(to, cap, "%s", from ? from : "");
}

static inline void world_record(void *ctx, const struct audit_event *event,
				struct wait *wait)
{
	struct world *w = ctx;

	if (w->notes < NOTES_MAX) {
		struct note *n = &w->note[w->notes++];

		n->kind = event->kind;
		n->allow = event->verdict.allow;
		n->reason = event->verdict.reason;
		n->ech = event->ech;
		n->observed = event->verdict.observed;
		n->count = event->count;
		n->ip = event->dst_ip;
		copy_text(n->rule_text, sizeof(n->rule_text), event->rule_text);
		n->door = event->door;
		n->up = event->bytes_up;
		n->down = event->bytes_down;
		n->port = event->dst_port;
		copy_text(n->host, sizeof(n->host), event->host);
		copy_text(n->sni, sizeof(n->sni), event->sni);
		copy_text(n->target, sizeof(n->target), event->target);
		copy_text(n->detail, sizeof(n->detail), event->detail);
		copy_text(n->protocol, sizeof(n->protocol), event->protocol);
	}
	if (wait && !w->ledger_silent)
		wait->done(wait, w->ledger_dead ? -EIO : 0);
}

static inline void world_record_cancel(void *ctx, struct wait *wait)
{
	struct world *w = ctx;

	(void)wait;
	w->cancelled++;
}

static inline void world_resolved(struct world *w, struct lookup *lookup)
{
	ip_parse(ORIGIN, &lookup->ip[0]);
	lookup->count = w->resolve_status ? 0 : 1;
	for (size_t i = 0; i < ARRAY_SIZE(w->answer) && w->answer[i]; i++) {
		ip_parse(w->answer[i], &lookup->ip[i]);
		lookup->count = i + 1;
	}
	lookup->ttl = 60;
	lookup->wait.done(&lookup->wait, w->resolve_status);
}

static inline void world_resolve(void *ctx, const char *host,
				 struct lookup *lookup)
{
	struct world *w = ctx;

	copy_text(w->resolved, sizeof(w->resolved), host);
	w->lookup = lookup;
	if (!w->resolver_silent)
		world_resolved(w, lookup);
}

static inline void world_resolve_cancel(void *ctx, struct lookup *lookup)
{
	struct world *w = ctx;

	(void)lookup;
	w->cancelled++;
}

static inline enum reason world_admit(void *ctx, struct sandbox *sandbox,
				      const char *host, const struct rule *rule)
{
	(void)ctx;
	(void)sandbox;
	(void)host;
	(void)rule;
	return REASON_RULE;
}

static inline const char *world_lease_of(void *ctx, struct sandbox *sandbox,
					 const struct ip *ip)
{
	char text[IP_TEXT_MAX];

	(void)ctx;
	(void)sandbox;
	return strcmp(ip_format(ip, text), LEASE) ? NULL : "ok.test";
}

static inline bool world_rate(void *ctx, struct sandbox *sandbox,
			      enum rate rate)
{
	struct world *w = ctx;

	(void)sandbox;
	assert_int_equal(rate, RATE_CONNECTIONS);
	if (w->rate > 0)
		w->rate--;
	else if (!w->rate)
		return false;
	return true;
}

/* Counted where there is a limit, else not at all. */
static inline enum reason world_meters(void *ctx, struct sandbox *sandbox,
				       const struct rule *rule,
				       struct meters *ret_meters)
{
	struct world *w = ctx;
	size_t row = rule ? rule_index(rule) + 1 : 0;

	(void)sandbox;
	assert_in_range(row, 0, 7);
	for (int way = UP; way <= DOWN; way++) {
		if (w->limit[way][0])
			ret_meters->at[way][METER_SESSION] =
				(struct meter){ &w->used[way][0],
						w->limit[way][0] };
		if (row && w->limit[way][row])
			ret_meters->at[way][METER_RULE] =
				(struct meter){ &w->used[way][row],
						w->limit[way][row] };
	}
	return w->meters_status;
}

static inline size_t world_names_at(void *ctx, struct sandbox *sandbox,
				    const struct ip *ip, const char *ret_name[],
				    size_t max)
{
	const struct world *w = ctx;
	char text[IP_TEXT_MAX];
	size_t n = 0;

	(void)sandbox;
	if (strcmp(ip_format(ip, text), UNLEASED))
		return 0;
	while (n < ARRAY_SIZE(w->at) && w->at[n] && n < max) {
		ret_name[n] = w->at[n];
		n++;
	}
	return n;
}

static inline struct sandbox *world_sandbox_of(void *ctx, uint32_t ifindex,
					       const struct ip *ip)
{
	struct world *w = ctx;

	(void)ip;
	/* everything here comes by the loopback interface */
	return w->stranger || ifindex != if_nametoindex("lo") ? NULL
							      : &w->sandbox;
}

static inline uint64_t world_flow_id(void *ctx)
{
	struct world *w = ctx;

	return ++w->flows;
}

static inline const struct cidr *world_uplink(void *ctx, size_t *ret_count)
{
	(void)ctx;
	*ret_count = 0;
	return NULL;
}

static inline const struct endpoint *world_self(void *ctx, size_t *ret_count)
{
	(void)ctx;
	*ret_count = 0;
	return NULL;
}

static inline const struct note *note_find(const struct world *w,
					   enum event_kind kind)
{
	for (size_t i = w->notes; i-- > 0;)
		if (w->note[i].kind == kind)
			return &w->note[i];
	return NULL;
}

/* The last verdict is this refusal. */
static inline void assert_refused(const struct world *w, enum reason reason,
				  const char *host)
{
	const struct note *n = note_find(w, EVENT_FLOW_OPEN);

	assert_non_null(n);
	assert_false(n->allow);
	if (n->reason != reason)
		fail_msg("reason %d (%s), not %d", (int)n->reason, n->detail,
			 (int)reason);
	assert_string_equal(n->host, host);
}

#endif
