/* SPDX-License-Identifier: Apache-2.0
 *
 * test_counters.c - what is used up stays used up: across the death of a gate
 * and a new policy.
 */
#include "tests/policy/counters_case.h"

#define ROWS	    1024
#define BUDGETS_MAX 1000 /* of one policy */

static uint64_t used(const struct meters *meters, enum direction d, int which)
{
	return *meters->at[d][which].used;
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

/* --- rates --------------------------------------------------------------- */

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_counted_without_limits),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_survives),
		cmocka_unit_test(test_new_policy),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_rate_is_exact),
		cmocka_unit_test(test_rate_changes),
		cmocka_unit_test(test_clock_goes_back),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
