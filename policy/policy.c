/* SPDX-License-Identifier: Apache-2.0
 *
 * policy.c - the life of a policy, and what can be asked about it and its
 * rules. Verdicts: decide.c, address.c.
 */
#include "policy/policy.h"

#include <stdlib.h>
#include <string.h>

#include "policy/ceiling.h"
#include "policy/nameset.h"
#include "policy/rule.h"

const char *door_word(enum door door)
{
	static const char *const word[DOOR_COUNT] = {
		[DOOR_DNS] = "dns",
		[DOOR_CONNECT] = "connect",
		[DOOR_HTTP] = "http",
		[DOOR_SOCKS] = "socks",
		[DOOR_TRANSPARENT] = "transparent",
		[DOOR_PUBLISHED] = "published",
	};

	return (unsigned)door < DOOR_COUNT ? word[door] : "unknown";
}

void texts_free(struct texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		free(texts->at[i]);
	free(texts->at);
	*texts = (struct texts){ 0 };
}

void rule_free(struct rule *rule)
{
	if (!rule)
		return;
	free(rule->host);
	free(rule->ports);
	free(rule->addresses);
	nameset_free(rule->list);
	texts_free(&rule->methods);
	texts_free(&rule->paths);
	free(rule->text);
	free(rule->origin);
	free(rule->note);
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
	name_table_free(policy->allow.table);
	free(policy->deny.at);
	name_table_free(policy->deny.table);
	free(policy->allow_literal.rules.at);
	free(policy->deny_literal.rules.at);
	free(policy->lists.at);
	free(policy->parent);
	name_table_free(policy->parent_table);
	free(policy->permit);
	free(policy->name);
	cell_free(&policy->cell);
	ceiling_free(policy->ceiling);
	free(policy);
}

bool policy_literal(const struct policy *policy, size_t i, struct cidr *ret,
		    const struct port_range **ret_ports, size_t *ret_count)
{
	const struct rule_list *list = &policy->allow_literal.rules;

	if (policy->ceiling)
		return ceiling_literal(policy->ceiling, i, ret, ret_ports,
				       ret_count);
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

int64_t policy_next_expiry(const struct policy *policy, int64_t now_s)
{
	int64_t next = 0;

	if (policy->ceiling)
		next = policy_next_expiry(ceiling_policy(policy->ceiling),
					  now_s);

	for (size_t i = 0; i < policy->all.count; i++) {
		int64_t at = policy->all.at[i]->expires_s;

		if (at > now_s && (!next || at < next))
			next = at;
	}
	return next;
}

bool policy_observes(const struct policy *policy)
{
	return policy->observes;
}

bool policy_is_public(const struct policy *policy)
{
	return policy->is_public &&
	       (!policy->ceiling || ceiling_policy(policy->ceiling)->is_public);
}

bool policy_answers_real(const struct policy *policy)
{
	return policy->answers_real;
}

const struct log_settings *policy_log(const struct policy *policy)
{
	return &policy->log;
}

const struct limits *policy_limits(const struct policy *policy)
{
	return &policy->limits;
}

size_t policy_rules(const struct policy *policy)
{
	return policy->all.count;
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

const char *rule_wildcard(const struct rule *rule)
{
	if (rule_is_joint(rule))
		return rule->wide;
	return rule->wildcard ? rule->text : NULL;
}

bool rule_is_joint(const struct rule *rule)
{
	return rule->user_side || rule->ceiling_side;
}

bool rule_of_ceiling(const struct rule *rule)
{
	return rule->of_ceiling;
}

unsigned rule_index(const struct rule *rule)
{
	return rule->index;
}

static uint64_t fnv(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *at = data;

	while (len--)
		hash = (hash ^ *at++) * 0x100000001b3u;
	return hash;
}

static uint64_t fnv_texts(uint64_t hash, const struct texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		hash = fnv(hash, texts->at[i], strlen(texts->at[i]) + 1);
	return fnv(hash, &texts->count, sizeof(texts->count));
}

/* By what it means, not by how it is spelt. */
uint64_t rule_key(const struct rule *rule)
{
	uint64_t hash = fnv(0xcbf29ce484222325u, &rule->wildcard, 1);

	if (rule->host)
		hash = fnv(hash, rule->host, strlen(rule->host) + 1);
	else
		hash = fnv(fnv(hash, &rule->literal.ip, sizeof(struct ip)),
			   &rule->literal.bits, 1);
	for (size_t i = 0; i < rule->port_count; i++) {
		uint16_t range[2] = { rule->ports[i].first,
				      rule->ports[i].last };

		hash = fnv(hash, range, sizeof(range));
	}
	hash = fnv_texts(fnv_texts(hash, &rule->methods), &rule->paths);
	/* Its budget is another one. */
	if (rule->of_ceiling)
		hash = fnv(hash, "ceiling", 7);
	return hash ? hash : 1;
}

enum wanted rule_wanted(const struct rule *rule)
{
	return rule->wanted;
}

bool rule_judges_requests(const struct rule *rule)
{
	return rule->methods.count || rule->paths.count;
}

bool verdict_judges_requests(const struct verdict *verdict)
{
	const struct rule *rule = verdict->allow ? verdict->rule : NULL;

	if (rule && verdict->reason != REASON_RULE)
		rule = rule_sides(rule).ceiling;
	return rule && rule_judges_requests(rule);
}

bool verdict_has_rule(const struct verdict *verdict)
{
	if (!verdict->allow || !verdict->rule)
		return false;
	return verdict->reason == REASON_RULE ||
	       verdict->observed == REASON_METHOD ||
	       verdict->observed == REASON_PATH || rule_is_joint(verdict->rule);
}

const struct endpoint *rule_connect(const struct rule *rule)
{
	return rule->connect.port ? &rule->connect : NULL;
}

unsigned rule_dns_types(const struct rule *rule)
{
	return rule->dns_types;
}

uint64_t rule_budget(const struct rule *rule, enum direction direction)
{
	return rule->budget[direction];
}
