/* SPDX-License-Identifier: Apache-2.0
 *
 * writer.h - rules written one after another, and the chains and counters that
 * they are about, as libnftnl objects. Want of memory or room sticks, for
 * whoever has written them all to check. For firewall/ only.
 */
#ifndef FIREWALL_WRITER_H
#define FIREWALL_WRITER_H

#include "firewall/expr.h"

struct nftnl_chain;
struct nftnl_obj;
struct nftnl_rule;

struct writer {
	const char *table;
	uint8_t family; /* NFPROTO_* */
	uint16_t nflog_group;
	struct nftnl_rule **rule; /* where they go, */
	size_t *rules, max;	  /* how many there are, and may be */
	struct expr_list at;	  /* the rule being written */
};

/* Begins the next rule. */
void writer_rule(struct writer *w, const char *chain);

/* Goes on with it: @meta (NFT_META_*), of one byte, is @value (NFT_CMP_EQ) or
 * not (NFT_CMP_NEQ). */
void writer_meta(struct writer *w, uint32_t meta, uint32_t op, uint8_t value);
/* What follows is about an IPv4 header. */
void writer_ipv4(struct writer *w);
/* The port that TCP or UDP goes to. */
void writer_port(struct writer *w, uint8_t protocol, uint16_t port);

/* And ends it. */
void writer_accept(struct writer *w);
void writer_goto(struct writer *w, const char *chain);
void writer_count(struct writer *w, const char *counter); /* and log */
void writer_count_drop(struct writer *w, const char *counter);

/* Three rules that refuse at once what comes to them: a connected UDP socket
 * gets ECONNREFUSED, TCP too; others EHOSTUNREACH. */
void writer_refusals(struct writer *w, const char *chain);

struct chain_spec {
	const char *name, *type; /* no type: others go to it */
	uint32_t hook;
	int32_t priority;
	uint32_t policy;
};

/* Of the family and table of @w. The caller's; NULL without memory. */
struct nftnl_chain *writer_chain(const struct writer *w,
				 const struct chain_spec *spec);
struct nftnl_obj *writer_counter(const struct writer *w, const char *name);

#endif
