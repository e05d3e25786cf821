/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.h - milliseconds that only go forward.
 */
#ifndef DNS_CLOCK_H
#define DNS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

#endif
