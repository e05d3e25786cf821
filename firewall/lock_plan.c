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
 * "Ours" is IPv4 by a link of our group; and of its index, once that is known:
 * who has rights over the namespace can give any link our group. What is
 *neither loopback nor ours is dropped in both directions, IPv6 too; `last` sees
 *what is forwarded, and what a rule of somebody else sends another way after
 *`out` has seen it.
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
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "base/cleanup.h"
#include "firewall/writer.h"

#define CHAIN_IN     "in"
#define CHAIN_OUT    "out"
#define CHAIN_LAST   "last"
#define CHAIN_NAMES  "names"
#define CHAIN_STRAY  "stray"
#define CHAIN_SOURCE "source"

#define COUNT_LEFT    "left"
#define COUNT_ENTERED "entered"
#define COUNT_NAMES   "names"
#define COUNT_STRAY   "stray"

#define LOOPBACK_INDEX 1u /* in every namespace, for good */
#define DNS_PORT       53

const char *const lock_counter[LOCK_COUNTERS] = {
	COUNT_LEFT,
	COUNT_ENTERED,
	COUNT_NAMES,
	COUNT_STRAY,
};

static const struct {
	const char *name;
	struct table_hook hook;
} chains[] = {
	{ CHAIN_IN, { "filter", NF_INET_PRE_ROUTING, -400, NF_DROP } },
	{ CHAIN_OUT, { "filter", NF_INET_LOCAL_OUT, -400, NF_DROP } },
	{ CHAIN_LAST, { "filter", NF_INET_POST_ROUTING, 300, NF_DROP } },
	{ CHAIN_NAMES, { "nat", NF_INET_LOCAL_OUT, -150, NF_ACCEPT } },
	{ CHAIN_STRAY, { "filter", NF_INET_LOCAL_OUT, -90, NF_ACCEPT } },
	{ CHAIN_SOURCE, { "nat", NF_INET_POST_ROUTING, 90, NF_ACCEPT } },
};

/* Came by our link, or goes by it. */
static void is_ours(struct writer *w, uint32_t link, uint32_t group,
		    uint32_t index)
{
	writer_ipv4(w);
	writer_meta32(w, group, NFT_CMP_EQ, LOCK_GROUP);
	if (link)
		writer_meta32(w, index, NFT_CMP_EQ, link);
}

static void from_ours(struct writer *w, uint32_t link)
{
	is_ours(w, link, NFT_META_IIFGROUP, NFT_META_IIF);
}

/* The address @at, one of IPv4, is in 127/8. */
static void is_loopback(struct writer *w, uint32_t at)
{
	const uint8_t byte = 127;

	writer_network(w, at, NFT_CMP_EQ, &byte, sizeof(byte));
}

static void to_resolver(struct writer *w)
{
	const uint32_t address = htonl(LOCK_RESOLVER);

	writer_ipv4(w);
	writer_network(w, IP_DEST_AT, NFT_CMP_EQ, &address, sizeof(address));
}

/* Without a report, unlike writer_count_drop(). */
static void count_and_drop(struct writer *w, const char *counter)
{
	expr_count(&w->table->at, counter);
	writer_drop(w);
}

static void write_in(struct writer *w, uint32_t link)
{
	writer_rule(w, CHAIN_IN);
	writer_meta32(w, NFT_META_IIF, NFT_CMP_EQ, LOOPBACK_INDEX);
	writer_accept(w);

	writer_rule(w, CHAIN_IN);
	from_ours(w, link);
	is_loopback(w, IP_SOURCE_AT);
	count_and_drop(w, COUNT_ENTERED);

	writer_rule(w, CHAIN_IN);
	from_ours(w, link);
	is_loopback(w, IP_DEST_AT);
	count_and_drop(w, COUNT_ENTERED);

	writer_rule(w, CHAIN_IN);
	from_ours(w, link);
	writer_accept(w);

	writer_rule(w, CHAIN_IN);
	count_and_drop(w, COUNT_ENTERED);
}

static void write_out(struct writer *w, const char *chain, uint32_t link)
{
	writer_rule(w, chain);
	writer_meta32(w, NFT_META_OIF, NFT_CMP_EQ, LOOPBACK_INDEX);
	writer_accept(w);

	writer_rule(w, chain);
	is_ours(w, link, NFT_META_OIFGROUP, NFT_META_OIF);
	writer_accept(w);

	writer_rule(w, chain);
	count_and_drop(w, COUNT_LEFT);
}

static void write_names(struct writer *w, uint8_t protocol, uint32_t gateway)
{
	writer_rule(w, CHAIN_NAMES);
	to_resolver(w);
	writer_meta(w, NFT_META_L4PROTO, NFT_CMP_EQ, protocol);
	expr_count(&w->table->at, COUNT_NAMES);
	expr_dnat(&w->table->at, gateway, DNS_PORT);
}

static void write_rest(struct writer *w)
{
	writer_rule(w, CHAIN_STRAY);
	to_resolver(w);
	count_and_drop(w, COUNT_STRAY);

	writer_rule(w, CHAIN_SOURCE);
	writer_meta32(w, NFT_META_OIF, NFT_CMP_NEQ, LOOPBACK_INDEX);
	writer_ipv4(w);
	is_loopback(w, IP_SOURCE_AT);
	expr_masquerade(&w->table->at);
}

int lock_plan_make(struct table *ret, const struct lock_spec *spec)
{
	struct writer w = { .table = ret };

	*ret = (struct table){ .name = LOCK_TABLE,
			       .family = NFPROTO_INET,
			       .flags = lock_flags(spec) };
	if (spec->gateway.len != 4)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(chains); i++)
		table_chain(ret, chains[i].name, &chains[i].hook);
	for (size_t i = 0; i < LOCK_COUNTERS; i++)
		table_counter(ret, lock_counter[i]);
	write_in(&w, spec->link);
	write_out(&w, CHAIN_OUT, spec->link);
	write_out(&w, CHAIN_LAST, spec->link);
	write_names(&w, IPPROTO_UDP, ip_v4_value(&spec->gateway));
	write_names(&w, IPPROTO_TCP, ip_v4_value(&spec->gateway));
	write_rest(&w);
	return table_made(ret);
}
