/* SPDX-License-Identifier: Apache-2.0
 *
 * lock_plan.h - what the lock's table has to hold, as libnftnl objects: made
 * once to be sent, and once more to be compared. For firewall/ only.
 */
#ifndef FIREWALL_LOCK_PLAN_H
#define FIREWALL_LOCK_PLAN_H

#include <stddef.h>

#include "firewall/lock.h"

struct nftnl_chain;
struct nftnl_obj;
struct nftnl_rule;

#define LOCK_CHAINS   6
#define LOCK_COUNTERS 4
#define LOCK_RULES    20

struct lock_plan {
	struct nftnl_chain *chain[LOCK_CHAINS];
	struct nftnl_obj *counter[LOCK_COUNTERS];
	struct nftnl_rule *rule[LOCK_RULES];
	size_t rules;
};

/* The names of the counters, in the order of struct lock_counters. */
extern const char *const lock_counter[LOCK_COUNTERS];

/* Of table "netdev sallyport_lock": what interfaces that do not exist yet may
 * send, by the names that engines give. */
struct lock_early {
	struct nftnl_chain *chain;
	struct nftnl_rule *rule;
};

/* All that @ifname sends is dropped; the chain has its name. NULL: no memory.
 */
struct nftnl_chain *lock_shut_chain(const char *ifname);

/* 0 or -errno; free @early in both cases. */
int lock_early_make(struct lock_early *early);
void lock_early_free(struct lock_early *early);

/* 0 or -errno; free @plan in both cases. */
int lock_plan_make(struct lock_plan *plan, const struct lock_spec *spec);
void lock_plan_free(struct lock_plan *plan);

#endif
