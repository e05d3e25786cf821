/* SPDX-License-Identifier: Apache-2.0
 *
 * index.c - rules sorted once, so that a verdict needs no list walk.
 *
 * Names: one array ordered by (name, exact before wildcard); a look-up is one
 * binary search for each label of the name asked for. Literal ranges: ordered
 * by (family, prefix length, address); one binary search for each length in
 * use.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/ceiling.h"
#include "policy/rule.h"

static int compare_index(const struct rule *a, const struct rule *b)
{
	return (a->index > b->index) - (a->index < b->index);
}

static int compare_pattern(const struct rule *a, const char *host,
			   bool wildcard)
{
	int c = strcmp(a->host, host);

	return c ? c : (int)a->wildcard - (int)wildcard;
}

static int compare_names(const void *a, const void *b)
{
	const struct rule *x = *(struct rule *const *)a;
	const struct rule *y = *(struct rule *const *)b;
	int c = compare_pattern(x, y->host, y->wildcard);

	return c ? c : compare_index(x, y);
}

static int compare_cidr(const struct cidr *a, const struct cidr *b)
{
	if (a->ip.len != b->ip.len)
		return a->ip.len - b->ip.len;
	/* Longer prefixes first: the most specific range is found first. */
	if (a->bits != b->bits)
		return b->bits - a->bits;
	return memcmp(a->ip.byte, b->ip.byte, sizeof(a->ip.byte));
}

static int compare_literals(const void *a, const void *b)
{
	const struct rule *x = *(struct rule *const *)a;
	const struct rule *y = *(struct rule *const *)b;
	int c = compare_cidr(&x->literal, &y->literal);

	return c ? c : compare_index(x, y);
}

/* The rules of one pattern lie side by side; finds the first. */
static struct group find_name(const struct rule_list *list, const char *host,
			      bool wildcard)
{
	size_t low = 0, high = list->count, end;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare_pattern(list->at[mid], host, wildcard) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (end = low; end < list->count; end++)
		if (compare_pattern(list->at[end], host, wildcard) != 0)
			break;
	return (struct group){ .at = list->at + low, .count = end - low };
}

bool index_next(const struct rule_list *list, struct cover *cover,
		struct group *ret_group)
{
	if (!list->count)
		return false;
	if (!cover->exact_done) {
		cover->exact_done = true;
		*ret_group = find_name(list, cover->at, false);
		if (ret_group->count)
			return true;
	}
	while ((cover->at = strchr(cover->at, '.'))) {
		cover->at++;
		*ret_group = find_name(list, cover->at, true);
		if (ret_group->count)
			return true;
	}
	/* Stays at its end if it is asked again. */
	cover->at = "";
	return false;
}

static struct cidr prefix_of(const struct ip *ip, uint8_t bits)
{
	struct cidr cidr = { .ip = *ip, .bits = bits };

	for (unsigned i = 0; i < ip->len; i++) {
		unsigned keep = bits > i * 8 ? bits - i * 8 : 0;

		if (keep < 8)
			cidr.ip.byte[i] &= (uint8_t)(0xff00 >> keep);
	}
	return cidr;
}

bool index_literal(const struct literal_list *list, const struct ip *ip,
		   size_t i, struct group *ret_group)
{
	const struct rule_list *rules = &list->rules;
	size_t low = 0, high = rules->count, end;

	if (i >= list->lengths.count)
		return false;
	*ret_group = (struct group){ 0 };
	if (list->lengths.at[i].len != ip->len)
		return true;

	struct cidr key = prefix_of(ip, list->lengths.at[i].bits);
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare_cidr(&rules->at[mid]->literal, &key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (end = low; end < rules->count; end++)
		if (compare_cidr(&rules->at[end]->literal, &key) != 0)
			break;
	*ret_group = (struct group){ rules->at + low, end - low };
	return true;
}

static int fill(struct rule_list *list, const struct rule_list *all, bool deny,
		bool literal)
{
	list->at = calloc(all->count + 1, sizeof(*list->at));
	if (!list->at)
		return -ENOMEM;
	for (size_t i = 0; i < all->count; i++) {
		struct rule *rule = all->at[i];

		if (!rule->list && rule->deny == deny && !rule->host == literal)
			list->at[list->count++] = rule;
	}
	qsort(list->at, list->count, sizeof(*list->at),
	      literal ? compare_literals : compare_names);
	return 0;
}

static int fill_lists(struct rule_list *list, const struct rule_list *all)
{
	list->at = calloc(all->count + 1, sizeof(*list->at));
	if (!list->at)
		return -ENOMEM;
	for (size_t i = 0; i < all->count; i++)
		if (all->at[i]->list)
			list->at[list->count++] = all->at[i];
	return 0;
}

static int fill_literals(struct literal_list *list, const struct rule_list *all,
			 bool deny)
{
	struct prefix_lengths *lengths = &list->lengths;
	int ret = fill(&list->rules, all, deny, true);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < list->rules.count; i++) {
		const struct cidr *cidr = &list->rules.at[i]->literal;
		struct prefix_length *last = lengths->at + lengths->count;

		if (lengths->count && last[-1].len == cidr->ip.len &&
		    last[-1].bits == cidr->bits)
			continue;
		*last = (struct prefix_length){ cidr->ip.len, cidr->bits };
		lengths->count++;
	}
	return 0;
}

static void *append_copy(void *base, size_t have, const void *more, size_t n,
			 size_t size)
{
	char *grown = realloc(base, (have + n) * size);

	if (grown && n)
		memcpy(grown + have * size, more, n * size);
	return grown;
}

/* Adds what @from permits to @to. */
static int absorb(struct rule *to, const struct rule *from)
{
	void *grown;

	if (from->port_count) {
		grown = append_copy(to->ports, to->port_count, from->ports,
				    from->port_count, sizeof(*to->ports));
		if (!grown)
			return -ENOMEM;
		to->ports = grown;
		to->port_count = ports_merge(to->ports,
					     to->port_count + from->port_count);
	}
	if (from->address_count) {
		grown = append_copy(to->addresses, to->address_count,
				    from->addresses, from->address_count,
				    sizeof(*to->addresses));
		if (!grown)
			return -ENOMEM;
		to->addresses = grown;
		to->address_count += from->address_count;
	}
	return 0;
}

static void drop_rule(struct rule **rule)
{
	rule_free(*rule);
}

/* Several rules for one pattern permit different address ranges on different
 * ports, and a DNS question has no port: it is answered by their union. */
static int make_union(struct policy *policy, const struct group *group)
{
	const struct rule *first = group->at[0];
	struct rule **grown = reallocarray(
		policy->all.at, policy->all.count + 1, sizeof(*policy->all.at));
	if (!grown)
		return -ENOMEM;
	policy->all.at = grown;

	__attribute__((cleanup(drop_rule))) struct rule *rule =
		calloc(1, sizeof(*rule));
	if (!rule)
		return -ENOMEM;
	rule->wildcard = first->wildcard;
	rule->doors = DOORS_ALL; /* asked only where one of them would do */
	rule->dns_types = first->dns_types;
	rule->index = (unsigned)policy->all.count;
	rule->host = strdup(first->host);
	rule->text = strdup(first->text);
	rule->origin = strdup(first->origin);
	if (!rule->host || !rule->text || !rule->origin)
		return -ENOMEM;
	for (size_t i = 0; i < group->count; i++)
		if (absorb(rule, group->at[i]) < 0)
			return -ENOMEM;
	group->at[0]->lead = rule;
	policy->all.at[policy->all.count++] = STEAL(rule);
	return 0;
}

/* A DNS question has no port: what one rule of the pattern says of record
 * types holds for all of them. */
static void share_types(const struct group *group)
{
	uint8_t types = 0;

	for (size_t i = 0; i < group->count; i++)
		types |= group->at[i]->dns_types;
	for (size_t i = 0; i < group->count; i++)
		group->at[i]->dns_types = types;
}

static int choose_lead(struct policy *policy, const struct group *group)
{
	struct rule *lead = group->at[0];
	size_t n = 0;

	share_types(group);
	for (size_t i = 0; i < group->count; i++) {
		/* There may be no such name but here. */
		if (rule_connect(group->at[i])) {
			group->at[0]->lead = group->at[i];
			return 0;
		}
		if (group->at[i]->address_count && !n++)
			lead = group->at[i];
	}
	group->at[0]->lead = lead;
	return n > 1 ? make_union(policy, group) : 0;
}

static int choose_leads(struct policy *policy)
{
	const struct rule_list *list = &policy->allow;
	struct group group;

	for (size_t i = 0; i < list->count; i += group.count) {
		group = find_name(list, list->at[i]->host,
				  list->at[i]->wildcard);
		if (choose_lead(policy, &group) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names above the allowed ones: they must exist in DNS (RFC 8020). */
static int list_parents(struct policy *policy)
{
	const struct rule_list *list = &policy->allow;
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		n += list->at[i]->wildcard;
		for (const char *p = list->at[i]->host; (p = strchr(p, '.'));
		     p++)
			n++;
	}
	policy->parent = calloc(n + 1, sizeof(*policy->parent));
	if (!policy->parent)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < list->count; i++) {
		const char *p = list->at[i]->host;

		if (list->at[i]->wildcard)
			policy->parent[n++] = p;
		while ((p = strchr(p, '.')))
			policy->parent[n++] = ++p;
	}
	qsort(policy->parent, n, sizeof(*policy->parent), compare_text);
	for (size_t i = 0; i < n; i++)
		if (!kept ||
		    strcmp(policy->parent[kept - 1], policy->parent[i]) != 0)
			policy->parent[kept++] = policy->parent[i];
	policy->parent_count = kept;
	return 0;
}

static bool is_parent(const struct policy *policy, const char *host)
{
	return policy->parent_count &&
	       bsearch(&host, policy->parent, policy->parent_count,
		       sizeof(*policy->parent), compare_text);
}

/* May a name below @host be allowed, by whatever words? */
static bool may_have_below(const struct policy *policy, const char *host)
{
	struct cover cover = { .at = host };
	struct group group;

	if (policy->observes || policy->is_public || is_parent(policy, host))
		return true;
	while (index_next(&policy->allow, &cover, &group))
		if (group.at[0]->wildcard)
			return true;
	return false;
}

bool policy_has_below(const struct policy *policy, const char *host)
{
	if (!policy->ceiling)
		return is_parent(policy, host);
	return may_have_below(policy, host) &&
	       may_have_below(ceiling_policy(policy->ceiling), host) &&
	       (is_parent(policy, host) ||
		is_parent(ceiling_policy(policy->ceiling), host));
}

int index_build(struct policy *policy)
{
	const struct rule_list *all = &policy->all;

	if (fill(&policy->allow, all, false, false) < 0 ||
	    fill(&policy->deny, all, true, false) < 0 ||
	    fill_literals(&policy->allow_literal, all, false) < 0 ||
	    fill_literals(&policy->deny_literal, all, true) < 0 ||
	    fill_lists(&policy->lists, all) < 0 || choose_leads(policy) < 0 ||
	    list_parents(policy) < 0)
		return -ENOMEM;
	return 0;
}
