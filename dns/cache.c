/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.c - chained hashing, and one list from the most to the least recently
 * used.
 */
#include "dns/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "policy/hostname.h"

#define BUCKETS 4096 /* a power of two */

struct slot {
	LIST_ENTRY(slot) chain;
	TAILQ_ENTRY(slot) age;
	uint64_t expires_ms;
	struct result result;
	char host[HOST_MAX + 1];
};

struct cache {
	struct hash_key key;
	size_t count, max;
	TAILQ_HEAD(slot_list, slot) by_age;
	LIST_HEAD(, slot) bucket[BUCKETS];
};

struct cache *cache_new(size_t max)
{
	struct cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	if (hash_key_init(&cache->key)) {
		free(cache);
		return NULL;
	}
	cache->max = max;
	TAILQ_INIT(&cache->by_age);
	return cache;
}

static size_t bucket_of(const struct cache *cache, const char *host)
{
	return hash_bytes(&cache->key, host, strlen(host)) % BUCKETS;
}

static struct slot *find(const struct cache *cache, const char *host)
{
	struct slot *slot;

	LIST_FOREACH (slot, &cache->bucket[bucket_of(cache, host)], chain)
		if (strcmp(slot->host, host) == 0)
			return slot;
	return NULL;
}

static void drop(struct cache *cache, struct slot *slot)
{
	LIST_REMOVE(slot, chain);
	TAILQ_REMOVE(&cache->by_age, slot, age);
	cache->count--;
	free(slot);
}

bool cache_get(struct cache *cache, const char *host, uint64_t now_ms,
	       struct result *ret_result)
{
	struct slot *slot = find(cache, host);

	if (!slot)
		return false;
	if (now_ms >= slot->expires_ms) {
		drop(cache, slot);
		return false;
	}
	TAILQ_REMOVE(&cache->by_age, slot, age);
	TAILQ_INSERT_HEAD(&cache->by_age, slot, age);
	*ret_result = slot->result;
	ret_result->ttl = (uint32_t)((slot->expires_ms - now_ms + 999) / 1000);
	return true;
}

void cache_put(struct cache *cache, const char *host, uint64_t now_ms,
	       const struct result *result)
{
	struct slot *slot = find(cache, host);

	if (slot)
		drop(cache, slot);
	if (cache->count >= cache->max && cache->count)
		drop(cache, TAILQ_LAST(&cache->by_age, slot_list));
	slot = calloc(1, sizeof(*slot));
	if (!slot)
		return;
	slot->expires_ms = now_ms + (uint64_t)result->ttl * 1000;
	slot->result = *result;
	memcpy(slot->host, host, strlen(host) + 1);
	LIST_INSERT_HEAD(&cache->bucket[bucket_of(cache, host)], slot, chain);
	TAILQ_INSERT_HEAD(&cache->by_age, slot, age);
	cache->count++;
}

void cache_flush(struct cache *cache)
{
	struct slot *slot;

	while ((slot = TAILQ_FIRST(&cache->by_age)))
		drop(cache, slot);
}

void cache_free(struct cache *cache)
{
	if (!cache)
		return;
	cache_flush(cache);
	free(cache);
}
