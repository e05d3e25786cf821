/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_try.c - what attacks are made of: sockets with a time limit, and notes.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/prove.h"

/* A refusal comes at once. */
#define CONNECT_MS 700
#define ANSWER_MS  400
#define MORE_MS	   30 /* the rest of an answer */

const char prove_message[PROVE_MESSAGE_LEN] =
	"sallyport prove: this must not arrive";

void prove_saw(struct prove_try *t, enum prove_seen seen, const char *format,
	       ...)
{
	va_list ap;

	if (seen <= t->result->seen)
		return;
	t->result->seen = (uint8_t)seen;
	va_start(ap, format);
	vsnprintf(t->result->detail, sizeof(t->result->detail), format, ap);
	va_end(ap);
}

/* What a packet of somebody's brought back; all else is our own kernel's. */
static bool is_answer(int err)
{
	return err == ECONNREFUSED || err == ECONNRESET || err == EHOSTUNREACH;
}

static bool is_silence(int err)
{
	return err == ETIMEDOUT || err == EAGAIN || err == EINPROGRESS;
}

void prove_saw_error(struct prove_try *t, const char *what, int err)
{
	enum prove_seen seen = is_answer(-err)	  ? PROVE_REFUSED
			       : is_silence(-err) ? PROVE_SILENT
						  : PROVE_UNABLE;

	prove_saw(t, seen, "%s: %s", what,
		  seen == PROVE_SILENT ? "no answer" : strerror(-err));
}

void prove_expect(struct prove_try *t, const struct ip *ip, uint16_t port)
{
	struct prove_trace *trace = &t->result->trace;

	if (trace->set)
		return;
	trace->set = true;
	trace->ip = *ip;
	trace->port = port;
}

void prove_expect_host(struct prove_try *t, const char *host,
		       const char *reason)
{
	struct prove_trace *trace = &t->result->trace;

	if (trace->set)
		return;
	trace->set = true;
	snprintf(trace->host, sizeof(trace->host), "%s", host);
	snprintf(trace->reason, sizeof(trace->reason), "%s", reason);
}

struct ip prove_ip(const char *text)
{
	struct ip ip = { 0 };

	ip_parse(text, &ip);
	return ip;
}

void prove_name(const struct prove_try *t, const char *label,
		char buf[HOST_MAX + 1])
{
	snprintf(buf, HOST_MAX + 1, "%s.%s.prove.example", label,
		 t->task->token);
}

/* 0 or -errno. */
static int await(int fd, short events, int ms)
{
	struct pollfd ready = { .fd = fd, .events = events };
	socklen_t len = sizeof(int);
	int err = 0;

	if (poll(&ready, 1, ms) <= 0)
		return -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return -errno;
	return -err;
}

int prove_connect(const struct ip *ip, uint16_t port, int ms)
{
	union sockaddr_any to;
	socklen_t len = ip_to_sockaddr(ip, port, &to);
	AUTO_FD int fd = socket(to.sa.sa_family,
				SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, &to.sa, len) < 0)
		err = errno == EINPROGRESS ? await(fd, POLLOUT, ms) : -errno;
	return err ? err : steal_fd(&fd);
}

static int bind_port(int fd, sa_family_t family, uint16_t port)
{
	union sockaddr_any from = { 0 };

	from.sa.sa_family = family;
	if (family == AF_INET)
		from.in4.sin_port = htons(port);
	else
		from.in6.sin6_port = htons(port);
	return bind(fd, &from.sa,
		    family == AF_INET ? sizeof(from.in4) : sizeof(from.in6)) < 0
		       ? -errno
		       : 0;
}

ssize_t prove_exchange(const struct ip *ip, uint16_t port, uint16_t from,
		       const void *data, size_t len, void *answer, size_t cap)
{
	union sockaddr_any to;
	socklen_t to_len = ip_to_sockaddr(ip, port, &to);
	AUTO_FD int fd = socket(to.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const int on = 1;
	ssize_t n;
	int err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));
	err = from ? bind_port(fd, to.sa.sa_family, from) : 0;
	if (err)
		return err;
	/* Connected, so that a refusal reaches us. */
	if (connect(fd, &to.sa, to_len) < 0 || send(fd, data, len, 0) < 0)
		return -errno;
	err = await(fd, POLLIN, ANSWER_MS);
	if (err)
		return err == -ETIMEDOUT ? -EAGAIN : err;
	n = recv(fd, answer, cap, MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

size_t prove_read(int fd, void *buf, size_t cap, int ms)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	size_t len = 0;

	while (len < cap && poll(&ready, 1, ms) > 0) {
		ssize_t n =
			recv(fd, (char *)buf + len, cap - len, MSG_DONTWAIT);

		if (n <= 0)
			break;
		len += (size_t)n;
		ms = ms < MORE_MS ? ms : MORE_MS;
	}
	return len;
}

void prove_tcp(struct prove_try *t, const struct ip *ip, uint16_t port)
{
	char text[IP_TEXT_MAX];
	AUTO_FD int fd = prove_connect(ip, port, CONNECT_MS);

	prove_expect(t, ip, port);
	ip_format(ip, text);
	if (fd >= 0)
		prove_saw(t, PROVE_OUT, "connected to %s port %u", text, port);
	else
		prove_saw_error(t, text, fd);
}

void prove_udp(struct prove_try *t, const struct ip *ip, uint16_t port,
	       uint16_t from, size_t len)
{
	char text[IP_TEXT_MAX], data[4000] = "", answer[512];
	ssize_t n;

	memcpy(data, prove_message, PROVE_MESSAGE_LEN);
	prove_expect(t, ip, port);
	ip_format(ip, text);
	n = prove_exchange(ip, port, from, data, len, answer, sizeof(answer));
	if (n >= 0)
		prove_saw(t, PROVE_OUT, "%s port %u answered", text, port);
	else
		prove_saw_error(t, text, (int)n);
}

int prove_http_status(const char *reply)
{
	int status = 0;

	(void)sscanf(reply, "HTTP/1.%*d %d", &status);
	return status;
}
