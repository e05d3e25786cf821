/* SPDX-License-Identifier: Apache-2.0
 *
 * guard_plan.h - what the guard's tables have to hold, as libnftnl objects;
 * see plan.h. For firewall/ only.
 */
#ifndef FIREWALL_GUARD_PLAN_H
#define FIREWALL_GUARD_PLAN_H

#include "firewall/guard.h"

struct nftnl_chain;
struct nftnl_set;
struct nftnl_obj;
struct nftnl_rule;

#define GUARD_CHAINS   8 /* of the table inet */
#define GUARD_COUNTERS 4
#define GUARD_RULES    80

#define GUARD_COUNT_PACKETS "packets" /* of the table netdev */

struct guard_plan {
	struct nftnl_chain *chain[GUARD_CHAINS], *egress;
	struct nftnl_set *flows;
	struct nftnl_obj *counter[GUARD_COUNTERS], *packets;
	/* In order; the family says of which table. */
	struct nftnl_rule *rule[GUARD_RULES];
	size_t rules;
};

/* 0 or -errno; free @plan in both cases. */
int guard_plan_make(struct guard_plan *plan, const struct guard_spec *spec);
void guard_plan_free(struct guard_plan *plan);

#endif
