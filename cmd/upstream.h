/* SPDX-License-Identifier: Apache-2.0
 *
 * upstream.h - what the gate must be told of the machine's own network, as it
 * has no files: name servers, and the prefixes the machine is on.
 */
#ifndef CMD_UPSTREAM_H
#define CMD_UPSTREAM_H

#include <stdbool.h>
#include <stdio.h>

#include "cmd/privsep.h"

/* What is asked instead of the servers that would be. */
struct upstream_instead {
	struct ip of; /* of this one; .len 0: of all in /etc/resolv.conf */
	struct msg_gate_servers servers; /* none: nothing is replaced */
};

/* The policy's servers, or those of /etc/resolv.conf (resolv.conf(5)). An
 * unreadable file gives none: SERVFAIL, never a fallback. Where there is no
 * memory or no descriptor to read it, *ret stays as it was. */
void upstream_servers(const struct policy *policy,
		      const struct upstream_instead *instead,
		      struct msg_gate_servers *ret);

/* Those that a file like /etc/resolv.conf has, behind those of @ret. False
 * without memory to read it. */
bool upstream_read(FILE *file, struct msg_gate_servers *ret);

/* Addresses and on-link prefixes of this namespace. 0 or -errno. */
int upstream_prefixes(struct msg_gate_uplink *ret);

#endif
