/* SPDX-License-Identifier: Apache-2.0
 *
 * sysctl.c - the settings of our namespaces.
 *
 * A new namespace may inherit IPv4 settings of the host
 * (devconf_inherit_init_net), where forwarding is often on, so that everything
 * we rely on is written, also where it is the usual default. "default" holds
 * for interfaces made later.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/netns.h"

struct setting {
	const char *key, *value;
	bool optional; /* absent from kernels without IPv6 */
};

static const struct setting gateway[] = {
	{ "ipv4/ip_forward", "0", false },
	/* Both masks and rates: each refusal is answered. The mask also takes
	 * a message out of the limit that all namespaces share. */
	{ "ipv4/icmp_ratelimit", "0", false },
	{ "ipv4/icmp_ratemask", "0", false },
	{ "ipv4/icmp_echo_ignore_broadcasts", "1", false },
	{ "ipv4/conf/all/rp_filter", "1", false },
	{ "ipv4/conf/default/rp_filter", "1", false },
	{ "ipv4/conf/all/route_localnet", "0", false },
	{ "ipv4/conf/default/route_localnet", "0", false },
	{ "ipv4/conf/all/accept_local", "0", false },
	{ "ipv4/conf/default/accept_local", "0", false },
	{ "ipv4/conf/all/accept_redirects", "0", false },
	{ "ipv4/conf/default/accept_redirects", "0", false },
	{ "ipv4/conf/all/send_redirects", "0", false },
	{ "ipv4/conf/default/send_redirects", "0", false },
	{ "ipv4/conf/all/accept_source_route", "0", false },
	{ "ipv4/conf/default/accept_source_route", "0", false },
	/* A sandbox learns nothing of the links of others by ARP. */
	{ "ipv4/conf/all/proxy_arp", "0", false },
	{ "ipv4/conf/default/proxy_arp", "0", false },
	{ "ipv4/conf/all/arp_ignore", "1", false },
	{ "ipv4/conf/all/arp_announce", "2", false },
	/* Switched off, the rules would not see it. */
	{ "ipv6/conf/all/disable_ipv6", "0", true },
	{ "ipv6/conf/default/disable_ipv6", "0", true },
	{ "ipv6/conf/all/forwarding", "0", true },
	{ "ipv6/conf/default/forwarding", "0", true },
	{ "ipv6/conf/all/accept_ra", "0", true },
	{ "ipv6/conf/default/accept_ra", "0", true },
	{ "ipv6/conf/default/autoconf", "0", true },
	{ "ipv6/conf/default/router_solicitations", "0", true },
	{ "ipv6/conf/default/addr_gen_mode", "1", true },
};

static const struct setting sandbox[] = {
	{ "ipv6/conf/all/disable_ipv6", "1", true },
	{ "ipv6/conf/default/disable_ipv6", "1", true },
	{ "ipv6/conf/default/addr_gen_mode", "1", true },
	{ "ipv4/conf/all/accept_redirects", "0", false },
	{ "ipv4/conf/default/accept_redirects", "0", false },
};

int netns_sysctl(const char *key, const char *value)
{
	char path[160];
	size_t len = strlen(value);

	int n = snprintf(path, sizeof(path), "/proc/sys/net/%s", key);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t written = write(fd, value, len);
	if (written < 0)
		return -errno;
	return (size_t)written == len ? 0 : -EIO;
}

static int apply(const struct setting *setting, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r = netns_sysctl(setting[i].key, setting[i].value);

		if (r < 0 && !(setting[i].optional && r == -ENOENT))
			return r;
	}
	return 0;
}

int netns_gateway_sysctls(void)
{
	return apply(gateway, ARRAY_SIZE(gateway));
}

int netns_sandbox_sysctls(void)
{
	return apply(sandbox, ARRAY_SIZE(sandbox));
}
