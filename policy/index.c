/* SPDX-License-Identifier: Apache-2.0
 *
 * index.c - rules sorted once, so that a verdict needs no list walk.
 *
 * Names: one array ordered by (name, exact before wildcard), and, where they
 * are many, a table of where each pattern begins; a look-up is one look (or one
 * binary search) for each label of the name asked for. Literal ranges: ordered
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

static struct group search_name(const struct rule_list *list, const char *host,
				bool wildcard)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare_pattern(list->at[mid], host, wildcard) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == list->count ||
	    compare_pattern(list->at[low], host, wildcard) != 0)
		return (struct group){ 0 };
	return (struct group){ list->at + low, list->at[low]->alike };
}

/* The rules of one pattern lie side by side. */
static struct group find_name(const struct rule_list *list, const char *host,
			      bool wildcard)
{
	struct name_probe probe;
	uint32_t i;

	if (!list->table)
		return search_name(list, host, wildcard);
	probe = name_table_find(list->table, host);
	while (name_table_next(list->table, &probe, &i))
		if (compare_pattern(list->at[i], host, wildcard) == 0)
			return (struct group){ list->at + i,
					       list->at[i]->alike };
	return (struct group){ 0 };
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

/* How many from the @i-th on have its pattern. */
static unsigned count_alike(const struct rule_list *list, size_t i)
{
	const struct rule *first = list->at[i];
	unsigned n = 1;

	while (i + n < list->count &&
	       compare_pattern(list->at[i + n], first->host, first->wildcard) ==
		       0)
		n++;
	return n;
}

static int fill_names(struct rule_list *list, const struct rule_list *all,
		      bool deny)
{
	int ret = fill(list, all, deny, false);

	if (ret == 0 && list->count > NAME_TABLE_LEAST)
		ret = name_table_new(list->count, &list->table);
	for (size_t i = 0; i < list->count && ret == 0;
	     i += list->at[i]->alike) {
		list->at[i]->alike = count_alike(list, i);
		if (list->table)
			name_table_add(list->table, list->at[i]->host,
				       (uint32_t)i);
	}
	return ret;
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
		group = (struct group){ list->at + i, list->at[i]->alike };
		if (choose_lead(policy, &group) < 0)
			return -ENOMEM;
	}
	return 0;
}

int index_build(struct policy *policy)
{
	const struct rule_list *all = &policy->all;
	int ret = fill_names(&policy->allow, all, false);

	if (ret == 0)
		ret = fill_names(&policy->deny, all, true);
	if (ret == 0)
		ret = fill_literals(&policy->allow_literal, all, false);
	if (ret == 0)
		ret = fill_literals(&policy->deny_literal, all, true);
	if (ret == 0)
		ret = fill_lists(&policy->lists, all);
	if (ret == 0)
		ret = choose_leads(policy);
	if (ret == 0)
		ret = parents_list(policy);
	return ret;
}
