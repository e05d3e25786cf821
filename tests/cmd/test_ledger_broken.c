/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ledger_broken.c - the log of a ledger that was killed, that could make
 * nothing last, or that was never begun in order.
 */
#include "tests/cmd/ledger_log_case.h"

/* Records that a sender does not wait for. */
#define UNDER_WAY 64

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
	/* More where the machine is slow: that some were signed, shows much. */
	for (int round = 0; round < 40 || covered <= 100; round++) {
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

/* Which record was acknowledged last. */
static uint64_t acked_now(int link, uint64_t acked)
{
	uint8_t ack[RECORD_ACK_LEN];

	while (recv(link, ack, sizeof(ack), MSG_DONTWAIT) == sizeof(ack))
		record_ack_decode(ack, sizeof(ack), &acked);
	return acked;
}

/* Until @last records are acknowledged; a few more are under way. Those that
 * are, and how many parts got full. */
static uint64_t fill(struct rig *rig, int link, uint64_t last,
		     uint32_t *ret_parts)
{
	uint64_t acked = 0, seq = 0;

	for (*ret_parts = 0; acked < last; acked = acked_now(link, acked)) {
		struct pollfd pfd[] = {
			{ .fd = link, .events = POLLIN },
			{ .fd = rig->control, .events = POLLIN },
		};

		*ret_parts = answer_if_asked(rig, *ret_parts);
		if (seq < acked + UNDER_WAY)
			assert_int_equal(send_raw(link, "a.test", ++seq), 0);
		else
			poll(pfd, ARRAY_SIZE(pfd), -1);
		assert_int_equal(pfd[1].revents & (POLLHUP | POLLERR), 0);
	}
	return acked;
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
		uint64_t acked, last;
		uint32_t parts;
		struct rig rig;
		char path[96], name[32];
		int status;

		message.rotate_bytes = 20000;
		snprintf(path, sizeof(path), "%s/log", dir);
		start_with(&rig, path, &message, NULL);
		AUTO_FD int link = link_new(&rig);
		last = 10 + (uint64_t)rand_r(&seed) % 600;
		acked = fill(&rig, link, last, &parts);
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
		assert_true(roots.lines >= acked);
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

/* It ends in disorder, and was never ready. What it was told after that it may
 * not have read: so the kernel calls its end a reset. */
static void assert_refused(struct rig *rig)
{
	struct msg msg;
	int got = msg_recv(rig->control, &msg, 0);

	assert_true(got == 0 || got == -ECONNRESET);
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
