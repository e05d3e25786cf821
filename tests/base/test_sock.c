/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sock.c - descriptors over real sockets: none lost, none leaked.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/sock.h"

static size_t count_fds(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void make_pair(int type, int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair), 0);
}

static void test_pass(void **state)
{
	int pair[2], pipes[2], got[FDPASS_MAX];
	char buf[16], back[4] = "";
	size_t n = 99;

	(void)state;
	make_pair(SOCK_SEQPACKET, pair);
	assert_int_equal(pipe2(pipes, 0), 0);
	assert_int_equal(fdpass_send(pair[0], "hi", 2, &pipes[1], 1), 0);
	assert_int_equal(fdpass_recv(pair[1], buf, sizeof(buf), got, &n, 0), 2);
	assert_memory_equal(buf, "hi", 2);
	assert_int_equal(n, 1);
	assert_int_not_equal(got[0], pipes[1]);
	assert_true(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
	close(pipes[1]);
	assert_int_equal(write(got[0], "abc", 3), 3);
	assert_int_equal(read(pipes[0], back, 3), 3);
	assert_string_equal(back, "abc");
	close(got[0]);
	close(pipes[0]);

	/* without descriptors; nothing there; the end */
	assert_int_equal(fdpass_send(pair[0], "x", 1, NULL, 0), 0);
	assert_int_equal(fdpass_recv(pair[1], buf, sizeof(buf), got, &n, 0), 1);
	assert_int_equal(n, 0);
	assert_int_equal(
		fdpass_recv(pair[1], buf, sizeof(buf), got, &n, MSG_DONTWAIT),
		-EAGAIN);
	close(pair[0]);
	assert_int_equal(fdpass_recv(pair[1], buf, sizeof(buf), got, &n, 0), 0);
	close(pair[1]);
}

static void test_many(void **state)
{
	int pair[2], fds[FDPASS_MAX + 1], got[FDPASS_MAX];
	char buf[4];
	size_t n, before = count_fds();

	(void)state;
	make_pair(SOCK_DGRAM, pair);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = pair[0];
	assert_int_equal(fdpass_send(pair[0], "x", 1, fds, ARRAY_SIZE(fds)),
			 -EINVAL);
	assert_int_equal(fdpass_send(pair[0], "x", 1, fds, FDPASS_MAX), 0);
	assert_int_equal(fdpass_recv(pair[1], buf, sizeof(buf), got, &n, 0), 1);
	assert_int_equal(n, FDPASS_MAX);
	assert_int_equal(count_fds(), before + 2 + FDPASS_MAX);
	for (size_t i = 0; i < n; i++)
		close(got[i]);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(count_fds(), before);
}

/* A sender who is not ours: more descriptors than agreed. */
static void send_raw(int sock, const int *fds, size_t n)
{
	union {
		char buf[CMSG_SPACE(sizeof(int) * 32)];
		struct cmsghdr align;
	} control = { .buf = { 0 } };
	struct iovec iov = { .iov_base = "x", .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.buf,
			      .msg_controllen = CMSG_SPACE(sizeof(int) * n) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	assert_int_equal(sendmsg(sock, &msg, 0), 1);
}

static void test_refused(void **state)
{
	int pair[2], fds[32], got[FDPASS_MAX];
	size_t n = 99, before;
	char buf[2];

	(void)state;
	make_pair(SOCK_SEQPACKET, pair);
	before = count_fds();
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = pair[0];

	send_raw(pair[0], fds, FDPASS_MAX + 1);
	assert_int_equal(fdpass_recv(pair[1], buf, sizeof(buf), got, &n, 0),
			 -EMSGSIZE);
	assert_int_equal(n, 0);
	send_raw(pair[0], fds, ARRAY_SIZE(fds));
	assert_int_equal(fdpass_recv(pair[1], buf, sizeof(buf), got, &n, 0),
			 -EMSGSIZE);
	/* a message longer than the receiver's buffer */
	assert_int_equal(fdpass_send(pair[0], "long", 4, fds, 2), 0);
	n = 99;
	assert_int_equal(fdpass_recv(pair[1], buf, sizeof(buf), got, &n, 0),
			 -EMSGSIZE);
	assert_int_equal(n, 0);
	assert_int_equal(count_fds(), before);
	/* the next message is whole again */
	assert_int_equal(fdpass_send(pair[0], "ok", 2, NULL, 0), 0);
	assert_int_equal(fdpass_recv(pair[1], buf, sizeof(buf), got, &n, 0), 2);
	close(pair[1]);
	assert_int_equal(fdpass_send(pair[0], "x", 1, NULL, 0), -EPIPE);
	close(pair[0]);
}

static uint16_t bound_port(int fd)
{
	union sockaddr_any sa;
	socklen_t len = sizeof(sa);

	assert_int_equal(getsockname(fd, &sa.sa, &len), 0);
	return port_from_sockaddr(&sa);
}

static void wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 30000), 1);
}

static void test_listen(void **state)
{
	static const char *const texts[] = { "127.0.0.1", "::1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		union sockaddr_any sa;
		struct ip ip = { 0 };
		char c;

		assert_true(ip_parse(texts[i], &ip));
		int fd = sock_listen_tcp(&ip, 0, false);
		assert_true(fd >= 0);
		assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		assert_int_equal(accept(fd, NULL, NULL), -1);
		assert_int_equal(errno, EAGAIN);
		socklen_t len = ip_to_sockaddr(&ip, bound_port(fd), &sa);
		int client = socket(sa.sa.sa_family, SOCK_STREAM, 0);
		assert_int_equal(connect(client, &sa.sa, len), 0);
		wait_readable(fd);
		int server = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		assert_true(server >= 0);
		assert_int_equal(sock_nonblock(server), 0);
		assert_int_equal(read(server, &c, 1), -1);
		assert_int_equal(errno, EAGAIN);
		/* RST, not FIN */
		sock_reset_on_close(server);
		close(server);
		assert_int_equal(read(client, &c, 1), -1);
		assert_int_equal(errno, ECONNRESET);
		close(client);
		/* a second listener there is refused */
		assert_int_equal(sock_listen_tcp(&ip, bound_port(fd), false),
				 -EADDRINUSE);
		close(fd);
	}
	struct ip none = { 0 };
	assert_int_equal(sock_listen_tcp(&none, 0, false), -EINVAL);
	assert_int_equal(sock_nonblock(-1), -EBADF);
}

static bool has_control(struct msghdr *msg, int level, int type)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == level && c->cmsg_type == type)
			return true;
	return false;
}

/* Every datagram says by which interface it came, and for whom. */
static void test_udp(void **state)
{
	union {
		char buf[256];
		struct cmsghdr align;
	} control;
	char buf[8];
	struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	struct ip ip = ip_v4(INADDR_LOOPBACK);
	union sockaddr_any sa;

	(void)state;
	AUTO_FD int fd = sock_bind_udp(&ip, 0, false);
	assert_true(fd >= 0);
	socklen_t len = ip_to_sockaddr(&ip, bound_port(fd), &sa);
	AUTO_FD int client = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(sendto(client, "hi", 2, 0, &sa.sa, len), 2);
	wait_readable(fd);
	assert_int_equal(recvmsg(fd, &msg, 0), 2);
	assert_true(has_control(&msg, IPPROTO_IP, IP_PKTINFO));
	assert_true(has_control(&msg, IPPROTO_IP, IP_RECVORIGDSTADDR));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pass),	cmocka_unit_test(test_many),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_listen),
		cmocka_unit_test(test_udp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
