/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.h - rules for a namespace that is not ours alone: whoever is in it
 * reaches the gate, and only the gate's uid leaves.
 *
 * Table "inet sallyport_guard" judges what has a socket of IP, "netdev
 * sallyport_guard" what is put on an interface past that (packet sockets).
 * Neither has an owner flag: they outlive who made them. Other tables are
 * neither read nor changed.
 */
#ifndef FIREWALL_GUARD_H
#define FIREWALL_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct nft;
struct ruleset_counters;

#define GUARD_TABLE	    "sallyport_guard"
#define GUARD_RESOLVERS_MAX 8
#define GUARD_DEVICES_MAX   256 /* of one chain, says the kernel */
#define GUARD_INBOUND_MAX   16

/* What elements of the set of flows have for an interface (ruleset.h). */
#define GUARD_FLOWS_OF "guard"

struct guard_spec {
	uint32_t uid; /* the gate's: nobody else may have it */
	/* On 127.0.0.1. */
	uint16_t dns_udp_port, dns_tcp_port, transparent_port;
	uint16_t nflog_group;
	bool dns6; /* and on ::1 the resolver */
	/* TCP from outside to .port goes to .listener, of the gate's uid. */
	struct {
		uint16_t port, listener;
	} inbound[GUARD_INBOUND_MAX];
	size_t inbounds;
	/* Loopback addresses where somebody answers names who asks outside of
	 * this namespace: only for the gate, whatever the port. */
	struct ip resolver[GUARD_RESOLVERS_MAX];
	size_t resolvers;
	/* Every interface but the loopback; without @egress there are none. */
	bool egress;
	char device[GUARD_DEVICES_MAX][16];
	size_t devices;
};

/* Fills in .device. 0, -E2BIG, or -errno. */
int guard_find_devices(struct guard_spec *spec);

/* Element functions and counters of @nft act on the guard's table from now on.
 */
void guard_use(struct nft *nft);

/* Replaces both tables in one batch. 0 or -errno; -EOPNOTSUPP: this kernel has
 * no hook for what packet sockets send (Linux 5.16), and nothing was changed.
 */
int guard_install(struct nft *nft, const struct guard_spec *spec);
/* The same for the table of interfaces alone, which are others now. */
int guard_install_devices(struct nft *nft, const struct guard_spec *spec);

/* Reads both back. 0, -EBADMSG and what differs, or -errno. @ret_digest: 65
 * bytes, may be NULL; the names of interfaces are no part of it. */
int guard_verify(struct nft *nft, const struct guard_spec *spec,
		 char *ret_digest, char *reterr, size_t cap);

/* Takes both away; absent is no error. @ret_any: there was one. */
int guard_remove(struct nft *nft, bool *ret_any);

/* What packet sockets sent counts as refused. 0 or -errno. */
int guard_counters(struct nft *nft, struct ruleset_counters *ret);

/* Connections that the kernel knows are forgotten, so that none goes on by an
 * address that was translated before. @fd: a NETLINK_NETFILTER socket. 0 or
 * -errno. */
int guard_forget_connections(int fd);

#endif
