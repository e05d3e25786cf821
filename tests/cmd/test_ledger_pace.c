/* SPDX-License-Identifier: Apache-2.0
 *
 * A ledger with little to do never waits; one that is busy lets records come
 * together, for as long as its turns are apart and no longer.
 */
#include "cmd/ledger_pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define HOUR_US UINT64_C(3600000000)

static void turn(struct pace *pace, unsigned records, uint64_t now)
{
	pace_begin(pace, now);
	pace_add(pace, records);
}

/* Turns of @records for a second, @n of them. */
static void second(struct pace *pace, unsigned n, unsigned records,
		   uint64_t *now)
{
	for (unsigned i = 0; i < n; i++) {
		*now += 1000000 / n;
		turn(pace, records, *now);
	}
}

static void test_idle(void **state)
{
	struct pace pace = { 0 };
	uint64_t now = HOUR_US;

	(void)state;
	assert_int_equal(pace_wait_us(&pace, now), 0);
	turn(&pace, 1, now);
	assert_int_equal(pace_wait_us(&pace, now), 0);
	for (unsigned i = 0; i < 1000; i++) {
		second(&pace, 1000, 1, &now);
		assert_int_equal(pace_wait_us(&pace, now), 0);
	}
}

static void test_busy(void **state)
{
	struct pace pace = { 0 };
	uint64_t now = HOUR_US;

	(void)state;
	turn(&pace, 1, now);
	second(&pace, 2 * PACE_BUSY, 1, &now);
	assert_int_equal(pace_wait_us(&pace, now), PACE_TURN_US);
	/* From the turn's beginning on: it may have taken as long itself. */
	assert_int_equal(pace_wait_us(&pace, now + PACE_TURN_US - 1), 1);
	assert_int_equal(pace_wait_us(&pace, now + PACE_TURN_US), 0);
	assert_int_equal(pace_wait_us(&pace, now + HOUR_US), 0);
	/* Fewer turns with as many records are as busy. */
	second(&pace, 1000000 / PACE_TURN_US,
	       2 * PACE_BUSY / (1000000 / PACE_TURN_US), &now);
	assert_int_equal(pace_wait_us(&pace, now), PACE_TURN_US);
}

/* One record, long after: nobody waits for what does not come. */
static void test_busy_no_more(void **state)
{
	struct pace pace = { 0 };
	uint64_t now = HOUR_US;

	(void)state;
	turn(&pace, 1, now);
	second(&pace, 2 * PACE_BUSY, 1, &now);
	now += 1000000;
	turn(&pace, 1, now);
	assert_int_equal(pace_wait_us(&pace, now), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_busy_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
