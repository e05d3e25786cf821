/* SPDX-License-Identifier: Apache-2.0
 *
 * test_counters.c - what is used up stays used up: across the death of a gate,
 * a new policy and a damaged file.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "build_helper.h"
#include "policy/counters.h"

/* The file's format. */
#define AT	    8192
#define AT_SESSION  (AT + 8)
#define AT_BUCKET   (AT + 24)
#define BUCKET_LEN  24
#define AT_ROWS	    (AT_BUCKET + RATE_COUNT * BUCKET_LEN)
#define ROW_LEN	    32
#define ROWS	    1024
#define BUDGETS_MAX 1000 /* of one policy */

static const struct limits no_limits, some_limits = { .budget = { 100, 200 } };
static struct policy *policy;

static int set_up(void **state)
{
	(void)state;
	policy = build_yaml("version: 1\n"
			    "allow:\n"
			    "  - plain.test\n"
			    "  - {host: one.test, upload: 10}\n"
			    "  - {host: two.test, download: 1 kB}\n"
			    "  - {host: three.test, upload: 7, download: 9}\n");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	policy_unref(policy);
	return 0;
}

static int file(void)
{
	int fd = memfd_create("counters", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(AT + counters_size())), 0);
	return fd;
}

static struct counters *attach(int fd)
{
	struct counters *counters = NULL;

	assert_int_equal(counters_attach(fd, AT, &counters), 0);
	return counters;
}

static const struct rule *rule_of(const struct policy *from, const char *host)
{
	const struct question question = { .host = host,
					   .port = 443,
					   .door = DOOR_CONNECT };
	struct verdict verdict = policy_decide(from, &question);

	assert_true(verdict.allow);
	return verdict.rule;
}

static struct meters meters_of(struct counters *counters, const char *host)
{
	struct meters meters;

	assert_int_equal(counters_meters(counters, &no_limits,
					 host ? rule_of(policy, host) : NULL,
					 &meters),
			 0);
	return meters;
}

static uint64_t used(const struct meters *meters, enum direction d, int which)
{
	return *meters->at[d][which].used;
}

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

/* --- budgets ------------------------------------------------------------- */

static void test_exact(void **state)
{
	AUTO_FD int fd = file();
	struct counters *counters = attach(fd);
	struct meters none, one, two;

	(void)state;
	assert_int_equal(counters_meters(counters, &some_limits, NULL, &none),
			 0);
	assert_int_equal(counters_meters(counters, &some_limits,
					 rule_of(policy, "one.test"), &one),
			 0);
	assert_int_equal(counters_meters(counters, &some_limits,
					 rule_of(policy, "two.test"), &two),
			 0);
	assert_int_equal(meters_room(&none, UP), 100);
	assert_int_equal(meters_room(&one, UP), 10);
	assert_int_equal(meters_room(&one, DOWN), 200);
	assert_int_equal(meters_room(&two, DOWN), 200);
	meters_spend(&one, UP, 10);
	meters_spend(&two, DOWN, 199);
	assert_int_equal(meters_room(&one, UP), 0);
	assert_int_equal(meters_room(&none, UP), 90);
	assert_int_equal(meters_room(&two, UP), 90);
	assert_int_equal(meters_room(&one, DOWN), 1);
	assert_int_equal(used(&two, DOWN, METER_RULE), 199);
	assert_int_equal(used(&one, DOWN, METER_RULE), 0);
	counters_free(counters);
	counters_free(NULL);
}

static void test_counted_without_limits(void **state)
{
	AUTO_FD int fd = file();
	struct counters *counters = attach(fd);
	struct meters meters = meters_of(counters, "plain.test");

	(void)state;
	assert_null(meters.at[UP][METER_RULE].used);
	assert_int_equal(meters_room(&meters, UP), UINT64_MAX);
	meters_spend(&meters, UP, 150);
	meters_spend(&meters, DOWN, 1);
	/* A policy with limits comes later: they are over. */
	assert_int_equal(counters_meters(counters, &some_limits, NULL, &meters),
			 0);
	assert_int_equal(meters_room(&meters, UP), 0);
	assert_int_equal(meters_room(&meters, DOWN), 199);
	counters_free(counters);
}

static void test_overflow(void **state)
{
	AUTO_FD int fd = file();
	struct counters *counters = attach(fd);
	struct meters meters = meters_of(counters, "three.test");

	(void)state;
	meters_spend(&meters, UP, UINT64_MAX - 1);
	meters_spend(&meters, UP, UINT64_MAX - 1);
	assert_int_equal(used(&meters, UP, METER_RULE), UINT64_MAX);
	assert_int_equal(used(&meters, UP, METER_SESSION), UINT64_MAX);
	assert_int_equal(meters_room(&meters, UP), 0);
	assert_int_equal(meters_room(&meters, DOWN), 9);
	counters_free(counters);
}

static void test_survives(void **state)
{
	AUTO_FD int fd = file();
	struct counters *counters;
	struct meters meters;
	pid_t pid = fork();
	int status;

	(void)state;
	/* A gate that is killed: no destructor runs. */
	if (pid == 0) {
		counters = attach(fd);
		meters = meters_of(counters, "one.test");
		meters_spend(&meters, UP, 4);
		meters = meters_of(counters, "three.test");
		meters_spend(&meters, DOWN, 5);
		while (counters_take(counters, RATE_DNS, 5, 1000))
			;
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	counters = attach(fd);
	assert_false(counters_take(counters, RATE_DNS, 5, 1000));
	assert_true(counters_take(counters, RATE_CONNECTIONS, 5, 1000));
	/* Found in another order than they were made. */
	meters = meters_of(counters, "three.test");
	assert_int_equal(used(&meters, DOWN, METER_RULE), 5);
	assert_int_equal(meters_room(&meters, UP), 7);
	meters = meters_of(counters, "one.test");
	assert_int_equal(meters_room(&meters, UP), 6);
	assert_int_equal(used(&meters, UP, METER_SESSION), 4);
	assert_int_equal(used(&meters, DOWN, METER_SESSION), 5);
	meters = meters_of(counters, "two.test");
	assert_int_equal(meters_room(&meters, DOWN), 1000);
	counters_free(counters);
}

/* The rule of another policy, of the same pattern and ports, with less. */
static void test_new_policy(void **state)
{
	AUTO_FD int fd = file();
	struct counters *counters = attach(fd);
	struct meters meters = meters_of(counters, "one.test");
	struct policy *next = build_yaml("version: 1\nallow:\n"
					 "  - {host: first.test, upload: 3}\n"
					 "  - {host: one.test, upload: 8}\n");

	(void)state;
	meters_spend(&meters, UP, 6);
	assert_int_equal(counters_meters(counters, &no_limits,
					 rule_of(next, "one.test"), &meters),
			 0);
	assert_int_equal(meters_room(&meters, UP), 2);
	assert_int_equal(counters_meters(counters, &no_limits,
					 rule_of(next, "first.test"), &meters),
			 0);
	assert_int_equal(meters_room(&meters, UP), 3);
	policy_unref(next);
	counters_free(counters);
}

static struct policy *many(const char *word, unsigned n)
{
	static char text[BUDGETS_MAX * 64];
	size_t len =
		(size_t)snprintf(text, sizeof(text), "version: 1\nallow:\n");
	struct policy *built;

	for (unsigned i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"  - {host: %s%u.test, upload: 5}\n",
					word, i);
	assert_true(len < sizeof(text));
	built = build_yaml(text);
	return built;
}

static int spend(struct counters *counters, const struct policy *from,
		 const char *word, unsigned i, uint64_t bytes, uint64_t *ret)
{
	struct meters meters;
	char host[64];
	int err;

	snprintf(host, sizeof(host), "%s%u.test", word, i);
	err = counters_meters(counters, &no_limits, rule_of(from, host),
			      &meters);
	if (err)
		return err;
	meters_spend(&meters, UP, bytes);
	*ret = meters_room(&meters, UP);
	return 0;
}

static void test_full(void **state)
{
	AUTO_FD int fd = file();
	struct counters *counters = attach(fd);
	struct policy *some = many("a", ROWS / 2);
	struct policy *more = many("b", ROWS / 2 + 1);
	struct meters untouched = { 0 }, meters;
	uint64_t room = 0;

	(void)state;
	for (unsigned i = 0; i < ROWS / 2; i++) {
		assert_int_equal(spend(counters, some, "a", i, 1, &room), 0);
		assert_int_equal(spend(counters, more, "b", i, 2, &room), 0);
	}
	for (int again = 0; again < 2; again++) {
		assert_int_equal(counters_meters(counters, &no_limits,
						 rule_of(more, "b512.test"),
						 &untouched),
				 -ENOSPC);
		assert_null(untouched.at[UP][METER_SESSION].used);
		/* The old ones go on, and those without budgets. */
		assert_int_equal(spend(counters, some, "a", 511, 0, &room), 0);
		assert_int_equal(room, 4);
		assert_int_equal(spend(counters, more, "b", 0, 0, &room), 0);
		assert_int_equal(room, 3);
		meters = meters_of(counters, "plain.test");
		assert_int_equal(used(&meters, UP, METER_SESSION), 512 * 3);
		counters_free(counters);
		counters = attach(fd);
	}
	counters_free(counters);
	policy_unref(some);
	policy_unref(more);
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

static unsigned take_all(struct counters *counters, enum rate rate,
			 unsigned per_second, uint64_t now_ms)
{
	unsigned n = 0;

	while (n < 100000 && counters_take(counters, rate, per_second, now_ms))
		n++;
	return n;
}

static void test_rates(void **state)
{
	AUTO_FD int fd = file();
	struct counters *counters = attach(fd);

	(void)state;
	assert_int_equal(take_all(counters, RATE_DNS, 50, 10000), 50);
	assert_int_equal(take_all(counters, RATE_DNS, 50, 10000), 0);
	assert_int_equal(take_all(counters, RATE_DNS, 50, 10019), 0);
	assert_int_equal(take_all(counters, RATE_DNS, 50, 10020), 1);
	assert_int_equal(take_all(counters, RATE_DNS, 50, 10520), 25);
	/* It holds a second's worth. */
	assert_int_equal(take_all(counters, RATE_DNS, 50, 99999), 50);
	/* The other is another. */
	assert_int_equal(take_all(counters, RATE_CONNECTIONS, 3, 99999), 3);
	assert_int_equal(take_all(counters, RATE_CONNECTIONS, 3, 100332), 0);
	assert_int_equal(take_all(counters, RATE_CONNECTIONS, 3, 100333), 1);
	counters_free(counters);
}

/* Asked every millisecond, one a second is one a second. */
static void test_rate_is_exact(void **state)
{
	AUTO_FD int fd = file();
	struct counters *counters = attach(fd);
	unsigned n = 0;

	(void)state;
	for (uint64_t ms = 5000; ms < 15000; ms++)
		n += counters_take(counters, RATE_DNS, 1, ms);
	assert_int_equal(n, 10);
	n = 0;
	for (uint64_t ms = 15000; ms < 25000; ms++)
		n += counters_take(counters, RATE_DNS, 7, ms);
	assert_in_range(n, 70, 71);
	counters_free(counters);
}

static void test_rate_changes(void **state)
{
	AUTO_FD int fd = file();
	struct counters *counters = attach(fd);

	(void)state;
	assert_true(counters_take(counters, RATE_DNS, 1000, 500));
	/* A stricter policy: what was saved up under the old one is void. */
	assert_int_equal(take_all(counters, RATE_DNS, 4, 500), 4);
	/* A new one starts from what is left. */
	assert_int_equal(take_all(counters, RATE_DNS, 1000, 501), 1);
	assert_int_equal(take_all(counters, RATE_DNS, 0, 60000), 0);
	/* The largest there is. */
	assert_true(counters_take(counters, RATE_DNS, UINT32_MAX, UINT64_MAX));
	assert_true(counters_take(counters, RATE_DNS, UINT32_MAX, UINT64_MAX));
	counters_free(counters);
}

static void test_clock_goes_back(void **state)
{
	AUTO_FD int fd = file();
	struct counters *counters = attach(fd);

	(void)state;
	assert_int_equal(take_all(counters, RATE_DNS, 10, 1000000), 10);
	assert_int_equal(take_all(counters, RATE_DNS, 10, 5), 0);
	assert_int_equal(take_all(counters, RATE_DNS, 10, 0), 0);
	/* And nobody waits until it is there again. */
	assert_int_equal(take_all(counters, RATE_DNS, 10, 500), 5);
	counters_free(counters);
}

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
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_counted_without_limits),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_survives),
		cmocka_unit_test(test_new_policy),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_damaged_row),
		cmocka_unit_test(test_duplicate_row),
		cmocka_unit_test(test_half_made_row),
		cmocka_unit_test(test_damaged_head),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_bad_file),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_rate_is_exact),
		cmocka_unit_test(test_rate_changes),
		cmocka_unit_test(test_clock_goes_back),
		cmocka_unit_test(test_damaged_bucket),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
