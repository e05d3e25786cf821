/* SPDX-License-Identifier: Apache-2.0
 *
 * special.c - a table of names, and the reverse tree.
 *
 *   use-application-dns.net  NXDOMAIN asks browsers to leave DNS-over-HTTPS off
 *   _dns.resolver.arpa	      RFC 9462: no encrypted resolver to discover here
 *   ipv4only.arpa	      RFC 8880: no NAT64 to discover here
 */
#include "dns/special.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "dns/message.h"
#include "policy/hostname.h"

static const struct {
	const char *host;
	bool below; /* and all names below it */
	enum special special;
} names[] = {
	{ "localhost", true, SPECIAL_LOOPBACK },
	{ "use-application-dns.net", false, SPECIAL_NXDOMAIN },
	{ "resolver.arpa", true, SPECIAL_NODATA },
	{ "ipv4only.arpa", false, SPECIAL_NODATA },
};

/* "4.3.2.1.in-addr.arpa" is 1.2.3.4. */
static struct ip reverse_ip(const char *host)
{
	const struct ip none = { .len = 0 };
	char text[IP_TEXT_MAX], part[4][4];
	struct ip ip;

	for (size_t i = 0; i < 4; i++) {
		size_t len = strcspn(host, ".");

		if (!len || len >= sizeof(part[i]) || host[len] != '.')
			return none;
		memcpy(part[i], host, len);
		part[i][len] = '\0';
		host += len + 1;
	}
	if (strcmp(host, "in-addr.arpa") != 0)
		return none;
	snprintf(text, sizeof(text), "%s.%s.%s.%s", part[3], part[2], part[1],
		 part[0]);
	return ip_parse(text, &ip) ? ip : none;
}

enum special special_name(const char *host, uint16_t type, struct ip *ret_ip)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(host, names[i].host) == 0 ||
		    (names[i].below && host_below(host, names[i].host)))
			return names[i].special;
	if (type != DNS_PTR || (!host_below(host, "in-addr.arpa") &&
				!host_below(host, "ip6.arpa")))
		return SPECIAL_NONE;
	*ret_ip = reverse_ip(host);
	return SPECIAL_REVERSE;
}
