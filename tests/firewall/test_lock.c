/* SPDX-License-Identifier: Apache-2.0
 *
 * test_lock.c - each test shows first that a packet would arrive, and then that
 * it does not.
 */
#include "tests/firewall/lock_case.h"

static struct lock_counters counters(struct world *w)
{
	struct lock_counters c;

	assert_int_equal(lock_counters(w->nft, &c), 0);
	return c;
}

/* 0 or the errno of sendto(). */
static int send_to(int fd, const char *address, uint16_t port)
{
	union sockaddr_any sa;
	socklen_t len = address_of(address, port, &sa);

	return sendto(fd, "q", 1, 0, &sa.sa, len) == 1 ? 0 : errno;
}

/* Takes one datagram, and answers it. */
static void answer(int fd)
{
	union sockaddr_any from;
	socklen_t len = sizeof(from);
	char buf[16];

	assert_int_equal(recvfrom(fd, buf, sizeof(buf), 0, &from.sa, &len), 1);
	assert_int_equal(sendto(fd, "a", 1, 0, &from.sa, len), 1);
}

static void ask_udp(struct world *w, uint16_t port, bool connected)
{
	AUTO_FD int fd = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);
	union sockaddr_any sa, from;
	socklen_t len = address_of(RESOLVER, port, &sa), from_len;
	char buf[16];

	if (connected)
		assert_int_equal(connect(fd, &sa.sa, len), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(send_to(fd, RESOLVER, port), 0);
		assert_true(comes(w->gateway_udp, WAIT_MS));
		answer(w->gateway_udp);
		assert_true(comes(fd, WAIT_MS));
		from_len = sizeof(from);
		assert_int_equal(
			recvfrom(fd, buf, sizeof(buf), 0, &from.sa, &from_len),
			1);
		/* The answer is from whom was asked. */
		assert_memory_equal(&from.in4.sin_addr, &sa.in4.sin_addr, 4);
		assert_int_equal(from.in4.sin_port, sa.in4.sin_port);
	}
}

static void ask_tcp(struct world *w, uint16_t port)
{
	AUTO_FD int fd = socket_in(&w->box, AF_INET, SOCK_STREAM, NULL, 0);
	union sockaddr_any sa;
	socklen_t len = address_of(RESOLVER, port, &sa);
	char buf[16];

	assert_int_equal(connect(fd, &sa.sa, len), -1);
	assert_int_equal(errno, EINPROGRESS);
	assert_true(comes(w->gateway_tcp, WAIT_MS));
	AUTO_FD int peer = accept(w->gateway_tcp, NULL, NULL);
	assert_true(peer >= 0);
	assert_int_equal(write(peer, "a", 1), 1);
	assert_true(comes(fd, WAIT_MS));
	assert_int_equal(read(fd, buf, sizeof(buf)), 1);
}

/* Whatever port of the engine's resolver is asked: the gateway answers. */
static void test_names(void **state)
{
	struct world *w = *state;
	AUTO_FD int before = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);

	for (int i = 0; i < 2; i++) {
		assert_int_equal(send_to(before, RESOLVER, i ? w->port : 53),
				 0);
		assert_true(comes(w->resolver_udp, WAIT_MS));
		answer(w->resolver_udp);
	}
	lock(w);
	const uint16_t ports[] = { 53, w->port, 1, 65535 };
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		ask_udp(w, ports[i], false);
		ask_udp(w, ports[i], true);
		ask_tcp(w, ports[i]);
	}
	assert_int_equal(counters(w).names, 3 * ARRAY_SIZE(ports));
	assert_false(comes(w->resolver_udp, QUIET_MS));
	assert_false(comes(w->resolver_tcp, 0));
	assert_int_equal(counters(w).stray, 0);
	assert_int_equal(counters(w).left, 0);
}

/* A socket that spoke to the resolver before the table came. */
static void test_old_flow(void **state)
{
	struct world *w = *state;
	AUTO_FD int fd = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);
	AUTO_FD int direct = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);

	assert_int_equal(send_to(fd, RESOLVER, 53), 0);
	assert_int_equal(send_to(direct, RESOLVER, w->port), 0);
	for (int i = 0; i < 2; i++) {
		assert_true(comes(w->resolver_udp, WAIT_MS));
		answer(w->resolver_udp);
	}
	lock(w);
	assert_int_equal(send_to(fd, RESOLVER, 53), EPERM);
	assert_int_equal(send_to(direct, RESOLVER, w->port), EPERM);
	assert_false(comes(w->resolver_udp, QUIET_MS));
	assert_int_equal(counters(w).stray, 2);
}

/* An engine whose rules come after ours, at whatever priority it likes. */
static void test_rules_after_ours(void **state)
{
	struct world *w = *state;
	char script[256];

	lock(w);
	(void)snprintf(script, sizeof(script),
		       "nft 'table ip early { chain OUTPUT { "
		       "type nat hook output priority -180; "
		       "ip daddr 127.0.0.11 udp dport 53 dnat to "
		       "127.0.0.11:%u; ip daddr 192.0.2.1 dnat to " OTHER
		       "; }; }'",
		       w->port);
	sh(&w->box, script);
	AUTO_FD int fd = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);
	assert_int_equal(send_to(fd, RESOLVER, 53), EPERM);
	assert_false(comes(w->resolver_udp, QUIET_MS));
	assert_int_equal(counters(w).stray, 1);
	/* By our link at first, by the other one then. */
	assert_int_equal(send_to(fd, "192.0.2.1", 9), EPERM);
	assert_false(comes(w->other_udp, QUIET_MS));
	assert_int_equal(counters(w).left, 1);
}

static void drain(int fd)
{
	char buf[2048];

	while (recv(fd, buf, sizeof(buf), 0) >= 0)
		;
}

static void test_other_network(void **state)
{
	struct world *w = *state;
	AUTO_FD int in = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);
	AUTO_FD int out = socket_in(&w->other, AF_INET, SOCK_DGRAM, NULL, 0);

	assert_int_equal(send_to(in, OTHER, 9), 0);
	assert_true(comes(w->other_udp, WAIT_MS));
	assert_int_equal(send_to(out, BOX_TOO, 9), 0);
	assert_true(comes(w->box_udp, WAIT_MS));
	drain(w->other_udp);
	drain(w->box_udp);
	lock(w);
	/* What spoke before, and what is new. */
	AUTO_FD int fresh = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);
	assert_int_equal(send_to(in, OTHER, 9), EPERM);
	assert_int_equal(send_to(fresh, OTHER, 9), EPERM);
	assert_int_equal(send_to(out, BOX_TOO, 9), 0);
	assert_false(comes(w->other_udp, QUIET_MS));
	assert_false(comes(w->box_udp, QUIET_MS));
	struct lock_counters c = counters(w);
	assert_int_equal(c.left, 2);
	assert_int_equal(c.entered, 1);
	/* Ours goes both ways. */
	assert_int_equal(send_to(fresh, GATEWAY, 53), 0);
	assert_true(comes(w->gateway_udp, WAIT_MS));
	answer(w->gateway_udp);
	assert_true(comes(fresh, WAIT_MS));
	/* And it is by its group that it is ours. */
	assert_int_equal(link_group(w->box.route, "eth1", 0), 0);
	assert_int_equal(send_to(fresh, GATEWAY, 53), EPERM);
}

/* What the box would forward between its networks. */
static void test_forwarding(void **state)
{
	struct world *w = *state;

	sh(&w->box, "echo 1 >/proc/sys/net/ipv4/ip_forward");
	sh(&w->gateway, "ip route add 172.30.0.0/24 via " BOX);
	sh(&w->other, "ip route add 10.77.0.0/24 via " BOX_TOO);
	AUTO_FD int fd = socket_in(&w->gateway, AF_INET, SOCK_DGRAM, NULL, 0);
	AUTO_FD int back = socket_in(&w->other, AF_INET, SOCK_DGRAM, NULL, 0);

	assert_int_equal(send_to(fd, OTHER, 9), 0);
	assert_true(comes(w->other_udp, WAIT_MS));
	drain(w->other_udp);
	lock(w);
	assert_int_equal(send_to(fd, OTHER, 9), 0);
	assert_int_equal(send_to(back, GATEWAY, 53), 0);
	assert_false(comes(w->other_udp, QUIET_MS));
	assert_false(comes(w->gateway_udp, QUIET_MS));
	assert_int_equal(counters(w).left, 1);
	assert_int_equal(counters(w).entered, 1);
}

static void test_ipv6(void **state)
{
	struct world *w = *state;
	AUTO_FD int fd = socket_in(&w->box, AF_INET6, SOCK_DGRAM, NULL, 0);
	AUTO_FD int self = socket_in(&w->box, AF_INET6, SOCK_DGRAM, NULL, 0);

	sh(&w->box, "for i in all eth0 eth1 lo; do"
		    " echo 0 >/proc/sys/net/ipv6/conf/$i/disable_ipv6; done;"
		    "ip -6 addr add fd00:1::2/64 dev eth0 nodad;"
		    "ip -6 addr add fd00:2::2/64 dev eth1 nodad");
	sh(&w->other, "ip -6 addr add fd00:1::1/64 dev br0 nodad");
	sh(&w->gateway, "ip -6 addr add fd00:2::1/64 dev gw0 nodad");
	AUTO_FD int gateway =
		socket_in(&w->gateway, AF_INET6, SOCK_DGRAM, "::", 9);
	assert_int_equal(send_to(fd, "fd00:1::1", 9), 0);
	assert_true(comes(w->other_udp, WAIT_MS));
	assert_int_equal(send_to(fd, "fd00:2::1", 9), 0);
	assert_true(comes(gateway, WAIT_MS));
	drain(w->other_udp);
	drain(gateway);
	lock(w);
	assert_int_equal(send_to(fd, "fd00:1::1", 9), EPERM);
	assert_int_equal(send_to(fd, "fd00:2::1", 9), EPERM);
	assert_false(comes(w->other_udp, QUIET_MS));
	assert_false(comes(gateway, QUIET_MS));
	/* To itself it may speak. */
	drain(w->box_udp);
	assert_int_equal(send_to(self, "::1", 9), 0);
	assert_true(comes(w->box_udp, WAIT_MS));
}

/* route_localnet must not let others in to what listens on loopback. */
static void test_martians(void **state)
{
	struct world *w = *state;
	AUTO_FD int local =
		socket_in(&w->box, AF_INET, SOCK_DGRAM, "127.0.0.1", 9000);

	/* By way of the box: 127.0.0.0/8 is a network as any other there. */
	sh(&w->gateway, "echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet;"
			"ip route del local 127.0.0.0/8 dev lo table local;"
			"ip route del local 127.0.0.1 dev lo table local;"
			"ip route add 127.0.0.0/8 via " BOX);
	AUTO_FD int fd =
		socket_in(&w->gateway, AF_INET, SOCK_DGRAM, GATEWAY, 0);
	assert_int_equal(send_to(fd, "127.0.0.1", 9000), 0);
	assert_true(comes(local, WAIT_MS));
	drain(local);
	lock(w);
	assert_int_equal(send_to(fd, "127.0.0.1", 9000), 0);
	assert_false(comes(local, QUIET_MS));
	assert_int_equal(counters(w).entered, 1);
}

/* Any link can get our group, but not our index. */
static void test_group_taken(void **state)
{
	struct world *w = *state;
	AUTO_FD int fd = socket_in(&w->box, AF_INET, SOCK_DGRAM, NULL, 0);

	assert_int_equal(link_index(w->box.route, "eth1", &w->spec.link), 0);
	lock(w);
	assert_int_equal(link_group(w->box.route, "eth0", LOCK_GROUP), 0);
	(void)send_to(fd, OTHER, 9);
	assert_false(comes(w->other_udp, QUIET_MS));
	assert_int_equal(counters(w).left, 1);
	assert_int_equal(send_to(fd, GATEWAY, 53), 0);
	assert_true(comes(w->gateway_udp, WAIT_MS));
	/* What it is for. */
	w->spec.link = 0;
	lock(w);
	assert_int_equal(send_to(fd, OTHER, 9), 0);
	assert_true(comes(w->other_udp, WAIT_MS));
}

int main(void)
{
#define LOCK_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		LOCK_TEST(test_group_taken),   LOCK_TEST(test_names),
		LOCK_TEST(test_old_flow),      LOCK_TEST(test_rules_after_ours),
		LOCK_TEST(test_other_network), LOCK_TEST(test_forwarding),
		LOCK_TEST(test_ipv6),	       LOCK_TEST(test_martians),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
