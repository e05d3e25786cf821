/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.c - reads back what the kernel holds, and compares it with the plan.
 *
 * The namespace is ours alone, so that any other table in it is a difference.
 * Of the three sets, `links` and `doors` are compared element by element;
 * `flows` changes with each name that is looked up and is left out.
 */
#include "firewall/ruleset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
#include "firewall/element.h"
#include "firewall/nft.h"
#include "firewall/plan.h"

#define RETRIES 8

#define NOT_READ "the kernel has what we cannot read: "

static int result(int r)
{
	if (r == 0)
		return MNL_CB_OK;
	errno = -r;
	return MNL_CB_ERROR;
}

static bool is_ours(uint32_t family, const char *table)
{
	return family == NFPROTO_INET && table &&
	       strcmp(table, RULESET_TABLE) == 0;
}

static int table_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct nftnl_table *t = nftnl_table_alloc();
	struct canon *canon = arg;
	int r;

	if (!t)
		return result(-ENOMEM);
	if (nftnl_table_nlmsg_parse(nlh, t) < 0) {
		r = canon_add(canon, NOT_READ "a table");
	} else {
		uint32_t family = nftnl_table_get_u32(t, NFTNL_TABLE_FAMILY);
		const char *name = nftnl_table_get_str(t, NFTNL_TABLE_NAME);

		if (is_ours(family, name))
			r = canon_table(
				canon,
				nftnl_table_get_u32(t, NFTNL_TABLE_FLAGS),
				nftnl_table_get_u32(t, NFTNL_TABLE_USE));
		else
			r = canon_add(canon, "another table: family %u %s",
				      family, name ? name : "-");
	}
	nftnl_table_free(t);
	return result(r);
}

static int chain_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct nftnl_chain *c = nftnl_chain_alloc();
	int r = 0;

	if (!c)
		return result(-ENOMEM);
	if (nftnl_chain_nlmsg_parse(nlh, c) < 0)
		r = canon_add(arg, NOT_READ "a chain");
	else if (is_ours(nftnl_chain_get_u32(c, NFTNL_CHAIN_FAMILY),
			 nftnl_chain_get_str(c, NFTNL_CHAIN_TABLE)))
		r = canon_chain(arg, c);
	nftnl_chain_free(c);
	return result(r);
}

static int set_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct nftnl_set *s = nftnl_set_alloc();
	int r = 0;

	if (!s)
		return result(-ENOMEM);
	if (nftnl_set_nlmsg_parse(nlh, s) < 0)
		r = canon_add(arg, NOT_READ "a set");
	else if (is_ours(nftnl_set_get_u32(s, NFTNL_SET_FAMILY),
			 nftnl_set_get_str(s, NFTNL_SET_TABLE)))
		r = canon_set(arg, s);
	nftnl_set_free(s);
	return result(r);
}

static int object_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct nftnl_obj *o = nftnl_obj_alloc();
	int r = 0;

	if (!o)
		return result(-ENOMEM);
	if (nftnl_obj_nlmsg_parse(nlh, o) < 0)
		r = canon_add(arg, NOT_READ "an object");
	else if (is_ours(nftnl_obj_get_u32(o, NFTNL_OBJ_FAMILY),
			 nftnl_obj_get_str(o, NFTNL_OBJ_TABLE)))
		r = canon_counter(arg, o);
	nftnl_obj_free(o);
	return result(r);
}

static int rule_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct nftnl_rule *rule = nftnl_rule_alloc();
	int r = 0;

	if (!rule)
		return result(-ENOMEM);
	/* An expression that libnftnl does not know fails here. */
	if (nftnl_rule_nlmsg_parse(nlh, rule) < 0)
		r = canon_add(arg, NOT_READ "a rule");
	else if (is_ours(nftnl_rule_get_u32(rule, NFTNL_RULE_FAMILY),
			 nftnl_rule_get_str(rule, NFTNL_RULE_TABLE)))
		r = canon_rule(arg, rule);
	nftnl_rule_free(rule);
	return result(r);
}

struct element_target {
	struct canon *canon;
	const char *set;
	bool port;
};

static int element_cb(void *arg, const struct element_found *found)
{
	const struct element_target *target = arg;

	return canon_element(target->canon, target->set, target->port, found);
}

static int read_elements(struct nft *nft, struct canon *canon, const char *set,
			 bool port)
{
	struct element_target target = {
		.canon = canon,
		.set = set,
		.port = port,
	};

	int r = element_list(nft, set,
			     port ? ELEMENT_FLOW_KEY : ELEMENT_LINK_KEY,
			     element_cb, &target);
	/* No such set: the missing set's own line says so. */
	return r == -ENOENT ? 0 : r;
}

static int list(struct nft *nft, uint16_t type, uint8_t family, mnl_cb_t cb,
		struct canon *canon)
{
	struct nlmsghdr *nlh = nft_ask(nft, type, NLM_F_DUMP, family);

	return nft_read(nft, nlh, cb, canon);
}

static int read_once(struct nft *nft, struct canon *canon)
{
	int r = list(nft, NFT_MSG_GETTABLE, NFPROTO_UNSPEC, table_cb, canon);

	if (r == 0)
		r = list(nft, NFT_MSG_GETCHAIN, NFPROTO_INET, chain_cb, canon);
	if (r == 0)
		r = list(nft, NFT_MSG_GETSET, NFPROTO_INET, set_cb, canon);
	if (r == 0)
		r = list(nft, NFT_MSG_GETOBJ, NFPROTO_INET, object_cb, canon);
	if (r == 0)
		r = list(nft, NFT_MSG_GETRULE, NFPROTO_INET, rule_cb, canon);
	if (r == 0)
		r = read_elements(nft, canon, SET_LINKS, false);
	if (r == 0)
		r = read_elements(nft, canon, SET_DOORS, true);
	return r;
}

static int read_back(struct nft *nft, struct canon *canon)
{
	for (int tries = 0; tries < RETRIES; tries++) {
		int r = read_once(nft, canon);

		if (r != -EINTR)
			return r;
		canon_free(canon);
	}
	return -EAGAIN;
}

static int expect_link(struct canon *canon, const struct ruleset_link *link,
		       uint16_t proxy_port)
{
	struct element_found who = { .plain = true }, door = { .plain = true };

	if (!element_ifname_ok(link->ifname))
		return -EINVAL;
	memcpy(who.element.ifname, link->ifname, sizeof(link->ifname));
	memcpy(door.element.ifname, link->ifname, sizeof(link->ifname));
	who.element.ip = who.element.ip_last = ip_v4_value(&link->ip);
	door.element.ip = door.element.ip_last = ip_v4_value(&link->gateway);
	door.element.port = door.element.port_last = proxy_port;
	int r = canon_element(canon, SET_LINKS, false, &who);
	if (r == 0)
		r = canon_element(canon, SET_DOORS, true, &door);
	return r;
}

static int expect(struct canon *canon, const struct ruleset_spec *spec,
		  const struct ruleset_link *links, size_t n)
{
	struct plan plan;

	int r = plan_make(&plan, spec);
	if (r == 0)
		r = canon_table(canon, 0,
				PLAN_CHAINS + PLAN_SETS + PLAN_COUNTERS);
	for (size_t i = 0; r == 0 && i < PLAN_CHAINS; i++)
		r = canon_chain(canon, plan.chain[i]);
	for (size_t i = 0; r == 0 && i < PLAN_SETS; i++)
		r = canon_set(canon, plan.set[i]);
	for (size_t i = 0; r == 0 && i < PLAN_COUNTERS; i++)
		r = canon_counter(canon, plan.counter[i]);
	for (size_t i = 0; r == 0 && i < plan.rules; i++)
		r = canon_rule(canon, plan.rule[i]);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = expect_link(canon, &links[i], spec->proxy_port);
	plan_free(&plan);
	return r;
}

static int expect_published(struct canon *canon,
			    const struct ruleset_link *links, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct element_found ours = { .plain = true };

		if (!links[i].published)
			continue;
		memcpy(ours.element.ifname, links[i].ifname,
		       sizeof(links[i].ifname));
		ours.element.ip = ours.element.ip_last =
			ip_v4_value(&links[i].gateway);
		r = canon_element(canon, SET_PUBLISHED, false, &ours);
	}
	return r;
}

static int verify_published(struct nft *nft, const struct ruleset_link *links,
			    size_t n, char *reterr, size_t cap)
{
	struct canon want = { 0 }, found = { 0 };
	int r = -EINTR;

	for (int tries = 0; r == -EINTR && tries < RETRIES; tries++) {
		canon_free(&found);
		r = read_elements(nft, &found, SET_PUBLISHED, false);
	}
	if (r == -EINTR)
		r = -EAGAIN;
	if (r == 0)
		r = expect_published(&want, links, n);
	if (r == 0) {
		canon_sort(&want);
		canon_sort(&found);
		r = canon_compare(&want, &found, reterr, cap);
	}
	canon_free(&want);
	canon_free(&found);
	return r;
}

int ruleset_verify(struct nft *nft, const struct ruleset_spec *spec,
		   const struct ruleset_link *links, size_t n, char *ret_digest,
		   char *reterr, size_t cap)
{
	struct canon want = { 0 }, found = { 0 };

	int r = expect(&want, spec, links, n);
	if (r == 0)
		r = read_back(nft, &found);
	if (r == 0) {
		canon_sort(&want);
		canon_sort(&found);
		r = canon_compare(&want, &found, reterr, cap);
	}
	if (r == 0)
		r = verify_published(nft, links, n, reterr, cap);
	if (r == 0 && ret_digest)
		r = canon_digest(&found, ret_digest);
	canon_free(&want);
	canon_free(&found);
	return r;
}
