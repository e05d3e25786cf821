/* SPDX-License-Identifier: Apache-2.0
 *
 * guard_gateway.h - a gateway (cmd/gateway.h) without a namespace: the guard's
 * rules in our own, so that the warden supervises them as it does others.
 */
#ifndef CMD_GUARD_GATEWAY_H
#define CMD_GUARD_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>

struct gateway;
struct guard_spec;
struct policy;

/* Loads the rules, opens the literal ranges of @policy, reads all back, and
 * watches. @spec: all but .devices and .egress, which are filled in; it stays
 * the caller's, and is needed as long. The socket for dropped packets is in
 * ret->socket then; .nflog_group of @spec is filled in too. 0, or -errno and a
 * sentence in @reterr; *@ret_loaded: rules are in force that let nobody out. */
int guard_gateway_open(const struct policy *policy, struct guard_spec *spec,
		       struct gateway *ret, bool *ret_loaded, char *reterr,
		       size_t cap);

/* What gateway_*() of those names do, and the watch over interfaces: one that
 * is new gets the rule about packet sockets. */
int guard_gateway_install(struct gateway *gateway);
int guard_gateway_verify(struct gateway *gateway, char *ret_digest,
			 char *reterr, size_t cap);
/* The same, and AF_XDP on each interface is taken, so that nobody else has it
 * (firewall/xdp_hold.h), as long as this process lives: .xdp of @gateway. 0, or
 * -errno: somebody who has CAP_NET_RAW could send by it. */
int guard_gateway_hold(struct gateway *gateway);
int guard_gateway_follow(struct gateway *gateway, char *reterr, size_t cap);
int guard_gateway_news(int fd);

#endif
