/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.h - what name servers said, until it expires. The clock is the
 * caller's.
 */
#ifndef DNS_CACHE_H
#define DNS_CACHE_H

#include "policy/services.h"

struct cache;

/* What is known of a name: @status as in struct lookup. */
struct result {
	int status;
	struct ip ip[LOOKUP_MAX];
	size_t count;
	uint32_t ttl;
};

/* Holds at most @max names; the one not used for the longest time makes room.
 * NULL without memory or randomness. */
struct cache *cache_new(size_t max);
void cache_free(struct cache *cache);
void cache_flush(struct cache *cache);

/* False if unknown or expired. @ret_result->ttl is what is left of it. */
bool cache_get(struct cache *cache, const char *host, uint64_t now_ms,
	       struct result *ret_result);

/* Remembers @result for result->ttl seconds; without memory it does not. */
void cache_put(struct cache *cache, const char *host, uint64_t now_ms,
	       const struct result *result);

#endif
