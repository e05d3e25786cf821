/* SPDX-License-Identifier: Apache-2.0
 *
 * test_wheel.c - timers by a clock of our own, so that hours pass at once.
 */
#include "base/wheel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"

#define TIMERS	300
#define ACTIONS 20000
#define TICK_US (WHEEL_TICK_MS * 1000)
/* What is asked for in ms begins within one. */
#define LATE_US (TICK_US + 1000)

static uint64_t now_us;
static struct event *alarm_event;
static uint64_t alarm_us; /* 0: it is not set */
static unsigned alarms;	  /* that rang */
static bool no_memory, may_be_late;
static struct event_base *base;
static struct wheel *wheel;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_event_add(struct event *event, const struct timeval *tv);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	ts->tv_sec = (time_t)(now_us / 1000000);
	ts->tv_nsec = (long)(now_us % 1000000 * 1000);
	return 0;
}

int __wrap_event_add(struct event *event, const struct timeval *tv)
{
	if (no_memory) {
		may_be_late = true;
		return -1;
	}
	alarm_event = event;
	alarm_us =
		now_us + (uint64_t)tv->tv_sec * 1000000 + (uint64_t)tv->tv_usec;
	return 0;
}

static void turn(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
}

/* Lets @us pass. */
static void pass(uint64_t us)
{
	const uint64_t end = now_us + us;

	while (alarm_us && alarm_us <= end) {
		if (now_us < alarm_us)
			now_us = alarm_us;
		alarm_us = 0;
		alarms++;
		event_active(alarm_event, EV_TIMEOUT, 0);
		turn();
	}
	now_us = end;
}

struct item {
	struct timer timer;
	bool set;
	uint64_t due_us;
	unsigned rang, order;
	struct item *cancels, *soon;
	bool again, frees;
};

static unsigned rang;

static void soon(struct item *i);

static void on_ring(struct timer *timer)
{
	struct item *i = CONTAINER_OF(timer, struct item, timer);

	assert_true(i->set);
	assert_true(now_us >= i->due_us);
	assert_true(now_us <= i->due_us + LATE_US || may_be_late);
	i->set = false;
	i->rang++;
	i->order = ++rang;
	if (i->cancels)
		wheel_cancel(&i->cancels->timer);
	if (i->soon)
		soon(i->soon);
	if (i->again)
		soon(i);
	i->again = false;
	if (i->frees)
		free(i);
}

static void set(struct item *i, unsigned ms)
{
	i->timer.ring = on_ring;
	i->set = true;
	i->due_us = now_us + (uint64_t)ms * 1000;
	wheel_set(wheel, &i->timer, ms);
}

static void soon(struct item *i)
{
	i->timer.ring = on_ring;
	i->set = true;
	i->due_us = now_us;
	wheel_soon(wheel, &i->timer);
}

static void cancel(struct item *i)
{
	i->set = false;
	wheel_cancel(&i->timer);
}

/* Of any magnitude up to @bits. */
static unsigned any(unsigned bits)
{
	return (unsigned)random() >> (31 - random() % (bits + 1));
}

static void test_any(void **state)
{
	static struct item item[TIMERS];
	unsigned rings = 0, left = 0;

	(void)state;
	srandom(7);
	for (int n = 0; n < ACTIONS; n++) {
		struct item *i = &item[random() % TIMERS];

		switch (random() % 4) {
		case 0:
		case 1:
			set(i, any(31));
			break;
		case 2:
			cancel(i);
			break;
		default:
			pass(any(26));
		}
		for (int k = 0; k < TIMERS; k++)
			if (item[k].set)
				assert_true(now_us <= item[k].due_us + LATE_US);
	}
	pass((1ULL << 31) * 1000 + LATE_US);
	for (int k = 0; k < TIMERS; k++) {
		rings += item[k].rang;
		left += item[k].set ? 1 : 0;
	}
	assert_int_equal(left, 0);
	assert_in_range(rings, ACTIONS / 8, ACTIONS / 2);
	assert_true(alarm_us == 0);
}

/* An hour, a day, and what is far: few wake-ups, none for nothing. */
static void test_sleeps(void **state)
{
	static const unsigned ms[] = { 1, 250, 10000, 3600000, 86400000 };
	struct item i = { .set = false };

	(void)state;
	turn();
	assert_true(alarm_us == 0);
	for (size_t n = 0; n < ARRAY_SIZE(ms); n++) {
		alarms = 0;
		set(&i, ms[n]);
		pass((uint64_t)ms[n] * 1000 + LATE_US);
		assert_int_equal(i.rang, n + 1);
		assert_in_range(alarms, 1, 6);
		assert_true(alarm_us == 0);
	}
}

static void test_wakes_once_more(void **state)
{
	struct item i[TIMERS] = { { .set = false } };

	(void)state;
	for (unsigned n = 0; n < TIMERS; n++)
		set(&i[n], 1 + n * n * 40);
	for (unsigned n = 0; n < TIMERS; n++)
		cancel(&i[n]);
	alarms = 0;
	pass(1ULL << 40);
	assert_int_equal(alarms, 1);
	assert_true(alarm_us == 0);
	assert_int_equal(rang, 0);
}

static void test_moves(void **state)
{
	struct item a = { .set = false }, b = { .set = false };

	(void)state;
	wheel_cancel(&a.timer); /* it was never set */
	set(&a, 100);
	set(&b, 60000);
	pass(90 * 1000);
	set(&a, 100);
	set(&b, 10);
	pass(50 * 1000);
	assert_int_equal(a.rang, 0);
	assert_int_equal(b.rang, 1);
	pass(70 * 1000);
	assert_int_equal(a.rang, 1);
	pass(3600000000ULL);
	assert_int_equal(rang, 2);
}

static void test_soon(void **state)
{
	struct item i[4] = { { .set = false } }, far = { .set = false };

	(void)state;
	set(&far, 1000);
	for (int n = 0; n < 4; n++)
		soon(&i[n]);
	soon(&i[3]);
	cancel(&i[2]);
	soon(&far);
	assert_int_equal(rang, 0); /* never from within */
	turn();
	assert_int_equal(i[0].order, 1);
	assert_int_equal(i[1].order, 2);
	assert_int_equal(i[2].order, 0);
	assert_int_equal(i[3].order, 3);
	assert_int_equal(far.order, 4);
	pass(2000 * 1000);
	assert_int_equal(rang, 4);
}

/* One that rings may do with all of them what it likes. */
static void test_within(void **state)
{
	struct item a = { .set = false }, b = { .set = false },
		    c = { .set = false };
	struct item *gone = calloc(1, sizeof(*gone));

	(void)state;
	a.cancels = &b;
	b.cancels = &a;
	a.soon = b.soon = &c;
	c.again = true;
	gone->frees = true;
	set(&a, 5);
	set(&b, 5);
	set(gone, 5);
	set(&c, 5);
	pass(LATE_US + 5000);
	assert_int_equal(a.rang + b.rang, 1);
	assert_int_equal(c.rang, 2);
	assert_int_equal(rang, 4);
	soon(&a);
	soon(&b);
	turn();
	assert_int_equal(a.rang + b.rang, 2);
}

/* The loop had other things to do. */
static void test_busy(void **state)
{
	struct item a = { .set = false }, b = { .set = false },
		    c = { .set = false };

	(void)state;
	may_be_late = true;
	set(&a, 10);
	set(&b, 1500);
	now_us += 2000 * 1000;
	set(&c, 100);
	pass(0);
	assert_int_equal(a.rang, 1);
	assert_int_equal(b.rang, 1);
	assert_int_equal(c.rang, 0);
	may_be_late = false;
	pass(200 * 1000);
	assert_int_equal(c.rang, 1);
}

/* No event can be added: it rings late, once another can. */
static void test_no_memory(void **state)
{
	struct item a = { .set = false }, b = { .set = false };

	(void)state;
	no_memory = true;
	set(&a, 100);
	assert_true(alarm_us == 0);
	no_memory = false;
	set(&b, 1000);
	pass(2000 * 1000);
	assert_int_equal(a.rang, 1);
	assert_int_equal(b.rang, 1);
}

static int setup(void **state)
{
	(void)state;
	now_us = 123456789;
	alarm_us = 0;
	may_be_late = false;
	rang = 0;
	base = event_base_new();
	wheel = wheel_new(base);
	return wheel ? 0 : -ENOMEM;
}

static int teardown(void **state)
{
	(void)state;
	assert_ptr_equal(wheel_base(wheel), base);
	wheel_free(wheel);
	wheel_free(NULL);
	event_base_free(base);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_any),
		TEST(test_sleeps),
		TEST(test_wakes_once_more),
		TEST(test_moves),
		TEST(test_soon),
		TEST(test_within),
		TEST(test_no_memory),
		TEST(test_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
