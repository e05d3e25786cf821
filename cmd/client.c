/* SPDX-License-Identifier: Apache-2.0
 *
 * client.c - a blocking request with a deadline. What is sent may be large and
 * the answer may come before it is all sent (it was too large), so both
 * directions are looked after at once.
 */
#include "cmd/client.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sock.h"

#define NAME_MAX_LEN 63

struct talk {
	int fd;
	int64_t deadline; /* CLOCK_MONOTONIC, ms */
	char *out;
	size_t len, sent;
	struct client_reply *reply;
};

static int __attribute__((format(printf, 4, 5)))
fault(int err, char *reterr, size_t cap, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(reterr, cap, format, ap);
	va_end(ap);
	return err;
}

/* --- connecting ---------------------------------------------------------- */

static int dial(const char *path, int timeout_ms)
{
	/* A full backlog is waited for. */
	const struct timeval limit = { .tv_sec = timeout_ms / 1000,
				       .tv_usec = timeout_ms % 1000 * 1000 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	err = sock_nonblock(fd);
	return err < 0 ? err : steal_fd(&fd);
}

/* Anybody can listen somewhere and have root asked to look there. */
static int check_peer(int fd, char *reterr, size_t cap)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return fault(-errno, reterr, cap, "who is it? %s",
			     strerror(errno));
	if (peer.uid != 0 && peer.uid != geteuid())
		return fault(-EACCES, reterr, cap,
			     "user %u answers there, not root", peer.uid);
	return 0;
}

/* --- talking ------------------------------------------------------------- */

static int write_request(const struct client_request *r, struct talk *talk)
{
	char head[1024];
	int len = snprintf(head, sizeof(head),
			   "%s %s HTTP/1.1\r\n"
			   "Host: localhost\r\n"
			   "User-Agent: sallyport/" SALLYPORT_VERSION "\r\n"
			   "Accept: application/json\r\n"
			   "Connection: close\r\n",
			   r->method, r->path);
	size_t at = (size_t)len;

	if (len < 0 || at >= sizeof(head))
		return -ENAMETOOLONG;
	/* Always a length: without one a body may be waited for until we close.
	 */
	len = snprintf(
		head + at, sizeof(head) - at, "%sContent-Length: %zu\r\n\r\n",
		r->body ? "Content-Type: application/json\r\n" : "", r->len);
	if (len < 0 || (size_t)len >= sizeof(head) - at)
		return -ENAMETOOLONG;
	at += (size_t)len;
	talk->out = malloc(at + r->len);
	if (!talk->out)
		return -ENOMEM;
	memcpy(talk->out, head, at);
	if (r->body)
		memcpy(talk->out + at, r->body, r->len);
	talk->len = at + (r->body ? r->len : 0);
	return 0;
}

static int send_some(struct talk *talk)
{
	ssize_t n = send(talk->fd, talk->out + talk->sent,
			 talk->len - talk->sent, MSG_NOSIGNAL);

	if (n >= 0)
		talk->sent += (size_t)n;
	else if (errno == EPIPE || errno == ECONNRESET)
		talk->sent = talk->len; /* it has heard enough: what says it? */
	else if (errno != EAGAIN && errno != EINTR)
		return -errno;
	return 0;
}

/* 1 when the answer is there. */
static int receive_some(struct talk *talk, char *reterr, size_t cap)
{
	char buf[65536];
	ssize_t n = recv(talk->fd, buf, sizeof(buf), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return fault(-errno, reterr, cap, "%s", strerror(errno));
	if (n == 0)
		return fault(-EPIPE, reterr, cap,
			     "the connection ended before the answer did");
	switch (client_reply_read(talk->reply, buf, (size_t)n)) {
	case SNIFF_DONE:
		return 1;
	case SNIFF_MORE:
		return 0;
	default:
		return fault(-EBADMSG, reterr, cap, "%s", talk->reply->error);
	}
}

static int run(struct talk *talk, char *reterr, size_t cap)
{
	int r = 0;

	while (r == 0) {
		bool more = talk->sent < talk->len;
		struct pollfd p = { .fd = talk->fd,
				    .events =
					    more ? POLLIN | POLLOUT : POLLIN };
		int64_t left = talk->deadline - now_ms();

		if (left <= 0)
			return fault(-ETIMEDOUT, reterr, cap,
				     "no answer came in time");
		if (poll(&p, 1, left > INT32_MAX ? INT32_MAX : (int)left) < 0 &&
		    errno != EINTR)
			return fault(-errno, reterr, cap, "%s",
				     strerror(errno));
		if (p.revents & POLLOUT && more)
			r = send_some(talk);
		if (r < 0)
			return fault(r, reterr, cap, "%s", strerror(-r));
		if (p.revents & ~POLLOUT)
			r = receive_some(talk, reterr, cap);
	}
	return r < 0 ? r : 0;
}

int client_ask(const struct client_request *request,
	       struct client_reply *ret_reply, char *reterr, size_t cap)
{
	struct client_reply reply = { 0 };
	AUTO_FD int fd = dial(request->socket, request->timeout_ms);
	struct talk talk = { .fd = fd,
			     .deadline = now_ms() + request->timeout_ms,
			     .reply = &reply };
	int err;

	if (fd < 0)
		return fault(fd, reterr, cap, "%s", strerror(-fd));
	err = check_peer(fd, reterr, cap);
	if (err)
		return err;
	err = write_request(request, &talk);
	if (err)
		fault(err, reterr, cap, "%s", strerror(-err));
	else
		err = run(&talk, reterr, cap);
	free(talk.out);
	if (err)
		client_reply_free(&reply);
	else
		*ret_reply = reply;
	return err;
}

bool client_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
	size_t len = strspn(name, letters);

	return len >= 1 && len <= NAME_MAX_LEN && !name[len] &&
	       !strchr("-_.", *name);
}
