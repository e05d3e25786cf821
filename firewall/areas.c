/* SPDX-License-Identifier: Apache-2.0
 *
 * areas.c - lists of areas. One area less another one is up to four smaller
 * ones.
 */
#include "firewall/areas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void areas_free(struct areas *areas)
{
	free(areas->at);
	areas->at = NULL;
	areas->n = areas->cap = 0;
}

int areas_add(struct areas *areas, const struct element *e)
{
	if (areas->n == areas->limit)
		return -E2BIG;
	if (areas->n == areas->cap) {
		size_t cap = areas->cap ? areas->cap * 2 : 16;
		struct element *more =
			reallocarray(areas->at, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		areas->at = more;
		areas->cap = cap;
	}
	areas->at[areas->n++] = *e;
	return 0;
}

static int collect(void *arg, const struct element_found *found)
{
	struct areas *areas = arg;

	if (strncmp(found->element.ifname, areas->ifname,
		    sizeof(found->element.ifname)) != 0)
		return 0;
	int r = areas_add(areas, &found->element);
	return r == -E2BIG && areas->cut ? 0 : r;
}

int areas_read(struct areas *areas, struct nft *nft, const char *set,
	       size_t key_len)
{
	return element_list(nft, set, key_len, collect, areas);
}

bool area_overlaps(const struct element *a, const struct element *b)
{
	return a->ip <= b->ip_last && b->ip <= a->ip_last &&
	       a->port <= b->port_last && b->port <= a->port_last;
}

/* Adds to @out what of @a is not in @b: the addresses below and above, whole;
 * of those between, the ports below and above. */
static int subtract(struct areas *out, const struct element *a,
		    const struct element *b)
{
	struct element middle = *a, part;
	int r = 0;

	if (!area_overlaps(a, b))
		return areas_add(out, a);
	if (a->ip < b->ip) {
		part = *a;
		part.ip_last = b->ip - 1;
		middle.ip = b->ip;
		r = areas_add(out, &part);
	}
	if (r == 0 && a->ip_last > b->ip_last) {
		part = *a;
		part.ip = b->ip_last + 1;
		middle.ip_last = b->ip_last;
		r = areas_add(out, &part);
	}
	if (r == 0 && a->port < b->port) {
		part = middle;
		part.port_last = (uint16_t)(b->port - 1);
		r = areas_add(out, &part);
	}
	if (r == 0 && a->port_last > b->port_last) {
		part = middle;
		part.port = (uint16_t)(b->port_last + 1);
		r = areas_add(out, &part);
	}
	return r;
}

int areas_subtract(struct areas *areas, const struct element *b)
{
	struct areas left = { .limit = areas->limit };

	for (size_t i = 0; i < areas->n; i++) {
		int r = subtract(&left, &areas->at[i], b);

		if (r < 0) {
			areas_free(&left);
			return r;
		}
	}
	free(areas->at);
	areas->at = left.at;
	areas->n = left.n;
	areas->cap = left.cap;
	return 0;
}
