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

struct table;

/* ifname . address . port: to be proxied. Nearly all are of one address and one
 * port, as names have: these are points, and found in one step however many
 * there are. Among intervals the kernel's work grows with their number. */
#define SET_POINTS "points"
#define SET_FLOWS  "flows" /* those that are intervals */
#define SET_LINKS  "links" /* ifname . address: who is behind it */
#define SET_DOORS  "doors" /* ifname . address . port: the explicit proxy */
/* ifname . address: ours, from where we connect to what is published */
#define SET_PUBLISHED "published"

#define PLAN_COUNTERS 4

#define COUNT_SPOOFED	"spoofed"
#define COUNT_REFUSED	"refused"
#define COUNT_IPV6	"ipv6"
#define COUNT_FORWARDED "forwarded"

/* All of them, in the order of struct ruleset_counters. */
extern const char *const plan_counter[PLAN_COUNTERS];

/* 0 or -errno; table_free() @ret in both cases. */
int plan_make(struct table *ret, const struct ruleset_spec *spec);

/* Both sets of flows. */
void plan_add_flows(struct table *table);

#endif
