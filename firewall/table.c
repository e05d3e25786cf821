/* SPDX-License-Identifier: Apache-2.0
 *
 * table.c - a table into the kernel, and back.
 */
#include "firewall/table.h"

#include <arpa/inet.h>
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
#include <linux/netfilter/nfnetlink.h>

#include "firewall/canon.h"
#include "firewall/nft.h"
#include "firewall/readback.h"

/* --- writing ------------------------------------------------------------- */

static bool hook_chain(struct nftnl_chain *c, const struct table_hook *hook)
{
	nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, hook->hook);
	nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, hook->priority);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, hook->policy);
	return nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, hook->type) == 0;
}

struct nftnl_chain *table_chain(struct table *t, const char *name,
				const struct table_hook *hook)
{
	struct nftnl_chain *c =
		t->chains < TABLE_CHAINS ? nftnl_chain_alloc() : NULL;

	if (!c) {
		t->at.failed = true;
		return NULL;
	}
	t->chain[t->chains++] = c;
	nftnl_chain_set_u32(c, NFTNL_CHAIN_FAMILY, t->family);
	if (nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, t->name) < 0 ||
	    nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, name) < 0 ||
	    (hook && !hook_chain(c, hook)))
		t->at.failed = true;
	return c;
}

void table_set(struct table *t, struct nftnl_set *set)
{
	if (!set || t->sets == TABLE_SETS) {
		t->at.failed = true;
		if (set)
			nftnl_set_free(set);
		return;
	}
	t->set[t->sets++] = set;
}

void table_counter(struct table *t, const char *name)
{
	struct nftnl_obj *o =
		t->counters < TABLE_COUNTERS ? nftnl_obj_alloc() : NULL;

	if (!o) {
		t->at.failed = true;
		return;
	}
	t->counter[t->counters++] = o;
	nftnl_obj_set_u32(o, NFTNL_OBJ_FAMILY, t->family);
	nftnl_obj_set_u32(o, NFTNL_OBJ_TYPE, NFT_OBJECT_COUNTER);
	nftnl_obj_set_u64(o, NFTNL_OBJ_CTR_PKTS, 0);
	nftnl_obj_set_u64(o, NFTNL_OBJ_CTR_BYTES, 0);
	nftnl_obj_set_str(o, NFTNL_OBJ_TABLE, t->name);
	nftnl_obj_set_str(o, NFTNL_OBJ_NAME, name);
}

void table_rule(struct table *t, const char *chain)
{
	struct nftnl_rule *r =
		t->rules < TABLE_RULES ? nftnl_rule_alloc() : NULL;

	t->at.rule = r;
	if (!r) {
		t->at.failed = true;
		return;
	}
	t->rule[t->rules++] = r;
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, t->family);
	if (nftnl_rule_set_str(r, NFTNL_RULE_TABLE, t->name) < 0 ||
	    nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, chain) < 0)
		t->at.failed = true;
}

int table_made(const struct table *t)
{
	return t->at.failed ? -ENOMEM : 0;
}

void table_free(struct table *t)
{
	for (size_t i = 0; i < t->chains; i++)
		nftnl_chain_free(t->chain[i]);
	for (size_t i = 0; i < t->sets; i++)
		nftnl_set_free(t->set[i]);
	for (size_t i = 0; i < t->counters; i++)
		nftnl_obj_free(t->counter[i]);
	for (size_t i = 0; i < t->rules; i++)
		nftnl_rule_free(t->rule[i]);
	*t = (struct table){ 0 };
}

/* --- sending ------------------------------------------------------------- */

static struct nlmsghdr *start(struct nft *nft, const struct table *t,
			      uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh = nft_start(nft, type, flags);
	struct nfgenmsg *header = mnl_nlmsg_get_payload(nlh);

	header->nfgen_family = t->family;
	return nlh;
}

static void put_table(struct nft *nft, const struct table *t, uint16_t type,
		      uint16_t flags, uint32_t table_flags)
{
	struct nlmsghdr *nlh = start(nft, t, type, flags);

	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, t->name);
	if (table_flags)
		mnl_attr_put_u32(nlh, NFTA_TABLE_FLAGS, htonl(table_flags));
	nft_end(nft, nlh);
}

static void put_all(struct nft *nft, const struct table *t)
{
	struct nlmsghdr *nlh;

	for (size_t i = 0; i < t->chains; i++) {
		nlh = start(nft, t, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
		nftnl_chain_nlmsg_build_payload(nlh, t->chain[i]);
		nft_end(nft, nlh);
	}
	for (size_t i = 0; i < t->sets; i++) {
		nlh = start(nft, t, NFT_MSG_NEWSET, NLM_F_CREATE);
		nftnl_set_nlmsg_build_payload(nlh, t->set[i]);
		nft_end(nft, nlh);
	}
	for (size_t i = 0; i < t->counters; i++) {
		nlh = start(nft, t, NFT_MSG_NEWOBJ, NLM_F_CREATE);
		nftnl_obj_nlmsg_build_payload(nlh, t->counter[i]);
		nft_end(nft, nlh);
	}
	for (size_t i = 0; i < t->rules; i++) {
		nlh = start(nft, t, NFT_MSG_NEWRULE,
			    NLM_F_CREATE | NLM_F_APPEND);
		nftnl_rule_nlmsg_build_payload(nlh, t->rule[i]);
		nft_end(nft, nlh);
	}
}

void table_create(struct nft *nft, const struct table *t)
{
	put_table(nft, t, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL,
		  t->flags);
	put_all(nft, t);
}

void table_delete(struct nft *nft, const struct table *t)
{
	put_table(nft, t, NFT_MSG_DELTABLE, 0, 0);
}

/* There is no "delete if present" before Linux 6.3, so one is made to be
 * deleted. */
void table_clear(struct nft *nft, const struct table *t)
{
	put_table(nft, t, NFT_MSG_NEWTABLE, NLM_F_CREATE, 0);
	table_delete(nft, t);
}

int table_install(struct nft *nft, const struct table *t)
{
	nft_begin(nft);
	table_clear(nft, t);
	table_create(nft, t);
	return nft_commit(nft);
}

/* --- reading back -------------------------------------------------------- */

int table_expect(const struct table *t, struct canon *canon)
{
	int r = canon_table(canon, t->flags,
			    (uint32_t)(t->chains + t->sets + t->counters));

	for (size_t i = 0; r == 0 && i < t->chains; i++)
		r = canon_chain(canon, t->chain[i]);
	for (size_t i = 0; r == 0 && i < t->sets; i++)
		r = canon_set(canon, t->set[i]);
	for (size_t i = 0; r == 0 && i < t->counters; i++)
		r = canon_counter(canon, t->counter[i]);
	for (size_t i = 0; r == 0 && i < t->rules; i++)
		r = canon_rule(canon, t->rule[i]);
	return r;
}

static int read_table(void *arg, struct nft *nft, struct canon *canon)
{
	const struct table *t = arg;

	return readback_table(nft, canon, t->family, t->name, false);
}

int table_verify(struct nft *nft, const struct table *t, char *reterr,
		 size_t cap)
{
	struct canon want = { 0 }, found = { 0 };

	int r = table_expect(t, &want);
	if (r == 0)
		r = readback(nft, &found, read_table, (void *)(uintptr_t)t);
	if (r == 0)
		r = readback_compare(&want, &found, reterr, cap);
	canon_free(&want);
	canon_free(&found);
	return r;
}

/* --- counters ------------------------------------------------------------ */

/* What a dump of the counters has shown so far. */
struct count {
	const char *table, *const *name;
	size_t n;
	uint64_t *packets;
	uint32_t seen; /* a bit each */
};

static void count_one(struct count *count, const char *name, uint64_t packets)
{
	for (size_t i = 0; i < count->n; i++)
		if (strcmp(name, count->name[i]) == 0) {
			count->packets[i] = packets;
			count->seen |= 1u << i;
		}
}

static int count_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct nftnl_obj *o = nftnl_obj_alloc();
	struct count *count = arg;

	if (!o) {
		errno = ENOMEM;
		return MNL_CB_ERROR;
	}
	/* Once: a second time would leak what the first one found. */
	if (nftnl_obj_nlmsg_parse(nlh, o) == 0 &&
	    nftnl_obj_get_u32(o, NFTNL_OBJ_FAMILY) == NFPROTO_INET &&
	    nftnl_obj_get_u32(o, NFTNL_OBJ_TYPE) == NFT_OBJECT_COUNTER &&
	    strcmp(nftnl_obj_get_str(o, NFTNL_OBJ_TABLE), count->table) == 0)
		count_one(count, nftnl_obj_get_str(o, NFTNL_OBJ_NAME),
			  nftnl_obj_get_u64(o, NFTNL_OBJ_CTR_PKTS));
	nftnl_obj_free(o);
	return MNL_CB_OK;
}

int table_counts(struct nft *nft, const char *table, const char *const *name,
		 size_t n, uint64_t *ret_packets)
{
	struct count count = { table, name, n, ret_packets, 0 };
	int r = -EINTR;

	/* Others may change rules meanwhile; the numbers are good all the
	 * same. */
	for (int tries = 0; r == -EINTR && tries < READBACK_RETRIES; tries++) {
		struct nlmsghdr *nlh =
			nft_ask(nft, NFT_MSG_GETOBJ, NLM_F_DUMP, NFPROTO_INET);

		count.seen = 0;
		mnl_attr_put_strz(nlh, NFTA_OBJ_TABLE, table);
		r = nft_read(nft, nlh, count_cb, &count);
	}
	if (r < 0)
		return r;
	return count.seen == (uint32_t)((UINT64_C(1) << n) - 1) ? 0 : -ENOENT;
}
