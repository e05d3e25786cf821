/* SPDX-License-Identifier: Apache-2.0
 *
 * resolver_case.h - the resolver and a real name server on loopback.
 */
#ifndef TESTS_DNS_RESOLVER_CASE_H
#define TESTS_DNS_RESOLVER_CASE_H

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "dns/resolver.h"
#include "name_server.h"
#include "tests/clock.h"

static struct event_base *base;

struct asker {
	struct lookup lookup;
	unsigned done;
	int status;
};

static inline void on_done(struct wait *wait, int status)
{
	struct lookup *lookup = CONTAINER_OF(wait, struct lookup, wait);
	struct asker *asker = CONTAINER_OF(lookup, struct asker, lookup);

	asker->done++;
	asker->status = status;
}

static inline void run_until_done(struct asker *asker, size_t n, double limit)
{
	const struct timeval tick = { .tv_usec = 20000 };
	double end = exact_s() + limit;

	for (size_t i = 0; i < n; i++) {
		while (!asker[i].done && exact_s() < end) {
			event_base_loopexit(base, &tick);
			event_base_loop(base, EVLOOP_ONCE);
		}
		assert_int_equal(asker[i].done, 1);
	}
}

static inline struct asker ask(struct resolver *resolver, const char *host,
			       double limit)
{
	struct asker asker = { .lookup.wait.done = on_done };

	resolver_lookup(resolver, host, &asker.lookup);
	run_until_done(&asker, 1, limit);
	return asker;
}

static inline struct resolver *resolver_at(const struct endpoint *server,
					   size_t n)
{
	struct resolver *resolver = NULL;

	assert_int_equal(resolver_new(base, &resolver), 0);
	resolver_set_servers(resolver, server, n);
	return resolver;
}

#endif
