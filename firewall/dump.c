/* SPDX-License-Identifier: Apache-2.0
 *
 * dump.c - five lists of the kernel. What libnftnl can't read is not left out:
 * it is a line that nobody expects.
 */
#include "firewall/dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
/* these want stdio.h */
#include <libnftnl/chain.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <netinet/in.h>
/* before linux/netfilter.h */
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "firewall/canon.h"
#include "firewall/nft.h"

#define NOT_READ "the kernel has what we cannot read: "

struct dump {
	struct canon *canon;
	const char *table;
	bool alone;
};

static int result(int r)
{
	if (r == 0)
		return MNL_CB_OK;
	errno = -r;
	return MNL_CB_ERROR;
}

static bool is_ours(const struct dump *dump, uint32_t family, const char *table)
{
	return family == NFPROTO_INET && table &&
	       strcmp(table, dump->table) == 0;
}

static int add_table(const struct dump *dump, const struct nftnl_table *t)
{
	uint32_t family = nftnl_table_get_u32(t, NFTNL_TABLE_FAMILY);
	const char *name = nftnl_table_get_str(t, NFTNL_TABLE_NAME);

	if (is_ours(dump, family, name))
		return canon_table(dump->canon,
				   nftnl_table_get_u32(t, NFTNL_TABLE_FLAGS),
				   nftnl_table_get_u32(t, NFTNL_TABLE_USE));
	if (!dump->alone)
		return 0;
	return canon_add(dump->canon, "another table: family %u %s", family,
			 name ? name : "-");
}

static int table_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct nftnl_table *t = nftnl_table_alloc();
	struct dump *dump = arg;
	int r;

	if (!t)
		return result(-ENOMEM);
	if (nftnl_table_nlmsg_parse(nlh, t) < 0)
		r = canon_add(dump->canon, NOT_READ "a table");
	else
		r = add_table(dump, t);
	nftnl_table_free(t);
	return result(r);
}

static int chain_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct nftnl_chain *c = nftnl_chain_alloc();
	struct dump *dump = arg;
	int r = 0;

	if (!c)
		return result(-ENOMEM);
	if (nftnl_chain_nlmsg_parse(nlh, c) < 0)
		r = canon_add(dump->canon, NOT_READ "a chain");
	else if (is_ours(dump, nftnl_chain_get_u32(c, NFTNL_CHAIN_FAMILY),
			 nftnl_chain_get_str(c, NFTNL_CHAIN_TABLE)))
		r = canon_chain(dump->canon, c);
	nftnl_chain_free(c);
	return result(r);
}

static int set_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct nftnl_set *s = nftnl_set_alloc();
	struct dump *dump = arg;
	int r = 0;

	if (!s)
		return result(-ENOMEM);
	if (nftnl_set_nlmsg_parse(nlh, s) < 0)
		r = canon_add(dump->canon, NOT_READ "a set");
	else if (is_ours(dump, nftnl_set_get_u32(s, NFTNL_SET_FAMILY),
			 nftnl_set_get_str(s, NFTNL_SET_TABLE)))
		r = canon_set(dump->canon, s);
	nftnl_set_free(s);
	return result(r);
}

static int object_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct nftnl_obj *o = nftnl_obj_alloc();
	struct dump *dump = arg;
	int r = 0;

	if (!o)
		return result(-ENOMEM);
	if (nftnl_obj_nlmsg_parse(nlh, o) < 0)
		r = canon_add(dump->canon, NOT_READ "an object");
	else if (is_ours(dump, nftnl_obj_get_u32(o, NFTNL_OBJ_FAMILY),
			 nftnl_obj_get_str(o, NFTNL_OBJ_TABLE)))
		r = canon_counter(dump->canon, o);
	nftnl_obj_free(o);
	return result(r);
}

static int rule_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct nftnl_rule *rule = nftnl_rule_alloc();
	struct dump *dump = arg;
	int r = 0;

	if (!rule)
		return result(-ENOMEM);
	/* An expression that libnftnl does not know fails here. */
	if (nftnl_rule_nlmsg_parse(nlh, rule) < 0)
		r = canon_add(dump->canon, NOT_READ "a rule");
	else if (is_ours(dump, nftnl_rule_get_u32(rule, NFTNL_RULE_FAMILY),
			 nftnl_rule_get_str(rule, NFTNL_RULE_TABLE)))
		r = canon_rule(dump->canon, rule);
	nftnl_rule_free(rule);
	return result(r);
}

int dump_table(struct nft *nft, const char *table, bool alone,
	       struct canon *canon)
{
	static const struct {
		uint16_t type;
		uint8_t family;
		mnl_cb_t cb;
	} lists[] = {
		{ NFT_MSG_GETTABLE, NFPROTO_UNSPEC, table_cb },
		{ NFT_MSG_GETCHAIN, NFPROTO_INET, chain_cb },
		{ NFT_MSG_GETSET, NFPROTO_INET, set_cb },
		{ NFT_MSG_GETOBJ, NFPROTO_INET, object_cb },
		{ NFT_MSG_GETRULE, NFPROTO_INET, rule_cb },
	};
	struct dump dump = { .canon = canon, .table = table, .alone = alone };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(lists) / sizeof(*lists); i++) {
		struct nlmsghdr *nlh = nft_ask(nft, lists[i].type, NLM_F_DUMP,
					       lists[i].family);

		r = nft_read(nft, nlh, lists[i].cb, &dump);
	}
	return r;
}
