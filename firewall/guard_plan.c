/* SPDX-License-Identifier: Apache-2.0
 *
 * guard_plan.c - the guard's rules.
 *
 *	inet sallyport_guard
 *	chain nat (output, before other address translation)
 *	  skuid gate			 accept
 *	  IPv4, udp or tcp dport 53	 redirect to the resolver
 *	  IPv4, tcp, daddr . dport in @flows	redirect to the listener
 *	chain out (output, after address translation; policy drop)
 *	  oifname lo, or to 127/8	 goto loop
 *	  skuid gate			 ct mark set, accept
 *	  skuid of anybody else		 goto refuse
 *	  ct mark			 accept: the kernel, for the gate
 *	  neighbour discovery by the kernel	accept
 *	  goto refuse
 *	chain loop
 *	  skuid gate			 accept
 *	  to a resolver of others	 goto refuse
 *	  accept
 *	chain refuse
 *	  counter ipv6 or refused, log
 *	  tcp: reset; udp: port unreachable; rest: administratively prohibited
 *	chain post (postrouting; policy drop)	the same once more, where the
 *					 interface is the one it leaves by
 *	chain in (input): to 127/8, but not by lo	counter spoofed, log,
 *drop chain forward (policy drop) counter forwarded, log, drop
 *
 *	netdev sallyport_guard
 *	chain egress, of every interface but lo
 *	  skuid of anybody but the gate	 counter packets, log, drop
 *
 * A packet without a socket has no skuid, neither this one nor another: a rule
 * about it does not match. The kernel sends such for the gate (the last
 * acknowledgement of a connection), which its connection's mark tells; nobody
 * else has a packet without a socket, whose owner is the process that opened
 * it. A redirected packet shows `out` the interface of before: so 127/8 is
 * looked at there, and what it says is checked in `post`.
 */
#include "firewall/guard_plan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libnftnl/chain.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter_ipv4.h>
#include <string.h>

#include "base/cleanup.h"
#include "firewall/expr.h"
#include "firewall/plan.h"

#define CHAIN_NAT     "nat"
#define CHAIN_OUT     "out"
#define CHAIN_LOOP    "loop"
#define CHAIN_REFUSE  "refuse"
#define CHAIN_POST    "post"
#define CHAIN_IN      "in"
#define CHAIN_FORWARD "forward"
#define CHAIN_EGRESS  "egress"

/* Before -100, where others translate: Docker's resolver is behind that. */
#define PRIORITY_NAT -150
/* After that. */
#define PRIORITY_FILTER 300

/* Of connections of the gate: "slyp". */
#define CT_MARK 0x736c7970u

#define SNAPLEN	      128
#define DNS_PORT      53
#define IP_DEST_AT    16
#define TRANS_DEST_AT 2
#define LOOPBACK      127
#define LOOPBACK_NAME "lo"

/* Neighbour discovery: solicitations and an advertisement. */
static const uint8_t discovery[] = { 133, 135, 136 };

struct writer {
	struct guard_plan *plan;
	const struct guard_spec *spec;
	uint8_t family;
	struct expr_list at; /* the rule being written */
};

static void rule(struct writer *w, const char *chain)
{
	struct nftnl_rule *r = NULL;

	if (w->plan->rules < GUARD_RULES)
		r = nftnl_rule_alloc();
	if (!r) {
		w->at.failed = true;
		return;
	}
	w->plan->rule[w->plan->rules++] = r;
	w->at.rule = r;
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, w->family);
	if (nftnl_rule_set_str(r, NFTNL_RULE_TABLE, GUARD_TABLE) < 0 ||
	    nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, chain) < 0)
		w->at.failed = true;
}

static void accept_it(struct writer *w)
{
	expr_verdict(&w->at, NF_ACCEPT, NULL);
}

static void go(struct writer *w, const char *chain)
{
	expr_verdict(&w->at, NFT_GOTO, chain);
}

static void count_and_log(struct writer *w, const char *counter)
{
	expr_count(&w->at, counter);
	expr_log(&w->at, counter, w->spec->nflog_group, SNAPLEN);
}

static void count_and_drop(struct writer *w, const char *counter)
{
	count_and_log(w, counter);
	expr_verdict(&w->at, NF_DROP, NULL);
}

static void is_u8(struct writer *w, uint32_t meta, uint8_t value)
{
	expr_meta_load(&w->at, meta, REG_KEY);
	expr_cmp(&w->at, NFT_CMP_EQ, &value, sizeof(value));
}

/* @op NFT_CMP_EQ: by the gate; NEQ: by somebody else. */
static void by(struct writer *w, uint32_t op)
{
	expr_meta_load(&w->at, NFT_META_SKUID, REG_KEY);
	expr_cmp(&w->at, op, &w->spec->uid, sizeof(w->spec->uid));
}

static void on_loopback(struct writer *w, uint32_t meta, uint32_t op)
{
	char name[16] = LOOPBACK_NAME;

	expr_meta_load(&w->at, meta, REG_KEY);
	expr_cmp(&w->at, op, name, sizeof(name));
}

static void to_loopback(struct writer *w)
{
	const uint8_t byte = LOOPBACK;

	is_u8(w, NFT_META_NFPROTO, NFPROTO_IPV4);
	expr_payload(&w->at, NFT_PAYLOAD_NETWORK_HEADER, IP_DEST_AT, 1,
		     REG_KEY);
	expr_cmp(&w->at, NFT_CMP_EQ, &byte, sizeof(byte));
}

static void write_dns(struct writer *w, uint8_t protocol, uint16_t to)
{
	const uint16_t port = htons(DNS_PORT);

	rule(w, CHAIN_NAT);
	is_u8(w, NFT_META_NFPROTO, NFPROTO_IPV4);
	is_u8(w, NFT_META_L4PROTO, protocol);
	expr_payload(&w->at, NFT_PAYLOAD_TRANSPORT_HEADER, TRANS_DEST_AT,
		     sizeof(port), REG_KEY);
	expr_cmp(&w->at, NFT_CMP_EQ, &port, sizeof(port));
	expr_redirect(&w->at, to);
}

static void write_nat(struct writer *w)
{
	static const char flows_of[16] = GUARD_FLOWS_OF;

	rule(w, CHAIN_NAT);
	by(w, NFT_CMP_EQ);
	accept_it(w);

	write_dns(w, IPPROTO_UDP, w->spec->dns_udp_port);
	write_dns(w, IPPROTO_TCP, w->spec->dns_tcp_port);

	rule(w, CHAIN_NAT);
	is_u8(w, NFT_META_NFPROTO, NFPROTO_IPV4);
	is_u8(w, NFT_META_L4PROTO, IPPROTO_TCP);
	expr_immediate(&w->at, flows_of, sizeof(flows_of), REG_KEY);
	expr_payload(&w->at, NFT_PAYLOAD_NETWORK_HEADER, IP_DEST_AT, 4,
		     REG_KEY2);
	expr_payload(&w->at, NFT_PAYLOAD_TRANSPORT_HEADER, TRANS_DEST_AT, 2,
		     REG_KEY3);
	expr_lookup(&w->at, SET_FLOWS, false);
	expr_redirect(&w->at, w->spec->transparent_port);
}

/* What has no socket, and is let through. */
static void write_kernel(struct writer *w, const char *chain)
{
	const uint32_t mark = CT_MARK;

	rule(w, chain);
	expr_ct_mark_load(&w->at, REG_KEY);
	expr_cmp(&w->at, NFT_CMP_EQ, &mark, sizeof(mark));
	accept_it(w);

	for (size_t i = 0; i < ARRAY_SIZE(discovery); i++) {
		rule(w, chain);
		is_u8(w, NFT_META_NFPROTO, NFPROTO_IPV6);
		is_u8(w, NFT_META_L4PROTO, IPPROTO_ICMPV6);
		expr_payload(&w->at, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1,
			     REG_KEY);
		expr_cmp(&w->at, NFT_CMP_EQ, &discovery[i], 1);
		accept_it(w);
	}
}

static void write_out(struct writer *w)
{
	rule(w, CHAIN_OUT);
	on_loopback(w, NFT_META_OIFNAME, NFT_CMP_EQ);
	go(w, CHAIN_LOOP);

	rule(w, CHAIN_OUT);
	to_loopback(w);
	go(w, CHAIN_LOOP);

	rule(w, CHAIN_OUT);
	by(w, NFT_CMP_EQ);
	expr_ct_mark_set(&w->at, CT_MARK);
	accept_it(w);

	rule(w, CHAIN_OUT);
	by(w, NFT_CMP_NEQ);
	go(w, CHAIN_REFUSE);

	write_kernel(w, CHAIN_OUT);

	rule(w, CHAIN_OUT);
	go(w, CHAIN_REFUSE);
}

static void write_loop(struct writer *w)
{
	rule(w, CHAIN_LOOP);
	by(w, NFT_CMP_EQ);
	accept_it(w);

	for (size_t i = 0; i < w->spec->resolvers; i++) {
		rule(w, CHAIN_LOOP);
		is_u8(w, NFT_META_NFPROTO, NFPROTO_IPV4);
		expr_payload(&w->at, NFT_PAYLOAD_NETWORK_HEADER, IP_DEST_AT, 4,
			     REG_KEY);
		expr_cmp(&w->at, NFT_CMP_EQ, w->spec->resolver[i].byte, 4);
		go(w, CHAIN_REFUSE);
	}
	rule(w, CHAIN_LOOP);
	accept_it(w);
}

static void write_refusals(struct writer *w)
{
	rule(w, CHAIN_REFUSE);
	is_u8(w, NFT_META_NFPROTO, NFPROTO_IPV6);
	count_and_log(w, "ipv6");

	rule(w, CHAIN_REFUSE);
	is_u8(w, NFT_META_NFPROTO, NFPROTO_IPV4);
	count_and_log(w, "refused");

	rule(w, CHAIN_REFUSE);
	is_u8(w, NFT_META_L4PROTO, IPPROTO_TCP);
	expr_reject(&w->at, NFT_REJECT_TCP_RST, 0);

	rule(w, CHAIN_REFUSE);
	is_u8(w, NFT_META_L4PROTO, IPPROTO_UDP);
	expr_reject(&w->at, NFT_REJECT_ICMPX_UNREACH,
		    NFT_REJECT_ICMPX_PORT_UNREACH);

	rule(w, CHAIN_REFUSE);
	expr_reject(&w->at, NFT_REJECT_ICMPX_UNREACH,
		    NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
}

/* Nothing comes this far that `out` did not judge, but by a mistake. */
static void write_post(struct writer *w)
{
	rule(w, CHAIN_POST);
	on_loopback(w, NFT_META_OIFNAME, NFT_CMP_EQ);
	accept_it(w);

	rule(w, CHAIN_POST);
	by(w, NFT_CMP_EQ);
	accept_it(w);

	rule(w, CHAIN_POST);
	by(w, NFT_CMP_NEQ);
	count_and_drop(w, "refused");

	write_kernel(w, CHAIN_POST);

	rule(w, CHAIN_POST);
	count_and_drop(w, "refused");
}

static void write_rest(struct writer *w)
{
	rule(w, CHAIN_IN);
	on_loopback(w, NFT_META_IIFNAME, NFT_CMP_NEQ);
	to_loopback(w);
	count_and_drop(w, "spoofed");

	rule(w, CHAIN_FORWARD);
	count_and_drop(w, "forwarded");
}

static void write_egress(struct writer *w)
{
	w->family = NFPROTO_NETDEV;
	rule(w, CHAIN_EGRESS);
	by(w, NFT_CMP_NEQ);
	count_and_drop(w, GUARD_COUNT_PACKETS);
}

/* --- what holds them ----------------------------------------------------- */

static struct nftnl_chain *new_chain(uint8_t family, const char *name)
{
	struct nftnl_chain *c = nftnl_chain_alloc();

	if (!c)
		return NULL;
	nftnl_chain_set_u32(c, NFTNL_CHAIN_FAMILY, family);
	if (nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, GUARD_TABLE) == 0 &&
	    nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, name) == 0)
		return c;
	nftnl_chain_free(c);
	return NULL;
}

static int hook(struct nftnl_chain *c, const char *type, uint32_t number,
		int32_t priority, uint32_t policy)
{
	nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, number);
	nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, priority);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, policy);
	return nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, type) < 0 ? -ENOMEM : 0;
}

static const struct {
	const char *name, *type; /* no type: others go to it */
	uint32_t hook;
	int32_t priority;
	uint32_t policy;
} chains[GUARD_CHAINS] = {
	{ CHAIN_NAT, "nat", NF_INET_LOCAL_OUT, PRIORITY_NAT, NF_ACCEPT },
	{ CHAIN_OUT, "filter", NF_INET_LOCAL_OUT, PRIORITY_FILTER, NF_DROP },
	{ CHAIN_LOOP, NULL, 0, 0, 0 },
	{ CHAIN_REFUSE, NULL, 0, 0, 0 },
	{ CHAIN_POST, "filter", NF_INET_POST_ROUTING, PRIORITY_FILTER,
	  NF_DROP },
	{ CHAIN_IN, "filter", NF_INET_LOCAL_IN, NF_IP_PRI_FIRST, NF_ACCEPT },
	{ CHAIN_FORWARD, "filter", NF_INET_FORWARD, NF_IP_PRI_FIRST, NF_DROP },
};

static int make_chains(struct guard_plan *plan)
{
	for (size_t i = 0; i < GUARD_CHAINS; i++) {
		plan->chain[i] = new_chain(NFPROTO_INET, chains[i].name);
		if (!plan->chain[i])
			return -ENOMEM;
		if (chains[i].type &&
		    hook(plan->chain[i], chains[i].type, chains[i].hook,
			 chains[i].priority, chains[i].policy) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int make_egress(struct guard_plan *plan, const struct guard_spec *spec)
{
	const char *name[GUARD_DEVICES_MAX + 1];

	plan->egress = new_chain(NFPROTO_NETDEV, CHAIN_EGRESS);
	if (!plan->egress ||
	    hook(plan->egress, "filter", NF_NETDEV_EGRESS, 0, NF_ACCEPT) < 0)
		return -ENOMEM;
	if (!spec->devices)
		return 0;
	for (size_t i = 0; i < spec->devices; i++)
		name[i] = spec->device[i];
	name[spec->devices] = NULL;
	return nftnl_chain_set_array(plan->egress, NFTNL_CHAIN_DEVICES, name) <
			       0
		       ? -ENOMEM
		       : 0;
}

static struct nftnl_obj *new_counter(uint8_t family, const char *name)
{
	struct nftnl_obj *o = nftnl_obj_alloc();

	if (!o)
		return NULL;
	nftnl_obj_set_u32(o, NFTNL_OBJ_FAMILY, family);
	nftnl_obj_set_u32(o, NFTNL_OBJ_TYPE, NFT_OBJECT_COUNTER);
	nftnl_obj_set_u64(o, NFTNL_OBJ_CTR_PKTS, 0);
	nftnl_obj_set_u64(o, NFTNL_OBJ_CTR_BYTES, 0);
	nftnl_obj_set_str(o, NFTNL_OBJ_TABLE, GUARD_TABLE);
	nftnl_obj_set_str(o, NFTNL_OBJ_NAME, name);
	return o;
}

static int make_containers(struct guard_plan *plan,
			   const struct guard_spec *spec)
{
	int r = make_chains(plan);

	if (r == 0)
		r = plan_make_flows(&plan->flows, GUARD_TABLE);
	for (size_t i = 0; r == 0 && i < GUARD_COUNTERS; i++) {
		plan->counter[i] = new_counter(NFPROTO_INET, plan_counter[i]);
		if (!plan->counter[i])
			r = -ENOMEM;
	}
	if (r < 0 || !spec->egress)
		return r;
	plan->packets = new_counter(NFPROTO_NETDEV, GUARD_COUNT_PACKETS);
	return plan->packets ? make_egress(plan, spec) : -ENOMEM;
}

int guard_plan_make(struct guard_plan *plan, const struct guard_spec *spec)
{
	struct writer w = { .plan = plan,
			    .spec = spec,
			    .family = NFPROTO_INET };

	*plan = (struct guard_plan){ 0 };
	if (!spec->dns_udp_port || !spec->dns_tcp_port ||
	    !spec->transparent_port || spec->resolvers > GUARD_RESOLVERS_MAX ||
	    spec->devices > GUARD_DEVICES_MAX)
		return -EINVAL;
	int r = make_containers(plan, spec);
	if (r < 0)
		return r;
	write_nat(&w);
	write_out(&w);
	write_loop(&w);
	write_refusals(&w);
	write_post(&w);
	write_rest(&w);
	if (spec->egress)
		write_egress(&w);
	return w.at.failed ? -ENOMEM : 0;
}

void guard_plan_free(struct guard_plan *plan)
{
	for (size_t i = 0; i < GUARD_CHAINS; i++)
		if (plan->chain[i])
			nftnl_chain_free(plan->chain[i]);
	if (plan->egress)
		nftnl_chain_free(plan->egress);
	if (plan->flows)
		nftnl_set_free(plan->flows);
	for (size_t i = 0; i < GUARD_COUNTERS; i++)
		if (plan->counter[i])
			nftnl_obj_free(plan->counter[i]);
	if (plan->packets)
		nftnl_obj_free(plan->packets);
	for (size_t i = 0; i < plan->rules; i++)
		nftnl_rule_free(plan->rule[i]);
	*plan = (struct guard_plan){ 0 };
}
