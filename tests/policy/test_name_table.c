/* SPDX-License-Identifier: Apache-2.0
 *
 * test_name_table.c - each name finds all that was said of it, and is hardly
 * ever led to others, however many there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy/name_table.h"

#define MANY	 20000
#define ALIKE	 3
#define NAME_LEN 32

static void name_of(char *ret_name, unsigned i)
{
	snprintf(ret_name, NAME_LEN, "n%u.example.test", i);
}

static struct name_table *table_of(size_t count)
{
	struct name_table *table = NULL;

	assert_int_equal(name_table_new(count, &table), 0);
	return table;
}

static void test_nothing(void **state)
{
	struct name_table *table = table_of(0);
	struct name_probe probe = name_table_find(table, "a.test");
	uint32_t number;

	(void)state;
	assert_false(name_table_next(table, &probe, &number));
	name_table_free(table);
	probe = name_table_find(NULL, "a.test");
	assert_false(name_table_next(NULL, &probe, &number));
	name_table_free(NULL);
}

/* All that is proposed for name @i, others' too. Are its own there, each once?
 */
static unsigned propose(const struct name_table *table, unsigned i)
{
	unsigned own = 0, others = 0;
	struct name_probe probe;
	char name[NAME_LEN];
	uint32_t number;

	name_of(name, i);
	probe = name_table_find(table, name);
	while (name_table_next(table, &probe, &number)) {
		if (number / ALIKE != i) {
			others++;
			continue;
		}
		assert_false(own & 1u << number % ALIKE);
		own |= 1u << number % ALIKE;
	}
	assert_int_equal(own, i < MANY ? (1u << ALIKE) - 1 : 0);
	return others;
}

static void test_many(void **state)
{
	struct name_table *table = table_of((size_t)MANY * ALIKE);
	unsigned others = 0;
	char name[NAME_LEN];

	(void)state;
	for (unsigned n = 0; n < ALIKE; n++)
		for (unsigned i = 0; i < MANY; i++) {
			name_of(name, i);
			name_table_add(table, name, i * ALIKE + n);
		}
	for (unsigned i = 0; i < 2 * MANY; i++)
		others += propose(table, i);
	/* One in four thousand million looks, if the hash is one. */
	assert_in_range(others, 0, 3);
	name_table_free(table);
}

/* What stands at the end of the table goes on at its begin. */
static void test_full(void **state)
{
	struct name_probe probe;
	uint32_t number;

	(void)state;
	for (int turn = 0; turn < 1000; turn++) {
		struct name_table *table = table_of(2);
		unsigned found = 0;

		name_table_add(table, "a.test", 7);
		name_table_add(table, "a.test", UINT32_MAX - 1);
		probe = name_table_find(table, "a.test");
		while (name_table_next(table, &probe, &number))
			found += number == 7 ? 1 : 2;
		assert_int_equal(found, 3);
		name_table_free(table);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
