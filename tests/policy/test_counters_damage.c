/* SPDX-License-Identifier: Apache-2.0
 *
 * test_counters_damage.c - a damaged file gives nobody more than the policy
 * does.
 */
#include "tests/policy/counters_case.h"

#define AT_BUCKET  (AT + 24)
#define BUCKET_LEN 24
#define AT_ROWS	   (AT_BUCKET + RATE_COUNT * BUCKET_LEN)
#define ROW_LEN	   32

static void poke(int fd, off_t at, uint64_t value)
{
	assert_int_equal(pwrite(fd, &value, sizeof(value), at), sizeof(value));
}

static uint64_t peek(int fd, off_t at)
{
	uint64_t value;

	assert_int_equal(pread(fd, &value, sizeof(value), at), sizeof(value));
	return value;
}

/* --- damage -------------------------------------------------------------- */

/* A file in which one.test, two.test and three.test have rows. */
static int used_file(void)
{
	static const char *const host[] = { "one.test", "two.test",
					    "three.test" };
	int fd = file();
	struct counters *counters = attach(fd);

	for (size_t i = 0; i < ARRAY_SIZE(host); i++) {
		struct meters meters = meters_of(counters, host[i]);

		meters_spend(&meters, UP, 1);
		meters_spend(&meters, DOWN, 1);
	}
	assert_true(counters_take(counters, RATE_DNS, 5, 1000));
	counters_free(counters);
	return fd;
}

static uint64_t room_of(int fd, const char *host, enum direction d)
{
	struct counters *counters = attach(fd);
	struct meters meters = meters_of(counters, host);
	uint64_t room = meters_room(&meters, d);

	counters_free(counters);
	return room;
}

static void test_damaged_row(void **state)
{
	(void)state;
	/* Its key, its check, both; and all of it, which is a gap. */
	for (unsigned damage = 0; damage < 4; damage++) {
		AUTO_FD int fd = used_file();
		const off_t row = AT_ROWS + ROW_LEN;

		assert_int_equal(room_of(fd, "two.test", DOWN), 999);
		if (damage == 0 || damage == 2)
			poke(fd, row, peek(fd, row) ^ 1);
		if (damage == 1 || damage == 2)
			poke(fd, row + 8, peek(fd, row + 8) ^ 1);
		for (int i = 0; damage == 3 && i < 4; i++)
			poke(fd, row + 8 * i, 0);
		for (int again = 0; again < 2; again++) {
			assert_int_equal(room_of(fd, "two.test", DOWN), 0);
			assert_int_equal(room_of(fd, "two.test", UP),
					 UINT64_MAX); /* no budget */
			assert_int_equal(room_of(fd, "one.test", UP), 9);
			assert_int_equal(room_of(fd, "three.test", DOWN), 8);
			assert_int_equal(room_of(fd, NULL, UP), UINT64_MAX);
		}
	}
}

static void test_duplicate_row(void **state)
{
	AUTO_FD int fd = used_file();
	const uint64_t key = peek(fd, AT_ROWS);
	struct counters *counters;

	(void)state;
	/* A second row for one.test needs the check of its own place: made in
	 * another file, where two others were before. */
	AUTO_FD int other = file();
	counters = attach(other);
	meters_of(counters, "two.test");
	meters_of(counters, "one.test");
	counters_free(counters);
	assert_int_equal(peek(other, AT_ROWS + ROW_LEN), key);
	poke(fd, AT_ROWS + ROW_LEN, key);
	poke(fd, AT_ROWS + ROW_LEN + 8, peek(other, AT_ROWS + ROW_LEN + 8));
	for (int again = 0; again < 2; again++) {
		assert_int_equal(room_of(fd, "one.test", UP), 0);
		assert_int_equal(room_of(fd, "two.test", DOWN), 0);
		assert_int_equal(room_of(fd, "three.test", UP), 6);
	}
}

/* Killed after the check, before the key: a row that nobody used. */
static void test_half_made_row(void **state)
{
	AUTO_FD int fd = used_file();

	(void)state;
	poke(fd, AT_ROWS + 2 * ROW_LEN, 0);
	poke(fd, AT_ROWS + 2 * ROW_LEN + 16, 0);
	poke(fd, AT_ROWS + 2 * ROW_LEN + 24, 0);
	assert_int_equal(room_of(fd, "three.test", UP), 7);
	assert_int_equal(room_of(fd, "one.test", UP), 9);
}

static void test_damaged_head(void **state)
{
	AUTO_FD int fd = used_file();
	struct counters *counters;
	struct meters meters;

	(void)state;
	poke(fd, AT, 0);
	for (int again = 0; again < 2; again++) {
		counters = attach(fd);
		assert_int_equal(
			counters_meters(counters, &some_limits, NULL, &meters),
			0);
		assert_int_equal(meters_room(&meters, UP), 0);
		assert_int_equal(meters_room(&meters, DOWN), 0);
		counters_free(counters);
		assert_int_equal(room_of(fd, "one.test", UP), 0);
		assert_int_equal(room_of(fd, "three.test", DOWN), 0);
	}
}

static void test_garbage(void **state)
{
	AUTO_FD int fd = file();
	struct counters *counters;
	struct meters meters;
	uint64_t seed = 42;

	(void)state;
	for (size_t i = 0; i + 8 <= counters_size(); i += 8) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		poke(fd, (off_t)(AT + i), seed);
	}
	counters = attach(fd);
	assert_int_equal(counters_meters(counters, &some_limits, NULL, &meters),
			 0);
	assert_int_equal(meters_room(&meters, UP), 0);
	assert_int_equal(counters_meters(counters, &no_limits,
					 rule_of(policy, "one.test"), &meters),
			 -ENOSPC);
	assert_false(counters_take(counters, RATE_DNS, 1000000, 1));
	assert_true(counters_take(counters, RATE_DNS, 1000000, 1000));
	counters_free(counters);
}

static void test_bad_file(void **state)
{
	AUTO_FD int fd = file();
	struct counters *counters = NULL;

	(void)state;
	assert_int_equal(counters_attach(fd, AT + 4096, &counters), -EINVAL);
	assert_int_equal(counters_attach(fd, SIZE_MAX - 4095, &counters),
			 -EINVAL);
	assert_int_equal(ftruncate(fd, (off_t)(AT + counters_size() - 1)), 0);
	assert_int_equal(counters_attach(fd, AT, &counters), -EINVAL);
	assert_int_equal(counters_attach(-1, AT, &counters), -EBADF);
	assert_null(counters);
}

/* What lies before them is somebody else's. */
static void test_neighbours(void **state)
{
	AUTO_FD int fd = file();

	(void)state;
	poke(fd, 0, 0x1122334455667788u);
	assert_int_equal(room_of(fd, "one.test", UP), 10);
	for (off_t at = 8; at < AT; at += 8)
		assert_int_equal(peek(fd, at), 0);
	assert_int_equal(peek(fd, 0), 0x1122334455667788u);
}

/* --- rates --------------------------------------------------------------- */

static void test_damaged_bucket(void **state)
{
	(void)state;
	for (off_t word = 0; word < 3; word++) {
		AUTO_FD int fd = used_file();
		const off_t at = AT_BUCKET + RATE_DNS * BUCKET_LEN + word * 8;
		struct counters *counters = attach(fd);

		assert_true(counters_take(counters, RATE_DNS, 5, 1000));
		counters_free(counters);
		poke(fd, at, peek(fd, at) ^ 0x10000);
		counters = attach(fd);
		assert_int_equal(take_all(counters, RATE_DNS, 5, 1000), 0);
		assert_int_equal(take_all(counters, RATE_DNS, 5, 1200), 1);
		counters_free(counters);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damaged_row),
		cmocka_unit_test(test_duplicate_row),
		cmocka_unit_test(test_half_made_row),
		cmocka_unit_test(test_damaged_head),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_bad_file),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_damaged_bucket),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
