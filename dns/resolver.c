/* SPDX-License-Identifier: Apache-2.0
 *
 * resolver.c - who is asked, how often, and who waits for it.
 *
 * A job is one name that somebody waits for. It has two legs, A and AAAA, which
 * run side by side; each asks one server after the other until one gives a
 * usable answer. A job that has addresses from one leg gives the other a little
 * more time and then does without it: some servers never answer AAAA.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "dns/resolver_impl.h"

#define CACHE_MAX 4096
/* What the slower leg gets once the other one has addresses. IPv4 is worth a
 * second try. */
#define GRACE_A_MS    2500
#define GRACE_AAAA_MS 500

struct job {
	LIST_ENTRY(job) chain;
	struct resolver *resolver;
	struct leg leg[2]; /* A, AAAA */
	struct event *grace;
	struct wait_list waiters;
	unsigned generation; /* of the resolver, when it was asked */
	bool finishing;
	char host[HOST_MAX + 1];
};

/* --- jobs ---------------------------------------------------------------- */

static void job_unlink(struct job *job)
{
	for (size_t i = 0; i < ARRAY_SIZE(job->leg); i++)
		leg_cancel(&job->leg[i]);
	event_del(job->grace);
	LIST_REMOVE(job, chain);
	job->resolver->jobs--;
}

static void job_free(struct job *job)
{
	if (job->grace)
		event_free(job->grace);
	free(job);
}

static void answer(struct lookup *lookup, const struct result *result)
{
	lookup->count = result->count;
	lookup->ttl = result->ttl;
	memcpy(lookup->ip, result->ip, sizeof(lookup->ip));
	lookup->wait.done(&lookup->wait, result->status);
}

/* Waiters may look up, cancel others, or be freed in their callback: the job is
 * out of the table by then, and its list is read anew each time. */
static void job_finish(struct job *job, const struct result *result)
{
	struct wait *wait;

	job_unlink(job);
	job->finishing = true;
	while ((wait = TAILQ_FIRST(&job->waiters))) {
		TAILQ_REMOVE(&job->waiters, wait, entry);
		wait->owner = NULL;
		answer(CONTAINER_OF(wait, struct lookup, wait), result);
	}
	job_free(job);
}

/* A first, then AAAA, in turn, so that both have room. */
static void gather(const struct job *job, struct result *result)
{
	const struct dns_answer *a = &job->leg[0].answer;
	const struct dns_answer *aaaa = &job->leg[1].answer;

	for (size_t i = 0; i < LOOKUP_MAX; i++) {
		if (i < a->count && result->count < LOOKUP_MAX)
			result->ip[result->count++] = a->ip[i];
		if (i < aaaa->count && result->count < LOOKUP_MAX)
			result->ip[result->count++] = aaaa->ip[i];
	}
}

/* Addresses from either leg are an answer. Without any, a leg that failed makes
 * the whole fail: it might have had some. */
static struct result job_result(const struct job *job)
{
	struct result result = { .ttl = TTL_MAX };
	bool failed = false, timed_out = false, missing = false;

	gather(job, &result);
	for (size_t i = 0; i < ARRAY_SIZE(job->leg); i++) {
		const struct leg *leg = &job->leg[i];

		if (!leg->done || leg->status) {
			failed = true;
			timed_out |= leg->status == -ETIMEDOUT;
			continue;
		}
		missing |= leg->answer.rcode == DNS_NXDOMAIN;
		if ((leg->answer.count || !result.count) &&
		    leg->answer.ttl < result.ttl)
			result.ttl = leg->answer.ttl;
	}
	if (result.count) {
		/* Half an answer is not kept for long. */
		result.ttl = ttl_clamp(result.ttl, TTL_MIN,
				       failed ? TTL_MIN : TTL_MAX);
		return result;
	}
	result.ttl = ttl_clamp(result.ttl, TTL_MIN, NEGATIVE_MAX);
	if (failed)
		result.status = timed_out ? -ETIMEDOUT : -EIO;
	else if (missing)
		result.status = -ENOENT;
	return result;
}

static void job_conclude(struct job *job)
{
	struct result result = job_result(job);

	if ((result.status == 0 || result.status == -ENOENT) &&
	    job->generation == job->resolver->generation)
		cache_put(job->resolver->cache, job->host,
			  clock_ms(CLOCK_MONOTONIC), &result);
	job_finish(job, &result);
}

static void on_grace(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	job_conclude(arg);
}

static struct job *job_of(struct leg *leg)
{
	return leg->type == DNS_A ? CONTAINER_OF(leg, struct job, leg[0])
				  : CONTAINER_OF(leg, struct job, leg[1]);
}

/* A leg has come to its end. */
static void on_leg(struct leg *leg, const struct dns_records *records)
{
	struct job *job = job_of(leg);
	const struct leg *other = &job->leg[leg->type == DNS_A];
	unsigned grace = other->type == DNS_A ? GRACE_A_MS : GRACE_AAAA_MS;
	const struct timeval limit = { .tv_sec = grace / 1000,
				       .tv_usec = (suseconds_t)(grace % 1000) *
						  1000 };

	(void)records;
	if (other->done)
		job_conclude(job);
	else if (!leg->status && leg->answer.count)
		evtimer_add(job->grace, &limit);
}

static struct job_list *bucket_of(struct resolver *resolver, const char *host)
{
	return &resolver->bucket[resolver_bucket(resolver, host)];
}

static struct job *job_find(struct resolver *resolver, const char *host)
{
	struct job_list *bucket = bucket_of(resolver, host);
	struct job *job;

	LIST_FOREACH (job, bucket, chain)
		if (strcmp(job->host, host) == 0)
			return job;
	return NULL;
}

static struct job *job_new(struct resolver *resolver, const char *host)
{
	static const uint16_t type[] = { DNS_A, DNS_AAAA };
	struct job_list *bucket = bucket_of(resolver, host);
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->grace = evtimer_new(resolver->base, on_grace, job);
	if (!job->grace) {
		job_free(job);
		return NULL;
	}
	job->resolver = resolver;
	job->generation = resolver->generation;
	TAILQ_INIT(&job->waiters);
	memcpy(job->host, host, strlen(host) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(type); i++)
		job->leg[i] = (struct leg){ .servers = &resolver->servers,
					    .host = job->host,
					    .type = type[i],
					    .ended = on_leg };
	LIST_INSERT_HEAD(bucket, job, chain);
	resolver->jobs++;
	return job;
}

/* --- the resolver -------------------------------------------------------- */

void resolver_lookup(struct resolver *resolver, const char *host,
		     struct lookup *lookup)
{
	struct result result = { .status = -EIO };
	struct job *job;

	lookup->wait.owner = NULL;
	if (cache_get(resolver->cache, host, clock_ms(CLOCK_MONOTONIC),
		      &result)) {
		answer(lookup, &result);
		return;
	}
	job = job_find(resolver, host);
	if (job) {
		TAILQ_INSERT_TAIL(&job->waiters, &lookup->wait, entry);
		lookup->wait.owner = job;
		return;
	}
	if (resolver->servers.count && resolver->jobs < JOBS_MAX)
		job = job_new(resolver, host);
	if (!job) {
		answer(lookup, &result);
		return;
	}
	TAILQ_INSERT_TAIL(&job->waiters, &lookup->wait, entry);
	lookup->wait.owner = job;
	leg_ask(&job->leg[0]);
	/* The first may have failed at once, the job lives until both have. */
	leg_ask(&job->leg[1]);
}

/* A job that nobody waits for any more ends: who asks and goes away must not
 * pile them up. */
void resolver_cancel(struct resolver *resolver, struct lookup *lookup)
{
	struct job *job = lookup->wait.owner;

	(void)resolver;
	if (!job)
		return;
	TAILQ_REMOVE(&job->waiters, &lookup->wait, entry);
	lookup->wait.owner = NULL;
	if (job->finishing || !TAILQ_EMPTY(&job->waiters))
		return;
	job_unlink(job);
	job_free(job);
}

static bool same_servers(const struct servers *servers,
			 const struct endpoint *server, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!ip_equal(&server[i].ip, &servers->at[i].ip) ||
		    server[i].port != servers->at[i].port)
			return false;
	return n == servers->count;
}

void resolver_set_servers(struct resolver *resolver,
			  const struct endpoint *server, size_t n)
{
	struct servers *servers = &resolver->servers;

	if (n > SERVERS_MAX)
		n = SERVERS_MAX;
	if (same_servers(servers, server, n))
		return;
	if (n)
		memcpy(servers->at, server, n * sizeof(*server));
	servers->count = n;
	/* Other servers may know other names. */
	resolver_flush(resolver);
}

void resolver_flush(struct resolver *resolver)
{
	resolver->generation++;
	cache_flush(resolver->cache);
}

int resolver_new(struct event_base *base, struct resolver **ret_resolver)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));

	if (!resolver)
		return -ENOMEM;
	resolver->base = base;
	resolver->cache = cache_new(CACHE_MAX);
	resolver->servers.upstream = upstream_new(base);
	if (!resolver->cache || !resolver->servers.upstream ||
	    hash_key_init(&resolver->key)) {
		resolver_free(resolver);
		return -ENOMEM;
	}
	*ret_resolver = resolver;
	return 0;
}

void resolver_free(struct resolver *resolver)
{
	const struct result result = { .status = -EIO };
	struct job *job;

	if (!resolver)
		return;
	resolver->servers.count = 0; /* waiters that ask again get -EIO */
	for (size_t i = 0; i < JOB_BUCKETS; i++)
		while ((job = LIST_FIRST(&resolver->bucket[i])))
			job_finish(job, &result);
	resolver_end_records(resolver);
	upstream_free(resolver->servers.upstream);
	cache_free(resolver->cache);
	free(resolver);
}
