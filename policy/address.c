/* SPDX-License-Identifier: Apache-2.0
 *
 * address.c - may an address that a name resolved to be dialled (P4)?
 */
#include <string.h>

#include "policy/ceiling.h"
#include "policy/rule.h"

static const struct rule *covering(const struct literal_list *list,
				   const struct ip *ip)
{
	struct group group;

	for (size_t i = 0; index_literal(list, ip, i, &group); i++)
		if (group.count)
			return group.at[0];
	return NULL;
}

const struct rule *denied_address(const struct policy *policy,
				  const struct ip *ip)
{
	struct ip inner = ip_embedded(ip);
	const struct rule *rule = covering(&policy->deny_literal, ip);

	return rule ? rule : covering(&policy->deny_literal, &inner);
}

/* ::ffff:a.b.c.d and ::a.b.c.d: the kernel dials the first as IPv4, and nobody
 * has a use for the second. No honest answer contains them. */
bool is_v4_in_disguise(const struct ip *ip)
{
	static const uint8_t zero[10];

	return ip->len == 16 && memcmp(ip->byte, zero, sizeof(zero)) == 0 &&
	       ((ip->byte[10] == 0xff && ip->byte[11] == 0xff) ||
		(ip->byte[10] == 0 && ip->byte[11] == 0));
}

static bool in_list(const struct cidr *list, size_t n, const struct ip *ip)
{
	for (size_t i = 0; i < n; i++)
		if (cidr_contains(&list[i], ip))
			return true;
	return false;
}

/* Did a person name a range that @ip is in? A deny rule that is only observed
 * permits nothing. */
static bool is_permitted(const struct policy *policy, const struct rule *rule,
			 const struct ip *ip)
{
	if (in_list(policy->permit, policy->permit_count, ip))
		return true;
	if (!rule || rule->deny)
		return false;
	if (!rule->host)
		return cidr_contains(&rule->literal, ip);
	return in_list(rule->addresses, rule->address_count, ip);
}

static bool is_forbidden(const struct policy *policy, const struct rule *rule,
			 const struct ip *ip, const struct cidr *uplink,
			 size_t n)
{
	struct ip inner = ip_embedded(ip);
	bool permitted = is_permitted(policy, rule, ip);
	bool inner_permitted = is_permitted(policy, rule, &inner);

	/* What is dialled in the end is the embedded address: permitting a
	 * translator's prefix does not permit what hides behind it. */
	if (!inner_permitted &&
	    (ip_special(&inner) || in_list(uplink, n, &inner)))
		return true;
	if (!permitted && in_list(uplink, n, ip))
		return true;
	return !permitted && !inner_permitted &&
	       (ip_special(ip) || is_v4_in_disguise(ip));
}

static struct verdict check_alone(const struct policy *policy,
				  const struct rule *rule, const struct ip *ip,
				  const struct cidr *uplink, size_t n)
{
	const struct rule *denied = denied_address(policy, ip);

	if (is_forbidden(policy, rule, ip, uplink, n))
		return (struct verdict){
			.reason = denied && !policy->observes
					  ? REASON_DENY_RULE
					  : REASON_FORBIDDEN_ADDRESS,
			.rule = denied ? denied : rule
		};
	if (!denied)
		return (struct verdict){ true, REASON_RULE, rule, REASON_RULE };
	if (!policy->observes)
		return (struct verdict){ .reason = REASON_DENY_RULE,
					 .rule = denied };
	return (struct verdict){ true, REASON_OBSERVE, rule, REASON_DENY_RULE };
}

/* Each permits by its own rule: what one of them names is not named by the
 * other. */
struct verdict policy_check_address(const struct policy *policy,
				    const struct rule *rule,
				    const struct ip *ip,
				    const struct cidr *uplink, size_t n)
{
	struct verdict own, over;
	struct rule_sides of;

	if (!policy->ceiling)
		return check_alone(policy, rule, ip, uplink, n);
	of = rule_sides(rule);
	own = check_alone(policy, of.user, ip, uplink, n);
	if (!own.allow)
		return own;
	over = check_alone(ceiling_policy(policy->ceiling), of.ceiling, ip,
			   uplink, n);
	if (!over.allow) {
		if (!over.rule)
			over.rule = ceiling_default(policy->ceiling);
		return over;
	}
	own.rule = rule;
	return own;
}
