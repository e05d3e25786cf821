/* SPDX-License-Identifier: Apache-2.0
 *
 * learn_plan.c - the same hosts in fewer lines, without opening much more.
 *
 * A preset is used if at least two hosts that it covers were reached, by two of
 * its rules, and those are a fifth of its rules; the one of which the largest
 * part was used comes first. A wildcard is used if that many names directly
 * below one domain were reached on the same ports; never below a public suffix,
 * nor where `check` knows of strangers, resolvers or shared hosts below the
 * domain. Neither is used if it would open what is to stay closed.
 */
#include <errno.h>
#include <libpsl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/learn_plan.h"
#include "policy/bundle.h"
#include "policy/policy.h"

#define PRESET_HOSTS_MIN 2
#define PRESET_RULES_MIN 2
#define PRESET_PART	 5 /* one rule in so many was used */
#define EXTENDS_MAX	 8

/* What one preset would do. */
struct candidate {
	const char *name;
	struct policy *policy;
	size_t rules; /* in it */
	size_t hosts, used;
};

void learn_plan_free(struct learn_plan *plan)
{
	if (plan)
		free(plan->wildcard);
	free(plan);
}

static bool allows(const struct policy *policy, const struct learn_host *host,
		   uint16_t port, const struct rule **ret_rule)
{
	struct question question = { .host = host->name,
				     .port = port,
				     .door = DOOR_CONNECT };
	struct verdict verdict = policy_decide(policy, &question);

	if (ret_rule)
		*ret_rule = verdict.rule;
	return verdict.allow;
}

/* All that @host needs, by @policy alone. */
static bool covers(const struct policy *policy, const struct learn_host *host,
		   const struct rule **ret_rule)
{
	if (host->literal || !learn_host_is_rule(host))
		return false;
	for (size_t i = 0; i < host->ports; i++) {
		const struct learn_port *port = &host->port[i];

		if (learn_is_rule(port) &&
		    (port->specials ||
		     !allows(policy, host, port->port, ret_rule)))
			return false;
	}
	return true;
}

static bool opens_closed(const struct policy *policy,
			 const struct learn_host *host)
{
	if (host->literal)
		return false;
	for (size_t i = 0; i < host->ports; i++)
		if (learn_is_closed(&host->port[i]) &&
		    allows(policy, host, host->port[i].port, NULL))
			return true;
	return learn_name_is_closed(host) && allows(policy, host, 0, NULL);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
	       c == '_';
}

static size_t count_rules(const char *name, unsigned depth);

/* The rules of the presets that are named in @len bytes. */
static size_t count_named(const char *s, size_t len, unsigned depth)
{
	char word[64];
	size_t n = 0, sum = 0;

	for (size_t i = 0; i <= len; i++) {
		if (i < len && is_word(s[i])) {
			if (n < sizeof(word) - 1)
				word[n++] = s[i];
			continue;
		}
		word[n] = '\0';
		n = 0;
		if (*word)
			sum += count_rules(word, depth);
	}
	return sum;
}

/* Rules of a preset and of what it extends, by its text, which is ours: an
 * entry a line. */
static size_t count_rules(const char *name, unsigned depth)
{
	size_t left, sum = 0;
	const char *s = preset_yaml(name, &left);
	bool allow = false, extends = false;

	if (!s || !depth)
		return 0;
	while (left) {
		const char *end = memchr(s, '\n', left);
		size_t len = end ? (size_t)(end - s) : left;
		size_t indent = 0;

		while (indent < len && s[indent] == ' ')
			indent++;
		if (len && !indent && *s != '#' && *s != '-') {
			allow = strncmp(s, "allow:", 6) == 0;
			extends = strncmp(s, "extends:", 8) == 0;
		}
		if (allow && indent + 1 < len && s[indent] == '-')
			sum++;
		if (extends && *s != '#')
			sum += count_named(s, len, depth - 1);
		len += end != NULL;
		s += len;
		left -= len;
	}
	return sum;
}

static int build_preset(const char *name, struct policy **ret_policy)
{
	struct bundle bundle = { 0 };
	struct policy_error error;
	char text[128];
	int n, r;

	n = snprintf(text, sizeof(text), "version: 1\nextends: [%s]\n", name);
	if (n < 0 || (size_t)n >= sizeof(text))
		return -EINVAL;
	r = bundle_add(&bundle, BUNDLE_FILE, "learn", text, (size_t)n);
	if (r == 0)
		r = policy_build(bundle.data, bundle.len, ret_policy, &error);
	bundle_free(&bundle);
	return r;
}

/* How much of it was used, by hosts that no preset covers yet. */
static void measure(const struct learn_table *table, struct candidate *c)
{
	const struct rule *used[256], *rule;

	c->hosts = c->used = 0;
	for (size_t i = 0; i < table->hosts; i++) {
		size_t k = 0;

		if (table->host[i]->preset ||
		    !covers(c->policy, table->host[i], &rule))
			continue;
		c->hosts++;
		while (k < c->used && used[k] != rule)
			k++;
		if (k == c->used && k < ARRAY_SIZE(used))
			used[c->used++] = rule;
	}
}

static bool is_worth_it(const struct candidate *c)
{
	return c->hosts >= PRESET_HOSTS_MIN && c->used >= PRESET_RULES_MIN &&
	       c->used * PRESET_PART >= c->rules;
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
	size_t x, y;

	if (!b)
		return true;
	x = a->used * b->rules;
	y = b->used * a->rules;
	return x != y ? x > y : a->hosts > b->hosts;
}

static void use_preset(struct learn_table *table, struct learn_plan *plan,
		       const struct candidate *c)
{
	for (size_t i = 0; i < table->hosts; i++)
		if (!table->host[i]->preset &&
		    covers(c->policy, table->host[i], NULL))
			table->host[i]->preset = c->name;
	plan->preset[plan->presets++] = (struct learn_preset){
		.name = c->name,
		.covers = c->hosts,
	};
}

/* Keeps those that open nothing that is closed. */
static int gather(const struct learn_table *table, struct candidate *c,
		  size_t max, size_t *ret_n)
{
	const char *name;

	for (size_t i = 0; (name = preset_name(i)) && *ret_n < max; i++) {
		struct candidate *new = &c[*ret_n];
		bool bad = false;
		int r;

		*new = (struct candidate){ .name = name };
		r = build_preset(name, &new->policy);
		if (r < 0)
			return r;
		for (size_t k = 0; k < table->hosts && !bad; k++)
			bad = opens_closed(new->policy, table->host[k]);
		new->rules = count_rules(name, EXTENDS_MAX);
		if (bad || !new->rules)
			policy_unref(new->policy);
		else
			++*ret_n;
	}
	return 0;
}

static int plan_presets(struct learn_table *table, struct learn_plan *plan)
{
	struct candidate c[ARRAY_SIZE(plan->preset)], *best;
	size_t n = 0;
	int r = gather(table, c, ARRAY_SIZE(c), &n);

	do {
		best = NULL;
		for (size_t i = 0; r == 0 && i < n; i++) {
			measure(table, &c[i]);
			if (is_worth_it(&c[i]) && is_better(&c[i], best))
				best = &c[i];
		}
		if (best)
			use_preset(table, plan, best);
	} while (best && plan->presets < ARRAY_SIZE(plan->preset));
	for (size_t i = 0; i < n; i++)
		policy_unref(c[i].policy);
	return r;
}

/* Could a wildcard stand for it? */
static bool is_plain(const struct learn_host *host)
{
	if (host->literal || host->preset || !learn_host_is_rule(host))
		return false;
	for (size_t i = 0; i < host->ports; i++)
		if (host->port[i].fate != FATE_RULE || host->port[i].specials)
			return false;
	return true;
}

static bool same_ports(const struct learn_host *a, const struct learn_host *b)
{
	if (a->ports != b->ports)
		return false;
	for (size_t i = 0; i < a->ports; i++)
		if (a->port[i].port != b->port[i].port)
			return false;
	return true;
}

static const char *parent_of(const struct learn_host *host)
{
	const char *dot = strchr(host->name, '.');

	return dot ? dot + 1 : NULL;
}

/* Names directly below @parent that want what @like wants; 0 if there may be no
 * wildcard. @first is where the names below @parent begin. */
static size_t count_like(const struct learn_table *table, size_t first,
			 const char *parent, const struct learn_host *like)
{
	size_t n = 0;

	for (size_t i = first; i < table->hosts; i++) {
		const struct learn_host *host = table->host[i];

		if (host->literal || !host_below(host->name, parent))
			break;
		/* What a preset's shorter pattern covers would be decided by
		 * the wildcard alone. */
		if (host->tunnel || host->preset || learn_name_is_closed(host))
			return 0;
		if (is_plain(host) && same_ports(host, like) &&
		    strcmp(parent_of(host), parent) == 0)
			n++;
	}
	return n;
}

static bool may_be_wildcard(const psl_ctx_t *psl, const struct learn_host *host,
			    const char *parent)
{
	return parent && host->zone && host->zone != host->name &&
	       parent <= host->zone && !psl_is_public_suffix(psl, parent) &&
	       !learn_is_listed(parent) && !learn_caution(parent) &&
	       !learn_hides_listed(parent);
}

static int use_wildcard(struct learn_table *table, struct learn_plan *plan,
			size_t first, const char *parent,
			struct learn_host *like)
{
	struct learn_wildcard *grown = reallocarray(
		plan->wildcard, plan->wildcards + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	plan->wildcard = grown;
	grown += plan->wildcards++;
	*grown = (struct learn_wildcard){ .parent = parent, .like = like };
	for (size_t i = first; i < table->hosts; i++) {
		struct learn_host *host = table->host[i];

		if (host->literal || !host_below(host->name, parent))
			break;
		/* Deeper ones may come under a longer wildcard, which would
		 * decide alone. */
		if (is_plain(host) && same_ports(host, like) &&
		    strcmp(parent_of(host), parent) == 0) {
			host->by_wildcard = true;
			grown->covers++;
		}
	}
	return 0;
}

static bool has_wildcard(const struct learn_plan *plan, const char *parent)
{
	for (size_t i = 0; i < plan->wildcards; i++)
		if (strcmp(plan->wildcard[i].parent, parent) == 0)
			return true;
	return false;
}

/* One wildcard a parent, since two would add up: the one for the ports that
 * come first. */
static int plan_wildcards(struct learn_table *table, struct learn_plan *plan,
			  size_t min)
{
	psl_ctx_t *psl = psl_latest(NULL);
	int r = 0;

	if (!psl)
		return -ENODATA;
	for (size_t i = 0; i < table->hosts && r == 0; i++) {
		struct learn_host *host = table->host[i];
		const char *parent = parent_of(host);
		size_t first = i;

		if (host->by_wildcard || !is_plain(host) ||
		    !may_be_wildcard(psl, host, parent) ||
		    has_wildcard(plan, parent))
			continue;
		while (first && !table->host[first - 1]->literal &&
		       host_below(table->host[first - 1]->name, parent))
			first--;
		if (count_like(table, first, parent, host) < min)
			continue;
		r = use_wildcard(table, plan, first, parent, host);
	}
	psl_free(psl);
	return r;
}

int learn_plan(struct learn_table *table, const struct learn_options *options,
	       struct learn_plan **ret_plan)
{
	struct learn_plan *plan = calloc(1, sizeof(*plan));
	int r = 0;

	if (!plan)
		return -ENOMEM;
	/* With names left out, nobody knows what else would be opened. */
	if (!table->dropped)
		r = plan_presets(table, plan);
	if (r == 0 && !table->dropped)
		r = plan_wildcards(table, plan, options->wildcard_min);
	if (r < 0) {
		learn_plan_free(plan);
		return r;
	}
	for (size_t i = 0; i < table->hosts; i++) {
		const struct learn_host *host = table->host[i];

		plan->rules += learn_host_is_rule(host) && !host->preset &&
			       !host->by_wildcard;
	}
	*ret_plan = plan;
	return 0;
}
