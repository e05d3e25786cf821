/* SPDX-License-Identifier: Apache-2.0
 *
 * test_origin.c - a resolver on loopback, as container engines have one, and
 * whom it is seen to ask.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* before cmocka.h */
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "firewall/origin.h"
#include "launch/userns.h"

#define HERE 0x7f00000bu

enum behaviour { ASKS_TWO, ANSWERS, SILENT };

static pid_t server;

static void sh(const char *command)
{
	assert_int_equal(system(command), 0);
}

static int make_world(void **state)
{
	char why[512];

	(void)state;
	if (geteuid() != 0)
		assert_int_equal(userns_enter(why, sizeof(why)), 0);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	sh("ip link set lo up; ip link add a0 type veth peer name b0;"
	   "ip addr add 192.0.2.1/24 dev a0; ip link set a0 up;"
	   "ip link set b0 up;"
	   "ip addr add 2001:db8::1/64 dev a0 nodad");
	return 0;
}

static int address(const char *text, union sockaddr_any *ret)
{
	struct ip ip;

	if (!ip_parse(text, &ip))
		_exit(90);
	return (int)ip_to_sockaddr(&ip, 53, ret);
}

/* Sends a question on, from in here: what becomes of it? */
static int send_on(const char *to, const uint8_t *data, size_t len)
{
	union sockaddr_any sa;
	const int sa_len = address(to, &sa);
	AUTO_FD int fd = socket(sa.sa.sa_family, SOCK_DGRAM, 0);

	if (connect(fd, &sa.sa, (socklen_t)sa_len) < 0 ||
	    send(fd, data, len, 0) < 0)
		return errno;
	return 0;
}

static _Noreturn void serve(int fd, enum behaviour how)
{
	uint8_t buf[512];
	union sockaddr_any who;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		socklen_t len = sizeof(who);
		ssize_t n = recvfrom(fd, buf, sizeof(buf), 0, &who.sa, &len);

		if (n < 17 || how == SILENT)
			continue;
		/* What is not the question goes out as ever. */
		if (how == ASKS_TWO &&
		    (send_on("192.0.2.9", (const uint8_t *)"x", 1) ||
		     send_on("192.0.2.53", buf, (size_t)n) != EPERM ||
		     send_on("2001:db8::53", buf, (size_t)n) != EPERM))
			_exit(91);
		buf[2] |= 0x80;
		sendto(fd, buf, (size_t)n, 0, &who.sa, len);
	}
}

static void start(enum behaviour how)
{
	union sockaddr_any sa;
	const struct ip ip = ip_v4(HERE);
	const socklen_t len = ip_to_sockaddr(&ip, 53, &sa);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(bind(fd, &sa.sa, len), 0);
	server = fork();
	if (server == 0)
		serve(fd, how);
	close(fd);
}

static void stop(void)
{
	int status;

	/* It went on to the end. */
	assert_int_equal(waitpid(server, &status, WNOHANG), 0);
	kill(server, SIGKILL);
	waitpid(server, &status, 0);
	/* Nothing of ours is left. */
	sh("test -z \"$(nft list tables | grep origin)\"");
}

static void test_asks_from_here(void **state)
{
	const struct ip resolver = ip_v4(HERE);
	struct endpoint found[4];
	char text[IP_TEXT_MAX];
	size_t n = 0;

	(void)state;
	start(ASKS_TWO);
	/* Another's rule that sends questions elsewhere is behind ours. */
	sh("nft 'table ip theirs { chain c { type nat hook output priority "
	   "-150; udp dport 53 redirect to :5353; }; }'");
	/* That one would catch our own question, too: as for the gate's. */
	sh("nft insert rule ip theirs c meta skuid 0 ip daddr 127.0.0.11 "
	   "accept");
	assert_int_equal(origin_find(&resolver, 0, found, 4, &n), 0);
	sh("nft delete table ip theirs");
	assert_int_equal(n, 2);
	assert_string_equal(ip_format(&found[0].ip, text), "192.0.2.53");
	assert_string_equal(ip_format(&found[1].ip, text), "2001:db8::53");
	assert_int_equal(found[0].port, 53);
	/* No more than there is room for. */
	assert_int_equal(origin_find(&resolver, 0, found, 1, &n), 0);
	assert_int_equal(n, 1);
	stop();
}

static void test_asks_elsewhere(void **state)
{
	const struct ip resolver = ip_v4(HERE);
	struct endpoint found[4];
	size_t n = 7;

	(void)state;
	start(ANSWERS);
	assert_int_equal(origin_find(&resolver, 0, found, 4, &n), 0);
	assert_int_equal(n, 0);
	stop();
}

static void test_no_answer(void **state)
{
	const struct ip resolver = ip_v4(HERE);
	struct endpoint found[4];
	size_t n = 7;

	(void)state;
	start(SILENT);
	assert_int_equal(origin_find(&resolver, 0, found, 4, &n), -ETIMEDOUT);
	assert_int_equal(n, 0);
	stop();
	/* Nobody is there: that is told at once. */
	assert_int_equal(origin_find(&resolver, 0, found, 4, &n), 0);
	assert_int_equal(n, 0);
}

/* Somebody has the name of our table: it is left alone. */
static void test_table_is_taken(void **state)
{
	const struct ip resolver = ip_v4(HERE);
	struct endpoint found[4];
	size_t n = 7;

	(void)state;
	sh("nft add table inet sallyport_origin");
	assert_int_equal(origin_find(&resolver, 0, found, 4, &n), -EEXIST);
	assert_int_equal(n, 0);
	sh("nft delete table inet sallyport_origin");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asks_from_here),
		cmocka_unit_test(test_asks_elsewhere),
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_table_is_taken),
	};

	return cmocka_run_group_tests(tests, make_world, NULL);
}
