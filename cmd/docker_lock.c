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
#include "launch/link.h"
#include "launch/netns.h"

#define ROUTE_LOCALNET "ipv4/conf/all/route_localnet"
#define OTHERS_MAX     16 /* networks of one container */

static int open_socket(int protocol, int *ret_fds, size_t *ret_n)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return -errno;
	ret_fds[(*ret_n)++] = fd;
	return 0;
}

/* @arg: also the sysctl and a NETLINK_ROUTE socket, see struct inside. */
struct inside {
	bool sysctl, route;
};

static int go_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	const struct inside *inside = arg;
	int r = 0;

	*ret_n = 0;
	if (inside->sysctl)
		r = netns_sysctl(ROUTE_LOCALNET, "1");
	if (r == 0)
		r = open_socket(NETLINK_NETFILTER, ret_fds, ret_n);
	if (r == 0 && inside->route)
		r = open_socket(NETLINK_ROUTE, ret_fds, ret_n);
	return r;
}

static int install(struct nft *nft, const struct lock_spec *spec, char *reterr,
		   size_t cap)
{
	int r = lock_verify(nft, spec, reterr, cap);

	if (r != -EBADMSG)
		goto out;
	r = lock_install(nft, spec);
	if (r == 0)
		r = lock_verify(nft, spec, reterr, cap);
out:
	if (r < 0 && r != -EBADMSG)
		(void)snprintf(reterr, cap, "no table in its namespace: %s",
			       strerror(-r));
	return r;
}

int docker_lock(int ns, const struct ip *gateway, struct nft **ret_nft,
		char *reterr, size_t cap)
{
	const struct lock_spec spec = { .gateway = *gateway };
	struct inside inside = { .sysctl = true };
	struct nft *nft = NULL;
	int fds[8];
	size_t n = 0;

	int r = netns_enter(ns, go_inside, &inside, fds, &n);
	if (r == 0)
		r = nft_open(fds[0], &nft);
	if (r < 0) {
		(void)snprintf(reterr, cap, "can't enter its namespace: %s",
			       strerror(-r));
		return r;
	}
	r = install(nft, &spec, reterr, cap);
	if (r == 0 && ret_nft)
		*ret_nft = STEAL(nft);
	nft_close(nft);
	return r;
}

static int shut_all(struct nft *nft, int route, char *ret_name)
{
	char name[OTHERS_MAX][16];
	size_t n = 0;

	int r = link_others(route, LOCK_GROUP, name, OTHERS_MAX, &n);
	if (r == 0 && n > OTHERS_MAX)
		r = -E2BIG;
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = lock_shut(nft, name[i]);
		if (r == -EOPNOTSUPP)
			r = link_down(route, name[i]);
		/* It has gone, or has another name by now: then there is
		 * another change to be told of. */
		if (r == -ENOENT || r == -ENODEV)
			r = 0;
	}
	if (r < 0)
		return r;
	memcpy(ret_name, n ? name[0] : "", n ? sizeof(name[0]) : 1);
	return (int)n;
}

int docker_shut(int ns, char *ret_name)
{
	struct inside inside = { .route = true };
	struct nft *nft = NULL;
	int fds[8];
	size_t n = 0;

	int r = netns_enter(ns, go_inside, &inside, fds, &n);
	if (r < 0)
		return r;
	AUTO_FD int route = fds[1];
	r = nft_open(fds[0], &nft);
	if (r == 0)
		r = shut_all(nft, route, ret_name);
	nft_close(nft);
	return r;
}
