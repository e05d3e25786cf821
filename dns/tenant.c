/* SPDX-License-Identifier: Apache-2.0
 *
 * tenant.c - a small hash table, swept as it is used.
 */
#include "dns/tenant.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "dns/message.h"

#define BUCKETS		64
#define IDLE_MS		60000
#define STRANGERS_PER_S 50

struct tenant {
	LIST_ENTRY(tenant) chain;
	struct quota quota;
};

struct tenants {
	const struct services *services;
	struct event *fold; /* while refusals wait for their record */
	struct quota strangers;
	struct bucket stranger_bucket;
	LIST_HEAD(, tenant) bucket[BUCKETS];
};

/* Those that went away are forgotten when another one of their bucket comes. */
static void sweep(struct tenants *tenants, size_t bucket, uint64_t now_ms)
{
	struct tenant *next;

	for (struct tenant *t = LIST_FIRST(&tenants->bucket[bucket]); t;
	     t = next) {
		next = LIST_NEXT(t, chain);
		if (t->quota.in_flight || t->quota.refused ||
		    now_ms - t->quota.used_ms < IDLE_MS)
			continue;
		LIST_REMOVE(t, chain);
		free(t);
	}
}

static struct tenant *find(struct tenants *tenants, uint32_t id)
{
	struct tenant *tenant;

	LIST_FOREACH (tenant, &tenants->bucket[id % BUCKETS], chain)
		if (tenant->quota.sandbox == id)
			return tenant;
	return NULL;
}

struct quota *tenants_quota(struct tenants *tenants,
			    const struct sandbox *sandbox, uint64_t now_ms)
{
	struct tenant *tenant = find(tenants, sandbox->id);
	size_t bucket = sandbox->id % BUCKETS;

	if (!tenant) {
		sweep(tenants, bucket, now_ms);
		tenant = calloc(1, sizeof(*tenant));
		if (!tenant)
			return NULL;
		tenant->quota.sandbox = sandbox->id;
		LIST_INSERT_HEAD(&tenants->bucket[bucket], tenant, chain);
	}
	tenant->quota.used_ms = now_ms;
	return &tenant->quota;
}

static void record(struct tenants *tenants, const struct quota *quota,
		   uint32_t count)
{
	const bool stranger = quota == &tenants->strangers;
	struct audit_event event = {
		.kind = EVENT_DNS_QUERY,
		.sandbox = quota->sandbox,
		.door = DOOR_DNS,
		.verdict.reason =
			stranger ? REASON_NOT_IN_POLICY : REASON_LIMIT_RATE,
		.rcode = stranger ? DNS_REFUSED : DNS_SERVFAIL,
		.count = count,
		.detail = stranger ? "from outside of every sandbox"
				   : "too many questions at a time",
	};

	if (count)
		tenants->services->record(tenants->services->ctx, &event, NULL);
}

void tenants_refuse(struct tenants *tenants, struct quota *quota)
{
	const struct timeval second = { .tv_sec = 1 };
	uint32_t count = quota_refuse(quota, clock_ms(CLOCK_MONOTONIC));

	if (count)
		record(tenants, quota, count);
	else if (!evtimer_pending(tenants->fold, NULL))
		evtimer_add(tenants->fold, &second);
}

bool tenants_stranger(struct tenants *tenants)
{
	tenants_refuse(tenants, &tenants->strangers);
	return bucket_take(&tenants->stranger_bucket, STRANGERS_PER_S,
			   clock_ms(CLOCK_MONOTONIC));
}

static void flush(struct tenants *tenants)
{
	uint64_t now_ms = clock_ms(CLOCK_MONOTONIC);
	struct tenant *tenant;

	record(tenants, &tenants->strangers,
	       quota_flush(&tenants->strangers, now_ms));
	for (size_t i = 0; i < BUCKETS; i++)
		LIST_FOREACH (tenant, &tenants->bucket[i], chain)
			record(tenants, &tenant->quota,
			       quota_flush(&tenant->quota, now_ms));
}

static void on_fold(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	flush(arg);
}

struct tenants *tenants_new(struct event_base *base,
			    const struct services *services)
{
	struct tenants *tenants = calloc(1, sizeof(*tenants));

	if (!tenants)
		return NULL;
	tenants->fold = evtimer_new(base, on_fold, tenants);
	if (!tenants->fold) {
		free(tenants);
		return NULL;
	}
	tenants->services = services;
	bucket_init(&tenants->stranger_bucket, STRANGERS_PER_S,
		    clock_ms(CLOCK_MONOTONIC));
	return tenants;
}

void tenants_free(struct tenants *tenants)
{
	struct tenant *tenant;

	if (!tenants)
		return;
	flush(tenants);
	for (size_t i = 0; i < BUCKETS; i++) {
		while ((tenant = LIST_FIRST(&tenants->bucket[i]))) {
			LIST_REMOVE(tenant, chain);
			free(tenant);
		}
	}
	event_free(tenants->fold);
	free(tenants);
}
