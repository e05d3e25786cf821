/* SPDX-License-Identifier: Apache-2.0
 *
 * wheel.c - timers by the digits of when they ring.
 *
 * A tick is a number to the base 64. A timer lies at the level of the highest
 * digit in which its tick is not the present one, in the slot of that digit:
 * level 0 is the next second, level 1 the rest of a minute, level 2 of an hour.
 * So all of a level ring before any of the next, and within one, by slots: what
 * comes first is in the lowest slot of the lowest level that has any. When that
 * begins, its timers ring or go to lower levels.
 *
 * A mark says that there was something in a slot; it may be gone.
 */
#include "base/wheel.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

#include "base/clock.h"

#define DIGIT  6
#define SLOTS  (1 << DIGIT)
#define LEVELS 6 /* 34 years after the machine's start */
#define NEVER  UINT64_MAX

LIST_HEAD(timers, timer);

struct wheel {
	struct event_base *base;
	struct event alarm, now;
	uint64_t tick;	/* up to here all have rung */
	uint64_t wakes; /* when alarm rings: not after the first slot begins */
	struct timers soon;
	uint64_t marks[LEVELS];
	struct timers slot[LEVELS][SLOTS];
};

static void insert(struct timers *list, struct timer *timer)
{
	LIST_INSERT_HEAD(list, timer, entry);
}

void wheel_cancel(struct timer *timer)
{
	if (!timer->entry.le_prev)
		return;
	LIST_REMOVE(timer, entry);
	timer->entry.le_prev = NULL;
}

/* @timer->tick is to come. Returns when its slot begins. */
static uint64_t place(struct wheel *wheel, struct timer *timer)
{
	const int bit = 63 - __builtin_clzll(timer->tick ^ wheel->tick);
	const int level = bit / DIGIT, shift = level * DIGIT;
	const unsigned slot = (timer->tick >> shift) % SLOTS;

	wheel->marks[level] |= 1ULL << slot;
	insert(&wheel->slot[level][slot], timer);
	return timer->tick >> shift << shift;
}

/* When the first slot begins that has any, and which it is; or NEVER. */
static uint64_t first(struct wheel *wheel, struct timers **ret_slot)
{
	for (int level = 0; level < LEVELS; level++) {
		const int shift = level * DIGIT;
		uint64_t *marks = &wheel->marks[level];

		for (; *marks; *marks &= *marks - 1) {
			const int slot = __builtin_ctzll(*marks);

			*ret_slot = &wheel->slot[level][slot];
			if (!LIST_EMPTY(*ret_slot))
				return ((wheel->tick >> shift) / SLOTS * SLOTS +
					(uint64_t)slot)
				       << shift;
		}
	}
	return NEVER;
}

static void wake_at(struct wheel *wheel, uint64_t tick, uint64_t now)
{
	const uint64_t at = tick * WHEEL_TICK_MS;
	const uint64_t ms = at > now ? at - now : 0;
	struct timeval tv = { .tv_sec = (time_t)(ms / 1000),
			      .tv_usec = (suseconds_t)(ms % 1000 * 1000) };

	/* Without memory the next one that is set tries again. */
	wheel->wakes = event_add(&wheel->alarm, &tv) ? NEVER : tick;
}

void wheel_set(struct wheel *wheel, struct timer *timer, unsigned ms)
{
	const uint64_t now = (uint64_t)now_ms(), tick = now / WHEEL_TICK_MS;
	uint64_t begins;

	wheel_cancel(timer);
	/* No slot begins before: all lie where they are to. */
	if (tick < wheel->wakes)
		wheel->tick = tick;
	timer->tick = (now + ms) / WHEEL_TICK_MS + 1;
	begins = place(wheel, timer);
	if (begins < wheel->wakes)
		wake_at(wheel, begins, now);
}

void wheel_soon(struct wheel *wheel, struct timer *timer)
{
	wheel_cancel(timer);
	if (LIST_EMPTY(&wheel->soon))
		event_active(&wheel->now, EV_TIMEOUT, 0);
	insert(&wheel->soon, timer);
}

/* Each may set or cancel any, itself too. */
static void ring(struct timers *due)
{
	struct timer *timer;

	while ((timer = LIST_FIRST(due))) {
		wheel_cancel(timer);
		timer->ring(timer);
	}
}

static void on_now(evutil_socket_t fd, short what, void *arg)
{
	struct wheel *wheel = arg;
	struct timers due = LIST_HEAD_INITIALIZER(due);
	struct timer *timer;

	(void)fd;
	(void)what;
	/* The first one is the first to ring. */
	while ((timer = LIST_FIRST(&wheel->soon))) {
		wheel_cancel(timer);
		insert(&due, timer);
	}
	ring(&due);
}

static void on_alarm(evutil_socket_t fd, short what, void *arg)
{
	struct wheel *wheel = arg;
	const uint64_t now = (uint64_t)now_ms(), tick = now / WHEEL_TICK_MS;
	struct timers due = LIST_HEAD_INITIALIZER(due), *slot;
	struct timer *timer;
	uint64_t begins;

	(void)fd;
	(void)what;
	while ((begins = first(wheel, &slot)) <= tick) {
		wheel->tick = begins;
		while ((timer = LIST_FIRST(slot))) {
			wheel_cancel(timer);
			if (timer->tick <= begins)
				insert(&due, timer);
			else
				place(wheel, timer);
		}
	}
	wheel->wakes = NEVER;
	if (begins != NEVER)
		wake_at(wheel, begins, now);
	ring(&due);
}

struct wheel *wheel_new(struct event_base *base)
{
	struct wheel *wheel = calloc(1, sizeof(*wheel));

	if (!wheel)
		return NULL;
	wheel->base = base;
	wheel->wakes = NEVER;
	event_assign(&wheel->alarm, base, -1, 0, on_alarm, wheel);
	event_assign(&wheel->now, base, -1, 0, on_now, wheel);
	return wheel;
}

void wheel_free(struct wheel *wheel)
{
	if (!wheel)
		return;
	event_del(&wheel->alarm);
	event_del(&wheel->now);
	free(wheel);
}

struct event_base *wheel_base(const struct wheel *wheel)
{
	return wheel->base;
}
