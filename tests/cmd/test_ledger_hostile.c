/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ledger_hostile.c - senders that talk nonsense, or for others.
 */
#include "tests/cmd/ledger_rig.h"

/* What comes behind what is no record is not read, and nothing of that message
 * is acknowledged. */
static void test_malformed_pack(void **state)
{
	static uint8_t pack[4 * RECORD_PACKED_MAX];
	static struct tally tally;
	struct audit_event event = event_of(EVENT_FLOW_OPEN, "first.test");
	struct audit_event other = event_of(EVENT_FLOW_OPEN, "other.test");
	size_t first, len;
	struct rig rig;

	(void)state;
	start(&rig);
	AUTO_FD int bad = link_new(&rig);
	AUTO_FD int cut = link_new(&rig);
	AUTO_FD int twice = link_new(&rig);
	AUTO_FD int tail = link_new(&rig);
	first = record_pack(&event, 1, pack);
	len = first + record_pack(&other, 2, pack + first);
	pack[first + 2] ^= 1;
	len += record_pack(&other, 3, pack + len);
	assert_int_equal(send(bad, pack, len, 0), len);
	assert_cut(bad);
	/* Less of the second than its length says. */
	len = first + record_pack(&other, 2, pack + first) - 1;
	assert_int_equal(send(cut, pack, len, 0), len);
	assert_cut(cut);
	/* A number once more. */
	len = first + record_pack(&other, 1, pack + first);
	assert_int_equal(send(twice, pack, len, 0), len);
	assert_cut(twice);
	/* One byte too many. */
	assert_int_equal(send(tail, pack, first + 1, 0), first + 1);
	assert_cut(tail);
	assert_int_equal(finish(&rig, &tally), 0);
	json_t *log = read_log(&rig);
	assert_int_equal(json_array_size(log), 8);
	assert_int_equal(count_of(log, "first.test"), 4);
	assert_int_equal(count_of(log, "other.test"), 0);
	assert_int_equal(count_of(log, "sent what is no record"), 4);
	json_decref(log);
}

static void test_malformed(void **state)
{
	static uint8_t big[RECORD_PACK_MAX + RECORD_PACKED_MAX];
	static struct tally tally;
	struct rig rig;

	(void)state;
	start(&rig);
	AUTO_FD int good = link_new(&rig);
	AUTO_FD int junk = link_new(&rig);
	AUTO_FD int again = link_new(&rig);
	AUTO_FD int large = link_new(&rig);
	assert_int_equal(submit(good, "good.test", 1), 0);
	assert_int_equal(send(junk, "junk", 4, 0), 4);
	assert_cut(junk);
	assert_int_equal(submit(again, "once.test", 7), 0);
	assert_int_equal(send_raw(again, "twice.test", 7), 0); /* replayed */
	assert_cut(again);
	struct audit_event event = event_of(EVENT_FLOW_OPEN, "large.test");
	size_t len = 0;
	for (uint64_t seq = 1; len <= RECORD_PACK_MAX; seq++)
		len += record_pack(&event, seq, big + len);
	/* Good ones, but for the length of them all. */
	assert_int_equal(send(large, big, len, 0), len);
	assert_cut(large);
	assert_int_equal(submit(good, "good.test", 2), 0);
	assert_int_equal(finish(&rig, &tally), 0);
	json_t *log = read_log(&rig);
	assert_int_equal(json_array_size(log), 6);
	assert_int_equal(count_of(log, "sent what is no record"), 3);
	assert_int_equal(count_of(log, "link 2"), 1);
	assert_int_equal(count_of(log, "twice.test"), 0);
	assert_int_equal(count_of(log, "large.test"), 0);
	json_t *finding = json_array_get(log, 1);
	assert_int_equal(
		json_integer_value(json_object_get(finding, "class_uid")),
		2004);
	json_decref(log);
}

/* A gate that went over to the enemy neither opens nor closes a session. */
static void test_gate_is_not_the_warden(void **state)
{
	static uint8_t message[RECORD_PACKED_MAX];
	static const enum event_kind kinds[] = { EVENT_SESSION_OPEN,
						 EVENT_SESSION_CLOSE };
	static struct tally tally;
	struct rig rig;

	(void)state;
	start(&rig);
	AUTO_FD int warden = link_new(&rig);
	open_session(warden);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		AUTO_FD int gate = link_as(&rig, false);
		struct audit_event event = event_of(kinds[i], NULL);
		size_t len = record_pack(&event, 1, message);

		assert_int_equal(send(gate, message, len, 0), len);
		assert_cut(gate);
	}
	assert_int_equal(finish(&rig, &tally), 0);
	json_t *log = read_log(&rig);
	assert_int_equal(json_array_size(log), 3);
	assert_int_equal(count_of(log, "sent what is no record"), 2);
	json_decref(log);
}

/* A gate that serves before the session is open is heard after that. */
static void test_gate_before_the_opening(void **state)
{
	static struct tally tally;
	struct rig rig;

	(void)state;
	start(&rig);
	AUTO_FD int gate = link_as(&rig, false);
	assert_int_equal(send_raw(gate, "a.test", 1), 0);
	AUTO_FD int warden = link_new(&rig);
	struct pollfd acked = { .fd = gate, .events = POLLIN };
	assert_int_equal(poll(&acked, 1, 200), 0);
	open_session(warden);
	assert_int_equal(poll(&acked, 1, 30000), 1);
	assert_int_equal(finish(&rig, &tally), 0);
	json_t *log = read_log(&rig);
	assert_int_equal(json_array_size(log), 2);
	assert_string_equal(message_of(log, 0), "The session began.");
	json_decref(log);
}

static void test_mad_warden(void **state)
{
	struct rig rig;
	struct msg msg;

	(void)state;
	start(&rig);
	assert_int_equal(send(rig.control, "mad", 3, 0), 3);
	assert_int_equal(msg_recv(rig.control, &msg, 0), 0);
	assert_int_equal(wait_exit(&rig), 1);

	spawn(&rig); /* and before the start: no log, no ledger */
	assert_int_equal(msg_send(rig.control, MSG_LEDGER_FINISH, NULL, -1), 0);
	assert_int_equal(msg_recv(rig.control, &msg, 0), 0);
	assert_int_equal(wait_exit(&rig), 1);
}

/* A link for which there is a place as soon as the ledger has seen that another
 * was closed; it has recorded one thing. */
static int link_in_place(struct rig *rig, const char *host)
{
	for (int i = 0; i < 3000; i++) {
		int link = link_new(rig);

		if (submit(link, host, 1) == 0)
			return link;
		close(link);
		usleep(10000);
	}
	fail_msg("no place for a link");
	return -1;
}

static void test_too_many_links(void **state)
{
	static struct tally tally;
	struct rig rig;
	int link[9];

	(void)state;
	start(&rig);
	for (size_t i = 0; i < ARRAY_SIZE(link); i++)
		link[i] = link_new(&rig);
	assert_cut(link[8]);
	close(link[8]);
	assert_int_equal(submit(link[7], "a.test", 1), 0);
	close(link[3]); /* one place is free again */
	link[3] = link_in_place(&rig, "b.test");
	assert_int_equal(finish(&rig, &tally), 0);
	assert_int_equal(tally.records, 2);
	for (size_t i = 0; i < 8; i++)
		close(link[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_malformed_pack),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_gate_is_not_the_warden),
		cmocka_unit_test(test_gate_before_the_opening),
		cmocka_unit_test(test_mad_warden),
		cmocka_unit_test(test_too_many_links),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
