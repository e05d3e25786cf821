/* SPDX-License-Identifier: Apache-2.0
 *
 * floor_relay.c - the least that a relay can do: what others are compared with.
 *
 *	floor_relay connect|tls copy|splice ADDRESS PORT TO-ADDRESS TO-PORT
 *
 * Takes the head of a CONNECT ("connect") or nothing ("tls"), dials the one
 * address that it knows, and passes bytes on. It looks at nothing, decides
 * nothing, records nothing, and has no limits.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/net.h"

#define EVENTS	64
#define BUFFER	65536
#define PIPE	(1 << 20)
#define ACCEPTS 1 /* a turn: others had better be served, too */

/* By the number of its socket: what came from it. */
static struct side {
	int other;
	bool used, armed, head, connecting, eof, shut;
	char *buf; /* copy: what the other side did not take yet */
	size_t from, len;
	int pipe[2]; /* splice */
	uint32_t events;
} sides[NET_FDS];

static struct sockaddr_in upstream;
static bool splices, heads;
static int epoll;

static void quit(int fd)
{
	int both[2] = { fd, sides[fd].other };

	for (int i = 0; i < 2; i++) {
		struct side *s = &sides[both[i]];

		free(s->buf);
		if (splices) {
			close(s->pipe[0]);
			close(s->pipe[1]);
		}
		close(both[i]);
		memset(s, 0, sizeof(*s));
	}
}

static void arm(int fd)
{
	struct side *s = &sides[fd];
	uint32_t events = 0;

	if (s->connecting || sides[s->other].len)
		events |= EPOLLOUT;
	if (!s->len && !s->eof && !s->connecting && !sides[s->other].connecting)
		events |= EPOLLIN;
	if (s->armed && events == s->events)
		return;
	net_watch(epoll, s->armed ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, events);
	s->armed = true;
	s->events = events;
}

static ssize_t fill(int fd)
{
	struct side *s = &sides[fd];

	if (splices)
		return splice(fd, NULL, s->pipe[1], NULL, PIPE,
			      SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (!s->buf)
		s->buf = malloc(BUFFER);
	if (!s->buf)
		net_fail("malloc");
	s->from = 0;
	return recv(fd, s->buf, BUFFER, 0);
}

/* To the other side. */
static ssize_t drain(int fd)
{
	struct side *s = &sides[fd];

	if (splices)
		return splice(s->pipe[0], NULL, s->other, NULL, s->len,
			      SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	return send(s->other, s->buf + s->from, s->len, MSG_NOSIGNAL);
}

/* False: both are gone. */
static bool pass(int fd)
{
	struct side *s = &sides[fd];

	while (s->len) {
		ssize_t n = drain(fd);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			quit(fd);
			return false;
		}
		s->from += (size_t)n;
		s->len -= (size_t)n;
	}
	if (s->eof && !s->len && !s->shut) {
		s->shut = true;
		if (sides[s->other].shut) {
			quit(fd);
			return false;
		}
		shutdown(s->other, SHUT_WR);
	}
	return true;
}

static bool take(int fd)
{
	struct side *s = &sides[fd];
	ssize_t n = fill(fd);

	if (n < 0 && errno == EAGAIN)
		return true;
	if (n < 0) {
		quit(fd);
		return false;
	}
	s->eof = n == 0;
	s->len = (size_t)n;
	return pass(fd);
}

/* The head comes in one piece here. */
static bool take_head(int fd)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\n\r\n";
	char head[4096];

	sides[fd].head = false;
	if (recv(fd, head, sizeof(head), 0) <= 0 ||
	    send(fd, ok, sizeof(ok) - 1, MSG_NOSIGNAL) < 0) {
		quit(fd);
		return false;
	}
	return true;
}

static void open_side(int fd, int other)
{
	struct side *s = &sides[fd];

	net_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	*s = (struct side){ .other = other, .used = true };
	if (!splices)
		return;
	if (pipe2(s->pipe, O_NONBLOCK) < 0)
		net_fail("pipe");
	fcntl(s->pipe[1], F_SETPIPE_SZ, PIPE);
}

static void greet(int listener)
{
	for (int i = 0; i < ACCEPTS; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), to;

		if (fd < 0)
			return;
		to = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (to < 0)
			net_fail("socket");
		open_side(fd, to);
		open_side(to, fd);
		if (connect(to, (struct sockaddr *)&upstream,
			    sizeof(upstream)) < 0 &&
		    errno != EINPROGRESS)
			net_fail("connect");
		sides[to].connecting = true;
		sides[fd].head = heads;
		arm(fd);
		arm(to);
	}
}

static void serve(int fd, uint32_t events)
{
	struct side *s = &sides[fd];
	int other = s->other;

	if (events & EPOLLERR) {
		quit(fd);
		return;
	}
	if (s->connecting && events & EPOLLOUT)
		s->connecting = false;
	else if (events & EPOLLOUT && !pass(other))
		return;
	if (events & (EPOLLIN | EPOLLHUP) && !s->len && !s->eof &&
	    !(s->head ? take_head(fd) : take(fd)))
		return;
	arm(fd);
	arm(other);
}

int main(int argc, char **argv)
{
	struct epoll_event event[EVENTS];
	struct sockaddr_in at;
	int listener;

	if (argc != 7)
		return 2;
	heads = strcmp(argv[1], "connect") == 0;
	splices = strcmp(argv[2], "splice") == 0;
	at = net_address(argv[3], argv[4]);
	upstream = net_address(argv[5], argv[6]);
	signal(SIGPIPE, SIG_IGN); /* splice(2) has no MSG_NOSIGNAL */
	epoll = epoll_create1(0);
	listener = net_listen(&at);
	net_watch(epoll, EPOLL_CTL_ADD, listener, EPOLLIN);
	for (;;) {
		int n = epoll_wait(epoll, event, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			int fd = event[i].data.fd;

			if (fd == listener)
				greet(listener);
			else if (sides[fd].used)
				serve(fd, event[i].events);
		}
	}
}
