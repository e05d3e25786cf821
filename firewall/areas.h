/* SPDX-License-Identifier: Apache-2.0
 *
 * areas.h - rectangles of addresses by ports, of one interface: what a set
 * holds, and what it should hold. For firewall/ only.
 */
#ifndef FIREWALL_AREAS_H
#define FIREWALL_AREAS_H

#include "firewall/element.h"

#define AREAS_MAX 65536 /* of one interface */

/* Zero but for @limit, and @ifname where it is read from the kernel. */
struct areas {
	struct element *at;
	size_t n, cap;
	size_t limit;
	bool cut; /* past the limit: the rest is left out, not -E2BIG */
	const char *ifname; /* whose are collected */
};

void areas_free(struct areas *areas);

/* All: 0 or -errno; -E2BIG past the limit. */
int areas_add(struct areas *areas, const struct element *e);
/* Adds the elements of @set that belong to @areas->ifname. */
int areas_read(struct areas *areas, struct nft *nft, const char *set,
	       size_t key_len);
/* Reduces @areas to what is not in @b. */
int areas_subtract(struct areas *areas, const struct element *b);

bool area_overlaps(const struct element *a, const struct element *b);

#endif
