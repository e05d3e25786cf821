/* SPDX-License-Identifier: Apache-2.0
 *
 * diff_reach.c - what two policies make of one name or address: on every range
 * of ports that their rules tell apart, through the proxy and directly.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/diff_impl.h"
#include "policy/explain_rule.h"

/* --- where rules tell ports apart ---------------------------------------- */

struct cuts {
	unsigned *at; /* first ports of ranges */
	size_t count, cap;
	int error;
};

static void cut(struct cuts *cuts, unsigned port)
{
	if (cuts->count == cuts->cap) {
		size_t cap = cuts->cap ? cuts->cap * 2 : 64;
		unsigned *grown = reallocarray(cuts->at, cap, sizeof(*grown));

		if (!grown) {
			cuts->error = -ENOMEM;
			return;
		}
		cuts->at = grown;
		cuts->cap = cap;
	}
	cuts->at[cuts->count++] = port;
}

static void cut_group(struct cuts *cuts, const struct group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		const struct rule *rule = group->at[i];

		for (size_t j = 0; j < rule->port_count; j++) {
			cut(cuts, rule->ports[j].first);
			cut(cuts, rule->ports[j].last + 1u);
		}
	}
}

static void cut_name(struct cuts *cuts, const struct policy *policy,
		     const char *host)
{
	struct cover allow = { .at = host }, deny = { .at = host };
	struct group group;

	if (index_next(&policy->allow, &allow, &group))
		cut_group(cuts, &group);
	while (index_next(&policy->deny, &deny, &group))
		cut_group(cuts, &group);
}

static void cut_address(struct cuts *cuts, const struct policy *policy,
			const struct ip *ip)
{
	struct group group;

	for (size_t i = 0; index_literal(&policy->allow_literal, ip, i, &group);
	     i++)
		cut_group(cuts, &group);
}

static int compare(const void *a, const void *b)
{
	const unsigned *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int find_cuts(const struct differ *d, const struct subject *subject,
		     struct cuts *ret)
{
	static const unsigned always[] = { 1, 80, 81, 443, 444, 65536 };
	size_t kept = 0;

	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		cut(ret, always[i]);
	for (int i = WAS; i <= IS; i++) {
		if (subject->host)
			cut_name(ret, d->policy[i], subject->host);
		else
			cut_address(ret, d->policy[i], &subject->address);
	}
	if (ret->error)
		return ret->error;
	qsort(ret->at, ret->count, sizeof(*ret->at), compare);
	for (size_t i = 0; i < ret->count; i++)
		if (!kept || ret->at[kept - 1] != ret->at[i])
			ret->at[kept++] = ret->at[i];
	ret->count = kept;
	return 0;
}

/* --- one port, one door -------------------------------------------------- */

static bool next_group(struct fitting *f)
{
	const struct subject *subject = f->subject;

	f->i = 0;
	if (!subject->host)
		return index_literal(&f->policy->allow_literal,
				     &subject->address, f->groups++, &f->group);

	struct cover cover = { .at = subject->host };
	return !f->groups++ && index_next(&f->policy->allow, &cover, &f->group);
}

const struct rule *fitting_next(struct fitting *f)
{
	for (;;) {
		while (f->i < f->group.count) {
			const struct rule *rule = f->group.at[f->i++];

			if (!rule_expired(rule, f->now_s) &&
			    rule_has_door(rule, f->door) &&
			    rule_has_port(rule, f->port) &&
			    !denied_service(f->policy, rule))
				return rule;
		}
		if (!next_group(f))
			return NULL;
	}
}

static struct reach judge(const struct differ *d, int which,
			  const struct subject *subject, enum door door,
			  uint16_t port)
{
	const struct question q = { .host = subject->host,
				    .address = subject->address,
				    .port = port,
				    .door = door,
				    .now_s = d->now_s };
	struct verdict verdict = policy_decide(d->policy[which], &q);

	return (struct reach){
		.allow = verdict.allow && verdict.reason != REASON_OBSERVE,
		.passes = verdict.allow,
		.reason = verdict.reason,
		.rule = verdict.rule,
	};
}

/* Both refuse in words. An observing policy lets pass what no rule is about,
 * but not, say, what a rule that has expired was about. */
static void compare_observed(const struct differ *d,
			     const struct reach reach[2], struct change *ret)
{
	static const char passes[] = "let pass";

	if (!d->policy[WAS]->observes || !d->policy[IS]->observes ||
	    reach[WAS].passes == reach[IS].passes)
		return;
	change_add(ret, reach[IS].passes ? DIFF_WIDER : DIFF_NARROWER,
		   "%s -> %s",
		   reach[WAS].passes ? passes : reason_word(reach[WAS].reason),
		   reach[IS].passes ? passes : reason_word(reach[IS].reason));
}

/* False: no difference. @buf is for the detail. */
static bool compare_at(const struct differ *d, const struct subject *subject,
		       enum door door, uint16_t port, struct change *buf,
		       struct difference *ret)
{
	struct fitting fitting[2];
	struct reach reach[2];

	for (int i = WAS; i <= IS; i++) {
		reach[i] = judge(d, i, subject, door, port);
		fitting[i] = (struct fitting){ .policy = d->policy[i],
					       .subject = subject,
					       .door = door,
					       .port = port,
					       .now_s = d->now_s };
	}
	*buf = (struct change){ .any = false };
	*ret = (struct difference){ .kind = subject->kind,
				    .what = (char *)subject->what,
				    .was = reach[WAS].rule,
				    .is = reach[IS].rule };
	if (reach[WAS].allow != reach[IS].allow) {
		const struct rule *rule = reach[reach[IS].allow].rule;

		ret->sign = reach[IS].allow ? DIFF_ADDED : DIFF_REMOVED;
		buf->text[0] = '\0';
		if (rule)
			rule_describe(rule, buf->text, sizeof(buf->text));
		ret->detail = buf->text;
		return true;
	}
	if (reach[WAS].allow)
		diff_detail(reach, fitting, buf);
	else
		compare_observed(d, reach, buf);
	ret->sign = DIFF_CHANGED;
	ret->way = buf->way;
	ret->detail = buf->text;
	return buf->any;
}

/* --- all of them --------------------------------------------------------- */

static bool same(const struct difference *a, const struct difference *b)
{
	return a->sign == b->sign && a->way == b->way && a->was == b->was &&
	       a->is == b->is && a->doors == b->doors &&
	       strcmp(a->detail ? a->detail : "", b->detail) == 0;
}

/* Goes on from a range right before it where nothing else is different. */
static void put(struct differ *d, size_t start, const struct difference *more)
{
	for (size_t i = start; i < d->out.count; i++) {
		struct difference *at = &d->out.at[i];

		if (at->ports.last + 1u == more->ports.first &&
		    same(at, more)) {
			at->ports.last = more->ports.last;
			return;
		}
	}
	diff_add(d, more);
}

static void diff_ports(struct differ *d, const struct subject *subject,
		       size_t start, unsigned first, unsigned last)
{
	struct change proxy_text, direct_text;
	struct difference proxy, direct;
	bool by_proxy = compare_at(d, subject, DOOR_CONNECT, (uint16_t)first,
				   &proxy_text, &proxy);
	bool directly = compare_at(d, subject, DOOR_TRANSPARENT,
				   (uint16_t)first, &direct_text, &direct);

	proxy.ports = direct.ports =
		(struct port_range){ (uint16_t)first, (uint16_t)last };
	proxy.doors = direct.doors = DIFF_BY_PROXY | DIFF_DIRECTLY;
	if (by_proxy && directly && same(&proxy, &direct)) {
		put(d, start, &proxy);
		return;
	}
	proxy.doors = DIFF_BY_PROXY;
	direct.doors = DIFF_DIRECTLY;
	if (by_proxy)
		put(d, start, &proxy);
	if (directly)
		put(d, start, &direct);
}

/* A name that becomes reachable directly can be resolved too: only where that
 * is not so, it is a difference of its own. */
static void diff_dns(struct differ *d, const struct subject *subject,
		     size_t start)
{
	struct change text;
	struct difference dns;
	bool said = false;

	if (!compare_at(d, subject, DOOR_DNS, 0, &text, &dns))
		return;
	for (size_t i = start; dns.sign != DIFF_CHANGED && i < d->out.count;
	     i++) {
		struct difference *at = &d->out.at[i];

		if (at->sign != dns.sign || !(at->doors & DIFF_DIRECTLY))
			continue;
		at->doors |= DIFF_IN_DNS;
		said = true;
	}
	if (said)
		return;
	dns.doors = DIFF_IN_DNS;
	diff_add(d, &dns);
}

void diff_subject(struct differ *d, const struct subject *subject)
{
	size_t start = d->out.count;
	struct cuts cuts = { 0 };

	if (find_cuts(d, subject, &cuts) < 0)
		d->error = -ENOMEM;
	for (size_t i = 0; !d->error && i + 1 < cuts.count; i++)
		diff_ports(d, subject, start, cuts.at[i], cuts.at[i + 1] - 1);
	free(cuts.at);
	if (!d->error && subject->host)
		diff_dns(d, subject, start);
}
