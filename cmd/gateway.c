/* SPDX-License-Identifier: Apache-2.0
 *
 * gateway.c - the topology.
 *
 * Nothing here ever enters the namespaces with a process that stays:
 * short-lived children make them (launch/netns.h), and what is left are
 * sockets. So nobody runs in the gateway namespace, and nobody could be made to
 * forward.
 */
#include "cmd/gateway_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "dns/lease.h"
#include "firewall/lock.h"
#include "firewall/nflog.h"
#include "firewall/xdp_hold.h"
#include "launch/link.h"
#include "launch/link_view.h"

#define NFLOG_GROUP	 1
#define DNS_PORT	 53
#define TRANSPARENT_PORT 3129

#define LINK_BASE GATEWAY_LINK_BASE
#define LINK_BITS 30

/* So long the kernel may take over a namespace that is no more. */
#define GONE_MS 2000
#define STEP_MS 10

#define VETH_HERE    "sp0"
#define VETH_SANDBOX "eth0"

/* Order of the sockets that gateway_inside() hands over. */
static const enum gate_socket made_inside[] = { GATE_DNS_UDP, GATE_DNS_TCP,
						GATE_EXPLICIT, GATE_TRANSPARENT,
						GATE_NFLOG };

static int open_socket(enum gate_socket which)
{
	const struct ip any = ip_v4(0);

	switch (which) {
	case GATE_DNS_UDP:
		return sock_bind_udp(&any, DNS_PORT, true);
	case GATE_DNS_TCP:
		return sock_listen_tcp(&any, DNS_PORT, true);
	case GATE_EXPLICIT:
		return sock_listen_tcp(&any, GATEWAY_PROXY_PORT, false);
	case GATE_TRANSPARENT:
		return sock_listen_tcp(&any, TRANSPARENT_PORT, true);
	default: {
		int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
				NETLINK_NETFILTER);
		return fd < 0 ? -errno : fd;
	}
	}
}

static int add_netlink(int protocol, int *ret_fds, size_t *ret_n)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return -errno;
	ret_fds[(*ret_n)++] = fd;
	return 0;
}

static int gateway_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	int err = netns_gateway_sysctls();

	(void)arg;
	if (err)
		return err;
	for (size_t i = 0; i < ARRAY_SIZE(made_inside); i++) {
		int fd = open_socket(made_inside[i]);

		if (fd < 0)
			return fd;
		ret_fds[(*ret_n)++] = fd;
	}
	err = add_netlink(NETLINK_NETFILTER, ret_fds, ret_n);
	return err ? err : add_netlink(NETLINK_ROUTE, ret_fds, ret_n);
}

static int sandbox_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	int err = netns_sandbox_sysctls();

	(void)arg;
	return err ? err : add_netlink(NETLINK_ROUTE, ret_fds, ret_n);
}

/* An engine has settings of its own for what it makes. */
static int given_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	const struct gateway_place *place = arg;
	int err = place->tables ? 0 : netns_sandbox_sysctls();

	if (!err)
		err = add_netlink(NETLINK_ROUTE, ret_fds, ret_n);
	return err ? err : add_netlink(NETLINK_ROUTE, ret_fds, ret_n);
}

int gateway_take_sandbox(struct gateway *g, int ns)
{
	AUTO_FD int own = fcntl(ns, F_DUPFD_CLOEXEC, 0);
	size_t n = 0;
	int fds[8], err;

	if (own < 0)
		return -errno;
	err = netns_enter(own, given_inside, &g->place, fds, &n);
	if (err)
		return err;
	g->sandbox.fd = steal_fd(&own);
	g->sandbox.route = fds[0];
	g->link_watch[SANDBOX_SIDE] = fds[1];
	return 0;
}

static int make_sandbox(struct gateway *g)
{
	size_t n = 0;
	int fds[8], err;

	if (g->place.sandbox >= 0)
		return gateway_take_sandbox(g, g->place.sandbox);
	if (g->place.join)
		return 0;
	err = netns_create(&g->sandbox, sandbox_inside, NULL, fds, &n);
	if (!err)
		g->link_watch[SANDBOX_SIDE] = fds[0];
	return err;
}

static int make_namespace(struct gateway *g)
{
	int fds[8];
	size_t n = 0;
	int err = netns_create(&g->ns, gateway_inside, NULL, fds, &n);

	if (err)
		return err;
	for (size_t i = 0; i < ARRAY_SIZE(made_inside); i++)
		g->socket[made_inside[i]] = fds[i];
	g->rules_watch = fds[ARRAY_SIZE(made_inside)];
	g->link_watch[GATEWAY_SIDE] = fds[ARRAY_SIZE(made_inside) + 1];
	return n == ARRAY_SIZE(made_inside) + 2 ? 0 : -EIO;
}

static int make_rules(struct gateway *g)
{
	int err;

	g->spec = (struct ruleset_spec){ .dns_port = DNS_PORT,
					 .proxy_port = GATEWAY_PROXY_PORT,
					 .transparent_port = TRANSPARENT_PORT,
					 .nflog_group = NFLOG_GROUP };
	err = nflog_bind(g->socket[GATE_NFLOG], NFLOG_GROUP);
	if (err)
		return err;
	err = nft_open(steal_fd(&g->ns.filter), &g->nft);
	if (err)
		return err;
	return ruleset_install(g->nft, &g->spec);
}

/* An earlier link of that name ends in a gateway that is no more, though the
 * kernel may not have come to it yet. */
static int make_veth(struct gateway *g)
{
	const char *there = g->place.ifname;
	int err = link_veth(g->ns.route, VETH_HERE, there, g->sandbox.fd);

	if (err == -EEXIST && g->place.sandbox >= 0 &&
	    link_delete(g->sandbox.route, there) == 0)
		err = link_veth(g->ns.route, VETH_HERE, there, g->sandbox.fd);
	return err;
}

static int mark_veth(const struct gateway *g, int route)
{
	return g->place.tables ? link_group(route, g->place.ifname, LOCK_GROUP)
			       : 0;
}

/* Both ends, to each other. An engine's may get another address yet. */
static int introduce(const struct gateway *g, const char *there)
{
	int here_route = g->ns.route, there_route = g->sandbox.route, err;

	if (g->place.tables)
		return 0;
	err = link_neighbour(here_route, VETH_HERE, there_route, there,
			     &g->link.ip);
	return err ? err
		   : link_neighbour(there_route, there, here_route, VETH_HERE,
				    &g->link.gateway);
}

/* The sandbox's end: in its namespace, with address and route. */
static int make_far_end(struct gateway *g)
{
	const struct cidr there = { .ip = g->link.ip, .bits = g->place.bits };
	const char *name = g->place.ifname;
	int route = g->sandbox.route, err;

	if ((err = mark_veth(g, route)) ||
	    (err = link_address(route, name, &there)) ||
	    (err = link_up(route, name)) ||
	    (err = link_wait(g->ns.route, VETH_HERE)) ||
	    (err = introduce(g, name)))
		return err;
	err = link_default_route(route, &g->link.gateway);
	/* Another network has it, by which nothing leaves: that is told. */
	return err == -EEXIST && g->place.tables ? 0 : err;
}

/* It stays where we are, for an engine to move it. */
static int make_loose_end(struct gateway *g)
{
	AUTO_FD int own =
		open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	AUTO_FD int route =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	const struct timespec step = { .tv_nsec = STEP_MS * 1000 * 1000 };
	int err = -EEXIST;

	if (own < 0 || route < 0)
		return -errno;
	/* An earlier one is about to go; but here it may be somebody's. */
	for (int ms = 0; err == -EEXIST && ms < GONE_MS; ms += STEP_MS) {
		if (ms)
			nanosleep(&step, NULL);
		err = link_veth(g->ns.route, VETH_HERE, g->place.ifname, own);
	}
	return err ? err : mark_veth(g, route);
}

static int make_link(struct gateway *g)
{
	const struct cidr here = { .ip = g->link.gateway,
				   .bits = g->place.bits };
	const bool loose = g->sandbox.fd < 0;
	int route = g->ns.route, err;

	if ((err = ruleset_link_add(g->nft, &g->link, g->spec.proxy_port)) ||
	    (err = link_local_delivery(route, RULESET_MARK, RULESET_ROUTES)) ||
	    (err = loose ? make_loose_end(g) : make_veth(g)) ||
	    (err = link_index(route, VETH_HERE, &g->ifindex)) ||
	    (err = link_address(route, VETH_HERE, &here)) ||
	    (err = link_up(route, VETH_HERE)))
		return err;
	return loose ? 0 : make_far_end(g);
}

static int explain(int err, const char *what, const char *more, char *reterr,
		   size_t cap)
{
	snprintf(reterr, cap, "%s: %s%s%s", what, strerror(-err),
		 more && *more ? ": " : "", more ? more : "");
	return err;
}

static int build(struct gateway *g, char *reterr, size_t cap)
{
	int err = make_namespace(g);

	if (err)
		return explain(err, "making network namespaces", NULL, reterr,
			       cap);
	err = make_rules(g);
	if (err)
		return explain(err, "loading the rules",
			       err == -ENOENT
				       ? "does the kernel have nf_tables "
					 "with tproxy, reject and log?"
				       : NULL,
			       reterr, cap);
	if (g->place.tables && g->sandbox.fd >= 0) {
		err = gateway_lock(g, reterr, cap);
		if (err)
			return err;
	}
	err = make_link(g);
	if (err)
		return explain(err, "connecting the sandbox", NULL, reterr,
			       cap);
	/* From here on, however long it is until somebody comes. */
	return gateway_watch_links(g, reterr, cap);
}

static int settle(const struct policy *policy, struct gateway *g, char *reterr,
		  size_t cap)
{
	char differs[256] = "";
	int err = gateway_literals(g, NULL, policy);

	if (err)
		return explain(err, "opening the policy's addresses", NULL,
			       reterr, cap);
	/* Before the look at all of it, so that nothing lies between. */
	err = gateway_watch_rules(g, reterr, cap);
	if (err)
		return err;
	err = ruleset_verify(g->nft, &g->spec, &g->link, 1, g->digest, differs,
			     sizeof(differs));
	if (err)
		return explain(err,
			       "the rules read back from the kernel are "
			       "not those that were loaded",
			       differs, reterr, cap);
	return 0;
}

static struct gateway_place usual(const struct gateway_place *place)
{
	struct gateway_place ret = { .sandbox = -1 };

	if (place)
		ret = *place;
	if (!*ret.ifname)
		snprintf(ret.ifname, sizeof(ret.ifname), VETH_SANDBOX);
	if (!ret.ip.len) {
		ret.ip = ip_v4(LINK_BASE + 2);
		ret.gateway = ip_v4(LINK_BASE + 1);
		ret.bits = LINK_BITS;
	}
	return ret;
}

int gateway_begin(struct gateway *ret, const struct gateway_place *place,
		  char *reterr, size_t cap)
{
	int err;

	*ret = (struct gateway){ .place = usual(place),
				 .ns = { -1, -1, -1 },
				 .sandbox = { -1, -1, -1 },
				 .rules_watch = -1,
				 .link_watch = { -1, -1 },
				 .link = { .ifname = VETH_HERE } };
	ret->link.ip = ret->place.ip;
	ret->link.gateway = ret->place.gateway;
	for (size_t i = 0; i < GATE_SOCKET_COUNT; i++)
		ret->socket[i] = -1;
	err = make_sandbox(ret);
	if (err == -EPERM)
		return explain(err, "making network namespaces",
			       "root without CAP_SYS_ADMIN? try as an "
			       "ordinary user",
			       reterr, cap);
	if (err)
		return explain(err, "making network namespaces", NULL, reterr,
			       cap);
	return 0;
}

int gateway_build(struct gateway *gateway, char *reterr, size_t cap)
{
	int err = build(gateway, reterr, cap);

	if (err)
		gateway_close(gateway);
	return err;
}

int gateway_open(const struct policy *policy, struct gateway *gateway,
		 char *reterr, size_t cap)
{
	const bool waited = gateway->nft;
	int err = waited ? 0 : gateway_build(gateway, reterr, cap);

	if (err)
		return err;
	err = settle(policy, gateway, reterr, cap);
	if (!err && waited)
		err = gateway_links_stayed(gateway, reterr, cap);
	if (err)
		gateway_close(gateway);
	return err;
}

void gateway_close(struct gateway *gateway)
{
	/* A namespace of our own goes with us, and the link with it. */
	if ((gateway->place.sandbox >= 0 || gateway->place.join) &&
	    gateway->ns.route >= 0 && !gateway->passes)
		(void)link_delete(gateway->ns.route, VETH_HERE);
	nft_close(gateway->nft);
	nft_close(gateway->lock);
	gateway->nft = gateway->lock = NULL;
	gateway_drop_changes(gateway);
	for (size_t i = 0; i < GATE_SOCKET_COUNT; i++)
		close_fd(&gateway->socket[i]);
	close_fd(&gateway->rules_watch);
	xdp_hold_free(gateway->xdp);
	gateway->xdp = NULL;
	for (size_t i = 0; i < GATEWAY_SIDES; i++) {
		close_fd(&gateway->link_watch[i]);
		link_view_free(gateway->view[i]);
		gateway->view[i] = NULL;
	}
	netns_close(&gateway->sandbox);
	netns_close(&gateway->ns);
}
