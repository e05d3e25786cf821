/* SPDX-License-Identifier: Apache-2.0
 *
 * gateway_join.c - a sandbox whose namespace is an engine's.
 *
 * The engine names the namespace before it has moved our link there, or while
 * it does: then come the link's name, address and routes, in some order. What
 * is there when it is done is what has to stay. Until then nothing is amiss but
 * interfaces that are not ours: by those something could leave.
 */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/gateway_impl.h"
#include "firewall/lock.h"
#include "launch/link.h"
#include "launch/link_view.h"

/* So long an engine may take. */
#define SETTLE_MS 10000
/* So often @view is read again, with an engine at work meanwhile. */
#define SETTLE_READS 50

/* Does our end, interface @index, have its address and the default route? */
static bool is_done(const struct gateway *g, const struct link_view *view,
		    uint32_t index)
{
	char ip[IP_TEXT_MAX], gateway[IP_TEXT_MAX], address[160], route[160];

	ip_format(&g->link.ip, ip);
	ip_format(&g->link.gateway, gateway);
	snprintf(address, sizeof(address), "address %s/%u (%s) of interface %u",
		 ip, g->place.bits, ip, index);
	snprintf(route, sizeof(route),
		 "ipv4 route to anywhere/0 via %s by interface %u, table 254, "
		 "type 1",
		 gateway, index);
	return link_view_has(view, address) && link_view_has(view, route);
}

/* Until nothing was told since @view was read: what was told before, such as
 * our link without its name, must not be taken for a change to it later. */
static int calm(struct gateway *g, struct link_view **view)
{
	const int fd = g->link_watch[SANDBOX_SIDE];
	char unused[1];
	int err = 0;

	for (int i = 0; i < SETTLE_READS && !err &&
			link_view_changed(fd, NULL, unused, sizeof(unused));
	     i++) {
		link_view_free(*view);
		*view = NULL;
		err = link_view_read(g->sandbox.route, view);
	}
	return err;
}

/* "eth1", or "eth1 and others". */
static void name_others(const struct gateway *g, char *buf, size_t cap)
{
	char name[1][16] = { "" };
	size_t n = 0;

	if (g->place.tables)
		(void)link_others(g->sandbox.route, LOCK_GROUP, g->locked.link,
				  name, 1, &n);
	if (n == 0)
		snprintf(buf, cap, "%zu interfaces are not ours", g->others);
	else
		snprintf(buf, cap, "interface %s%s not ours", name[0],
			 n == 1 ? " is" : " and others are");
}

int gateway_settle(struct gateway *g, struct link_view **view, char *reterr,
		   size_t cap)
{
	const bool late = now_ms() >= g->settle_end_ms;
	const size_t before = g->others;
	uint32_t index = 0;
	int err = calm(g, view);

	if (!err)
		err = link_peer(g->sandbox.route, g->ns.fd, g->ifindex, &index);
	if (err && err != -ENODEV) {
		snprintf(reterr, cap, "our link can't be looked for: %s",
			 strerror(-err));
		return err;
	}
	/* Beside the loopback and our own. */
	g->others = link_view_interfaces(*view) - 1;
	if (!err && g->others)
		g->others--;
	if (late || (!err && is_done(g, *view, index))) {
		g->settling = false;
		g->view[SANDBOX_SIDE] = STEAL(*view);
		/* Now it is known which link is ours. */
		if (g->place.tables && gateway_shut(g)) {
			snprintf(reterr, cap, "the tables can't be changed");
			return -EBADMSG;
		}
	}
	if (g->others > before) {
		name_others(g, reterr, cap);
		return g->place.tables ? 1 : -EBADMSG;
	}
	if (late && err) {
		snprintf(reterr, cap, "our link is not there");
		return 1;
	}
	return 0;
}

int gateway_join(struct gateway *g, int ns, char *reterr, size_t cap)
{
	int err = g->place.join && g->sandbox.fd < 0 ? 0 : -EALREADY;

	if (!err)
		err = gateway_take_sandbox(g, ns);
	if (err) {
		snprintf(reterr, cap, "the sandbox's namespace: %s",
			 strerror(-err));
		return err;
	}
	if (g->place.tables)
		err = gateway_lock(g, reterr, cap);
	if (!err) {
		err = link_view_listen(g->link_watch[SANDBOX_SIDE]);
		if (err)
			snprintf(reterr, cap, "watching the links: %s",
				 strerror(-err));
	}
	if (err) {
		close_fd(&g->link_watch[SANDBOX_SIDE]);
		netns_close(&g->sandbox);
		return err;
	}
	g->settling = true;
	g->settle_end_ms = now_ms() + SETTLE_MS;
	return 0;
}
