/* SPDX-License-Identifier: Apache-2.0
 *
 * load.c - the policy language. Every mapping is first sorted into its known
 * keys, so that an unknown or repeated key is an error before anything is read
 * from it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/build.h"
#include "policy/presets.h"
#include "policy/tree.h"
#include "policy/words.h"

#define NAME_MAX_LEN 64
#define NOTE_MAX_LEN 4096

struct loader {
	struct draft *draft;
	struct source source;
};

#define FAULT(loader, node, ...)                                      \
	source_fault(&(loader)->source, (node)->line, (node)->column, \
		     __VA_ARGS__)

static int fault_text(const struct loader *l, const struct node *node,
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
	char shown[WORD_SHOWN_MAX], all[160];

	word_show(key->text, strlen(key->text), shown);
	if (guess)
		return FAULT(l, key, "unknown key %s, did you mean '%s'?",
			     shown, guess);
	return FAULT(l, key, "unknown key %s, the keys here are %s", shown,
		     word_join(names, n, all, sizeof(all)));
}

/* Puts the value of names[i] into ret_value[i], NULL where there is none. */
static int sort_keys(const struct loader *l, const struct node *map,
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

static int expect_map(const struct loader *l, const struct node *node,
		      const char *what)
{
	if (node->kind == NODE_MAP)
		return 0;
	return FAULT(l, node, "%s is a mapping (key: value), not %s", what,
		     node_type(node));
}

static int expect_text(const struct loader *l, const struct node *node,
		       const char *what)
{
	if (node->kind == NODE_SCALAR &&
	    strncmp(node_type(node), "a text", 6) == 0)
		return 0;
	return FAULT(l, node, "'%s' is a text, not %s", what, node_type(node));
}

static int expect_list(const struct loader *l, const struct node *node,
		       const char *what, const char *hint)
{
	if (node->kind == NODE_LIST)
		return 0;
	return FAULT(l, node, "'%s' is a list, not %s: write %s", what,
		     node_type(node), hint);
}

static int load_ports(const struct loader *l, const struct node *list,
		      struct rule *rule)
{
	struct port_range range[PORTS_MAX];
	size_t n = 0;
	int ret = expect_list(l, list, "ports", "[443, 8000-8100]");

	if (ret < 0)
		return ret;
	if (!list->child)
		return FAULT(l, list,
			     "'ports' is empty, leave it out or name a port");
	for (const struct node *c = list->child; c; c = c->next) {
		const char *why;

		if (n == PORTS_MAX)
			return FAULT(l, c, "more than %d ports, use ranges",
				     PORTS_MAX);
		if (c->kind != NODE_SCALAR || node_is_null(c))
			return FAULT(l, c,
				     "a port is a number or \"a-b\", not %s",
				     node_type(c));
		why = ports_parse(c->text, &range[n++]);
		if (why)
			return fault_text(l, c, "port", why);
	}
	return rule_set_ports(rule, range, n);
}

static int load_addresses(const struct loader *l, const struct node *list,
			  struct rule *rule)
{
	struct cidr cidr[ADDRESSES_MAX];
	size_t n = 0;
	int ret = expect_list(l, list, "addresses", "[10.0.0.0/8]");

	if (ret < 0)
		return ret;
	for (const struct node *c = list->child; c; c = c->next) {
		const char *why;

		if (n == ADDRESSES_MAX)
			return FAULT(l, c,
				     "more than %d ranges, use larger "
				     "ones",
				     ADDRESSES_MAX);
		ret = expect_text(l, c, "addresses");
		if (ret < 0)
			return ret;
		why = target_parse_cidr(c->text, &cidr[n++]);
		if (why)
			return fault_text(l, c, "address range", why);
	}
	return rule_set_addresses(rule, cidr, n);
}

static int add_rule(const struct loader *l, const struct node *node,
		    const struct target *target, bool deny,
		    struct rule **ret_rule)
{
	AUTO_FREE char *origin = NULL;
	int ret;

	if (asprintf(&origin, "%s:%u", l->source.origin, node->line) < 0) {
		origin = NULL;
		return -ENOMEM;
	}
	ret = draft_add_rule(l->draft, target, deny, node->text, origin,
			     ret_rule);
	if (ret == -EFBIG)
		return FAULT(l, node, "more than %d rules, use wildcards",
			     RULES_MAX);
	return ret;
}

static int load_host(const struct loader *l, const struct node *node, bool deny,
		     struct rule **ret_rule)
{
	struct target target;
	const char *why;
	int ret = expect_text(l, node, "host");

	if (ret < 0)
		return ret;
	why = target_parse_host(node->text, &target);
	if (why)
		return fault_text(l, node, "host", why);
	return add_rule(l, node, &target, deny, ret_rule);
}

static int load_address(const struct loader *l, const struct node *node,
			bool deny, struct rule **ret_rule)
{
	struct target target = { 0 };
	const char *why;
	int ret = expect_text(l, node, "address");

	if (ret < 0)
		return ret;
	why = target_parse_cidr(node->text, &target.literal);
	if (why)
		return fault_text(l, node, "address range", why);
	return add_rule(l, node, &target, deny, ret_rule);
}

/* The string form. A preset's name here is a slip that would never match. */
static int load_plain_entry(const struct loader *l, const struct node *node,
			    bool deny)
{
	struct rule *rule;

	if (!deny && preset_find(node->text) >= 0)
		return FAULT(l, node,
			     "'%s' is a preset, write it under 'extends'",
			     node->text);
	return load_host(l, node, deny, &rule);
}

enum { E_HOST, E_ADDRESS, E_PORTS, E_ADDRESSES, E_NOTE, E_COUNT };
static const char *const entry_keys[E_COUNT] = {
	[E_HOST] = "host",   [E_ADDRESS] = "address",
	[E_PORTS] = "ports", [E_ADDRESSES] = "addresses",
	[E_NOTE] = "note",
};

static int check_entry(const struct loader *l, const struct node *map,
		       const struct node *const v[], bool deny)
{
	if (!v[E_HOST] == !v[E_ADDRESS])
		return FAULT(l, map, "an entry has either 'host' or 'address'");
	if (v[E_ADDRESSES] && deny)
		return FAULT(l, v[E_ADDRESSES],
			     "'addresses' permits answers, to deny a range "
			     "write an entry with 'address'");
	if (v[E_ADDRESSES] && v[E_ADDRESS])
		return FAULT(l, v[E_ADDRESSES],
			     "'addresses' goes with 'host', the range itself "
			     "is in 'address'");
	if (v[E_ADDRESS] && v[E_PORTS] && deny)
		return FAULT(l, v[E_PORTS],
			     "a denied address range is denied on every port, "
			     "leave 'ports' out");
	if (!v[E_NOTE])
		return 0;
	int ret = expect_text(l, v[E_NOTE], "note");
	if (ret == 0 && strlen(v[E_NOTE]->text) > NOTE_MAX_LEN)
		return FAULT(l, v[E_NOTE],
			     "the note is too long, keep it "
			     "under %d bytes",
			     NOTE_MAX_LEN);
	return ret;
}

static int load_entry(const struct loader *l, const struct node *node,
		      bool deny)
{
	const struct node *v[E_COUNT];
	struct rule *rule;
	int ret;

	if (node->kind == NODE_SCALAR)
		return load_plain_entry(l, node, deny);
	if (node->kind != NODE_MAP)
		return FAULT(l, node, "an entry is a host or a mapping, not %s",
			     node_type(node));
	ret = sort_keys(l, node, entry_keys, E_COUNT, v);
	if (ret == 0)
		ret = check_entry(l, node, v, deny);
	if (ret < 0)
		return ret;
	if (v[E_HOST])
		ret = load_host(l, v[E_HOST], deny, &rule);
	else
		ret = load_address(l, v[E_ADDRESS], deny, &rule);
	if (ret == 0 && v[E_PORTS])
		ret = load_ports(l, v[E_PORTS], rule);
	if (ret == 0 && v[E_ADDRESSES])
		ret = load_addresses(l, v[E_ADDRESSES], rule);
	return ret;
}

static int load_entries(const struct loader *l, const struct node *list,
			bool deny)
{
	const char *what = deny ? "deny" : "allow";
	int ret;

	/* "allow:" and nothing below it: an empty list allows nothing. */
	if (node_is_null(list))
		return 0;
	ret = expect_list(l, list, what, "one host a line, \"- example.com\"");
	for (const struct node *c = list->child; c && ret == 0; c = c->next)
		ret = load_entry(l, c, deny);
	return ret;
}

static int load_extends(const struct loader *l, const struct node *list)
{
	char all[200];
	int ret = expect_list(l, list, "extends", "[github, npm]");

	for (const struct node *c = list->child; c && ret == 0; c = c->next) {
		ret = expect_text(l, c, "extends");
		if (ret < 0)
			return ret;
		int i = preset_find(c->text);
		const char *guess = preset_guess(c->text);
		if (i < 0 && guess)
			return FAULT(l, c, "unknown preset, did you mean '%s'?",
				     guess);
		if (i < 0)
			return fault_text(l, c, "preset",
					  preset_list(all, sizeof(all)));
		ret = draft_add_preset(l->draft, (size_t)i);
	}
	return ret;
}

static int load_server(const struct loader *l, const struct node *node)
{
	struct policy *policy = l->draft->policy;
	struct ip ip;
	uint16_t port = 53;
	int ret = expect_text(l, node, "upstream");

	if (ret < 0)
		return ret;
	if (strcmp(node->text, "system") == 0) {
		policy->upstream_system = true;
		return 0;
	}
	if (!ip_parse(node->text, &ip) &&
	    !endpoint_parse(node->text, &ip, &port))
		return fault_text(l, node, "name server",
				  "it is 'system', ADDR, ADDR:PORT or "
				  "[ADDR]:PORT");
	if (policy->upstream_count == UPSTREAM_MAX)
		return FAULT(l, node, "more than %d name servers, a few do",
			     UPSTREAM_MAX);
	policy->upstream[policy->upstream_count] = ip;
	policy->upstream_port[policy->upstream_count++] = port;
	return 0;
}

static int load_dns(const struct loader *l, const struct node *map)
{
	static const char *const keys[] = { "upstream" };
	const struct node *list = NULL;
	int ret = expect_map(l, map, "'dns'");

	if (ret == 0)
		ret = sort_keys(l, map, keys, ARRAY_SIZE(keys), &list);
	if (ret < 0 || !list)
		return ret;
	ret = expect_list(l, list, "upstream", "[system] or [192.0.2.53]");
	if (ret < 0)
		return ret;
	if (!list->child)
		return FAULT(l, list, "'upstream' is empty, write [system]");
	if (l->draft->upstream_given)
		return FAULT(l, list,
			     "another file has 'upstream' too, keep "
			     "one");
	l->draft->upstream_given = true;
	l->draft->policy->upstream_system = false;
	for (const struct node *c = list->child; c && ret == 0; c = c->next)
		ret = load_server(l, c);
	return ret;
}

enum {
	T_VERSION,
	T_NAME,
	T_DEFAULT,
	T_EXTENDS,
	T_DNS,
	T_ALLOW,
	T_DENY,
	T_COUNT
};
static const char *const top_keys[T_COUNT] = {
	[T_VERSION] = "version", [T_NAME] = "name", [T_DEFAULT] = "default",
	[T_EXTENDS] = "extends", [T_DNS] = "dns",   [T_ALLOW] = "allow",
	[T_DENY] = "deny",
};

static int load_head(const struct loader *l, const struct node *root,
		     const struct node *const v[])
{
	const struct node *version = v[T_VERSION], *name = v[T_NAME];
	struct policy *policy = l->draft->policy;
	int ret;

	if (!version)
		return FAULT(l, root,
			     "'version' is missing, add \"version: "
			     "1\"");
	if (version->kind != NODE_SCALAR || !version->plain ||
	    strcmp(version->text, "1") != 0)
		return FAULT(l, version, "'version' is the number 1");
	if (v[T_DEFAULT] && (v[T_DEFAULT]->kind != NODE_SCALAR ||
			     strcmp(v[T_DEFAULT]->text, "deny") != 0))
		return FAULT(l, v[T_DEFAULT],
			     "'default' is \"deny\": hosts are allowed one by "
			     "one under 'allow'");
	if (!name)
		return 0;
	ret = expect_text(l, name, "name");
	if (ret < 0)
		return ret;
	if (!*name->text || strlen(name->text) > NAME_MAX_LEN ||
	    strpbrk(name->text, "\n\t"))
		return FAULT(l, name, "'name' is one line of 1 to %d bytes",
			     NAME_MAX_LEN);
	if (policy->name)
		return 0;
	policy->name = strdup(name->text);
	return policy->name ? 0 : -ENOMEM;
}

static int load_root(const struct loader *l, const struct node *root)
{
	const struct node *v[T_COUNT];
	int ret = expect_map(l, root, "a policy");

	if (ret == 0)
		ret = sort_keys(l, root, top_keys, T_COUNT, v);
	if (ret == 0)
		ret = load_head(l, root, v);
	if (ret == 0 && v[T_EXTENDS])
		ret = load_extends(l, v[T_EXTENDS]);
	if (ret == 0 && v[T_DNS])
		ret = load_dns(l, v[T_DNS]);
	if (ret == 0 && v[T_ALLOW])
		ret = load_entries(l, v[T_ALLOW], false);
	if (ret == 0 && v[T_DENY])
		ret = load_entries(l, v[T_DENY], true);
	return ret;
}

int load_yaml(struct draft *draft, const char *origin, const char *text,
	      size_t len)
{
	struct loader l = { .draft = draft,
			    .source = { .origin = origin, .err = draft->err } };
	struct node *root = NULL;
	int ret = tree_parse(text, len, &l.source, &root);

	if (ret < 0)
		return ret;
	if (!root)
		return source_fault(&l.source, 1, 1,
				    "the policy is empty, it starts with "
				    "\"version: 1\"");
	ret = load_root(&l, root);
	tree_free(root);
	return ret;
}
