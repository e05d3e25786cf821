/* SPDX-License-Identifier: Apache-2.0
 *
 * canon.h - a ruleset as sorted lines of text, the same for what we send and
 * for what the kernel shows: without handles, counts and users' comments. For
 * firewall/ only.
 */
#ifndef FIREWALL_CANON_H
#define FIREWALL_CANON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nftnl_chain;
struct nftnl_set;
struct nftnl_obj;
struct nftnl_rule;
struct element_found;

#define CANON_LINE   1024
#define CANON_LINES  20000 /* more is no ruleset of ours */
#define CANON_CHAINS 16

/* All zero at the start. */
struct canon {
	char **line;
	size_t n, cap;
	/* How many rules of each chain were seen: rules are in order. */
	struct {
		char name[64];
		unsigned rules;
	} chain[CANON_CHAINS];
	size_t chains;
};

void canon_free(struct canon *canon);

/* All: 0 or -errno. */
int canon_add(struct canon *canon, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int canon_table(struct canon *canon, uint32_t flags, uint32_t use);
int canon_chain(struct canon *canon, const struct nftnl_chain *chain);
int canon_set(struct canon *canon, const struct nftnl_set *set);
int canon_counter(struct canon *canon, const struct nftnl_obj *obj);
int canon_rule(struct canon *canon, struct nftnl_rule *rule);
/* @port: has a port. */
int canon_element(struct canon *canon, const char *set, bool port,
		  const struct element_found *found);

void canon_sort(struct canon *canon);
/* Both sorted. 0 if equal, else -EBADMSG and which line differs. */
int canon_compare(const struct canon *want, const struct canon *found,
		  char *reterr, size_t cap);
/* 65 bytes: hex SHA-256 of the lines, each with its LF. */
int canon_digest(const struct canon *canon, char *ret_digest);

#endif
