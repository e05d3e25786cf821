/* SPDX-License-Identifier: Apache-2.0
 *
 * wheel.h - many timers that seldom ring, for two events of libevent and 32
 * bytes each. Setting, moving and cancelling one takes the same time however
 * many there are.
 *
 * None rings early; each up to WHEEL_TICK_MS late. While none is set nothing
 * wakes up, but once after the last was cancelled.
 */
#ifndef BASE_WHEEL_H
#define BASE_WHEEL_H

#include <stdint.h>
#include <sys/queue.h>

#define WHEEL_TICK_MS 16

struct event_base;
struct wheel;

/* Lies in what it is for; zeroed but for ring(). */
struct timer {
	LIST_ENTRY(timer) entry;
	uint64_t tick; /* rings by then */
	/* From the loop. It is not set any more, and may be freed. */
	void (*ring)(struct timer *timer);
};

/* NULL without memory. */
struct wheel *wheel_new(struct event_base *base);
/* No timer may be set. NULL is fine. */
void wheel_free(struct wheel *wheel);
struct event_base *wheel_base(const struct wheel *wheel);

/* Rings in @ms, and not when it was to before. */
void wheel_set(struct wheel *wheel, struct timer *timer, unsigned ms);
/* Rings as soon as the caller is back in the loop: never from within. */
void wheel_soon(struct wheel *wheel, struct timer *timer);
/* Does not ring; fine if it was not set. */
void wheel_cancel(struct timer *timer);

#endif
