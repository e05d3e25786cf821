/* SPDX-License-Identifier: Apache-2.0
 *
 * writer.c - what the plans of all our tables have in common.
 */
#include "firewall/writer.h"

#include <arpa/inet.h>
#include <stdio.h>
/* these want stdio.h */
#include <libnftnl/chain.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <netinet/in.h>

#define SNAPLEN	      128
#define TRANS_DEST_AT 2

void writer_rule(struct writer *w, const char *chain)
{
	struct nftnl_rule *r = NULL;

	if (*w->rules < w->max)
		r = nftnl_rule_alloc();
	if (!r) {
		w->at.failed = true;
		return;
	}
	w->rule[(*w->rules)++] = r;
	w->at.rule = r;
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, w->family);
	if (nftnl_rule_set_str(r, NFTNL_RULE_TABLE, w->table) < 0 ||
	    nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, chain) < 0)
		w->at.failed = true;
}

void writer_meta(struct writer *w, uint32_t meta, uint32_t op, uint8_t value)
{
	expr_meta_load(&w->at, meta, REG_KEY);
	expr_cmp(&w->at, op, &value, sizeof(value));
}

/* Where others were dropped before, too: nft lists addresses only where a rule
 * says so itself. */
void writer_ipv4(struct writer *w)
{
	writer_meta(w, NFT_META_NFPROTO, NFT_CMP_EQ, NFPROTO_IPV4);
}

void writer_port(struct writer *w, uint8_t protocol, uint16_t port)
{
	const uint16_t wire = htons(port);

	writer_meta(w, NFT_META_L4PROTO, NFT_CMP_EQ, protocol);
	expr_payload(&w->at, NFT_PAYLOAD_TRANSPORT_HEADER, TRANS_DEST_AT,
		     sizeof(wire), REG_KEY);
	expr_cmp(&w->at, NFT_CMP_EQ, &wire, sizeof(wire));
}

void writer_accept(struct writer *w)
{
	expr_verdict(&w->at, NF_ACCEPT, NULL);
}

void writer_goto(struct writer *w, const char *chain)
{
	expr_verdict(&w->at, NFT_GOTO, chain);
}

void writer_count(struct writer *w, const char *counter)
{
	expr_count(&w->at, counter);
	expr_log(&w->at, counter, w->nflog_group, SNAPLEN);
}

void writer_count_drop(struct writer *w, const char *counter)
{
	writer_count(w, counter);
	expr_verdict(&w->at, NF_DROP, NULL);
}

void writer_refusals(struct writer *w, const char *chain)
{
	writer_rule(w, chain);
	writer_meta(w, NFT_META_L4PROTO, NFT_CMP_EQ, IPPROTO_TCP);
	expr_reject(&w->at, NFT_REJECT_TCP_RST, 0);

	writer_rule(w, chain);
	writer_meta(w, NFT_META_L4PROTO, NFT_CMP_EQ, IPPROTO_UDP);
	expr_reject(&w->at, NFT_REJECT_ICMPX_UNREACH,
		    NFT_REJECT_ICMPX_PORT_UNREACH);

	writer_rule(w, chain);
	expr_reject(&w->at, NFT_REJECT_ICMPX_UNREACH,
		    NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
}

/* --- what holds them ----------------------------------------------------- */

static int fill_chain(struct nftnl_chain *c, const char *table,
		      const struct chain_spec *spec)
{
	if (nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, table) < 0 ||
	    nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, spec->name) < 0)
		return -1;
	if (!spec->type)
		return 0;
	nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, spec->hook);
	nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, spec->priority);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, spec->policy);
	return nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, spec->type);
}

struct nftnl_chain *writer_chain(const struct writer *w,
				 const struct chain_spec *spec)
{
	struct nftnl_chain *c = nftnl_chain_alloc();

	if (!c)
		return NULL;
	nftnl_chain_set_u32(c, NFTNL_CHAIN_FAMILY, w->family);
	if (fill_chain(c, w->table, spec) == 0)
		return c;
	nftnl_chain_free(c);
	return NULL;
}

struct nftnl_obj *writer_counter(const struct writer *w, const char *name)
{
	struct nftnl_obj *o = nftnl_obj_alloc();

	if (!o)
		return NULL;
	nftnl_obj_set_u32(o, NFTNL_OBJ_FAMILY, w->family);
	nftnl_obj_set_u32(o, NFTNL_OBJ_TYPE, NFT_OBJECT_COUNTER);
	nftnl_obj_set_u64(o, NFTNL_OBJ_CTR_PKTS, 0);
	nftnl_obj_set_u64(o, NFTNL_OBJ_CTR_BYTES, 0);
	nftnl_obj_set_str(o, NFTNL_OBJ_TABLE, w->table);
	nftnl_obj_set_str(o, NFTNL_OBJ_NAME, name);
	return o;
}
