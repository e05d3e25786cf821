/* SPDX-License-Identifier: Apache-2.0
 *
 * set.c - links come and go, and their flows go with them.
 */
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <string.h>

#include "base/cleanup.h"
#include "firewall/areas.h"
#include "firewall/plan.h"
#include "firewall/ruleset.h"

#define DELETE_MAX 1000 /* elements in one batch */

static void put_published(struct nft *nft, const struct ruleset_link *link)
{
	struct element ours = { .ip = ip_v4_value(&link->gateway) };

	memcpy(ours.ifname, link->ifname, sizeof(ours.ifname));
	element_put(nft, NFT_MSG_NEWSETELEM, SET_PUBLISHED, ELEMENT_LINK_KEY,
		    false, &ours, 1);
}

int ruleset_link_publish(struct nft *nft, const struct ruleset_link *link)
{
	if (!element_ifname_ok(link->ifname) || link->gateway.len != 4)
		return -EINVAL;
	nft_begin(nft);
	put_published(nft, link);
	return nft_commit(nft);
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
	if (link->published)
		put_published(nft, link);
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
		{ SET_POINTS, ELEMENT_FLOW_KEY, false },
		{ SET_PUBLISHED, ELEMENT_LINK_KEY, false },
	};
	struct areas areas[ARRAY_SIZE(set)] = { 0 };
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(set); i++) {
		areas[i].ifname = ifname;
		areas[i].limit = DELETE_MAX;
		areas[i].cut = true; /* the rest is for the next round */
		r = areas_read(&areas[i], nft, set[i].name, set[i].key_len);
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
		areas_free(&areas[i]);
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
