/* SPDX-License-Identifier: Apache-2.0
 *
 * flow.c - what is let through to the transparent listener, more and less.
 *
 * Points and intervals have a set each (plan.h), and are one thing here. The
 * kernel keeps no order among intervals: it takes one that contains another
 * one, and deletes whichever it finds first at the point where the given one
 * begins. So ours never overlap. To change something we read what the interface
 * has, and send just the difference, in one batch: packets of a connection are
 * looked up one by one, and what stays allowed must never be away for a moment.
 */
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <string.h>

#include "firewall/areas.h"
#include "firewall/plan.h"
#include "firewall/ruleset.h"

#define SWEEP_MAX 256 /* areas in one batch, about */

static bool is_point(const struct element *e)
{
	return e->ip == e->ip_last && e->port == e->port_last;
}

/* Each to its set, in runs of the same kind. */
static void put_some(struct nft *nft, uint16_t type, const struct areas *areas)
{
	size_t end;

	for (size_t i = 0; i < areas->n; i = end) {
		bool point = is_point(&areas->at[i]);

		for (end = i + 1; end < areas->n; end++)
			if (is_point(&areas->at[end]) != point)
				break;
		element_put(nft, type, point ? SET_POINTS : SET_FLOWS,
			    ELEMENT_FLOW_KEY, !point, areas->at + i, end - i);
	}
}

static int put(struct nft *nft, const struct areas *gone,
	       const struct areas *new)
{
	if (!gone->n && !new->n)
		return 0;
	nft_begin(nft);
	put_some(nft, NFT_MSG_DELSETELEM, gone);
	put_some(nft, NFT_MSG_NEWSETELEM, new);
	return nft_commit(nft);
}

/* What the interface has in both sets. */
static int read_flows(struct areas *have, struct nft *nft)
{
	int r;

	have->n = 0;
	r = areas_read(have, nft, SET_FLOWS, ELEMENT_FLOW_KEY);
	if (r == 0)
		r = areas_read(have, nft, SET_POINTS, ELEMENT_FLOW_KEY);
	return r;
}

/* Adds to @have and @new the parts of @want that are not in @have. */
static int add_missing(struct areas *have, struct areas *new,
		       const struct element *want)
{
	struct areas rest = { .limit = AREAS_MAX };

	int r = areas_add(&rest, want);
	for (size_t i = 0; r == 0 && i < have->n; i++)
		if (area_overlaps(want, &have->at[i]))
			r = areas_subtract(&rest, &have->at[i]);
	for (size_t i = 0; r == 0 && i < rest.n; i++) {
		r = areas_add(have, &rest.at[i]);
		if (r == 0)
			r = areas_add(new, &rest.at[i]);
	}
	areas_free(&rest);
	return r;
}

static bool overlaps_any(const struct element *e, const struct areas *areas)
{
	for (size_t i = 0; i < areas->n; i++)
		if (area_overlaps(e, &areas->at[i]))
			return true;
	return false;
}

/* Moves each of @have that is not wholly to stay to @old; what is left of it
 * goes to @have and @new. */
static int take_out(struct areas *have, const struct areas *gone,
		    struct areas *old, struct areas *new)
{
	size_t n = have->n, kept = 0;
	struct areas rest = { .limit = AREAS_MAX };
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		if (!overlaps_any(&have->at[i], gone)) {
			have->at[kept++] = have->at[i];
			continue;
		}
		r = areas_add(old, &have->at[i]);
		if (r == 0)
			r = areas_add(&rest, &have->at[i]);
	}
	have->n = kept;
	for (size_t i = 0; r == 0 && i < gone->n; i++)
		r = areas_subtract(&rest, &gone->at[i]);
	for (size_t i = 0; r == 0 && i < rest.n; i++)
		r = add_missing(have, new, &rest.at[i]);
	areas_free(&rest);
	return r;
}

static int put_difference(struct nft *nft, const char *ifname,
			  const struct areas *gone, const struct areas *want)
{
	struct areas have = { .limit = AREAS_MAX, .ifname = ifname };
	struct areas old = { .limit = AREAS_MAX };
	struct areas new = { .limit = AREAS_MAX };

	int r = read_flows(&have, nft);
	if (r == 0)
		r = take_out(&have, gone, &old, &new);
	for (size_t i = 0; r == 0 && i < want->n; i++)
		r = add_missing(&have, &new, &want->at[i]);
	if (r == 0)
		r = put(nft, &old, &new);
	areas_free(&have);
	areas_free(&old);
	areas_free(&new);
	return r;
}

static int flow_element(struct element *ret, const char *ifname,
			const struct ruleset_flow *flow)
{
	const struct cidr *dst = &flow->dst;
	const struct port_range *ports = &flow->ports;

	if (dst->ip.len != 4 || dst->bits > 32 || !ports->first ||
	    ports->first > ports->last)
		return -EINVAL;
	const uint32_t below = dst->bits == 0	 ? UINT32_MAX
			       : dst->bits >= 32 ? 0
						 : UINT32_MAX >> dst->bits;
	const uint32_t ip = ip_v4_value(&dst->ip) & ~below;

	*ret = (struct element){ .ip = ip,
				 .ip_last = ip | below,
				 .port = ports->first,
				 .port_last = ports->last };
	memcpy(ret->ifname, ifname, strnlen(ifname, sizeof(ret->ifname) - 1));
	return 0;
}

static int collect(struct areas *areas, const char *ifname,
		   const struct ruleset_flow *flow, size_t n)
{
	struct element e;

	for (size_t i = 0; i < n; i++) {
		int r = flow_element(&e, ifname, &flow[i]);

		if (r == 0)
			r = areas_add(areas, &e);
		if (r < 0)
			return r;
	}
	return 0;
}

int ruleset_flow_replace(struct nft *nft, const char *ifname,
			 const struct ruleset_flow *gone, size_t gone_n,
			 const struct ruleset_flow *want, size_t want_n)
{
	struct areas out = { .limit = AREAS_MAX }, in = { .limit = AREAS_MAX };
	int r;

	if (!element_ifname_ok(ifname))
		return -EINVAL;
	r = collect(&out, ifname, gone, gone_n);
	if (r == 0)
		r = collect(&in, ifname, want, want_n);
	if (r == 0)
		r = put_difference(nft, ifname, &out, &in);
	areas_free(&out);
	areas_free(&in);
	return r;
}

int ruleset_flow_add(struct nft *nft, const char *ifname,
		     const struct ruleset_flow *flow, size_t n)
{
	struct areas none = { 0 }, want = { .limit = AREAS_MAX };
	int r;

	if (!element_ifname_ok(ifname))
		return -EINVAL;
	r = collect(&want, ifname, flow, n);
	if (r == 0)
		r = put(nft, &none, &want);
	if (r == -ENOTEMPTY || r == -EEXIST)
		r = put_difference(nft, ifname, &none, &want);
	areas_free(&want);
	return r;
}

/* The next areas that are not wholly within @keep, as many as a batch holds. */
static int find_strays(const struct areas *have, const struct areas *keep,
		       struct areas *strays)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < have->n && strays->n < SWEEP_MAX;
	     i++) {
		struct areas rest = { .limit = AREAS_MAX };

		r = areas_add(&rest, &have->at[i]);
		for (size_t j = 0; r == 0 && rest.n && j < keep->n; j++)
			if (area_overlaps(&have->at[i], &keep->at[j]))
				r = areas_subtract(&rest, &keep->at[j]);
		for (size_t j = 0; r == 0 && j < rest.n; j++)
			r = areas_add(strays, &rest.at[j]);
		areas_free(&rest);
	}
	return r;
}

int ruleset_flow_sweep(struct nft *nft, const char *ifname,
		       const struct ruleset_flow *keep, size_t n)
{
	struct areas stay = { .limit = AREAS_MAX };
	struct areas have = { .limit = AREAS_MAX, .ifname = ifname };
	struct areas strays = { .limit = AREAS_MAX }, none = { 0 };
	int r = element_ifname_ok(ifname) ? 0 : -EINVAL;

	if (r == 0)
		r = collect(&stay, ifname, keep, n);
	while (r == 0) {
		strays.n = 0;
		r = read_flows(&have, nft);
		if (r == 0)
			r = find_strays(&have, &stay, &strays);
		if (r || !strays.n)
			break;
		r = put_difference(nft, ifname, &strays, &none);
	}
	areas_free(&stay);
	areas_free(&have);
	areas_free(&strays);
	return r;
}
