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

static const struct setting gateway_v4[] = {
	{ "ip_forward", "0", false },
	/* Both masks and rates: each refusal is answered. The mask also takes
	 * a message out of the limit that all namespaces share. */
	{ "icmp_ratelimit", "0", false },
	{ "icmp_ratemask", "0", false },
	{ "icmp_echo_ignore_broadcasts", "1", false },
	{ "conf/all/rp_filter", "1", false },
	{ "conf/default/rp_filter", "1", false },
	{ "conf/all/route_localnet", "0", false },
	{ "conf/default/route_localnet", "0", false },
	{ "conf/all/accept_local", "0", false },
	{ "conf/default/accept_local", "0", false },
	{ "conf/all/accept_redirects", "0", false },
	{ "conf/default/accept_redirects", "0", false },
	{ "conf/all/send_redirects", "0", false },
	{ "conf/default/send_redirects", "0", false },
	{ "conf/all/accept_source_route", "0", false },
	{ "conf/default/accept_source_route", "0", false },
	/* A sandbox learns nothing of the links of others by ARP. */
	{ "conf/all/proxy_arp", "0", false },
	{ "conf/default/proxy_arp", "0", false },
	{ "conf/all/arp_ignore", "1", false },
	{ "conf/all/arp_announce", "2", false },
};

static const struct setting gateway_v6[] = {
	/* Switched off, the rules would not see it. */
	{ "conf/all/disable_ipv6", "0", true },
	{ "conf/default/disable_ipv6", "0", true },
	{ "conf/all/forwarding", "0", true },
	{ "conf/default/forwarding", "0", true },
	{ "conf/all/accept_ra", "0", true },
	{ "conf/default/accept_ra", "0", true },
	{ "conf/default/autoconf", "0", true },
	{ "conf/default/router_solicitations", "0", true },
	{ "conf/default/addr_gen_mode", "1", true },
};

static const struct setting sandbox_v4[] = {
	{ "conf/all/accept_redirects", "0", false },
	{ "conf/default/accept_redirects", "0", false },
};

static const struct setting sandbox_v6[] = {
	{ "conf/all/disable_ipv6", "1", true },
	{ "conf/default/disable_ipv6", "1", true },
	{ "conf/default/addr_gen_mode", "1", true },
};

static int write_at(int dir, const char *key, const char *value)
{
	size_t len = strlen(value);

	AUTO_FD int fd = openat(dir, key, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t written = write(fd, value, len);
	if (written < 0)
		return -errno;
	return (size_t)written == len ? 0 : -EIO;
}

int netns_sysctl(const char *key, const char *value)
{
	char path[160];

	int n = snprintf(path, sizeof(path), "/proc/sys/net/%s", key);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return write_at(AT_FDCWD, path, value);
}

/* Settings of one directory of /proc/sys/net, their keys without it. It is
 * opened once: the kernel looks for it among those of all namespaces, one after
 * the other, and there may be thousands. */
static int apply(const char *path, const struct setting *setting, size_t n)
{
	AUTO_FD int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int err = dir < 0 ? -errno : 0;

	for (size_t i = 0; i < n; i++) {
		int r = err ? err
			    : write_at(dir, setting[i].key, setting[i].value);

		if (r < 0 && !(setting[i].optional && r == -ENOENT))
			return r;
	}
	return 0;
}

static int apply_all(const struct setting *v4, size_t n4,
		     const struct setting *v6, size_t n6)
{
	int r = apply("/proc/sys/net/ipv4", v4, n4);

	return r ? r : apply("/proc/sys/net/ipv6", v6, n6);
}

int netns_gateway_sysctls(void)
{
	return apply_all(gateway_v4, ARRAY_SIZE(gateway_v4), gateway_v6,
			 ARRAY_SIZE(gateway_v6));
}

int netns_sandbox_sysctls(void)
{
	return apply_all(sandbox_v4, ARRAY_SIZE(sandbox_v4), sandbox_v6,
			 ARRAY_SIZE(sandbox_v6));
}
