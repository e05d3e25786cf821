/* SPDX-License-Identifier: Apache-2.0
 *
 * lint_rule.c - what can be said of one rule without looking at others.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/lint_impl.h"

#define DAY_S	   (24 * 3600)
#define PORTS_MANY 1024

static bool opens(const struct rule *rule, uint16_t port)
{
	return rule->port_count && rule_has_port(rule, port);
}

static void ports(struct linter *l, const struct rule *rule)
{
	unsigned n = 0;

	for (size_t i = 0; i < rule->port_count; i++)
		n += rule->ports[i].last - rule->ports[i].first + 1u;
	if (n > PORTS_MANY) {
		lint_found(l, rule, LINT_MANY_PORTS, "%u ports are open", n);
		return;
	}
	if (opens(rule, 53) || opens(rule, 853))
		lint_found(l, rule, LINT_DNS_PORT,
			   "port %d is another resolver's: names asked there "
			   "are not filtered",
			   opens(rule, 53) ? 53 : 853);
	if (opens(rule, 25))
		lint_found(l, rule, LINT_MAIL_PORT,
			   "port 25 sends mail to anybody");
	if (rule->wanted == WANTED_ANY && (opens(rule, 443) || opens(rule, 80)))
		lint_found(l, rule, LINT_PROTOCOL_ANY,
			   "\"protocol: any\" on port %d: what neither is TLS "
			   "nor HTTP names no host and passes",
			   opens(rule, 443) ? 443 : 80);
}

static void ech(struct linter *l, const struct rule *rule)
{
	const char *host = rule->host;

	if (rule->ech != ECH_ALLOW || !host ||
	    !(rule->wildcard ? ech_front_below(host) : ech_front(host) != NULL))
		return;
	lint_found(l, rule, LINT_ECH,
		   "%s takes in encrypted ClientHellos: with \"ech: allow\" "
		   "all sites behind it are reached by them, unseen",
		   rule->text);
}

/* --- ranges -------------------------------------------------------------- */

/* A special address inside @cidr, and its word; private networks come last. */
static const char *special_inside(const struct cidr *cidr, char *ret_text)
{
	static const char *const known[] = {
		"169.254.169.254", "100.100.100.200", "168.63.129.16",
		"192.0.0.192",	   "127.0.0.1",	      "0.0.0.0",
		"169.254.0.1",	   "224.0.0.1",	      "240.0.0.1",
		"100.64.0.1",	   "fd00:ec2::254",   "::1",
		"fe80::1",	   "ff02::1",	      "10.0.0.1",
		"172.16.0.1",	   "192.168.0.1",     "fd12::1",
	};
	struct ip ip;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!ip_parse(known[i], &ip) || !cidr_contains(cidr, &ip))
			continue;
		ip_format(&ip, ret_text);
		return ip_special(&ip);
	}
	ip_format(&cidr->ip, ret_text);
	return ip_special(&cidr->ip);
}

/* Those that are written on purpose, or do no harm. */
static bool is_private(const char *word)
{
	return strcmp(word, "private") == 0 ||
	       strcmp(word, "transition") == 0 ||
	       strcmp(word, "documentation") == 0;
}

static void literal(struct linter *l, const struct rule *rule)
{
	const struct cidr *cidr = &rule->literal;
	unsigned least = cidr->ip.len == 4 ? 24 : 48;
	char text[IP_TEXT_MAX];
	const char *word = special_inside(cidr, text);

	if (cidr->bits < least)
		lint_found(l, rule, LINT_WIDE_RANGE,
			   "%s is a wide range for addresses without names "
			   "(shorter than /%u)",
			   rule->text, least);
	/* A private network is written on purpose; one inside a wide range is
	 * not. */
	if (word && (!is_private(word) || !ip_special(&cidr->ip)))
		lint_found(l, rule, LINT_SPECIAL_RANGE,
			   "%s contains %s (%s): not a server on the internet",
			   rule->text, text, word);
}

static void answers(struct linter *l, const struct rule *rule,
		    const struct cidr *cidr)
{
	char shown[CIDR_TEXT_MAX], text[IP_TEXT_MAX];
	const char *word = special_inside(cidr, text);
	const char *who = rule ? "the name" : "any name";

	cidr_format(cidr, shown);
	if (cidr->bits < (cidr->ip.len == 4 ? 8 : 16))
		lint_found(l, rule, LINT_WIDE_ANSWERS,
			   "%s may resolve to anything in %s, also in this "
			   "machine and its network",
			   who, shown);
	else if (word && !is_private(word))
		lint_found(l, rule, LINT_SPECIAL_ANSWERS,
			   "%s may resolve to %s (%s)", who, text, word);
}

void lint_permit(struct linter *l, const struct cidr *cidr)
{
	answers(l, NULL, cidr);
}

/* --- connect ------------------------------------------------------------- */

static const struct {
	uint16_t port;
	const char *what;
} services[] = {
	{ 22, "a shell" },
	{ 111, "the port mapper" },
	{ 2375, "a container engine's API" },
	{ 2376, "a container engine's API" },
	{ 2377, "a container engine's API" },
	{ 4243, "a container engine's API" },
	{ 2379, "a cluster's store" },
	{ 5555, "a device bridge" },
	{ 5985, "remote management" },
	{ 6443, "a cluster's API" },
	{ 9222, "a browser's debugger" },
	{ 9229, "a program's debugger" },
	{ 10250, "a cluster node's API" },
	{ 10255, "a cluster node's API" },
	{ 16509, "a hypervisor's API" },
};

static void service(struct linter *l, const struct rule *rule)
{
	const struct endpoint *to = rule_connect(rule);
	const char *word = to ? ip_special(&to->ip) : NULL;
	char text[IP_TEXT_MAX];

	if (!to)
		return;
	ip_format(&to->ip, text);
	if (word && strcmp(word, "metadata") == 0)
		lint_found(l, rule, LINT_CONNECT,
			   "%s gives out the machine's credentials", text);
	for (size_t i = 0; i < ARRAY_SIZE(services); i++)
		if (services[i].port == to->port)
			lint_found(l, rule, LINT_CONNECT,
				   "port %u is usually %s", to->port,
				   services[i].what);
}

/* --- the rest ------------------------------------------------------------ */

static void times(struct linter *l, const struct rule *rule)
{
	if (!rule->expires_s || !l->now_s)
		return;
	if (rule_expired(rule, l->now_s))
		lint_found(l, rule, LINT_EXPIRED,
			   "%s has expired, it allows nothing", rule->text);
	else if (rule->expires_s - l->now_s < DAY_S)
		lint_found(l, rule, LINT_EXPIRES_SOON,
			   "%s expires within a day", rule->text);
}

static void budgets(struct linter *l, const struct rule *rule)
{
	static const char *const word[] = {
		[UP] = "upload", [DOWN] = "download"
	};

	for (int i = UP; i <= DOWN; i++) {
		uint64_t all = l->policy->limits.budget[i];

		if (all && rule->budget[i] > all)
			lint_found(l, rule, LINT_BUDGET,
				   "its %s is larger than the %s of the whole "
				   "session",
				   word[i], word[i]);
	}
}

void lint_rule(struct linter *l, const struct rule *rule)
{
	ports(l, rule);
	ech(l, rule);
	if (!rule->host)
		literal(l, rule);
	for (size_t i = 0; i < rule->address_count; i++)
		answers(l, rule, &rule->addresses[i]);
	service(l, rule);
	times(l, rule);
	budgets(l, rule);
	if (rule->wildcard && rule->dns_types)
		lint_found(l, rule, LINT_DNS_TYPES,
			   "TXT, MX or SRV records below a wildcard carry data "
			   "both ways");
}
