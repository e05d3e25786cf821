/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_rig.h - a ledger as it is, a process of its own, and a warden's side
 * for it.
 */
#ifndef TESTS_CMD_LEDGER_RIG_H
#define TESTS_CMD_LEDGER_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/client.h"
#include "audit/key.h"
#include "audit/record.h"
#include "base/cleanup.h"
#include "cmd/ledger.h"
#include "cmd/privsep.h"
#include "launch/child.h"
#include "launch/isolate.h"

#define RIG_SESSION "5e551071"
#define RIG_KEY	    "host.example"
#define RIG_POLICY \
	"d1ce57d1ce57d1ce57d1ce57d1ce57d1ce57d1ce57d1ce57d1ce57d1ce57d1ce"

struct rig {
	pid_t pid;
	int control;
	char path[96];
	struct msg_tally_done done; /* after finish() */
	bool ages;		    /* its parts do: it may ask for another */
};

static char dir[] = "/tmp/sallyport-ledger-XXXXXX";

/* @before, if any: run in the new process. */
static inline void spawn_after(struct rig *rig, void (*before)(void))
{
	int sock[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
	rig->pid = fork();
	assert_true(rig->pid >= 0);
	if (rig->pid == 0) {
		/* As child_spawn() would: one socket, own mounts. */
		int control = fcntl(sock[1], F_DUPFD, 10);

		if (control < 0 || unshare(CLONE_NEWNS) < 0 ||
		    dup2(control, CHILD_SOCKET) < 0)
			_exit(99);
		if (before)
			before();
		for (int fd = CHILD_SOCKET + 1; fd < 64; fd++)
			close(fd);
		_exit(ledger_main());
	}
	close(sock[1]);
	rig->control = sock[0];
}

static inline void spawn(struct rig *rig)
{
	spawn_after(rig, NULL);
}

/* A new file of the session's, for appending. */
static inline int rig_file(const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC,
		      0600);
	assert_true(fd >= 0);
	return fd;
}

static inline int rig_key(void)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/signing.key", dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static inline int give_file(struct rig *rig, enum ledger_file file, int fd)
{
	struct msg_ledger_file msg = { .file = file };

	if (file == LEDGER_KEY)
		snprintf(msg.name, sizeof(msg.name), RIG_KEY);
	int r = msg_send(rig->control, MSG_LEDGER_FILE, &msg, fd);
	close(fd);
	return r;
}

static inline void give_files(struct rig *rig)
{
	give_file(rig, LEDGER_CHECKPOINTS, rig_file("checkpoints"));
	give_file(rig, LEDGER_RECEIPT, rig_file("receipt"));
	give_file(rig, LEDGER_KEY, rig_key());
	give_file(rig, LEDGER_VKEY, rig_file("vkey"));
}

static inline struct msg_ledger_start start_message(void)
{
	return (struct msg_ledger_start){ .session = RIG_SESSION,
					  .sandbox_name = "run",
					  .policy_digest = RIG_POLICY,
					  .policy_name = "test",
					  .boundary = "netns",
					  .separation = "uid",
					  .command = "true",
					  .policy_files = "policy.yaml" };
}

/* The first messages, with a log on @where. */
static inline void give_start(struct rig *rig, const char *where,
			      const struct msg_ledger_start *start)
{
	const struct msg_isolate isolate = { .uid = ISOLATE_UID_LEDGER,
					     .gid = ISOLATE_UID_LEDGER };

	snprintf(rig->path, sizeof(rig->path), "%s", where);
	AUTO_FD int log =
		open(where, O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC,
		     0600);
	assert_true(log >= 0);
	assert_int_equal(
		msg_send(rig->control, MSG_LEDGER_ISOLATE, &isolate, -1), 0);
	assert_int_equal(msg_send(rig->control, MSG_LEDGER_START, start, log),
			 0);
}

static inline void start_with(struct rig *rig, const char *where,
			      const struct msg_ledger_start *start,
			      const struct msg_ledger_earlier *earlier)
{
	struct msg msg;

	rig->ages = start->rotate_s;
	spawn(rig);
	give_start(rig, where, start);
	give_files(rig);
	if (earlier)
		assert_int_equal(
			msg_send(rig->control, MSG_LEDGER_EARLIER, earlier, -1),
			0);
	assert_int_equal(msg_send(rig->control, MSG_LEDGER_GO, NULL, -1), 0);
	assert_int_equal(msg_recv(rig->control, &msg, 0), 1);
	assert_int_equal(msg.type, MSG_LEDGER_READY);
}

static inline void start_at(struct rig *rig, const char *where)
{
	struct msg_ledger_start message = start_message();

	start_with(rig, where, &message, NULL);
}

static inline void start(struct rig *rig)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/log", dir);
	start_at(rig, path);
}

/* How it ended: before the record that says so. */
static inline void end(struct rig *rig)
{
	struct msg_ledger_end message = { .ended = ENDED_EXIT,
					  .held = BOUNDARY_HELD };

	assert_int_equal(msg_send(rig->control, MSG_LEDGER_END, &message, -1),
			 0);
}

static inline int link_as(struct rig *rig, bool warden)
{
	struct msg_ledger_link link = { .warden = warden };
	int sock[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
	assert_int_equal(
		msg_send(rig->control, MSG_LEDGER_LINK, &link, sock[1]), 0);
	close(sock[1]);
	return sock[0];
}

static inline int link_new(struct rig *rig)
{
	return link_as(rig, true);
}

static inline int wait_exit(struct rig *rig)
{
	int status;

	close_fd(&rig->control);
	assert_int_equal(waitpid(rig->pid, &status, 0), rig->pid);
	if (!WIFEXITED(status))
		fail_msg("the ledger died of signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* Ends it in order; the tally. */
static inline int finish(struct rig *rig, struct tally *ret_tally)
{
	struct msg msg;

	memset(ret_tally, 0, sizeof(*ret_tally));
	assert_int_equal(msg_send(rig->control, MSG_LEDGER_FINISH, NULL, -1),
			 0);
	for (;;) {
		assert_int_equal(msg_recv(rig->control, &msg, 0), 1);
		if (msg.type == MSG_TALLY_DONE)
			break;
		if (msg.type == MSG_LEDGER_ROTATE && rig->ages)
			continue;
		assert_int_equal(msg.type, MSG_TALLY_ROW);
		assert_true(ret_tally->rows < TALLY_MAX);
		ret_tally->row[ret_tally->rows++] = msg.tally_row;
	}
	ret_tally->records = msg.tally_done.records;
	rig->done = msg.tally_done;
	return wait_exit(rig);
}

static inline struct audit_event event_of(enum event_kind kind,
					  const char *host)
{
	return (struct audit_event){ .kind = kind,
				     .host = host,
				     .verdict = { .allow = true },
				     .dst_port = 443 };
}

static inline int send_raw(int link, const char *host, uint64_t seq)
{
	struct audit_event event = event_of(EVENT_FLOW_OPEN, host);
	uint8_t buf[RECORD_PACKED_MAX];
	size_t len = record_pack(&event, seq, buf);

	return send(link, buf, len, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static inline int submit(int link, const char *host, uint64_t seq)
{
	struct audit_event event = event_of(EVENT_FLOW_OPEN, host);

	return audit_submit_sync(link, &event, seq);
}

/* The log as JSON; fails on a line that is not, or out of sequence. */
static inline json_t *read_log(const struct rig *rig)
{
	AUTO_FILE FILE *file = fopen(rig->path, "r");
	AUTO_FREE char *line = NULL;
	json_t *all = json_array();
	json_error_t error;
	size_t cap = 0;
	ssize_t len;

	assert_non_null(file);
	while ((len = getline(&line, &cap, file)) > 0) {
		assert_int_equal(line[len - 1], '\n');
		json_t *one = json_loadb(line, (size_t)len, 0, &error);
		assert_non_null(one);
		json_t *meta = json_object_get(one, "metadata");
		assert_int_equal(
			json_integer_value(json_object_get(meta, "sequence")),
			json_array_size(all));
		assert_true(json_integer_value(json_object_get(one, "time")) >
			    1700000000000);
		json_array_append_new(all, one);
	}
	return all;
}

static inline const char *message_of(json_t *log, size_t i)
{
	return json_string_value(
		json_object_get(json_array_get(log, i), "message"));
}

static inline size_t count_of(json_t *log, const char *part)
{
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(log); i++)
		n += strstr(message_of(log, i), part) != NULL;
	return n;
}

/* The first record, without which nobody else is heard. */
static inline void open_session(int warden)
{
	struct audit_event open = event_of(EVENT_SESSION_OPEN, NULL);

	assert_int_equal(audit_submit_sync(warden, &open, 1), 0);
}

/* The other end was closed: nothing more can be read from @link but that. */
static inline void assert_cut(int link)
{
	struct pollfd pfd = { .fd = link, .events = POLLIN };
	uint8_t buf[64];
	ssize_t n;

	do {
		assert_int_equal(poll(&pfd, 1, 30000), 1);
		n = recv(link, buf, sizeof(buf), MSG_DONTWAIT);
	} while (n > 0 || (n < 0 && errno == ECONNRESET));
	assert_int_equal(n, 0);
}

static inline int setup(void **state)
{
	struct key *key = NULL;

	(void)state;
	/* Mounts of the test are seen by nobody else, and end with it. */
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    !mkdtemp(dir))
		return -1;
	AUTO_FD int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = key_generate((struct text){ RIG_KEY, strlen(RIG_KEY) }, &key);

	if (r == 0)
		r = key_write(key, fd, "signing.key");
	key_free(key);
	return r;
}

static inline int teardown(void **state)
{
	static const char *const files[] = {
		"log",	"log.000001", "log.000002",  "checkpoints", "receipt",
		"vkey", "full",	      "signing.key", "unfit",
	};
	char path[96];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		remove(path);
	}
	return rmdir(dir);
}

#endif
