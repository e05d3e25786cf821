/* SPDX-License-Identifier: Apache-2.0
 *
 * policy.c - verdicts. Everything here only reads a finished policy, allocates
 * nothing, and answers "no" wherever a rule does not clearly say "yes".
 */
#include "policy/policy.h"

#include <stdlib.h>
#include <string.h>

#include "policy/rule.h"

const char *door_word(enum door door)
{
	static const char *const word[DOOR_COUNT] = {
		[DOOR_DNS] = "dns",
		[DOOR_CONNECT] = "connect",
		[DOOR_HTTP] = "http",
		[DOOR_SOCKS] = "socks",
		[DOOR_TRANSPARENT] = "transparent",
	};

	return (unsigned)door < DOOR_COUNT ? word[door] : "unknown";
}

void rule_free(struct rule *rule)
{
	if (!rule)
		return;
	free(rule->host);
	free(rule->ports);
	free(rule->addresses);
	free(rule->text);
	free(rule->origin);
	free(rule);
}

struct policy *policy_ref(struct policy *policy)
{
	atomic_fetch_add_explicit(&policy->refs, 1, memory_order_relaxed);
	return policy;
}

void policy_unref(struct policy *policy)
{
	if (!policy || atomic_fetch_sub_explicit(&policy->refs, 1,
						 memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < policy->all.count; i++)
		rule_free(policy->all.at[i]);
	free(policy->all.at);
	free(policy->allow.at);
	free(policy->deny.at);
	free(policy->allow_literal.rules.at);
	free(policy->deny_literal.rules.at);
	free(policy->parent);
	free(policy->permit);
	free(policy->name);
	free(policy);
}

static struct verdict allow(const struct rule *rule)
{
	return (struct verdict){ true, REASON_RULE, rule };
}

static struct verdict refuse(enum reason reason, const struct rule *rule)
{
	return (struct verdict){ false, reason, rule };
}

/* Without a port (DNS) only a rule for every port denies: the name may still
 * be wanted for the others. */
static const struct rule *denied_name(const struct policy *policy,
				      const char *host, uint16_t port)
{
	struct cover cover = { .at = host };
	struct group group;

	while (index_next(&policy->deny, &cover, &group)) {
		for (size_t i = 0; i < group.count; i++) {
			const struct rule *rule = group.at[i];

			if (port ? rule_has_port(rule, port)
				 : !rule->port_count)
				return rule;
		}
	}
	return NULL;
}

static struct verdict decide_name(const struct policy *policy, const char *host,
				  uint16_t port)
{
	const struct rule *denied = denied_name(policy, host, port);
	struct cover cover = { .at = host };
	struct group group;

	if (denied)
		return refuse(REASON_DENY_RULE, denied);
	if (!index_next(&policy->allow, &cover, &group))
		return refuse(REASON_NOT_IN_POLICY, NULL);
	if (!port)
		return allow(group.at[0]->lead);
	for (size_t i = 0; i < group.count; i++)
		if (rule_has_port(group.at[i], port))
			return allow(group.at[i]);
	return refuse(REASON_PORT, group.at[0]);
}

static const struct rule *find_literal(const struct literal_list *list,
				       const struct ip *ip, uint16_t port,
				       const struct rule **ret_other_port)
{
	struct group group;

	for (size_t i = 0; index_literal(list, ip, i, &group); i++) {
		for (size_t j = 0; j < group.count; j++) {
			if (!port || rule_has_port(group.at[j], port))
				return group.at[j];
			if (ret_other_port && !*ret_other_port)
				*ret_other_port = group.at[j];
		}
	}
	return NULL;
}

static const struct rule *denied_address(const struct policy *policy,
					 const struct ip *ip)
{
	struct ip inner = ip_embedded(ip);
	const struct rule *rule =
		find_literal(&policy->deny_literal, ip, 0, NULL);

	return rule ? rule
		    : find_literal(&policy->deny_literal, &inner, 0, NULL);
}

/* ::ffff:a.b.c.d and ::a.b.c.d: the kernel dials the first as IPv4, and nobody
 * has a use for the second. No honest answer contains them. */
static bool is_v4_in_disguise(const struct ip *ip)
{
	static const uint8_t zero[10];

	return ip->len == 16 && memcmp(ip->byte, zero, sizeof(zero)) == 0 &&
	       ((ip->byte[10] == 0xff && ip->byte[11] == 0xff) ||
		(ip->byte[10] == 0 && ip->byte[11] == 0));
}

static struct verdict decide_address(const struct policy *policy,
				     const struct ip *ip, uint16_t port)
{
	const struct rule *rule, *other = NULL;
	struct ip inner = ip_embedded(ip);

	rule = denied_address(policy, ip);
	if (rule)
		return refuse(REASON_DENY_RULE, rule);
	rule = find_literal(&policy->allow_literal, ip, port, &other);
	if (!rule)
		return other ? refuse(REASON_PORT, other)
			     : refuse(REASON_LITERAL_ADDRESS, NULL);
	/* A range of IPv6 says nothing about the IPv4 behind a translator: that
	 * has to be ordinary, or named as well. */
	if (ip_equal(&inner, ip))
		return allow(rule);
	if (!find_literal(&policy->allow_literal, &inner, port, NULL) &&
	    (is_v4_in_disguise(ip) || ip_special(&inner)))
		return refuse(REASON_LITERAL_ADDRESS, NULL);
	return allow(rule);
}

struct verdict policy_decide(const struct policy *policy,
			     const struct question *question)
{
	if (question->host)
		return decide_name(policy, question->host, question->port);
	if (question->address.len)
		return decide_address(policy, &question->address,
				      question->port);
	return refuse(REASON_NO_NAME, NULL);
}

static bool in_list(const struct cidr *list, size_t n, const struct ip *ip)
{
	for (size_t i = 0; i < n; i++)
		if (cidr_contains(&list[i], ip))
			return true;
	return false;
}

/* Did a person name a range that @ip is in? */
static bool is_permitted(const struct policy *policy, const struct rule *rule,
			 const struct ip *ip)
{
	if (in_list(policy->permit, policy->permit_count, ip))
		return true;
	if (!rule)
		return false;
	if (!rule->host)
		return cidr_contains(&rule->literal, ip);
	return in_list(rule->addresses, rule->address_count, ip);
}

struct verdict policy_check_address(const struct policy *policy,
				    const struct rule *rule,
				    const struct ip *ip,
				    const struct cidr *uplink, size_t n)
{
	const struct rule *denied = denied_address(policy, ip);
	struct ip inner = ip_embedded(ip);
	bool permitted = is_permitted(policy, rule, ip);
	bool inner_permitted = is_permitted(policy, rule, &inner);

	if (denied)
		return refuse(REASON_DENY_RULE, denied);
	/* What is dialled in the end is the embedded address: permitting a
	 * translator's prefix does not permit what hides behind it. */
	if (!inner_permitted &&
	    (ip_special(&inner) || in_list(uplink, n, &inner)))
		return refuse(REASON_FORBIDDEN_ADDRESS, rule);
	if (!permitted && in_list(uplink, n, ip))
		return refuse(REASON_FORBIDDEN_ADDRESS, rule);
	if (!permitted && !inner_permitted &&
	    (ip_special(ip) || is_v4_in_disguise(ip)))
		return refuse(REASON_FORBIDDEN_ADDRESS, rule);
	return allow(rule);
}

bool policy_literal(const struct policy *policy, size_t i, struct cidr *ret,
		    const struct port_range **ret_ports, size_t *ret_count)
{
	const struct rule_list *list = &policy->allow_literal.rules;

	if (i >= list->count)
		return false;
	*ret = list->at[i]->literal;
	*ret_ports = list->at[i]->ports;
	*ret_count = list->at[i]->port_count;
	return true;
}

bool policy_upstream(const struct policy *policy, size_t i, struct ip *ret_ip,
		     uint16_t *ret_port)
{
	if (i >= policy->upstream_count)
		return false;
	*ret_ip = policy->upstream[i];
	*ret_port = policy->upstream_port[i];
	return true;
}

bool policy_upstream_system(const struct policy *policy)
{
	return policy->upstream_system;
}

const struct limits *policy_limits(const struct policy *policy)
{
	return &policy->limits;
}

const char *policy_name(const struct policy *policy)
{
	return policy->name ? policy->name : "unnamed";
}

const char *policy_digest(const struct policy *policy)
{
	return policy->digest;
}

const char *rule_origin(const struct rule *rule)
{
	return rule->origin;
}

const char *rule_text(const struct rule *rule)
{
	return rule->text;
}

bool rule_is_wildcard(const struct rule *rule)
{
	return rule->wildcard;
}

unsigned rule_index(const struct rule *rule)
{
	return rule->index;
}
