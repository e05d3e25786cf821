/* SPDX-License-Identifier: Apache-2.0
 *
 * ech.c - see ech.h.
 */
#include "policy/ech.h"

#include <string.h>

#include "base/cleanup.h"
#include "policy/rule.h"

/* Each is the public_name (RFC 9849 section 4) of configurations that were
 * published. Providers come and go: one that is not in here is met by the
 * comparison with the connection's own name. */
static const struct ech_front fronts[] = {
	{ "cloudflare-ech.com",
	  "Cloudflare: HTTPS records of the sites it serves, since 2023" },
	{ "cloudflare-esni.com", "Cloudflare: the trial before that" },
	{ "cover.defo.ie", "the DEfO project's servers" },
	{ "public.tls-ech.dev", "the test site tls-ech.dev" },
};

const struct ech_front *ech_front(const char *host)
{
	size_t len = strlen(host);

	for (size_t i = 0; i < ARRAY_SIZE(fronts); i++) {
		size_t n = strlen(fronts[i].domain);

		if (len < n || strcmp(host + len - n, fronts[i].domain) != 0)
			continue;
		if (len == n || host[len - n - 1] == '.')
			return &fronts[i];
	}
	return NULL;
}

bool ech_front_below(const char *apex)
{
	size_t len = strlen(apex);

	for (size_t i = 0; i < ARRAY_SIZE(fronts); i++) {
		const char *domain = fronts[i].domain;
		size_t n = strlen(domain);

		if (n > len && domain[n - len - 1] == '.' &&
		    strcmp(domain + n - len, apex) == 0)
			return true;
	}
	return ech_front(apex);
}

enum ech ech_stricter(enum ech a, enum ech b)
{
	if (a == ECH_DENY || b == ECH_DENY)
		return ECH_DENY;
	return a == ECH_ALLOW ? b : a;
}

enum ech rule_ech(const struct rule *rule)
{
	return rule->ech;
}

const char *policy_ech_fault(const struct verdict *verdict, const char *sni,
			     const char *host)
{
	const struct rule *rule =
		verdict_has_rule(verdict) ? verdict->rule : NULL;

	switch (rule ? rule->ech : ECH_DEFAULT) {
	case ECH_DENY:
		return "the rule denies encrypted ClientHellos";
	case ECH_DEFAULT:
		if (ech_front(sni))
			return "its outer name is a front of encrypted "
			       "ClientHellos, the host's is inside";
		if (host && strcmp(host, sni) != 0)
			return "the outer name of an encrypted ClientHello is "
			       "not the connection's";
		break;
	case ECH_ALLOW:
		break;
	}
	return NULL;
}
