/* SPDX-License-Identifier: Apache-2.0
 *
 * ruleset.c - puts the plan into the kernel, and reads the counters.
 */
#include "firewall/ruleset.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
/* these want stdio.h */
#include <libnftnl/chain.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "firewall/nft.h"
#include "firewall/plan.h"

static void put_table(struct nft *nft, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh = nft_start(nft, type, flags);

	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, RULESET_TABLE);
	nft_end(nft, nlh);
}

static void put_containers(struct nft *nft, const struct plan *plan)
{
	struct nlmsghdr *nlh;

	for (size_t i = 0; i < PLAN_CHAINS; i++) {
		nlh = nft_start(nft, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
		nftnl_chain_nlmsg_build_payload(nlh, plan->chain[i]);
		nft_end(nft, nlh);
	}
	for (size_t i = 0; i < PLAN_SETS; i++) {
		nlh = nft_start(nft, NFT_MSG_NEWSET, NLM_F_CREATE);
		nftnl_set_nlmsg_build_payload(nlh, plan->set[i]);
		nft_end(nft, nlh);
	}
	for (size_t i = 0; i < PLAN_COUNTERS; i++) {
		nlh = nft_start(nft, NFT_MSG_NEWOBJ, NLM_F_CREATE);
		nftnl_obj_nlmsg_build_payload(nlh, plan->counter[i]);
		nft_end(nft, nlh);
	}
}

int ruleset_install(struct nft *nft, const struct ruleset_spec *spec)
{
	struct plan plan;
	struct nlmsghdr *nlh;

	int r = plan_make(&plan, spec);
	if (r < 0)
		goto out;
	nft_begin(nft);
	/* There is no "delete if present" before Linux 6.3, so one is made to
	 * be deleted. */
	put_table(nft, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	put_table(nft, NFT_MSG_DELTABLE, 0);
	put_table(nft, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
	put_containers(nft, &plan);
	for (size_t i = 0; i < plan.rules; i++) {
		nlh = nft_start(nft, NFT_MSG_NEWRULE,
				NLM_F_CREATE | NLM_F_APPEND);
		nftnl_rule_nlmsg_build_payload(nlh, plan.rule[i]);
		nft_end(nft, nlh);
	}
	r = nft_commit(nft);
out:
	plan_free(&plan);
	return r;
}

/* What a dump of the counters has shown so far. */
struct count {
	const char *table;
	uint64_t packets[PLAN_COUNTERS];
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
	if (nftnl_obj_nlmsg_parse(nlh, o) == 0 &&
	    nftnl_obj_get_u32(o, NFTNL_OBJ_FAMILY) == NFPROTO_INET &&
	    nftnl_obj_get_u32(o, NFTNL_OBJ_TYPE) == NFT_OBJECT_COUNTER &&
	    strcmp(nftnl_obj_get_str(o, NFTNL_OBJ_TABLE), count->table) == 0) {
		const char *name = nftnl_obj_get_str(o, NFTNL_OBJ_NAME);

		for (size_t i = 0; i < PLAN_COUNTERS; i++) {
			if (strcmp(name, plan_counter[i]) != 0)
				continue;
			count->packets[i] =
				nftnl_obj_get_u64(o, NFTNL_OBJ_CTR_PKTS);
			count->seen |= 1u << i;
		}
	}
	nftnl_obj_free(o);
	return MNL_CB_OK;
}

int ruleset_counters(struct nft *nft, struct ruleset_counters *ret)
{
	struct count count = { .table = NULL };
	int r;

	/* Others may change rules meanwhile; the numbers are good all the
	 * same. */
	for (int tries = 0; tries < 8; tries++) {
		struct nlmsghdr *nlh =
			nft_ask(nft, NFT_MSG_GETOBJ, NLM_F_DUMP, NFPROTO_INET);

		count = (struct count){ .table = nft_table(nft) };
		mnl_attr_put_strz(nlh, NFTA_OBJ_TABLE, nft_table(nft));
		r = nft_read(nft, nlh, count_cb, &count);
		if (r != -EINTR)
			break;
	}
	if (r < 0)
		return r;
	if (count.seen != (1u << PLAN_COUNTERS) - 1)
		return -ENOENT;
	*ret = (struct ruleset_counters){
		.spoofed = count.packets[0],
		.refused = count.packets[1],
		.ipv6 = count.packets[2],
		.forwarded = count.packets[3],
	};
	return 0;
}
