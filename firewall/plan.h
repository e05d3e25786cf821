/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - what the table has to hold, as libnftnl objects: made once to be
 * sent, and once more to be compared with what the kernel holds. For firewall/
 * only.
 */
#ifndef FIREWALL_PLAN_H
#define FIREWALL_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "firewall/ruleset.h"

struct nftnl_chain;
struct nftnl_set;
struct nftnl_obj;
struct nftnl_rule;

#define SET_FLOWS "flows" /* ifname . address . port: to be proxied */
#define SET_LINKS "links" /* ifname . address: who is behind it */
#define SET_DOORS "doors" /* ifname . address . port: the explicit proxy */
/* ifname . address: ours, from where we connect to what is published */
#define SET_PUBLISHED "published"

#define PLAN_CHAINS   3
#define PLAN_SETS     4
#define PLAN_COUNTERS 4
#define PLAN_RULES    21

struct plan {
	struct nftnl_chain *chain[PLAN_CHAINS];
	struct nftnl_set *set[PLAN_SETS];
	struct nftnl_obj *counter[PLAN_COUNTERS];
	struct nftnl_rule *rule[PLAN_RULES];
	size_t rules;
};

/* The names of the counters, in the order of struct ruleset_counters. */
extern const char *const plan_counter[PLAN_COUNTERS];

/* 0 or -errno; free @plan in both cases. */
int plan_make(struct plan *plan, const struct ruleset_spec *spec);
void plan_free(struct plan *plan);

/* The set of flows, for @table. 0 or -ENOMEM; *@ret is the caller's in both
 * cases. */
int plan_make_flows(struct nftnl_set **ret, const char *table);

#endif
