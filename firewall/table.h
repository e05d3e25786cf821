/* SPDX-License-Identifier: Apache-2.0
 *
 * table.h - one table of nf_tables as libnftnl objects: what is to be sent, and
 * once more what is expected when it is read back. For firewall/ only.
 *
 * It is written from top to bottom, and failures stick: table_made() says at
 * the end whether all of it is there.
 */
#ifndef FIREWALL_TABLE_H
#define FIREWALL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firewall/expr.h"

struct canon;
struct nft;
struct nftnl_chain;
struct nftnl_obj;
struct nftnl_set;

#define TABLE_CHAINS   20
#define TABLE_SETS     5
#define TABLE_COUNTERS 4
#define TABLE_RULES    80

struct table {
	const char *name; /* kept */
	uint8_t family;	  /* NFPROTO_* */
	uint32_t flags;	  /* NFT_TABLE_F_* */
	struct nftnl_chain *chain[TABLE_CHAINS];
	struct nftnl_set *set[TABLE_SETS];
	struct nftnl_obj *counter[TABLE_COUNTERS];
	struct nftnl_rule *rule[TABLE_RULES];
	size_t chains, sets, counters, rules;
	struct expr_list at; /* the rule being written; .failed: something */
};

struct table_hook {
	const char *type; /* "filter", "nat" */
	uint32_t hook;	  /* NF_INET_* or NF_NETDEV_* */
	int32_t priority;
	uint32_t policy; /* NF_ACCEPT or NF_DROP */
};

/* A chain; @hook NULL: one that others go to. It is the table's, for more to be
 * set; NULL: no memory. */
struct nftnl_chain *table_chain(struct table *table, const char *name,
				const struct table_hook *hook);
/* @set is taken. */
void table_set(struct table *table, struct nftnl_set *set);
void table_counter(struct table *table, const char *name);
/* The next expressions, at table->at, are of a new rule of @chain. */
void table_rule(struct table *table, const char *chain);
/* 0 or -ENOMEM. */
int table_made(const struct table *table);
void table_free(struct table *table);

/* Each adds to the batch. Create: the kernel must not have it yet. Clear: it is
 * gone then, also if it was not there; delete: it must be there. Of the last
 * two, only the name and the family matter. */
void table_create(struct nft *nft, const struct table *table);
void table_clear(struct nft *nft, const struct table *table);
void table_delete(struct nft *nft, const struct table *table);

/* In place of the kernel's table of that name, in one atomic batch; its
 * counters begin anew. 0 or -errno. */
int table_install(struct nft *nft, const struct table *table);

/* Adds its lines. 0 or -errno. */
int table_expect(const struct table *table, struct canon *canon);
/* Reads the kernel's table of that name back and compares; those of others are
 * left alone. 0, -EBADMSG and what differs, or -errno. */
int table_verify(struct nft *nft, const struct table *table, char *reterr,
		 size_t cap);

/* Packets of the @n (at most 32) counters @name of table "inet @table". 0,
 * -ENOENT if one is not there, or -errno. */
int table_counts(struct nft *nft, const char *table, const char *const *name,
		 size_t n, uint64_t *ret_packets);

#endif
