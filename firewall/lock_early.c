/* SPDX-License-Identifier: Apache-2.0
 *
 * lock_early.c - what packet sockets send, which no chain of an inet table
 * sees.
 *
 *	chain IFNAME (netdev, egress, policy drop)
 *	  drops all that another network's interface sends
 *	chain early (netdev, egress of eth0 to eth15, policy drop)
 *	  by a link of our group	accept
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
#include <libnftnl/rule.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "firewall/expr.h"

#define CHAIN_EARLY "early"
#define NAMES	    16 /* eth0 and so on */

static struct nftnl_chain *egress(const char *name)
{
	struct nftnl_chain *c = nftnl_chain_alloc();

	if (!c)
		return NULL;
	nftnl_chain_set_u32(c, NFTNL_CHAIN_FAMILY, NFPROTO_NETDEV);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, NF_NETDEV_EGRESS);
	nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, 0);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, NF_DROP);
	if (nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, LOCK_TABLE) < 0 ||
	    nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, name) < 0 ||
	    nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, "filter") < 0) {
		nftnl_chain_free(c);
		return NULL;
	}
	return c;
}

struct nftnl_chain *lock_shut_chain(const char *ifname)
{
	struct nftnl_chain *c = egress(ifname);

	if (c && nftnl_chain_set_str(c, NFTNL_CHAIN_DEV, ifname) < 0) {
		nftnl_chain_free(c);
		return NULL;
	}
	return c;
}

static struct nftnl_rule *ours(void)
{
	const uint32_t group = LOCK_GROUP;
	struct expr_list at = { .rule = nftnl_rule_alloc() };

	if (!at.rule)
		return NULL;
	nftnl_rule_set_u32(at.rule, NFTNL_RULE_FAMILY, NFPROTO_NETDEV);
	if (nftnl_rule_set_str(at.rule, NFTNL_RULE_TABLE, LOCK_TABLE) < 0 ||
	    nftnl_rule_set_str(at.rule, NFTNL_RULE_CHAIN, CHAIN_EARLY) < 0)
		at.failed = true;
	expr_meta_load(&at, NFT_META_OIFGROUP, REG_KEY);
	expr_cmp(&at, NFT_CMP_EQ, &group, sizeof(group));
	expr_verdict(&at, NF_ACCEPT, NULL);
	if (at.failed) {
		nftnl_rule_free(at.rule);
		return NULL;
	}
	return at.rule;
}

int lock_early_make(struct lock_early *early)
{
	char name[NAMES][16];
	const char *names[NAMES + 1] = { NULL };

	*early = (struct lock_early){ egress(CHAIN_EARLY), ours() };
	if (!early->chain || !early->rule)
		return -ENOMEM;
	for (unsigned i = 0; i < NAMES; i++) {
		(void)snprintf(name[i], sizeof(name[i]), "eth%u", i);
		names[i] = name[i];
	}
	return nftnl_chain_set_data(early->chain, NFTNL_CHAIN_DEVICES, names,
				    0) < 0
		       ? -ENOMEM
		       : 0;
}

void lock_early_free(struct lock_early *early)
{
	if (early->chain)
		nftnl_chain_free(early->chain);
	if (early->rule)
		nftnl_rule_free(early->rule);
	*early = (struct lock_early){ 0 };
}
