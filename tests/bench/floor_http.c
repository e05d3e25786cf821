/* SPDX-License-Identifier: Apache-2.0
 *
 * floor_http.c - the least that a plain HTTP proxy can do which gives each
 * request a connection of its own, so that none can hide in another.
 *
 *	floor_http ADDRESS PORT TO-ADDRESS TO-PORT
 *
 * It takes a request for what one recv(2) gives and a response for another, and
 * parses neither.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/net.h"

#define EVENTS 64
#define BUFFER 16384

/* By the number of its socket. */
static struct side {
	enum { NONE, CLIENT, CONNECTING, SERVER } kind;
	int other;
	size_t len; /* CONNECTING: of the request */
	char *buf;
} sides[NET_FDS];

static struct sockaddr_in upstream;
static int epoll;

static void quit(int fd)
{
	free(sides[fd].buf);
	sides[fd] = (struct side){ .kind = NONE };
	close(fd);
}

static void take_request(int fd)
{
	char *buf = malloc(BUFFER);
	ssize_t n = buf ? recv(fd, buf, BUFFER, 0) : -1;
	int to;

	if (n <= 0) {
		free(buf);
		if (n == 0 || errno != EAGAIN)
			quit(fd);
		return;
	}
	to = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (to < 0)
		net_fail("socket");
	net_set(to, IPPROTO_TCP, TCP_NODELAY, 1);
	if (connect(to, (struct sockaddr *)&upstream, sizeof(upstream)) < 0 &&
	    errno != EINPROGRESS)
		net_fail("connect");
	sides[to] = (struct side){ CONNECTING, fd, (size_t)n, buf };
	net_watch(epoll, EPOLL_CTL_ADD, to, EPOLLOUT);
}

static void send_request(int fd)
{
	struct side *s = &sides[fd];

	if (send(fd, s->buf, s->len, MSG_NOSIGNAL) != (ssize_t)s->len)
		net_fail("send");
	s->kind = SERVER;
	net_watch(epoll, EPOLL_CTL_MOD, fd, EPOLLIN);
}

static void take_response(int fd)
{
	struct side *s = &sides[fd];
	ssize_t n = recv(fd, s->buf, BUFFER, 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0 && sides[s->other].kind == CLIENT)
		(void)!send(s->other, s->buf, (size_t)n, MSG_NOSIGNAL);
	quit(fd);
}

static void greet(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);

	if (fd < 0)
		return;
	sides[fd] = (struct side){ .kind = CLIENT };
	net_watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
}

static void serve(int fd)
{
	switch (sides[fd].kind) {
	case NONE:
		break;
	case CLIENT:
		take_request(fd);
		break;
	case CONNECTING:
		send_request(fd);
		break;
	case SERVER:
		take_response(fd);
		break;
	}
}

int main(int argc, char **argv)
{
	struct epoll_event event[EVENTS];
	struct sockaddr_in at;
	int listener;

	if (argc != 5)
		return 2;
	at = net_address(argv[1], argv[2]);
	upstream = net_address(argv[3], argv[4]);
	epoll = epoll_create1(0);
	listener = net_listen(&at);
	net_watch(epoll, EPOLL_CTL_ADD, listener, EPOLLIN);
	for (;;) {
		int n = epoll_wait(epoll, event, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			int fd = event[i].data.fd;

			if (fd == listener)
				greet(listener);
			else
				serve(fd);
		}
	}
}
