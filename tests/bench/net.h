/* SPDX-License-Identifier: Apache-2.0
 *
 * net.h - what the programs of this directory have in common: they end where
 * anything is not as it should be, since a number that follows says nothing.
 */
#ifndef TESTS_BENCH_NET_H
#define TESTS_BENCH_NET_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define NET_FDS 65536

static inline _Noreturn void net_fail(const char *what)
{
	perror(what);
	exit(3);
}

static inline struct sockaddr_in net_address(const char *ip, const char *port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(
					  (uint16_t)strtoul(port, NULL, 10)) };

	if (inet_pton(AF_INET, ip, &sa.sin_addr) != 1) {
		fprintf(stderr, "%s is no address\n", ip);
		exit(2);
	}
	return sa;
}

static inline void net_set(int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)) < 0)
		net_fail("setsockopt");
}

static inline int net_listen(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0)
		net_fail("socket");
	net_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 ||
	    listen(fd, 4096) < 0)
		net_fail("listen");
	return fd;
}

static inline void net_watch(int epoll, int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (fd >= NET_FDS || epoll_ctl(epoll, op, fd, &event) < 0)
		net_fail("epoll_ctl");
}

#endif
