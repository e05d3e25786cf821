/* SPDX-License-Identifier: Apache-2.0
 *
 * lock.h - what keeps a container in whose namespace an engine made: by our
 * link only, and names only from our gateway, whatever else the engine puts
 * there. Tables "sallyport_lock" of families inet and netdev; tables of others
 * are left alone.
 *
 * Our link is known by its group (IFLA_GROUP), which stays when an engine
 * moves and renames it, so that the rules can be there before the link is:
 * link_group(route, ifname, LOCK_GROUP) of launch/link.h, once it is made.
 * Without it nothing goes through. Who has CAP_NET_ADMIN there can give that
 * group to another link: hence lock_spec.link, once that is known.
 */
#ifndef FIREWALL_LOCK_H
#define FIREWALL_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct nft; /* nft_open(), nft_close(): firewall/ruleset.h */

#define LOCK_TABLE    "sallyport_lock"
#define LOCK_GROUP    0x5350u
#define LOCK_RESOLVER 0x7f00000bu /* 127.0.0.11, the engine's own */

/* So many other interfaces are shut, at most. */
#define LOCK_OTHERS_MAX 15

struct lock_spec {
	struct ip gateway; /* IPv4; answers port 53 */
	uint32_t link;	   /* index of our link there; 0: not known yet, and
			      every link of the group is ours */
	/* What to ask for; what the kernel can't is cleared. */
	bool owned;  /* nobody else changes the tables, root of the namespace
			included, until the socket is closed (Linux 6.9) */
	bool netdev; /* what packet sockets send by other interfaces (5.16) */
	bool early;  /* the same before an interface with a usual name (eth0 to
			eth15) is there (6.16) */
};

/* Replaces the tables, each in one atomic batch; the counters begin anew. @nft:
 * of a NETLINK_NETFILTER socket made in the container's namespace, where
 * net.ipv4.conf.all.route_localnet has to be 1 as well: cmd/docker_lock.h does
 * all of it. -EPERM: somebody else owns a table of that name. 0 or -errno. */
int lock_install(struct nft *nft, struct lock_spec *spec);

/* Reads the first table back and compares. 0, or -EBADMSG and what differs, or
 * -errno. */
int lock_verify(struct nft *nft, const struct lock_spec *spec, char *reterr,
		size_t cap);

/* Other networks' interfaces, at most LOCK_OTHERS_MAX: the first table drops
 * their IP packets already; table "netdev sallyport_lock" drops what packet
 * sockets send by them, too, until they have other names. Replaces what was
 * shut before; @n may be 0. -EOPNOTSUPP where the kernel can't: take them down.
 * 0 or -errno. */
int lock_shut(struct nft *nft, struct lock_spec *spec, const char (*name)[16],
	      size_t n);
/* As lock_verify(), of what lock_shut() made. */
int lock_verify_shut(struct nft *nft, const struct lock_spec *spec,
		     const char (*name)[16], size_t n, char *reterr,
		     size_t cap);

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
