/* SPDX-License-Identifier: Apache-2.0
 *
 * keeper_world.h - the internet beside a keeper's machine: a name server and an
 * echo.
 */
#ifndef TESTS_CMD_KEEPER_WORLD_H
#define TESTS_CMD_KEEPER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "launch/link.h"
#include "launch/netns.h"

#define WORLD_UP   0xc0000202u /* 192.0.2.2 */
#define WORLD_DNS  0xcb007135u /* 203.0.113.53 */
#define WORLD_ECHO 0xcb007150u /* 203.0.113.80 */
#define ECHO_PORT  7000

static struct netns world;
static int world_dns = -1, world_listen = -1;

static inline int world_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	const struct ip dns = ip_v4(WORLD_DNS), echo = ip_v4(WORLD_ECHO);

	(void)arg;
	ret_fds[0] = sock_bind_udp(&dns, 53, false);
	ret_fds[1] = sock_listen_tcp(&echo, ECHO_PORT, false);
	*ret_n = 2;
	return ret_fds[0] < 0 ? ret_fds[0] : ret_fds[1] < 0 ? ret_fds[1] : 0;
}

static inline void add_address(int route, const char *name, uint32_t ip,
			       uint8_t bits)
{
	const struct cidr cidr = { .ip = ip_v4(ip), .bits = bits };

	assert_int_equal(link_address(route, name, &cidr), 0);
}

static inline void make_world(void)
{
	const struct ip up = ip_v4(WORLD_UP);
	int fds[8], route;
	size_t n = 0;

	assert_int_equal(netns_create(&world, NULL, NULL, NULL, NULL), 0);
	route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
	assert_true(route >= 0);
	assert_int_equal(link_up(route, "lo"), 0);
	assert_int_equal(link_veth(route, "up", "down", world.fd), 0);
	add_address(route, "up", WORLD_UP - 1, 24);
	add_address(world.route, "down", WORLD_UP, 24);
	add_address(world.route, "lo", WORLD_DNS, 32);
	add_address(world.route, "lo", WORLD_ECHO, 32);
	assert_int_equal(link_up(route, "up"), 0);
	assert_int_equal(link_up(world.route, "down"), 0);
	assert_int_equal(link_wait(route, "up"), 0);
	assert_int_equal(link_default_route(route, &up), 0);
	assert_int_equal(netns_enter(world.fd, world_inside, NULL, fds, &n), 0);
	world_dns = fds[0];
	world_listen = fds[1];
	close(route);
}

/* All names are those of the echo; of type A. */
static inline void answer_dns(void)
{
	static const uint8_t tail[] = { 0xc0, 12, 0, 1, 0,   1, 0,   0,
					0,    60, 0, 4, 203, 0, 113, 80 };
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	uint8_t q[600];
	ssize_t n = recvfrom(world_dns, q, 512, MSG_DONTWAIT,
			     (struct sockaddr *)&from, &from_len);
	size_t end = 12;
	bool is_a;

	if (n < 17)
		return;
	while (end < (size_t)n && q[end])
		end += q[end] + 1u;
	end += 5;
	if (end > (size_t)n)
		return;
	is_a = q[end - 3] == 1;
	q[2] |= 0x80;
	q[3] = 0x80;
	memset(q + 6, 0, 6);
	if (is_a) {
		q[7] = 1;
		memcpy(q + end, tail, sizeof(tail));
		end += sizeof(tail);
	}
	sendto(world_dns, q, end, 0, (struct sockaddr *)&from, from_len);
}

/* Serves the world until @fd is ready, or for @ms. False: it was not. */
static inline bool serve_world(int fd, short events, int ms)
{
	static int echo[16];
	static size_t echoes;
	struct timespec ts;
	int64_t end;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	end = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + ms;
	for (;;) {
		struct pollfd pfd[3 + ARRAY_SIZE(echo)] = {
			{ .fd = fd, .events = events },
			{ .fd = world_dns, .events = POLLIN },
			{ .fd = world_listen, .events = POLLIN },
		};
		int64_t now;

		for (size_t i = 0; i < echoes; i++)
			pfd[3 + i] = (struct pollfd){ .fd = echo[i],
						      .events = POLLIN };
		clock_gettime(CLOCK_MONOTONIC, &ts);
		now = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
		if (now >= end)
			return false;
		assert_true(poll(pfd, 3 + echoes, (int)(end - now)) >= 0);
		if (pfd[0].revents)
			return true;
		if (pfd[1].revents)
			answer_dns();
		for (size_t i = echoes; i-- > 0;) {
			char buf[4096];
			ssize_t n;

			if (!pfd[3 + i].revents)
				continue;
			n = recv(echo[i], buf, sizeof(buf), MSG_DONTWAIT);
			if (n > 0 &&
			    send(echo[i], buf, (size_t)n, MSG_NOSIGNAL) == n)
				continue;
			close(echo[i]);
			echo[i] = echo[--echoes];
		}
		if (pfd[2].revents && echoes < ARRAY_SIZE(echo)) {
			int got =
				accept4(world_listen, NULL, NULL, SOCK_CLOEXEC);

			if (got >= 0)
				echo[echoes++] = got;
		}
	}
}

#endif
