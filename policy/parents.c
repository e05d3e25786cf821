/* SPDX-License-Identifier: Apache-2.0
 *
 * parents.c - the names above the allowed ones: they must exist in DNS (RFC
 * 8020).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/ceiling.h"
#include "policy/name_table.h"
#include "policy/rule.h"

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int tabulate_parents(struct policy *policy)
{
	int ret = 0;

	if (policy->parent_count > NAME_TABLE_LEAST)
		ret = name_table_new(policy->parent_count,
				     &policy->parent_table);
	if (!policy->parent_table)
		return ret;
	for (size_t i = 0; i < policy->parent_count && ret == 0; i++)
		name_table_add(policy->parent_table, policy->parent[i],
			       (uint32_t)i);
	return ret;
}

int parents_list(struct policy *policy)
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
	return tabulate_parents(policy);
}

static bool is_parent(const struct policy *policy, const char *host)
{
	struct name_probe probe;
	uint32_t i;

	if (!policy->parent_table)
		return policy->parent_count &&
		       bsearch(&host, policy->parent, policy->parent_count,
			       sizeof(*policy->parent), compare_text);
	probe = name_table_find(policy->parent_table, host);
	while (name_table_next(policy->parent_table, &probe, &i))
		if (strcmp(policy->parent[i], host) == 0)
			return true;
	return false;
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
