/* SPDX-License-Identifier: Apache-2.0
 *
 * element.h - the elements of our sets: interface, addresses, ports. For
 * firewall/ only.
 */
#ifndef FIREWALL_ELEMENT_H
#define FIREWALL_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firewall/nft.h"

#define ELEMENT_LINK_KEY 20 /* ifname . address */
#define ELEMENT_FLOW_KEY 24 /* ifname . address . port */

/* Host byte order; ranges include both ends. */
struct element {
	char ifname[16];
	uint32_t ip, ip_last;
	uint16_t port, port_last;
};

/* Is @name an interface's, 1 to 15 bytes? */
bool element_ifname_ok(const char *name);

/* Adds to the batch: NFT_MSG_NEWSETELEM or DELSETELEM for @n elements of @set,
 * whose keys have @key_len bytes and, if @ranges, an end. */
void element_put(struct nft *nft, uint16_t type, const char *set,
		 size_t key_len, bool ranges, const struct element *element,
		 size_t n);

/* What the kernel holds. @plain is false for what we never make: a key of
 * another length, attached data or flags, a name that is none. */
struct element_found {
	struct element element;
	bool plain;
};

typedef int element_fn(void *arg, const struct element_found *found);

/* Hands each element of @set to @fn once, in order; @fn returns 0 or -errno.
 * -EINTR, and nothing was handed, if the set changes all the time. */
int element_list(struct nft *nft, const char *set, size_t key_len,
		 element_fn *fn, void *arg);

#endif
