/* SPDX-License-Identifier: Apache-2.0
 *
 * lock.c - puts the lock's plan into a container's namespace, and reads it
 * back. Others have tables there, the engine for one: only ours is compared.
 * They can't undo a drop, and what their NAT may do is dropped behind it.
 */
#include "firewall/lock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
/* these want stdio.h */
#include <libnftnl/chain.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "firewall/canon.h"
#include "firewall/element.h"
#include "firewall/lock_plan.h"
#include "firewall/nft.h"
#include "firewall/readback.h"

static void put_table(struct nft *nft, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh = nft_start(nft, type, flags);

	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, LOCK_TABLE);
	nft_end(nft, nlh);
}

static void put_plan(struct nft *nft, const struct lock_plan *plan)
{
	struct nlmsghdr *nlh;

	for (size_t i = 0; i < LOCK_CHAINS; i++) {
		nlh = nft_start(nft, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
		nftnl_chain_nlmsg_build_payload(nlh, plan->chain[i]);
		nft_end(nft, nlh);
	}
	for (size_t i = 0; i < LOCK_COUNTERS; i++) {
		nlh = nft_start(nft, NFT_MSG_NEWOBJ, NLM_F_CREATE);
		nftnl_obj_nlmsg_build_payload(nlh, plan->counter[i]);
		nft_end(nft, nlh);
	}
	for (size_t i = 0; i < plan->rules; i++) {
		nlh = nft_start(nft, NFT_MSG_NEWRULE,
				NLM_F_CREATE | NLM_F_APPEND);
		nftnl_rule_nlmsg_build_payload(nlh, plan->rule[i]);
		nft_end(nft, nlh);
	}
}

/* A message about table "netdev sallyport_lock". */
static struct nlmsghdr *start_netdev(struct nft *nft, uint16_t type,
				     uint16_t flags)
{
	struct nlmsghdr *nlh = nft_start(nft, type, flags);
	struct nfgenmsg *header = mnl_nlmsg_get_payload(nlh);

	header->nfgen_family = NFPROTO_NETDEV;
	return nlh;
}

static void put_netdev_table(struct nft *nft)
{
	struct nlmsghdr *nlh =
		start_netdev(nft, NFT_MSG_NEWTABLE, NLM_F_CREATE);

	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, LOCK_TABLE);
	nft_end(nft, nlh);
}

static void put_early(struct nft *nft, const struct lock_early *early)
{
	struct nlmsghdr *nlh;

	nft_begin(nft);
	put_netdev_table(nft);
	nlh = start_netdev(nft, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
	nftnl_chain_nlmsg_build_payload(nlh, early->chain);
	nft_end(nft, nlh);
	nlh = start_netdev(nft, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	nftnl_rule_nlmsg_build_payload(nlh, early->rule);
	nft_end(nft, nlh);
	/* Kernels that can't: lock_shut() follows when the interface is there.
	 * What is there already is the same. */
	(void)nft_commit(nft);
}

int lock_install(struct nft *nft, const struct lock_spec *spec)
{
	struct lock_early early;
	struct lock_plan plan;

	int r = lock_plan_make(&plan, spec);
	if (r == 0) {
		nft_begin(nft);
		/* One is made to be deleted, see ruleset_install(). */
		put_table(nft, NFT_MSG_NEWTABLE, NLM_F_CREATE);
		put_table(nft, NFT_MSG_DELTABLE, 0);
		put_table(nft, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
		put_plan(nft, &plan);
		r = nft_commit(nft);
	}
	lock_plan_free(&plan);
	if (r < 0)
		return r;
	r = lock_early_make(&early);
	if (r == 0)
		put_early(nft, &early);
	lock_early_free(&early);
	return r;
}

static int expect(struct canon *canon, const struct lock_spec *spec)
{
	struct lock_plan plan;

	int r = lock_plan_make(&plan, spec);
	if (r == 0)
		r = canon_table(canon, 0, LOCK_CHAINS + LOCK_COUNTERS);
	for (size_t i = 0; r == 0 && i < LOCK_CHAINS; i++)
		r = canon_chain(canon, plan.chain[i]);
	for (size_t i = 0; r == 0 && i < LOCK_COUNTERS; i++)
		r = canon_counter(canon, plan.counter[i]);
	for (size_t i = 0; r == 0 && i < plan.rules; i++)
		r = canon_rule(canon, plan.rule[i]);
	lock_plan_free(&plan);
	return r;
}

static int read_back(struct nft *nft, struct canon *canon)
{
	for (int tries = 0; tries < READBACK_RETRIES; tries++) {
		int r = readback_table(nft, canon, NFPROTO_INET, LOCK_TABLE,
				       false);

		if (r != -EINTR)
			return r;
		canon_free(canon);
	}
	return -EAGAIN;
}

int lock_verify(struct nft *nft, const struct lock_spec *spec, char *reterr,
		size_t cap)
{
	struct canon want = { 0 }, found = { 0 };

	int r = expect(&want, spec);
	if (r == 0)
		r = read_back(nft, &found);
	if (r == 0) {
		canon_sort(&want);
		canon_sort(&found);
		r = canon_compare(&want, &found, reterr, cap);
	}
	canon_free(&want);
	canon_free(&found);
	return r;
}

int lock_shut(struct nft *nft, const char *ifname)
{
	struct nlmsghdr *nlh;

	if (!element_ifname_ok(ifname))
		return -EINVAL;
	struct nftnl_chain *chain = lock_shut_chain(ifname);
	if (!chain)
		return -ENOMEM;
	nft_begin(nft);
	put_netdev_table(nft);
	nlh = start_netdev(nft, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
	nftnl_chain_nlmsg_build_payload(nlh, chain);
	nft_end(nft, nlh);
	nftnl_chain_free(chain);
	int r = nft_commit(nft);
	/* A chain goes with its interface: this one is the same's. */
	return r == -EEXIST ? 0 : r;
}

/* What a dump of the counters has shown so far. */
struct count {
	uint64_t packets[LOCK_COUNTERS];
	unsigned seen; /* a bit each */
};

static int count_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct nftnl_obj *o = nftnl_obj_alloc();
	struct count *count = arg;

	if (!o) {
		errno = ENOMEM;
		return MNL_CB_ERROR;
	}
	/* Once: a second time would leak what the first one found. */
	const bool ours =
		nftnl_obj_nlmsg_parse(nlh, o) == 0 &&
		nftnl_obj_get_u32(o, NFTNL_OBJ_TYPE) == NFT_OBJECT_COUNTER &&
		strcmp(nftnl_obj_get_str(o, NFTNL_OBJ_TABLE), LOCK_TABLE) == 0;
	for (size_t i = 0; ours && i < LOCK_COUNTERS; i++) {
		if (strcmp(nftnl_obj_get_str(o, NFTNL_OBJ_NAME),
			   lock_counter[i]) != 0)
			continue;
		count->packets[i] = nftnl_obj_get_u64(o, NFTNL_OBJ_CTR_PKTS);
		count->seen |= 1u << i;
	}
	nftnl_obj_free(o);
	return MNL_CB_OK;
}

int lock_counters(struct nft *nft, struct lock_counters *ret)
{
	struct count count = { 0 };
	int r = -EAGAIN;

	/* Others may change rules meanwhile; the numbers are good all the
	 * same. */
	for (int tries = 0; tries < READBACK_RETRIES; tries++) {
		struct nlmsghdr *nlh =
			nft_ask(nft, NFT_MSG_GETOBJ, NLM_F_DUMP, NFPROTO_INET);

		count = (struct count){ 0 };
		mnl_attr_put_strz(nlh, NFTA_OBJ_TABLE, LOCK_TABLE);
		r = nft_read(nft, nlh, count_cb, &count);
		if (r != -EINTR)
			break;
	}
	if (r < 0)
		return r;
	if (count.seen != (1u << LOCK_COUNTERS) - 1)
		return -ENOENT;
	*ret = (struct lock_counters){
		.left = count.packets[0],
		.entered = count.packets[1],
		.names = count.packets[2],
		.stray = count.packets[3],
	};
	return 0;
}
