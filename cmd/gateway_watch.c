/* SPDX-License-Identifier: Apache-2.0
 *
 * gateway_watch.c - what others did to the topology, and how it is put back.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/gateway_impl.h"
#include "cmd/guard_gateway.h"
#include "firewall/guard.h"
#include "firewall/watch.h"
#include "launch/link_view.h"

/* In each namespace: the loopback and the link between them. */
#define INTERFACES 2

static const char *const side_name[GATEWAY_SIDES] = {
	[GATEWAY_SIDE] = "the gateway's namespace",
	[SANDBOX_SIDE] = "the sandbox's namespace",
};

static int route_of(const struct gateway *g, size_t side)
{
	return side == SANDBOX_SIDE ? g->sandbox.route : g->ns.route;
}

/* What is on the sandbox's side may be told, and no more. */
static bool only_told(const struct gateway *g, size_t side)
{
	return side == SANDBOX_SIDE && g->place.tables;
}

static size_t others_of(const struct link_view *view)
{
	const size_t n = link_view_interfaces(view);

	return n > INTERFACES ? n - INTERFACES : 0;
}

static int watch_side(struct gateway *g, size_t side, char *reterr, size_t cap)
{
	int err;

	/* Nobody is there yet. */
	if (g->link_watch[side] < 0)
		return 0;
	err = link_view_listen(g->link_watch[side]);
	if (!err)
		err = link_view_read(route_of(g, side), &g->view[side]);
	if (err) {
		snprintf(reterr, cap, "watching the links: %s", strerror(-err));
		return err;
	}
	if (only_told(g, side)) {
		g->others = others_of(g->view[side]);
		err = gateway_shut(g);
		if (err)
			snprintf(reterr, cap, "shutting other networks: %s",
				 strerror(-err));
		return err;
	}
	if (link_view_interfaces(g->view[side]) == INTERFACES)
		return 0;
	snprintf(reterr, cap, "%s has interfaces that are not ours",
		 side_name[side]);
	return -EBADMSG;
}

int gateway_watch_rules(struct gateway *g, char *reterr, size_t cap)
{
	int err = watch_listen(g->rules_watch, g->nft);

	if (err)
		snprintf(reterr, cap, "watching the rules: %s", strerror(-err));
	return err;
}

int gateway_watch_links(struct gateway *g, char *reterr, size_t cap)
{
	int err = 0;

	for (size_t i = 0; !err && i < GATEWAY_SIDES; i++)
		err = watch_side(g, i, reterr, cap);
	return err;
}

/* As gateway_verify_links(). */
static int verify_side(struct gateway *g, size_t side, char *reterr, size_t cap)
{
	struct link_view *view = NULL;
	int err;

	if (g->link_watch[side] < 0)
		return 0;
	err = link_view_read(route_of(g, side), &view);
	if (err)
		snprintf(reterr, cap, "can't be read: %s", strerror(-err));
	else if (side == SANDBOX_SIDE && g->settling)
		err = gateway_settle(g, &view, reterr, cap);
	else
		err = link_view_compare(g->view[side], view, reterr, cap);
	if (err == -EBADMSG && only_told(g, side)) {
		/* Told once; from here on it is so. */
		struct link_view *was = g->view[side];

		g->others = others_of(view);
		g->view[side] = view;
		view = was;
		err = 1;
	}
	link_view_free(view);
	if (err == 1 && only_told(g, side) && gateway_shut(g)) {
		snprintf(reterr, cap, "other networks can't be shut out");
		return -EBADMSG;
	}
	return err;
}

int gateway_verify_links(struct gateway *g, char *reterr, size_t cap)
{
	char differs[400];
	int err = 0;

	if (g->guard)
		return guard_gateway_follow(g, reterr, cap);
	for (size_t i = 0; !err && i < GATEWAY_SIDES; i++) {
		err = verify_side(g, i, differs, sizeof(differs));
		if (err)
			snprintf(reterr, cap, "%s: %s", side_name[i], differs);
	}
	return err;
}

int gateway_link_news(struct gateway *g, int fd, char *reterr, size_t cap)
{
	const size_t side =
		fd == g->link_watch[SANDBOX_SIDE] ? SANDBOX_SIDE : GATEWAY_SIDE;
	char what[300] = "";
	int got;

	if (g->guard)
		return guard_gateway_news(fd);
	got = link_view_changed(fd, g->view[side], what, sizeof(what));

	/* While an engine is at work all is new. */
	if (got == -EBADMSG && !g->view[side])
		return 1;
	if (got == -EBADMSG)
		snprintf(reterr, cap, "%s: %s", side_name[side], what);
	return got == -EBADMSG && only_told(g, side) ? 2 : got;
}

int gateway_links_stayed(struct gateway *g, char *reterr, size_t cap)
{
	for (size_t i = 0; i < GATEWAY_SIDES; i++) {
		int got = g->link_watch[i] < 0
				  ? 0
				  : gateway_link_news(g, g->link_watch[i],
						      reterr, cap);

		if (got < 0 && got != -EBADMSG)
			snprintf(reterr, cap, "the watch over the links: %s",
				 strerror(-got));
		if (got < 0)
			return got;
	}
	return gateway_verify_links(g, reterr, cap);
}

/* The link's elements, and what the policy allows as addresses. */
static int put_back(struct gateway *g, const struct policy *policy)
{
	int err;

	if (g->guard) {
		err = guard_gateway_install(g);
		return err ? err : gateway_literals(g, NULL, policy);
	}
	err = ruleset_install(g->nft, &g->spec);
	if (!err)
		err = ruleset_link_add(g->nft, &g->link, g->spec.proxy_port);
	return err ? err : gateway_literals(g, NULL, policy);
}

int gateway_restore(struct gateway *g, const struct policy *policy,
		    uint32_t *ret_generation, char *reterr, size_t cap)
{
	struct ruleset_counters total;
	uint32_t generation;
	int err = watch_generation(g->nft, &generation);

	/* As far as they still are there. */
	(void)gateway_counters(g, &total);
	g->before = total;
	g->last = (struct ruleset_counters){ 0 };
	gateway_drop_changes(g);
	if (!err)
		err = put_back(g, policy);
	if (err) {
		snprintf(reterr, cap, "%s", strerror(-err));
		return err;
	}
	err = gateway_verify(g, reterr, cap);
	if (!err)
		*ret_generation = generation;
	return err;
}

/* --- counters ------------------------------------------------------------ */

static const size_t counter[] = {
	offsetof(struct ruleset_counters, spoofed),
	offsetof(struct ruleset_counters, refused),
	offsetof(struct ruleset_counters, ipv6),
	offsetof(struct ruleset_counters, forwarded),
};

static uint64_t *at(struct ruleset_counters *counters, size_t i)
{
	return (uint64_t *)((char *)counters + counter[i]);
}

int gateway_counters(struct gateway *g, struct ruleset_counters *ret)
{
	struct ruleset_counters now;
	int err = g->guard ? guard_counters(g->nft, &now)
			   : ruleset_counters(g->nft, &now);

	for (size_t i = 0; i < ARRAY_SIZE(counter); i++) {
		/* Somebody began to count anew. */
		if (!err && *at(&now, i) < *at(&g->last, i))
			*at(&g->before, i) += *at(&g->last, i);
		if (!err)
			*at(&g->last, i) = *at(&now, i);
		*at(ret, i) = *at(&g->before, i) + *at(&g->last, i);
	}
	return err;
}
