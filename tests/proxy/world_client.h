/* SPDX-License-Identifier: Apache-2.0
 *
 * world_client.h - what a client of the world does and sees: it dials, says and
 * hears, while everything else runs.
 */
#ifndef TESTS_PROXY_WORLD_CLIENT_H
#define TESTS_PROXY_WORLD_CLIENT_H

#include <arpa/inet.h>
#include <netinet/tcp.h>

#include "tests/proxy/world.h"

static inline int dial_to(const char *ip, uint16_t port)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = inet_addr(ip),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int on = 1;

	assert_true(fd >= 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	assert_int_equal(connect(fd, (const void *)&to, sizeof(to)), 0);
	return fd;
}

static inline void say(int fd, const void *data, size_t len)
{
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), len);
}

/* One byte a segment, each of them seen alone; a refusal may come before the
 * last one. */
static inline void say_slowly(struct world *w, int fd, const void *data,
			      size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (send(fd, (const char *)data + i, 1, MSG_NOSIGNAL) != 1)
			break;
		turn(w);
	}
}

#define HEAR_MS 20000 /* for what only has to happen */

/* Reads until @want bytes, the end, or the time is over. Returns the bytes;
 * *ret_end: 0 still open, 1 EOF, -errno. */
static inline size_t hear(struct world *w, int fd, void *buf, size_t want,
			  int *ret_end)
{
	int64_t until = now_ms() + HEAR_MS;
	size_t len = 0;

	*ret_end = 0;
	while (len < want && now_ms() < until) {
		ssize_t n;

		turn(w);
		n = recv(fd, (char *)buf + len, want - len, MSG_DONTWAIT);
		if (n > 0) {
			len += (size_t)n;
		} else if (!n || errno != EAGAIN) {
			*ret_end = n ? -errno : 1;
			break;
		}
	}
	return len;
}

/* Text until the other end closes: it must do so by itself, and orderly. */
static inline const char *hear_all(struct world *w, int fd)
{
	static char text[8192];
	int end;
	size_t len = hear(w, fd, text, sizeof(text) - 1, &end);

	text[len] = '\0';
	assert_int_equal(end, 1);
	return text;
}

static inline void assert_heard(struct world *w, int fd, const void *want,
				size_t len)
{
	AUTO_FREE char *buf = malloc(len + 1);
	int end;

	assert_non_null(buf);
	assert_int_equal(hear(w, fd, buf, len, &end), len);
	assert_memory_equal(buf, want, len);
}

/* Ends at once, with RST, without a word. */
static inline void assert_reset(struct world *w, int fd)
{
	char buf[16];
	int end;

	assert_int_equal(hear(w, fd, buf, sizeof(buf), &end), 0);
	assert_int_equal(end, -ECONNRESET);
}

#endif
