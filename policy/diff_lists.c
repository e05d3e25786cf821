/* SPDX-License-Identifier: Apache-2.0
 *
 * diff_lists.c - names that one policy denies by a list and the other one
 * allows. There may be millions: they are counted, and a few are named.
 */
#include <stdio.h>
#include <string.h>

#include "policy/diff_impl.h"
#include "policy/nameset.h"

#define NAMED_MAX 3

/* May @name be reached by somebody, on some port? */
static bool may_reach(const struct policy *policy, const char *name)
{
	struct cover cover = { .at = name };
	struct group group;

	if (denied_name(policy, name, 0))
		return false;
	return policy->is_public || index_next(&policy->allow, &cover, &group);
}

/* Of what is below, a name that stands for those that nobody wrote. */
static bool differs(const struct differ *d, const struct policy *other,
		    const struct nameset_item *item)
{
	char below[HOST_MAX + 1];

	if ((item->kind & NAMESET_EXACT) && may_reach(other, item->name))
		return true;
	if (!(item->kind & NAMESET_BELOW))
		return false;
	return diff_name_below(d, item->name, below) && may_reach(other, below);
}

static size_t compare(const struct differ *d, const struct nameset *set,
		      const struct policy *other, struct change *names)
{
	struct nameset_cursor cursor = { 0 };
	struct nameset_item item;
	size_t n = 0;

	while (nameset_next(set, &cursor, &item)) {
		if (!differs(d, other, &item))
			continue;
		if (n++ < NAMED_MAX)
			change_add(names, DIFF_OTHERWISE, "%s%s",
				   item.kind == NAMESET_BELOW ? "*." : "",
				   item.name);
	}
	return n;
}

void diff_lists(struct differ *d, int of)
{
	const struct rule_list *list = &d->policy[of]->lists;

	for (size_t i = 0; i < list->count; i++) {
		const struct rule *rule = list->at[i];
		struct change names = { .any = false };
		char detail[sizeof(names.text) + 40];
		size_t n = compare(d, rule->list, d->policy[!of], &names);

		if (!n)
			continue;
		snprintf(detail, sizeof(detail), "%zu name%s: %s%s", n,
			 n == 1 ? "" : "s", names.text,
			 n > NAMED_MAX ? "; ..." : "");
		diff_add(d,
			 &(struct difference){ .sign = of == WAS ? DIFF_ADDED
								 : DIFF_REMOVED,
					       .kind = DIFF_DENY_LIST,
					       .what = rule->text,
					       .detail = detail,
					       .was = of == WAS ? rule : NULL,
					       .is = of == IS ? rule : NULL });
	}
}
