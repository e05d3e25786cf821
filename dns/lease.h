/* SPDX-License-Identifier: Apache-2.0
 *
 * lease.h - name <-> synthetic address, for one sandbox, the count of names,
 * and the real addresses that names were answered with (`dns.answers: real`).
 *
 * The table lives in shared memory that the warden made (a memfd, or a file of
 * the run directory), so that a gate that died takes up where it was. It is
 * validated entry by entry when attached: a bad entry is dropped, never
 * believed. Leases and pairs last as long as the sandbox; a full pool is
 * REASON_LIMIT_NAMES, never reuse.
 */
#ifndef DNS_LEASE_H
#define DNS_LEASE_H

#include <stddef.h>

#include "base/addr.h"
#include "policy/policy.h"

struct lease_table;

#define LEASE_POOL_BASE 0xc6120000u /* 198.18.0.0/16 */
#define LEASE_MAX	4096
#define LEASE_PAIRS_MAX 8192

/* How large the file must be (ftruncate() it first): a multiple of any page
 * size. */
size_t lease_table_size(void);

/* Maps @fd (kept open by the caller or not, as it likes) and checks it; an
 * all-zero file is an empty table. 0 or -errno. */
int lease_table_attach(int fd, struct lease_table **ret_table);
void lease_table_free(struct lease_table *table);

/* Counts @host (canonical) as a name that this sandbox asked for, under @rule.
 * REASON_RULE, or REASON_LIMIT_NAMES. Names known already are free. */
enum reason lease_admit(struct lease_table *table, const struct policy *policy,
			const char *host, const struct rule *rule);

/* The address leased to @host, made if it has none (@host must have been
 * admitted). 0, or -ENOSPC. */
int lease_get(struct lease_table *table, const char *host, struct ip *ret_ip,
	      bool *ret_new);

/* The name leased at @ip (the table owns it), or NULL. */
const char *lease_name(const struct lease_table *table, const struct ip *ip);

/* Walks all leases, for the firewall's set after a restart: false past the
 * end; entries without a lease give .len 0. */
bool lease_at(const struct lease_table *table, size_t i, const char **ret_host,
	      struct ip *ret_ip);

/* Notes that @host (admitted) was answered with @ip. 0, also if that is known
 * already; -EINVAL for an address of the pool, -ENOSPC if there are too many
 * pairs. */
int lease_bind(struct lease_table *table, const char *host,
	       const struct ip *ip);

/* The names that were answered with @ip, the oldest first: at most @max.
 * Returns how many; the table owns them. */
size_t lease_names_at(const struct lease_table *table, const struct ip *ip,
		      const char *ret_name[], size_t max);

/* Walks all pairs, as lease_at() does leases. */
bool lease_pair_at(const struct lease_table *table, size_t i,
		   const char **ret_host, struct ip *ret_ip);

#endif
