/* SPDX-License-Identifier: Apache-2.0
 *
 * link.h - interfaces, addresses, routes and rules by rtnetlink. @route is a
 * NETLINK_ROUTE socket; it acts in the namespace it was made in. All return 0
 * or -errno.
 */
#ifndef LAUNCH_LINK_H
#define LAUNCH_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

/* A veth pair: @name here, @peer in namespace @peer_ns. No IPv6 address is
 * generated on @name (IFLA_INET6_ADDR_GEN_MODE none); nor on @peer, where
 * netns_sandbox_sysctls() or netns_gateway_sysctls() were called before. */
int link_veth(int route, const char *name, const char *peer, int peer_ns);
int link_up(int route, const char *name);
/* IFLA_GROUP, by which rules may know it wherever it goes, under any name. */
int link_group(int route, const char *name, uint32_t group);
/* The name of the one interface in @group. -ENODEV, or -ENOTUNIQ. */
int link_grouped(int route, uint32_t group, char (*ret_name)[16]);
/* The interfaces that are neither a loopback nor ours: by its @index, or where
 * that is 0, by its @group. Names of those that fit into @ret; *@ret_n counts
 * all. */
int link_others(int route, uint32_t group, uint32_t index, char (*ret)[16],
		size_t max, size_t *ret_n);
/* Waits until @name sends packets, 2 seconds at most (-ETIMEDOUT). Of a pair,
 * the end that came up first drops what it is to send, also answers to ARP,
 * until the kernel has worked off the change of its carrier. */
int link_wait(int route, const char *name);
int link_down(int route, const char *name);
int link_delete(int route, const char *name);
int link_index(int route, const char *name, uint32_t *ret_index);
/* The veth here whose other end is interface @index of namespace @ns, whatever
 * it is called and wherever it was made. -ENODEV if there is none. */
int link_peer(int route, int ns, uint32_t index, uint32_t *ret_index);
int link_address(int route, const char *name, const struct cidr *address);
/* @ip, behind @name here, is @peer of the namespace of @peer_route: for good,
 * without ARP. Both are up; when @name goes down, it is forgotten. */
int link_neighbour(int route, const char *name, int peer_route,
		   const char *peer, const struct ip *ip);
/* 0.0.0.0/0 via @gateway. */
int link_default_route(int route, const struct ip *gateway);
/* Twice is fine. For TPROXY: packets with @mark are looked up in @table, where
 * everything is local (dev lo). IPv4. */
int link_local_delivery(int route, uint32_t mark, uint32_t table);

/* The addresses of this namespace as /32 or /128 and its on-link prefixes,
 * loopback left out. At most @max; *@ret_n. -ENOSPC if there are more: those
 * that fit are in @ret. Not interfaces without neighbours, nor default routes.
 */
int link_prefixes(int route, struct cidr *ret, size_t max, size_t *ret_n);

/* A socket that reports changes of addresses and routes; non-blocking. */
int link_watch(void);

#endif
