/* SPDX-License-Identifier: Apache-2.0
 *
 * tunnels.c - the load: what many clients do at once, through one door.
 *
 *	tunnels KIND DOOR ADDRESS PORT TARGET AT_ONCE SECONDS HELLO
 *		[NAMES SPREAD]
 *
 *	new	open, send HELLO, take as many bytes, see the end; again
 *	ping	AT_ONCE tunnels: a byte there, a byte back
 *	bulk	AT_ONCE tunnels: take all that comes
 *	get	a request, its answer; again on the same connection
 *	idle	AT_ONCE tunnels that do nothing, for SECONDS after "ready"
 *
 * DOOR: "connect" says CONNECT TARGET first; "tls" nothing. HELLO is a file
 * with what is sent first (of "get": the request). With NAMES, TARGET and HELLO
 * have a name of names.h in them, and each tunnel is for the next one. Prints
 * operations, failures, bytes, seconds.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/names.h"
#include "tests/bench/net.h"
#include "tests/bench/timing.h"

#define EVENTS 64

enum kind { NEW, PING, BULK, GET, IDLE };

static const char *const words[] = { "new", "ping", "bulk", "get", "idle" };

/* By the number of its socket. */
static struct tunnel {
	bool open;	   /* the answer to CONNECT is there */
	unsigned newlines; /* of its end */
	size_t got;	   /* since what was sent last */
	size_t want;	   /* get: what an answer has; 0: not yet known */
	unsigned long nth;
} tunnels[NET_FDS];

static struct load {
	enum kind kind;
	struct sockaddr_in at;
	char connect[300], hello[16384];
	size_t hello_len, answer_len;
	struct names names;
	char *name[3]; /* in @connect, twice, and @hello; or NULL */
	unsigned long begun;
	unsigned long at_once, active, done, failed;
	unsigned long long bytes;
	bool over;
	int epoll;
} load;

static void fail(int fd)
{
	load.failed++;
	load.active--;
	close(fd);
}

static void send_all(int fd, const char *buf, size_t len)
{
	tunnels[fd].got = 0;
	if (send(fd, buf, len, MSG_NOSIGNAL) != (ssize_t)len)
		fail(fd);
}

static void send_first(int fd, bool hello)
{
	for (size_t i = 0; i < 3; i++)
		if (load.name[i])
			names_put(&load.names, load.name[i], tunnels[fd].nth);
	if (hello)
		send_all(fd, load.hello, load.hello_len);
	else
		send_all(fd, load.connect, strlen(load.connect));
}

static void begin(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || fd >= NET_FDS)
		net_fail("socket");
	load.active++;
	net_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (connect(fd, (struct sockaddr *)&load.at, sizeof(load.at)) < 0)
		net_fail("connect");
	net_watch(load.epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
	tunnels[fd] =
		(struct tunnel){ .open = !*load.connect, .nth = load.begun++ };
	send_first(fd, tunnels[fd].open);
}

/* Takes the head of the answer to CONNECT off; how much of @n is left. */
static size_t open_it(int fd, const char *buf, size_t n)
{
	struct tunnel *t = &tunnels[fd];

	if (t->got == 0 && n > 12 && memcmp(buf + 8, " 200", 4) != 0) {
		fprintf(stderr, "%.*s\n", (int)n, buf);
		exit(4);
	}
	t->got += n;
	for (size_t i = 0; i < n; i++) {
		if (buf[i] == '\n')
			t->newlines++;
		else if (buf[i] != '\r')
			t->newlines = 0;
		if (t->newlines == 2) {
			t->open = true;
			send_first(fd, true);
			return n - i - 1;
		}
	}
	return 0;
}

/* All answers are alike: how long the first was, the others are. */
static bool is_answer(const struct tunnel *t, const char *buf, size_t n)
{
	const char *length, *body;
	char text[4096];

	if (load.answer_len)
		return t->got >= load.answer_len;
	snprintf(text, sizeof(text), "%.*s", (int)n, buf);
	length = strstr(text, "ontent-");
	while (length && strncasecmp(length, "ontent-length:", 14) != 0)
		length = strstr(length + 1, "ontent-");
	body = strstr(text, "\r\n\r\n");
	if (!length || !body || memcmp(text + 8, " 200", 4) != 0) {
		fprintf(stderr, "%s\n", text);
		exit(4);
	}
	load.answer_len =
		(size_t)(body + 4 - text) + strtoul(length + 14, NULL, 10);
	return t->got >= load.answer_len;
}

static void take(int fd, const char *buf, size_t n)
{
	struct tunnel *t = &tunnels[fd];
	bool first = t->want == 0;

	t->got += n;
	load.bytes += n;
	switch (load.kind) {
	case PING:
		if (t->got < (first ? load.hello_len : 1))
			return;
		t->want = 1;
		load.done += !first;
		send_all(fd, "x", 1);
		return;
	case GET:
		if (!is_answer(t, buf, n))
			return;
		load.done++;
		send_all(fd, load.hello, load.hello_len);
		return;
	default:
		return;
	}
}

static void ended(int fd)
{
	bool whole = load.kind == NEW && tunnels[fd].open &&
		     tunnels[fd].got == load.hello_len;

	if (!whole && !load.over) {
		fail(fd);
		return;
	}
	load.done += whole;
	load.active--;
	close(fd);
}

static void on_input(int fd)
{
	static char buf[1 << 20];
	ssize_t n = recv(fd, buf, sizeof(buf),
			 MSG_DONTWAIT | (load.kind == BULK && tunnels[fd].open
						 ? MSG_TRUNC
						 : 0));

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		ended(fd);
		return;
	}
	if (!tunnels[fd].open)
		n = (ssize_t)open_it(fd, buf, (size_t)n);
	if (n)
		take(fd, buf, (size_t)n);
}

static double run(double seconds)
{
	struct epoll_event event[EVENTS];
	double start = now_s(), passed = 0;

	while (!load.over || (load.kind == NEW && load.active)) {
		int n;

		while (!load.over && load.active < load.at_once)
			begin();
		n = epoll_wait(load.epoll, event, EVENTS, 10);
		for (int i = 0; i < n; i++)
			on_input(event[i].data.fd);
		passed = now_s() - start;
		load.over = passed >= seconds;
		if (load.failed > 100)
			break;
	}
	return passed;
}

/* Each is there once what it sent came back. */
static double stand(double seconds)
{
	struct epoll_event event[EVENTS];
	double start;

	for (unsigned long i = 0; i < load.at_once; i++) {
		unsigned long long before = load.bytes;

		begin();
		while (load.bytes - before < load.hello_len) {
			int n = epoll_wait(load.epoll, event, EVENTS, 60000);

			if (n <= 0 || load.failed)
				net_fail("no answer");
			for (int k = 0; k < n; k++)
				on_input(event[k].data.fd);
		}
		load.done++;
	}
	puts("ready");
	fflush(stdout);
	start = now_s();
	while (now_s() - start < seconds)
		usleep(10000);
	return seconds;
}

static void read_hello(const char *path)
{
	FILE *in = fopen(path, "rb");

	load.hello_len = in ? fread(load.hello, 1, sizeof(load.hello), in) : 0;
	if (!load.hello_len)
		net_fail(path);
	fclose(in);
}

static void read_names(char **arg)
{
	load.names = (struct names){ strtoul(arg[0], NULL, 10),
				     strtoul(arg[1], NULL, 10) };
	load.name[0] = names_find(load.connect, strlen(load.connect));
	if (load.name[0])
		load.name[1] =
			names_find(load.name[0] + 1, strlen(load.name[0] + 1));
	load.name[2] = names_find(load.hello, load.hello_len);
	if (!load.names.count || !load.names.spread || !load.name[2])
		exit(2);
}

int main(int argc, char **argv)
{
	double passed;

	if (argc != 9 && argc != 11)
		return 2;
	while (strcmp(argv[1], words[load.kind]) != 0)
		if (++load.kind > IDLE)
			return 2;
	load.at = net_address(argv[3], argv[4]);
	if (strcmp(argv[2], "connect") == 0)
		snprintf(load.connect, sizeof(load.connect),
			 "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", argv[5],
			 argv[5]);
	load.at_once = strtoul(argv[6], NULL, 10);
	read_hello(argv[8]);
	if (argc == 11)
		read_names(argv + 9);
	load.epoll = epoll_create1(EPOLL_CLOEXEC);
	passed = (load.kind == IDLE ? stand : run)(strtod(argv[7], NULL));
	printf("%lu %lu %llu %.4f\n", load.done, load.failed, load.bytes,
	       passed);
	return load.failed ? 1 : 0;
}
