/* SPDX-License-Identifier: Apache-2.0
 *
 * tree.h - a small subset of YAML as a tree whose nodes know where they stand.
 *
 * One document of mappings, lists and scalars. Aliases, anchors and tags are
 * refused: nothing in a policy may mean something other than what it shows. The
 * text, its nodes and their depth are limited.
 */
#ifndef POLICY_TREE_H
#define POLICY_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/bundle.h"

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	bool plain; /* a scalar without quotes */
	unsigned line, column;
	char *text; /* of a scalar: terminated, without NULs, UTF-8 */
	/* In a mapping: key, value, key, value. */
	struct node *child, *last_child, *next;
	struct node *owned; /* all nodes of one tree */
};

/* Where a text came from, and where to complain about it. */
struct source {
	const char *origin;
	struct policy_error *err;
};

/* Writes "origin:line:column: what". Returns -EINVAL. */
int source_fault(const struct source *source, unsigned line, unsigned column,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Returns 0 and the root (NULL for an empty text), or -EINVAL, or -ENOMEM. */
int tree_parse(const char *text, size_t len, const struct source *source,
	       struct node **ret_root);
/* NULL is fine. */
void tree_free(struct node *root);

/* "a list", "a number", "a boolean", ... */
const char *node_type(const struct node *node);
bool node_is_null(const struct node *node);

#endif
