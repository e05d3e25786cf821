/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.h - who else changes the rules of the namespace. Each commit ends with
 * a message of the kernel that names the process; ours are told apart by the
 * address of our socket, which nobody else can have while it is open.
 */
#ifndef FIREWALL_WATCH_H
#define FIREWALL_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct nft;

struct watch_change {
	bool lost; /* more happened than the socket could hold: nothing else
		      is known */
	uint32_t generation;
	uint32_t pid; /* as the initial pid namespace counts; 0: unknown */
	char process[16];
};

/* Listens on @fd, a NETLINK_NETFILTER socket made in the namespace of @nft, for
 * all commits but those by @nft. 0 or -errno. */
int watch_listen(int fd, struct nft *nft);

/* The next commit by somebody else: 1, 0 if there is none, or -errno. */
int watch_read(int fd, struct watch_change *ret);

/* The number of the last commit, by whomever. 0 or -errno. */
int watch_generation(struct nft *nft, uint32_t *ret);

/* Is @a later than @b? They wrap around. */
static inline bool watch_later(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

#endif
