/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_lock.c - a helper goes into the namespace, writes the sysctl and
 * brings a socket back; the rest is sent from here.
 */
#include "cmd/docker_lock.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "firewall/lock.h"
#include "firewall/ruleset.h"
#include "launch/netns.h"

#define ROUTE_LOCALNET "ipv4/conf/all/route_localnet"

static int go_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	int r = netns_sysctl(ROUTE_LOCALNET, "1");

	(void)arg;
	if (r < 0)
		return r;
	ret_fds[0] =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (ret_fds[0] < 0)
		return -errno;
	*ret_n = 1;
	return 0;
}

static int install(struct nft *nft, struct lock_spec *spec, char *reterr,
		   size_t cap)
{
	int r = lock_verify(nft, spec, reterr, cap);

	if (r == 0)
		r = lock_verify_shut(nft, spec, NULL, 0, reterr, cap);
	if (r != -EBADMSG)
		goto out;
	r = lock_install(nft, spec);
	if (r == 0)
		r = lock_verify(nft, spec, reterr, cap);
	if (r == 0)
		r = lock_verify_shut(nft, spec, NULL, 0, reterr, cap);
out:
	if (r < 0 && r != -EBADMSG)
		(void)snprintf(reterr, cap, "no table in its namespace: %s",
			       strerror(-r));
	return r;
}

int docker_lock(int ns, struct lock_spec *spec, struct nft **ret_nft,
		char *reterr, size_t cap)
{
	struct nft *nft = NULL;
	int fds[8];
	size_t n = 0;

	int r = netns_enter(ns, go_inside, NULL, fds, &n);
	if (r == 0)
		r = nft_open(fds[0], &nft);
	if (r < 0) {
		(void)snprintf(reterr, cap, "can't enter its namespace: %s",
			       strerror(-r));
		return r;
	}
	r = install(nft, spec, reterr, cap);
	if (r == 0 && ret_nft)
		*ret_nft = STEAL(nft);
	nft_close(nft);
	return r;
}
