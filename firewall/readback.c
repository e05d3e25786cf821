/* SPDX-License-Identifier: Apache-2.0
 *
 * readback.c - each of what a table has, from the kernel to a line.
 *
 * What cannot be read is a line too: nobody expects it, so it is a difference.
 */
#include "firewall/readback.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
/* these want stdio.h */
#include <libnftnl/chain.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "firewall/canon.h"
#include "firewall/nft.h"

#define NOT_READ "the kernel has what we cannot read: "

static int result(int r)
{
	if (r == 0)
		return MNL_CB_OK;
	errno = -r;
	return MNL_CB_ERROR;
}

/* Which table is read into which lines. */
struct reading {
	struct canon *canon;
	const char *table;
	uint8_t family;
	bool alone;
};

static bool is_ours(const struct reading *reading, uint32_t family,
		    const char *table)
{
	return family == reading->family && table &&
	       strcmp(table, reading->table) == 0;
}

static int table_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct reading *reading = arg;
	struct nftnl_table *t = nftnl_table_alloc();
	int r = 0;

	if (!t)
		return result(-ENOMEM);
	if (nftnl_table_nlmsg_parse(nlh, t) < 0) {
		r = canon_add(reading->canon, NOT_READ "a table");
	} else {
		uint32_t family = nftnl_table_get_u32(t, NFTNL_TABLE_FAMILY);
		const char *name = nftnl_table_get_str(t, NFTNL_TABLE_NAME);

		if (is_ours(reading, family, name))
			r = canon_table(
				reading->canon,
				nftnl_table_get_u32(t, NFTNL_TABLE_FLAGS),
				nftnl_table_get_u32(t, NFTNL_TABLE_USE));
		else if (reading->alone)
			r = canon_add(reading->canon,
				      "another table: family %u %s", family,
				      name ? name : "-");
	}
	nftnl_table_free(t);
	return result(r);
}

static int chain_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct reading *reading = arg;
	struct nftnl_chain *c = nftnl_chain_alloc();
	int r = 0;

	if (!c)
		return result(-ENOMEM);
	if (nftnl_chain_nlmsg_parse(nlh, c) < 0)
		r = canon_add(reading->canon, NOT_READ "a chain");
	else if (is_ours(reading, nftnl_chain_get_u32(c, NFTNL_CHAIN_FAMILY),
			 nftnl_chain_get_str(c, NFTNL_CHAIN_TABLE)))
		r = canon_chain(reading->canon, c);
	nftnl_chain_free(c);
	return result(r);
}

static int set_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct reading *reading = arg;
	struct nftnl_set *s = nftnl_set_alloc();
	int r = 0;

	if (!s)
		return result(-ENOMEM);
	if (nftnl_set_nlmsg_parse(nlh, s) < 0)
		r = canon_add(reading->canon, NOT_READ "a set");
	else if (is_ours(reading, nftnl_set_get_u32(s, NFTNL_SET_FAMILY),
			 nftnl_set_get_str(s, NFTNL_SET_TABLE)))
		r = canon_set(reading->canon, s);
	nftnl_set_free(s);
	return result(r);
}

static int object_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct reading *reading = arg;
	struct nftnl_obj *o = nftnl_obj_alloc();
	int r = 0;

	if (!o)
		return result(-ENOMEM);
	if (nftnl_obj_nlmsg_parse(nlh, o) < 0)
		r = canon_add(reading->canon, NOT_READ "an object");
	else if (is_ours(reading, nftnl_obj_get_u32(o, NFTNL_OBJ_FAMILY),
			 nftnl_obj_get_str(o, NFTNL_OBJ_TABLE)))
		r = canon_counter(reading->canon, o);
	nftnl_obj_free(o);
	return result(r);
}

static int rule_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct reading *reading = arg;
	struct nftnl_rule *rule = nftnl_rule_alloc();
	int r = 0;

	if (!rule)
		return result(-ENOMEM);
	/* An expression that libnftnl does not know fails here. */
	if (nftnl_rule_nlmsg_parse(nlh, rule) < 0)
		r = canon_add(reading->canon, NOT_READ "a rule");
	else if (is_ours(reading, nftnl_rule_get_u32(rule, NFTNL_RULE_FAMILY),
			 nftnl_rule_get_str(rule, NFTNL_RULE_TABLE)))
		r = canon_rule(reading->canon, rule);
	nftnl_rule_free(rule);
	return result(r);
}

static int list(struct nft *nft, uint16_t type, uint8_t family, mnl_cb_t cb,
		struct reading *reading)
{
	struct nlmsghdr *nlh = nft_ask(nft, type, NLM_F_DUMP, family);

	/* Rules of others may be of a kind that nobody here can read. */
	if (type == NFT_MSG_GETRULE)
		mnl_attr_put_strz(nlh, NFTA_RULE_TABLE, reading->table);
	return nft_read(nft, nlh, cb, reading);
}

int readback_table(struct nft *nft, struct canon *canon, uint8_t family,
		   const char *table, bool alone)
{
	struct reading reading = {
		.canon = canon,
		.table = table,
		.family = family,
		.alone = alone,
	};
	int r = list(nft, NFT_MSG_GETTABLE, NFPROTO_UNSPEC, table_cb, &reading);

	if (r == 0)
		r = list(nft, NFT_MSG_GETCHAIN, family, chain_cb, &reading);
	if (r == 0)
		r = list(nft, NFT_MSG_GETSET, family, set_cb, &reading);
	if (r == 0)
		r = list(nft, NFT_MSG_GETOBJ, family, object_cb, &reading);
	if (r == 0)
		r = list(nft, NFT_MSG_GETRULE, family, rule_cb, &reading);
	return r;
}

int readback(struct nft *nft, struct canon *canon, readback_fn *fn, void *arg)
{
	for (int tries = 0; tries < READBACK_RETRIES; tries++) {
		int r = fn(arg, nft, canon);

		if (r != -EINTR)
			return r;
		canon_free(canon);
	}
	return -EAGAIN;
}

int readback_compare(struct canon *want, struct canon *found, char *reterr,
		     size_t cap)
{
	canon_sort(want);
	canon_sort(found);
	return canon_compare(want, found, reterr, cap);
}
