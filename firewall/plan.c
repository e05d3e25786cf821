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
 *	  iifname . daddr . tcp dport in @flows	tproxy to the listener
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

#include "base/cleanup.h"
#include "firewall/expr.h"
#include "firewall/table.h"

#define CHAIN_PRE     "pre"
#define CHAIN_REFUSE  "refuse"
#define CHAIN_FORWARD "forward"

/* Before NF_IP_PRI_CONNTRACK_DEFRAG (-400), which TPROXY switches on. */
#define PRIORITY_PRE -450

#define COUNT_SPOOFED	0
#define COUNT_REFUSED	1
#define COUNT_IPV6	2
#define COUNT_FORWARDED 3

#define SNAPLEN	      128
#define DNS_PORT      53
#define IP_FRAG_AT    6
#define IP_SOURCE_AT  12
#define IP_DEST_AT    16
#define TRANS_DEST_AT 2
#define TCP_FLAGS_AT  13
#define TCP_SYN	      0x02
#define TCP_ACK	      0x10

#define SET_FLOWS_ID 3

/* nft's numbers of types, six bits each, so that it can list our sets. */
#define TYPE_IFNAME  41u
#define TYPE_ADDRESS 7u
#define TYPE_PORT    13u
#define TYPE_OF_LINK (TYPE_IFNAME << 6 | TYPE_ADDRESS)
#define TYPE_OF_FLOW (TYPE_OF_LINK << 6 | TYPE_PORT)

const char *const plan_counter[PLAN_COUNTERS] = {
	[COUNT_SPOOFED] = "spoofed",
	[COUNT_REFUSED] = "refused",
	[COUNT_IPV6] = "ipv6",
	[COUNT_FORWARDED] = "forwarded",
};

/* The rules are written one after another. */
struct writer {
	struct table *plan;
	const struct ruleset_spec *spec;
};

static void count_and_log(struct writer *w, size_t counter)
{
	expr_count(&w->plan->at, plan_counter[counter]);
	expr_log(&w->plan->at, plan_counter[counter], w->spec->nflog_group,
		 SNAPLEN);
}

static void count_and_drop(struct writer *w, size_t counter)
{
	count_and_log(w, counter);
	expr_verdict(&w->plan->at, NF_DROP, NULL);
}

static void is_u8(struct writer *w, uint32_t meta, uint32_t op, uint8_t value)
{
	expr_meta_load(&w->plan->at, meta, REG_KEY);
	expr_cmp(&w->plan->at, op, &value, sizeof(value));
}

/* The next expressions read an IPv4 header. Others were dropped before; nft
 * lists addresses only where a rule says so itself. */
static void is_ipv4(struct writer *w)
{
	is_u8(w, NFT_META_NFPROTO, NFT_CMP_EQ, NFPROTO_IPV4);
}

/* The first byte of the destination. */
static void to_network(struct writer *w, uint8_t byte)
{
	is_ipv4(w);
	expr_payload(&w->plan->at, NFT_PAYLOAD_NETWORK_HEADER, IP_DEST_AT, 1,
		     REG_KEY);
	expr_cmp(&w->plan->at, NFT_CMP_EQ, &byte, sizeof(byte));
}

static void write_spoofs(struct writer *w)
{
	table_rule(w->plan, CHAIN_PRE);
	expr_meta_set_mark(&w->plan->at, 0);

	table_rule(w->plan, CHAIN_PRE);
	is_u8(w, NFT_META_NFPROTO, NFT_CMP_NEQ, NFPROTO_IPV4);
	count_and_drop(w, COUNT_IPV6);

	table_rule(w->plan, CHAIN_PRE);
	is_ipv4(w);
	expr_meta_load(&w->plan->at, NFT_META_IIFNAME, REG_KEY);
	expr_payload(&w->plan->at, NFT_PAYLOAD_NETWORK_HEADER, IP_SOURCE_AT, 4,
		     REG_KEY2);
	expr_lookup(&w->plan->at, SET_LINKS, true);
	count_and_drop(w, COUNT_SPOOFED);
}

/* What must not be answered, not even by a refusal. */
static void write_martians(struct writer *w)
{
	const uint32_t top = htonl(0xe0000000);

	table_rule(w->plan, CHAIN_PRE);
	is_u8(w, NFT_META_PKTTYPE, NFT_CMP_NEQ, PACKET_HOST);
	count_and_drop(w, COUNT_REFUSED);

	table_rule(w->plan, CHAIN_PRE);
	is_ipv4(w);
	expr_payload(&w->plan->at, NFT_PAYLOAD_NETWORK_HEADER, IP_DEST_AT, 4,
		     REG_KEY);
	expr_mask(&w->plan->at, &top, sizeof(top));
	expr_cmp(&w->plan->at, NFT_CMP_EQ, &top, sizeof(top));
	count_and_drop(w, COUNT_REFUSED);

	table_rule(w->plan, CHAIN_PRE);
	to_network(w, 127);
	count_and_drop(w, COUNT_REFUSED);

	table_rule(w->plan, CHAIN_PRE);
	to_network(w, 0);
	count_and_drop(w, COUNT_REFUSED);
}

static void write_fragments(struct writer *w)
{
	const uint16_t mask = htons(0x3fff); /* more fragments, or an offset */
	const uint16_t zero = 0;

	table_rule(w->plan, CHAIN_PRE);
	is_ipv4(w);
	expr_payload(&w->plan->at, NFT_PAYLOAD_NETWORK_HEADER, IP_FRAG_AT,
		     sizeof(mask), REG_KEY);
	expr_mask(&w->plan->at, &mask, sizeof(mask));
	expr_cmp(&w->plan->at, NFT_CMP_NEQ, &zero, sizeof(zero));
	expr_verdict(&w->plan->at, NFT_GOTO, CHAIN_REFUSE);
}

static void deliver(struct writer *w, uint16_t port)
{
	expr_tproxy(&w->plan->at, port);
	expr_meta_set_mark(&w->plan->at, RULESET_MARK);
	expr_verdict(&w->plan->at, NF_ACCEPT, NULL);
}

static void write_dns(struct writer *w, uint8_t protocol)
{
	const uint16_t port = htons(DNS_PORT);

	table_rule(w->plan, CHAIN_PRE);
	is_u8(w, NFT_META_L4PROTO, NFT_CMP_EQ, protocol);
	expr_payload(&w->plan->at, NFT_PAYLOAD_TRANSPORT_HEADER, TRANS_DEST_AT,
		     sizeof(port), REG_KEY);
	expr_cmp(&w->plan->at, NFT_CMP_EQ, &port, sizeof(port));
	deliver(w, w->spec->dns_port);
}

/* TCP whose interface, destination and port are in @set. */
static void tcp_in_set(struct writer *w, const char *set)
{
	table_rule(w->plan, CHAIN_PRE);
	is_ipv4(w);
	is_u8(w, NFT_META_L4PROTO, NFT_CMP_EQ, IPPROTO_TCP);
	expr_meta_load(&w->plan->at, NFT_META_IIFNAME, REG_KEY);
	expr_payload(&w->plan->at, NFT_PAYLOAD_NETWORK_HEADER, IP_DEST_AT, 4,
		     REG_KEY2);
	expr_payload(&w->plan->at, NFT_PAYLOAD_TRANSPORT_HEADER, TRANS_DEST_AT,
		     2, REG_KEY3);
	expr_lookup(&w->plan->at, set, false);
}

/* Answers to connections that were made from here. */
static void write_published(struct writer *w)
{
	const uint16_t mask =
		htons((uint16_t) ~(RULESET_DIAL_FIRST ^ RULESET_DIAL_LAST));
	const uint16_t port = htons(RULESET_DIAL_FIRST);
	const uint8_t flags = TCP_SYN | TCP_ACK, syn = TCP_SYN;

	table_rule(w->plan, CHAIN_PRE);
	is_ipv4(w);
	is_u8(w, NFT_META_L4PROTO, NFT_CMP_EQ, IPPROTO_TCP);
	expr_meta_load(&w->plan->at, NFT_META_IIFNAME, REG_KEY);
	expr_payload(&w->plan->at, NFT_PAYLOAD_NETWORK_HEADER, IP_DEST_AT, 4,
		     REG_KEY2);
	expr_lookup(&w->plan->at, SET_PUBLISHED, false);
	expr_payload(&w->plan->at, NFT_PAYLOAD_TRANSPORT_HEADER, TRANS_DEST_AT,
		     sizeof(port), REG_KEY);
	expr_mask(&w->plan->at, &mask, sizeof(mask));
	expr_cmp(&w->plan->at, NFT_CMP_EQ, &port, sizeof(port));
	expr_payload(&w->plan->at, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS_AT,
		     sizeof(flags), REG_KEY);
	expr_mask(&w->plan->at, &flags, sizeof(flags));
	expr_cmp(&w->plan->at, NFT_CMP_NEQ, &syn, sizeof(syn));
	expr_verdict(&w->plan->at, NF_ACCEPT, NULL);
}

static void write_doors(struct writer *w)
{
	write_dns(w, IPPROTO_UDP);
	write_dns(w, IPPROTO_TCP);

	tcp_in_set(w, SET_DOORS);
	expr_verdict(&w->plan->at, NF_ACCEPT, NULL);

	tcp_in_set(w, SET_FLOWS);
	deliver(w, w->spec->transparent_port);

	write_published(w);

	table_rule(w->plan, CHAIN_PRE);
	expr_verdict(&w->plan->at, NFT_GOTO, CHAIN_REFUSE);
}

/* A connected UDP socket gets ECONNREFUSED, TCP too; others EHOSTUNREACH. */
static void write_refusals(struct writer *w)
{
	table_rule(w->plan, CHAIN_REFUSE);
	count_and_log(w, COUNT_REFUSED);

	table_rule(w->plan, CHAIN_REFUSE);
	is_u8(w, NFT_META_L4PROTO, NFT_CMP_EQ, IPPROTO_TCP);
	expr_reject(&w->plan->at, NFT_REJECT_TCP_RST, 0);

	table_rule(w->plan, CHAIN_REFUSE);
	is_u8(w, NFT_META_L4PROTO, NFT_CMP_EQ, IPPROTO_UDP);
	expr_reject(&w->plan->at, NFT_REJECT_ICMPX_UNREACH,
		    NFT_REJECT_ICMPX_PORT_UNREACH);

	table_rule(w->plan, CHAIN_REFUSE);
	expr_reject(&w->plan->at, NFT_REJECT_ICMPX_UNREACH,
		    NFT_REJECT_ICMPX_ADMIN_PROHIBITED);

	table_rule(w->plan, CHAIN_FORWARD);
	count_and_drop(w, COUNT_FORWARDED);
}

/* @ranges: elements may be intervals in each field. */
static int make_set(struct nftnl_set **ret, const char *table, uint32_t id,
		    const char *name, bool port, bool ranges)
{
	static const uint8_t field[] = { 16, 4, 2 };
	struct nftnl_set *s = nftnl_set_alloc();

	*ret = s;
	if (!s)
		return -ENOMEM;
	nftnl_set_set_u32(s, NFTNL_SET_FAMILY, NFPROTO_INET);
	nftnl_set_set_u32(s, NFTNL_SET_ID, id);
	nftnl_set_set_u32(s, NFTNL_SET_KEY_TYPE,
			  port ? TYPE_OF_FLOW : TYPE_OF_LINK);
	nftnl_set_set_u32(s, NFTNL_SET_KEY_LEN, port ? 24 : 20);
	nftnl_set_set_u32(s, NFTNL_SET_FLAGS,
			  ranges ? NFT_SET_INTERVAL | NFT_SET_CONCAT : 0);
	/* The kernel wants the fields' lengths for intervals, and only then. */
	if (ranges && nftnl_set_set_data(s, NFTNL_SET_DESC_CONCAT, field,
					 port ? 3 : 2) < 0)
		return -ENOMEM;
	if (nftnl_set_set_str(s, NFTNL_SET_TABLE, table) < 0 ||
	    nftnl_set_set_str(s, NFTNL_SET_NAME, name) < 0)
		return -ENOMEM;
	return 0;
}

int plan_make_flows(struct nftnl_set **ret, const char *table)
{
	return make_set(ret, table, SET_FLOWS_ID, SET_FLOWS, true, true);
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

static void add_set(struct table *t, uint32_t id, const char *name, bool port,
		    bool ranges)
{
	struct nftnl_set *set;

	if (make_set(&set, RULESET_TABLE, id, name, port, ranges) < 0)
		t->at.failed = true;
	table_set(t, set);
}

static void add_containers(struct table *t)
{
	add_chain(t, CHAIN_PRE, NF_INET_PRE_ROUTING, PRIORITY_PRE);
	table_chain(t, CHAIN_REFUSE, NULL);
	add_chain(t, CHAIN_FORWARD, NF_INET_FORWARD, NF_IP_PRI_FIRST);
	add_set(t, 1, SET_LINKS, false, false);
	add_set(t, 2, SET_DOORS, true, false);
	add_set(t, SET_FLOWS_ID, SET_FLOWS, true, true);
	add_set(t, 4, SET_PUBLISHED, false, false);
	for (size_t i = 0; i < PLAN_COUNTERS; i++)
		table_counter(t, plan_counter[i]);
}

int plan_make(struct table *ret, const struct ruleset_spec *spec)
{
	struct writer w = { .plan = ret, .spec = spec };

	*ret = (struct table){ .name = RULESET_TABLE, .family = NFPROTO_INET };
	if (!spec->dns_port || !spec->proxy_port || !spec->transparent_port)
		return -EINVAL;
	add_containers(ret);
	write_spoofs(&w);
	write_martians(&w);
	write_fragments(&w);
	write_doors(&w);
	write_refusals(&w);
	return table_made(ret);
}
