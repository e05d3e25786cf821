/* SPDX-License-Identifier: Apache-2.0
 *
 * lock_plan.h - what the lock's tables have to hold: made once to be sent, and
 * once more to be compared. For firewall/ only.
 */
#ifndef FIREWALL_LOCK_PLAN_H
#define FIREWALL_LOCK_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "firewall/lock.h"

struct table;

#define LOCK_COUNTERS 4

/* The names of the counters, in the order of struct lock_counters. */
extern const char *const lock_counter[LOCK_COUNTERS];

/* NFT_TABLE_F_* of both tables. */
uint32_t lock_flags(const struct lock_spec *spec);

/* Both: 0 or -errno; table_free() @ret in both cases. */
int lock_plan_make(struct table *ret, const struct lock_spec *spec);
int lock_shut_make(struct table *ret, const struct lock_spec *spec,
		   const char (*name)[16], size_t n);

#endif
