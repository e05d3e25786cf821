/* SPDX-License-Identifier: Apache-2.0
 *
 * resolver_impl.h - the body of a resolver: for resolver.c (addresses) and
 * resolver_records.c.
 */
#ifndef DNS_RESOLVER_IMPL_H
#define DNS_RESOLVER_IMPL_H

#include "base/hash.h"
#include "dns/cache.h"
#include "dns/leg.h"
#include "dns/resolver.h"

#define JOBS_MAX     1024 /* of both kinds */
#define JOB_BUCKETS  1024
#define TTL_MIN	     5
#define TTL_MAX	     300
#define NEGATIVE_MAX 60

struct job;
struct record_job;
LIST_HEAD(job_list, job);
LIST_HEAD(record_job_list, record_job);

struct resolver {
	struct event_base *base;
	struct servers servers;
	struct cache *cache;
	struct hash_key key;
	unsigned jobs;
	unsigned generation; /* what older jobs learn is not kept */
	struct job_list bucket[JOB_BUCKETS];
	struct record_job_list records[JOB_BUCKETS];
};

static inline uint32_t ttl_clamp(uint32_t v, uint32_t min, uint32_t max)
{
	return v < min ? min : v > max ? max : v;
}

static inline size_t resolver_bucket(const struct resolver *resolver,
				     const char *host)
{
	return hash_bytes(&resolver->key, host, strlen(host)) % JOB_BUCKETS;
}

/* Waiters get -EIO. */
void resolver_end_records(struct resolver *resolver);

#endif
