/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_lock.h - firewall/lock.h's table put into a namespace, with what it
 * needs there.
 */
#ifndef CMD_DOCKER_LOCK_H
#define CMD_DOCKER_LOCK_H

#include <stddef.h>

struct lock_spec;
struct nft;

/* Enters @ns for a moment (a helper process does), sets route_localnet,
 * installs @spec and verifies. Where the table is as it should be it is left,
 * with its counters. @ret_nft: to read counters by, and the owner of what is
 * owned; may be NULL where nothing is. 0, or -errno and @reterr for people. */
int docker_lock(int ns, struct lock_spec *spec, struct nft **ret_nft,
		char *reterr, size_t cap);

#endif
