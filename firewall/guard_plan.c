/* SPDX-License-Identifier: Apache-2.0
 *
 * guard_plan.c - the guard's rules.
 *
 *	inet sallyport_guard
 *	chain nat (output, before other address translation)
 *	  skuid gate			 accept
 *	  udp or tcp dport 53		 redirect to the resolver (IPv6: where
 *					 it listens on ::1, too)
 *	  IPv4, tcp, daddr . dport in @points or @flows
 *						redirect to the listener
 *	chain enter (prerouting, before other address translation)
 *	  IPv4, not by lo, tcp to an inbound port	redirect to its listener
 *	chain out (output, after address translation; policy drop)
 *	  oifname lo, or to 127/8 or ::1 goto loop
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
 *	chain in (input)
 *	  to 127/8, but not by lo	 counter spoofed, log, drop
 *	  by lo to an inbound listener	 counter spoofed, log, drop
 *	chain forward (policy drop)	 counter forwarded, log, drop
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
 *
 * The listeners of inbound ports are the gate's own: what they send leaves. A
 * SYN from in here with a forged address would be answered to that address, so
 * they answer nobody who comes by lo.
 */
#include "firewall/guard_plan.h"

#include <errno.h>
#include <libnftnl/chain.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter_ipv4.h>
#include <string.h>

#include "base/cleanup.h"
#include "firewall/plan.h"
#include "firewall/writer.h"

#define CHAIN_NAT     "nat"
#define CHAIN_ENTER   "enter"
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

#define DNS_PORT      53
#define IPV6_DEST_AT  24
#define LOOPBACK      127
#define LOOPBACK_NAME "lo"

/* Neighbour discovery: solicitations and an advertisement. */
static const uint8_t discovery[] = { 133, 135, 136 };

/* @op NFT_CMP_EQ: by the gate; NEQ: by somebody else. */
static void by(struct writer *w, const struct guard_spec *spec, uint32_t op)
{
	writer_meta32(w, NFT_META_SKUID, op, spec->uid);
}

static void on_loopback(struct writer *w, uint32_t meta, uint32_t op)
{
	char name[16] = LOOPBACK_NAME;

	expr_meta_load(&w->table->at, meta, REG_KEY);
	expr_cmp(&w->table->at, op, name, sizeof(name));
}

static void to_loopback(struct writer *w)
{
	const uint8_t byte = LOOPBACK;

	writer_ipv4(w);
	writer_network(w, IP_DEST_AT, NFT_CMP_EQ, &byte, sizeof(byte));
}

static void to_loopback6(struct writer *w)
{
	static const uint8_t own[16] = { [15] = 1 };

	writer_meta(w, NFT_META_NFPROTO, NFT_CMP_EQ, NFPROTO_IPV6);
	writer_network(w, IPV6_DEST_AT, NFT_CMP_EQ, own, sizeof(own));
}

static void write_dns(struct writer *w, const struct guard_spec *spec,
		      uint8_t protocol, uint16_t to)
{
	writer_rule(w, CHAIN_NAT);
	if (!spec->dns6)
		writer_ipv4(w);
	writer_port(w, protocol, DNS_PORT);
	expr_redirect(&w->table->at, to);
}

static void write_flows(struct writer *w, const char *set, uint16_t to)
{
	static const char flows_of[16] = GUARD_FLOWS_OF;

	writer_rule(w, CHAIN_NAT);
	writer_ipv4(w);
	writer_meta(w, NFT_META_L4PROTO, NFT_CMP_EQ, IPPROTO_TCP);
	expr_immediate(&w->table->at, flows_of, sizeof(flows_of), REG_KEY);
	writer_lookup_flow(w, set);
	expr_redirect(&w->table->at, to);
}

static void write_nat(struct writer *w, const struct guard_spec *spec)
{
	writer_rule(w, CHAIN_NAT);
	by(w, spec, NFT_CMP_EQ);
	writer_accept(w);

	write_dns(w, spec, IPPROTO_UDP, spec->dns_udp_port);
	write_dns(w, spec, IPPROTO_TCP, spec->dns_tcp_port);

	write_flows(w, SET_POINTS, spec->transparent_port);
	write_flows(w, SET_FLOWS, spec->transparent_port);
}

static void write_enter(struct writer *w, const struct guard_spec *spec)
{
	for (size_t i = 0; i < spec->inbounds; i++) {
		writer_rule(w, CHAIN_ENTER);
		writer_ipv4(w);
		on_loopback(w, NFT_META_IIFNAME, NFT_CMP_NEQ);
		writer_port(w, IPPROTO_TCP, spec->inbound[i].port);
		expr_redirect(&w->table->at, spec->inbound[i].listener);
	}
}

/* What has no socket, and is let through. */
static void write_kernel(struct writer *w, const char *chain)
{
	const uint32_t mark = CT_MARK;

	writer_rule(w, chain);
	expr_ct_mark_load(&w->table->at, REG_KEY);
	expr_cmp(&w->table->at, NFT_CMP_EQ, &mark, sizeof(mark));
	writer_accept(w);

	for (size_t i = 0; i < ARRAY_SIZE(discovery); i++) {
		writer_rule(w, chain);
		writer_meta(w, NFT_META_NFPROTO, NFT_CMP_EQ, NFPROTO_IPV6);
		writer_meta(w, NFT_META_L4PROTO, NFT_CMP_EQ, IPPROTO_ICMPV6);
		writer_transport(w, 0, NFT_CMP_EQ, &discovery[i], 1);
		writer_accept(w);
	}
}

static void write_out(struct writer *w, const struct guard_spec *spec)
{
	writer_rule(w, CHAIN_OUT);
	on_loopback(w, NFT_META_OIFNAME, NFT_CMP_EQ);
	writer_goto(w, CHAIN_LOOP);

	writer_rule(w, CHAIN_OUT);
	to_loopback(w);
	writer_goto(w, CHAIN_LOOP);

	writer_rule(w, CHAIN_OUT);
	to_loopback6(w);
	writer_goto(w, CHAIN_LOOP);

	writer_rule(w, CHAIN_OUT);
	by(w, spec, NFT_CMP_EQ);
	expr_ct_mark_set(&w->table->at, CT_MARK);
	writer_accept(w);

	writer_rule(w, CHAIN_OUT);
	by(w, spec, NFT_CMP_NEQ);
	writer_goto(w, CHAIN_REFUSE);

	write_kernel(w, CHAIN_OUT);

	writer_rule(w, CHAIN_OUT);
	writer_goto(w, CHAIN_REFUSE);
}

static void write_loop(struct writer *w, const struct guard_spec *spec)
{
	writer_rule(w, CHAIN_LOOP);
	by(w, spec, NFT_CMP_EQ);
	writer_accept(w);

	for (size_t i = 0; i < spec->resolvers; i++) {
		writer_rule(w, CHAIN_LOOP);
		writer_ipv4(w);
		writer_network(w, IP_DEST_AT, NFT_CMP_EQ,
			       spec->resolver[i].byte, 4);
		writer_goto(w, CHAIN_REFUSE);
	}
	writer_rule(w, CHAIN_LOOP);
	writer_accept(w);
}

static void write_refuse(struct writer *w)
{
	writer_rule(w, CHAIN_REFUSE);
	writer_meta(w, NFT_META_NFPROTO, NFT_CMP_EQ, NFPROTO_IPV6);
	writer_count(w, COUNT_IPV6);

	writer_rule(w, CHAIN_REFUSE);
	writer_ipv4(w);
	writer_count(w, COUNT_REFUSED);

	writer_refusals(w, CHAIN_REFUSE);
}

/* Nothing comes this far that `out` did not judge, but by a mistake. */
static void write_post(struct writer *w, const struct guard_spec *spec)
{
	writer_rule(w, CHAIN_POST);
	on_loopback(w, NFT_META_OIFNAME, NFT_CMP_EQ);
	writer_accept(w);

	writer_rule(w, CHAIN_POST);
	by(w, spec, NFT_CMP_EQ);
	writer_accept(w);

	writer_rule(w, CHAIN_POST);
	by(w, spec, NFT_CMP_NEQ);
	writer_count_drop(w, COUNT_REFUSED);

	write_kernel(w, CHAIN_POST);

	writer_rule(w, CHAIN_POST);
	writer_count_drop(w, COUNT_REFUSED);
}

static void write_in(struct writer *w, const struct guard_spec *spec)
{
	writer_rule(w, CHAIN_IN);
	on_loopback(w, NFT_META_IIFNAME, NFT_CMP_NEQ);
	to_loopback(w);
	writer_count_drop(w, COUNT_SPOOFED);

	for (size_t i = 0; i < spec->inbounds; i++) {
		writer_rule(w, CHAIN_IN);
		on_loopback(w, NFT_META_IIFNAME, NFT_CMP_EQ);
		writer_port(w, IPPROTO_TCP, spec->inbound[i].listener);
		writer_count_drop(w, COUNT_SPOOFED);
	}
	writer_rule(w, CHAIN_FORWARD);
	writer_count_drop(w, COUNT_FORWARDED);
}

/* --- what holds them ----------------------------------------------------- */

static const struct {
	const char *name;
	struct table_hook hook; /* no type: others go to it */
} chains[] = {
	{ CHAIN_NAT, { "nat", NF_INET_LOCAL_OUT, PRIORITY_NAT, NF_ACCEPT } },
	{ CHAIN_ENTER,
	  { "nat", NF_INET_PRE_ROUTING, PRIORITY_NAT, NF_ACCEPT } },
	{ CHAIN_OUT,
	  { "filter", NF_INET_LOCAL_OUT, PRIORITY_FILTER, NF_DROP } },
	{ CHAIN_LOOP, { 0 } },
	{ CHAIN_REFUSE, { 0 } },
	{ CHAIN_POST,
	  { "filter", NF_INET_POST_ROUTING, PRIORITY_FILTER, NF_DROP } },
	{ CHAIN_IN,
	  { "filter", NF_INET_LOCAL_IN, NF_IP_PRI_FIRST, NF_ACCEPT } },
	{ CHAIN_FORWARD,
	  { "filter", NF_INET_FORWARD, NF_IP_PRI_FIRST, NF_DROP } },
};

static void add_containers(struct table *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(chains); i++)
		table_chain(t, chains[i].name,
			    chains[i].hook.type ? &chains[i].hook : NULL);
	for (size_t i = 0; i < PLAN_COUNTERS; i++)
		table_counter(t, plan_counter[i]);
	plan_add_flows(t);
}

static int make_inet(struct table *t, const struct guard_spec *spec)
{
	struct writer w = { .table = t, .nflog_group = spec->nflog_group };

	add_containers(t);
	write_nat(&w, spec);
	write_enter(&w, spec);
	write_out(&w, spec);
	write_loop(&w, spec);
	write_refuse(&w);
	write_post(&w, spec);
	write_in(&w, spec);
	return table_made(t);
}

static int make_netdev(struct table *t, const struct guard_spec *spec)
{
	static const struct table_hook hook = {
		.type = "filter",
		.hook = NF_NETDEV_EGRESS,
		.policy = NF_ACCEPT,
	};
	struct writer w = { .table = t, .nflog_group = spec->nflog_group };
	const char *name[GUARD_DEVICES_MAX + 1];
	struct nftnl_chain *egress = table_chain(t, CHAIN_EGRESS, &hook);

	for (size_t i = 0; i < spec->devices; i++)
		name[i] = spec->device[i];
	name[spec->devices] = NULL;
	if (egress &&
	    nftnl_chain_set_array(egress, NFTNL_CHAIN_DEVICES, name) < 0)
		t->at.failed = true;
	table_counter(t, GUARD_COUNT_PACKETS);
	writer_rule(&w, CHAIN_EGRESS);
	by(&w, spec, NFT_CMP_NEQ);
	writer_count_drop(&w, GUARD_COUNT_PACKETS);
	return table_made(t);
}

static bool is_valid(const struct guard_spec *spec)
{
	return spec->dns_udp_port && spec->dns_tcp_port &&
	       spec->transparent_port &&
	       spec->resolvers <= GUARD_RESOLVERS_MAX &&
	       spec->devices <= GUARD_DEVICES_MAX &&
	       spec->inbounds <= GUARD_INBOUND_MAX;
}

int guard_plan_make(struct guard_plan *plan, const struct guard_spec *spec)
{
	int r;

	*plan = (struct guard_plan){
		.inet = { .name = GUARD_TABLE, .family = NFPROTO_INET },
		.netdev = { .name = GUARD_TABLE, .family = NFPROTO_NETDEV },
	};
	if (!is_valid(spec))
		return -EINVAL;
	r = make_inet(&plan->inet, spec);
	if (r == 0 && spec->egress && spec->devices)
		r = make_netdev(&plan->netdev, spec);
	return r;
}

void guard_plan_free(struct guard_plan *plan)
{
	table_free(&plan->inet);
	table_free(&plan->netdev);
}
