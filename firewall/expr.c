/* SPDX-License-Identifier: Apache-2.0
 *
 * expr.c - expressions with every attribute that the kernel will show, so that
 * what is read back can be compared as it is.
 */
#include "firewall/expr.h"

#include <arpa/inet.h>
#include <stdio.h>
/* wants stdio.h */
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>

static struct nftnl_expr *add(struct expr_list *l, const char *name)
{
	struct nftnl_expr *e = l->rule ? nftnl_expr_alloc(name) : NULL;

	if (!e)
		l->failed = true;
	else
		nftnl_rule_add_expr(l->rule, e);
	return e;
}

/* nftnl_expr_set() and _set_str() copy, and say when they could not. */
static void put(struct expr_list *l, struct nftnl_expr *e, uint16_t attr,
		const void *data, uint32_t len)
{
	if (nftnl_expr_set(e, attr, data, len) < 0)
		l->failed = true;
}

static void put_str(struct expr_list *l, struct nftnl_expr *e, uint16_t attr,
		    const char *s)
{
	if (nftnl_expr_set_str(e, attr, s) < 0)
		l->failed = true;
}

void expr_meta_load(struct expr_list *l, uint32_t key, uint32_t reg)
{
	struct nftnl_expr *e = add(l, "meta");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, reg);
}

void expr_immediate(struct expr_list *l, const void *data, uint32_t len,
		    uint32_t reg)
{
	struct nftnl_expr *e = add(l, "immediate");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, reg);
	put(l, e, NFTNL_EXPR_IMM_DATA, data, len);
}

void expr_meta_set_mark(struct expr_list *l, uint32_t mark)
{
	expr_immediate(l, &mark, sizeof(mark), REG_KEY);
	struct nftnl_expr *e = add(l, "meta");
	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, NFT_META_MARK);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_SREG, REG_KEY);
}

void expr_ct_mark_load(struct expr_list *l, uint32_t reg)
{
	struct nftnl_expr *e = add(l, "ct");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, NFT_CT_MARK);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_DREG, reg);
}

void expr_ct_mark_set(struct expr_list *l, uint32_t mark)
{
	expr_immediate(l, &mark, sizeof(mark), REG_KEY);
	struct nftnl_expr *e = add(l, "ct");
	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, NFT_CT_MARK);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_SREG, REG_KEY);
}

void expr_payload(struct expr_list *l, uint32_t base, uint32_t offset,
		  uint32_t len, uint32_t reg)
{
	struct nftnl_expr *e = add(l, "payload");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, len);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, reg);
}

void expr_mask(struct expr_list *l, const void *mask, uint32_t len)
{
	static const uint32_t zero;
	struct nftnl_expr *e = add(l, "bitwise");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, REG_KEY);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, REG_KEY);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_OP, NFT_BITWISE_BOOL);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, len);
	put(l, e, NFTNL_EXPR_BITWISE_MASK, mask, len);
	put(l, e, NFTNL_EXPR_BITWISE_XOR, &zero, len);
}

void expr_cmp(struct expr_list *l, uint32_t op, const void *data, uint32_t len)
{
	struct nftnl_expr *e = add(l, "cmp");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, REG_KEY);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, op);
	put(l, e, NFTNL_EXPR_CMP_DATA, data, len);
}

void expr_lookup(struct expr_list *l, const char *set, bool inverted)
{
	struct nftnl_expr *e = add(l, "lookup");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, REG_KEY);
	put_str(l, e, NFTNL_EXPR_LOOKUP_SET, set);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_FLAGS,
			   inverted ? NFT_LOOKUP_F_INV : 0);
}

void expr_count(struct expr_list *l, const char *counter)
{
	struct nftnl_expr *e = add(l, "objref");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_OBJREF_IMM_TYPE, NFT_OBJECT_COUNTER);
	put_str(l, e, NFTNL_EXPR_OBJREF_IMM_NAME, counter);
}

void expr_log(struct expr_list *l, const char *prefix, uint16_t group,
	      uint32_t snaplen)
{
	struct nftnl_expr *e = add(l, "log");

	if (!e)
		return;
	put_str(l, e, NFTNL_EXPR_LOG_PREFIX, prefix);
	nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_GROUP, group);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOG_SNAPLEN, snaplen);
	nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_QTHRESHOLD, 1);
}

void expr_reject(struct expr_list *l, uint32_t type, uint8_t code)
{
	struct nftnl_expr *e = add(l, "reject");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE, type);
	nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE, code);
}

void expr_tproxy(struct expr_list *l, uint16_t port)
{
	const uint16_t be = htons(port);

	expr_immediate(l, &be, sizeof(be), REG_KEY);
	struct nftnl_expr *e = add(l, "tproxy");
	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_FAMILY, NFPROTO_IPV4);
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_PORT, REG_KEY);
}

void expr_dnat(struct expr_list *l, uint32_t address, uint16_t port)
{
	const uint32_t be_address = htonl(address);
	const uint16_t be_port = htons(port);

	expr_immediate(l, &be_address, sizeof(be_address), REG_KEY);
	expr_immediate(l, &be_port, sizeof(be_port), REG_KEY2);
	struct nftnl_expr *e = add(l, "nat");
	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_TYPE, NFT_NAT_DNAT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_FAMILY, NFPROTO_IPV4);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_ADDR_MIN, REG_KEY);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_ADDR_MAX, REG_KEY);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_PROTO_MIN, REG_KEY2);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_PROTO_MAX, REG_KEY2);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_FLAGS,
			   NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED);
}

void expr_masquerade(struct expr_list *l)
{
	(void)add(l, "masq");
}

void expr_redirect(struct expr_list *l, uint16_t port)
{
	const uint16_t be = htons(port);

	expr_immediate(l, &be, sizeof(be), REG_KEY);
	struct nftnl_expr *e = add(l, "redir");
	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_REDIR_REG_PROTO_MIN, REG_KEY);
	nftnl_expr_set_u32(e, NFTNL_EXPR_REDIR_REG_PROTO_MAX, REG_KEY);
	nftnl_expr_set_u32(e, NFTNL_EXPR_REDIR_FLAGS,
			   NF_NAT_RANGE_PROTO_SPECIFIED);
}

void expr_verdict(struct expr_list *l, int verdict, const char *chain)
{
	struct nftnl_expr *e = add(l, "immediate");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, (uint32_t)verdict);
	if (chain)
		put_str(l, e, NFTNL_EXPR_IMM_CHAIN, chain);
}
