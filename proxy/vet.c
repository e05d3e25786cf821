/* SPDX-License-Identifier: Apache-2.0
 *
 * vet.c - which addresses may be dialled at all.
 *
 * A proxy that dials itself loops, and lends its own identity to whoever asks.
 * Addresses are compared by the IPv4 address inside, if there is one, so that
 * no other spelling of ours gets by.
 */
#include "proxy/vet.h"

#include <string.h>

#define NAMES_MAX 64 /* at one address */

static bool is_any(const struct ip *ip)
{
	static const uint8_t zero[16];

	return memcmp(ip->byte, zero, sizeof(zero)) == 0;
}

static bool is_loopback(const struct ip *ip)
{
	const struct ip one = { .len = 16, .byte = { [15] = 1 } };

	return ip->len == 4 ? ip->byte[0] == 127 : ip_equal(ip, &one);
}

/* Would a socket bound to the wildcard address get it? Neighbours on our own
 * prefixes are counted in: their addresses may be ours. */
static bool is_ours(const struct services *services, const struct ip *ip)
{
	size_t n = 0;
	const struct cidr *uplink;

	/* The kernel takes 0.0.0.0 and :: for the loopback address. */
	if (is_any(ip) || is_loopback(ip))
		return true;
	uplink = services->uplink(services->ctx, &n);
	for (size_t i = 0; i < n; i++)
		if (cidr_contains(&uplink[i], ip))
			return true;
	return false;
}

bool vet_is_self(const struct services *services, const struct ip *ip,
		 uint16_t port)
{
	struct ip inner = ip_embedded(ip);
	const struct endpoint *self;
	size_t n = 0;

	self = services->self(services->ctx, &n);
	for (size_t i = 0; i < n; i++) {
		struct ip own = ip_embedded(&self[i].ip);

		if (self[i].port != port)
			continue;
		if (ip_equal(&own, &inner) || ip_equal(&own, ip) ||
		    (is_any(&own) &&
		     (is_ours(services, ip) || is_ours(services, &inner))) ||
		    (is_any(&inner) && is_loopback(&own)))
			return true;
	}
	return false;
}

size_t vet_answers(const struct services *services, const struct policy *policy,
		   const struct rule *rule, const struct ip *answer, size_t n,
		   uint16_t port, struct ip *ret_ip, enum reason *reterr,
		   struct ip *reterr_ip)
{
	size_t uplinks = 0, count = 0;
	const struct cidr *uplink = services->uplink(services->ctx, &uplinks);

	for (size_t i = 0, refused = 0; i < n; i++) {
		struct verdict v = policy_check_address(
			policy, rule, &answer[i], uplink, uplinks);

		if (v.allow && vet_is_self(services, &answer[i], port))
			v = (struct verdict){ .reason = REASON_SELF };
		if (v.allow) {
			ret_ip[count++] = answer[i];
		} else if (!refused++) {
			*reterr = v.reason;
			*reterr_ip = answer[i];
		}
	}
	return count;
}

bool vet_name_at(const struct services *services, struct sandbox *sandbox,
		 const struct ip *ip, const char *host)
{
	const char *name[NAMES_MAX];
	size_t n =
		services->names_at(services->ctx, sandbox, ip, name, NAMES_MAX);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(name[i], host))
			return true;
	return false;
}
