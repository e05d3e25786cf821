/* SPDX-License-Identifier: Apache-2.0
 *
 * keeper_spare.c - what is done for a sandbox that nobody has asked for yet:
 * all that does not depend on its policy, its name and its log.
 *
 *	gate, ledger	run, have isolated themselves, and wait
 *	gateway		its namespace, rules and link are there; the rules let
 *			nothing through but what comes to the gate, which does
 *			not read yet
 *
 * Nobody is in the sandbox's namespace, and it has no name that somebody could
 * enter it by. Between this and its start can lie minutes. So links are watched
 * from now on, and after START all rules and links are read back: whoever has
 * touched something, or ended one of our processes, has made it none.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/keeper.h"
#include "launch/child.h"

void keeper_prepare(struct keeper *k)
{
	const struct gateway_place place = { .sandbox = k->netns };
	char why[512];
	int err;

	k->warden.root = true;
	err = warden_begin(&k->warden);
	if (err)
		die(EXIT_SALLYPORT, "starting gate and ledger: %s",
		    strerror(-err));
	if (gateway_begin(&k->gateway, &place, why, sizeof(why)) ||
	    gateway_build(&k->gateway, why, sizeof(why)))
		die(EXIT_SALLYPORT, "%s", why);
	k->prepared = true;
	err = msg_send(CHILD_SOCKET, MSG_KEEP_PREPARED, NULL, -1);
	if (err)
		die(EXIT_SALLYPORT, "the daemon: %s", strerror(-err));
}

void keeper_wait(const struct keeper *k)
{
	struct pollfd p[] = {
		{ .fd = CHILD_SOCKET, .events = POLLIN },
		{ .fd = k->warden.gate.pidfd, .events = POLLIN },
		{ .fd = k->warden.ledger.pidfd, .events = POLLIN },
	};

	while (poll(p, ARRAY_SIZE(p), -1) < 0)
		if (errno != EINTR)
			die(EXIT_SALLYPORT, "%s", strerror(errno));
	if (p[1].revents || p[2].revents)
		die(EXIT_SALLYPORT, "its %s died while it waited",
		    p[1].revents ? "gate" : "ledger");
}

bool keeper_fits(const struct keeper *k)
{
	const struct msg_keep_start *start = &k->start;
	const struct gateway_place *place = &k->gateway.place;

	return start->link == KEEP_LINK_OWN && !start->tables &&
	       (!*start->ifname || strcmp(start->ifname, place->ifname) == 0) &&
	       ip_equal(&start->ip, &place->ip) &&
	       ip_equal(&start->gateway, &place->gateway) &&
	       start->bits == place->bits;
}
