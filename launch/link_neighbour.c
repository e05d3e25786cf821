/* SPDX-License-Identifier: Apache-2.0
 *
 * link_neighbour.c - what the two ends of a pair would ask each other by ARP.
 *
 * All namespaces of a machine share one table of neighbours with one limit
 * (net.ipv4.neigh.default.gc_thresh3, 1024): with some 500 sandboxes that send
 * at once it is full, and packets are dropped. Permanent entries don't count.
 */
#include <errno.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <string.h>

#include "launch/link.h"
#include "launch/rtnl.h"

#define MAC_LEN 6

struct mac {
	uint8_t byte[MAC_LEN];
	bool there;
};

static int mac_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[IFLA_ADDRESS + 1];
	struct mac *mac = arg;

	rtnl_attrs(nlh, sizeof(struct ifinfomsg), tb, IFLA_ADDRESS);
	if (nlh->nlmsg_type != RTM_NEWLINK || !tb[IFLA_ADDRESS] ||
	    mnl_attr_get_payload_len(tb[IFLA_ADDRESS]) != MAC_LEN)
		return MNL_CB_OK;
	memcpy(mac->byte, mnl_attr_get_payload(tb[IFLA_ADDRESS]), MAC_LEN);
	mac->there = true;
	return MNL_CB_OK;
}

static int read_mac(int route, const char *name, struct mac *ret)
{
	const struct ifinfomsg body = { 0 };
	struct rtnl m;

	*ret = (struct mac){ 0 };
	rtnl_start(&m, RTM_GETLINK, 0, &body, sizeof(body));
	mnl_attr_put_strz(m.nlh, IFLA_IFNAME, name);
	int r = rtnl_read(route, &m, mac_cb, ret);
	if (r < 0)
		return r;
	return ret->there ? 0 : -ENODEV;
}

int link_neighbour(int route, const char *name, int peer_route,
		   const char *peer, const struct ip *ip)
{
	struct ndmsg body = { .ndm_family = ip->len == 16 ? AF_INET6 : AF_INET,
			      .ndm_state = NUD_PERMANENT };
	struct rtnl m;
	struct mac mac;
	uint32_t index;

	if (!ip->len || strnlen(peer, IFNAMSIZ) == IFNAMSIZ)
		return -EINVAL;
	int r = link_index(route, name, &index);
	if (r < 0)
		return r;
	r = read_mac(peer_route, peer, &mac);
	if (r < 0)
		return r;
	body.ndm_ifindex = (int)index;
	rtnl_start(&m, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &body,
		   sizeof(body));
	mnl_attr_put(m.nlh, NDA_DST, ip->len, ip->byte);
	mnl_attr_put(m.nlh, NDA_LLADDR, MAC_LEN, mac.byte);
	return rtnl_ask(route, &m);
}
