/* SPDX-License-Identifier: Apache-2.0
 *
 * resolver_records.c - records other than addresses: asked for seldom, so
 * nothing is kept; equal questions at one time are asked once.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "dns/resolver_impl.h"

struct record_job {
	LIST_ENTRY(record_job) chain;
	struct resolver *resolver;
	struct leg leg;
	struct wait_list waiters;
	bool finishing;
	char host[HOST_MAX + 1];
};

static void unlink_job(struct record_job *job)
{
	leg_cancel(&job->leg);
	LIST_REMOVE(job, chain);
	job->resolver->jobs--;
}

static void answer(struct record_lookup *lookup, int status, uint32_t ttl,
		   const struct dns_records *records)
{
	lookup->count = records ? records->count : 0;
	lookup->ttl = ttl;
	for (size_t i = 0; i < lookup->count; i++)
		lookup->record[i] = records->at[i];
	lookup->wait.done(&lookup->wait, status);
}

/* As with addresses: waiters may do anything in their callback. */
static void finish(struct record_job *job, int status,
		   const struct dns_records *records)
{
	bool any = records && records->count;
	uint32_t ttl = ttl_clamp(job->leg.answer.ttl, TTL_MIN,
				 any ? TTL_MAX : NEGATIVE_MAX);
	struct wait *wait;

	unlink_job(job);
	job->finishing = true;
	while ((wait = TAILQ_FIRST(&job->waiters))) {
		TAILQ_REMOVE(&job->waiters, wait, entry);
		wait->owner = NULL;
		answer(CONTAINER_OF(wait, struct record_lookup, wait), status,
		       ttl, records);
	}
	free(job);
}

static void on_ended(struct leg *leg, const struct dns_records *records)
{
	struct record_job *job = CONTAINER_OF(leg, struct record_job, leg);
	int status = leg->status;

	if (!status && leg->answer.rcode == DNS_NXDOMAIN)
		status = -ENOENT;
	finish(job, status, status ? NULL : records);
}

static struct record_job *find(struct resolver *resolver, const char *host,
			       uint16_t type)
{
	struct record_job *job;

	LIST_FOREACH (job, &resolver->records[resolver_bucket(resolver, host)],
		      chain)
		if (job->leg.type == type && strcmp(job->host, host) == 0)
			return job;
	return NULL;
}

static struct record_job *job_new(struct resolver *resolver, const char *host,
				  uint16_t type)
{
	struct record_job *job;

	if (!resolver->servers.count || resolver->jobs >= JOBS_MAX ||
	    !rdata_known(type))
		return NULL;
	job = calloc(1, sizeof(*job));
	if (!job)
		return NULL;
	job->resolver = resolver;
	TAILQ_INIT(&job->waiters);
	memcpy(job->host, host, strlen(host) + 1);
	job->leg = (struct leg){ .servers = &resolver->servers,
				 .host = job->host,
				 .type = type,
				 .ended = on_ended };
	LIST_INSERT_HEAD(&resolver->records[resolver_bucket(resolver, host)],
			 job, chain);
	resolver->jobs++;
	return job;
}

void resolver_lookup_records(struct resolver *resolver, const char *host,
			     uint16_t type, struct record_lookup *lookup)
{
	struct record_job *job = find(resolver, host, type);
	bool is_new = !job;

	lookup->wait.owner = NULL;
	lookup->type = type;
	if (!job)
		job = job_new(resolver, host, type);
	if (!job) {
		answer(lookup, -EIO, 0, NULL);
		return;
	}
	TAILQ_INSERT_TAIL(&job->waiters, &lookup->wait, entry);
	lookup->wait.owner = job;
	if (is_new)
		leg_ask(&job->leg);
}

void resolver_cancel_records(struct resolver *resolver,
			     struct record_lookup *lookup)
{
	struct record_job *job = lookup->wait.owner;

	(void)resolver;
	if (!job)
		return;
	TAILQ_REMOVE(&job->waiters, &lookup->wait, entry);
	lookup->wait.owner = NULL;
	if (job->finishing || !TAILQ_EMPTY(&job->waiters))
		return;
	unlink_job(job);
	free(job);
}

void resolver_end_records(struct resolver *resolver)
{
	struct record_job *job;

	for (size_t i = 0; i < JOB_BUCKETS; i++)
		while ((job = LIST_FIRST(&resolver->records[i])))
			finish(job, -EIO, NULL);
}
