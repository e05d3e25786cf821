/* SPDX-License-Identifier: Apache-2.0
 *
 * quota.h - a token bucket for those who have none of their own
 * (policy/counters.h), questions at a time, and a count of what was refused,
 * for one record a second.
 */
#ifndef DNS_QUOTA_H
#define DNS_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

struct bucket {
	uint32_t tokens_milli; /* a thousandth of a question each */
	uint64_t filled_ms;    /* when tokens were last added */
};

void bucket_init(struct bucket *bucket, unsigned per_second, uint64_t now_ms);

/* May one more be asked? The bucket holds one second's worth. */
bool bucket_take(struct bucket *bucket, unsigned per_second, uint64_t now_ms);

struct quota {
	uint32_t sandbox;
	unsigned in_flight;
	uint64_t used_ms; /* when it was last asked for */
	uint32_t refused; /* not recorded yet */
	uint64_t recorded_ms;
};

/* Counts a refusal. Returns how many to put into a record now: 0 if it is too
 * early for the next one. */
uint32_t quota_refuse(struct quota *quota, uint64_t now_ms);
/* The same, without one more: what is left to be recorded. */
uint32_t quota_flush(struct quota *quota, uint64_t now_ms);

#endif
