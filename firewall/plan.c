/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c - the rules.
 *
 *	chain pre (prerouting, before defragmentation; policy drop)
 *	  meta mark set 0		 marks are ours alone
 *	  not IPv4			 counter ipv6, log, drop
 *	  iifname . saddr not in @links	 counter spoofed, log, drop
 *	  not for this host, or to 0/8, 127/8, multicast, class E or broadcast
 *					 counter refused, log, drop
 *	  a fragment			 goto refuse
 *	  udp or tcp dport 53		 tproxy to the resolver
 *	  iifname . daddr . tcp dport in @doors	accept
 *	  the same in @points or @flows	tproxy to the listener
 *	  iifname . daddr in @published, tcp dport 57344-61439, no SYN alone
 *					 accept
 *	  goto refuse
 *	chain refuse
 *	  counter refused, log
 *	  tcp: reset; udp: port unreachable; rest: administratively prohibited
 *	chain forward (policy drop)
 *	  counter forwarded, log, drop
 *
 * Nothing comes in by lo: packets of TPROXY reach their socket from the
 * interface they came by. A fragment is refused before the kernel would hold
 * it: TCP segments and questions of a sandbox fit, and reassembly would mix up
 * sandboxes that forge each other's address. TPROXY without a listener breaks
 * off its rule, and the packet is refused by the last one.
 *
 * @published is empty until a port of the sandbox is published: then our own
 * connections to it come from those ports, on which nobody listens, and what
 * answers them is let in. A connection begins with a SYN alone, and none of
 * those is: the sandbox can't begin one.
 */
#include "firewall/plan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libnftnl/set.h>
#include <linux/if_packet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter_ipv4.h>

#include "firewall/table.h"
#include "firewall/writer.h"

#define CHAIN_PRE     "pre"
#define CHAIN_REFUSE  "refuse"
#define CHAIN_FORWARD "forward"

/* Before NF_IP_PRI_CONNTRACK_DEFRAG (-400), which TPROXY switches on. */
#define PRIORITY_PRE -450

#define DNS_PORT     53
#define IP_FRAG_AT   6
#define TCP_FLAGS_AT 13
#define TCP_SYN	     0x02
#define TCP_ACK	     0x10

#define SET_FLOWS_ID  3
#define SET_POINTS_ID 5

/* nft's numbers of types, six bits each, so that it can list our sets. */
#define TYPE_IFNAME  41u
#define TYPE_ADDRESS 7u
#define TYPE_PORT    13u
#define TYPE_OF_LINK (TYPE_IFNAME << 6 | TYPE_ADDRESS)
#define TYPE_OF_FLOW (TYPE_OF_LINK << 6 | TYPE_PORT)

const char *const plan_counter[PLAN_COUNTERS] = {
	COUNT_SPOOFED,
	COUNT_REFUSED,
	COUNT_IPV6,
	COUNT_FORWARDED,
};

/* The first byte of the destination. */
static void to_network(struct writer *w, uint8_t byte)
{
	writer_ipv4(w);
	writer_network(w, IP_DEST_AT, NFT_CMP_EQ, &byte, sizeof(byte));
}

static void write_spoofs(struct writer *w)
{
	writer_rule(w, CHAIN_PRE);
	expr_meta_set_mark(&w->table->at, 0);

	writer_rule(w, CHAIN_PRE);
	writer_meta(w, NFT_META_NFPROTO, NFT_CMP_NEQ, NFPROTO_IPV4);
	writer_count_drop(w, COUNT_IPV6);

	writer_rule(w, CHAIN_PRE);
	writer_ipv4(w);
	expr_meta_load(&w->table->at, NFT_META_IIFNAME, REG_KEY);
	expr_payload(&w->table->at, NFT_PAYLOAD_NETWORK_HEADER, IP_SOURCE_AT, 4,
		     REG_KEY2);
	expr_lookup(&w->table->at, SET_LINKS, true);
	writer_count_drop(w, COUNT_SPOOFED);
}

/* What must not be answered, not even by a refusal. */
static void write_martians(struct writer *w)
{
	const uint32_t top = htonl(0xe0000000);

	writer_rule(w, CHAIN_PRE);
	writer_meta(w, NFT_META_PKTTYPE, NFT_CMP_NEQ, PACKET_HOST);
	writer_count_drop(w, COUNT_REFUSED);

	writer_rule(w, CHAIN_PRE);
	writer_ipv4(w);
	expr_payload(&w->table->at, NFT_PAYLOAD_NETWORK_HEADER, IP_DEST_AT, 4,
		     REG_KEY);
	expr_mask(&w->table->at, &top, sizeof(top));
	expr_cmp(&w->table->at, NFT_CMP_EQ, &top, sizeof(top));
	writer_count_drop(w, COUNT_REFUSED);

	writer_rule(w, CHAIN_PRE);
	to_network(w, 127);
	writer_count_drop(w, COUNT_REFUSED);

	writer_rule(w, CHAIN_PRE);
	to_network(w, 0);
	writer_count_drop(w, COUNT_REFUSED);
}

static void write_fragments(struct writer *w)
{
	const uint16_t mask = htons(0x3fff); /* more fragments, or an offset */
	const uint16_t zero = 0;

	writer_rule(w, CHAIN_PRE);
	writer_ipv4(w);
	expr_payload(&w->table->at, NFT_PAYLOAD_NETWORK_HEADER, IP_FRAG_AT,
		     sizeof(mask), REG_KEY);
	expr_mask(&w->table->at, &mask, sizeof(mask));
	expr_cmp(&w->table->at, NFT_CMP_NEQ, &zero, sizeof(zero));
	writer_goto(w, CHAIN_REFUSE);
}

static void deliver(struct writer *w, uint16_t port)
{
	expr_tproxy(&w->table->at, port);
	expr_meta_set_mark(&w->table->at, RULESET_MARK);
	writer_accept(w);
}

static void write_dns(struct writer *w, uint8_t protocol, uint16_t to)
{
	writer_rule(w, CHAIN_PRE);
	writer_port(w, protocol, DNS_PORT);
	deliver(w, to);
}

/* TCP whose interface, destination and port are in @set. */
static void tcp_in_set(struct writer *w, const char *set)
{
	writer_rule(w, CHAIN_PRE);
	writer_ipv4(w);
	writer_meta(w, NFT_META_L4PROTO, NFT_CMP_EQ, IPPROTO_TCP);
	expr_meta_load(&w->table->at, NFT_META_IIFNAME, REG_KEY);
	writer_lookup_flow(w, set);
}

/* Answers to connections that were made from here. */
static void write_published(struct writer *w)
{
	const uint16_t mask =
		htons((uint16_t) ~(RULESET_DIAL_FIRST ^ RULESET_DIAL_LAST));
	const uint16_t port = htons(RULESET_DIAL_FIRST);
	const uint8_t flags = TCP_SYN | TCP_ACK, syn = TCP_SYN;

	writer_rule(w, CHAIN_PRE);
	writer_ipv4(w);
	writer_meta(w, NFT_META_L4PROTO, NFT_CMP_EQ, IPPROTO_TCP);
	expr_meta_load(&w->table->at, NFT_META_IIFNAME, REG_KEY);
	expr_payload(&w->table->at, NFT_PAYLOAD_NETWORK_HEADER, IP_DEST_AT, 4,
		     REG_KEY2);
	expr_lookup(&w->table->at, SET_PUBLISHED, false);
	expr_payload(&w->table->at, NFT_PAYLOAD_TRANSPORT_HEADER, TRANS_DEST_AT,
		     sizeof(port), REG_KEY);
	expr_mask(&w->table->at, &mask, sizeof(mask));
	expr_cmp(&w->table->at, NFT_CMP_EQ, &port, sizeof(port));
	expr_payload(&w->table->at, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS_AT,
		     sizeof(flags), REG_KEY);
	expr_mask(&w->table->at, &flags, sizeof(flags));
	expr_cmp(&w->table->at, NFT_CMP_NEQ, &syn, sizeof(syn));
	writer_accept(w);
}

static void write_doors(struct writer *w, const struct ruleset_spec *spec)
{
	write_dns(w, IPPROTO_UDP, spec->dns_port);
	write_dns(w, IPPROTO_TCP, spec->dns_port);

	tcp_in_set(w, SET_DOORS);
	writer_accept(w);

	tcp_in_set(w, SET_POINTS);
	deliver(w, spec->transparent_port);

	tcp_in_set(w, SET_FLOWS);
	deliver(w, spec->transparent_port);

	write_published(w);

	writer_rule(w, CHAIN_PRE);
	writer_goto(w, CHAIN_REFUSE);
}

static void write_refusals(struct writer *w)
{
	writer_rule(w, CHAIN_REFUSE);
	writer_count(w, COUNT_REFUSED);

	writer_refusals(w, CHAIN_REFUSE);

	writer_rule(w, CHAIN_FORWARD);
	writer_count_drop(w, COUNT_FORWARDED);
}

static int fill_set(struct nftnl_set *s, const char *name, bool port,
		    bool ranges)
{
	static const uint8_t field[] = { 16, 4, 2 };

	nftnl_set_set_u32(s, NFTNL_SET_FAMILY, NFPROTO_INET);
	nftnl_set_set_u32(s, NFTNL_SET_KEY_TYPE,
			  port ? TYPE_OF_FLOW : TYPE_OF_LINK);
	nftnl_set_set_u32(s, NFTNL_SET_KEY_LEN, port ? 24 : 20);
	nftnl_set_set_u32(s, NFTNL_SET_FLAGS,
			  ranges ? NFT_SET_INTERVAL | NFT_SET_CONCAT : 0);
	/* The kernel wants the fields' lengths for intervals, and only then. */
	if (ranges && nftnl_set_set_data(s, NFTNL_SET_DESC_CONCAT, field,
					 port ? 3 : 2) < 0)
		return -1;
	return nftnl_set_set_str(s, NFTNL_SET_NAME, name);
}

/* @ranges: elements may be intervals in each field. */
static void add_set(struct table *t, uint32_t id, const char *name, bool port,
		    bool ranges)
{
	struct nftnl_set *s = nftnl_set_alloc();

	if (s) {
		nftnl_set_set_u32(s, NFTNL_SET_ID, id);
		if (nftnl_set_set_str(s, NFTNL_SET_TABLE, t->name) < 0 ||
		    fill_set(s, name, port, ranges) < 0)
			t->at.failed = true;
	}
	table_set(t, s);
}

void plan_add_flows(struct table *t)
{
	add_set(t, SET_FLOWS_ID, SET_FLOWS, true, true);
	add_set(t, SET_POINTS_ID, SET_POINTS, true, false);
}

static void add_chain(struct table *t, const char *name, uint32_t hook,
		      int32_t priority)
{
	const struct table_hook at = {
		.type = "filter",
		.hook = hook,
		.priority = priority,
		.policy = NF_DROP,
	};

	table_chain(t, name, &at);
}

static void add_containers(struct table *t)
{
	add_chain(t, CHAIN_PRE, NF_INET_PRE_ROUTING, PRIORITY_PRE);
	table_chain(t, CHAIN_REFUSE, NULL);
	add_chain(t, CHAIN_FORWARD, NF_INET_FORWARD, NF_IP_PRI_FIRST);
	add_set(t, 1, SET_LINKS, false, false);
	add_set(t, 2, SET_DOORS, true, false);
	plan_add_flows(t);
	add_set(t, 4, SET_PUBLISHED, false, false);
	for (size_t i = 0; i < PLAN_COUNTERS; i++)
		table_counter(t, plan_counter[i]);
}

int plan_make(struct table *ret, const struct ruleset_spec *spec)
{
	struct writer w = { .table = ret, .nflog_group = spec->nflog_group };

	*ret = (struct table){ .name = RULESET_TABLE, .family = NFPROTO_INET };
	if (!spec->dns_port || !spec->proxy_port || !spec->transparent_port)
		return -EINVAL;
	add_containers(ret);
	write_spoofs(&w);
	write_martians(&w);
	write_fragments(&w);
	write_doors(&w, spec);
	write_refusals(&w);
	return table_made(ret);
}
