/* SPDX-License-Identifier: Apache-2.0
 *
 * guard_plan.h - what the guard's tables have to hold, as libnftnl objects;
 * see plan.h. For firewall/ only.
 */
#ifndef FIREWALL_GUARD_PLAN_H
#define FIREWALL_GUARD_PLAN_H

#include "firewall/guard.h"
#include "firewall/table.h"

#define GUARD_COUNT_PACKETS "packets" /* of the table netdev */

/* .netdev has no chain where there is no interface for one: it can't be made
 * then, nor would it do anything. */
struct guard_plan {
	struct table inet, netdev;
};

/* 0 or -errno; free @plan in both cases. */
int guard_plan_make(struct guard_plan *plan, const struct guard_spec *spec);
void guard_plan_free(struct guard_plan *plan);

#endif
