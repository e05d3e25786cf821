/* SPDX-License-Identifier: Apache-2.0
 *
 * test_warden_reload_gate.c - what the warden does with a gate that refuses a
 * policy, dies of it or talks nonsense.
 */
#include "tests/cmd/warden_reload_case.h"

/* --- policies and gates -------------------------------------------------- */

static void test_refuses(void **state)
{
	(void)state;
	answer(-ENOMEM, "no memory");
	assert_int_equal(reload_to(1), -ENOMEM);
	assert_non_null(strstr(reterr, "no memory"));
	assert_string_equal(notes, expect("record:1 flush record:0"));
	assert_in_force(0);
}

/* Then the log would name a policy that is not in force. */
static void test_refuses_without_ledger(void **state)
{
	(void)state;
	answer(-ENOMEM, "");
	record_fails = 2;
	assert_int_equal(reload_to(1), -ENOMEM);
	assert_string_equal(notes, expect("record:1 flush record:0 failed"));
	assert_in_force(0);
}

static void test_dies(void **state)
{
	(void)state;
	/* Before. */
	close_fd(&gate);
	assert_int_equal(reload_to(1), 0);
	assert_string_equal(notes,
			    expect("record:1 sweep literals verify restart:1"));
	assert_in_force(1);
}

static void test_dies_without_answer(void **state)
{
	const struct msg_publish flow = { .dst = { ip_v4(0xc6120001), 32 } };

	(void)state;
	assert_int_equal(msg_send(gate, MSG_GATE_WITHDRAW, &flow, -1), 0);
	assert_int_equal(shutdown(gate, SHUT_WR), 0);
	assert_int_equal(reload_to(1), 0);
	assert_string_equal(notes, expect("record:1 withdraw sweep literals "
					  "verify restart:1"));
	assert_in_force(1);
}

static void test_nonsense(void **state)
{
	(void)state;
	assert_int_equal(msg_send(gate, MSG_GATE_READY, NULL, -1), 0);
	assert_int_equal(reload_to(1), 0);
	assert_string_equal(notes,
			    expect("record:1 sweep literals verify restart:1"));
	assert_in_force(1);
}

static void test_no_gate(void **state)
{
	(void)state;
	close_fd(&w.gate.sock);
	assert_int_equal(reload_to(1), 0);
	assert_string_equal(notes,
			    expect("record:1 sweep literals verify restart:1"));
	assert_in_force(1);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_refuses),  TEST(test_refuses_without_ledger),
		TEST(test_dies),     TEST(test_dies_without_answer),
		TEST(test_nonsense), TEST(test_no_gate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
