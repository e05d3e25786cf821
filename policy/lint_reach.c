/* SPDX-License-Identifier: Apache-2.0
 *
 * lint_reach.c - rules that never decide, because another one always does
 * before, or that decide where their author may not expect it.
 */
#include <stdio.h>
#include <string.h>

#include "policy/explain_rule.h"
#include "policy/lint_impl.h"

/* --- one rule and another for the same pattern --------------------------- */

static bool has_text(const struct texts *texts, const char *text)
{
	for (size_t i = 0; i < texts->count; i++)
		if (strcmp(texts->at[i], text) == 0)
			return true;
	return false;
}

/* None are all. */
static bool texts_cover(const struct texts *wide, const struct texts *narrow)
{
	if (!wide->count)
		return true;
	if (!narrow->count)
		return false;
	for (size_t i = 0; i < narrow->count; i++)
		if (!has_text(wide, narrow->at[i]))
			return false;
	return true;
}

static bool ports_cover(const struct rule *wide, const struct rule *narrow)
{
	if (!wide->port_count)
		return true;
	for (size_t i = 0; i < narrow->port_count; i++) {
		const struct port_range *range = &narrow->ports[i];
		size_t j = 0;

		/* Merged: a range is inside one of the other's, or not. */
		while (j < wide->port_count &&
		       !(wide->ports[j].first <= range->first &&
			 wide->ports[j].last >= range->last))
			j++;
		if (j == wide->port_count)
			return false;
	}
	return narrow->port_count;
}

/* Does @wide fit whenever @narrow does, methods and paths aside? */
static bool fits_always(const struct rule *wide, const struct rule *narrow)
{
	return ports_cover(wide, narrow) &&
	       (wide->doors & narrow->doors) == narrow->doors &&
	       (!wide->expires_s ||
		(narrow->expires_s && wide->expires_s >= narrow->expires_s));
}

static bool same_requests(const struct rule *wide, const struct rule *narrow)
{
	return texts_cover(&wide->methods, &narrow->methods) &&
	       texts_cover(&wide->paths, &narrow->paths);
}

static void pair(struct linter *l, const struct rule *first,
		 const struct rule *second)
{
	bool judges = rule_judges_requests(first);

	if (rule_expired(first, l->now_s) || rule_expired(second, l->now_s))
		return;
	if (!judges && rule_judges_requests(second)) {
		if (fits_always(first, second))
			lint_found(l, second, LINT_NOT_JUDGED,
				   "%s allows the same without methods and "
				   "paths, so these mean nothing",
				   first->origin);
	} else if (judges && !rule_judges_requests(second)) {
		if (fits_always(second, first))
			lint_found(l, first, LINT_NOT_JUDGED,
				   "%s allows the same without methods and "
				   "paths, so these mean nothing",
				   second->origin);
	} else if (fits_always(first, second) && same_requests(first, second) &&
		   !second->dns_types && !second->address_count) {
		/* Record types and answers add up: such a rule has a use. */
		lint_found(l, second, LINT_SHADOWED,
			   "it never decides: %s allows the same before it",
			   first->origin);
	}
}

/* So many rules of one pattern are a machine's, and this is quadratic. */
#define GROUP_MAX 200

static void pairs(struct linter *l, const struct group *group)
{
	if (group->count > GROUP_MAX)
		return;
	for (size_t i = 1; i < group->count; i++) {
		size_t before = l->found.count + l->found.silenced;

		/* The first that shadows it will do. */
		for (size_t j = 0; j < i; j++) {
			pair(l, group->at[j], group->at[i]);
			if (l->found.count + l->found.silenced != before)
				break;
		}
	}
}

/* --- patterns beside each other ------------------------------------------ */

static const struct port_range *range_with(const struct rule *rule,
					   unsigned port)
{
	for (size_t i = 0; i < rule->port_count; i++)
		if (port >= rule->ports[i].first && port <= rule->ports[i].last)
			return &rule->ports[i];
	return NULL;
}

/* The last port from @port on that @group covers without a gap; 0: not even
 * @port. */
static unsigned covered_to(const struct group *group, unsigned port)
{
	unsigned to = 0;

	for (size_t i = 0; i < group->count; i++) {
		const struct port_range *range = range_with(group->at[i], port);

		if (range && range->last > to)
			to = range->last;
	}
	return to;
}

/* The last port before those from @port on that @group has. */
static unsigned open_until(const struct group *group, unsigned port)
{
	unsigned until = 65535;

	for (size_t i = 0; i < group->count; i++)
		for (size_t j = 0; j < group->at[i]->port_count; j++) {
			unsigned first = group->at[i]->ports[j].first;

			if (first > port && first - 1 < until)
				until = first - 1;
		}
	return until;
}

/* Ports of @rule that @group has not. */
static size_t ports_beyond(const struct rule *rule, const struct group *group,
			   struct port_range *ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < rule->port_count; i++) {
		unsigned last = rule->ports[i].last, to;

		for (unsigned p = rule->ports[i].first; p <= last && n < max;
		     p = to + 1) {
			to = covered_to(group, p);
			if (to)
				continue;
			to = open_until(group, p);
			if (to > last)
				to = last;
			ret[n++] = (struct port_range){ (uint16_t)p,
							(uint16_t)to };
		}
	}
	return n;
}

/* The more specific pattern decides alone, also about ports that it has not. */
static void narrower(struct linter *l, const struct group *group)
{
	struct cover cover = { .at = group->at[0]->host, .exact_done = true };
	struct port_range range[PORTS_MAX];
	struct group wider;
	char text[200];

	if (!index_next(&l->policy->allow, &cover, &wider))
		return;
	for (size_t i = 0; i < wider.count; i++) {
		size_t n = ports_beyond(wider.at[i], group, range, PORTS_MAX);

		if (!n)
			continue;
		lint_found(l, group->at[0], LINT_NARROWER,
			   "%s decides alone, so ports of %s (%s) are closed "
			   "here: %s",
			   group->at[0]->text, wider.at[i]->text,
			   wider.at[i]->origin,
			   ports_format(range, n, text, sizeof(text)));
		return;
	}
}

/* --- deny ---------------------------------------------------------------- */

/* A name that stands for all that the pattern decides. */
static bool name_of(const struct rule *rule, char *buf)
{
	if (rule->wildcard)
		return lint_name_below(rule->host, buf);
	snprintf(buf, HOST_MAX + 1, "%s", rule->host);
	return true;
}

/* The last rule that was needed to deny every port of @rule; NULL: one is
 * left. */
static const struct rule *denier(const struct linter *l,
				 const struct rule *rule)
{
	const struct rule *by = NULL;
	char name[HOST_MAX + 1];

	if (!name_of(rule, name))
		return NULL;
	for (size_t i = 0; i < rule->port_count; i++) {
		for (unsigned p = rule->ports[i].first;
		     p <= rule->ports[i].last; p++) {
			const struct port_range *range;

			by = denied_name(l->policy, name, (uint16_t)p);
			if (!by)
				return NULL;
			range = range_with(by, p);
			p = range ? range->last : 65535;
		}
	}
	return by;
}

static void denied(struct linter *l, const struct rule *rule)
{
	const struct rule *by = denier(l, rule);

	if (!by)
		by = denied_service(l->policy, rule);
	/* To deny is how one leaves something of a preset out. */
	if (by && strncmp(rule->origin, "preset ", 7) != 0)
		lint_found(l, rule, LINT_DENIED, "%s is denied by %s (%s)",
			   rule->text, by->text, by->origin);
}

static void denied_range(struct linter *l, const struct rule *rule)
{
	struct group group;

	for (size_t i = 0; index_literal(&l->policy->deny_literal,
					 &rule->literal.ip, i, &group);
	     i++) {
		if (!group.count ||
		    group.at[0]->literal.bits > rule->literal.bits)
			continue;
		lint_found(l, rule, LINT_DENIED, "%s is denied by %s (%s)",
			   rule->text, group.at[0]->text, group.at[0]->origin);
		return;
	}
}

/* Would anything that @rule denies be allowed without it? */
static bool is_needed(const struct policy *policy, const struct rule *rule)
{
	char name[HOST_MAX + 1];
	struct group group;

	if (policy->is_public || policy->observes || !name_of(rule, name))
		return true;
	struct cover cover = { .at = name };

	return index_next(&policy->allow, &cover, &group) ||
	       (rule->wildcard && policy_has_below(policy, rule->host));
}

void lint_reach(struct linter *l)
{
	const struct policy *policy = l->policy;
	const struct rule_list *allow = &policy->allow;
	struct group group;

	for (size_t i = 0; i < allow->count; i += group.count) {
		group = (struct group){ .at = allow->at + i, .count = 1 };
		while (i + group.count < allow->count &&
		       allow->at[i + group.count]->wildcard ==
			       allow->at[i]->wildcard &&
		       strcmp(allow->at[i + group.count]->host,
			      allow->at[i]->host) == 0)
			group.count++;
		pairs(l, &group);
		narrower(l, &group);
		for (size_t j = 0; j < group.count; j++)
			denied(l, group.at[j]);
	}
	for (size_t i = 0; i < policy->allow_literal.rules.count; i++)
		denied_range(l, policy->allow_literal.rules.at[i]);
	for (size_t i = 0; i < policy->deny.count; i++)
		if (!is_needed(policy, policy->deny.at[i]))
			lint_found(l, policy->deny.at[i], LINT_NEEDLESS_DENY,
				   "nothing that %s names is allowed anyway",
				   policy->deny.at[i]->text);
}
