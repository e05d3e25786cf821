/* SPDX-License-Identifier: Apache-2.0
 *
 * ports.c - sets of ports: few ranges in a rule, one bitmap where rules meet.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/ceiling.h"
#include "policy/rule.h"

#define PORTS_ALL 65536
#define WORDS	  (PORTS_ALL / 64)

static int compare(const void *a, const void *b)
{
	const struct port_range *x = a, *y = b;

	return x->first - y->first;
}

size_t ports_merge(struct port_range *range, size_t n)
{
	size_t kept = 0;

	if (!n)
		return 0;
	qsort(range, n, sizeof(*range), compare);
	for (size_t i = 1; i < n; i++) {
		struct port_range *last = &range[kept];

		if (range[i].first > last->last + 1)
			range[++kept] = range[i];
		else if (range[i].last > last->last)
			last->last = range[i].last;
	}
	return kept + 1;
}

/* One number, without sign, space or leading zero. */
static const char *parse_port(const char **at, uint16_t *ret_port)
{
	unsigned value = 0;
	const char *p = *at;

	if (*p < '0' || *p > '9' || (*p == '0' && p[1] == 'x'))
		return "a port is a number from 1 to 65535, or a range \"a-b\"";
	if (*p == '0')
		return p[1] >= '0' && p[1] <= '9'
			       ? "ports are written without leading zeros"
			       : "there is no port 0: ports are 1 to 65535";
	for (; *p >= '0' && *p <= '9'; p++) {
		value = value * 10 + (unsigned)(*p - '0');
		if (value > 65535)
			return "ports are 1 to 65535";
	}
	*at = p;
	*ret_port = (uint16_t)value;
	return NULL;
}

const char *ports_parse(const char *text, struct port_range *ret_range)
{
	struct port_range range;
	const char *fault = parse_port(&text, &range.first);

	if (fault)
		return fault;
	range.last = range.first;
	if (*text == '-') {
		text++;
		fault = parse_port(&text, &range.last);
		if (fault)
			return fault;
	}
	if (*text)
		return "a port is a number from 1 to 65535, or a range \"a-b\"";
	if (range.last < range.first)
		return "the range ends before it starts";
	*ret_range = range;
	return NULL;
}

bool rule_has_port(const struct rule *rule, uint16_t port)
{
	if (!rule->port_count)
		return true;
	for (size_t i = 0; i < rule->port_count; i++)
		if (port >= rule->ports[i].first && port <= rule->ports[i].last)
			return true;
	return false;
}

static void mark(uint64_t *map, const struct port_range *range, bool on)
{
	for (unsigned port = range->first; port <= range->last;) {
		unsigned bit = port % 64, word = port / 64;
		uint64_t mask = UINT64_MAX << bit;

		if (range->last / 64 == word)
			mask &= UINT64_MAX >> (63 - range->last % 64);
		if (on)
			map[word] |= mask;
		else
			map[word] &= ~mask;
		port = (word + 1) * 64;
	}
}

static void mark_port(uint64_t *map, unsigned port)
{
	if (port < PORTS_ALL)
		map[port / 64] |= UINT64_C(1) << port % 64;
}

/* The first port from @port on that is @on; PORTS_ALL if there is none. */
static unsigned seek(const uint64_t *map, unsigned port, bool on)
{
	while (port < PORTS_ALL) {
		uint64_t word = on ? map[port / 64] : ~map[port / 64];

		word &= UINT64_MAX << (port % 64);
		if (word)
			return port / 64 * 64 + (unsigned)__builtin_ctzll(word);
		port = (port / 64 + 1) * 64;
	}
	return PORTS_ALL;
}

static void mark_rule(uint64_t *map, const struct rule *rule, bool on)
{
	static const struct port_range every = { 1, 65535 };

	if (!rule->port_count)
		mark(map, &every, on);
	for (size_t j = 0; j < rule->port_count; j++)
		mark(map, &rule->ports[j], on);
}

static void mark_allowed(uint64_t *map, const struct policy *policy,
			 const char *host, int64_t now_s)
{
	static const struct port_range tls = { 443, 443 };
	struct cover cover = { .at = host };
	struct group group = { 0 };

	if (index_next(&policy->allow, &cover, &group))
		for (size_t i = 0; i < group.count; i++)
			if (!denied_service(policy, group.at[i]) &&
			    !rule_expired(group.at[i], now_s) &&
			    rule_has_door(group.at[i], DOOR_TRANSPARENT))
				mark_rule(map, group.at[i], true);
	/* As decide_name() has it. */
	const struct question q = { .host = host,
				    .port = 443,
				    .door = DOOR_TRANSPARENT,
				    .now_s = now_s };
	if (policy->is_public &&
	    decide_alone(policy, &q).reason == REASON_PUBLIC)
		mark(map, &tls, true);
}

static void mark_denied(uint64_t *map, const struct policy *policy,
			const char *host)
{
	static const struct port_range every = { 1, 65535 };
	struct cover cover = { .at = host };
	const struct rule *denied = denied_name(policy, host, 0);
	struct group group;

	if (denied) {
		mark(map, &every, false);
		return;
	}
	while (index_next(&policy->deny, &cover, &group))
		for (size_t i = 0; i < group.count; i++)
			mark_rule(map, group.at[i], false);
}

static void map_ports(uint64_t *map, const struct policy *policy,
		      const char *host, int64_t now_s)
{
	static const struct port_range every = { 1, 65535 };

	if (policy->observes) {
		mark(map, &every, true);
		return;
	}
	mark_allowed(map, policy, host, now_s);
	mark_denied(map, policy, host);
}

/* Marks where one of the rules for @host begins or ends to hold. Is there one
 * that could disagree with another one about how, or whereto? */
static bool mark_edges(uint64_t *edge, const struct policy *policy,
		       const char *host)
{
	struct cover cover = { .at = host };
	struct group group = { 0 };
	bool particular = false;

	if (!index_next(&policy->allow, &cover, &group))
		return false;
	for (size_t i = 0; i < group.count; i++) {
		const struct rule *rule = group.at[i];

		particular |= rule->wanted == WANTED_TLS ||
			      rule->wanted == WANTED_HTTP || rule_connect(rule);
		for (size_t j = 0; j < rule->port_count; j++) {
			const unsigned end = rule->ports[j].last + 1u;

			mark_port(edge, rule->ports[j].first);
			mark_port(edge, end);
		}
	}
	return particular;
}

/* Both allow what is left, but not in one way that suits both: between two
 * edges one question is as good as any. */
static void mark_conflicts(uint64_t *map, const struct policy *policy,
			   const char *host, int64_t now_s)
{
	static const uint16_t usual[] = { 80, 81, 443, 444 };
	uint64_t edge[WORDS] = { 0 };
	bool own = mark_edges(edge, policy, host);

	if (!mark_edges(edge, ceiling_policy(policy->ceiling), host) && !own)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		mark_port(edge, usual[i]);
	for (unsigned port = seek(map, 1, true); port < PORTS_ALL;) {
		const struct question q = { .host = host,
					    .port = (uint16_t)port,
					    .door = DOOR_TRANSPARENT,
					    .now_s = now_s };
		const struct port_range part = {
			(uint16_t)port,
			(uint16_t)(seek(edge, port + 1, true) - 1)
		};

		if (!policy_decide(policy, &q).allow)
			mark(map, &part, false);
		port = seek(map, part.last + 1u, true);
	}
}

size_t policy_ports(const struct policy *policy, const char *host,
		    int64_t now_s, struct port_range *ret_range, size_t max)
{
	uint64_t map[WORDS] = { 0 }, over[WORDS] = { 0 };
	size_t n = 0;

	map_ports(map, policy, host, now_s);
	if (policy->ceiling) {
		map_ports(over, ceiling_policy(policy->ceiling), host, now_s);
		for (size_t i = 0; i < WORDS; i++)
			map[i] &= over[i];
		/* Where it observes, the gate refuses what is left. */
		if (!policy->observes)
			mark_conflicts(map, policy, host, now_s);
	}
	for (unsigned port = seek(map, 1, true); port < PORTS_ALL && n < max;) {
		unsigned end = seek(map, port, false);

		ret_range[n++] = (struct port_range){ (uint16_t)port,
						      (uint16_t)(end - 1) };
		port = seek(map, end, true);
	}
	return n;
}
