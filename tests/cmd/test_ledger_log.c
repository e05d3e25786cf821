/* SPDX-License-Identifier: Apache-2.0
 *
 * What a stranger can verify of a ledger's log: its chain, its checkpoints, its
 * parts and its receipt; also when the ledger was killed, or nothing could be
 * made to last.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/cmd/ledger_read.h"
#include "tests/cmd/ledger_rig.h"

/* --- a session ------------------------------------------------------------ */

static void close_session(struct rig *rig, int warden,
			  const struct msg_ledger_end *message)
{
	struct audit_event close = event_of(EVENT_SESSION_CLOSE, NULL);

	assert_int_equal(msg_send(rig->control, MSG_LEDGER_END, message, -1),
			 0);
	assert_int_equal(audit_submit_sync(warden, &close, 1000), 0);
}

/* Waits for the ledger to want another part, and gives it one. */
static void answer_rotation(struct rig *rig, uint32_t number)
{
	struct msg_ledger_part part = { .number = number };
	char old[96], new[96];
	struct pollfd ready = { .fd = rig->control, .events = POLLIN };
	struct msg msg;

	assert_int_equal(poll(&ready, 1, 5000), 1);
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

/* Looks until so many lines are covered, at most 5 s. */
static size_t await_covered(uint64_t want)
{
	uint64_t covered = 0;
	size_t lines, count = 0;

	for (int i = 0; i < 500 && covered < want; i++) {
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
	assert_true(count >= 3 && count < 40);
}

/* --- what can go wrong -----------------------------------------------------
 */

static void test_warden_gone(void **state)
{
	size_t lines, count;
	struct rig rig;

	(void)state;
	start(&rig);
	AUTO_FD int link = link_new(&rig);
	assert_int_equal(submit(link, "a.test", 1), 0);
	close_fd(&rig.control);
	assert_int_equal(wait_exit(&rig), 0);
	assert_int_equal(check_log(&lines, &count, false), 2);
	assert_int_equal(lines, 2);
	AUTO_BYTES struct bytes receipt = slurp("receipt");
	assert_int_equal(receipt.len, 0);
}

/* From here on fdatasync(2) is an error, in this process and its children. */
static void break_sync(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), code };

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		_exit(98);
}

static void start_broken(struct rig *rig, const struct msg_ledger_start *start)
{
	struct msg msg;
	char path[96];

	spawn_after(rig, break_sync);
	snprintf(path, sizeof(path), "%s/log", dir);
	give_start(rig, path, start);
	give_files(rig);
	assert_int_equal(msg_send(rig->control, MSG_LEDGER_GO, NULL, -1), 0);
	assert_int_equal(msg_recv(rig->control, &msg, 0), 1);
}

static void test_no_sync(void **state)
{
	struct msg_ledger_start message = start_message();
	size_t lines, count;
	struct rig rig;

	(void)state;
	/* By default what is written is acknowledged, but soon nothing more. */
	start_broken(&rig, &message);
	AUTO_FD int link = link_new(&rig);
	assert_int_equal(submit(link, "a.test", 1), 0);
	assert_cut(link);
	assert_int_equal(wait_exit(&rig), 1);
	assert_int_equal(check_log(&lines, &count, false), 0);
	assert_int_equal(lines, 1);

	/* Nothing is, if it must be on the disk; */
	message.durable = 1;
	start_broken(&rig, &message);
	AUTO_FD int durable = link_new(&rig);
	assert_int_equal(submit(durable, "a.test", 1), -EIO);
	assert_int_equal(wait_exit(&rig), 1);

	/* or signed. */
	message.durable = 0;
	message.sign_every = 1;
	start_broken(&rig, &message);
	AUTO_FD int every = link_new(&rig);
	assert_int_equal(submit(every, "a.test", 1), -EIO);
	assert_int_equal(wait_exit(&rig), 1);
	assert_int_equal(check_log(&lines, &count, false), 0);
}

/* The checkpoints find no room: whole ones only, and the log is lost. */
static void test_checkpoints_full(void **state)
{
	struct msg_ledger_start message = start_message();
	char mnt[64], path[96];
	uint64_t acked = 0;
	size_t lines, count;
	struct rig rig;
	struct msg msg;

	(void)state;
	snprintf(mnt, sizeof(mnt), "%s/full", dir);
	assert_int_equal(mkdir(mnt, 0755), 0);
	assert_int_equal(mount("tmpfs", mnt, "tmpfs", 0, "size=4k"), 0);
	message.sign_every = 1;
	spawn(&rig);
	snprintf(path, sizeof(path), "%s/log", dir);
	give_start(&rig, path, &message);
	give_file(&rig, LEDGER_CHECKPOINTS, rig_file("full/checkpoints"));
	give_file(&rig, LEDGER_RECEIPT, rig_file("receipt"));
	give_file(&rig, LEDGER_KEY, rig_key());
	give_file(&rig, LEDGER_VKEY, rig_file("vkey"));
	assert_int_equal(msg_send(rig.control, MSG_LEDGER_GO, NULL, -1), 0);
	assert_int_equal(msg_recv(rig.control, &msg, 0), 1);
	AUTO_FD int link = link_new(&rig);
	while (acked < 100 && submit(link, "a.test", acked + 1) == 0)
		acked++;
	assert_in_range(acked, 5, 50);
	assert_int_equal(wait_exit(&rig), 1);
	/* Read from where the others are. */
	AUTO_BYTES struct bytes notes = slurp("full/checkpoints");
	AUTO_FD int copy = rig_file("checkpoints");
	assert_int_equal(write(copy, notes.at, notes.len), notes.len);
	assert_int_equal(check_log(&lines, &count, false), acked);
	assert_int_equal(lines, acked + 1);
	assert_int_equal(umount(mnt), 0);
	rmdir(mnt);
}

/* Dies at any moment: what it acknowledged is there, and every checkpoint is of
 * lines that are there. */
static void test_killed(void **state)
{
	unsigned seed = (unsigned)time(NULL);
	size_t lines, count;
	uint64_t covered = 0;

	(void)state;
	print_message("seed %u\n", seed);
	for (int round = 0; round < 40; round++) {
		struct msg_ledger_start message = start_message();
		uint64_t acked = 0, seq = 0;
		uint8_t ack[RECORD_ACK_LEN];
		struct rig rig;
		char path[96];
		int status;

		message.sign_every = round % 4 == 3;
		snprintf(path, sizeof(path), "%s/log", dir);
		start_with(&rig, path, &message, NULL);
		AUTO_FD int link = link_new(&rig);
		pid_t killer = fork();
		if (killer == 0) {
			usleep((useconds_t)rand_r(&seed) % 60000);
			kill(rig.pid, SIGKILL);
			_exit(0);
		}
		rand_r(&seed);
		while (send_raw(link, "a.test", ++seq) == 0)
			;
		while (recv(link, ack, sizeof(ack), 0) == sizeof(ack))
			record_ack_decode(ack, sizeof(ack), &acked);
		waitpid(killer, &status, 0);
		close_fd(&rig.control);
		assert_int_equal(waitpid(rig.pid, &status, 0), rig.pid);
		assert_true(WIFSIGNALED(status));
		covered += check_log(&lines, &count, true);
		assert_true(lines >= acked);
		if (message.sign_every)
			assert_true(check_log(&lines, &count, true) >= acked);
	}
	assert_true(covered > 100);
}

/* The warden's answer to what the ledger may have asked. How many parts are
 * full now. */
static uint32_t answer_if_asked(struct rig *rig, uint32_t parts)
{
	struct msg_ledger_part part;
	char old[96], new[96];
	struct msg msg;

	if (msg_recv(rig->control, &msg, MSG_DONTWAIT) != 1)
		return parts;
	assert_int_equal(msg.type, MSG_LEDGER_ROTATE);
	part = msg.ledger_part;
	assert_int_equal(part.number, parts + 1);
	snprintf(old, sizeof(old), "%s/log", dir);
	snprintf(new, sizeof(new), "%s/log.%06u", dir, part.number);
	assert_int_equal(rename(old, new), 0);
	AUTO_FD int fd = rig_file("log");
	msg_send(rig->control, MSG_LEDGER_PART, &part, fd); /* it may be dead */
	return part.number;
}

/* The same, while parts get full: the tree is over all of them. */
static void test_killed_between_parts(void **state)
{
	unsigned seed = (unsigned)time(NULL);
	uint32_t most = 0;
	size_t count;

	(void)state;
	print_message("seed %u\n", seed);
	for (int round = 0; round < 20; round++) {
		struct msg_ledger_start message = start_message();
		struct roots roots = { 0 };
		uint32_t parts = 0;
		uint64_t seq = 0;
		struct rig rig;
		char path[96], name[32];
		int status;

		message.rotate_bytes = 20000;
		snprintf(path, sizeof(path), "%s/log", dir);
		start_with(&rig, path, &message, NULL);
		AUTO_FD int link = link_new(&rig);
		uint64_t last = 10 + (uint64_t)rand_r(&seed) % 600;
		while (seq < last) {
			assert_int_equal(send_raw(link, "a.test", ++seq), 0);
			parts = answer_if_asked(&rig, parts);
		}
		kill(rig.pid, SIGKILL);
		close_fd(&rig.control);
		assert_int_equal(waitpid(rig.pid, &status, 0), rig.pid);
		for (uint32_t i = 1; i <= parts; i++) {
			snprintf(name, sizeof(name), "log.%06u", i);
			add_part(&roots, name, i == parts);
			snprintf(path, sizeof(path), "%s/%s", dir, name);
			unlink(path);
		}
		add_part(&roots, "log", true);
		/* A part was signed to its end before the next began. */
		check_checkpoints(&roots, true, &count);
		assert_true(parts < 2 || count >= parts - 1);
		most = parts > most ? parts : most;
		free(roots.root);
	}
	assert_true(most >= 2);
}

/* --- bad order --------------------------------------------------------------
 */

/* It ends in disorder, and was never ready. */
static void assert_refused(struct rig *rig)
{
	struct msg msg;

	assert_int_equal(msg_recv(rig->control, &msg, 0), 0);
	assert_int_equal(wait_exit(rig), 1);
}

static void begin_at_log(struct rig *rig, const struct msg_ledger_start *start)
{
	char path[96];

	spawn(rig);
	snprintf(path, sizeof(path), "%s/log", dir);
	give_start(rig, path, start);
}

static void test_bad_start(void **state)
{
	static const enum ledger_file needed[] = {
		LEDGER_CHECKPOINTS,
		LEDGER_RECEIPT,
		LEDGER_VKEY,
	};
	static const char *const names[] = { "checkpoints", "receipt", "vkey" };
	struct msg_ledger_start message = start_message();
	struct msg_ledger_link link = { .warden = 1 };
	struct msg_ledger_earlier earlier = { .lines = 1 };
	struct rig rig;

	(void)state;
	/* One is missing: any, or the key. */
	for (size_t skip = 0; skip <= ARRAY_SIZE(needed); skip++) {
		begin_at_log(&rig, &message);
		for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
			if (i != skip)
				give_file(&rig, needed[i], rig_file(names[i]));
		if (skip < ARRAY_SIZE(needed))
			give_file(&rig, LEDGER_KEY, rig_key());
		msg_send(rig.control, MSG_LEDGER_GO, NULL, -1);
		assert_refused(&rig);
	}
	/* One is there twice. */
	begin_at_log(&rig, &message);
	give_files(&rig);
	give_file(&rig, LEDGER_VKEY, rig_file("vkey"));
	assert_refused(&rig);
	/* One is somebody else's. */
	AUTO_FD int unfit = rig_file("unfit");
	assert_int_equal(write(unfit, "x", 1), 1);
	begin_at_log(&rig, &message);
	give_file(&rig, LEDGER_CHECKPOINTS, dup(unfit));
	assert_refused(&rig);
	/* What is no key. */
	begin_at_log(&rig, &message);
	give_file(&rig, LEDGER_CHECKPOINTS, rig_file("checkpoints"));
	give_file(&rig, LEDGER_RECEIPT, rig_file("receipt"));
	give_file(&rig, LEDGER_VKEY, rig_file("vkey"));
	give_file(&rig, LEDGER_KEY, dup(unfit));
	msg_send(rig.control, MSG_LEDGER_GO, NULL, -1);
	assert_refused(&rig);
	/* Too early; */
	begin_at_log(&rig, &message);
	assert_int_equal(msg_send(rig.control, MSG_LEDGER_LINK, &link, unfit),
			 0);
	assert_refused(&rig);
	/* twice; */
	begin_at_log(&rig, &message);
	msg_send(rig.control, MSG_LEDGER_EARLIER, &earlier, -1);
	msg_send(rig.control, MSG_LEDGER_EARLIER, &earlier, -1);
	assert_refused(&rig);
	/* a digest that is none. */
	message.policy_digest[5] = 'x';
	begin_at_log(&rig, &message);
	assert_refused(&rig);
}

static void test_bad_order(void **state)
{
	struct msg_ledger_end how = { .ended = ENDED_EXIT };
	struct msg_ledger_part part = { .number = 1 };
	uint8_t buf[RECORD_PACKED_MAX];
	size_t lines, count;
	struct rig rig;

	(void)state;
	/* A part that was not asked for. */
	start(&rig);
	AUTO_FD int fd = rig_file("log.000001");
	assert_int_equal(msg_send(rig.control, MSG_LEDGER_PART, &part, fd), 0);
	assert_refused(&rig);
	assert_int_equal(check_log(&lines, &count, false), 1);
	/* Two ends. */
	start(&rig);
	msg_send(rig.control, MSG_LEDGER_END, &how, -1);
	msg_send(rig.control, MSG_LEDGER_END, &how, -1);
	assert_refused(&rig);
	/* Another start. */
	start(&rig);
	msg_send(rig.control, MSG_LEDGER_GO, NULL, -1);
	assert_refused(&rig);
	/* It was closed, but how it ended was not said. */
	start(&rig);
	AUTO_FD int link = link_new(&rig);
	struct audit_event close = event_of(EVENT_SESSION_CLOSE, NULL);
	assert_int_equal(submit(link, "a.test", 1), 0);
	size_t len = record_pack(&close, 2, buf);
	assert_int_equal(send(link, buf, len, 0), len);
	msg_send(rig.control, MSG_LEDGER_FINISH, NULL, -1);
	assert_refused(&rig);
	json_t *log = read_log(&rig);
	assert_int_equal(json_array_size(log), 2);
	assert_int_equal(count_of(log, "does not expect"), 1);
	json_decref(log);
}

/* Who comes after the last record is not heard: it stays the last. */
static void test_after_the_end(void **state)
{
	static struct tally tally;
	struct msg_ledger_end how = { .ended = ENDED_EXIT };
	struct rig rig;

	(void)state;
	start(&rig);
	AUTO_FD int warden = link_new(&rig);
	AUTO_FD int gate = link_as(&rig, false);
	open_session(warden);
	close_session(&rig, warden, &how);
	assert_int_equal(submit(gate, "late.test", 1), -EIO);
	assert_int_equal(finish(&rig, &tally), 0);
	assert_int_equal(tally.records, 2);
	assert_int_equal(rig.done.receipt, 1);
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
		cmocka_unit_test(test_warden_gone),
		cmocka_unit_test(test_no_sync),
		cmocka_unit_test(test_checkpoints_full),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_killed_between_parts),
		cmocka_unit_test(test_bad_start),
		cmocka_unit_test(test_bad_order),
		cmocka_unit_test(test_after_the_end),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
