/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_link.c - the ledger as it is, a process with a socket: how many records
 * a second it takes, formats, hashes, writes and acknowledges, and how much CPU
 * each of them costs it. The sender is on another core, and no more than
 * WINDOW records ahead, PACK of them in a message, as a gate that is busy.
 *
 * There is no bound: what the ledger may cost is said of real connections, in
 * bench_run.py. An argument is the number of records.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/key.h"
#include "audit/record.h"
#include "base/cleanup.h"
#include "cmd/ledger.h"
#include "cmd/privsep.h"
#include "launch/child.h"
#include "tests/bench/mix.h"
#include "tests/bench/timing.h"

#define RECORDS 300000
#define WINDOW	1024
#define PACK	8
#define DIGITS \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char dir[] = "/tmp/sallyport-bench-XXXXXX";

static int new_file(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return open(path, O_RDWR | O_CREAT | O_APPEND | O_EXCL | O_CLOEXEC,
		    0600);
}

static pid_t spawn(int *ret_control)
{
	int sock[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		/* As child_spawn() would: one socket, own mounts. */
		int control = fcntl(sock[1], F_DUPFD, 10);

		if (control < 0 || unshare(CLONE_NEWNS) < 0 || !pin_to(0) ||
		    dup2(control, CHILD_SOCKET) < 0)
			_exit(99);
		close_range(CHILD_SOCKET + 1, ~0u, 0);
		_exit(ledger_main());
	}
	close(sock[1]);
	*ret_control = sock[0];
	return pid;
}

static int give_file(int control, enum ledger_file file, int fd)
{
	struct msg_ledger_file msg = { .file = file };
	AUTO_FD int taken = fd;

	if (file == LEDGER_KEY)
		strcpy(msg.name, "bench.test");
	return taken < 0 ? -errno
			 : msg_send(control, MSG_LEDGER_FILE, &msg, taken);
}

static int key_file(void)
{
	const struct text name = { "bench.test", 10 };
	AUTO_FD int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct key *key;

	if (key_generate(name, &key) < 0)
		return -1;
	key_write(key, dirfd, "signing.key");
	key_free(key);
	return openat(dirfd, "signing.key", O_RDONLY | O_CLOEXEC);
}

/* All that the warden sends; then a link. -1 after an error. */
static int start(int control)
{
	struct msg_ledger_start begin = { .session = "0123456789abcdef",
					  .sandbox_name = "run",
					  .policy_digest = DIGITS,
					  .policy_name = "coding-agent",
					  .boundary = "netns",
					  .separation = "uid",
					  .rotate_bytes = UINT64_C(1) << 30 };
	struct msg_ledger_link link = { .warden = 1 };
	struct msg_isolate isolate = { 0 };
	AUTO_FD int log = new_file("audit.jsonl");
	struct msg msg;
	int sock[2];

	if (msg_send(control, MSG_LEDGER_ISOLATE, &isolate, -1) < 0 ||
	    msg_send(control, MSG_LEDGER_START, &begin, log) < 0 ||
	    give_file(control, LEDGER_CHECKPOINTS, new_file("checkpoints")) ||
	    give_file(control, LEDGER_RECEIPT, new_file("receipt")) ||
	    give_file(control, LEDGER_KEY, key_file()) ||
	    give_file(control, LEDGER_VKEY, new_file("vkey")) ||
	    msg_send(control, MSG_LEDGER_GO, NULL, -1) < 0 ||
	    msg_recv(control, &msg, 0) != 1 || msg.type != MSG_LEDGER_READY ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) < 0)
		return -1;
	if (msg_send(control, MSG_LEDGER_LINK, &link, sock[1]) < 0)
		return -1;
	close(sock[1]);
	return sock[0];
}

/* Waits for an acknowledgement. */
static bool take_ack(int link, uint64_t *acked)
{
	uint8_t data[RECORD_ACK_LEN];
	ssize_t n = recv(link, data, sizeof(data), 0);

	return n > 0 && record_ack_decode(data, (size_t)n, acked) == 0;
}

static bool send_records(int link, uint64_t n)
{
	static uint8_t data[PACK * RECORD_PACKED_MAX];
	struct mix mix = { 0 };
	uint64_t acked = 0;
	size_t len = 0;

	for (uint64_t seq = 1; seq <= n; seq++) {
		struct audit_event event = mix_next(&mix);

		len += record_pack(&event, seq, data + len);
		if (seq % PACK && seq < n)
			continue;
		while (seq - acked > WINDOW)
			if (!take_ack(link, &acked))
				return false;
		if (send(link, data, len, MSG_NOSIGNAL) < 0)
			return false;
		len = 0;
	}
	while (acked < n)
		if (!take_ack(link, &acked))
			return false;
	return true;
}

/* Seconds of CPU that a process has had, of all its threads. */
static double cpu_of(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) ? 0 : seconds_of(clock);
}

static bool measure(int link, pid_t pid, uint64_t n)
{
	double wall = now_s(), cpu = cpu_of(pid);

	if (!send_records(link, n))
		return false;
	wall = now_s() - wall;
	cpu = cpu_of(pid) - cpu;
	printf("taken and acknowledged: %.0f records/s by the clock, %.2f us "
	       "of the ledger's CPU each\n",
	       (double)n / wall, cpu * 1e6 / (double)n);
	return true;
}

static void clean_up(void)
{
	static const char *const names[] = { "audit.jsonl", "checkpoints",
					     "receipt", "signing.key", "vkey" };
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : RECORDS;
	int control = -1, link = -1, status = -1;
	bool ok = false;
	pid_t pid = -1;

	if (n && mkdtemp(dir))
		pid = spawn(&control);
	if (pid > 0 && pin_to(1))
		link = start(control);
	if (link >= 0)
		ok = measure(link, pid, n);
	close_fd(&link);
	close_fd(&control); /* it ends, and says that we are gone */
	if (pid > 0)
		waitpid(pid, &status, 0);
	clean_up();
	if (!ok || !WIFEXITED(status) || WEXITSTATUS(status))
		printf("the ledger failed\n");
	return ok && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
