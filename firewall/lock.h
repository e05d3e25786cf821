/* SPDX-License-Identifier: Apache-2.0
 *
 * lock.h - what keeps a container in whose namespace an engine made: by our
 * link only, and names only from our gateway, whatever else the engine puts
 * there. Table "inet sallyport_lock"; tables of others are left alone.
 *
 * Our link is known by its group (IFLA_GROUP), which stays when an engine
 * moves and renames it, so that the rules can be there before the link is:
 * link_group(route, ifname, LOCK_GROUP) of launch/link.h, once it is made.
 * Without it nothing goes through.
 */
#ifndef FIREWALL_LOCK_H
#define FIREWALL_LOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct nft; /* nft_open(), nft_close(): firewall/ruleset.h */

#define LOCK_TABLE    "sallyport_lock"
#define LOCK_GROUP    0x5350u
#define LOCK_RESOLVER 0x7f00000bu /* 127.0.0.11, the engine's own */

struct lock_spec {
	struct ip gateway; /* IPv4; answers port 53 */
};

/* Replaces the table in one atomic batch; its counters begin anew. @nft: of a
 * NETLINK_NETFILTER socket made in the container's namespace, where
 * net.ipv4.conf.all.route_localnet has to be 1 as well: cmd/docker_lock.h does
 * all of it. From Linux 6.16 on it shuts (see lock_shut()) other interfaces
 * with an engine's usual names before they are there. 0 or -errno. */
int lock_install(struct nft *nft, const struct lock_spec *spec);

/* Reads the table back and compares. 0, or -EBADMSG and what differs, or
 * -errno. */
int lock_verify(struct nft *nft, const struct lock_spec *spec, char *reterr,
		size_t cap);

/* Another network's interface: the table drops its IP packets already; this
 * drops what packet sockets send by it, too. Until the interface is gone; twice
 * is fine. -EOPNOTSUPP before Linux 5.16: take it down. 0 or -errno. */
int lock_shut(struct nft *nft, const char *ifname);

/* Packets. */
struct lock_counters {
	uint64_t left;	  /* would have left by another interface, or as IPv6,
			     also what the kernel says unasked: dropped */
	uint64_t entered; /* came by another one: dropped */
	uint64_t names; /* questions taken from the engine's resolver: flows */
	uint64_t stray; /* would have reached that resolver: dropped */
};
int lock_counters(struct nft *nft, struct lock_counters *ret);

#endif
