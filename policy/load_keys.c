/* SPDX-License-Identifier: Apache-2.0
 *
 * load_keys.c - every mapping is first sorted into its known keys, so that an
 * unknown or repeated key is an error before anything is read from it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/load_impl.h"

/* Words that will mean something one day, and must not seem to now. */
static const char *const reserved[] = { "inspect", "ceiling" };

int load_fault(const struct loader *l, const struct node *node,
	       const char *what, const char *why)
{
	char shown[WORD_SHOWN_MAX];

	return FAULT(l, node, "bad %s %s, %s", what,
		     word_show(node->text, strlen(node->text), shown), why);
}

static int unknown_key(const struct loader *l, const struct node *key,
		       const char *const names[], size_t n)
{
	const char *guess = word_guess(key->text, names, n);
	char shown[WORD_SHOWN_MAX], all[240];

	for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
		if (strcmp(key->text, reserved[i]) == 0)
			return FAULT(l, key,
				     "'%s' is not in this version, leave it "
				     "out",
				     key->text);
	word_show(key->text, strlen(key->text), shown);
	if (strchr(key->text, '.'))
		return FAULT(l, key,
			     "unknown key %s, a host is a value: write \"- "
			     "host: NAME\"",
			     shown);
	if (guess)
		return FAULT(l, key, "unknown key %s, did you mean '%s'?",
			     shown, guess);
	return FAULT(l, key, "unknown key %s, the keys here are %s", shown,
		     word_join(names, n, all, sizeof(all)));
}

int load_keys(const struct loader *l, const struct node *map,
	      const char *const names[], size_t n,
	      const struct node *ret_value[])
{
	for (size_t i = 0; i < n; i++)
		ret_value[i] = NULL;
	for (const struct node *key = map->child; key; key = key->next->next) {
		size_t i = 0;

		if (key->kind != NODE_SCALAR)
			return FAULT(l, key, "a key is a word, not %s",
				     node_type(key));
		while (i < n && strcmp(key->text, names[i]) != 0)
			i++;
		if (i == n)
			return unknown_key(l, key, names, n);
		if (ret_value[i])
			return FAULT(l, key,
				     "'%s' is here twice (first in line %u), "
				     "keep one",
				     names[i], ret_value[i]->line);
		ret_value[i] = key->next;
	}
	return 0;
}

int expect_map(const struct loader *l, const struct node *node,
	       const char *what)
{
	if (node->kind == NODE_MAP)
		return 0;
	return FAULT(l, node, "%s is a mapping (key: value), not %s", what,
		     node_type(node));
}

int expect_text(const struct loader *l, const struct node *node,
		const char *what)
{
	if (node->kind == NODE_SCALAR &&
	    strncmp(node_type(node), "a text", 6) == 0)
		return 0;
	return FAULT(l, node, "'%s' is a text, not %s", what, node_type(node));
}

int expect_scalar(const struct loader *l, const struct node *node,
		  const char *what)
{
	if (node->kind == NODE_SCALAR && !node_is_null(node))
		return 0;
	return FAULT(l, node, "'%s' is one value, not %s", what,
		     node_type(node));
}

int expect_list(const struct loader *l, const struct node *node,
		const char *what, const char *hint)
{
	if (node->kind != NODE_LIST)
		return FAULT(l, node, "'%s' is a list, not %s: write %s", what,
			     node_type(node), hint);
	return 0;
}

int expect_note(const struct loader *l, const struct node *node)
{
	int ret = expect_text(l, node, "note");

	if (ret == 0 && strlen(node->text) > NOTE_MAX_LEN)
		return FAULT(l, node, "'note' is longer than %d bytes",
			     NOTE_MAX_LEN);
	return ret;
}

int load_word(const struct loader *l, const struct node *node, const char *what,
	      const char *const words[], size_t n, size_t *ret_i)
{
	char all[120], shown[WORD_SHOWN_MAX];
	bool scalar = node->kind == NODE_SCALAR && !node_is_null(node);

	for (size_t i = 0; i < n && scalar; i++) {
		if (strcmp(node->text, words[i]) == 0) {
			*ret_i = i;
			return 0;
		}
	}
	return FAULT(l, node, "'%s' is one of %s, not %s", what,
		     word_join(words, n, all, sizeof(all)),
		     scalar ? word_show(node->text, strlen(node->text), shown)
			    : node_type(node));
}
