/* SPDX-License-Identifier: Apache-2.0
 *
 * ceiling.c - the operator's policy above a user's.
 *
 * Both are whole policies and are asked one after the other; nothing is merged
 * that could be merged wrongly. What is said once (limits, the log, the name
 * servers) is made the stricter when they are put together. A verdict has one
 * rule, which is asked later for more: protocol, requests, budgets. So a pair
 * of rules that agree becomes a joint, made when they first meet and kept, for
 * others compare rules by where they are.
 */
#include "policy/ceiling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define JOINTS_MAX   200000 /* pairs of rules that met */
#define LITERALS_MAX 100000

/* Two rules that decided. @shown is the user's for the record; whether it has
 * a say is another question: one that is only observed has none. */
struct joint {
	struct rule rule; /* borrows its texts */
	const struct rule *shown;
	bool says;
	struct joint *next;
};

struct meeting {
	struct cidr cidr;
	struct port_range *ports;
	size_t count;
};

struct ceiling {
	struct policy *policy;
	struct rule by_default;
	struct joint **bucket;
	size_t buckets, joints;
	struct meeting *literal;
	size_t literals, literals_cap;
};

/* --- what is said once --------------------------------------------------- */

static void smaller(unsigned *to, unsigned more)
{
	if (more < *to)
		*to = more;
}

static uint64_t smaller_but_zero(uint64_t a, uint64_t b)
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
		to->budget[i] =
			smaller_but_zero(to->budget[i], more->budget[i]);
}

static void log_meet(struct log_settings *to, const struct log_settings *more)
{
	to->sign_every |= more->sign_every;
	to->durable |= more->durable;
	to->rotate_bytes =
		smaller_but_zero(to->rotate_bytes, more->rotate_bytes);
	to->rotate_s = (uint32_t)smaller_but_zero(to->rotate_s, more->rotate_s);
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

const struct policy *ceiling_policy(const struct ceiling *ceiling)
{
	return ceiling->policy;
}

const struct rule *ceiling_default(const struct ceiling *ceiling)
{
	return &ceiling->by_default;
}

/* --- joints -------------------------------------------------------------- */

struct rule_sides rule_sides(const struct rule *rule)
{
	if (rule && rule->ceiling_side)
		return (struct rule_sides){ rule->user_side,
					    rule->ceiling_side };
	if (rule && rule->user_side)
		return (struct rule_sides){ rule->user_side, NULL };
	return (struct rule_sides){ rule, NULL };
}

static enum wanted wanted_by(const struct rule *rule)
{
	return rule ? rule->wanted : WANTED_DEFAULT;
}

static bool is_either(enum wanted a, enum wanted b, enum wanted x,
		      enum wanted y)
{
	return (a == x && b == y) || (a == y && b == x);
}

/* Is there no protocol on @port that both want? */
static bool wanted_conflict(enum wanted a, enum wanted b, uint16_t port)
{
	return is_either(a, b, WANTED_TLS, WANTED_HTTP) ||
	       (port == 443 && is_either(a, b, WANTED_DEFAULT, WANTED_HTTP)) ||
	       (port == 80 && is_either(a, b, WANTED_DEFAULT, WANTED_TLS));
}

/* ANY has no wish, and the default none but on two ports. */
static enum wanted wanted_meet(enum wanted a, enum wanted b)
{
	if (a == WANTED_ANY || (a == WANTED_DEFAULT && b != WANTED_ANY))
		return b;
	return a;
}

/* Of two wildcards that cover one name, the wider counts for both. */
static const char *wildcard_meet(const struct rule *a, const struct rule *b)
{
	const char *x = a ? rule_wildcard(a) : NULL;
	const char *y = b ? rule_wildcard(b) : NULL;

	if (!x || !y)
		return x ? x : y;
	return strlen(y) < strlen(x) ? y : x;
}

static void fill_joint(struct joint *joint, const struct policy *policy,
		       const struct rule *c)
{
	const struct rule *u = joint->says ? joint->shown : NULL;
	const struct rule *face = joint->shown ? joint->shown : c;
	struct rule *rule = &joint->rule;

	*rule = *face;
	rule->user_side = u;
	rule->ceiling_side = c;
	rule->lead = NULL;
	rule->index = joint->shown ? face->index
				   : (unsigned)policy->all.count + c->index;
	rule->deny = false;
	rule->wide = wildcard_meet(joint->shown, c);
	rule->wanted = wanted_meet(wanted_by(u), wanted_by(c));
	rule->dns_types = u && c ? u->dns_types & c->dns_types : 0;
	if (!u || !rule_judges_requests(u)) {
		rule->methods = c ? c->methods : (struct texts){ 0 };
		rule->paths = c ? c->paths : (struct texts){ 0 };
	}
	rule->connect = u && u->connect.port ? u->connect
			: c		     ? c->connect
					     : (struct endpoint){ 0 };
	for (int i = UP; i <= DOWN; i++)
		rule->budget[i] = smaller_but_zero(u ? u->budget[i] : 0,
						   c ? c->budget[i] : 0);
	rule->expires_s = (int64_t)smaller_but_zero(
		u ? (uint64_t)u->expires_s : 0, c ? (uint64_t)c->expires_s : 0);
}

static size_t hash(const struct ceiling *c, const struct rule *shown,
		   const struct rule *of_ceiling, bool says)
{
	uint64_t key = (uint64_t)(uintptr_t)shown * 0x9e3779b97f4a7c15u;

	key ^= key >> 29;
	key = (key + (uint64_t)(uintptr_t)of_ceiling + says) *
	      0xbf58476d1ce4e5b9u;
	return (size_t)(key >> 32) & (c->buckets - 1);
}

static size_t bucket_of(const struct ceiling *c, const struct joint *joint)
{
	return hash(c, joint->shown, joint->rule.ceiling_side, joint->says);
}

/* Twice as many buckets, once there are as many joints as buckets. */
static int make_room(struct ceiling *c)
{
	struct ceiling wide = { .buckets = c->buckets ? c->buckets * 2 : 64 };

	if (c->joints < c->buckets)
		return 0;
	wide.bucket = calloc(wide.buckets, sizeof(struct joint *));
	if (!wide.bucket)
		return -ENOMEM;
	for (size_t i = 0; i < c->buckets; i++) {
		struct joint *at = c->bucket[i], *next;

		for (; at; at = next) {
			size_t to = bucket_of(&wide, at);

			next = at->next;
			at->next = wide.bucket[to];
			wide.bucket[to] = at;
		}
	}
	free(c->bucket);
	c->bucket = wide.bucket;
	c->buckets = wide.buckets;
	return 0;
}

/* The one rule of both; NULL without memory. */
static const struct rule *join(const struct policy *policy,
			       const struct rule *shown, bool says,
			       const struct rule *of_ceiling)
{
	struct ceiling *c = policy->ceiling;
	struct joint *joint;
	size_t at;

	if (c->buckets) {
		at = hash(c, shown, of_ceiling, says);
		for (joint = c->bucket[at]; joint; joint = joint->next)
			if (joint->shown == shown && joint->says == says &&
			    joint->rule.ceiling_side == of_ceiling)
				return &joint->rule;
	}
	if (c->joints == JOINTS_MAX || make_room(c) < 0)
		return NULL;
	joint = calloc(1, sizeof(*joint));
	if (!joint)
		return NULL;
	joint->shown = shown;
	joint->says = says;
	fill_joint(joint, policy, of_ceiling);
	at = bucket_of(c, joint);
	joint->next = c->bucket[at];
	c->bucket[at] = joint;
	c->joints++;
	return &joint->rule;
}

/* --- verdicts ------------------------------------------------------------ */

static bool same_place(const struct endpoint *a, const struct endpoint *b)
{
	return a->port == b->port && ip_equal(&a->ip, &b->ip);
}

/* A name may lead to a service on the user's word where the ceiling leads to
 * the same, or allows that address by itself; and on the ceiling's word where
 * the user does not deny the address. REASON_RULE: nothing is wrong. */
static enum reason connect_objection(const struct policy *policy,
				     const struct question *q,
				     const struct rule *user,
				     const struct rule *of_ceiling)
{
	const struct endpoint *to = user ? rule_connect(user) : NULL;
	const struct endpoint *over =
		of_ceiling ? rule_connect(of_ceiling) : NULL;

	if (!to && over)
		return !policy->observes && denied_address(policy, &over->ip)
			       ? REASON_DENY_RULE
			       : REASON_RULE;
	if (!to || (over && same_place(to, over)))
		return REASON_RULE;
	const struct question place = { .address = to->ip,
					.port = to->port,
					.door = q->door,
					.method = q->method,
					.path = q->path,
					.now_s = q->now_s };
	if (over || !decide_alone(policy->ceiling->policy, &place).allow)
		return REASON_FORBIDDEN_ADDRESS;
	return REASON_RULE;
}

static struct verdict refuse(const struct policy *policy, enum reason reason,
			     const struct rule *rule)
{
	return (struct verdict){
		.reason = reason,
		.rule = rule ? rule : &policy->ceiling->by_default,
	};
}

struct verdict ceiling_decide(const struct policy *policy,
			      const struct question *question,
			      const struct verdict *own)
{
	const struct question *q = question;
	struct verdict over = decide_alone(policy->ceiling->policy, q);
	const struct rule *user = verdict_has_rule(own) ? own->rule : NULL;
	struct verdict both = *own;
	enum reason reason;

	if (!own->allow)
		return *own;
	if (!over.allow)
		return refuse(policy, over.reason, over.rule);
	reason = connect_objection(policy, q, user, over.rule);
	if (reason == REASON_DENY_RULE)
		return refuse(policy, reason,
			      denied_service(policy, over.rule));
	if (reason != REASON_RULE)
		return refuse(policy, reason, over.rule);
	if (q->port &&
	    wanted_conflict(wanted_by(user), wanted_by(over.rule), q->port))
		return refuse(policy, REASON_PROTOCOL, over.rule);
	if (!user && !over.rule)
		return both;
	both.rule = join(policy, own->rule, user != NULL, over.rule);
	if (!both.rule)
		return refuse(policy, REASON_LIMIT_NAMES, over.rule);
	/* What is public for the user is there by the ceiling's rule. */
	if (own->reason == REASON_PUBLIC)
		both.reason = REASON_RULE;
	return both;
}
