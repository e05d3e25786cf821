/* SPDX-License-Identifier: Apache-2.0
 *
 * decide.c - verdicts about names and literal addresses. Everything here only
 * reads a finished policy, allocates nothing, and answers "no" wherever a rule
 * does not clearly say "yes".
 *
 *	judge()		 what the rules say: deny first, then the most specific
 *			 pattern, then `default: public`
 *	decide_alone()	 and what is left of it where a policy only observes
 *	policy_decide()	 and what is left of that below a ceiling
 */
#include <string.h>

#include "policy/ceiling.h"
#include "policy/nameset.h"
#include "policy/path.h"
#include "policy/rule.h"

static struct verdict allow(const struct rule *rule)
{
	return (struct verdict){ true, REASON_RULE, rule, REASON_RULE };
}

static struct verdict refuse(enum reason reason, const struct rule *rule)
{
	return (struct verdict){ false, reason, rule, REASON_RULE };
}

bool rule_has_door(const struct rule *rule, enum door door)
{
	bool direct = door == DOOR_DNS || door == DOOR_TRANSPARENT;

	return rule->doors & (direct ? DOORS_TRANSPARENT : DOORS_PROXY);
}

bool rule_expired(const struct rule *rule, int64_t now_s)
{
	return rule->expires_s && (!now_s || rule->expires_s <= now_s);
}

/* Without a port (DNS) only a rule for every port denies: the name may still
 * be wanted for the others. */
const struct rule *denied_name(const struct policy *policy, const char *host,
			       uint16_t port)
{
	struct cover cover = { .at = host };
	struct nameset_hit hit;
	struct group group;

	while (index_next(&policy->deny, &cover, &group)) {
		for (size_t i = 0; i < group.count; i++) {
			const struct rule *rule = group.at[i];

			if (port ? rule_has_port(rule, port)
				 : !rule->port_count)
				return rule;
		}
	}
	for (size_t i = 0; i < policy->lists.count; i++)
		if (nameset_find(policy->lists.at[i]->list, host, &hit))
			return policy->lists.at[i];
	return NULL;
}

/* `connect` is no way around a denied range: what one policy denies, another
 * one beside or above it can't allow. Where denials are only observed, the name
 * leads where its rule says. */
const struct rule *denied_service(const struct policy *policy,
				  const struct rule *rule)
{
	const struct endpoint *to = rule_connect(rule);

	return to && !policy->observes ? denied_address(policy, &to->ip) : NULL;
}

static bool in_texts(const struct texts *texts, const char *text)
{
	for (size_t i = 0; i < texts->count; i++)
		if (strcmp(texts->at[i], text) == 0)
			return true;
	return false;
}

/* REASON_RULE if nothing is wrong with it. */
static enum reason path_objection(const struct rule *rule, const char *path)
{
	size_t len = path ? strcspn(path, "?") : 0;

	if (!rule->paths.count)
		return REASON_RULE;
	if (!path || path_ambiguous(path, len))
		return REASON_MALFORMED;
	for (size_t i = 0; i < rule->paths.count; i++)
		if (path_matches(rule->paths.at[i], path, len))
			return REASON_RULE;
	return REASON_PATH;
}

/* What @rule has against it; REASON_RULE: nothing. */
static enum reason objection(const struct policy *policy,
			     const struct rule *rule, const struct question *q)
{
	if (rule_expired(rule, q->now_s))
		return REASON_EXPIRED;
	if (!rule_has_door(rule, q->door))
		return REASON_NOT_IN_POLICY;
	if (q->port && !rule_has_port(rule, q->port))
		return REASON_PORT;
	if (denied_service(policy, rule))
		return REASON_DENY_RULE;
	if (!q->method)
		return REASON_RULE;
	if (rule->methods.count && !in_texts(&rule->methods, q->method))
		return REASON_METHOD;
	return path_objection(rule, q->path);
}

/* Of the rules that refuse, people hear of the one that came closest. */
static unsigned closeness(enum reason reason)
{
	static const enum reason order[] = {
		REASON_EXPIRED,	  REASON_NOT_IN_POLICY, REASON_PORT,
		REASON_METHOD,	  REASON_PATH,		REASON_MALFORMED,
		REASON_DENY_RULE,
	};
	unsigned i = 0;

	while (i < sizeof(order) / sizeof(order[0]) && order[i] != reason)
		i++;
	return i;
}

/* As long as it is not known what is asked for, a rule that does not care is
 * the better one. */
static bool fits_better(const struct rule *rule, const struct rule *than,
			const struct question *q)
{
	return !than || (!q->method && rule_judges_requests(than) &&
			 !rule_judges_requests(rule));
}

static struct verdict decide_group(const struct policy *policy,
				   const struct group *group,
				   const struct question *q)
{
	const struct rule *fit = NULL, *lead = group->at[0]->lead;
	struct verdict no = refuse(REASON_EXPIRED, group->at[0]);

	for (size_t i = 0; i < group->count; i++) {
		const struct rule *rule = group->at[i];
		enum reason reason = objection(policy, rule, q);

		if (reason == REASON_RULE && fits_better(rule, fit, q))
			fit = rule;
		else if (reason != REASON_RULE &&
			 closeness(reason) > closeness(no.reason))
			no = refuse(reason,
				    reason == REASON_DENY_RULE
					    ? denied_service(policy, rule)
					    : rule);
	}
	if (!fit)
		return no;
	/* In DNS one answers for all. */
	if (!q->port && lead && objection(policy, lead, q) == REASON_RULE)
		fit = lead;
	return allow(fit);
}

/* Names that mean something on the machine's own network or nowhere (RFC 6761,
 * 6762, 7686, 8375, 9476): `default: public` says nothing of them, a rule may.
 */
static bool is_public_name(const char *host)
{
	static const char own[][12] = { "alt",	 "internal",  "invalid",
					"local", "localhost", "onion" };
	const char *last = strrchr(host, '.');

	if (!last)
		return false;
	last++;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (*last == *own[i] && strcmp(last, own[i]) == 0)
			return false;
	return *last != 'a' || !host_below(host, "home.arpa");
}

static bool names_port(const struct group *group, uint16_t port)
{
	for (size_t i = 0; i < group->count; i++)
		if (rule_has_port(group->at[i], port))
			return true;
	return false;
}

static struct verdict decide_name(const struct policy *policy,
				  const struct question *q)
{
	const struct rule *denied = denied_name(policy, q->host, q->port);
	struct verdict verdict = refuse(REASON_NOT_IN_POLICY, NULL);
	struct cover cover = { .at = q->host };
	struct group group = { 0 };

	if (denied)
		return refuse(REASON_DENY_RULE, denied);
	if (index_next(&policy->allow, &cover, &group))
		verdict = decide_group(policy, &group, q);
	/* Rules add ports to what is public; what they say of 443 holds, also
	 * where one for another port came closer. */
	if (!verdict.allow && policy->is_public &&
	    (!q->port || q->port == 443) &&
	    (!verdict.rule ||
	     (verdict.reason == REASON_PORT && !names_port(&group, 443))) &&
	    is_public_name(q->host))
		return (struct verdict){ true, REASON_PUBLIC, NULL,
					 REASON_RULE };
	return verdict;
}

static const struct rule *find_literal(const struct policy *policy,
				       const struct ip *ip,
				       const struct question *q,
				       struct verdict *no)
{
	const struct literal_list *list = &policy->allow_literal;
	struct group group;

	for (size_t i = 0; index_literal(list, ip, i, &group); i++) {
		for (size_t j = 0; j < group.count; j++) {
			enum reason reason = objection(policy, group.at[j], q);

			if (reason == REASON_RULE)
				return group.at[j];
			if (!no->rule ||
			    closeness(reason) > closeness(no->reason))
				*no = refuse(reason, group.at[j]);
		}
	}
	return NULL;
}

/* What the policy's own words refuse; never what protects the machine or the
 * meaning of a name. */
static bool may_observe(enum reason reason)
{
	return reason == REASON_NOT_IN_POLICY || reason == REASON_DENY_RULE ||
	       reason == REASON_PORT || reason == REASON_METHOD ||
	       reason == REASON_PATH;
}

static struct verdict allow_address(const struct policy *policy,
				    const struct question *q)
{
	const struct ip *ip = &q->address;
	struct ip inner = ip_embedded(ip);
	struct verdict no = refuse(REASON_LITERAL_ADDRESS, NULL);
	struct verdict behind = no;
	const struct rule *rule = find_literal(policy, ip, q, &no);

	/* A range of IPv6 says nothing about the IPv4 behind a translator: that
	 * has to be ordinary, or named as well. What the range is refused for
	 * may only be observed: then somebody must have named both. */
	if (!ip_equal(&inner, ip) &&
	    !find_literal(policy, &inner, q, &behind) &&
	    (is_v4_in_disguise(ip) || ip_special(&inner)) &&
	    (rule || !may_observe(behind.reason)))
		return refuse(REASON_LITERAL_ADDRESS, NULL);
	return rule ? allow(rule) : no;
}

static struct verdict decide_address(const struct policy *policy,
				     const struct question *q)
{
	const struct rule *denied = denied_address(policy, &q->address);
	struct verdict verdict = allow_address(policy, q);

	/* A denial that is only observed must not open an address that nobody
	 * allowed. */
	if (denied && (verdict.allow || !policy->observes))
		return refuse(REASON_DENY_RULE, denied);
	return verdict;
}

static struct verdict judge(const struct policy *policy,
			    const struct question *q)
{
	if (q->host)
		return decide_name(policy, q);
	if (q->address.len)
		return decide_address(policy, q);
	return refuse(REASON_NO_NAME, NULL);
}

struct verdict decide_alone(const struct policy *policy,
			    const struct question *question)
{
	struct verdict verdict;

	/* Nobody leaves by it. */
	if (question->door == DOOR_PUBLISHED)
		return refuse(REASON_NOT_IN_POLICY, NULL);
	verdict = judge(policy, question);
	if (verdict.allow || !policy->observes || !may_observe(verdict.reason))
		return verdict;
	return (struct verdict){ true, REASON_OBSERVE, verdict.rule,
				 verdict.reason };
}

struct verdict policy_decide(const struct policy *policy,
			     const struct question *question)
{
	struct verdict verdict = decide_alone(policy, question);

	if (verdict.allow && policy->ceiling)
		return ceiling_decide(policy, question, &verdict);
	return verdict;
}
