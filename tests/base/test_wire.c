/* SPDX-License-Identifier: Apache-2.0
 *
 * test_wire.c - nothing is read or written past the end, and errors stick.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/wire.h"

static const uint8_t bytes[] = { 1,  2,	 3,  4,	 5,  6,	 7,  8,	 9, 10,
				 11, 12, 13, 14, 15, 16, 17, 18, 19 };

static void test_read(void **state)
{
	struct wire w = wire_of(bytes, sizeof(bytes));

	(void)state;
	assert_int_equal(wire_u8(&w), 0x01);
	assert_int_equal(wire_u16(&w), 0x0203);
	assert_int_equal(wire_u24(&w), 0x040506);
	assert_int_equal(wire_u32(&w), 0x0708090a);
	assert_true(wire_u64(&w) == UINT64_C(0x0b0c0d0e0f101112));
	assert_int_equal(w.left, 1);
	assert_int_equal(*wire_take(&w, 1), 19);
	assert_true(wire_ok(&w));
	assert_non_null(wire_take(&w, 0));
	assert_true(wire_ok(&w));
	assert_null(wire_take(&w, 1));
	assert_false(wire_ok(&w));
}

/* For every length, every reader: enough or a sticky zero. */
static void test_short(void **state)
{
	(void)state;
	for (size_t len = 0; len <= 8; len++) {
		struct wire w8 = wire_of(bytes, len), w16 = w8, w24 = w8,
			    w32 = w8, w64 = w8;

		assert_int_equal(wire_u8(&w8) != 0, len >= 1);
		assert_int_equal(wire_u16(&w16) != 0, len >= 2);
		assert_int_equal(wire_u24(&w24) != 0, len >= 3);
		(void)wire_u32(&w32);
		(void)wire_u64(&w64);
		assert_int_equal(wire_ok(&w8), len >= 1);
		assert_int_equal(wire_ok(&w16), len >= 2);
		assert_int_equal(wire_ok(&w24), len >= 3);
		assert_int_equal(wire_ok(&w32), len >= 4);
		assert_int_equal(wire_ok(&w64), len >= 8);
	}
}

static void test_sticky(void **state)
{
	struct wire w = wire_of(bytes, 3);

	(void)state;
	assert_null(wire_take(&w, SIZE_MAX));
	assert_int_equal(wire_u8(&w), 0); /* though there are bytes left */
	assert_null(wire_take(&w, 0));
	assert_false(wire_ok(&w));
}

static void test_sub(void **state)
{
	struct wire w = wire_of(bytes, 6), sub = wire_sub(&w, 2), bad;

	(void)state;
	assert_int_equal(wire_u16(&sub), 0x0102);
	assert_int_equal(wire_u8(&sub), 0);
	assert_false(wire_ok(&sub));
	assert_true(wire_ok(&w)); /* the inner error stays inside */
	assert_int_equal(wire_u8(&w), 3);
	bad = wire_sub(&w, 4);
	assert_false(wire_ok(&bad));
	assert_false(wire_ok(&w));
	assert_int_equal(bad.left, 0);
	bad = wire_sub(&bad, 0);
	assert_false(wire_ok(&bad));
}

static void test_write(void **state)
{
	uint8_t buf[20];
	struct wirebuf b = wirebuf_of(buf, sizeof(buf) - 1);

	(void)state;
	buf[sizeof(buf) - 1] = 0xee;
	wirebuf_u8(&b, 1);
	wirebuf_u16(&b, 0x0203);
	wirebuf_u32(&b, 0x04050607);
	wirebuf_u64(&b, UINT64_C(0x08090a0b0c0d0e0f));
	wirebuf_put(&b, NULL, 0);
	assert_false(b.full);
	assert_int_equal(b.len, 15);
	assert_memory_equal(buf, bytes, 15);
	assert_null(wirebuf_reserve(&b, 5)); /* there is room for 4 */
	assert_true(b.full);
	wirebuf_u8(&b, 1); /* would fit, but the error sticks */
	wirebuf_u64(&b, 1);
	assert_int_equal(b.len, 15);
	assert_null(wirebuf_reserve(&b, 0));
	assert_int_equal(buf[sizeof(buf) - 1], 0xee);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),   cmocka_unit_test(test_short),
		cmocka_unit_test(test_sticky), cmocka_unit_test(test_sub),
		cmocka_unit_test(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
