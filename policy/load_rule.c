/* SPDX-License-Identifier: Apache-2.0
 *
 * load_rule.c - the entries of `allow` and `deny`: where they lead to, and on
 * which ports.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/load_impl.h"
#include "policy/presets.h"

const char *const entry_keys[E_COUNT] = {
	[E_HOST] = "host",	   [E_ADDRESS] = "address",
	[E_FILE] = "file",	   [E_PORTS] = "ports",
	[E_NOTE] = "note",	   [E_ADDRESSES] = "addresses",
	[E_METHODS] = "methods",   [E_PATHS] = "paths",
	[E_PROTOCOL] = "protocol", [E_CONNECT] = "connect",
	[E_DOORS] = "doors",	   [E_DNS] = "dns",
	[E_EXPIRES] = "expires",   [E_UPLOAD] = "upload",
	[E_DOWNLOAD] = "download", [E_TLS] = "tls",
};

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
			return load_fault(l, c, "port", why);
	}
	return rule_set_ports(rule, range, n);
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
		return load_fault(l, node, "host", why);
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
		return load_fault(l, node, "address range", why);
	return add_rule(l, node, &target, deny, ret_rule);
}

/* The string form. A preset's name here is a slip that would never match. */
static int load_plain_entry(const struct loader *l, const struct node *node,
			    bool deny)
{
	struct rule *rule;

	if (strncmp(node_type(node), "a text", 6) != 0)
		return FAULT(l, node, "an entry is a host or a mapping, not %s",
			     node_type(node));
	if (!deny && !strchr(node->text, '.') && preset_find(node->text) >= 0)
		return FAULT(l, node,
			     "'%s' is a preset, write it under 'extends'",
			     node->text);
	return load_host(l, node, deny, &rule);
}

static int check_deny(const struct loader *l, const struct node *const v[])
{
	if (v[E_ADDRESSES])
		return FAULT(l, v[E_ADDRESSES],
			     "'addresses' permits answers, to deny a range "
			     "write an entry with 'address'");
	if (v[E_EXPIRES])
		return FAULT(l, v[E_EXPIRES],
			     "what is denied stays denied, only entries of "
			     "'allow' expire");
	for (size_t i = E_ADDRESSES; i < E_COUNT; i++)
		if (v[i])
			return FAULT(l, v[i],
				     "'%s' goes with entries of 'allow', a "
				     "denied host is denied whatever is asked",
				     entry_keys[i]);
	if (v[E_ADDRESS] && v[E_PORTS])
		return FAULT(l, v[E_PORTS],
			     "a denied address range is denied on every port, "
			     "leave 'ports' out");
	if (v[E_FILE] && v[E_PORTS])
		return FAULT(l, v[E_PORTS],
			     "listed names are denied on every port, leave "
			     "'ports' out");
	return 0;
}

static int check_allow(const struct loader *l, const struct node *const v[])
{
	if (v[E_FILE])
		return FAULT(l, v[E_FILE],
			     "lists of names go under 'deny', allowed hosts "
			     "are written out");
	if (v[E_ADDRESSES] && v[E_ADDRESS])
		return FAULT(l, v[E_ADDRESSES],
			     "'addresses' goes with 'host', the range itself "
			     "is in 'address'");
	if (v[E_CONNECT] && v[E_ADDRESS])
		return FAULT(l, v[E_CONNECT],
			     "'connect' gives a name to a service, it goes "
			     "with 'host'");
	if (v[E_DNS] && v[E_ADDRESS])
		return FAULT(l, v[E_DNS],
			     "'dns' is about a name, it goes with 'host'");
	return 0;
}

static int check_entry(const struct loader *l, const struct node *map,
		       const struct node *const v[], bool deny)
{
	int where = !!v[E_HOST] + !!v[E_ADDRESS] + !!v[E_FILE];
	int ret;

	if (where != 1)
		return FAULT(l, map,
			     deny ? "an entry has either 'host', 'address' or "
				    "'file'"
				  : "an entry has either 'host' or 'address'");
	ret = deny ? check_deny(l, v) : check_allow(l, v);
	if (ret == 0 && v[E_NOTE])
		ret = expect_note(l, v[E_NOTE]);
	return ret;
}

static int load_mapping(const struct loader *l, const struct node *map,
			bool deny)
{
	const struct node *v[E_COUNT];
	struct rule *rule = NULL;
	int ret = load_keys(l, map, entry_keys, E_COUNT, v);

	if (ret == 0)
		ret = check_entry(l, map, v, deny);
	if (ret < 0)
		return ret;
	if (v[E_FILE])
		return load_list(l, v[E_FILE]);
	if (v[E_HOST])
		ret = load_host(l, v[E_HOST], deny, &rule);
	else
		ret = load_address(l, v[E_ADDRESS], deny, &rule);
	if (ret == 0 && v[E_PORTS])
		ret = load_ports(l, v[E_PORTS], rule);
	if (ret == 0 && v[E_NOTE]) {
		rule->note = strdup(v[E_NOTE]->text);
		ret = rule->note ? 0 : -ENOMEM;
	}
	return ret < 0 ? ret : load_extras(l, v, rule);
}

static int load_entry(const struct loader *l, const struct node *node,
		      bool deny)
{
	if (node->kind == NODE_SCALAR)
		return load_plain_entry(l, node, deny);
	if (node->kind == NODE_MAP)
		return load_mapping(l, node, deny);
	return FAULT(l, node, "an entry is a host or a mapping, not %s",
		     node_type(node));
}

int load_entries(const struct loader *l, const struct node *list, bool deny)
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
