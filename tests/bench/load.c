/* SPDX-License-Identifier: Apache-2.0
 *
 * load.c - CONNECT tunnels as fast as they go, and the server behind them.
 *
 *	load server ADDRESS PORT
 *	load client ADDRESS PORT TARGET RATE SECONDS
 *
 * A tunnel takes PAYLOAD bytes there, as many back, and ends. The client opens
 * RATE a second, or as many as AT_ONCE at a time are. It prints how many were
 * whole, how many failed, and the seconds they took.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/timing.h"

#define PAYLOAD 1024
#define AT_ONCE 128
#define EVENTS	64
#define FDS	4096

static char payload[PAYLOAD];

/* What is known of a socket, by its number. */
static struct tunnel {
	bool open;	 /* client: the answer to CONNECT is there */
	unsigned header; /* newlines of its end seen, as "\n\n" without CR */
	size_t got;
} tunnels[FDS];

static struct sockaddr_in address_of(const char *ip, const char *port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(
					  (uint16_t)strtoul(port, NULL, 10)) };

	if (inet_pton(AF_INET, ip, &sa.sin_addr) != 1)
		exit(2);
	return sa;
}

static void watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (fd >= FDS || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		exit(3);
	memset(&tunnels[fd], 0, sizeof(tunnels[fd]));
}

/* --- server --------------------------------------------------------------- */

static void serve_one(int fd)
{
	char buf[PAYLOAD];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);

	if (n > 0)
		tunnels[fd].got += (size_t)n;
	if (n > 0 && tunnels[fd].got < PAYLOAD)
		return;
	if (n > 0 && send(fd, payload, PAYLOAD, MSG_NOSIGNAL) < 0)
		perror("send");
	close(fd);
}

static int serve(const char *ip, const char *port)
{
	struct sockaddr_in sa = address_of(ip, port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int epoll = epoll_create1(0), on = 1;
	struct epoll_event event[EVENTS];

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    listen(fd, 4096) < 0)
		return 1;
	watch(epoll, fd);
	for (;;) {
		int n = epoll_wait(epoll, event, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			int peer = event[i].data.fd;

			if (peer != fd) {
				serve_one(peer);
				continue;
			}
			while ((peer = accept(fd, NULL, NULL)) >= 0)
				watch(epoll, peer);
		}
	}
}

/* --- client --------------------------------------------------------------- */

struct client {
	struct sockaddr_in proxy;
	char request[256];
	int epoll;
	unsigned active;
	unsigned long started, whole, failed;
};

static void start_one(struct client *c)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	size_t len = strlen(c->request);

	c->started++;
	if (fd < 0 ||
	    connect(fd, (struct sockaddr *)&c->proxy, sizeof(c->proxy)) < 0 ||
	    send(fd, c->request, len, MSG_NOSIGNAL) != (ssize_t)len) {
		c->failed++;
		if (fd >= 0)
			close(fd);
		return;
	}
	watch(c->epoll, fd);
	c->active++;
}

/* Takes the header of the answer off what came; how much of it is left. */
static size_t skip_header(struct tunnel *t, const char *buf, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (buf[i] == '\n')
			t->header++;
		else if (buf[i] != '\r')
			t->header = 0;
		if (t->header == 2) {
			t->open = true;
			return n - i - 1;
		}
	}
	return 0;
}

static void end_one(struct client *c, int fd)
{
	if (tunnels[fd].open && tunnels[fd].got == PAYLOAD)
		c->whole++;
	else
		c->failed++;
	c->active--;
	close(fd);
}

static void read_one(struct client *c, int fd)
{
	struct tunnel *t = &tunnels[fd];
	char buf[2 * PAYLOAD];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);

	if (n <= 0) {
		end_one(c, fd);
		return;
	}
	if (t->open) {
		t->got += (size_t)n;
		return;
	}
	t->got = skip_header(t, buf, (size_t)n);
	if (t->open && send(fd, payload, PAYLOAD, MSG_NOSIGNAL) != PAYLOAD)
		end_one(c, fd);
}

static int load(struct client *c, double rate, double seconds)
{
	struct epoll_event event[EVENTS];
	double start = now_s(), passed = 0;

	while (passed < seconds || c->active) {
		double due = passed < seconds ? passed * rate : 0;
		int n;

		while (c->active < AT_ONCE && (double)c->started < due)
			start_one(c);
		n = epoll_wait(c->epoll, event, EVENTS, 1);
		for (int i = 0; i < n; i++)
			read_one(c, event[i].data.fd);
		passed = now_s() - start;
	}
	printf("%lu %lu %.3f\n", c->whole, c->failed, passed);
	return c->failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	static struct client c;

	if (argc == 4 && strcmp(argv[1], "server") == 0)
		return serve(argv[2], argv[3]);
	if (argc != 7 || strcmp(argv[1], "client") != 0)
		return 2;
	c.proxy = address_of(argv[2], argv[3]);
	snprintf(c.request, sizeof(c.request),
		 "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", argv[4], argv[4]);
	c.epoll = epoll_create1(0);
	return load(&c, strtod(argv[5], NULL), strtod(argv[6], NULL));
}
