/* SPDX-License-Identifier: Apache-2.0
 *
 * set.c - links come and go; flows are added to them.
 *
 * The kernel refuses an interval that overlaps another one (ENOTEMPTY). Then we
 * read what the interface has and add only what it has not yet: each area,
 * addresses by ports, less those that are there, is up to four smaller ones.
 */
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "firewall/element.h"
#include "firewall/plan.h"
#include "firewall/ruleset.h"

#define RETRIES	   8
#define AREAS_MAX  4096 /* of one interface, and of one request */
#define DELETE_MAX 1000 /* elements in one batch */

struct areas {
	struct element *at;
	size_t n, cap;
	size_t limit;
	const char *ifname; /* whose are collected */
};

static int areas_add(struct areas *areas, const struct element *e)
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
	/* When deleting, the rest is for the next round. */
	return r == -E2BIG && areas->limit == DELETE_MAX ? 0 : r;
}

/* The elements of @set that belong to @areas->ifname. */
static int read_areas(struct nft *nft, const char *set, size_t key_len,
		      struct areas *areas)
{
	int r = -EINTR;

	for (int tries = 0; r == -EINTR && tries < RETRIES; tries++) {
		areas->n = 0;
		r = element_list(nft, set, key_len, collect, areas);
	}
	return r;
}

int ruleset_link_add(struct nft *nft, const struct ruleset_link *link,
		     uint16_t proxy_port)
{
	struct element who = { 0 }, door = { 0 };

	if (!element_ifname_ok(link->ifname) || link->ip.len != 4 ||
	    link->gateway.len != 4 || !proxy_port)
		return -EINVAL;
	memcpy(who.ifname, link->ifname, sizeof(who.ifname));
	memcpy(door.ifname, link->ifname, sizeof(door.ifname));
	who.ip = ip_v4_value(&link->ip);
	door.ip = ip_v4_value(&link->gateway);
	door.port = proxy_port;
	nft_begin(nft);
	element_put(nft, NFT_MSG_NEWSETELEM, SET_LINKS, ELEMENT_LINK_KEY, false,
		    &who, 1);
	element_put(nft, NFT_MSG_NEWSETELEM, SET_DOORS, ELEMENT_FLOW_KEY, false,
		    &door, 1);
	return nft_commit(nft);
}

/* Deletes up to DELETE_MAX elements of @ifname in all sets. Returns how many
 * or -errno. */
static int delete_some(struct nft *nft, const char *ifname)
{
	static const struct {
		const char *name;
		size_t key_len;
		bool ranges;
	} set[] = {
		{ SET_LINKS, ELEMENT_LINK_KEY, false },
		{ SET_DOORS, ELEMENT_FLOW_KEY, false },
		{ SET_FLOWS, ELEMENT_FLOW_KEY, true },
	};
	struct areas areas[ARRAY_SIZE(set)] = { 0 };
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(set); i++) {
		areas[i].ifname = ifname;
		areas[i].limit = DELETE_MAX;
		r = read_areas(nft, set[i].name, set[i].key_len, &areas[i]);
	}
	nft_begin(nft);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(set); i++) {
		element_put(nft, NFT_MSG_DELSETELEM, set[i].name,
			    set[i].key_len, set[i].ranges, areas[i].at,
			    areas[i].n);
		n += areas[i].n;
	}
	if (r == 0 && n)
		r = nft_commit(nft);
	for (size_t i = 0; i < ARRAY_SIZE(set); i++)
		free(areas[i].at);
	return r < 0 ? r : (int)n;
}

/* All of the interface goes, its flows too: the name may be used again. */
int ruleset_link_del(struct nft *nft, const struct ruleset_link *link,
		     uint16_t proxy_port)
{
	int r;

	(void)proxy_port; /* all doors of the interface go */
	if (!element_ifname_ok(link->ifname))
		return -EINVAL;
	do {
		r = delete_some(nft, link->ifname);
	} while (r > 0);
	return r;
}

static int put_flows(struct nft *nft, const struct areas *areas)
{
	nft_begin(nft);
	element_put(nft, NFT_MSG_NEWSETELEM, SET_FLOWS, ELEMENT_FLOW_KEY, true,
		    areas->at, areas->n);
	return areas->n ? nft_commit(nft) : 0;
}

static bool overlap(const struct element *a, const struct element *b)
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

	if (!overlap(a, b))
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

/* Reduces @rest to what is not in @b. */
static int subtract_all(struct areas *rest, const struct element *b)
{
	struct areas left = { .limit = AREAS_MAX };

	for (size_t i = 0; i < rest->n; i++) {
		int r = subtract(&left, &rest->at[i], b);

		if (r < 0) {
			free(left.at);
			return r;
		}
	}
	free(rest->at);
	*rest = left;
	return 0;
}

/* Adds to @have and @new the parts of @want that are not in @have. */
static int add_missing(struct areas *have, struct areas *new,
		       const struct element *want)
{
	struct areas rest = { .limit = AREAS_MAX };

	int r = areas_add(&rest, want);
	for (size_t i = 0; r == 0 && i < have->n; i++)
		r = subtract_all(&rest, &have->at[i]);
	for (size_t i = 0; r == 0 && i < rest.n; i++) {
		r = areas_add(have, &rest.at[i]);
		if (r == 0)
			r = areas_add(new, &rest.at[i]);
	}
	free(rest.at);
	return r;
}

static int put_missing(struct nft *nft, const char *ifname,
		       const struct areas *want)
{
	struct areas have = { .limit = AREAS_MAX, .ifname = ifname };
	struct areas new = { .limit = AREAS_MAX };

	int r = read_areas(nft, SET_FLOWS, ELEMENT_FLOW_KEY, &have);
	for (size_t i = 0; r == 0 && i < want->n; i++)
		r = add_missing(&have, &new, &want->at[i]);
	if (r == 0)
		r = put_flows(nft, &new);
	free(have.at);
	free(new.at);
	return r;
}

static int flow_element(struct element *ret, const char *ifname,
			const struct cidr *dst, const struct port_range *ports)
{
	const uint32_t below = dst->bits == 0	 ? UINT32_MAX
			       : dst->bits >= 32 ? 0
						 : UINT32_MAX >> dst->bits;
	const uint32_t ip = ip_v4_value(&dst->ip) & ~below;

	if (!ports->first || ports->first > ports->last)
		return -EINVAL;
	*ret = (struct element){ .ip = ip,
				 .ip_last = ip | below,
				 .port = ports->first,
				 .port_last = ports->last };
	memcpy(ret->ifname, ifname, strnlen(ifname, sizeof(ret->ifname) - 1));
	return 0;
}

int ruleset_flow_add(struct nft *nft, const char *ifname,
		     const struct cidr *dst, const struct port_range *ports,
		     size_t n)
{
	struct areas want = { .limit = AREAS_MAX };
	struct element e;
	int r = 0;

	if (!element_ifname_ok(ifname) || dst->ip.len != 4 || dst->bits > 32)
		return -EINVAL;
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = flow_element(&e, ifname, dst, &ports[i]);
		if (r == 0)
			r = areas_add(&want, &e);
	}
	if (r == 0)
		r = put_flows(nft, &want);
	if (r == -ENOTEMPTY || r == -EEXIST)
		r = put_missing(nft, ifname, &want);
	free(want.at);
	return r;
}
