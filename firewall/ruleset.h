/* SPDX-License-Identifier: Apache-2.0
 *
 * ruleset.h - the gateway namespace's rules, from a plain spec to the kernel
 * in one batch, and back.
 *
 * Table "inet sallyport". Per packet: anti-spoof by (interface, address), DNS
 * to any address and the explicit proxy and leased (address, port)s to our
 * sockets, everything else refused at once, counted and logged. Sets and maps,
 * not a rule a sandbox: O(1).
 */
#ifndef FIREWALL_RULESET_H
#define FIREWALL_RULESET_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "policy/policy.h"

struct nft;

#define RULESET_TABLE "sallyport"
#define RULESET_MARK  1
#define RULESET_ROUTES                                        \
	100 /* table with `local default dev lo` for the mark \
	     */

/* Nobody listens there: connections to what a sandbox publishes come from these
 * ports of ours. As many as a power of two, and a multiple of it. */
#define RULESET_DIAL_FIRST 57344u
#define RULESET_DIAL_LAST  61439u
#define RULESET_DIAL_PORTS (RULESET_DIAL_LAST - RULESET_DIAL_FIRST + 1)

struct ruleset_spec {
	uint16_t dns_port;	   /* of our resolver: 53 */
	uint16_t proxy_port;	   /* explicit: 3128 */
	uint16_t transparent_port; /* of our TPROXY listener */
	uint16_t nflog_group;
};

/* One sandbox's veth peer in the gateway namespace. */
struct ruleset_link {
	char ifname[16];
	struct ip ip;	   /* the sandbox's only address */
	struct ip gateway; /* ours on this link */
	bool published;	   /* what answers our connections is let in */
};

/* @fd: a NETLINK_NETFILTER socket made in the namespace; taken, also on error.
 * 0 or -errno. */
int nft_open(int fd, struct nft **ret_nft);
void nft_close(struct nft *nft);

/* Replaces the table with @spec, without links, in one atomic batch. */
int ruleset_install(struct nft *nft, const struct ruleset_spec *spec);

/* Reads the table back (chains with hook, priority and policy; every rule's
 * expressions; sets; links; what is published) and compares it with what was
 * meant. 0, or -EBADMSG and a text of what differs, or -errno. @ret_digest: 65
 * bytes, hex SHA-256 of the canonical dump but for what is published, which
 * comes and goes; may be NULL. */
int ruleset_verify(struct nft *nft, const struct ruleset_spec *spec,
		   const struct ruleset_link *links, size_t n, char *ret_digest,
		   char *reterr, size_t cap);

/* Del: all that the interface has goes, its flows too; absent is no error. */
int ruleset_link_add(struct nft *nft, const struct ruleset_link *link,
		     uint16_t proxy_port);
int ruleset_link_del(struct nft *nft, const struct ruleset_link *link,
		     uint16_t proxy_port);

/* After @link->published was set. 0 or -errno. */
int ruleset_link_publish(struct nft *nft, const struct ruleset_link *link);

struct ruleset_flow {
	struct cidr dst;
	struct port_range ports;
};

/* Lets TCP from @ifname to @flow reach the transparent listener; one batch, all
 * or none of it; what is there already is no error. For a .dst that is new, or
 * has the same: there must be nothing that .ports would contain. */
int ruleset_flow_add(struct nft *nft, const char *ifname,
		     const struct ruleset_flow *flow, size_t n);

/* In one batch: TCP from @ifname to @gone is let through no longer, but to
 * @want it is, also where they overlap; the rest stays as it is. What is absent
 * or there already is no error. It reads what there is, so that one call with
 * many is better than many calls; a batch holds about 1,000. */
int ruleset_flow_replace(struct nft *nft, const char *ifname,
			 const struct ruleset_flow *gone, size_t gone_n,
			 const struct ruleset_flow *want, size_t want_n);

/* TCP from @ifname is let through to @keep, as far as it is now, and nothing
 * else. */
int ruleset_flow_sweep(struct nft *nft, const char *ifname,
		       const struct ruleset_flow *keep, size_t n);

struct ruleset_counters {
	uint64_t spoofed, refused, ipv6, forwarded;
};
int ruleset_counters(struct nft *nft, struct ruleset_counters *ret);

#endif
