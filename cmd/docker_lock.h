/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_lock.h - firewall/lock.h's table put into a namespace, with what it
 * needs there.
 */
#ifndef CMD_DOCKER_LOCK_H
#define CMD_DOCKER_LOCK_H

#include <stddef.h>

struct ip;
struct nft;

/* Enters @ns for a moment (a helper process does), sets route_localnet,
 * installs and verifies. Where the table is as it should be it is left, with
 * its counters. @ret_nft: to read counters by, may be NULL. 0, or -errno and
 * @reterr for people. */
int docker_lock(int ns, const struct ip *gateway, struct nft **ret_nft,
		char *reterr, size_t cap);

/* Shuts each interface in @ns that is neither loopback nor our link, also for
 * packet sockets (lock_shut(), or taken down): after each change of its
 * interfaces. @ret_name, of 16 bytes, one of them, or "". How many there are,
 * or -errno. */
int docker_shut(int ns, char *ret_name);

#endif
