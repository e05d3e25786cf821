/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ledger_log.c - what a stranger can verify of a ledger's log: its chain,
 * its checkpoints, its parts and its receipt.
 */
#include "tests/cmd/ledger_log_case.h"

#include "audit/seal.h"
#include "base/clock.h"

/* --- a session ------------------------------------------------------------ */

/* Waits for the ledger to want another part, and gives it one. */
static void answer_rotation(struct rig *rig, uint32_t number)
{
	struct msg_ledger_part part = { .number = number };
	char old[96], new[96];
	struct pollfd ready = { .fd = rig->control, .events = POLLIN };
	struct msg msg;

	assert_int_equal(poll(&ready, 1, 30000), 1);
	assert_int_equal(msg_recv(rig->control, &msg, 0), 1);
	assert_int_equal(msg.type, MSG_LEDGER_ROTATE);
	assert_int_equal(msg.ledger_part.number, number);
	snprintf(old, sizeof(old), "%s/log", dir);
	snprintf(new, sizeof(new), "%s/log.%06u", dir, number);
	assert_int_equal(rename(old, new), 0);
	AUTO_FD int fd = rig_file("log");
	assert_int_equal(msg_send(rig->control, MSG_LEDGER_PART, &part, fd), 0);
}

/* Records until the ledger wants another part: it asks once, and takes more
 * meanwhile. */
static void fill_part(struct rig *rig, int gate, uint64_t *seq, uint32_t part)
{
	struct pollfd asked = { .fd = rig->control, .events = POLLIN };

	while (poll(&asked, 1, 0) == 0)
		assert_int_equal(submit(gate, "a.test", ++*seq), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(submit(gate, "b.test", ++*seq), 0);
	answer_rotation(rig, part);
	assert_int_equal(poll(&asked, 1, 50), 0);
}

static void test_parts(void **state)
{
	static struct tally tally;
	struct msg_ledger_start message = start_message();
	struct msg_ledger_end how = { .ended = ENDED_EXIT,
				      .held = BOUNDARY_HELD };
	struct roots roots = { 0 };
	uint64_t seq = 0;
	struct rig rig;
	char path[96];
	size_t count;

	(void)state;
	message.rotate_bytes = 40000;
	snprintf(path, sizeof(path), "%s/log", dir);
	start_with(&rig, path, &message, NULL);
	AUTO_FD int warden = link_new(&rig);
	AUTO_FD int gate = link_as(&rig, false);
	open_session(warden);
	fill_part(&rig, gate, &seq, 1);
	fill_part(&rig, gate, &seq, 2);
	for (int i = 0; i < 10; i++)
		assert_int_equal(submit(gate, "c.test", ++seq), 0);
	close_session(&rig, warden, &how);
	assert_int_equal(finish(&rig, &tally), 0);
	assert_int_equal(rig.done.receipt, 1);

	add_part(&roots, "log.000001", false);
	assert_true(roots.lines > 40);
	add_part(&roots, "log.000002", false);
	add_part(&roots, "log", false);
	assert_int_equal(roots.lines, seq + 2);
	assert_int_equal(check_checkpoints(&roots, false, &count), seq + 2);
	assert_true(count >= 3); /* one for each part, at the least */
	assert_memory_equal(rig.done.root, &roots.root[roots.lines],
			    MERKLE_HASH);
	json_t *receipt = open_receipt();
	check_subject(receipt, "audit.jsonl.000001", "log.000001");
	check_subject(receipt, "audit.jsonl.000002", "log.000002");
	check_subject(receipt, "audit.jsonl", "log");
	assert_int_equal(number_at(receipt, "log.parts"), 3);
	assert_int_equal(number_at(receipt, "log.records"), seq + 2);
	json_decref(receipt);
	free(roots.root);
}

/* An hour back with each record: the order, the checkpoints and how long it
 * took do not hang on that clock. */
static void test_clock_set_back(void **state)
{
	enum { COUNT = 100, HOUR_MS = 3600000 };
	static const uint64_t began = UINT64_C(1775014138811);
	static struct tally tally;
	struct msg_ledger_end how = { .ended = ENDED_EXIT,
				      .held = BOUNDARY_HELD };
	size_t lines, count;
	struct rig rig;

	(void)state;
	start(&rig);
	AUTO_FD int warden = link_new(&rig);
	open_session(warden);
	for (uint64_t i = 1; i <= COUNT; i++) {
		struct audit_event event = event_of(EVENT_FLOW_OPEN, "a.test");

		event.time_ms = began - i * HOUR_MS;
		/* Of a gate the ledger takes no time. */
		assert_int_equal(audit_submit_sync(warden, &event, i + 1), 0);
	}
	close_session(&rig, warden, &how);
	assert_int_equal(finish(&rig, &tally), 0);
	assert_int_equal(check_log(&lines, &count, false), COUNT + 2);
	assert_true(count >= 1);
	json_t *log = read_log(&rig);
	for (size_t i = 1; i <= COUNT; i++)
		assert_int_equal(json_integer_value(json_object_get(
					 json_array_get(log, i), "time")),
				 began - i * HOUR_MS);
	json_decref(log);
	json_t *receipt = open_receipt();
	assert_in_range(number_at(receipt, "duration_ms"), 0, 60000);
	assert_int_equal(number_at(receipt, "log.records"), COUNT + 2);
	json_decref(receipt);
}

static void test_parts_by_age(void **state)
{
	static struct tally tally;
	struct msg_ledger_start message = start_message();
	struct rig rig;
	char path[96];

	(void)state;
	message.rotate_s = 1;
	snprintf(path, sizeof(path), "%s/log", dir);
	start_with(&rig, path, &message, NULL);
	AUTO_FD int warden = link_new(&rig);
	AUTO_FD int gate = link_as(&rig, false);
	open_session(warden);
	assert_int_equal(submit(gate, "a.test", 1), 0);
	/* Nothing more comes, but time goes on. */
	answer_rotation(&rig, 1);
	/* Who has a new link knows that the part before it was taken. */
	AUTO_FD int later = link_as(&rig, false);
	assert_int_equal(submit(later, "b.test", 1), 0);
	assert_int_equal(finish(&rig, &tally), 0);
	assert_int_equal(tally.records, 3);
	AUTO_BYTES struct bytes part = slurp("log.000001");
	assert_non_null(strstr(part.at, "a.test"));
	assert_null(strstr(part.at, "b.test"));
}

/* All that a receipt says, once. */
static void test_receipt(void **state)
{
	static struct tally tally;
	struct msg_ledger_start message = start_message();
	struct msg_ledger_end how = { .ended = ENDED_TIMEOUT,
				      .held = BOUNDARY_RESTORED,
				      .status = 124,
				      .counted = 1,
				      .spoofed = 3,
				      .refused = 10,
				      .ipv6 = 2 };
	struct audit_event packets = event_of(EVENT_PACKET, NULL);
	struct audit_event foreign = event_of(EVENT_FINDING, NULL);
	char path[96];
	struct rig rig;

	(void)state;
	memset(message.ruleset_digest, 'a', 64);
	memset(how.ruleset_digest, 'b', 64);
	snprintf(path, sizeof(path), "%s/log", dir);
	start_with(&rig, path, &message, NULL);
	AUTO_FD int warden = link_new(&rig);
	AUTO_FD int gate = link_as(&rig, false);
	open_session(warden);
	packets.verdict = (struct verdict){ .reason = REASON_BYPASS };
	packets.count = 4;
	assert_int_equal(submit(gate, "a.test", 1), 0);
	assert_int_equal(audit_submit_sync(gate, &packets, 2), 0);
	foreign.verdict = (struct verdict){ .reason = REASON_BYPASS };
	foreign.detail = "the rules were changed";
	foreign.process = "nft";
	foreign.pid = 4711;
	assert_int_equal(audit_submit_sync(warden, &foreign, 2), 0);
	/* Who did it only the warden can know. */
	assert_int_equal(audit_submit_sync(gate, &foreign, 3), -EIO);
	close_session(&rig, warden, &how);
	assert_int_equal(finish(&rig, &tally), 0);

	json_t *log = read_log(&rig);
	size_t n = json_array_size(log);
	assert_int_equal(n, 7);
	assert_string_equal(message_of(log, n - 1), "The session ended.");
	assert_non_null(strstr(message_of(log, n - 2), "11 other packets"));
	json_decref(log);
	json_t *r = open_receipt();
	assert_string_equal(statement_digest(r, "policy"), RIG_POLICY);
	assert_string_equal(statement_digest(r, "ruleset"),
			    message.ruleset_digest);
	check_subject(r, "audit.jsonl", "log");
	assert_string_equal(text_at(r, "session"), RIG_SESSION);
	assert_string_equal(text_at(r, "boundary.kind"), "netns");
	assert_string_equal(text_at(r, "boundary.held"), "restored");
	assert_string_equal(text_at(r, "boundary.separation"), "uid");
	assert_string_equal(text_at(r, "exit.by"), "timeout");
	assert_int_equal(number_at(r, "exit.status"), 124);
	assert_string_equal(text_at(r, "ruleset.end"), how.ruleset_digest);
	assert_int_equal(number_at(r, "ruleset.changes_total"), 1);
	json_t *change = json_array_get(member(r, "ruleset.changes"), 0);
	assert_string_equal(
		json_string_value(json_object_get(change, "process")), "nft");
	assert_int_equal(json_integer_value(json_object_get(change, "pid")),
			 4711);
	assert_int_equal(
		json_integer_value(json_object_get(change, "sequence")), 3);
	assert_int_equal(number_at(r, "findings_total"), 2);
	assert_int_equal(number_at(r, "packets.counted.refused"), 10);
	assert_int_equal(number_at(r, "packets.recorded"), 15);
	assert_int_equal(number_at(r, "packets.unreported"), 11);
	assert_int_equal(number_at(r, "verdicts.allowed"), 1);
	assert_int_equal(number_at(r, "log.records"), n);
	assert_true(json_is_false(member(r, "key.ephemeral")));
	AUTO_BYTES struct bytes notes = slurp("checkpoints");
	const char *last = text_at(r, "log.last_checkpoint");
	assert_true(strlen(last) > 0 && strlen(last) <= notes.len);
	assert_string_equal(notes.at + notes.len - strlen(last), last);
	const char *first = text_at(r, "log.first_checkpoint");
	assert_true(strlen(first) > 0);
	assert_memory_equal(notes.at, first, strlen(first));
	json_decref(r);
}

/* What an earlier session left is quoted by the first line. */
static void test_earlier(void **state)
{
	static struct tally tally;
	struct msg_ledger_start message = start_message();
	struct msg_ledger_earlier earlier = { .checkpoint = "old\n3\nroot\n",
					      .lines = 4,
					      .bytes = 3210 };
	char path[96];
	struct rig rig;

	(void)state;
	memset(message.ruleset_digest, 'a', 64);
	snprintf(path, sizeof(path), "%s/log", dir);
	start_with(&rig, path, &message, &earlier);
	AUTO_FD int warden = link_new(&rig);
	open_session(warden);
	assert_int_equal(submit(warden, "a.test", 2), 0);
	assert_int_equal(finish(&rig, &tally), 0);
	json_t *log = read_log(&rig);
	json_t *first = json_object_get(json_array_get(log, 0), "unmapped");
	json_t *told = json_object_get(first, "earlier");
	assert_string_equal(
		json_string_value(json_object_get(told, "checkpoint")),
		earlier.checkpoint);
	assert_int_equal(json_integer_value(json_object_get(told, "records")),
			 4);
	assert_int_equal(json_integer_value(json_object_get(told, "bytes")),
			 3210);
	assert_true(json_is_false(json_object_get(told, "receipt")));
	assert_int_equal(
		strncmp(json_string_value(json_object_get(first, "ruleset")),
			"sha256:aaaa", 11),
		0);
	assert_null(json_object_get(
		json_object_get(json_array_get(log, 1), "unmapped"),
		"earlier"));
	json_decref(log);
	/* It was not closed: no receipt. */
	assert_int_equal(rig.done.receipt, 0);
	AUTO_BYTES struct bytes receipt = slurp("receipt");
	assert_int_equal(receipt.len, 0);
}

/* --- when it is signed -----------------------------------------------------
 */

static void test_sign_every(void **state)
{
	static struct tally tally;
	struct msg_ledger_start message = start_message();
	size_t lines, count;
	char path[96];
	struct rig rig;

	(void)state;
	message.sign_every = 1;
	message.durable = 1;
	snprintf(path, sizeof(path), "%s/log", dir);
	start_with(&rig, path, &message, NULL);
	AUTO_FD int link = link_new(&rig);
	for (uint64_t seq = 1; seq <= 20; seq++) {
		assert_int_equal(submit(link, "a.test", seq), 0);
		assert_int_equal(check_log(&lines, &count, false), seq);
		assert_int_equal(lines, seq);
		assert_int_equal(count, seq);
	}
	/* Also of many that come at once. */
	for (uint64_t seq = 21; seq <= 40; seq++)
		assert_int_equal(send_raw(link, "b.test", seq), 0);
	assert_int_equal(finish(&rig, &tally), 0);
	assert_int_equal(check_log(&lines, &count, false), 40);
	assert_int_equal(count, 40);
}

/* Looks until so many lines are covered, at most 30 s. */
static size_t await_covered(uint64_t want)
{
	uint64_t covered = 0;
	size_t lines, count = 0;

	for (int i = 0; i < 3000 && covered < want; i++) {
		usleep(10000);
		covered = check_log(&lines, &count, true);
	}
	assert_int_equal(covered, want);
	return count;
}

static void test_sign_batch(void **state)
{
	static struct tally tally;
	size_t lines, count;
	struct timespec a, b;
	const int64_t began = now_ms();
	int64_t took;
	uint64_t seq = 0;
	struct rig rig;

	(void)state;
	start(&rig);
	AUTO_FD int link = link_new(&rig);
	clock_gettime(CLOCK_MONOTONIC, &a);
	assert_int_equal(submit(link, "a.test", ++seq), 0);
	/* Nothing more comes: in a while it is signed all the same. */
	assert_int_equal(await_covered(1), 1);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_true((b.tv_sec - a.tv_sec) * 1000 +
			    (b.tv_nsec - a.tv_nsec) / 1000000 >=
		    200);
	while (seq < 65)
		assert_int_equal(submit(link, "b.test", ++seq), 0);
	await_covered(65);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(send_raw(link, "c.test", ++seq), 0);
	await_covered(seq);
	assert_int_equal(finish(&rig, &tally), 0);
	assert_int_equal(check_log(&lines, &count, false), seq);
	took = now_ms() - began;
	assert_true(count >= 3 &&
		    count <= seq / SEAL_RECORDS + (uint64_t)took / SEAL_MS + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_parts_by_age),
		cmocka_unit_test(test_clock_set_back),
		cmocka_unit_test(test_receipt),
		cmocka_unit_test(test_earlier),
		cmocka_unit_test(test_sign_every),
		cmocka_unit_test(test_sign_batch),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
