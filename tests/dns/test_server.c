/* SPDX-License-Identifier: Apache-2.0
 *
 * test_server.c - the doors, with real sockets, in a network namespace in which
 * every address is local: what a sandbox sends to any server reaches us.
 */
#include "door.h"

#include <poll.h>

static int setup(void **state)
{
	(void)state;
	return door_setup("version: 1\nallow: [ok.com, '*.wild.com']\n");
}

/* --- UDP ------------------------------------------------------------------ */

static void test_udp(void **state)
{
	AUTO_FD int fd = client(SOCK_DGRAM, "8.8.8.8");

	(void)state;
	/* The socket is connected: it hears 8.8.8.8 only. */
	assert_int_equal(ask_udp(fd, "ok.com"), 0);
	assert_int_equal(ask_udp(fd, "evil.com"), 3);
	assert_int_equal(ask_udp(fd, "nx.wild.com"), 3);
	assert_int_equal(ask_udp(fd, "servfail.wild.com"), 2);
	assert_int_equal(ask_udp(fd, "priv.wild.com"), 3);
	/* What was denied was never asked. */
	for (size_t i = 0; i < server_count(upstream); i++)
		assert_null(strstr(upstream->seen[i].name, "evil"));
	assert_string_equal(fake.src, "127.0.0.1");
	assert_string_equal(fake.dst, "8.8.8.8");
	assert_string_equal(fake.protocol, "udp");
}

static void test_udp_case(void **state)
{
	AUTO_FD int fd = client(SOCK_DGRAM, "127.0.0.9");
	uint8_t buf[2048];
	size_t len = question("oK.CoM", 0xbeef, buf);

	(void)state;
	send(fd, buf + 2, len - 2, 0);
	ssize_t got = recv(fd, buf, sizeof(buf), 0);
	assert_true(got > 12);
	assert_memory_equal(buf, "\xbe\xef", 2);
	assert_memory_equal(buf + 12, "\2oK\3CoM\0\0\1\0\1", 12);
	assert_memory_equal(buf + got - 4, "\xc6\x12\x00\x01", 4);
}

static void test_udp_burst(void **state)
{
	AUTO_FD int fd = client(SOCK_DGRAM, "1.1.1.1");
	uint8_t buf[2048], seen[200] = { 0 };
	size_t len;

	(void)state;
	for (uint16_t i = 0; i < 200; i++) {
		len = question("evil.com", i, buf);
		send(fd, buf + 2, len - 2, 0);
	}
	for (int i = 0; i < 200; i++) {
		ssize_t got = recv(fd, buf, sizeof(buf), 0);

		assert_int_equal(rcode_of(buf, got), 3);
		seen[buf[0] << 8 | buf[1]]++;
	}
	for (int i = 0; i < 200; i++)
		assert_int_equal(seen[i], 1);
}

static void test_udp_junk(void **state)
{
	AUTO_FD int fd = client(SOCK_DGRAM, "1.1.1.1");
	uint8_t junk[5000];

	(void)state;
	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (uint8_t)(i * 31 + 7);
	junk[2] = 0x81; /* an answer: never replied to */
	for (size_t len = 0; len < 64; len++)
		send(fd, junk, len, 0);
	send(fd, junk, sizeof(junk), 0);
	assert_int_equal(ask_udp(fd, "ok.com"), 0);
	/* A question too long to be one. */
	junk[2] = 1;
	send(fd, junk, sizeof(junk), 0);
	uint8_t buf[512];
	assert_int_equal(rcode_of(buf, recv(fd, buf, sizeof(buf), 0)), 1);
}

/* --- TCP ------------------------------------------------------------------ */

static void test_tcp(void **state)
{
	AUTO_FD int fd = client(SOCK_STREAM, "8.8.4.4");

	(void)state;
	assert_int_equal(ask_tcp(fd, "ok.com"), 0);
	assert_int_equal(ask_tcp(fd, "evil.com"), 3);
	assert_int_equal(ask_tcp(fd, "a4.wild.com"), 0);
	assert_string_equal(fake.dst, "8.8.4.4");
	assert_string_equal(fake.protocol, "tcp");
}

static void test_tcp_pipelined(void **state)
{
	AUTO_FD int fd = client(SOCK_STREAM, "8.8.4.4");
	uint8_t buf[32768], reply[2048], seen[100] = { 0 };
	size_t len = 0;

	(void)state;
	/* In one write, half of them to be asked upstream; then no more. */
	for (uint16_t i = 0; i < 100; i++) {
		char name[64];

		snprintf(name, sizeof(name),
			 i % 2 ? "evil.com" : "a4.n%u.wild.com", i / 4);
		len += question(name, i, buf + len);
	}
	assert_int_equal(send(fd, buf, len, 0), len);
	shutdown(fd, SHUT_WR);
	for (int i = 0; i < 100; i++) {
		assert_true(read_tcp(fd, reply) > 12);
		unsigned id = (unsigned)(reply[0] << 8 | reply[1]);
		assert_true(id < 100);
		seen[id]++;
		assert_int_equal(reply[3] & 0xf, id % 2 ? 3 : 0);
	}
	for (int i = 0; i < 100; i++)
		assert_int_equal(seen[i], 1);
	assert_true(is_closed(fd));
}

static void test_tcp_byte_by_byte(void **state)
{
	AUTO_FD int fd = client(SOCK_STREAM, "8.8.4.4");
	const int on = 1;
	uint8_t buf[512], reply[2048];
	size_t len = question("ok.com", 9, buf);

	(void)state;
	setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof(on));
	for (size_t i = 0; i < len; i++) {
		send(fd, buf + i, 1, 0);
		usleep(2000);
	}
	assert_true(read_tcp(fd, reply) > 12);
	assert_int_equal(reply[3] & 0xf, 0);
}

static void test_tcp_bad_lengths(void **state)
{
	static const uint8_t bad[][2] = {
		{ 0, 0 }, { 0, 11 }, { 0xff, 0xff }, { 0x08, 0x01 }
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		AUTO_FD int fd = client(SOCK_STREAM, "8.8.4.4");

		send(fd, bad[i], 2, 0);
		assert_true(is_closed(fd));
	}
	/* Reset in the middle of a question, with one under way. */
	for (int i = 0; i < 50; i++) {
		AUTO_FD int fd = client(SOCK_STREAM, "8.8.4.4");
		uint8_t buf[512];
		size_t len = question("silent.wild.com", 1, buf);

		send(fd, buf, len, 0);
		send(fd, "\0\x20xxx", 5, 0);
		sock_reset_on_close(fd);
	}
	AUTO_FD int fd = client(SOCK_STREAM, "8.8.4.4");
	assert_int_equal(ask_tcp(fd, "ok.com"), 0);
}

static void test_tcp_never_reads(void **state)
{
	AUTO_FD int deaf = client(SOCK_STREAM, "8.8.4.4");
	AUTO_FD int other = client(SOCK_STREAM, "8.8.4.4");
	const int small = 2048;
	uint8_t buf[512];
	size_t len = question("evil.com", 1, buf), sent = 0;

	(void)state;
	setsockopt(deaf, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	/* Until nothing more goes in: we stopped listening to it. */
	for (double moved = exact_s(); exact_s() - moved < 2;) {
		ssize_t n = send(deaf, buf, len, MSG_DONTWAIT);

		if (n > 0) {
			sent += (size_t)n;
			moved = exact_s();
		} else {
			usleep(20000);
		}
		assert_true(sent < 64 << 20);
	}
	assert_true(send(deaf, buf, len, MSG_DONTWAIT) < 0);
	assert_int_equal(ask_tcp(other, "ok.com"), 0);
}

static void test_tcp_too_many(void **state)
{
	size_t before;
	int fd[20];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = client(SOCK_STREAM, "8.8.4.4");
		assert_int_equal(ask_tcp(fd[i], "ok.com"), 0);
	}
	/* 16 a sandbox: the four that were idle for longest made room. */
	for (size_t i = 0; i < 4; i++)
		assert_true(is_closed(fd[i]));
	for (size_t i = 4; i < ARRAY_SIZE(fd); i++)
		assert_int_equal(ask_tcp(fd[i], "evil.com"), 3);
	/* All busy: a new one is not let in. */
	before = server_count(upstream);
	for (size_t i = 4; i < ARRAY_SIZE(fd); i++) {
		uint8_t buf[512];
		char name[64];

		snprintf(name, sizeof(name), "silent.n%zu.wild.com", i);
		send(fd[i], buf, question(name, 1, buf), 0);
	}
	/* Each is asked for both kinds of address. */
	for (int i = 0; i < 2000 && server_count(upstream) < before + 32; i++)
		usleep(10000);
	assert_true(server_count(upstream) >= before + 32);
	AUTO_FD int late = client(SOCK_STREAM, "8.8.4.4");
	assert_true(is_closed(late));
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
}

static void test_tcp_deadline(void **state)
{
	AUTO_FD int idle = client(SOCK_STREAM, "8.8.4.4");
	AUTO_FD int trickle = client(SOCK_STREAM, "8.8.4.4");
	double begin = exact_s();
	uint8_t buf[512];
	size_t at = 0, len = question("ok.com", 1, buf);

	(void)state;
	/* A byte a second does not keep it open. */
	struct pollfd over = { .fd = trickle, .events = POLLRDHUP };
	while (exact_s() - begin < 30 &&
	       send(trickle, buf + at, 1, MSG_NOSIGNAL) == 1) {
		at = (at + 1) % (len - 1);
		if (poll(&over, 1, 1000) > 0)
			break;
	}
	double took = exact_s() - begin;
	assert_true(took > 9 && took < 13);
	assert_true(is_closed(idle));
}

/* --- while there is no room for records ----------------------------------- */

static bool full;
static struct wait_list line = TAILQ_HEAD_INITIALIZER(line);

static void leave(void *ctx, struct wait *wait)
{
	(void)ctx;
	if (wait->seq)
		TAILQ_REMOVE(&line, wait, entry);
	wait->seq = 0;
}

static bool room(void *ctx, struct wait *wait)
{
	if (!full) {
		leave(ctx, wait);
		return true;
	}
	if (!wait->seq)
		TAILQ_INSERT_TAIL(&line, wait, entry);
	wait->seq = 1;
	return false;
}

/* Nothing is asked for them before, and all are answered after it: also those
 * that came at once, by a connection that ends with them. */
static void test_no_room(void **state)
{
	AUTO_FD int udp = client(SOCK_DGRAM, "8.8.8.8");
	AUTO_FD int tcp = client(SOCK_STREAM, "8.8.4.4");
	uint8_t buf[2048], byte;
	size_t len = question("ok.com", 9, buf);

	(void)state;
	stop();
	fake.services.room = room;
	fake.services.room_cancel = leave;
	full = true;
	assert_int_equal(go_on(), 0);
	send(udp, buf + 2, len - 2, 0);
	for (int i = 0; i < 10; i++)
		send(tcp, buf, len, 0);
	shutdown(tcp, SHUT_WR);
	usleep(200000);
	assert_int_equal(recv(udp, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(recv(tcp, &byte, 1, MSG_DONTWAIT), -1);
	stop();
	assert_int_equal(server_count(upstream), 0);
	assert_string_equal(fake.protocol, "");
	full = false;
	for (struct wait *wait; (wait = TAILQ_FIRST(&line));) {
		leave(NULL, wait);
		wait->done(wait, 0);
	}
	assert_int_equal(go_on(), 0);
	assert_int_equal(rcode_of(buf, recv(udp, buf, sizeof(buf), 0)), 0);
	for (int i = 0; i < 10; i++) {
		len = read_tcp(tcp, buf);
		assert_int_equal(rcode_of(buf, (ssize_t)len), 0);
	}
	assert_true(is_closed(tcp));
	/* Whoever waits when the server goes away is forgotten. */
	stop();
	full = true;
	assert_int_equal(go_on(), 0);
	len = question("ok.com", 9, buf);
	send(udp, buf + 2, len - 2, 0);
	for (int i = 0; i < 2000 && !TAILQ_FIRST(&line); i++)
		usleep(10000);
	stop();
	assert_non_null(TAILQ_FIRST(&line));
	dns_server_free(STEAL(server));
	assert_null(TAILQ_FIRST(&line));
	assert_int_equal(go_on(), 0);
	full = false;
}

/* --- who is asking ----------------------------------------------------------
 */

static int setup_stranger(void **state)
{
	int err = setup(state);

	stop();
	fake.sandbox.ifindex = 77;
	fake.stranger = true;
	return go_on() || err;
}

static void test_other_interface(void **state)
{
	AUTO_FD int udp = client(SOCK_DGRAM, "8.8.8.8");
	AUTO_FD int tcp = client(SOCK_STREAM, "8.8.8.8");

	(void)state;
	assert_int_equal(ask_udp(udp, "ok.com"), 5);
	assert_true(is_closed(tcp));
	assert_int_equal(server_count(upstream), 0);
}

/* With questions under way everything can be freed: teardown() does. */
static void test_free_under_way(void **state)
{
	AUTO_FD int udp = client(SOCK_DGRAM, "8.8.8.8");
	AUTO_FD int tcp = client(SOCK_STREAM, "8.8.8.8");
	uint8_t buf[512];
	size_t len = question("silent.wild.com", 1, buf);

	(void)state;
	send(udp, buf + 2, len - 2, 0);
	send(tcp, buf, len, 0);
	for (int i = 0; i < 2000 && server_count(upstream) < 2; i++)
		usleep(10000);
	assert_true(server_count(upstream) >= 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_udp),
		TEST(test_udp_case),
		TEST(test_udp_burst),
		TEST(test_udp_junk),
		TEST(test_tcp),
		TEST(test_tcp_pipelined),
		TEST(test_tcp_byte_by_byte),
		TEST(test_tcp_bad_lengths),
		TEST(test_tcp_never_reads),
		TEST(test_tcp_too_many),
		TEST(test_tcp_deadline),
		TEST(test_no_room),
		TEST(test_free_under_way),
		cmocka_unit_test_setup_teardown(test_other_interface,
						setup_stranger, teardown),
	};

	return cmocka_run_group_tests(tests, own_namespace, NULL);
}
