/* SPDX-License-Identifier: Apache-2.0
 *
 * origin.c - what the tunnels of a measurement lead to.
 *
 *	origin KIND ADDRESS PORT [KIND ADDRESS PORT]...
 *
 *	echo	sends back what comes
 *	once	sends back SIZE bytes, and closes
 *	source	once something came, sends until nobody reads any more
 *	http	answers each head with SIZE bytes of text
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/net.h"

#define SIZE	1024
#define EVENTS	64
#define LISTENS 8

enum kind { NONE, ECHO, ONCE, SOURCE, HTTP };

static const char *const words[] = { "", "echo", "once", "source", "http" };

static struct peer {
	enum kind kind;
	bool listens, sends;
	size_t got;
	unsigned newlines; /* of a head's end */
} peers[NET_FDS];

static char bulk[1 << 17];
static char answer[SIZE + 128];
static size_t answer_len;

static void quit(int fd)
{
	peers[fd].kind = NONE;
	close(fd);
}

static void pour(int epoll, int fd)
{
	struct peer *peer = &peers[fd];

	for (int i = 0; i < 4; i++) {
		ssize_t n = send(fd, bulk, sizeof(bulk), MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN) {
			quit(fd);
			return;
		}
		if (n < 0)
			break;
	}
	if (!peer->sends)
		net_watch(epoll, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT);
	peer->sends = true;
}

static void respond(int fd, const char *buf, ssize_t n)
{
	struct peer *peer = &peers[fd];

	for (ssize_t i = 0; i < n; i++) {
		if (buf[i] == '\n')
			peer->newlines++;
		else if (buf[i] != '\r')
			peer->newlines = 0;
		if (peer->newlines < 2)
			continue;
		peer->newlines = 0;
		if (send(fd, answer, answer_len, MSG_NOSIGNAL) !=
		    (ssize_t)answer_len)
			quit(fd);
	}
}

static void take(int epoll, int fd)
{
	struct peer *peer = &peers[fd];
	char buf[16384];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);

	if (n < 0 && errno == EAGAIN) {
		if (peer->sends)
			pour(epoll, fd);
		return;
	}
	if (n <= 0) {
		quit(fd);
		return;
	}
	peer->got += (size_t)n;
	if (peer->kind == SOURCE)
		pour(epoll, fd);
	else if (peer->kind == HTTP)
		respond(fd, buf, n);
	else if (send(fd, buf, (size_t)n, MSG_NOSIGNAL) != n ||
		 (peer->kind == ONCE && peer->got >= SIZE))
		quit(fd);
}

static void greet(int epoll, int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		net_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
		net_watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
		peers[fd] = (struct peer){ .kind = peers[listener].kind };
	}
}

static void open_one(int epoll, char **arg)
{
	struct sockaddr_in at = net_address(arg[1], arg[2]);
	int fd = net_listen(&at);

	net_watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
	peers[fd].listens = true;
	for (enum kind k = ECHO; k <= HTTP; k++)
		if (strcmp(arg[0], words[k]) == 0)
			peers[fd].kind = k;
	if (!peers[fd].kind)
		exit(2);
}

int main(int argc, char **argv)
{
	struct epoll_event event[EVENTS];
	int epoll = epoll_create1(0);

	if (argc < 4 || argc > 1 + 3 * LISTENS || (argc - 1) % 3)
		return 2;
	for (int i = 1; i < argc; i += 3)
		open_one(epoll, argv + i);
	answer_len = (size_t)snprintf(answer, sizeof(answer),
				      "HTTP/1.1 200 OK\r\nContent-Type: "
				      "text/plain\r\nContent-Length: %d\r\n"
				      "\r\n%0*d",
				      SIZE, SIZE, 7);
	for (;;) {
		int n = epoll_wait(epoll, event, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			int fd = event[i].data.fd;

			if (peers[fd].listens)
				greet(epoll, fd);
			else if (peers[fd].kind)
				take(epoll, fd);
		}
	}
}
