/* SPDX-License-Identifier: Apache-2.0
 *
 * test_warden_reload.c - a reload as the warden sees it: what it records and
 * when.
 */
#include "tests/cmd/warden_reload_case.h"

/* --- policies and gates -------------------------------------------------- */

static void assert_given(size_t i)
{
	char text[256];
	struct msg msg;

	assert_int_equal(msg_recv(gate, &msg, MSG_DONTWAIT), 1);
	assert_int_equal(msg.type, MSG_GATE_POLICY);
	assert_int_equal(msg.gate_policy.len, bundle[i].len);
	assert_int_equal(pread(msg.fd, text, sizeof(text), 0), bundle[i].len);
	assert_memory_equal(text, bundle[i].data, bundle[i].len);
	close(msg.fd);
}

static void test_takes(void **state)
{
	const struct msg_publish flow = { .dst = { ip_v4(0xc6120001), 32 } };

	(void)state;
	assert_int_equal(msg_send(gate, MSG_GATE_WITHDRAW, &flow, -1), 0);
	assert_int_equal(msg_send(gate, MSG_GATE_PUBLISH, &flow, -1), 0);
	answer(0, "");
	assert_int_equal(reload_to(1), 0);
	assert_string_equal(notes, expect("record:1 withdraw publish "
					  "literals flush verify servers"));
	assert_given(1);
	assert_in_force(1);
	/* The same again is nothing. */
	notes[0] = '\0';
	assert_int_equal(reload_to(1), 0);
	assert_string_equal(notes, "");
}

/* No record, no policy; and one that comes late has its opposite behind it. */
static void test_no_record(void **state)
{
	uint8_t buf[RECORD_PACKED_MAX];
	struct wire pack, message;
	char text[RECORD_MESSAGE_MAX];
	struct audit_event event;
	struct msg msg;
	uint64_t seq;
	ssize_t len;

	(void)state;
	record_fails = 1;
	assert_int_equal(reload_to(1), -EIO);
	assert_string_equal(notes, expect("record:1"));
	assert_in_force(0);
	assert_int_equal(msg_recv(gate, &msg, MSG_DONTWAIT), -EAGAIN);
	len = recv(records[1], buf, sizeof(buf), MSG_DONTWAIT);
	assert_true(len > 0);
	pack = wire_of(buf, (size_t)len);
	assert_int_equal(record_unpack(&pack, &message), 1);
	assert_int_equal(
		record_decode(message.at, message.left, &event, &seq, text), 0);
	assert_int_equal(record_unpack(&pack, &message), 0);
	assert_int_equal(event.kind, EVENT_POLICY);
	assert_string_equal(record_policy_digest(event.detail),
			    policy_digest(policy[0]));
}

/* Somebody changed the rules: that is a finding, and the policy is in force. */
static void test_other_rules(void **state)
{
	(void)state;
	verify_result = -EBADMSG;
	answer(0, "");
	assert_int_equal(reload_to(1), 0);
	assert_string_equal(
		notes,
		expect("record:1 literals flush verify finding servers"));
	assert_in_force(1);
}

/* Somebody changes them while the gate is busy with the policy: nobody waits
 * for that, and what is put back is the new one. */
static void test_rules_meanwhile(void **state)
{
	int pipes[2];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(write(pipes[1], "x", 1), 1);
	stirred = pipes[0];
	new_gate = getpid();
	assert_int_equal(reload_to(1), 0);
	assert_string_equal(notes, expect("record:1 look:1"));
	assert_in_force(1);
	/* And where the session ends of it. */
	notes[0] = '\0';
	new_gate = -1;
	w.gate.pid = -1;
	assert_int_equal(reload_to(0), -ECHILD);
	assert_string_equal(notes, expect("record:0 look:0"));
	stirred = -1;
	w.gate.pid = -1;
	close(pipes[0]);
	close(pipes[1]);
}

/* Others change what is theirs: nobody minds. */
static void test_others_meanwhile(void **state)
{
	int pipes[2];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(write(pipes[1], "x", 1), 1);
	stirred = pipes[0];
	idle = 1;
	answer(0, "");
	assert_int_equal(reload_to(1), 0);
	assert_int_equal(idle, 0);
	assert_string_equal(notes,
			    expect("record:1 literals flush verify servers"));
	assert_in_force(1);
	stirred = -1;
	close(pipes[0]);
	close(pipes[1]);
}

static void test_serve_has_no_kernel(void **state)
{
	(void)state;
	w.gateway = NULL;
	answer(0, "");
	assert_int_equal(reload_to(1), 0);
	assert_string_equal(notes, expect("record:1 servers"));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_takes),
		TEST(test_no_record),
		TEST(test_other_rules),
		TEST(test_rules_meanwhile),
		TEST(test_others_meanwhile),
		TEST(test_serve_has_no_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
