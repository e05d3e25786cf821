/* SPDX-License-Identifier: Apache-2.0
 *
 * transparent_case.h - the transparent door, and somebody at it.
 */
#ifndef TESTS_PROXY_TRANSPARENT_CASE_H
#define TESTS_PROXY_TRANSPARENT_CASE_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <sys/resource.h>

#include "tests/proxy/hello.h"
#include "tests/proxy/world_origin.h"

static inline struct world *transparent_world(const char *ip, uint16_t port,
					      uint16_t origin_port)
{
	struct world *w = world_new();

	world_listen(w, LISTENER_TRANSPARENT, ip, port);
	if (origin_port)
		w->origin = listen_at(ORIGIN, origin_port);
	return w;
}

static inline size_t make_hello(const char *name, uint8_t *buf, size_t cap)
{
	const struct hello_spec spec = { .name = name };

	return hello_make(&spec, buf, cap);
}

#endif
