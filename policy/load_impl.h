/* SPDX-License-Identifier: Apache-2.0
 *
 * load_impl.h - what the files of the loader share; nobody else's.
 *
 *	load.c		a file: its keys, whom it extends
 *	load_keys.c	mappings into known keys; complaints
 *	load_settings.c	what is said once: name, default, dns, limits, log
 *	load_cell.c	sandbox: what bounds the command itself
 *	load_rule.c	an entry of allow or deny
 *	load_extras.c	the keys of an entry beside where it leads
 */
#ifndef POLICY_LOAD_IMPL_H
#define POLICY_LOAD_IMPL_H

#include "policy/build.h"
#include "policy/tree.h"
#include "policy/words.h"

#define NOTE_MAX_LEN 4096

struct loader {
	struct draft *draft;
	struct source source;
	const struct loader *parent; /* that extends it, or NULL */
};

#define FAULT(loader, node, ...)                                      \
	source_fault(&(loader)->source, (node)->line, (node)->column, \
		     __VA_ARGS__)

/* load_keys.c: each returns 0, or -EINVAL after a complaint. */

/* "bad port '0', it is ..." */
int load_fault(const struct loader *l, const struct node *node,
	       const char *what, const char *why);
/* Puts the value of names[i] into ret_value[i], NULL where there is none. */
int load_keys(const struct loader *l, const struct node *map,
	      const char *const names[], size_t n,
	      const struct node *ret_value[]);
int expect_map(const struct loader *l, const struct node *node,
	       const char *what);
int expect_text(const struct loader *l, const struct node *node,
		const char *what);
/* A list with something in it. */
int expect_list(const struct loader *l, const struct node *node,
		const char *what, const char *hint);
/* A text without quotes, or a number: "10 MB", 443. */
int expect_scalar(const struct loader *l, const struct node *node,
		  const char *what);
/* Checks a note; its text is not kept here. */
int expect_note(const struct loader *l, const struct node *node);
/* Which of @words it is. */
int load_word(const struct loader *l, const struct node *node, const char *what,
	      const char *const words[], size_t n, size_t *ret_i);

/* load_settings.c; NULL nodes are fine. */
int load_name(const struct loader *l, const struct node *node,
	      struct settings *settings);
int load_said(const struct loader *l, const struct node *node, const char *what,
	      const char *const words[2], enum said *ret_said);
int load_dns(const struct loader *l, const struct node *map,
	     struct settings *settings);
int load_limits(const struct loader *l, const struct node *map,
		struct settings *settings);

int load_log(const struct loader *l, const struct node *map,
	     struct settings *settings);

/* load_cell.c: sandbox. @known: its lists are there already. */
int load_cell(const struct loader *l, const struct node *map, bool known,
	      struct cell_said *ret_said);

int load_budget(const struct loader *l, const struct node *node,
		const char *what, uint64_t *ret_bytes);

/* load_rule.c: `allow` or `deny`. */
int load_entries(const struct loader *l, const struct node *list, bool deny);

/* The keys of an entry. */
enum {
	E_HOST,
	E_ADDRESS,
	E_FILE,
	E_PORTS,
	E_NOTE,
	E_ADDRESSES, /* from here on: in `allow` only */
	E_METHODS,
	E_PATHS,
	E_PROTOCOL,
	E_CONNECT,
	E_DOORS,
	E_DNS,
	E_EXPIRES,
	E_UPLOAD,
	E_DOWNLOAD,
	E_TLS,
	E_COUNT
};
extern const char *const entry_keys[E_COUNT];

/* load_list.c: a file of denied names. */
int load_list(const struct loader *l, const struct node *node);

/* load_extras.c: fills @rule, which has its ports, from the keys @v. */
int load_extras(const struct loader *l, const struct node *const v[],
		struct rule *rule);

#endif
