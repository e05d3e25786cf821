/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ledger.c - the ledger as it is: a process of its own, isolated, with
 * sockets that real senders fill, leave and die on. What it acknowledges is in
 * the file, always.
 */
#include "tests/cmd/ledger_rig.h"

static void test_session(void **state)
{
	static struct tally tally;
	struct rig rig;

	(void)state;
	start(&rig);
	AUTO_FD int warden = link_new(&rig);
	AUTO_FD int gate = link_new(&rig);
	struct audit_event open = event_of(EVENT_SESSION_OPEN, NULL);
	assert_int_equal(audit_submit_sync(warden, &open, 1), 0);
	for (uint64_t seq = 1; seq <= 100; seq++)
		assert_int_equal(submit(gate, "a.test", seq), 0);
	/* Accepted means: in the file now, not later. */
	json_t *log = read_log(&rig);
	assert_int_equal(json_array_size(log), 101);
	json_decref(log);
	struct audit_event close = event_of(EVENT_SESSION_CLOSE, NULL);
	end(&rig);
	assert_int_equal(audit_submit_sync(warden, &close, 2), 0);
	assert_int_equal(finish(&rig, &tally), 0);
	log = read_log(&rig);
	assert_int_equal(json_array_size(log), 102);
	assert_string_equal(message_of(log, 0), "The session began.");
	assert_string_equal(message_of(log, 101), "The session ended.");
	json_decref(log);
	assert_int_equal(tally.records, 102);
	assert_int_equal(tally.rows, 1);
	assert_string_equal(tally.row[0].host, "a.test");
	assert_int_equal(tally.row[0].count, 100);
}

static const char *policy_uid(json_t *log, size_t i)
{
	return json_string_value(json_object_get(
		json_object_get(json_array_get(log, i), "policy"), "uid"));
}

/* Only the warden changes the policy; from then on records name the new one. */
static void test_policy_change(void **state)
{
	static struct tally tally;
	char detail[RECORD_POLICY_DETAIL_MAX], new[65], want[80];
	struct rig rig;

	(void)state;
	memset(new, '7', sizeof(new));
	new[64] = '\0';
	snprintf(want, sizeof(want), "sha256:%s", new);
	start(&rig);
	AUTO_FD int warden = link_new(&rig);
	AUTO_FD int gate = link_as(&rig, false);
	struct audit_event change = event_of(EVENT_POLICY, NULL);
	change.detail = record_policy_detail(new, new, detail);
	open_session(warden);
	assert_int_equal(submit(gate, "a.test", 1), 0);
	assert_int_equal(audit_submit_sync(warden, &change, 2), 0);
	assert_int_equal(submit(gate, "b.test", 2), 0);
	assert_int_equal(audit_submit_sync(gate, &change, 3), -EIO);
	assert_int_equal(finish(&rig, &tally), 0);
	json_t *log = read_log(&rig);
	assert_int_equal(json_array_size(log), 5);
	assert_string_equal(policy_uid(log, 1), "sha256:" RIG_POLICY);
	assert_string_equal(message_of(log, 2), "Another policy is in force.");
	assert_string_equal(policy_uid(log, 2), want);
	assert_string_equal(policy_uid(log, 3), want);
	assert_non_null(strstr(message_of(log, 4), "it was cut off"));
	json_decref(log);
}

static void test_is_isolated(void **state)
{
	static struct tally tally;
	char path[64], line[256];
	unsigned seen = 0;
	struct rig rig;

	(void)state;
	start(&rig);
	snprintf(path, sizeof(path), "/proc/%d/status", rig.pid);
	AUTO_FILE FILE *file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		seen += strcmp(line, "NoNewPrivs:\t1\n") == 0;
		seen += strcmp(line, "Seccomp:\t2\n") == 0;
		seen += strcmp(line, "CapEff:\t0000000000000000\n") == 0;
		seen += strcmp(line, "CapPrm:\t0000000000000000\n") == 0;
		seen += strncmp(line, "Uid:\t1900000002\t1900000002\t", 26) ==
			0;
	}
	assert_int_equal(seen, 5);
	/* And no signal but the last ends it before its parent does. */
	kill(rig.pid, SIGTERM);
	kill(rig.pid, SIGINT);
	kill(rig.pid, SIGHUP);
	AUTO_FD int link = link_new(&rig);
	assert_int_equal(submit(link, "a.test", 1), 0);
	assert_int_equal(finish(&rig, &tally), 0);
}

/* The close was sent before the last of what the gate had to say was read. */
static void test_close_is_last(void **state)
{
	static struct tally tally;
	struct rig rig;
	uint64_t seq = 0;

	(void)state;
	start(&rig);
	AUTO_FD int warden = link_new(&rig);
	AUTO_FD int gate = link_new(&rig);
	assert_int_equal(submit(gate, "first.test", ++seq), 0);
	kill(rig.pid, SIGSTOP);
	while (seq < 150)
		assert_int_equal(send_raw(gate, "late.test", ++seq), 0);
	struct audit_event close = event_of(EVENT_SESSION_CLOSE, NULL);
	uint8_t buf[RECORD_PACKED_MAX];
	size_t len = record_pack(&close, 1, buf);
	end(&rig);
	assert_int_equal(send(warden, buf, len, 0), len);
	kill(rig.pid, SIGCONT);
	assert_int_equal(recv(warden, buf, sizeof(buf), 0), RECORD_ACK_LEN);
	assert_int_equal(finish(&rig, &tally), 0);
	json_t *log = read_log(&rig);
	assert_int_equal(json_array_size(log), 151);
	assert_string_equal(message_of(log, 150), "The session ended.");
	json_decref(log);
}

static void test_killed_sender(void **state)
{
	static struct tally tally;
	struct rig rig;
	int pipefd[2];
	char byte;

	(void)state;
	start(&rig);
	AUTO_FD int other = link_new(&rig);
	int link = link_new(&rig);
	assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
	pid_t sender = fork();
	if (sender == 0) {
		/* Never reads an acknowledgement, and dies in the middle. */
		for (uint64_t seq = 1; seq <= 3000; seq++)
			if (send_raw(link, "dead.test", seq) < 0)
				_exit(1);
		if (write(pipefd[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	close(link);
	assert_int_equal(read(pipefd[0], &byte, 1), 1);
	kill(sender, SIGKILL);
	waitpid(sender, NULL, 0);
	assert_int_equal(submit(other, "alive.test", 1), 0);
	assert_int_equal(finish(&rig, &tally), 0);
	json_t *log = read_log(&rig);
	assert_int_equal(count_of(log, "dead.test"), 3000);
	assert_int_equal(count_of(log, "alive.test"), 1);
	json_decref(log);
	close(pipefd[0]);
	close(pipefd[1]);
}

/* It reads no acknowledgement until the end: then one number is enough. */
static void test_lazy_reader(void **state)
{
	static struct tally tally;
	uint8_t ack[RECORD_ACK_LEN];
	uint64_t acked = 0;
	struct rig rig;

	(void)state;
	start(&rig);
	AUTO_FD int link = link_new(&rig);
	for (uint64_t seq = 1; seq <= 5000; seq++)
		assert_int_equal(send_raw(link, "lazy.test", seq), 0);
	while (acked < 5000) {
		uint64_t before = acked;

		assert_int_equal(recv(link, ack, sizeof(ack), 0), sizeof(ack));
		assert_int_equal(record_ack_decode(ack, sizeof(ack), &acked),
				 0);
		assert_true(acked > before);
	}
	assert_int_equal(acked, 5000);
	assert_int_equal(finish(&rig, &tally), 0);
	assert_int_equal(tally.records, 5000);
}

/* Many in one message: all of them are taken, and acknowledged by one. */
static void test_pack(void **state)
{
	static uint8_t pack[RECORD_PACK_MAX];
	static struct tally tally;
	struct audit_event event = event_of(EVENT_FLOW_OPEN, "pack.test");
	uint8_t ack[RECORD_ACK_LEN];
	uint64_t seq = 0, acked;
	struct rig rig;
	size_t len = 0;

	(void)state;
	start(&rig);
	AUTO_FD int link = link_new(&rig);
	while (sizeof(pack) - len >= RECORD_PACKED_MAX)
		len += record_pack(&event, ++seq, pack + len);
	assert_true(seq > 100);
	assert_int_equal(send(link, pack, len, 0), len);
	assert_int_equal(recv(link, ack, sizeof(ack), 0), sizeof(ack));
	assert_int_equal(record_ack_decode(ack, sizeof(ack), &acked), 0);
	assert_int_equal(acked, seq);
	json_t *log = read_log(&rig);
	assert_int_equal(json_array_size(log), seq);
	json_decref(log);
	assert_int_equal(finish(&rig, &tally), 0);
	assert_int_equal(tally.records, seq);
}

static void test_warden_gone(void **state)
{
	struct rig rig;

	(void)state;
	start(&rig);
	AUTO_FD int link = link_new(&rig);
	assert_int_equal(submit(link, "a.test", 1), 0);
	kill(rig.pid, SIGSTOP);
	assert_int_equal(send_raw(link, "b.test", 2), 0);
	close_fd(&rig.control);
	kill(rig.pid, SIGCONT);
	assert_int_equal(wait_exit(&rig), 0);
	json_t *log = read_log(&rig);
	assert_int_equal(json_array_size(log), 3);
	assert_int_equal(count_of(log, "b.test"), 1);
	assert_non_null(strstr(message_of(log, 2), "not closed"));
	json_decref(log);
}

/* A file system of 128 KiB: what was acknowledged is there, in whole lines;
 * what was not, nobody may rely on; and the ledger is gone. */
static void test_disk_full(void **state)
{
	char mnt[64], path[80];
	uint64_t acked = 0;
	struct rig rig;

	(void)state;
	snprintf(mnt, sizeof(mnt), "%s/full", dir);
	assert_int_equal(mkdir(mnt, 0755), 0);
	assert_int_equal(mount("tmpfs", mnt, "tmpfs", 0, "size=128k"), 0);
	snprintf(path, sizeof(path), "%s/log", mnt);
	start_at(&rig, path);
	AUTO_FD int link = link_new(&rig);
	AUTO_FD int other = link_new(&rig);
	while (acked < 10000 && submit(link, "full.test", acked + 1) == 0)
		acked++;
	assert_in_range(acked, 50, 5000);
	assert_cut(other); /* all links end, not only the one that wrote */
	assert_int_equal(submit(other, "late.test", 1), -EIO);
	assert_int_equal(wait_exit(&rig), 1);
	json_t *log = read_log(&rig); /* checks that lines are whole */
	assert_true(json_array_size(log) >= acked);
	assert_true(json_array_size(log) <= acked + 1);
	json_decref(log);
	assert_int_equal(umount(mnt), 0);
}

/* The tally is larger than a socket's buffer: all of it still arrives. */
static void test_large_tally(void **state)
{
	static struct tally tally;
	struct rig rig;
	char host[64];

	(void)state;
	start(&rig);
	AUTO_FD int link = link_new(&rig);
	for (uint64_t seq = 1; seq <= 600; seq++) {
		snprintf(host, sizeof(host), "h%d.test", (int)seq);
		assert_int_equal(send_raw(link, host, seq), 0);
	}
	assert_int_equal(finish(&rig, &tally), 0);
	assert_int_equal(tally.rows, TALLY_MAX - 1);
	assert_int_equal(tally.records, 600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_policy_change),
		cmocka_unit_test(test_is_isolated),
		cmocka_unit_test(test_close_is_last),
		cmocka_unit_test(test_killed_sender),
		cmocka_unit_test(test_lazy_reader),
		cmocka_unit_test(test_pack),
		cmocka_unit_test(test_warden_gone),
		cmocka_unit_test(test_disk_full),
		cmocka_unit_test(test_large_tally),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
