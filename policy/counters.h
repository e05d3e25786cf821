/* SPDX-License-Identifier: Apache-2.0
 *
 * counters.h - what one sandbox has used up: bytes by session and by rule, and
 * the token buckets of its rates.
 *
 * They lie in the file that holds its leases, behind them (dns/lease.h), so
 * that neither a gate that died nor a new policy resets them. Each entry is
 * checked when it is attached; one that makes no sense counts as used up, not
 * as new.
 */
#ifndef POLICY_COUNTERS_H
#define POLICY_COUNTERS_H

#include "policy/meter.h"

enum rate { RATE_CONNECTIONS, RATE_DNS, RATE_COUNT };

struct counters;

/* How many bytes they take in the file. */
size_t counters_size(void);

/* Maps @fd from @offset (a multiple of the page size); zeros are new counters.
 * 0 or -errno. */
int counters_attach(int fd, size_t offset, struct counters **ret_counters);
void counters_free(struct counters *counters);

/* May one more be made, if @per_second may? Counts it. The bucket holds one
 * second's worth. @now_ms is CLOCK_MONOTONIC. */
bool counters_take(struct counters *counters, enum rate rate,
		   unsigned per_second, uint64_t now_ms);

/* The meters of a flow allowed by @rule (NULL: by none) under @limits. They
 * are good for as long as the counters. 0, or -ENOSPC if there are too many
 * rules with budgets: then the flow must not be. */
int counters_meters(struct counters *counters, const struct limits *limits,
		    const struct rule *rule, struct meters *ret_meters);

#endif
