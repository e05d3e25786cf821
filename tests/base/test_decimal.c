/* SPDX-License-Identifier: Apache-2.0
 *
 * test_decimal.c - numbers and digests as printf would say them.
 */
#include "base/decimal.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/hex.h"

static void check(uint64_t v)
{
	char buf[DECIMAL_MAX], want[32];
	char *got = decimal_format(v, buf);

	snprintf(want, sizeof(want), "%" PRIu64, v);
	assert_string_equal(got, want);
	assert_ptr_equal(got + strlen(got), buf + DECIMAL_MAX - 1);
}

static void test_decimal(void **state)
{
	uint64_t power = 1;

	(void)state;
	for (uint64_t v = 0; v < 100100; v++)
		check(v);
	for (unsigned i = 0; i < 20; i++, power *= 10) {
		check(power - 1);
		check(power);
		check(power + 1);
		check(power * 9);
	}
	check(UINT32_MAX);
	check((uint64_t)UINT32_MAX + 1);
	check(UINT64_MAX);
	check(UINT64_MAX - 1);
}

static void test_hex(void **state)
{
	char got[2 * 256 + 1], want[2 * 256 + 1];
	uint8_t data[256], back[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
		data[i] = (uint8_t)(i * 37);
		snprintf(want + 2 * i, 3, "%02x", data[i]);
	}
	assert_string_equal(hex_format(data, sizeof(data), got), want);
	assert_true(hex_parse(got, sizeof(back), back));
	assert_memory_equal(back, data, sizeof(data));
	assert_string_equal(hex_format(data, 0, got), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decimal),
		cmocka_unit_test(test_hex),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
