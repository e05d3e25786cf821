/* SPDX-License-Identifier: Apache-2.0
 *
 * meter.h - byte budgets of a flow: how much it may still move, and that it
 * did. The numbers lie in the sandbox's counters (policy/counters.h), shared by
 * all its flows, and outlive the gate.
 *
 * Room is asked for before bytes are read, and spent before they are passed on:
 * a gate that dies in between has let less through than it counted.
 */
#ifndef POLICY_METER_H
#define POLICY_METER_H

#include "policy/policy.h"

struct meter {
	uint64_t *used; /* NULL: not counted */
	uint64_t limit; /* 0: none */
};

enum { METER_SESSION, METER_RULE, METER_CEILING, METERS };

struct meters {
	struct meter at[2][METERS]; /* by direction */
};

/* How many bytes may still go; UINT64_MAX: no limit; 0: the budget is used up
 * (REASON_LIMIT_BYTES). NULL @meters: no limit. */
uint64_t meters_room(const struct meters *meters, enum direction direction);

/* Counts @bytes, which were within the room. */
void meters_spend(const struct meters *meters, enum direction direction,
		  uint64_t bytes);

#endif
