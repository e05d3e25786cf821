/* SPDX-License-Identifier: Apache-2.0
 *
 * gateway_watch.c - what others did to the topology, and how it is put back.
 */
#include <errno.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "cmd/gateway.h"

/* --- counters ------------------------------------------------------------ */

static const size_t counter[] = {
	offsetof(struct ruleset_counters, spoofed),
	offsetof(struct ruleset_counters, refused),
	offsetof(struct ruleset_counters, ipv6),
	offsetof(struct ruleset_counters, forwarded),
};

static uint64_t *at(struct ruleset_counters *counters, size_t i)
{
	return (uint64_t *)((char *)counters + counter[i]);
}

int gateway_counters(struct gateway *g, struct ruleset_counters *ret)
{
	struct ruleset_counters now;
	int err = ruleset_counters(g->nft, &now);

	for (size_t i = 0; i < ARRAY_SIZE(counter); i++) {
		/* Somebody began to count anew. */
		if (!err && *at(&now, i) < *at(&g->last, i))
			*at(&g->before, i) += *at(&g->last, i);
		if (!err)
			*at(&g->last, i) = *at(&now, i);
		*at(ret, i) = *at(&g->before, i) + *at(&g->last, i);
	}
	return err;
}
