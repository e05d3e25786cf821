/* SPDX-License-Identifier: Apache-2.0
 *
 * doors.h - ok.test through every door of a world, for what should hold
 * whichever was taken.
 */
#ifndef TESTS_PROXY_DOORS_H
#define TESTS_PROXY_DOORS_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "tests/proxy/hello.h"
#include "tests/proxy/world_origin.h"

/* The clear end of @w's client for ok.test:@port by @door. */
static inline int enter(struct world *w, enum door door, uint16_t port)
{
	static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	uint8_t socks[] = { 5,	 1,   0,   3,	7,   'o', 'k',
			    '.', 't', 'e', 's', 't', 0,	  0 };
	char text[128];
	int fd;

	if (door == DOOR_TRANSPARENT)
		return dial_to(LEASE, port);
	fd = dial_to(PROXY, PROXY_PORT);
	if (door == DOOR_CONNECT) {
		snprintf(text, sizeof(text),
			 "CONNECT ok.test:%u HTTP/1.1\r\nHost: ok.test:%u\r\n"
			 "\r\n",
			 port, port);
		say(fd, text, strlen(text));
		assert_heard(w, fd, yes, sizeof(yes) - 1);
		return fd;
	}
	say(fd, "\x05\x01\x00", 3);
	assert_heard(w, fd, "\x05\x00", 2);
	socks[sizeof(socks) - 2] = (uint8_t)(port >> 8);
	socks[sizeof(socks) - 1] = (uint8_t)port;
	say(fd, socks, sizeof(socks));
	assert_heard(w, fd, "\x05\x00\x00\x01\0\0\0\0\0\0", 10);
	return fd;
}

static const enum door doors[] = { DOOR_CONNECT, DOOR_SOCKS, DOOR_TRANSPARENT };

/* Both listeners, the transparent one at LEASE:@port, the origin at ORIGIN:
 * @port, and a policy of its own. */
static inline struct world *doors_world(uint16_t port, const char *yaml)
{
	struct world *w = world_new();

	world_policy(w, yaml);
	world_listen(w, LISTENER_EXPLICIT, PROXY, PROXY_PORT);
	world_listen(w, LISTENER_TRANSPARENT, LEASE, port);
	w->origin = listen_at(ORIGIN, port);
	return w;
}

static inline void say_text(int fd, const char *text)
{
	say(fd, text, strlen(text));
}

static inline size_t say_hello(int fd, const char *name, uint8_t *buf,
			       size_t cap)
{
	const struct hello_spec spec = { .name = name };
	size_t len = hello_make(&spec, buf, cap);

	say(fd, buf, len);
	return len;
}

/* Both ends are closed, and every session is gone. */
static inline void part(struct world *w, int client, int server)
{
	close(client);
	if (server >= 0)
		close(server);
	turn_for(w, 30);
	assert_int_equal(w->sandbox.connections, 0);
}

/* Whatever it hears first, this end is over. */
static inline void assert_over(struct world *w, int fd)
{
	char buf[4096];
	int end;

	hear(w, fd, buf, sizeof(buf), &end);
	assert_int_not_equal(end, 0);
}

/* The last note of @kind was this verdict. */
static inline void assert_note(const struct world *w, enum event_kind kind,
			       bool allow, enum reason reason)
{
	const struct note *n = note_find(w, kind);

	assert_non_null(n);
	if (n->allow != allow || n->reason != reason)
		fail_msg("%s %s (%s), not %s", n->allow ? "allowed" : "refused",
			 reason_word(n->reason), n->detail,
			 reason_word(reason));
}

static inline unsigned notes_of(const struct world *w, enum event_kind kind)
{
	unsigned count = 0;

	for (size_t i = 0; i < w->notes; i++)
		count += w->note[i].kind == kind;
	return count;
}

#endif
