/* SPDX-License-Identifier: Apache-2.0
 *
 * lock_early.c - what packet sockets send, which no chain of an inet table
 * sees.
 *
 *	chain IFNAME (netdev, egress, policy drop)
 *	  drops all that another network's interface sends
 *	chain early (netdev, egress of eth0 to eth15, policy drop)
 *	  by our link			accept
 *
 * The first is made when the interface is there, a moment too late. The second
 * waits for it, which Linux 6.16 and later can: an engine gives an interface
 * its name before it sets it up.
 */
#include "firewall/lock_plan.h"

#include <errno.h>
#include <stdio.h>
/* these want stdio.h */
#include <libnftnl/chain.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "firewall/writer.h"

#define CHAIN_EARLY "early"
#define NAMES	    16 /* eth0 and so on */

static const struct table_hook egress = {
	.type = "filter",
	.hook = NF_NETDEV_EGRESS,
	.policy = NF_DROP,
};

static void shut(struct table *t, const char *ifname)
{
	struct nftnl_chain *c = table_chain(t, ifname, &egress);

	if (c && nftnl_chain_set_str(c, NFTNL_CHAIN_DEV, ifname) < 0)
		t->at.failed = true;
}

static void early(struct table *t, uint32_t link)
{
	char name[NAMES][16];
	const char *names[NAMES + 1] = { NULL };
	struct nftnl_chain *c = table_chain(t, CHAIN_EARLY, &egress);
	struct writer w = { .table = t };

	for (unsigned i = 0; i < NAMES; i++) {
		(void)snprintf(name[i], sizeof(name[i]), "eth%u", i);
		names[i] = name[i];
	}
	if (c && nftnl_chain_set_data(c, NFTNL_CHAIN_DEVICES, names, 0) < 0)
		t->at.failed = true;
	writer_rule(&w, CHAIN_EARLY);
	writer_meta32(&w, NFT_META_OIFGROUP, NFT_CMP_EQ, LOCK_GROUP);
	if (link)
		writer_meta32(&w, NFT_META_OIF, NFT_CMP_EQ, link);
	writer_accept(&w);
}

int lock_shut_make(struct table *ret, const struct lock_spec *spec,
		   const char (*name)[16], size_t n)
{
	*ret = (struct table){ .name = LOCK_TABLE,
			       .family = NFPROTO_NETDEV,
			       .flags = lock_flags(spec) };
	if (spec->early)
		early(ret, spec->link);
	for (size_t i = 0; i < n; i++)
		shut(ret, name[i]);
	return table_made(ret);
}
