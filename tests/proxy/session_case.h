/* SPDX-License-Identifier: Apache-2.0
 *
 * session_case.h - the explicit door, and somebody at it.
 */
#ifndef TESTS_PROXY_SESSION_CASE_H
#define TESTS_PROXY_SESSION_CASE_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "tests/proxy/hello.h"
#include "tests/proxy/world_origin.h"

#define YES	      "HTTP/1.1 200 Connection established\r\n\r\n"
#define SOCKS_OK_TEST "\x05\x01\x00\x03\x07ok.test\x20\xfb"

static inline struct world *explicit_world(uint16_t origin_port)
{
	struct world *w = world_new();

	world_listen(w, LISTENER_EXPLICIT, PROXY, PROXY_PORT);
	if (origin_port)
		w->origin = listen_at(ORIGIN, origin_port);
	return w;
}

static inline int dial_proxy(void)
{
	return dial_to(PROXY, PROXY_PORT);
}

static inline void say_text(int fd, const char *text)
{
	say(fd, text, strlen(text));
}

#endif
