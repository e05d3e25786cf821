/* SPDX-License-Identifier: Apache-2.0
 *
 * lock_plan.c - the rules.
 *
 *	chain in (prerouting -400, policy drop)
 *	  iif lo			accept
 *	  ours, from or to 127/8	counter entered, drop
 *	  ours				accept
 *	  counter entered, drop
 *	chain out (output -400, policy drop), and
 *	chain last (postrouting 300, policy drop)
 *	  oif lo, or ours		accept
 *	  counter left, drop
 *	chain names (nat, output -150)
 *	  to 127.0.0.11, UDP and TCP	counter names, dnat to the gateway's 53
 *	chain stray (output -90)
 *	  to 127.0.0.11			counter stray, drop
 *	chain source (nat, postrouting 90)
 *	  from 127/8, not to lo		masquerade
 *
 * "Ours" is IPv4 by a link of our group. What is neither loopback nor ours is
 * dropped in both directions, IPv6 too; `last` sees what is forwarded, and what
 * a rule of somebody else sends another way after `out` has seen it.
 *
 * The engine's resolver listens at 127.0.0.11 on a port of its own choice, to
 * which its rules (nat, -100) lead port 53. It asks on behalf of the container,
 * some versions from the host's namespace, where nothing of ours is in the way.
 * So it must not be reached by any port: a flow's first packet takes our rule
 * before the engine's, and `stray`, behind all NAT, drops what does not, such
 * as a flow from before. Such a packet leaves with the address it was to have
 * on loopback, hence route_localnet and the masquerade; and since
 * route_localnet would let others in to 127/8, `in` does not.
 */
#include "firewall/lock_plan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libnftnl/chain.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "base/cleanup.h"
#include "firewall/expr.h"

#define CHAIN_IN     "in"
#define CHAIN_OUT    "out"
#define CHAIN_LAST   "last"
#define CHAIN_NAMES  "names"
#define CHAIN_STRAY  "stray"
#define CHAIN_SOURCE "source"

#define COUNT_LEFT    0
#define COUNT_ENTERED 1
#define COUNT_NAMES   2
#define COUNT_STRAY   3

#define LOOPBACK_INDEX 1u /* in every namespace, for good */
#define IP_SOURCE_AT   12
#define IP_DEST_AT     16
#define DNS_PORT       53

const char *const lock_counter[LOCK_COUNTERS] = {
	[COUNT_LEFT] = "left",
	[COUNT_ENTERED] = "entered",
	[COUNT_NAMES] = "names",
	[COUNT_STRAY] = "stray",
};

static const struct {
	const char *name, *type;
	uint32_t hook;
	int32_t priority;
	uint32_t policy;
} chains[LOCK_CHAINS] = {
	{ CHAIN_IN, "filter", NF_INET_PRE_ROUTING, -400, NF_DROP },
	{ CHAIN_OUT, "filter", NF_INET_LOCAL_OUT, -400, NF_DROP },
	{ CHAIN_LAST, "filter", NF_INET_POST_ROUTING, 300, NF_DROP },
	{ CHAIN_NAMES, "nat", NF_INET_LOCAL_OUT, -150, NF_ACCEPT },
	{ CHAIN_STRAY, "filter", NF_INET_LOCAL_OUT, -90, NF_ACCEPT },
	{ CHAIN_SOURCE, "nat", NF_INET_POST_ROUTING, 90, NF_ACCEPT },
};

/* The rules are written one after another. */
struct writer {
	struct lock_plan *plan;
	struct expr_list at; /* the rule being written */
};

static void rule(struct writer *w, const char *chain)
{
	struct nftnl_rule *r = NULL;

	if (w->plan->rules < LOCK_RULES)
		r = nftnl_rule_alloc();
	if (!r) {
		w->at.failed = true;
		return;
	}
	w->plan->rule[w->plan->rules++] = r;
	w->at.rule = r;
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, NFPROTO_INET);
	if (nftnl_rule_set_str(r, NFTNL_RULE_TABLE, LOCK_TABLE) < 0 ||
	    nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, chain) < 0)
		w->at.failed = true;
}

static void is_u8(struct writer *w, uint32_t meta, uint8_t value)
{
	expr_meta_load(&w->at, meta, REG_KEY);
	expr_cmp(&w->at, NFT_CMP_EQ, &value, sizeof(value));
}

static void is_u32(struct writer *w, uint32_t meta, uint32_t op, uint32_t value)
{
	expr_meta_load(&w->at, meta, REG_KEY);
	expr_cmp(&w->at, op, &value, sizeof(value));
}

static void is_ipv4(struct writer *w)
{
	is_u8(w, NFT_META_NFPROTO, NFPROTO_IPV4);
}

/* @meta: the group of the link that it came by, or goes by. */
static void is_ours(struct writer *w, uint32_t meta)
{
	is_ipv4(w);
	is_u32(w, meta, NFT_CMP_EQ, LOCK_GROUP);
}

/* The address @at, one of IPv4, is in 127/8. */
static void is_loopback(struct writer *w, uint32_t at)
{
	const uint8_t byte = 127;

	expr_payload(&w->at, NFT_PAYLOAD_NETWORK_HEADER, at, sizeof(byte),
		     REG_KEY);
	expr_cmp(&w->at, NFT_CMP_EQ, &byte, sizeof(byte));
}

static void to_resolver(struct writer *w)
{
	const uint32_t address = htonl(LOCK_RESOLVER);

	is_ipv4(w);
	expr_payload(&w->at, NFT_PAYLOAD_NETWORK_HEADER, IP_DEST_AT,
		     sizeof(address), REG_KEY);
	expr_cmp(&w->at, NFT_CMP_EQ, &address, sizeof(address));
}

static void count_and_drop(struct writer *w, size_t counter)
{
	expr_count(&w->at, lock_counter[counter]);
	expr_verdict(&w->at, NF_DROP, NULL);
}

static void write_in(struct writer *w)
{
	rule(w, CHAIN_IN);
	is_u32(w, NFT_META_IIF, NFT_CMP_EQ, LOOPBACK_INDEX);
	expr_verdict(&w->at, NF_ACCEPT, NULL);

	rule(w, CHAIN_IN);
	is_ours(w, NFT_META_IIFGROUP);
	is_loopback(w, IP_SOURCE_AT);
	count_and_drop(w, COUNT_ENTERED);

	rule(w, CHAIN_IN);
	is_ours(w, NFT_META_IIFGROUP);
	is_loopback(w, IP_DEST_AT);
	count_and_drop(w, COUNT_ENTERED);

	rule(w, CHAIN_IN);
	is_ours(w, NFT_META_IIFGROUP);
	expr_verdict(&w->at, NF_ACCEPT, NULL);

	rule(w, CHAIN_IN);
	count_and_drop(w, COUNT_ENTERED);
}

static void write_out(struct writer *w, const char *chain)
{
	rule(w, chain);
	is_u32(w, NFT_META_OIF, NFT_CMP_EQ, LOOPBACK_INDEX);
	expr_verdict(&w->at, NF_ACCEPT, NULL);

	rule(w, chain);
	is_ours(w, NFT_META_OIFGROUP);
	expr_verdict(&w->at, NF_ACCEPT, NULL);

	rule(w, chain);
	count_and_drop(w, COUNT_LEFT);
}

static void write_names(struct writer *w, uint8_t protocol, uint32_t gateway)
{
	rule(w, CHAIN_NAMES);
	to_resolver(w);
	is_u8(w, NFT_META_L4PROTO, protocol);
	expr_count(&w->at, lock_counter[COUNT_NAMES]);
	expr_dnat(&w->at, gateway, DNS_PORT);
}

static void write_rest(struct writer *w)
{
	rule(w, CHAIN_STRAY);
	to_resolver(w);
	count_and_drop(w, COUNT_STRAY);

	rule(w, CHAIN_SOURCE);
	is_u32(w, NFT_META_OIF, NFT_CMP_NEQ, LOOPBACK_INDEX);
	is_ipv4(w);
	is_loopback(w, IP_SOURCE_AT);
	expr_masquerade(&w->at);
}

static int make_chain(struct nftnl_chain **ret, size_t i)
{
	struct nftnl_chain *c = nftnl_chain_alloc();

	*ret = c;
	if (!c)
		return -ENOMEM;
	nftnl_chain_set_u32(c, NFTNL_CHAIN_FAMILY, NFPROTO_INET);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, chains[i].hook);
	nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, chains[i].priority);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, chains[i].policy);
	if (nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, LOCK_TABLE) < 0 ||
	    nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, chains[i].name) < 0 ||
	    nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, chains[i].type) < 0)
		return -ENOMEM;
	return 0;
}

static int make_counter(struct nftnl_obj **ret, const char *name)
{
	struct nftnl_obj *o = nftnl_obj_alloc();

	*ret = o;
	if (!o)
		return -ENOMEM;
	nftnl_obj_set_u32(o, NFTNL_OBJ_FAMILY, NFPROTO_INET);
	nftnl_obj_set_u32(o, NFTNL_OBJ_TYPE, NFT_OBJECT_COUNTER);
	nftnl_obj_set_u64(o, NFTNL_OBJ_CTR_PKTS, 0);
	nftnl_obj_set_u64(o, NFTNL_OBJ_CTR_BYTES, 0);
	nftnl_obj_set_str(o, NFTNL_OBJ_TABLE, LOCK_TABLE);
	nftnl_obj_set_str(o, NFTNL_OBJ_NAME, name);
	return 0;
}

int lock_plan_make(struct lock_plan *plan, const struct lock_spec *spec)
{
	struct writer w = { .plan = plan };
	int r = 0;

	*plan = (struct lock_plan){ 0 };
	if (spec->gateway.len != 4)
		return -EINVAL;
	for (size_t i = 0; r == 0 && i < LOCK_CHAINS; i++)
		r = make_chain(&plan->chain[i], i);
	for (size_t i = 0; r == 0 && i < LOCK_COUNTERS; i++)
		r = make_counter(&plan->counter[i], lock_counter[i]);
	if (r < 0)
		return r;
	write_in(&w);
	write_out(&w, CHAIN_OUT);
	write_out(&w, CHAIN_LAST);
	write_names(&w, IPPROTO_UDP, ip_v4_value(&spec->gateway));
	write_names(&w, IPPROTO_TCP, ip_v4_value(&spec->gateway));
	write_rest(&w);
	return w.at.failed ? -ENOMEM : 0;
}

void lock_plan_free(struct lock_plan *plan)
{
	for (size_t i = 0; i < LOCK_CHAINS; i++)
		if (plan->chain[i])
			nftnl_chain_free(plan->chain[i]);
	for (size_t i = 0; i < LOCK_COUNTERS; i++)
		if (plan->counter[i])
			nftnl_obj_free(plan->counter[i]);
	for (size_t i = 0; i < plan->rules; i++)
		nftnl_rule_free(plan->rule[i]);
	*plan = (struct lock_plan){ 0 };
}
