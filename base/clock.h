/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.h - what time it is, as a number; the unit is in each name.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* What @clock says, for a record: it is never negative. */
static inline uint64_t clock_us(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static inline uint64_t clock_ms(clockid_t clock)
{
	return clock_us(clock) / 1000;
}

/* CLOCK_MONOTONIC, which only goes forward. Signed: what is left until a
 * deadline that has passed is below 0. */
static inline int64_t now_ms(void)
{
	return (int64_t)clock_ms(CLOCK_MONOTONIC);
}

#endif
