/* SPDX-License-Identifier: Apache-2.0
 *
 * gateway_lock.c - the tables that keep a sandbox in where its namespace is an
 * engine's, which may connect it to other networks (firewall/lock.h), and where
 * somebody inside may have rights over it.
 *
 * The tables are ours alone as long as we live, where the kernel can do that;
 * elsewhere they are looked at now and then. What no table in there can hold
 * for good, since it is bound to names, is held outside: of the veth of another
 * network, the end that is on the host is taken down.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/docker_lock.h"
#include "cmd/gateway_impl.h"
#include "firewall/lock.h"
#include "launch/link.h"

/* Interfaces may come and go while they are shut. */
#define SHUT_TRIES 8

struct others {
	uint32_t link; /* ours: its index, 0 if it is not there */
	char name[LOCK_OTHERS_MAX][16];
	size_t n;
};

int gateway_lock(struct gateway *g, char *reterr, size_t cap)
{
	struct lock_spec spec = {
		.gateway = g->link.gateway,
		.link = g->locked.link,
		.owned = true,
		.netdev = true,
		.early = true,
	};
	struct nft *lock = NULL;
	int err;

	/* What is owned by the old socket is nobody's from here on. */
	nft_close(g->lock);
	g->lock = NULL;
	err = docker_lock(g->sandbox.fd, &spec, &lock, reterr, cap);
	if (err)
		return err;
	g->lock = lock;
	g->locked = spec;
	g->shut_n = 0;
	return 0;
}

/* --- other networks ------------------------------------------------------ */

static int find_others(const struct gateway *g, struct others *ret)
{
	const int route = g->sandbox.route;
	int err = link_peer(route, g->ns.fd, g->ifindex, &ret->link);

	/* Not moved there yet; or somebody has removed it. */
	if (err == -ENODEV) {
		ret->link = g->locked.link;
		err = 0;
	}
	if (!err)
		err = link_others(route, LOCK_GROUP, ret->link, ret->name,
				  LOCK_OTHERS_MAX, &ret->n);
	return !err && ret->n > LOCK_OTHERS_MAX ? -E2BIG : err;
}

static bool as_before(const struct gateway *g, const struct others *others)
{
	return others->link == g->locked.link && others->n == g->shut_n &&
	       memcmp(others->name, g->shut, others->n * sizeof(g->shut[0])) ==
		       0;
}

/* The host's end of @name, where it has one; nobody inside can change that. */
static void cut_outside(const struct gateway *g, const char *name)
{
	AUTO_FD int host =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	uint32_t inside, outside;
	char ifname[IF_NAMESIZE];
	int err;

	if (host < 0 || link_index(g->sandbox.route, name, &inside) ||
	    link_peer(host, g->sandbox.fd, inside, &outside) ||
	    !if_indextoname(outside, ifname))
		return;
	err = link_down(host, ifname);
	if (err)
		log_warn(
			"%s, the host's end of another network's link, stays up: %s",
			ifname, strerror(-err));
}

static int shut(struct gateway *g, const struct others *others)
{
	const char(*name)[16] = others->name;
	int err = lock_shut(g->lock, &g->locked, name, others->n);

	for (size_t i = 0; i < others->n; i++) {
		if (err == -EOPNOTSUPP) {
			int down = link_down(g->sandbox.route, name[i]);

			if (down && down != -ENODEV)
				return down;
		}
		cut_outside(g, name[i]);
	}
	return err == -EOPNOTSUPP ? 0 : err;
}

/* Which link is ours is known, or another one is. */
static int change_link(struct gateway *g, uint32_t link)
{
	char why[200];
	int err;

	if (link == g->locked.link)
		return 0;
	g->locked.link = link;
	err = lock_install(g->lock, &g->locked);
	return err ? err : lock_verify(g->lock, &g->locked, why, sizeof(why));
}

int gateway_shut(struct gateway *g)
{
	struct others others;
	int err = -ENOENT;

	for (int i = 0; err == -ENOENT && i < SHUT_TRIES; i++) {
		memset(&others, 0, sizeof(others));
		err = find_others(g, &others);
		if (!err)
			err = change_link(g, others.link);
		if (!err)
			err = shut(g, &others);
	}
	if (err)
		return err;
	memcpy(g->shut, others.name, sizeof(g->shut));
	g->shut_n = others.n;
	return 0;
}

/* --- now and then -------------------------------------------------------- */

/* @changed: the links are not those that were shut. 0, -EBADMSG and what
 * differs, or -errno. */
static int verify(struct gateway *g, bool changed, char *reterr, size_t cap)
{
	int err = lock_verify(g->lock, &g->locked, reterr, cap);

	if (!err && !changed)
		err = lock_verify_shut(g->lock, &g->locked,
				       (const char(*)[16])g->shut, g->shut_n,
				       reterr, cap);
	return err;
}

int gateway_verify_lock(struct gateway *g, char *reterr, size_t cap)
{
	struct others others = { 0 };
	char why[200] = "";
	bool changed;
	int err;

	if (!g->lock)
		return 0;
	changed = find_others(g, &others) || !as_before(g, &others);
	err = verify(g, changed, reterr, cap);
	if (err && gateway_lock(g, why, sizeof(why))) {
		snprintf(reterr, cap, "%s", why);
		return -EPERM;
	}
	if ((err || changed) && gateway_shut(g)) {
		snprintf(reterr, cap, "other networks can't be shut out");
		return -EPERM;
	}
	return err ? 1 : 0;
}
