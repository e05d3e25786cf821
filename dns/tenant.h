/* SPDX-License-Identifier: Apache-2.0
 *
 * tenant.h - the quotas of all sandboxes that asked something of late, and the
 * records of what was refused for them.
 */
#ifndef DNS_TENANT_H
#define DNS_TENANT_H

#include "dns/quota.h"
#include "policy/services.h"

struct event_base;
struct tenants;

/* NULL without memory. */
struct tenants *tenants_new(struct event_base *base,
			    const struct services *services);
/* Records what was counted. NULL is fine. */
void tenants_free(struct tenants *tenants);

/* The quota of @sandbox: valid while its @in_flight is not 0, and until this is
 * called again. NULL without memory. */
struct quota *tenants_quota(struct tenants *tenants,
			    const struct sandbox *sandbox, uint64_t now_ms);

/* Counts a question that was refused for @quota: recorded at once, but at most
 * once a second. */
void tenants_refuse(struct tenants *tenants, struct quota *quota);

/* The same for one from outside of every sandbox. False if there are so many
 * that they are not even answered. */
bool tenants_stranger(struct tenants *tenants);

#endif
