/* SPDX-License-Identifier: Apache-2.0
 *
 * gateway.h - the topology: a gateway namespace without an uplink, a sandbox's
 * namespace whose only link leads there, the rules between, and the sockets
 * that are the only way on.
 */
#ifndef CMD_GATEWAY_H
#define CMD_GATEWAY_H

#include "cmd/privsep.h"
#include "firewall/ruleset.h"
#include "launch/netns.h"

#define GATEWAY_PROXY_PORT 3128

struct gateway {
	struct netns ns, sandbox;
	struct nft *nft;
	struct ruleset_spec spec;
	struct ruleset_link link; /* to the one sandbox of a session */
	uint32_t ifindex;
	int socket[GATE_SOCKET_COUNT]; /* -1: none */
	char digest[65];	       /* of the ruleset as read back */
};

/* The sandbox's namespace alone, with nothing in it that leads out: there its
 * first process can be prepared. 0, or -errno and a sentence in @reterr. */
int gateway_begin(struct gateway *ret, char *reterr, size_t cap);
/* Makes the rest, in this order: the gateway's namespace, rules, then the link,
 * so that no packet ever meets a gateway without rules; reads the rules back
 * and compares them. 0, or -errno and a sentence in @reterr. */
int gateway_open(const struct policy *policy, struct gateway *gateway,
		 char *reterr, size_t cap);
void gateway_close(struct gateway *gateway);

/* The gate asks to let TCP to a lease through. Only synthetic addresses may be
 * opened so, unless @policy has real answers. 0 or -errno. */
int gateway_publish(struct gateway *gateway, const struct policy *policy,
		    const struct msg_publish *msg);

#endif
