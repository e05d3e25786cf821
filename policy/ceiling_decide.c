/* SPDX-License-Identifier: Apache-2.0
 *
 * ceiling_decide.c - what a user's policy and its ceiling say together.
 *
 * A verdict has one rule, which is asked later for more: protocol, requests,
 * budgets. So a pair of rules that agree becomes a joint, made when they first
 * meet and kept, for others compare rules by where they are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/ceiling.h"

#define JOINTS_MAX 200000 /* pairs of rules that met */

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
	rule->ech = ech_stricter(u ? u->ech : ECH_DEFAULT,
				 c ? c->ech : ECH_DEFAULT);
	rule->dns_types = u && c ? u->dns_types & c->dns_types : 0;
	if (!u || !rule_judges_requests(u)) {
		rule->methods = c ? c->methods : (struct texts){ 0 };
		rule->paths = c ? c->paths : (struct texts){ 0 };
	}
	rule->connect = u && u->connect.port ? u->connect
			: c		     ? c->connect
					     : (struct endpoint){ 0 };
	for (int i = UP; i <= DOWN; i++)
		rule->budget[i] = ceiling_smaller(u ? u->budget[i] : 0,
						  c ? c->budget[i] : 0);
	rule->expires_s = (int64_t)ceiling_smaller(
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
