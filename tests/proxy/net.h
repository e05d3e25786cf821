/* SPDX-License-Identifier: Apache-2.0
 *
 * net.h - real sockets on loopback, for the tests of this folder. All of
 * 127.0.0.0/8 is ours, so that addresses with one port behave differently.
 */
#ifndef TESTS_PROXY_NET_H
#define TESTS_PROXY_NET_H

/* cmocka.h wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "base/clock.h"

static inline struct ip ip_of(const char *text)
{
	struct ip ip;

	if (!ip_parse(text, &ip))
		fail_msg("not an address: %s", text);
	return ip;
}

/* Listens at @text:*@port, or any port if that is 0, and sets it. */
static inline int listen_at(const char *text, uint16_t *port, int backlog)
{
	struct ip ip = ip_of(text);
	union sockaddr_any sa;
	socklen_t len = ip_to_sockaddr(&ip, *port, &sa);
	int fd = socket(sa.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int on = 1;

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(fd, &sa.sa, len), 0);
	assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, &sa.sa, &len), 0);
	*port = port_from_sockaddr(&sa);
	return fd;
}

static inline int connect_to_port(const char *text, uint16_t port, int flags)
{
	struct ip ip = ip_of(text);
	union sockaddr_any sa;
	socklen_t len = ip_to_sockaddr(&ip, port, &sa);
	int fd = socket(sa.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	assert_true(fd >= 0);
	if (connect(fd, &sa.sa, len) < 0)
		assert_int_equal(errno, EINPROGRESS);
	return fd;
}

/* An address that takes SYNs and never answers: a listener whose queue is
 * full. */
struct blackhole {
	int fd[4];
};

static inline struct blackhole blackhole_at(const char *text, uint16_t *port)
{
	struct blackhole hole;

	hole.fd[0] = listen_at(text, port, 0);
	for (int i = 1; i < 4; i++)
		hole.fd[i] = connect_to_port(text, *port, SOCK_NONBLOCK);
	return hole;
}

static inline void blackhole_close(struct blackhole *hole)
{
	for (int i = 0; i < 4; i++)
		close_fd(&hole->fd[i]);
}

/* Has anybody connected to listener @fd, within @ms? */
static inline bool somebody_came(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static inline int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Turns the loop until *@flag or @ms have gone by. */
static inline void loop_until(struct event_base *base, const bool *flag, int ms)
{
	int64_t end = now_ms() + ms;

	while (!*flag && now_ms() < end) {
		const struct timeval tick = { .tv_usec = ms < 20 ? ms * 1000
								 : 20000 };

		event_base_loopexit(base, &tick);
		event_base_loop(base, EVLOOP_ONCE);
	}
	/* On a machine that stood still much may be ready just now. */
	for (int i = 0; i < 10 && !*flag; i++)
		event_base_loop(base, EVLOOP_NONBLOCK);
}

#endif
