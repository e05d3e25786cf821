/* SPDX-License-Identifier: Apache-2.0
 *
 * lock.c - puts the lock's plan into a container's namespace, and reads it
 * back. Others have tables there, the engine for one: only ours are compared.
 * They can't undo a drop, and what their NAT may do is dropped behind it.
 */
#include "firewall/lock.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>

#include "firewall/element.h"
#include "firewall/lock_plan.h"
#include "firewall/nft.h"
#include "firewall/table.h"

/* Linux 6.9; older headers have no name for it. */
#define PERSIST (1u << 2)

/* With its owner's socket a table would go, too: it must not. */
uint32_t lock_flags(const struct lock_spec *spec)
{
	return spec->owned ? NFT_TABLE_F_OWNER | PERSIST : 0;
}

int lock_install(struct nft *nft, struct lock_spec *spec)
{
	struct table table;
	int r = lock_plan_make(&table, spec);

	if (r == 0)
		r = table_install(nft, &table);
	if (r == -EOPNOTSUPP && spec->owned) {
		spec->owned = false;
		table.flags = lock_flags(spec);
		r = table_install(nft, &table);
	}
	table_free(&table);
	return r ? r : lock_shut(nft, spec, NULL, 0);
}

int lock_verify(struct nft *nft, const struct lock_spec *spec, char *reterr,
		size_t cap)
{
	struct table table;
	int r = lock_plan_make(&table, spec);

	if (r == 0)
		r = table_verify(nft, &table, reterr, cap);
	table_free(&table);
	return r;
}

static int shut(struct nft *nft, const struct lock_spec *spec,
		const char (*name)[16], size_t n)
{
	struct table table;
	int r = lock_shut_make(&table, spec, name, n);

	if (r == 0)
		r = table_install(nft, &table);
	table_free(&table);
	return r;
}

int lock_shut(struct nft *nft, struct lock_spec *spec, const char (*name)[16],
	      size_t n)
{
	int r = -EOPNOTSUPP;

	if (n > LOCK_OTHERS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++)
		if (!element_ifname_ok(name[i]))
			return -EINVAL;
	if (spec->netdev)
		r = shut(nft, spec, name, n);
	/* -EPERM is another owner's, and -ENOENT an interface that has gone:
	 * but before Linux 6.16 also each that is not there yet. */
	if (spec->early && r && r != -EPERM) {
		spec->early = false;
		r = shut(nft, spec, name, n);
	}
	if (r == -EOPNOTSUPP)
		spec->netdev = false;
	return r == -EOPNOTSUPP && n == 0 ? 0 : r;
}

int lock_verify_shut(struct nft *nft, const struct lock_spec *spec,
		     const char (*name)[16], size_t n, char *reterr, size_t cap)
{
	struct table table;
	int r = 0;

	if (!spec->netdev)
		return 0;
	r = lock_shut_make(&table, spec, name, n);
	if (r == 0)
		r = table_verify(nft, &table, reterr, cap);
	table_free(&table);
	return r;
}

int lock_counters(struct nft *nft, struct lock_counters *ret)
{
	uint64_t packets[LOCK_COUNTERS];
	int r = table_counts(nft, LOCK_TABLE, lock_counter, LOCK_COUNTERS,
			     packets);

	if (r < 0)
		return r;
	*ret = (struct lock_counters){
		.left = packets[0],
		.entered = packets[1],
		.names = packets[2],
		.stray = packets[3],
	};
	return 0;
}
