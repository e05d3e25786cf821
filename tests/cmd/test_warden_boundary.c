/* SPDX-License-Identifier: Apache-2.0
 *
 * test_warden_boundary.c - what the warden does, and in which order, when rules
 * change, with or without news of it.
 */
#include "tests/cmd/warden_boundary_case.h"

/* --- the kernel ---------------------------------------------------------- */

static void commit(uint32_t generation, uint32_t pid)
{
	const struct watch_change change = { .generation = generation,
					     .pid = pid,
					     .process = "nft" };

	assert_int_equal(write(rules, &change, sizeof(change)), sizeof(change));
}

/* --- */

static void test_restored(void **state)
{
	(void)state;
	assert_int_equal(warden_held(&w), BOUNDARY_HELD);
	verify_result = -EBADMSG;
	commit(7, 42);
	turn();
	assert_string_equal(notes, "stop verify finding restore ruleset start");
	has("changed by nft (pid 42 as the kernel counts): a rule is missing");
	has("put back: ruleset sha256:abc");
	assert_int_equal(recorded_pid, 42);
	assert_string_equal(recorded_process, "nft");
	assert_int_equal(warden_held(&w), BOUNDARY_RESTORED);
}

/* The look shows nothing, and still somebody was there. */
static void test_nothing_to_see(void **state)
{
	(void)state;
	commit(7, 42);
	turn();
	assert_string_equal(notes, "stop verify finding restore ruleset start");
	has("in what is let through");
}

/* Two in a row: the second was done away with by what the first one caused. */
static void test_repaired(void **state)
{
	(void)state;
	commit(99, 42);
	commit(100, 43);
	turn();
	assert_string_equal(notes, "stop verify finding restore ruleset start "
				   "finding");
	has("nft (pid 43 as the kernel counts): that was put back already");
	/* One more is another change. */
	commit(101, 44);
	turn();
	assert_string_equal(notes, "stop verify finding restore ruleset start");
}

static void test_lost(void **state)
{
	const struct watch_change change = { .lost = true };

	(void)state;
	assert_int_equal(write(rules, &change, sizeof(change)), sizeof(change));
	turn();
	assert_string_equal(notes, "stop verify finding restore ruleset start");
	has("faster than could be watched");
	assert_int_equal(recorded_pid, 0);
}

static void test_too_often(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= BOUNDARY_RESTORES_MAX; i++) {
		restored_to = 10 * i;
		commit(10 * i, 42);
		turn();
		assert_int_equal(warden_held(&w), BOUNDARY_RESTORED);
	}
	commit(1000, 42);
	commit(1001, 42);
	turn();
	assert_string_equal(notes, "stop verify finding stop failed");
	has("more often");
	assert_int_equal(warden_held(&w), BOUNDARY_BROKEN);
	/* Nobody looks any more. */
	turn();
	assert_string_equal(notes, "");
	assert_false(boundary_look(&w));
	assert_int_equal(boundary_fd(&w), -1);
}

static void test_not_put_back(void **state)
{
	(void)state;
	restore_result = -EBADMSG;
	commit(7, 42);
	turn();
	assert_string_equal(notes, "stop verify finding restore stop failed");
	has("could not be put back: another table");
}

/* Somebody is at it again: no gate, and the next round. */
static void test_changed_meanwhile(void **state)
{
	(void)state;
	restore_result = -EBADMSG;
	commit(7, 42);
	commit(8, 42);
	turn();
	assert_string_equal(notes, "stop verify finding restore "
				   "stop verify finding restore stop failed");
}

/* Without any news. */
static void test_looks(void **state)
{
	(void)state;
	until_look();
	assert_string_equal(notes, "links verify count");
	verify_result = -EBADMSG;
	until_look();
	assert_string_equal(
		notes, "links verify stop finding restore ruleset start count");
	has("changed by somebody, unseen: a rule is missing");
	links_result = -EBADMSG;
	until_look();
	assert_string_equal(notes, "links stop failed");
}

/* What is found at the end is not put back any more. */
static void test_end(void **state)
{
	(void)state;
	commit(7, 42);
	boundary_end(&w);
	assert_string_equal(notes, "finding");
	assert_int_equal(warden_held(&w), BOUNDARY_BROKEN);
	notes[0] = '\0';
	boundary_end(&w);
	assert_string_equal(notes, "");
}

static void test_quiet_end(void **state)
{
	(void)state;
	boundary_end(&w);
	assert_string_equal(notes, "");
	assert_int_equal(warden_held(&w), BOUNDARY_HELD);
}

/* In a namespace of others their commits are theirs, as long as ours is whole.
 */
static void test_shared(void **state)
{
	struct guard_spec *some = (struct guard_spec *)&gateway;

	(void)state;
	gateway.guard = some;
	commit(1, 11);
	turn();
	assert_string_equal(notes, "verify");
	commit(2, 11);
	commit(3, 11);
	notes[0] = '\0';
	assert_true(boundary_idle(&w));
	assert_false(boundary_look(&w));
	assert_int_equal(warden_held(&w), BOUNDARY_HELD);
	/* And where ours is not. */
	verify_result = -EBADMSG;
	assert_false(boundary_idle(&w));
	commit(4, 11);
	turn();
	assert_non_null(strstr(notes, "stop"));
	assert_non_null(strstr(notes, "restore"));
	assert_int_equal(warden_held(&w), BOUNDARY_RESTORED);
	gateway.guard = NULL;
	assert_false(boundary_idle(&w));
}

static void test_serve(void **state)
{
	struct warden none = { .base = w.base };

	(void)state;
	assert_int_equal(boundary_attach(&none), 0);
	assert_int_equal(boundary_fd(&none), -1);
	assert_false(boundary_look(&none));
	boundary_end(&none);
	assert_int_equal(warden_held(&none), BOUNDARY_UNKNOWN);
	assert_string_equal(notes, "");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_restored),
		TEST(test_nothing_to_see),
		TEST(test_repaired),
		TEST(test_lost),
		TEST(test_too_often),
		TEST(test_not_put_back),
		TEST(test_changed_meanwhile),
		TEST(test_looks),
		TEST(test_end),
		TEST(test_quiet_end),
		TEST(test_shared),
		TEST(test_serve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
