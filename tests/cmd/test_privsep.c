/* SPDX-License-Identifier: Apache-2.0
 *
 * Typed messages: each type arrives as it was sent, and nothing else does.
 */
#include "cmd/privsep.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

static const struct {
	enum msg_type type;
	size_t len;
	bool fd;
} types[] = {
	{ MSG_KEEP_PREPARE, 0, true },
	{ MSG_KEEP_PREPARED, 0, false },
	{ MSG_LEDGER_ISOLATE, sizeof(struct msg_isolate), false },
	{ MSG_LEDGER_START, sizeof(struct msg_ledger_start), true },
	{ MSG_LEDGER_FILE, sizeof(struct msg_ledger_file), true },
	{ MSG_LEDGER_EARLIER, sizeof(struct msg_ledger_earlier), false },
	{ MSG_LEDGER_GO, 0, false },
	{ MSG_LEDGER_PART, sizeof(struct msg_ledger_part), true },
	{ MSG_LEDGER_END, sizeof(struct msg_ledger_end), false },
	{ MSG_LEDGER_ROTATE, sizeof(struct msg_ledger_part), false },
	{ MSG_LEDGER_LINK, sizeof(struct msg_ledger_link), true },
	{ MSG_LEDGER_FINISH, 0, false },
	{ MSG_LEDGER_READY, 0, false },
	{ MSG_TALLY_ROW, sizeof(struct tally_row), false },
	{ MSG_LEDGER_ATTACKS, sizeof(struct attacks), false },
	{ MSG_TALLY_DONE, sizeof(struct msg_tally_done), false },
	{ MSG_GATE_START, sizeof(struct msg_gate_start), false },
	{ MSG_GATE_LEDGER, 0, true },
	{ MSG_GATE_POLICY, sizeof(struct msg_gate_policy), true },
	{ MSG_GATE_SANDBOX, sizeof(struct msg_gate_sandbox), true },
	{ MSG_GATE_SOCKET, sizeof(struct msg_gate_socket), true },
	{ MSG_GATE_SERVERS, sizeof(struct msg_gate_servers), false },
	{ MSG_GATE_UPLINK, sizeof(struct msg_gate_uplink), false },
	{ MSG_GATE_CLIENTS, sizeof(struct msg_gate_uplink), false },
	{ MSG_GATE_GO, 0, false },
	{ MSG_GATE_PUBLISHED, sizeof(struct msg_published), false },
	{ MSG_GATE_READY, 0, false },
	{ MSG_GATE_PUBLISH, sizeof(struct msg_publish), false },
	{ MSG_GATE_WITHDRAW, sizeof(struct msg_publish), false },
	{ MSG_GATE_RELOADED, sizeof(struct msg_reloaded), false },
	{ MSG_KEEP_START, sizeof(struct msg_keep_start), true },
	{ MSG_KEEP_LEASES, 0, true },
	{ MSG_KEEP_NETNS, 0, true },
	{ MSG_KEEP_GO, 0, false },
	{ MSG_KEEP_POLICY, sizeof(struct msg_gate_policy), true },
	{ MSG_KEEP_FORWARD, sizeof(struct msg_keep_forward), true },
	{ MSG_KEEP_FINDING, sizeof(struct msg_keep_finding), false },
	{ MSG_KEEP_STATS, sizeof(struct msg_keep_stats), false },
	{ MSG_KEEP_END, sizeof(struct msg_keep_end), false },
	{ MSG_KEEP_EXEC, sizeof(struct msg_keep_exec), false },
	{ MSG_KEEP_ATTACKS, sizeof(struct attacks), false },
	{ MSG_KEEP_READY, sizeof(struct msg_keep_ready), false },
	{ MSG_KEEP_DONE, sizeof(struct msg_keep_done), false },
	{ MSG_KEEP_COUNTS, sizeof(struct msg_keep_counts), false },
	{ MSG_KEEP_FAILED, sizeof(struct msg_keep_failed), false },
	{ MSG_KEEP_SUMMARY, 0, true },
	{ MSG_KEEP_ENDED, sizeof(struct msg_keep_ended), false },
	{ MSG_LEDGER_SUMS, 0, false },
	{ MSG_LEDGER_SUMS_ARE, sizeof(struct msg_ledger_sums), false },
	{ MSG_GATE_FORWARD, sizeof(struct msg_keep_forward), true },
	{ MSG_GATE_DIAL, 0, true },
	{ MSG_GATE_DIALS, sizeof(struct msg_dials), false },
	{ MSG_GATE_WANT_DIALS, 0, false },
};

static int sock[2];

static int setup(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock);
}

static int teardown(void **state)
{
	(void)state;
	close_fd(&sock[0]);
	close_fd(&sock[1]);
	return 0;
}

/* A payload that passes the checks of its type: all zero, but for prefixes. */
static void fill(enum msg_type type, struct msg *msg)
{
	memset(msg, 0, sizeof(*msg));
	if (type == MSG_GATE_PUBLISH || type == MSG_GATE_WITHDRAW)
		msg->publish.dst = (struct cidr){ ip_v4(0xc6120001), 32 };
	if (type == MSG_KEEP_START)
		msg->keep_start.ip = msg->keep_start.gateway =
			ip_v4(0xc6130001);
	if (type == MSG_KEEP_FORWARD || type == MSG_GATE_FORWARD)
		msg->keep_forward.port = 80;
	if (type == MSG_TALLY_ROW)
		memset(msg->tally_row.host, 'h', HOST_MAX);
	if (type == MSG_GATE_PUBLISHED)
		msg->published.status = -ENOENT;
}

static void test_every_type(void **state)
{
	struct msg out, in;
	struct stat a, b;

	(void)state;
	assert_int_equal(ARRAY_SIZE(types), MSG_TYPE_COUNT - 1);
	AUTO_FD int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const void *payload = types[i].len ? &out.ledger_start : NULL;

		fill(types[i].type, &out);
		assert_int_equal(msg_send(sock[0], types[i].type, payload,
					  types[i].fd ? null : -1),
				 0);
		assert_int_equal(msg_recv(sock[1], &in, 0), 1);
		assert_int_equal(in.type, types[i].type);
		assert_int_equal(in.len, types[i].len);
		assert_memory_equal(&in.ledger_start, &out.ledger_start,
				    types[i].len);
		assert_int_equal(in.fd >= 0, types[i].fd);
		if (in.fd >= 0) {
			assert_int_equal(fstat(in.fd, &a), 0);
			assert_int_equal(fstat(null, &b), 0);
			assert_true(a.st_rdev == b.st_rdev);
			assert_int_equal(fcntl(in.fd, F_GETFD), FD_CLOEXEC);
			close(in.fd);
		}
	}
}

static void test_send_refuses(void **state)
{
	struct msg_tally_done done = { .records = 1 };

	(void)state;
	assert_int_equal(msg_send(sock[0], 0, NULL, -1), -EINVAL);
	assert_int_equal(msg_send(sock[0], MSG_TYPE_COUNT, NULL, -1), -EINVAL);
	assert_int_equal(msg_send(sock[0], MSG_TALLY_DONE, NULL, -1), -EINVAL);
	assert_int_equal(msg_send(sock[0], MSG_GATE_GO, &done, -1), -EINVAL);
	assert_int_equal(msg_send(sock[0], MSG_GATE_GO, NULL, 0), -EINVAL);
	assert_int_equal(msg_send(sock[0], MSG_GATE_LEDGER, NULL, -1), -EINVAL);
}

static void test_ends(void **state)
{
	struct msg msg;

	(void)state;
	assert_int_equal(msg_recv(sock[1], &msg, MSG_DONTWAIT), -EAGAIN);
	/* It dies with a message of ours unread: what it said still counts. */
	assert_int_equal(msg_send(sock[0], MSG_GATE_GO, NULL, -1), 0);
	assert_int_equal(msg_send(sock[1], MSG_GATE_READY, NULL, -1), 0);
	close_fd(&sock[0]);
	assert_int_equal(msg_recv(sock[1], &msg, 0), 1);
	assert_int_equal(msg.type, MSG_GATE_GO);
	assert_int_equal(msg_recv(sock[1], &msg, 0), 0);
	assert_int_equal(msg_send(sock[1], MSG_GATE_READY, NULL, -1), -EPIPE);
}

static int lowest_free(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* Every length but the right one, every number of descriptors but the right
 * one, unknown types: refused, and no descriptor stays open. */
static void test_wrong_size_or_fds(void **state)
{
	static uint8_t raw[sizeof(struct msg) + 64];
	int fds[2] = { 0, 0 }, before = lowest_free();
	struct msg msg;

	(void)state;
	for (uint32_t type = 0; type < MSG_TYPE_COUNT + 3; type++) {
		size_t right = SIZE_MAX, nfds = 0;

		for (size_t i = 0; i < ARRAY_SIZE(types); i++)
			if (types[i].type == type) {
				right = 4 + types[i].len;
				nfds = types[i].fd;
			}
		memset(raw, 0, sizeof(raw));
		memcpy(raw, &type, sizeof(type));
		size_t step = right == SIZE_MAX ? 16 : 1;
		for (size_t len = 1; len < sizeof(raw); len += step) {
			if (len > 8 && right != SIZE_MAX && len + 2 < right)
				len = right - 2;
			if (len > right + 2 && right != SIZE_MAX)
				break;
			for (size_t n = 0; n <= 2; n++) {
				if (len == right && n == nfds)
					continue;
				assert_int_equal(
					fdpass_send(sock[0], raw, len, fds, n),
					0);
				assert_int_equal(msg_recv(sock[1], &msg, 0),
						 -EBADMSG);
			}
		}
	}
	/* Longer than any message; empty, but with a descriptor. */
	assert_int_equal(fdpass_send(sock[0], raw, sizeof(raw), fds, 1), 0);
	assert_int_equal(msg_recv(sock[1], &msg, 0), -EBADMSG);
	assert_int_equal(fdpass_send(sock[0], raw, 0, fds, 1), 0);
	assert_int_equal(msg_recv(sock[1], &msg, 0), -EBADMSG);
	assert_int_equal(lowest_free(), before);
}

/* What the right length does not show. Sent by hand: both ends check. */
static void assert_refused(enum msg_type type, const struct msg *msg,
			   size_t len, bool fd)
{
	uint8_t raw[sizeof(*msg) + 4];
	uint32_t word = type;
	int null = 0, before = lowest_free();
	struct msg in;

	memcpy(raw, &word, 4);
	memcpy(raw + 4, &msg->ledger_start, len);
	assert_int_equal(fdpass_send(sock[0], raw, 4 + len, &null, fd), 0);
	assert_int_equal(msg_recv(sock[1], &in, 0), -EBADMSG);
	assert_int_equal(lowest_free(), before);
}
#define REFUSED(type, field, fd, ...)                              \
	do {                                                       \
		struct msg msg;                                    \
		fill(type, &msg);                                  \
		__VA_ARGS__;                                       \
		assert_refused(type, &msg, sizeof(msg.field), fd); \
	} while (0)

static void test_wrong_contents_keep(void **state)
{
	(void)state;
	REFUSED(MSG_KEEP_START, keep_start, true,
		memset(msg.keep_start.name, 'x', 64));
	REFUSED(MSG_KEEP_START, keep_start, true,
		memset(msg.keep_start.log_dir, 'x', 1024));
	REFUSED(MSG_KEEP_START, keep_start, true,
		msg.keep_start.link = KEEP_LINK_JOIN + 1);
	REFUSED(MSG_KEEP_START, keep_start, true, msg.keep_start.ip.len = 0);
	REFUSED(MSG_KEEP_START, keep_start, true, msg.keep_start.bits = 33);
	REFUSED(MSG_KEEP_FORWARD, keep_forward, true,
		msg.keep_forward.port = 0);
	REFUSED(MSG_KEEP_END, keep_end, false,
		msg.keep_end.ended = ENDED_FAILED + 1);
	REFUSED(MSG_KEEP_DONE, keep_done, false, msg.keep_done.status = 1);
	REFUSED(MSG_KEEP_FAILED, keep_failed, false,
		memset(msg.keep_failed.text, 'x', 512));
	REFUSED(MSG_KEEP_ENDED, keep_ended, false, msg.keep_ended.whole = 2);
}

static void test_wrong_contents(void **state)
{
	(void)state;
	REFUSED(MSG_LEDGER_START, ledger_start, true,
		memset(msg.ledger_start.session, 'x', 64));
	REFUSED(MSG_LEDGER_START, ledger_start, true,
		memset(msg.ledger_start.policy_digest, 'x', 65));
	REFUSED(MSG_TALLY_ROW, tally_row, false,
		memset(msg.tally_row.host, 'x', sizeof(msg.tally_row.host)));
	REFUSED(MSG_TALLY_ROW, tally_row, false,
		memset(msg.tally_row.rule, 'x', sizeof(msg.tally_row.rule)));
	REFUSED(MSG_TALLY_ROW, tally_row, false,
		msg.tally_row.reason = REASON_COUNT);
	REFUSED(MSG_TALLY_ROW, tally_row, false,
		msg.tally_row.observed = REASON_COUNT);
	REFUSED(MSG_TALLY_ROW, tally_row, false,
		msg.tally_row.door = DOOR_COUNT);
	REFUSED(MSG_TALLY_ROW, tally_row, false, msg.tally_row.allow = 2);
	REFUSED(MSG_GATE_START, gate_start, false,
		msg.gate_start.answer.len = 5);
	REFUSED(MSG_GATE_START, gate_start, false,
		msg.gate_start.answer = ip_v4(1);
		msg.gate_start.answer.byte[9] = 1);
	REFUSED(MSG_GATE_SANDBOX, gate_sandbox, true,
		msg.gate_sandbox.leased = 2);
	REFUSED(MSG_GATE_SOCKET, gate_socket, true,
		msg.gate_socket.socket = GATE_SOCKET_COUNT);
	REFUSED(MSG_GATE_SERVERS, gate_servers, false,
		msg.gate_servers.count = MSG_SERVERS_MAX + 1);
	REFUSED(MSG_GATE_SERVERS, gate_servers, false,
		msg.gate_servers.count = 1);
	REFUSED(MSG_GATE_UPLINK, gate_uplink, false,
		msg.gate_uplink.count = MSG_UPLINK_MAX + 1);
	REFUSED(MSG_GATE_PUBLISH, publish, false, msg.publish.dst.bits = 33);
	REFUSED(MSG_GATE_PUBLISH, publish, false,
		msg.publish.count = MSG_PORTS_MAX + 1);
	REFUSED(MSG_GATE_PUBLISH, publish, false, msg.publish.count = 1;
		msg.publish.port[0] = (struct port_range){ 9, 8 });
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_every_type),	   TEST(test_send_refuses),
		TEST(test_ends),	   TEST(test_wrong_size_or_fds),
		TEST(test_wrong_contents), TEST(test_wrong_contents_keep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
