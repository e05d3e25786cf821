/* SPDX-License-Identifier: Apache-2.0
 *
 * world_origin.h - what arrives at the origin of the world, or does not.
 */
#ifndef TESTS_PROXY_WORLD_ORIGIN_H
#define TESTS_PROXY_WORLD_ORIGIN_H

#include "tests/proxy/world_client.h"

/* The next connection that arrives at the origin; -1 if none within @ms. */
static inline int origin_accept(struct world *w, int ms)
{
	for (int64_t end = now_ms() + ms; now_ms() < end;) {
		int fd;

		turn(w);
		fd = accept4(w->origin, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0) {
			const int on = 1;

			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
				   sizeof(on));
			return fd;
		}
	}
	return -1;
}

static inline int origin_expect(struct world *w)
{
	int fd = origin_accept(w, HEAR_MS);

	assert_true(fd >= 0);
	return fd;
}

static inline void assert_origin_quiet(struct world *w)
{
	assert_int_equal(origin_accept(w, 60), -1);
}

/* The connection that was made saw no byte before it ended. */
static inline void assert_origin_silent(struct world *w, int fd)
{
	char buf[16];
	int end;

	assert_int_equal(hear(w, fd, buf, sizeof(buf), &end), 0);
	assert_int_not_equal(end, 0);
}

#endif
