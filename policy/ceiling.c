/* SPDX-License-Identifier: Apache-2.0
 *
 * ceiling.c - the operator's policy above a user's.
 *
 * Both are whole policies and are asked one after the other; nothing is merged
 * that could be merged wrongly. What is said once (limits, the log, the name
 * servers) is made the stricter when they are put together. Verdicts:
 * ceiling_decide.c.
 */
#include "policy/ceiling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define LITERALS_MAX 100000

/* --- what is said once --------------------------------------------------- */

static void smaller(unsigned *to, unsigned more)
{
	if (more < *to)
		*to = more;
}

uint64_t ceiling_smaller(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static void limits_meet(struct limits *to, const struct limits *more)
{
	smaller(&to->connections, more->connections);
	smaller(&to->connections_per_second, more->connections_per_second);
	smaller(&to->names, more->names);
	smaller(&to->names_per_wildcard, more->names_per_wildcard);
	smaller(&to->dns_per_second, more->dns_per_second);
	for (int i = UP; i <= DOWN; i++)
		to->budget[i] = ceiling_smaller(to->budget[i], more->budget[i]);
}

static void log_meet(struct log_settings *to, const struct log_settings *more)
{
	to->sign_every |= more->sign_every;
	to->durable |= more->durable;
	to->rotate_bytes =
		ceiling_smaller(to->rotate_bytes, more->rotate_bytes);
	to->rotate_s = (uint32_t)ceiling_smaller(to->rotate_s, more->rotate_s);
}

/* Names are asked for where the operator says, if he says so. */
static void upstream_meet(struct policy *to, const struct policy *ceiling)
{
	if (ceiling->upstream_system && !ceiling->upstream_count)
		return;
	memcpy(to->upstream, ceiling->upstream, sizeof(to->upstream));
	memcpy(to->upstream_port, ceiling->upstream_port,
	       sizeof(to->upstream_port));
	to->upstream_count = ceiling->upstream_count;
	to->upstream_system = ceiling->upstream_system;
}

/* --- literal ranges ------------------------------------------------------ */

static size_t ports_meet(const struct rule *a, const struct rule *b,
			 struct port_range *ret_range)
{
	size_t n = 0;

	for (size_t i = 0, j = 0; i < a->port_count && j < b->port_count;) {
		const struct port_range *x = &a->ports[i], *y = &b->ports[j];
		uint16_t first = x->first > y->first ? x->first : y->first;
		uint16_t last = x->last < y->last ? x->last : y->last;

		if (first <= last)
			ret_range[n++] = (struct port_range){ first, last };
		if (x->last < y->last)
			i++;
		else
			j++;
	}
	return n;
}

static int add_meeting(struct ceiling *c, const struct rule *narrow,
		       const struct rule *wide)
{
	struct meeting *grown;
	size_t cap = c->literals_cap ? c->literals_cap * 2 : 8;

	if (c->literals == LITERALS_MAX)
		return -EFBIG;
	if (c->literals == c->literals_cap) {
		grown = reallocarray(c->literal, cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		c->literal = grown;
		c->literals_cap = cap;
	}
	struct meeting *m = &c->literal[c->literals];
	m->cidr = narrow->literal;
	m->ports = calloc(narrow->port_count + wide->port_count,
			  sizeof(*m->ports));
	if (!m->ports)
		return -ENOMEM;
	m->count = ports_meet(narrow, wide, m->ports);
	c->literals++;
	if (m->count)
		return 0;
	/* No ports would mean all of them. */
	free(m->ports);
	c->literals--;
	return 0;
}

/* Each range of @narrow and the ranges of @wide around it. @equal: also those
 * that are the same. */
static int meet_literals(struct ceiling *c, const struct literal_list *narrow,
			 const struct literal_list *wide, bool equal)
{
	struct group group;
	int ret = 0;

	for (size_t i = 0; i < narrow->rules.count; i++) {
		const struct rule *rule = narrow->rules.at[i];
		const struct cidr *in = &rule->literal;

		for (size_t k = 0; index_literal(wide, &in->ip, k, &group);
		     k++) {
			if (wide->lengths.at[k].bits > in->bits ||
			    (wide->lengths.at[k].bits == in->bits && !equal))
				continue;
			for (size_t j = 0; j < group.count && ret == 0; j++)
				ret = add_meeting(c, rule, group.at[j]);
		}
		if (ret < 0)
			return ret;
	}
	return 0;
}

bool ceiling_literal(const struct ceiling *ceiling, size_t i, struct cidr *ret,
		     const struct port_range **ret_ports, size_t *ret_count)
{
	if (i >= ceiling->literals)
		return false;
	*ret = ceiling->literal[i].cidr;
	*ret_ports = ceiling->literal[i].ports;
	*ret_count = ceiling->literal[i].count;
	return true;
}

/* --- life ---------------------------------------------------------------- */

void ceiling_free(struct ceiling *ceiling)
{
	if (!ceiling)
		return;
	for (size_t i = 0; i < ceiling->buckets; i++) {
		struct joint *at = ceiling->bucket[i], *next;

		for (; at; at = next) {
			next = at->next;
			free(at);
		}
	}
	for (size_t i = 0; i < ceiling->literals; i++)
		free(ceiling->literal[i].ports);
	free(ceiling->literal);
	free(ceiling->bucket);
	free(ceiling->by_default.text);
	free(ceiling->by_default.origin);
	policy_unref(ceiling->policy);
	free(ceiling);
}

static int mark_rule(struct rule *rule)
{
	char *origin;

	rule->of_ceiling = true;
	if (asprintf(&origin, "ceiling %s", rule->origin) < 0)
		return -ENOMEM;
	free(rule->origin);
	rule->origin = origin;
	return 0;
}

static int mark_rules(struct ceiling *c, const char *origin)
{
	struct rule *rule = &c->by_default;
	struct rule_list *all = &c->policy->all;

	rule->deny = true;
	rule->doors = DOORS_ALL;
	rule->index = (unsigned)all->count;
	rule->text = strdup(c->policy->is_public ? "default: public"
						 : "default: deny");
	rule->origin = strdup(origin);
	if (!rule->text || !rule->origin || mark_rule(rule) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < all->count; i++)
		if (mark_rule(all->at[i]) < 0)
			return -ENOMEM;
	return 0;
}

int ceiling_attach(struct policy *policy, struct policy *ceiling,
		   const char *origin)
{
	struct ceiling *c = calloc(1, sizeof(*c));
	int ret;

	if (!c) {
		policy_unref(ceiling);
		return -ENOMEM;
	}
	policy->ceiling = c;
	c->policy = ceiling;
	ret = mark_rules(c, origin);
	if (ret == 0)
		ret = meet_literals(c, &policy->allow_literal,
				    &ceiling->allow_literal, true);
	if (ret == 0)
		ret = meet_literals(c, &ceiling->allow_literal,
				    &policy->allow_literal, false);
	if (ret < 0)
		return ret;
	limits_meet(&policy->limits, &ceiling->limits);
	log_meet(&policy->log, &ceiling->log);
	upstream_meet(policy, ceiling);
	policy->answers_real &= ceiling->answers_real;
	return 0;
}

const struct cell *policy_ceiling_cell(const struct policy *policy)
{
	return policy->ceiling ? &policy->ceiling->policy->cell : NULL;
}

const struct policy *ceiling_policy(const struct ceiling *ceiling)
{
	return ceiling->policy;
}

const struct rule *ceiling_default(const struct ceiling *ceiling)
{
	return &ceiling->by_default;
}
