/* SPDX-License-Identifier: Apache-2.0
 *
 * guard_gateway.c - rules in a namespace that others use too.
 *
 * Interfaces come and go there (a container engine inside makes some), and that
 * is no attack: the rules of IP hold for all of them, and the one about packet
 * sockets follows. What others do to their own tables is theirs.
 */
#include "cmd/guard_gateway.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/gateway.h"
#include "firewall/guard.h"
#include "firewall/nflog.h"
#include "firewall/watch.h"
#include "firewall/xdp_hold.h"

/* Others may have taken one. */
#define NFLOG_GROUP_FIRST 3128
#define NFLOG_GROUPS	  64

static int netlink(int protocol, uint32_t groups)
{
	const struct sockaddr_nl own = { .nl_family = AF_NETLINK,
					 .nl_groups = groups };
	AUTO_FD int fd =
		socket(AF_NETLINK,
		       SOCK_RAW | SOCK_CLOEXEC | (groups ? SOCK_NONBLOCK : 0),
		       protocol);

	if (fd < 0)
		return -errno;
	if (groups && bind(fd, (const struct sockaddr *)&own, sizeof(own)) < 0)
		return -errno;
	return steal_fd(&fd);
}

static int open_nflog(struct gateway *g)
{
	int fd = netlink(NETLINK_NETFILTER, 0), err = -EBUSY;

	if (fd < 0)
		return fd;
	g->socket[GATE_NFLOG] = fd;
	for (unsigned i = 0; err == -EBUSY && i < NFLOG_GROUPS; i++) {
		g->guard->nflog_group = (uint16_t)(NFLOG_GROUP_FIRST + i);
		err = nflog_bind(fd, g->guard->nflog_group);
	}
	return err;
}

static int open_sockets(struct gateway *g)
{
	int fd = netlink(NETLINK_NETFILTER, 0), err;

	if (fd < 0)
		return fd;
	err = nft_open(fd, &g->nft);
	if (err)
		return err;
	guard_use(g->nft);
	g->rules_watch = netlink(NETLINK_NETFILTER, 0);
	if (g->rules_watch < 0)
		return g->rules_watch;
	g->link_watch[GATEWAY_SIDE] = netlink(NETLINK_ROUTE, RTMGRP_LINK);
	if (g->link_watch[GATEWAY_SIDE] < 0)
		return g->link_watch[GATEWAY_SIDE];
	return open_nflog(g);
}

int guard_gateway_install(struct gateway *g)
{
	int err = guard_find_devices(g->guard);

	return err ? err : guard_install(g->nft, g->guard);
}

/* With a rule for packet sockets if this kernel has a place for it. */
static int install_first(struct gateway *g)
{
	int err;

	g->guard->egress = true;
	err = guard_gateway_install(g);
	if (err != -EOPNOTSUPP && err != -EINVAL && err != -ENOENT)
		return err;
	g->guard->egress = false;
	return guard_gateway_install(g);
}

static void forget_connections(void)
{
	AUTO_FD int fd = netlink(NETLINK_NETFILTER, 0);

	/* Where that can't be, their packets are refused all the same. */
	if (fd >= 0)
		(void)guard_forget_connections(fd);
}

static int explain(int err, const char *what, const char *more, char *reterr,
		   size_t cap)
{
	snprintf(reterr, cap, "%s: %s%s%s", what, strerror(-err),
		 *more ? ": " : "", more);
	return err;
}

static int load(const struct policy *policy, struct gateway *g,
		bool *ret_loaded, char *reterr, size_t cap)
{
	char differs[300] = "";
	int err = watch_listen(g->rules_watch, g->nft);

	if (!err)
		err = install_first(g);
	if (err)
		return explain(err, "loading the rules",
			       err == -EPERM
				       ? "CAP_NET_ADMIN is missing (docker "
					 "run --cap-add NET_ADMIN)"
			       : err == -ENOENT
				       ? "does the kernel have nf_tables with "
					 "nat, redir, ct, reject and log?"
				       : "",
			       reterr, cap);
	*ret_loaded = true;
	forget_connections();
	err = gateway_literals(g, NULL, policy);
	if (err)
		return explain(err, "opening the policy's addresses", "",
			       reterr, cap);
	err = guard_gateway_verify(g, g->digest, differs, sizeof(differs));
	if (err)
		return explain(err,
			       "the rules read back from the kernel are not "
			       "those that were loaded",
			       differs, reterr, cap);
	return 0;
}

int guard_gateway_open(const struct policy *policy, struct guard_spec *spec,
		       struct gateway *ret, bool *ret_loaded, char *reterr,
		       size_t cap)
{
	int err;

	*ret = (struct gateway){ .guard = spec,
				 .ns = { -1, -1, -1 },
				 .sandbox = { -1, -1, -1 },
				 .rules_watch = -1,
				 .link_watch = { -1, -1 },
				 /* Inbound connections end on loopback. */
				 .link = { .ifname = GUARD_FLOWS_OF,
					   .ip = ip_v4(INADDR_LOOPBACK) } };
	for (size_t i = 0; i < GATE_SOCKET_COUNT; i++)
		ret->socket[i] = -1;
	*ret_loaded = false;
	err = open_sockets(ret);
	if (err)
		explain(err, "netlink",
			err == -EPERM ? "CAP_NET_ADMIN is missing (docker run "
					"--cap-add NET_ADMIN)"
				      : "",
			reterr, cap);
	else
		err = load(policy, ret, ret_loaded, reterr, cap);
	if (err)
		gateway_close(ret);
	return err;
}

/* --- the watch ----------------------------------------------------------- */

/* 1 if there are others now, and the rule was put on them. */
static int follow(struct gateway *g)
{
	struct guard_spec now = *g->guard;
	int err = guard_find_devices(&now);

	if (err || !now.egress ||
	    (now.devices == g->guard->devices &&
	     memcmp(now.device, g->guard->device, sizeof(now.device)) == 0))
		return err;
	err = guard_install_devices(g->nft, &now);
	/* One went away meanwhile: the news of it comes. */
	if (err == -ENOENT || err == -ENODEV)
		return 0;
	if (err)
		return err;
	*g->guard = now;
	/* Who made an interface has rights of root's; it is no reason to end.
	 */
	if (g->xdp && xdp_hold_follow(g->xdp, now.device, now.devices))
		log_warn("AF_XDP could not be taken on a new interface");
	return 1;
}

int guard_gateway_hold(struct gateway *g)
{
	int err = g->xdp ? 0 : xdp_hold_new(&g->xdp);

	return err ? err
		   : xdp_hold_follow(g->xdp, g->guard->device,
				     g->guard->devices);
}

int guard_gateway_follow(struct gateway *g, char *reterr, size_t cap)
{
	int err = follow(g);

	if (err < 0)
		snprintf(reterr, cap,
			 "an interface that the rule about packet sockets "
			 "can't be put on: %s",
			 strerror(-err));
	return err < 0 ? err : 0;
}

int guard_gateway_news(int fd)
{
	char drop[8192];
	int got = 0;

	while (fd >= 0 && (recv(fd, drop, sizeof(drop), MSG_DONTWAIT) > 0 ||
			   errno == ENOBUFS))
		got = 1;
	return got;
}

int guard_gateway_verify(struct gateway *g, char *ret_digest, char *reterr,
			 size_t cap)
{
	int err = guard_verify(g->nft, g->guard, ret_digest, reterr, cap);

	/* An interface is another one than a moment ago: that is no change of
	 * the rules. */
	if (err == -EBADMSG && follow(g) > 0)
		err = guard_verify(g->nft, g->guard, ret_digest, reterr, cap);
	return err;
}
