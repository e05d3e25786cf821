/* SPDX-License-Identifier: Apache-2.0
 *
 * quota.c - a token bucket, and a fold.
 */
#include "dns/quota.h"

#define PER_TOKEN 1000u
#define FOLD_MS	  1000u
#define RATE_MAX  1000000u /* keeps the arithmetic in range */

static uint32_t capacity(unsigned per_second)
{
	return (per_second < RATE_MAX ? per_second : RATE_MAX) * PER_TOKEN;
}

void bucket_init(struct bucket *bucket, unsigned per_second, uint64_t now_ms)
{
	*bucket = (struct bucket){ .tokens_milli = capacity(per_second),
				   .filled_ms = now_ms };
}

bool bucket_take(struct bucket *bucket, unsigned per_second, uint64_t now_ms)
{
	uint32_t full = capacity(per_second);
	uint64_t passed = now_ms - bucket->filled_ms;
	uint64_t tokens = bucket->tokens_milli;

	/* A millisecond brings a thousandth of a second's worth. */
	tokens += passed >= 1000 ? full : passed * (full / PER_TOKEN);
	bucket->filled_ms = now_ms;
	bucket->tokens_milli = tokens < full ? (uint32_t)tokens : full;
	if (bucket->tokens_milli < PER_TOKEN)
		return false;
	bucket->tokens_milli -= PER_TOKEN;
	return true;
}

uint32_t quota_refuse(struct quota *quota, uint64_t now_ms)
{
	if (quota->refused < UINT32_MAX)
		quota->refused++;
	if (quota->recorded_ms && now_ms - quota->recorded_ms < FOLD_MS)
		return 0;
	return quota_flush(quota, now_ms);
}

uint32_t quota_flush(struct quota *quota, uint64_t now_ms)
{
	uint32_t count = quota->refused;

	quota->refused = 0;
	if (count)
		quota->recorded_ms = now_ms;
	return count;
}
