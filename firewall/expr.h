/* SPDX-License-Identifier: Apache-2.0
 *
 * expr.h - the expressions that our rules are made of, by name. Each adds one
 * or two to the rule; want of memory sticks in the list, for whoever made it to
 * check at the end. For firewall/ only.
 */
#ifndef FIREWALL_EXPR_H
#define FIREWALL_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nftnl_rule;

/* Registers are 16 bytes each, numbered from 1, and also 4 bytes each, numbered
 * from 8: the key `ifname . address . port` is in 1, 2 and the second quarter
 * of 2, which is 13. */
enum expr_reg { REG_VERDICT = 0, REG_KEY = 1, REG_KEY2 = 2, REG_KEY3 = 13 };

struct expr_list {
	struct nftnl_rule *rule;
	bool failed; /* no memory, sticks */
};

void expr_meta_load(struct expr_list *l, uint32_t key, uint32_t reg);
void expr_meta_set_mark(struct expr_list *l, uint32_t mark);
void expr_immediate(struct expr_list *l, const void *data, uint32_t len,
		    uint32_t reg);
/* The mark of the connection. */
void expr_ct_mark_load(struct expr_list *l, uint32_t reg);
void expr_ct_mark_set(struct expr_list *l, uint32_t mark);
/* @base: NFT_PAYLOAD_*. */
void expr_payload(struct expr_list *l, uint32_t base, uint32_t offset,
		  uint32_t len, uint32_t reg);
void expr_mask(struct expr_list *l, const void *mask, uint32_t len);
/* @op: NFT_CMP_*, on REG_KEY. */
void expr_cmp(struct expr_list *l, uint32_t op, const void *data, uint32_t len);
void expr_lookup(struct expr_list *l, const char *set, bool inverted);
void expr_count(struct expr_list *l, const char *counter);
void expr_log(struct expr_list *l, const char *prefix, uint16_t group,
	      uint32_t snaplen);
void expr_reject(struct expr_list *l, uint32_t type, uint8_t code);
/* To our listener at @port; its address is the interface's. */
void expr_tproxy(struct expr_list *l, uint16_t port);
/* Both in host byte order. */
void expr_dnat(struct expr_list *l, uint32_t address, uint16_t port);
void expr_masquerade(struct expr_list *l);
/* To this host's own @port. */
void expr_redirect(struct expr_list *l, uint16_t port);
/* @chain only with NFT_GOTO. */
void expr_verdict(struct expr_list *l, int verdict, const char *chain);

#endif
