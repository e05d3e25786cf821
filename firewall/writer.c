/* SPDX-License-Identifier: Apache-2.0
 *
 * writer.c - what the plans of all our tables have in common.
 */
#include "firewall/writer.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <netinet/in.h>

#define SNAPLEN 128

void writer_rule(struct writer *w, const char *chain)
{
	table_rule(w->table, chain);
}

void writer_meta(struct writer *w, uint32_t meta, uint32_t op, uint8_t value)
{
	expr_meta_load(&w->table->at, meta, REG_KEY);
	expr_cmp(&w->table->at, op, &value, sizeof(value));
}

void writer_meta32(struct writer *w, uint32_t meta, uint32_t op, uint32_t value)
{
	expr_meta_load(&w->table->at, meta, REG_KEY);
	expr_cmp(&w->table->at, op, &value, sizeof(value));
}

/* Where others were dropped before, too: nft lists addresses only where a rule
 * says so itself. */
void writer_ipv4(struct writer *w)
{
	writer_meta(w, NFT_META_NFPROTO, NFT_CMP_EQ, NFPROTO_IPV4);
}

void writer_network(struct writer *w, uint32_t offset, uint32_t op,
		    const void *data, uint32_t len)
{
	expr_payload(&w->table->at, NFT_PAYLOAD_NETWORK_HEADER, offset, len,
		     REG_KEY);
	expr_cmp(&w->table->at, op, data, len);
}

void writer_transport(struct writer *w, uint32_t offset, uint32_t op,
		      const void *data, uint32_t len)
{
	expr_payload(&w->table->at, NFT_PAYLOAD_TRANSPORT_HEADER, offset, len,
		     REG_KEY);
	expr_cmp(&w->table->at, op, data, len);
}

void writer_port(struct writer *w, uint8_t protocol, uint16_t port)
{
	const uint16_t wire = htons(port);

	writer_meta(w, NFT_META_L4PROTO, NFT_CMP_EQ, protocol);
	writer_transport(w, TRANS_DEST_AT, NFT_CMP_EQ, &wire, sizeof(wire));
}

void writer_lookup_flow(struct writer *w, const char *set)
{
	expr_payload(&w->table->at, NFT_PAYLOAD_NETWORK_HEADER, IP_DEST_AT, 4,
		     REG_KEY2);
	expr_payload(&w->table->at, NFT_PAYLOAD_TRANSPORT_HEADER, TRANS_DEST_AT,
		     2, REG_KEY3);
	expr_lookup(&w->table->at, set, false);
}

void writer_accept(struct writer *w)
{
	expr_verdict(&w->table->at, NF_ACCEPT, NULL);
}

void writer_drop(struct writer *w)
{
	expr_verdict(&w->table->at, NF_DROP, NULL);
}

void writer_goto(struct writer *w, const char *chain)
{
	expr_verdict(&w->table->at, NFT_GOTO, chain);
}

void writer_log(struct writer *w, const char *prefix)
{
	expr_log(&w->table->at, prefix, w->nflog_group, SNAPLEN);
}

void writer_count(struct writer *w, const char *counter)
{
	expr_count(&w->table->at, counter);
	writer_log(w, counter);
}

void writer_count_drop(struct writer *w, const char *counter)
{
	writer_count(w, counter);
	writer_drop(w);
}

void writer_refusals(struct writer *w, const char *chain)
{
	writer_rule(w, chain);
	writer_meta(w, NFT_META_L4PROTO, NFT_CMP_EQ, IPPROTO_TCP);
	expr_reject(&w->table->at, NFT_REJECT_TCP_RST, 0);

	writer_rule(w, chain);
	writer_meta(w, NFT_META_L4PROTO, NFT_CMP_EQ, IPPROTO_UDP);
	expr_reject(&w->table->at, NFT_REJECT_ICMPX_UNREACH,
		    NFT_REJECT_ICMPX_PORT_UNREACH);

	writer_rule(w, chain);
	expr_reject(&w->table->at, NFT_REJECT_ICMPX_UNREACH,
		    NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
}
