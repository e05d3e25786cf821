/* SPDX-License-Identifier: Apache-2.0
 *
 * What somebody sends to the control socket, in pieces: the first byte says of
 * which size. A request that gets to its handler is whole and within limits,
 * and nothing of a connection that is over is left.
 */
#include "cmd/http_server.h"

#include <event2/event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BODY_MAX  2048
#define TURNS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct event_base *base;
static struct sockaddr_un at = { .sun_family = AF_UNIX };
static socklen_t at_len;

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void on_request(void *arg, struct http_request *request)
{
	const char *method = http_request_method(request), *body;
	size_t len;

	(void)arg;
	body = http_request_body(request, &len);
	must(len <= BODY_MAX && !body == !len);
	must(*method && http_request_path(request));
	must(http_request_peer(request)->pid == getpid());
	(void)http_request_header(request, "Content-Type");
	http_reply(request, len ? 200 : 404, "text/plain", body, len);
}

static void begin(void)
{
	static const struct http_limits limits = { .header_bytes = 1024,
						   .body_bytes = BODY_MAX,
						   .held_bytes = 8192,
						   .seconds = 60,
						   .connections = 4,
						   .user_connections = 4 };
	static struct http_server *server;
	int fd;

	if (base)
		return;
	signal(SIGPIPE, SIG_IGN);
	at_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			     (size_t)snprintf(at.sun_path + 1, 64,
					      "sallyport-fuzz-%d", getpid()));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	base = event_base_new();
	must(base && fd >= 0 && bind(fd, (struct sockaddr *)&at, at_len) == 0 &&
	     listen(fd, 4) == 0);
	must(http_server_open(base, fd, &limits, on_request, NULL, &server) ==
	     0);
}

static void turn(void)
{
	event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

/* Takes what is there: is the connection over? */
static bool over(int fd)
{
	char buf[4096];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		;
	return n == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t piece, sent = 1;
	unsigned turns = 0;

	if (!size)
		return 0;
	begin();
	piece = *data ? *data * 16u : size;
	AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(fd >= 0 && connect(fd, (struct sockaddr *)&at, at_len) == 0);
	while (sent < size) {
		const size_t n = size - sent < piece ? size - sent : piece;

		if (send(fd, data + sent, n, MSG_DONTWAIT) < 0)
			break;
		sent += n;
		turn();
		(void)over(fd);
	}
	shutdown(fd, SHUT_WR);
	while (!over(fd) && turns++ < TURNS_MAX)
		turn();
	must(turns <= TURNS_MAX);
	return 0;
}
