/* SPDX-License-Identifier: Apache-2.0
 *
 * resolver.h - addresses and records of a name from the upstream servers, a
 * cache by TTL, and equal questions asked once.
 *
 * Each question has an id by getrandom() and a source port of its own. Answers
 * are matched against it. No server means SERVFAIL, never a fallback.
 */
#ifndef DNS_RESOLVER_H
#define DNS_RESOLVER_H

#include "policy/services.h"

struct event_base;
struct resolver;

int resolver_new(struct event_base *base, struct resolver **ret_resolver);
/* Waiters get -EIO. */
void resolver_free(struct resolver *resolver);

/* Replaces the list of servers; 0 of them is allowed. At most 8 are used. */
void resolver_set_servers(struct resolver *resolver,
			  const struct endpoint *server, size_t n);

/* Looks up A and AAAA of @host (canonical), see struct lookup. May be done
 * before it returns (cache). At most 1,024 different names are under way; past
 * that -EIO. */
void resolver_lookup(struct resolver *resolver, const char *host,
		     struct lookup *lookup);
void resolver_cancel(struct resolver *resolver, struct lookup *lookup);

/* Looks up records of @type (TXT, MX or SRV; others get -EIO) of @host, see
 * struct record_lookup. Nothing is cached. */
void resolver_lookup_records(struct resolver *resolver, const char *host,
			     uint16_t type, struct record_lookup *lookup);
void resolver_cancel_records(struct resolver *resolver,
			     struct record_lookup *lookup);

/* Forgets what is cached. */
void resolver_flush(struct resolver *resolver);

#endif
